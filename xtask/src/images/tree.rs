//! The part of an image that comes from Debian: packages unpacked or installed into a folder, finished by a script.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use super::epoch;
use crate::{
    process::hex,
    step::{Step, command},
};

/// The release of Debian that the images are made of.
const SUITE: &str = "bookworm";

/// The tar of the tree that `recipe` describes; made only if its recipe changed. Newer packages alone are no change: to
/// take them, remove the tar.
pub(super) fn ensure(step: &Step, recipe: &Path, trees: &Path) -> Result<PathBuf> {
    let read = |name: &str| {
        let path = recipe.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (packages, setup) = (read("packages")?, read("setup")?);
    let mirror = env::var("SLIPWAY_DEBIAN_MIRROR").ok();
    let extra_ca = env::var("SLIPWAY_EXTRA_CA").ok().filter(|path| !path.is_empty());
    let extra_ca_text = extra_ca.as_ref().map(fs::read).transpose().context("cannot read the file SLIPWAY_EXTRA_CA")?;
    let mut hash = Sha256::new();
    for part in [SUITE, &packages, &setup, &epoch(), mirror.as_deref().unwrap_or_default()] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.update(extra_ca_text.unwrap_or_default());
    let name = recipe.file_name().unwrap_or_default().to_string_lossy();
    let tar = trees.join(format!("{name}-{}.tar", &hex(&hash.finalize())[..16]));
    if tar.exists() {
        return Ok(tar);
    }

    step.note("fetching its Debian packages");
    fs::create_dir_all(trees)?;
    let folder = trees.join(format!("{name}.tree"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut words = packages.split_whitespace();
    let variant = words.next().context("the file `packages` names no variant")?;
    let include = words.collect::<Vec<_>>().join(",");
    // Proxies come with the environment, as for apt.
    let mut debian = command("mmdebstrap", ["--mode=root", "--variant", variant, "--include", &include, SUITE]);
    debian.arg(&folder).args(mirror).env("SOURCE_DATE_EPOCH", epoch());
    step.run(&mut debian)?;
    let mut script = command("sh", [recipe.join("setup"), folder.clone()]);
    script.env("SLIPWAY_EXTRA_CA", extra_ca.unwrap_or_default());
    step.run(&mut script)?;

    let beside = tar.with_extension("new");
    let date = format!("--mtime=@{}", epoch());
    let mut pack = command("tar", ["--create", "--sort=name", "--numeric-owner", "--exclude=./dev/*", &date, "--file"]);
    step.run(pack.arg(&beside).arg("--directory").arg(&folder).arg("."))?;
    fs::remove_dir_all(&folder)?;
    fs::rename(&beside, &tar)?;
    forget_older(trees, &name, &tar);
    Ok(tar)
}

/// Removes the tars of earlier recipes.
fn forget_older(trees: &Path, name: &str, newest: &Path) {
    for entry in fs::read_dir(trees).into_iter().flatten().flatten() {
        let path = entry.path();
        let file = entry.file_name().to_string_lossy().into_owned();
        let hash = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')?.strip_suffix(".tar"));
        if hash.is_some_and(|hash| hash.len() == 16) && path != newest {
            // What cannot be removed only takes room.
            let _ = fs::remove_file(path);
        }
    }
}
