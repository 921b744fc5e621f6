//! Reads what the manager wants from the mounted Secret.
//!
//! kubelet replaces a Secret volume by swapping one symbolic link, `..data`. All keys are read through the link's target
//! as it was at the start, so that one read never mixes two versions; the checksums in `meta.json` prove it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    config::Config,
    contract::{ACCEPTED_KEY, CANDIDATE_KEY, Leaving, META_KEY, Meta},
    error::Error,
};

/// What the manager wants, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The configuration that has been loaded somewhere before.
    pub accepted: Config,
    /// A configuration to try first.
    pub candidate: Option<Config>,
    /// Servers of which no session may be left.
    pub leaving: Vec<Leaving>,
}

/// Reads the mounted directory.
pub fn read(dir: &Path) -> Result<Want, Error> {
    let version = fs::read_link(dir.join("..data")).map_or_else(|_| dir.to_owned(), |target| dir.join(target));
    let path = version.join(META_KEY);
    let text = file(&path)?;
    let Meta { accepted, candidate, leaving } =
        serde_json::from_str(&text).map_err(|source| Error::Meta { path, source })?;
    Ok(Want {
        accepted: config(&version, ACCEPTED_KEY, accepted)?,
        candidate: candidate.map(|sha| config(&version, CANDIDATE_KEY, sha)).transpose()?,
        leaving,
    })
}

fn config(version: &Path, key: &'static str, expected: String) -> Result<Config, Error> {
    let config = Config::new(file(&version.join(key))?);
    if config.sha == expected { Ok(config) } else { Err(Error::Checksum { key, found: config.sha, expected }) }
}

fn file(path: &PathBuf) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::File { doing: "read", path: path.clone(), source })
}
