//! What can go wrong in a turn, and when to try again.

use std::time::Duration;

pub use io_kube::Retry;

/// A step that failed. `Display` names the object and what was to be done with it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not do what was asked.
    #[error(transparent)]
    Api(io_kube::Error),
    /// Keys or certificates could not be made.
    #[error("Secret {name}: {why}")]
    Keys {
        /// The Secret.
        name: String,
        /// What went wrong, without key material.
        why: String,
    },
}

impl Error {
    /// One of a closed set.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Api(error) => error.reason(),
            Self::Keys { .. } => "KeysNotMade",
        }
    }

    /// When to try again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Api(error) => error.retry(),
            Self::Keys { .. } => Retry::After(Duration::from_secs(15)),
        }
    }

    /// Whether an object was not what the decision was made on.
    pub fn is_stale(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_stale())
    }
}
