//! etcd: one member for the base cluster, several for a tenant.

use std::path::{Path, PathBuf};

use crate::{cluster::pki::Pki, process::Service};

/// Where a member tells over plain HTTP how it is.
#[derive(Clone, Copy)]
pub enum Health {
    /// On 127.0.0.1.
    Loopback,
    /// At the member's own address: for a member in a network namespace.
    There,
}

/// One member.
pub struct Member<'a> {
    /// The service's name.
    pub service: String,
    /// Its name in its cluster.
    pub name: String,
    /// Its certificates.
    pub pki: &'a Pki,
    /// The address it listens on.
    pub address: String,
    /// For clients, for peers, for health.
    pub ports: (u16, u16, u16),
    /// Where its health is asked.
    pub health: Health,
    /// All members, as `name=https://address:port,...`.
    pub cluster: String,
    /// Its network namespace, if not ours.
    pub netns: Option<PathBuf>,
}

impl Member<'_> {
    /// The service that runs this member.
    pub fn service(&self, program: &Path, logs: &Path) -> Service {
        let Self { service, name, pki, address, ports: (client, peer, port), health, cluster, netns } = self;
        let health = match health {
            Health::Loopback => "127.0.0.1",
            Health::There => address,
        };
        let mut service = Service::new(service, program, logs)
            .flag("name", name)
            .flag("data-dir", pki.dir.join("etcd").display())
            .flag("listen-client-urls", format!("https://{address}:{client}"))
            .flag("advertise-client-urls", format!("https://{address}:{client}"))
            .flag("listen-peer-urls", format!("https://{address}:{peer}"))
            .flag("initial-advertise-peer-urls", format!("https://{address}:{peer}"))
            .flag("listen-metrics-urls", format!("http://{health}:{port}"))
            .flag("initial-cluster", cluster)
            .flag("initial-cluster-state", "new")
            .arg("--client-cert-auth")
            .file("cert-file", pki.cert("etcd/server.crt"))
            .file("key-file", pki.cert("etcd/server.key"))
            .file("trusted-ca-file", pki.cert("etcd/ca.crt"))
            .arg("--peer-client-cert-auth")
            .file("peer-cert-file", pki.cert("etcd/peer.crt"))
            .file("peer-key-file", pki.cert("etcd/peer.key"))
            .flag("peer-trusted-ca-file", pki.cert("etcd/ca.crt").display())
            .flag("logger", "zap")
            .flag("log-level", "warn");
        service.netns.clone_from(netns);
        service
    }
}
