//! The identity of a namespaced object.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Namespace and name of an object. Ordered by namespace, then name: the fixed order of every decision.
///
/// Its text form is `namespace/name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A text that is not `namespace/name`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not of the form namespace/name")]
pub struct NotAKey(pub String);

impl Key {
    /// The key of `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for Key {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self::new(namespace, name))
            }
            _ => Err(NotAKey(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(namespace in "[a-z0-9-]{1,20}", name in "[a-z0-9.-]{1,20}") {
            let key = Key::new(namespace, name);
            prop_assert_eq!(key.to_string().parse::<Key>(), Ok(key));
        }
    }

    #[test]
    fn anything_but_two_parts_is_refused() {
        for text in ["", "a", "/", "a/", "/a", "a/b/c"] {
            assert_eq!(text.parse::<Key>(), Err(NotAKey(text.to_owned())));
        }
    }
}
