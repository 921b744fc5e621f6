//! kube-apiserver: of the base cluster, of a tenant, or alone for tests.

use std::path::{Path, PathBuf};

use crate::{cluster::pki::Pki, process::Service};

/// One API server.
pub struct ApiServer<'a> {
    /// The service's name.
    pub name: String,
    /// Its certificates, address and port.
    pub pki: &'a Pki,
    /// Its etcd members, as `https://address:port,...`.
    pub etcd: String,
    /// Its network namespace, if not ours.
    pub netns: Option<PathBuf>,
    /// More flags.
    pub extra: Vec<String>,
}

impl ApiServer<'_> {
    /// The service that runs it.
    pub fn service(&self, program: &Path, logs: &Path) -> Service {
        let Self { name, pki, etcd, netns, extra } = self;
        let mut service = Service::new(name, program, logs)
            .flag("bind-address", &pki.address)
            .flag("advertise-address", &pki.address)
            .flag("secure-port", pki.port)
            .flag("service-cluster-ip-range", pki.services)
            .flag("authorization-mode", "Node,RBAC")
            .flag("enable-admission-plugins", "NodeRestriction")
            .arg("--allow-privileged")
            .flag("etcd-servers", etcd)
            .file("etcd-cafile", pki.cert("etcd/ca.crt"))
            .file("etcd-certfile", pki.cert("apiserver-etcd-client.crt"))
            .file("etcd-keyfile", pki.cert("apiserver-etcd-client.key"))
            .file("client-ca-file", pki.cert("ca.crt"))
            .file("tls-cert-file", pki.cert("apiserver.crt"))
            .file("tls-private-key-file", pki.cert("apiserver.key"))
            .file("kubelet-client-certificate", pki.cert("apiserver-kubelet-client.crt"))
            .file("kubelet-client-key", pki.cert("apiserver-kubelet-client.key"))
            // kubelets are dialled by address: no name of a node resolves here.
            .flag("kubelet-preferred-address-types", "InternalIP")
            .flag("service-account-issuer", "https://kubernetes.default.svc.cluster.local")
            .file("service-account-key-file", pki.cert("sa.pub"))
            .file("service-account-signing-key-file", pki.cert("sa.key"))
            .file("requestheader-client-ca-file", pki.cert("front-proxy-ca.crt"))
            .flag("requestheader-allowed-names", "front-proxy-client")
            .flag("requestheader-extra-headers-prefix", "X-Remote-Extra-")
            .flag("requestheader-group-headers", "X-Remote-Group")
            .flag("requestheader-username-headers", "X-Remote-User")
            .file("proxy-client-cert-file", pki.cert("front-proxy-client.crt"))
            .file("proxy-client-key-file", pki.cert("front-proxy-client.key"))
            .flag("v", 1);
        service.args.extend(extra.iter().cloned());
        service.netns.clone_from(netns);
        service
    }
}
