//! What the machine was like before the stack: kernel settings, firewall chains and folders, so that `down` can bring it back.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::{
    config::{run, state},
    files, firewall,
    step::Step,
};

/// Kernel settings that we or the programs we start change, and to what.
const SETTINGS: [(&str, &str); 9] = [
    ("net/ipv4/ip_forward", "1"),
    ("net/bridge/bridge-nf-call-iptables", "1"),
    // The rest is kubelet's doing.
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
    ("net/ipv4/conf/all/route_localnet", "1"),
];

/// Of the above, those that are ours to set.
const SET: usize = 2;

/// Folders at fixed places that programs make on their own, the inner before the outer.
const FOLDERS: [&str; 14] = [
    "/run/containerd/s",
    "/run/containerd/fifo",
    "/run/containerd/runc",
    "/run/containerd",
    "/run/runc",
    "/run/sshd",
    "/run/netns",
    "/var/lib/cni/results",
    "/var/lib/cni",
    "/var/lib/kubelet/device-plugins",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/opt/containerd",
    "/etc/cni",
];

/// The record, made once, before the first change.
#[derive(Serialize, Deserialize)]
pub struct Before {
    settings: BTreeMap<String, String>,
    folders: BTreeSet<String>,
    /// Firewall chains that are somebody else's, as `family table chain`.
    pub chains: BTreeSet<String>,
}

/// Where the record lies: twice, so that it outlives a reboot and somebody who empties one of the folders.
fn places() -> [PathBuf; 2] {
    [state("before.json"), run("before.json")]
}

/// Makes the record unless it is there.
pub fn remember(step: &Step) -> Result<()> {
    if let Some(before) = recall() {
        return write(&before);
    }
    let settings = SETTINGS
        .iter()
        .filter_map(|(name, _)| Some(((*name).to_owned(), fs::read_to_string(setting(name)).ok()?.trim().to_owned())))
        .collect();
    let folders = FOLDERS.iter().filter(|dir| Path::new(dir).exists()).map(|dir| (*dir).to_owned()).collect();
    write(&Before { settings, folders, chains: firewall::chains(step) })
}

fn write(before: &Before) -> Result<()> {
    let text = serde_json::to_string_pretty(before)?;
    places().iter().try_for_each(|place| files::write(place, &text))
}

/// Whether the record is where it was put: if not, somebody has emptied one of our folders.
pub fn complete() -> bool {
    places().iter().all(|place| place.exists())
}

/// The record, if one was made.
pub fn recall() -> Option<Before> {
    places().iter().find_map(|place| serde_json::from_slice(&fs::read(place).ok()?).ok())
}

/// Sets what containers need of the kernel.
pub fn set(step: &Step) -> Result<()> {
    for (name, value) in &SETTINGS[..SET] {
        let file = setting(name);
        let now = fs::read_to_string(&file)
            .with_context(|| format!("no kernel setting {name}: is the module br_netfilter there?"))?;
        if now.trim() != *value {
            step.say(format!("{name}: {} -> {value}", now.trim()));
            fs::write(&file, value).with_context(|| format!("cannot set {name} to {value}"))?;
        }
    }
    Ok(())
}

impl Before {
    /// Brings kernel settings and folders back, except what somebody else has changed since.
    pub fn restore(&self, step: &Step) {
        for (name, ours) in SETTINGS {
            let Some(old) = self.settings.get(name) else { continue };
            let now = fs::read_to_string(setting(name)).unwrap_or_default();
            if now.trim() == ours && old != ours {
                step.say(format!("{name}: {ours} -> {old}"));
                if let Err(error) = fs::write(setting(name), old) {
                    step.say(format!("cannot set {name} back: {error}"));
                }
            }
        }
        for dir in FOLDERS {
            if !self.folders.contains(dir) {
                empty_tree(Path::new(dir));
            }
        }
    }
}

/// Removes a folder if nothing but dead sockets, dangling links, empty files (locks) and such folders is in it.
fn empty_tree(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        if data.is_dir() {
            empty_tree(&path);
        } else if !path.exists() || data.file_type().is_socket() || data.is_file() && data.len() == 0 {
            // What cannot be removed keeps its folder, which is all we want here.
            let _ = fs::remove_file(&path);
        }
    }
    let _ = fs::remove_dir(dir);
}

fn setting(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name)
}
