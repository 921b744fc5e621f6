//! What can go wrong in the sidecar.

use std::path::PathBuf;

/// A step that failed. `Display` names the file, socket or command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the volume or of the shared directory could not be read or written.
    #[error("cannot {doing} {}: {source}", path.display())]
    File {
        /// `read`, `write`, ...
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// `meta.json` is not what [`crate::contract::Meta`] says.
    #[error("{} is not valid: {source}", path.display())]
    Meta {
        /// Which file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// Configuration and checksum do not belong together: the volume is being replaced, or the manager erred.
    #[error("{key} has checksum {found}, meta.json says {expected}")]
    Checksum {
        /// The key of the Secret.
        key: &'static str,
        /// What its content has.
        found: String,
        /// What `meta.json` says.
        expected: String,
    },
    /// The master socket does not answer.
    #[error("HAProxy does not answer `{command}` on its master socket: {source}")]
    Master {
        /// The command.
        command: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The master socket answers something unknown.
    #[error("HAProxy's answer to `{command}` cannot be read: {what}")]
    Answer {
        /// The command.
        command: String,
        /// What is missing in it.
        what: &'static str,
    },
}
