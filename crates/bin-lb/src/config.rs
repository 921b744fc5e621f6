//! The configuration files in the directory that sidecar and HAProxy share: a mark in each, and atomic replacement.
//!
//! A file is the text of the Secret, unchanged, followed by one more `global` section that sets an environment variable
//! to the text's checksum. HAProxy accepts any number of `global` sections, line numbers in its messages stay those of
//! the text, and `show env` on a worker's command line proves what that worker has loaded.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// The environment variable that holds the mark.
pub const MARK: &str = "SLIPWAY_CONFIG";

/// A configuration and its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// SHA-256 of `text`, lower-case hexadecimal.
    pub sha: String,
    /// What the manager rendered.
    pub text: String,
}

impl Config {
    /// Takes `text` and computes its checksum.
    pub fn new(text: String) -> Self {
        Config { sha: checksum(&text), text }
    }

    /// The file HAProxy gets.
    fn marked(&self) -> String {
        let Config { sha, text } = self;
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        format!("{text}{newline}global\n    setenv {MARK} {sha}\n")
    }
}

/// SHA-256 of a text as 64 lower-case hexadecimal digits.
pub fn checksum(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a String takes everything");
        hex
    })
}

/// The directory that both containers mount.
#[derive(Clone, Debug)]
pub struct Shared {
    dir: PathBuf,
}

impl Shared {
    /// Uses `dir`, normally `/run/haproxy`, an `emptyDir`.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Shared { dir: dir.into() }
    }

    /// The file HAProxy is started with.
    pub fn config(&self) -> PathBuf {
        self.dir.join("haproxy.cfg")
    }

    /// A copy of the last configuration that HAProxy is known to have loaded.
    pub fn good(&self) -> PathBuf {
        self.dir.join("good.cfg")
    }

    /// HAProxy's master command line.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("master.sock")
    }

    /// Where HAProxy's standard error is sent, if its command says so.
    pub fn errors(&self) -> PathBuf {
        self.dir.join("errors")
    }

    /// Puts `config` where HAProxy reads it at its next start or reload.
    pub fn write(&self, config: &Config) -> Result<(), Error> {
        replace(&self.config(), &config.marked())
    }

    /// Notes that HAProxy has loaded what [`Shared::config`] holds.
    pub fn keep_good(&self) -> Result<(), Error> {
        let path = self.config();
        let text = fs::read_to_string(&path).map_err(|source| Error::File { doing: "read", path, source })?;
        replace(&self.good(), &text)
    }

    /// Checksum of the file HAProxy would read now; none if there is no file, or not one of ours.
    pub fn on_disk(&self) -> Result<Option<String>, Error> {
        Ok(read_marked(&self.config())?.map(|config| config.sha))
    }

    /// The last configuration that HAProxy is known to have loaded.
    pub fn last_good(&self) -> Result<Option<Config>, Error> {
        read_marked(&self.good())
    }
}

/// Reads a file of ours back; none when it does not exist, or when text and mark do not belong together.
fn read_marked(path: &Path) -> Result<Option<Config>, Error> {
    let file = match fs::read_to_string(path) {
        Ok(file) => file,
        Err(source) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::File { doing: "read", path: path.to_owned(), source }),
    };
    let Some((text, mark)) = file.rsplit_once(&format!("global\n    setenv {MARK} ")) else { return Ok(None) };
    // The newline before the mark may be ours or the text's own: the checksum tells.
    let candidates = [text, text.strip_suffix('\n').unwrap_or(text)];
    Ok(candidates.into_iter().map(|text| Config::new(text.to_owned())).find(|config| config.sha == mark.trim_end()))
}

/// Writes beside `path`, then renames: a reader, or a crash, meets the old file or the new one.
fn replace(path: &Path, text: &str) -> Result<(), Error> {
    let beside = path.with_extension("new");
    let write = || {
        let mut file = fs::File::create(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|source| Error::File { doing: "write", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back_with_its_checksum(text in "(global\n|    setenv SLIPWAY_CONFIG |[a-z #\n]){0,12}") {
            let dir = Scratch::new();
            let shared = Shared::new(dir.path());
            let config = Config::new(text);
            shared.write(&config).unwrap();
            shared.keep_good().unwrap();
            prop_assert_eq!(shared.on_disk().unwrap(), Some(config.sha.clone()));
            prop_assert_eq!(shared.last_good().unwrap(), Some(config));
        }
    }

    #[test]
    fn a_file_of_somebody_else_has_no_checksum() {
        let dir = Scratch::new();
        let shared = Shared::new(dir.path());
        assert_eq!(shared.on_disk().unwrap(), None);
        fs::write(shared.config(), "global\n    setenv SLIPWAY_CONFIG aa\n").unwrap();
        assert_eq!(shared.on_disk().unwrap(), None);
    }

    #[test]
    fn the_mark_follows_the_text_so_that_line_numbers_stay() {
        let sha = checksum("defaults");
        assert_eq!(
            Config::new("defaults".to_owned()).marked(),
            format!("defaults\nglobal\n    setenv SLIPWAY_CONFIG {sha}\n")
        );
    }

    /// A directory that goes with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Self {
            use std::sync::atomic::{AtomicU32, Ordering};
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let name = format!("slipway-lb-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let dir = std::env::temp_dir().join(name);
            fs::create_dir(&dir).unwrap();
            Scratch(dir)
        }

        fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
