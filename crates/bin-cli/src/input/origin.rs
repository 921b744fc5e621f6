//! Where an object came from, and what is wrong with it, in words that lead people to the place.

use std::fmt;

/// Where an object came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A document of a file.
    File {
        /// Path as given, or `standard input`.
        file: String,
        /// Its number in the file, from 1.
        document: usize,
        /// Its place in a List.
        item: Option<usize>,
    },
    /// The cluster that the kubeconfig names.
    Cluster,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, document, item: None } => write!(f, "{file}, document {document}"),
            Self::File { file, document, item: Some(item) } => write!(f, "{file}, document {document}, items[{item}]"),
            Self::Cluster => f.write_str("the cluster"),
        }
    }
}

/// Something wrong in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Where: file and document, or only a file that cannot be read.
    pub place: String,
    /// The object, as `SIPCluster tenant/edge`; empty: not known.
    pub object: String,
    /// The field, as `spec.nodes[Worker].count.active`; empty: the object as a whole.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

impl Bad {
    /// Something wrong with a file or document as a whole.
    pub fn whole(place: impl fmt::Display, message: impl Into<String>) -> Self {
        Self { place: place.to_string(), object: String::new(), field: String::new(), message: message.into() }
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, object, field, message } = self;
        f.write_str(place)?;
        if !object.is_empty() {
            write!(f, ", {object}")?;
        }
        if field.is_empty() { write!(f, ": {message}") } else { write!(f, ": {field}: {message}") }
    }
}

/// Input that nothing can be decided on.
#[derive(Debug)]
pub struct BadInput(pub Vec<Bad>);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for BadInput {}
