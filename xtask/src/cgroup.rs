//! The cgroup above everything the stack starts: how its processes are found, whatever became of their parents.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::{config::CGROUP, process};

/// Where the stack's own services are put; pods lie beside it, under `kubepods`.
const SERVICES: &str = "services";

/// Mount points of the cgroup hierarchies, by version.
#[derive(Debug, Default)]
struct Hierarchies {
    v1: BTreeSet<PathBuf>,
    v2: BTreeSet<PathBuf>,
}

fn hierarchies() -> Result<Hierarchies> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("cannot read /proc/self/mountinfo")?;
    Ok(parse(&mounts))
}

fn parse(mountinfo: &str) -> Hierarchies {
    let Hierarchies { mut v1, mut v2 } = Hierarchies::default();
    for line in mountinfo.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let Some(mount) = left.split(' ').nth(4) else { continue };
        match right.split(' ').next() {
            Some("cgroup") => v1.insert(PathBuf::from(mount)),
            Some("cgroup2") => v2.insert(PathBuf::from(mount)),
            _ => false,
        };
    }
    Hierarchies { v1, v2 }
}

impl Hierarchies {
    /// Those that have controllers: one each on v1, a single one on v2. In the hybrid layout v2's has none.
    fn controllers(&self) -> Vec<&Path> {
        let Self { v1, v2 } = self;
        let chosen = if v1.is_empty() { v2.iter().take(1) } else { v1.iter().take(usize::MAX) };
        chosen.map(PathBuf::as_path).collect()
    }
}

/// Makes the cgroups of a service and returns the files that it writes its pid into.
pub fn prepare(service: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for hierarchy in hierarchies()?.controllers() {
        let ours = hierarchy.join(CGROUP);
        let services = ours.join(SERVICES);
        let leaf = services.join(service);
        for (parent, dir) in [(hierarchy, &ours), (&ours, &services), (&services, &leaf)] {
            if !dir.is_dir() {
                fs::create_dir(dir).with_context(|| format!("cannot make the cgroup {}", dir.display()))?;
            }
            inherit_cpuset(parent, dir)?;
        }
        for parent in [hierarchy, &ours] {
            pass_down(parent);
        }
        files.push(leaf.join("cgroup.procs"));
    }
    if files.is_empty() {
        bail!("no cgroup hierarchy is mounted under /sys/fs/cgroup: containers cannot run on this machine");
    }
    Ok(files)
}

/// On v1 a new cpuset is empty, and nothing can enter it until it is filled.
fn inherit_cpuset(parent: &Path, dir: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let (from, to) = (parent.join(file), dir.join(file));
        let Ok(now) = fs::read_to_string(&to) else { continue };
        let v2 = dir.join("cgroup.controllers").exists();
        if now.trim().is_empty() && !v2 {
            let all = fs::read_to_string(&from).with_context(|| format!("cannot read {}", from.display()))?;
            fs::write(&to, all).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    Ok(())
}

/// On v2 a cgroup has only the controllers that the one above it passes down; kubelet wants them in ours.
fn pass_down(dir: &Path) {
    for controller in fs::read_to_string(dir.join("cgroup.controllers")).unwrap_or_default().split_whitespace() {
        // One that cannot be had (cpu, while a real-time process runs) is missed by kubelet, which says so better.
        let _ = fs::write(dir.join("cgroup.subtree_control"), format!("+{controller}"));
    }
}

/// Every cgroup of ours, the deepest first.
fn ours() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let Hierarchies { v1, v2 } = hierarchies()?;
    for hierarchy in v1.iter().chain(&v2) {
        collect(&hierarchy.join(CGROUP), &mut found);
    }
    Ok(found)
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    // A cgroup may vanish while it is walked: that is what we are after.
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&entry.path(), found);
        }
    }
    found.push(dir.to_owned());
}

/// The processes in our cgroups.
fn members() -> Result<BTreeSet<u32>> {
    Ok(ours()?.iter().flat_map(|dir| processes(&dir.join("cgroup.procs"))).collect())
}

fn processes(procs: &Path) -> Vec<u32> {
    let text = fs::read_to_string(procs).unwrap_or_default();
    // 0 stands for a process of another PID namespace.
    text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid != 0).collect()
}

/// Kills what an earlier start of this service left, of which nobody has a record.
pub fn end_orphans(service: &str) -> Result<()> {
    for procs in prepare(service)? {
        for pid in processes(&procs) {
            process::kill(pid);
        }
    }
    Ok(())
}

/// Kills every process in our cgroups and removes them. Returns how many there were.
pub fn clear(limit: Duration) -> Result<usize> {
    let began = Instant::now();
    let mut killed: BTreeSet<u32> = BTreeSet::new();
    loop {
        let pids = members()?;
        for pid in &pids {
            process::kill(*pid);
        }
        killed.extend(&pids);
        if pids.is_empty() && remove()? {
            return Ok(killed.len());
        }
        if began.elapsed() > limit {
            bail!("processes {pids:?} in the cgroup {CGROUP} do not end, or the cgroup cannot be removed");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Removes our cgroups; false while the kernel still holds one.
fn remove() -> Result<bool> {
    let mut gone = true;
    for dir in ours()? {
        if dir.exists() {
            gone &= fs::remove_dir(&dir).is_ok();
        }
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hybrid_layout_counts_as_v1() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup/cpu rw shared:8 - cgroup cgroup rw,cpu\n\
                      31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        assert_eq!(parse(mounts).controllers(), [Path::new("/sys/fs/cgroup/cpu")]);
    }

    #[test]
    fn a_v2_layout_has_one_hierarchy() {
        let mounts = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n\
                      22 25 0:22 / /proc rw - proc proc rw\n";
        assert_eq!(parse(mounts).controllers(), [Path::new("/sys/fs/cgroup")]);
    }
}
