//! The folder that buildah builds from, and one hash over all that is in it.

use std::{
    fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

use crate::process::hex;

/// Makes `context` anew: the recipe's folder, the tree as `rootfs.tar`, and `parts` where they say.
pub(super) fn assemble(context: &Path, recipe: &Path, tree: &Path, parts: &[(String, PathBuf)]) -> Result<()> {
    if context.exists() {
        fs::remove_dir_all(context)?;
    }
    copy(recipe, context)?;
    copy(tree, &context.join("rootfs.tar"))?;
    for (path, from) in parts {
        copy(from, &context.join(path))?;
    }
    Ok(())
}

/// A hash over paths, modes and contents of what is below `context`, and over `also`.
pub(super) fn hash(context: &Path, also: &str) -> Result<String> {
    let mut files = Vec::new();
    list(context, &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    hash.update(also);
    let mut buffer = vec![0; 1 << 20];
    for path in files {
        let mut file = fs::File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let about = file.metadata()?;
        let name = path.strip_prefix(context).unwrap_or(&path).to_string_lossy();
        hash.update(format!("\n{name} {:o} {}\n", about.permissions().mode(), about.len()));
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                break;
            }
            hash.update(&buffer[..length]);
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Copies a file, by a second name where the file system allows, or a folder with all below it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if !from.is_dir() {
        return fs::hard_link(from, to)
            .or_else(|_| fs::copy(from, to).map(drop))
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn list(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            list(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_changes_with_content_mode_name_and_time_and_with_nothing_else() {
        let dir = std::env::temp_dir().join(format!("slipway-context-{}", std::process::id()));
        let recipe = dir.join("recipe");
        fs::create_dir_all(recipe.join("below")).unwrap();
        fs::write(recipe.join("below/a"), "one").unwrap();
        fs::write(dir.join("tree"), "tree").unwrap();
        let context = dir.join("context");
        let made = |part: &str| {
            fs::write(dir.join("part"), part).unwrap();
            assemble(&context, &recipe, &dir.join("tree"), &[("bin/p".to_owned(), dir.join("part"))]).unwrap();
            hash(&context, "1").unwrap()
        };
        let first = made("p");
        assert_eq!(made("p"), first);
        assert_ne!(hash(&context, "2").unwrap(), first);
        assert_ne!(made("q"), first);
        assert_eq!(made("p"), first);
        fs::set_permissions(dir.join("part"), fs::Permissions::from_mode(0o755)).unwrap();
        let executable = hash(&context, "1").unwrap();
        assert_ne!(executable, first);
        fs::rename(context.join("bin/p"), context.join("bin/r")).unwrap();
        assert_ne!(hash(&context, "1").unwrap(), executable);
        fs::remove_dir_all(&dir).unwrap();
    }
}
