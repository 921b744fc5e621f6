//! Writes configuration files: only when they change, since some programs watch theirs and restart, and privately where they hold keys.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context as _, Result};

/// Writes a file unless it says so already, making its folder.
pub fn write(file: &Path, text: &str) -> Result<()> {
    write_as(file, text, 0o644)
}

/// As [`write`], readable by its owner alone.
pub fn write_private(file: &Path, text: &str) -> Result<()> {
    write_as(file, text, 0o600)
}

fn write_as(file: &Path, text: &str, mode: u32) -> Result<()> {
    if fs::read(file).is_ok_and(|now| now == text.as_bytes()) {
        return Ok(());
    }
    let write = || -> std::io::Result<()> {
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir)?;
        }
        // A new file in place of the old: who reads meanwhile sees one or the other, never half.
        let draft = file.with_added_extension("draft");
        let mut opened = OpenOptions::new().create(true).write(true).truncate(true).mode(mode).open(&draft)?;
        opened.write_all(text.as_bytes())?;
        fs::rename(&draft, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
