//! SIPClusters, built.

use std::collections::BTreeMap;

use ::api::sipcluster::{
    JumpHost, LoadBalancerControlPlane, LoadBalancerWorker, NodeCount, NodePortRange, NodeSet, SIPCluster,
    SIPClusterSpec, Selector, Spread,
};
use serde_json::Value;

/// A SIPCluster to be shaped. By default its roles take hosts of flavor `control-plane` and `worker` (label
/// `example.org/bmh-label`) without placement rules, and it has no services.
#[derive(Clone, Debug)]
pub struct Sip {
    cluster: SIPCluster,
}

/// A SIPCluster `namespace/name`.
pub fn sip(key: &str) -> Sip {
    let (namespace, name) = key.split_once('/').expect("namespace/name");
    let mut cluster = SIPCluster::new(name, SIPClusterSpec::default());
    cluster.metadata.namespace = Some(namespace.into());
    Sip { cluster }
}

impl Sip {
    /// So many control-plane hosts.
    #[must_use]
    pub fn control_plane(self, active: i32) -> Self {
        self.role("ControlPlane", "example.org/bmh-label=control-plane", active, 0)
    }

    /// So many workers.
    #[must_use]
    pub fn workers(self, active: i32) -> Self {
        self.role("Worker", "example.org/bmh-label=worker", active, 0)
    }

    /// Hosts of a role: `label=value` that selects them, how many active and standby.
    #[must_use]
    pub fn role(mut self, role: &str, label: &str, active: i32, standby: i32) -> Self {
        let (key, value) = label.split_once('=').expect("label=value");
        let set = self.cluster.spec.nodes.entry(role.into()).or_default();
        set.label_selector = Some(Selector {
            match_labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
            ..Selector::default()
        });
        set.count = Some(NodeCount { active: Some(active), standby: Some(standby) });
        self
    }

    /// Every role so far: at most one host per value of this label.
    #[must_use]
    pub fn topology(self, key: &str) -> Self {
        self.each_role(|set| set.topology_key = Some(key.into()))
    }

    /// Every role so far: at most so many hosts per value of this label.
    #[must_use]
    pub fn spread(self, key: &str, most: i32) -> Self {
        self.each_role(|set| set.spread.push(Spread { topology_key: key.into(), max_per_domain: most }))
    }

    /// Every role so far: so many standby hosts.
    #[must_use]
    pub fn standby(self, hosts: i32) -> Self {
        self.each_role(|set| set.count.get_or_insert_default().standby = Some(hosts))
    }

    /// The services of the original's tests on interface `oam-ipv4`: a control-plane load balancer on a port of the
    /// server's choice, a worker load balancer on 30002-30011, a jump host on 30000 with key Secret
    /// `<name>-ssh-private-key`.
    #[must_use]
    pub fn services(mut self) -> Self {
        let name = self.cluster.metadata.name.clone().unwrap_or_default();
        let interface = Some("oam-ipv4".to_owned());
        let mut control_plane = LoadBalancerControlPlane::default();
        control_plane.common.node_interface_id.clone_from(&interface);
        let mut worker =
            LoadBalancerWorker { node_port_range: NodePortRange { start: 30_002, end: 30_011 }, ..Default::default() };
        worker.common.node_interface_id.clone_from(&interface);
        let mut jump_host = JumpHost {
            node_port: 30_000,
            node_ssh_private_keys: format!("{name}-ssh-private-key"),
            ..JumpHost::default()
        };
        jump_host.common.node_interface_id = interface;
        let services = &mut self.cluster.spec.services;
        services.load_balancer_control_plane.push(control_plane);
        services.load_balancer_worker.push(worker);
        services.jump_host.push(jump_host);
        self
    }

    /// Anything else.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut SIPClusterSpec)) -> Self {
        change(&mut self.cluster.spec);
        self
    }

    /// The SIPCluster.
    pub fn build(self) -> SIPCluster {
        self.cluster
    }

    /// The SIPCluster as JSON, for [`crate::Api::seed`].
    pub fn object(self) -> Value {
        serde_json::to_value(self.cluster).expect("it is JSON")
    }

    fn each_role(mut self, change: impl Fn(&mut NodeSet)) -> Self {
        self.cluster.spec.nodes.values_mut().for_each(change);
        self
    }
}
