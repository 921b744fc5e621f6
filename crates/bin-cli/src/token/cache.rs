//! Tokens between two calls: one file per provider, client and CA, readable by its owner alone.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::PathBuf,
};

use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::Tokens;

/// Where the tokens of one login are kept.
#[derive(Debug)]
pub struct Cache {
    directory: PathBuf,
    name: String,
}

/// The same while nobody else uses it.
#[derive(Debug)]
pub struct Locked {
    cache: Cache,
    _lock: File,
}

impl Cache {
    /// The file for these identities, in `directory` or the user's own cache.
    pub fn open(directory: Option<PathBuf>, identities: &[&str]) -> anyhow::Result<Self> {
        let directory = directory.or_else(default_directory).context("neither --cache-dir nor HOME is set")?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&directory)
            .with_context(|| format!("cannot make the cache directory {}", directory.display()))?;
        let digest = identities.iter().fold(Sha256::new(), |digest, identity| {
            digest.chain_update(identity.len().to_be_bytes()).chain_update(identity)
        });
        let name = URL_SAFE_NO_PAD.encode(&digest.finalize()[..16]);
        Ok(Self { directory, name })
    }

    /// Waits until nobody else uses the file.
    pub fn lock(self) -> anyhow::Result<Locked> {
        let path = self.directory.join(format!("{}.lock", self.name));
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let lock = file.with_context(|| format!("cannot open {}", path.display()))?;
        lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(Locked { cache: self, _lock: lock })
    }
}

impl Locked {
    fn path(&self) -> PathBuf {
        self.cache.directory.join(format!("{}.json", self.cache.name))
    }

    /// What was kept. A file that cannot be read is as good as none.
    pub fn read(&self) -> Option<Tokens> {
        serde_json::from_slice(&std::fs::read(self.path()).ok()?).ok()
    }

    /// Keeps tokens: a new file, moved into place, so that nobody ever sees half of one.
    pub fn write(&self, tokens: &Tokens) -> anyhow::Result<()> {
        let path = self.path();
        let new = path.with_extension("new");
        let write = || {
            match std::fs::remove_file(&new) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
            file.write_all(&serde_json::to_vec(tokens)?)?;
            file.sync_all()?;
            std::fs::rename(&new, &path)
        };
        write().with_context(|| format!("cannot keep the token in {}", path.display()))
    }
}

fn default_directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("slipway").join("token"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_only_its_owner_may_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let open = |id: &str| Cache::open(Some(directory.path().join("a")), &[id]).unwrap().lock().unwrap();
        let tokens = Tokens { id_token: "x".to_owned(), refresh_token: Some("r".to_owned()) };
        {
            let one = open("one");
            assert!(one.read().is_none());
            one.write(&tokens).unwrap();
            one.write(&tokens).unwrap();
        }
        let one = open("one");
        assert_eq!(one.read().unwrap().refresh_token.as_deref(), Some("r"));
        assert_eq!(std::fs::metadata(one.path()).unwrap().permissions().mode() & 0o777, 0o600);
        let mode = std::fs::metadata(directory.path().join("a")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(open("two").read().is_none(), "another provider has another file");
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(Some(directory.path().to_owned()), &["one"]).unwrap().lock().unwrap();
        std::fs::write(cache.path(), "{").unwrap();
        assert!(cache.read().is_none());
    }
}
