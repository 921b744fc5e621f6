//! The programs inside the images: ours, linked statically, and Dex.

use std::{collections::BTreeSet, env, path::PathBuf};

use anyhow::Result;

use super::Image;
use crate::{context::Cx, gobuild, step::command};

/// Static programs run in an image without a C library.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// How they are built: `Cargo.toml` says why not as a release.
const PROFILE: &str = "local";

/// Where the built programs are.
pub(super) struct Programs {
    dir: PathBuf,
}

/// Package and program.
fn ours(image: Image) -> &'static [(&'static str, &'static str)] {
    match image {
        Image::Slipway => &[("bin-manager", "manager"), ("bin-lb", "slipway-lb"), ("bin-cli", "slipway")],
        Image::JumpHost => &[("bin-host", "host")],
        Image::Haproxy | Image::Dex => &[],
    }
}

/// Builds our programs of these images.
pub(super) fn build(cx: &Cx, images: &[Image]) -> Result<Programs> {
    let packages: BTreeSet<&str> = images.iter().flat_map(|image| ours(*image)).map(|(package, _)| *package).collect();
    if !packages.is_empty() {
        cx.steps.run("static programs", |step| {
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut build = command(cargo, ["build", "--locked", "--profile", PROFILE, "--target", TARGET]);
            for package in packages {
                build.args(["--package", package]);
            }
            step.note("compiling");
            step.run(build.current_dir(&cx.repo))?;
            Ok("up to date")
        })?;
    }
    Ok(Programs { dir: folder(cx) })
}

/// Where cargo leaves our programs.
fn folder(cx: &Cx) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| cx.repo.join("target"), |dir| cx.repo.join(dir));
    target.join(TARGET).join(PROFILE)
}

/// The command line, as it is in its image; it runs on this machine too.
pub(super) fn command_line(cx: &Cx) -> PathBuf {
    folder(cx).join("slipway")
}

impl Programs {
    /// What the image's folder does not hold: path in the build context, and the file or folder that goes there.
    pub(super) fn of(&self, cx: &Cx, image: Image) -> Result<Vec<(String, PathBuf)>> {
        let mut parts: Vec<_> =
            ours(image).iter().map(|(_, program)| (format!("bin/{program}"), self.dir.join(program))).collect();
        if image == Image::Dex {
            parts.push(("bin/dex".to_owned(), gobuild::dex(cx)?));
            parts.push(("web".to_owned(), cx.cache.join("dex-web")));
        }
        Ok(parts)
    }
}
