//! The hosts' network: one bridge on this machine, and a network namespace with a cable into it for each host.

use std::{
    fs::{self, File},
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{
    config::{HOSTS_BRIDGE, HOSTS_CIDR, HOSTS_PREFIX, Host, NODE_IP, POD_BRIDGE, POD_CIDR, SERVICE_CIDR},
    packages::which,
    step::{Step, command},
};

#[derive(Deserialize)]
struct Link {
    ifname: String,
}

#[derive(Deserialize)]
struct Route {
    dst: String,
    #[serde(default)]
    dev: String,
}

fn ip(line: &str) -> Command {
    command("ip", line.split(' '))
}

/// Makes the bridge, with the node's address, unless it is there.
pub fn bridge(step: &Step) -> Result<()> {
    foreign_routes(step)?;
    for module in ["br_netfilter", "overlay", "veth"] {
        if let Some(modprobe) = which("modprobe") {
            // Built into some kernels: what is really missing shows in the next steps.
            let _ = step.run(&mut command(modprobe, ["-q", module]));
        }
    }
    if !exists(HOSTS_BRIDGE) {
        step.run(&mut ip(&format!("link add {HOSTS_BRIDGE} type bridge")))?;
    }
    step.run(&mut ip(&format!("address replace {NODE_IP}/{HOSTS_PREFIX} dev {HOSTS_BRIDGE}")))?;
    step.run(&mut ip(&format!("link set {HOSTS_BRIDGE} up")))
}

/// Ends with a sentence when another interface already leads to one of our networks.
fn foreign_routes(step: &Step) -> Result<()> {
    let routes: Vec<Route> = serde_json::from_str(&step.output(&mut ip("-json -4 route show table all"))?)?;
    for route in routes {
        let ours = [HOSTS_BRIDGE, POD_BRIDGE].contains(&route.dev.as_str());
        let taken = [HOSTS_CIDR, POD_CIDR, SERVICE_CIDR].into_iter().find(|cidr| overlap(cidr, &route.dst));
        if let Some(cidr) = taken.filter(|_| !ours) {
            bail!(
                "the local stack's network {cidr} overlaps with {} on interface {}: change it in xtask/src/config.rs",
                route.dst,
                route.dev
            );
        }
    }
    Ok(())
}

/// Whether two IPv4 networks overlap; `default` and IPv6 overlap with nothing.
fn overlap(one: &str, other: &str) -> bool {
    let parse = |text: &str| -> Option<(u32, u32)> {
        let (address, length) = text.split_once('/').unwrap_or((text, "32"));
        let address: std::net::Ipv4Addr = address.parse().ok()?;
        Some((address.into(), length.parse().ok()?))
    };
    let (Some((a, a_len)), Some((b, b_len))) = (parse(one), parse(other)) else { return false };
    let shift = 32 - a_len.min(b_len);
    shift < 32 && a.checked_shr(shift) == b.checked_shr(shift)
}

/// Makes the network namespace of a host, with its address and a cable into the bridge.
pub fn host(step: &Step, host: &Host) -> Result<()> {
    let file = host.netns();
    namespace(step, &file)?;
    let inside = |line: &str| {
        let netns = format!("--net={}", file.display());
        command("nsenter", [netns.as_str(), "ip"].into_iter().chain(line.split(' ')))
    };
    let port = host.port();
    if step.output(&mut inside("link show oam")).is_err() {
        // A port without its other end inside is of a namespace that is gone.
        remove(step, &port)?;
        let (path, mac) = (file.display(), host.mac());
        step.run(&mut ip(&format!("link add {port} type veth peer name oam address {mac} netns {path}")))?;
    }
    step.run(&mut ip(&format!("link set {port} master {HOSTS_BRIDGE} up")))?;
    step.run(&mut inside("link set lo up"))?;
    step.run(&mut inside(&format!("address replace {}/{HOSTS_PREFIX} dev oam", host.address())))?;
    step.run(&mut inside("link set oam up"))?;
    step.run(&mut inside(&format!("route replace default via {NODE_IP}")))
}

/// Makes a network namespace that lives in a file of ours. Not `ip netns add`: it mounts /run/netns
/// over itself, and pods of the node then hang in Terminating.
pub fn namespace(step: &Step, file: &Path) -> Result<()> {
    if is_namespace(file) {
        return Ok(());
    }
    let dir = file.parent().context("the namespace's file has no folder")?;
    fs::create_dir_all(dir)?;
    File::create(file).with_context(|| format!("cannot make {}", file.display()))?;
    step.run(&mut command("unshare", [format!("--net={}", file.display()), "true".into()]))
}

fn is_namespace(file: &Path) -> bool {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().any(|line| {
        let is_nsfs = line.split_once(" - ").is_some_and(|(_, right)| right.starts_with("nsfs "));
        is_nsfs && line.split(' ').nth(4).is_some_and(|mount| Path::new(mount) == file)
    })
}

/// Removes our bridges and what is plugged into them.
pub fn clear(step: &Step) -> Result<usize> {
    let mut count = 0;
    for bridge in [HOSTS_BRIDGE, POD_BRIDGE] {
        if !exists(bridge) {
            continue;
        }
        let ports: Vec<Link> =
            serde_json::from_str(&step.output(&mut ip(&format!("-json link show master {bridge}")))?)?;
        for port in ports {
            remove(step, &port.ifname)?;
            count += 1;
        }
        remove(step, bridge)?;
        count += 1;
    }
    Ok(count)
}

fn remove(step: &Step, link: &str) -> Result<()> {
    // With a namespace its end of a cable goes, and the other with it, maybe between the look and the removal.
    if exists(link) && step.run(&mut ip(&format!("link delete {link}"))).is_err() && exists(link) {
        bail!("the interface {link} cannot be removed");
    }
    Ok(())
}

fn exists(link: &str) -> bool {
    Path::new("/sys/class/net").join(link).exists()
}

#[cfg(test)]
mod tests {
    use super::overlap;

    #[test]
    fn networks_overlap_when_one_contains_the_other() {
        assert!(overlap("172.22.0.0/24", "172.22.0.0/16"));
        assert!(overlap("172.22.0.0/24", "172.22.0.7"));
        assert!(!overlap("172.22.0.0/24", "172.22.1.0/24"));
        assert!(!overlap("172.22.0.0/24", "default"));
        assert!(!overlap("172.22.0.0/24", "fe80::/64"));
        assert!(!overlap("172.22.0.0/24", "0.0.0.0/0"));
    }
}
