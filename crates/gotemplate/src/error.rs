//! What can be wrong with a template, and where.

use std::fmt;

use crate::ast::Pos;

/// A template that does not parse or cannot be rendered. `Display` names template, line and column.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The name given to [`Template::parse`](crate::Template::parse).
    pub name: String,
    /// Line of the text, counted from 1.
    pub line: usize,
    /// Column in that line, in characters, counted from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
    /// Which stage refused it.
    pub kind: Kind,
}

/// Which stage refused a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The text is no template; no data will change that.
    Parse,
    /// The template cannot be rendered with this data.
    Exec,
    /// Rendering would exceed its [`Limits`](crate::Limits).
    Limit,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template {:?} line {} column {}: {}", self.name, self.line, self.column, self.message)
    }
}

impl Error {
    pub(crate) fn new(name: &str, text: &str, at: Pos, message: String, kind: Kind) -> Error {
        let before = text.get(..at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Error {
            name: name.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message,
            kind,
        }
    }
}
