//! Builds the images of the local stack: `dev/images/<name>` says what is in them, an OCI archive each is what comes out.
//!
//! ```text
//!  packages + setup ──mmdebstrap──► rootfs.tar ─┐
//!  our static programs ──cargo──► bin/          ├─► context ──buildah──► target/dev/images/<name>.tar
//!  Containerfile and the rest of the folder ────┘       └─ its hash is the stamp: nothing changed, nothing is built
//! ```

mod context;
mod programs;
mod tree;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use clap::ValueEnum;

use crate::{
    context::Cx,
    step::{Step, command},
};

/// One image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Image {
    /// Manager, load-balancer sidecar and command line.
    Slipway,
    /// HAProxy of Debian, laid out as the official image.
    Haproxy,
    /// Where the administrators of a tenant log in.
    JumpHost,
    /// A Dex of 2018, for tests.
    Dex,
}

/// An image that was built, now or before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// What pods call it, for example `slipway.local/haproxy:dev`.
    pub name: String,
    /// The OCI archive, which carries the name: `ctr --namespace k8s.io images import <archive>`.
    pub archive: PathBuf,
    /// Names the content: an image with the same stamp need not be imported again.
    pub stamp: String,
}

impl Image {
    /// All of them.
    pub const ALL: [Image; 4] = [Image::Slipway, Image::Haproxy, Image::JumpHost, Image::Dex];

    /// Its folder in `dev/images`, and the middle of its name.
    pub fn folder(self) -> &'static str {
        match self {
            Image::Slipway => "slipway",
            Image::Haproxy => "haproxy",
            Image::JumpHost => "jump-host",
            Image::Dex => "dex",
        }
    }

    /// What pods call it.
    pub fn name(self) -> String {
        format!("slipway.local/{}:dev", self.folder())
    }
}

/// Builds those of `images` that changed and returns all of them, in the order given.
pub fn build(cx: &Cx, images: &[Image]) -> Result<Vec<Built>> {
    let programs = programs::build(cx, images)?;
    let mut built = Vec::new();
    for image in images {
        built.push(one(cx, *image, &programs)?);
    }
    Ok(built)
}

/// `slipway`, once image [`Image::Slipway`] has been built.
pub fn command_line(cx: &Cx) -> PathBuf {
    programs::command_line(cx)
}

fn one(cx: &Cx, image: Image, programs: &programs::Programs) -> Result<Built> {
    let dir = cx.cache.join("images");
    let (archive, stamp) = (dir.join(format!("{}.tar", image.folder())), dir.join(format!("{}.stamp", image.folder())));
    let name = image.name();
    let recipe = cx.repo.join("dev/images").join(image.folder());
    let parts = programs.of(cx, image)?;
    let value = cx.steps.value(&format!("image {}", image.folder()), |step| {
        step.note("gathering what is in it");
        let tree = tree::ensure(step, &recipe, &dir.join("trees"))?;
        let context = dir.join("context").join(image.folder());
        context::assemble(&context, &recipe, &tree, &parts)?;
        let hash = context::hash(&context, &epoch())?;
        if archive.exists() && fs::read_to_string(&stamp).is_ok_and(|old| old == hash) {
            return Ok((hash, "unchanged"));
        }
        step.note("packing it");
        pack(step, &dir, &context, &name, &archive)?;
        fs::write(&stamp, &hash)?;
        Ok((hash, "built"))
    })?;
    Ok(Built { name, archive, stamp: value })
}

/// Builds in a storage of our own, which leaves the machine's alone, and leaves only the archive.
fn pack(step: &Step, dir: &Path, context: &Path, name: &str, archive: &Path) -> Result<()> {
    let storage = dir.join("storage");
    let buildah = |args: &[&str]| -> Command {
        let mut command = command("buildah", ["--storage-driver", "vfs", "--root"]);
        command.arg(storage.join("root")).arg("--runroot").arg(storage.join("run")).args(args);
        command
    };
    let beside = archive.with_extension("new");
    // An archive that exists is added to, not replaced.
    let _ = fs::remove_file(&beside);
    let built = step
        .run(buildah(&["bud", "--isolation", "chroot", "--timestamp", &epoch(), "--tag", name]).arg(context))
        .and_then(|()| step.run(buildah(&["push", name]).arg(format!("oci-archive:{}:{name}", beside.display()))));
    let emptied = fs::remove_dir_all(&storage);
    built?;
    emptied.with_context(|| format!("cannot remove {}", storage.display()))?;
    fs::rename(&beside, archive).with_context(|| format!("cannot write {}", archive.display()))
}

/// Seconds since 1970 that all files and the images carry, so that the same content is the same image.
fn epoch() -> String {
    std::env::var("SOURCE_DATE_EPOCH").unwrap_or_else(|_| "1".to_owned())
}
