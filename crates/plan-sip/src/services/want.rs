//! What one SIPCluster asks of its services, and what the installation settles for all of them.

use std::collections::BTreeMap;

use api::sipcluster::SIPClusterSpec;
use base::Key;

/// What the installation settles for all tenants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// Namespace of the manager; operator-wide template ConfigMaps lie there.
    pub namespace: String,
    /// HAProxy, where an entry names none.
    pub haproxy_image: String,
    /// Our own image: the sidecar of the load balancers.
    pub slipway_image: String,
    /// The jump host, where an entry names none.
    pub jump_host_image: String,
    /// Dex, where an entry names none; empty: every auth entry has to name one.
    pub dex_image: String,
    /// Proxy environment of jump hosts with `bmc.proxy: true`: HTTP_PROXY, HTTPS_PROXY, NO_PROXY as set for the manager.
    pub proxy: BTreeMap<String, String>,
}

/// One host as the services see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// The BareMetalHost.
    pub host: Key,
    /// Its role.
    pub role: String,
    /// Its addresses by network id.
    pub addresses: BTreeMap<String, String>,
    /// Its `spec.bmc.address`; empty: none.
    pub bmc_address: String,
    /// Whether the certificate of its BMC is not verified.
    pub bmc_insecure: bool,
    /// Whether it is being released: no backend any more, its sessions end, and everything else of it goes.
    pub leaving: bool,
}

/// What one SIPCluster asks of its services, with the hosts it has.
#[derive(Clone, Debug)]
pub struct Want<'a> {
    /// The SIPCluster.
    pub owner: Key,
    /// Its uid.
    pub owner_uid: String,
    /// Its spec.
    pub spec: &'a SIPClusterSpec,
    /// The hosts of its record.
    pub backends: Vec<Backend>,
    /// What the installation settles.
    pub installation: &'a Installation,
    /// Whether everything is to go: the SIPCluster is being deleted and has no host any more.
    pub gone: bool,
}
