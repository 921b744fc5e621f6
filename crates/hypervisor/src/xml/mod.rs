//! XML as libvirt speaks it: a small tree, written and read with every limit that hostile input needs.
//!
//! What is built and read back is the same (`tests.rs` holds it as a law for every kind). Texts are data: whatever they
//! contain is escaped, and what XML cannot carry at all is refused by name ([`Unwritable`]). What others wrote is read by
//! what we need of it; where that is not what it should be, the error names the object and the element ([`Unreadable`]).

mod domain;
mod host;
mod mark;
mod network;
pub mod overlay;
mod parse;
mod storage;
mod write;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use domain::{domain, drive, drive_file, read_domain};
pub use host::read_host;
pub use mark::{DOMAIN_NAMESPACE, NETWORK_NAMESPACE};
pub use network::{dhcp_host, network, read_network};
pub use storage::{pool, read_pool, read_volume, volume};

use crate::error::Kind;

/// A value that no XML can carry: a control character, or something too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} cannot be written: {why}")]
pub struct Unwritable {
    /// The field of what was to be written.
    pub field: String,
    /// What is wrong with it.
    pub why: String,
}

/// XML that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name} cannot be read: {why}")]
pub struct Unreadable {
    /// What it should be.
    pub kind: Kind,
    /// Its name, where that could be read; else `?`.
    pub name: String,
    /// Which element is wrong, and how.
    pub why: String,
}

/// An element: name, attributes in order, children, text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Element>,
    pub(crate) text: String,
}

// Numbers, texts and addresses are written alike, by value or not: `.with("port", 0)`.
#[allow(clippy::needless_pass_by_value)]
impl Element {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// With an attribute.
    #[must_use]
    pub(crate) fn with(mut self, attribute: &str, value: impl ToString) -> Self {
        self.attributes.push((attribute.to_owned(), value.to_string()));
        self
    }

    /// With an attribute, if there is a value.
    #[must_use]
    pub(crate) fn with_some(self, attribute: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.with(attribute, value),
            None => self,
        }
    }

    /// With a text.
    #[must_use]
    pub(crate) fn text(mut self, text: impl ToString) -> Self {
        self.text = text.to_string();
        self
    }

    /// With a child.
    #[must_use]
    pub(crate) fn child(mut self, child: Element) -> Self {
        self.children.push(child);
        self
    }

    /// With these children.
    #[must_use]
    pub(crate) fn children(mut self, children: impl IntoIterator<Item = Element>) -> Self {
        self.children.extend(children);
        self
    }

    /// The value of an attribute.
    pub(crate) fn get(&self, attribute: &str) -> Option<&str> {
        self.attributes.iter().find(|(name, _)| name == attribute).map(|(_, value)| value.as_str())
    }

    /// The first child of that name.
    pub(crate) fn first(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// All children of that name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// The element at the end of a path of names.
    pub(crate) fn at(&self, path: &str) -> Option<&Element> {
        path.split('/').try_fold(self, |element, name| element.first(name))
    }
}

/// The name in the definition of something that may be otherwise unreadable, for errors.
fn name_of(root: &Element) -> String {
    root.first("name").map_or("?", |name| name.text.as_str()).chars().take(128).collect()
}

/// Where in which object reading is, so that errors say it.
#[derive(Clone)]
pub(crate) struct At {
    kind: Kind,
    name: String,
}

impl At {
    pub(crate) fn new(kind: Kind, root: &Element) -> Self {
        Self { kind, name: name_of(root) }
    }

    pub(crate) fn wrong(&self, why: impl Into<String>) -> Unreadable {
        Unreadable { kind: self.kind, name: self.name.clone(), why: why.into() }
    }

    /// What is at a path: the text, parsed.
    pub(crate) fn text<T>(&self, root: &Element, path: &str) -> Result<T, Unreadable>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let element = root.at(path).ok_or_else(|| self.wrong(format!("it has no <{path}>")))?;
        element.text.trim().parse().map_err(|error| self.wrong(format!("<{path}>: {error}")))
    }

    /// The value of an attribute, parsed, if it is there.
    pub(crate) fn attribute<T>(&self, element: &Element, attribute: &str) -> Result<Option<T>, Unreadable>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let Some(value) = element.get(attribute) else { return Ok(None) };
        let name = &element.name;
        value.trim().parse().map(Some).map_err(|error| self.wrong(format!("<{name}> {attribute}={value:?}: {error}")))
    }

    /// The value of an attribute that must be there, parsed.
    pub(crate) fn required<T>(&self, element: &Element, attribute: &str) -> Result<T, Unreadable>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        let missing = || self.wrong(format!("<{}> has no {attribute}", element.name));
        self.attribute(element, attribute)?.ok_or_else(missing)
    }

    /// A size with its unit, in bytes.
    pub(crate) fn bytes(&self, element: &Element, default_unit: &str) -> Result<u64, Unreadable> {
        let unit = element.get("unit").unwrap_or(default_unit);
        let factor: u64 = match unit {
            "b" | "bytes" | "B" => 1,
            "KB" => 1000,
            "k" | "K" | "KiB" => 1 << 10,
            "MB" => 1_000_000,
            "M" | "MiB" => 1 << 20,
            "GB" => 1_000_000_000,
            "G" | "GiB" => 1 << 30,
            "TB" => 1_000_000_000_000,
            "T" | "TiB" => 1 << 40,
            _ => return Err(self.wrong(format!("<{}> has the unknown unit {unit:?}", element.name))),
        };
        let number: u64 =
            element.text.trim().parse().map_err(|error| self.wrong(format!("<{}>: {error}", element.name)))?;
        number.checked_mul(factor).ok_or_else(|| self.wrong(format!("<{}> is too large", element.name)))
    }
}
