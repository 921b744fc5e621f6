//! Where things lie: the checkout, its build cache, and the logs of this run.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use crate::step::Steps;

/// What every command needs.
pub struct Cx {
    /// The checkout.
    pub repo: PathBuf,
    /// What was built from elsewhere, kept by `down`: `target/dev` of the checkout.
    pub cache: PathBuf,
    /// The step runner of this run.
    pub steps: Steps,
}

impl Cx {
    /// The context of a command whose steps log to `logs`, a path inside the cache if relative.
    pub fn new(logs: &Path) -> Result<Self> {
        let (repo, cache) = (repo()?, cache()?);
        let logs = cache.join(logs);
        Ok(Self { steps: Steps::new(logs)?, repo, cache })
    }

    /// Where `kubectl` and `slipway` are once the stack is up.
    pub fn tools(&self) -> PathBuf {
        self.cache.join("bin")
    }

    /// The administrator's kubeconfig of the local base cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.repo.join(".slipway/kubeconfig")
    }
}

/// What was built from elsewhere, kept by `down`.
pub fn cache() -> Result<PathBuf> {
    Ok(repo()?.join("target/dev"))
}

fn repo() -> Result<PathBuf> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let start = match manifest {
        Some(dir) => dir,
        None => env::current_dir().context("the current directory is gone")?,
    };
    for dir in start.ancestors() {
        if dir.join("Cargo.lock").is_file() && dir.join("xtask").is_dir() {
            return Ok(dir.to_owned());
        }
    }
    bail!("{} is not inside a checkout of Slipway", start.display())
}

/// Ends with a sentence when this is not root: network, mounts and containers need it.
pub fn require_root() -> Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    bail!(
        "the local stack makes bridges, mounts and containers: run it as root, e.g. `sudo -E env \"PATH=$PATH\" make up`"
    )
}
