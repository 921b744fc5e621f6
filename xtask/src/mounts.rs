//! Mounts under the stack's folders, and the folders themselves.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{
    config::{RUN, STATE},
    step::{Step, command},
};

/// Mount points under `STATE` and `RUN`, the last mounted first.
fn ours(mountinfo: &str) -> Vec<String> {
    let mounts = mountinfo.lines().filter_map(|line| line.split(' ').nth(4)).map(unescape);
    let mut ours: Vec<String> =
        mounts.filter(|mount| [STATE, RUN].iter().any(|dir| Path::new(mount).starts_with(dir))).collect();
    ours.reverse();
    ours
}

/// The kernel writes blanks in paths as octal numbers.
fn unescape(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// Unmounts everything under our folders. Returns how many mounts there were.
pub fn clear(step: &Step) -> Result<usize> {
    let mut count = 0;
    // A mount may hide others of the same path: look again until there are none.
    for _ in 0..20 {
        let mounts = ours(&fs::read_to_string("/proc/self/mountinfo").context("cannot read /proc/self/mountinfo")?);
        if mounts.is_empty() {
            return Ok(count);
        }
        for batch in mounts.chunks(100) {
            // Some go with the one above them: the next look tells what is left.
            let _ = step
                .run(&mut command("umount", ["--lazy", "--quiet"].into_iter().chain(batch.iter().map(String::as_str))));
        }
        count += mounts.len();
    }
    bail!("mounts under {STATE} or {RUN} come back as fast as they are removed")
}

/// Removes a folder with all in it, if it is there and nothing is mounted under it.
pub fn remove(dir: &str) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {dir}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::ours;

    #[test]
    fn the_inner_mount_comes_before_the_outer_and_others_are_not_listed() {
        let text = "1 0 0:1 / / rw - ext4 x rw\n\
                    2 1 0:2 / /run/slipway-dev/a rw - tmpfs x rw\n\
                    3 2 0:3 / /run/slipway-dev/a/b\\040c rw - tmpfs x rw\n\
                    4 1 0:4 / /run/slipway-development rw - tmpfs x rw\n";
        assert_eq!(ours(text), ["/run/slipway-dev/a/b c", "/run/slipway-dev/a"]);
    }
}
