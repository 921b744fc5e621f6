//! Every address, port, name, version and path of the local stack, in one place.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
};

/// State that outlives a reboot: PKI, etcd's data, containers' images. `down` removes it.
pub const STATE: &str = "/var/lib/slipway-dev";
/// State of running things: sockets, process records, network namespaces. `down` removes it.
pub const RUN: &str = "/run/slipway-dev";
/// Held while a command changes the stack, so that two of them never do at once.
pub const LOCK: &str = "/run/slipway-dev.lock";
/// The cgroup above everything we start, in every hierarchy.
pub const CGROUP: &str = "slipway-dev";

/// Kubernetes, as `kubeadm` writes it.
pub const KUBERNETES: &str = "v1.34.4";
/// The minor version that a program found on the machine must have.
pub const KUBERNETES_MINOR: &str = "1.34";
/// etcd's minor version, for the same purpose.
pub const ETCD_MINOR: &str = "3.6";
/// The Redfish emulator of OpenStack, from PyPI.
pub const SUSHY_TOOLS: &str = "2.2.0";

/// The network of the node and of the bare-metal hosts: a bridge of our own, reachable from this machine only.
pub const HOSTS_BRIDGE: &str = "slipway0";
/// What the hosts' network is, as `ip` and kubeadm write it.
pub const HOSTS_CIDR: &str = "172.22.0.0/24";
/// The node's address on it: API server, node ports, BMC emulator.
pub const NODE_IP: Ipv4Addr = Ipv4Addr::new(172, 22, 0, 1);
/// The prefix length of the hosts' network.
pub const HOSTS_PREFIX: u8 = 24;
/// Pods of the base cluster.
pub const POD_CIDR: &str = "10.233.0.0/16";
/// Pods of the first node.
pub const NODE_POD_CIDR: &str = "10.233.0.0/24";
/// The bridge that the CNI plugin makes for pods.
pub const POD_BRIDGE: &str = "slipway-pods";
/// Services of the base cluster.
pub const SERVICE_CIDR: &str = "10.234.0.0/16";
/// Pods of the tenant cluster, of which there are none: its hosts run an API server only.
pub const TENANT_POD_CIDR: &str = "10.235.0.0/16";
/// Services of the tenant cluster.
pub const TENANT_SERVICE_CIDR: &str = "10.236.0.0/16";
/// The first node's name.
pub const NODE_NAME: &str = "slipway-node";

/// The base cluster's API server, on [`NODE_IP`].
pub const API_PORT: u16 = 16443;
/// etcd for clients, on 127.0.0.1.
pub const ETCD_CLIENT_PORT: u16 = 23790;
/// etcd for peers, on 127.0.0.1.
pub const ETCD_PEER_PORT: u16 = 23800;
/// etcd's health and metrics over plain HTTP, on 127.0.0.1.
pub const ETCD_HEALTH_PORT: u16 = 23810;
/// controller-manager's health, on 127.0.0.1.
pub const CONTROLLER_MANAGER_PORT: u16 = 20257;
/// scheduler's health, on 127.0.0.1.
pub const SCHEDULER_PORT: u16 = 20259;
/// kubelet's API, on [`NODE_IP`].
pub const KUBELET_PORT: u16 = 10250;
/// kubelet's health, on 127.0.0.1.
pub const KUBELET_HEALTH_PORT: u16 = 20248;
/// kube-proxy's health, on 127.0.0.1.
pub const PROXY_HEALTH_PORT: u16 = 20256;
/// kube-proxy's metrics, on 127.0.0.1.
pub const PROXY_METRICS_PORT: u16 = 20249;
/// The Redfish emulator of the hosts, on [`NODE_IP`].
pub const BMC_PORT: u16 = 8000;

/// The namespace of the sample BareMetalHosts.
pub const HOSTS_NAMESPACE: &str = "metal3";
/// The namespace of the sample tenant.
pub const TENANT_NAMESPACE: &str = "tenant-a";
/// The name of the sample tenant.
pub const TENANT_NAME: &str = "edge";
/// The BMC user and password of the sample hosts, the same as in `dev/sample/hosts.yaml`.
pub const BMC_LOGIN: (&str, &str) = ("admin", "local-stack-only");
/// Accounts that the node key opens on the hosts: the jump host's own user and the usual ones of images.
pub const HOST_USERS: [&str; 3] = ["ubuntu", "core", "slipway"];
/// The port of a tenant's API server on its hosts.
pub const TENANT_API_PORT: u16 = 6443;
/// The port on which worker hosts answer HTTP: inside the example's `nodePortRange`.
pub const WORKER_PORT: u16 = 30080;

/// What a sample host is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// Runs the tenant's API server.
    ControlPlane,
    /// Answers HTTP on [`WORKER_PORT`].
    Worker,
}

/// One sample bare-metal host. `dev/sample/hosts.yaml` says the same; a test compares them.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Name of the BareMetalHost.
    pub name: &'static str,
    /// What it is for.
    pub flavor: Flavor,
    /// Its rack, as in the label.
    pub rack: &'static str,
    /// Last octet of its address and of its MAC.
    pub octet: u8,
}

impl Host {
    /// The address in its network data.
    pub const fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(172, 22, 0, self.octet)
    }

    /// The MAC of its first interface.
    pub fn mac(&self) -> String {
        format!("52:54:00:22:00:{:02x}", self.octet)
    }

    /// The UUID of its Redfish system.
    pub fn system(&self) -> String {
        format!("51190000-0000-4000-8000-{:012}", self.octet)
    }

    /// The host's end of its cable on the bridge.
    pub fn port(&self) -> String {
        format!("swhost{}", self.octet)
    }

    /// The file that holds its network namespace.
    pub fn netns(&self) -> PathBuf {
        Path::new(RUN).join("netns").join(self.name)
    }
}

const fn host(name: &'static str, flavor: Flavor, rack: &'static str, octet: u8) -> Host {
    Host { name, flavor, rack, octet }
}

/// The sample hosts: a control-plane host and a worker in each of three racks, and a spare of each in the third.
pub const HOSTS: [Host; 8] = [
    host("tenant-cp-0", Flavor::ControlPlane, "r1", 11),
    host("tenant-cp-1", Flavor::ControlPlane, "r2", 12),
    host("tenant-cp-2", Flavor::ControlPlane, "r3", 13),
    host("tenant-cp-3", Flavor::ControlPlane, "r3", 14),
    host("tenant-worker-0", Flavor::Worker, "r1", 21),
    host("tenant-worker-1", Flavor::Worker, "r2", 22),
    host("tenant-worker-2", Flavor::Worker, "r3", 23),
    host("tenant-worker-3", Flavor::Worker, "r3", 24),
];

/// A path under [`STATE`].
pub fn state(path: &str) -> PathBuf {
    Path::new(STATE).join(path)
}

/// A path under [`RUN`].
pub fn run(path: &str) -> PathBuf {
    Path::new(RUN).join(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_manifest_says_what_the_table_says() {
        let manifest = include_str!("../../dev/sample/hosts.yaml");
        let count = |text: &str| manifest.matches(text).count();
        assert_eq!(count("kind: BareMetalHost"), HOSTS.len());
        for host in HOSTS {
            let name = host.name;
            let (_, object) = manifest.split_once(&format!("\n  name: {name}\n")).expect("each host has an object");
            let (object, rest) = object.split_once("---").expect("its Secrets follow");
            let flavor = match host.flavor {
                Flavor::ControlPlane => "control-plane",
                Flavor::Worker => "worker",
            };
            for line in [
                format!("vino.airshipit.org/flavor: {flavor}\n"),
                format!("vino.airshipit.org/rack: {}\n", host.rack),
                format!("vino.airshipit.org/host: {name}\n"),
                format!("bootMACAddress: {}\n", host.mac()),
                format!("redfish+https://{NODE_IP}:{BMC_PORT}/redfish/v1/Systems/{}\n", host.system()),
            ] {
                assert!(object.contains(&line), "{name}: {line}");
            }
            assert_eq!(count(&format!("ip_address: {}\n", host.address())), 1, "{name}");
            let (_, secret) = rest.split_once("stringData:").expect("the BMC's Secret has data");
            let (user, password) = BMC_LOGIN;
            assert!(secret.starts_with(&format!("\n  username: {user}\n  password: {password}\n")), "{name}");
        }
    }

    #[test]
    fn names_of_interfaces_fit_the_kernel() {
        let ports = HOSTS.map(|host| host.port());
        for name in ports.iter().map(String::as_str).chain([HOSTS_BRIDGE, POD_BRIDGE]) {
            assert!(name.len() <= 15, "{name}");
        }
    }
}
