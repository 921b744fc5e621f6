//! Warnings about the users' HAProxy templates: they are parsed, and rendered for three sample hosts.

use std::collections::BTreeMap;

use api::{
    keys,
    sipcluster::{LoadBalancerControlPlane, LoadBalancerWorker, NodePortRange, SIPClusterSpec},
};
use base::Key;
use k8s_openapi::api::core::v1::ConfigMap;
use plan_sip::services::{self, Backend, CustomTemplate, Seen, Want, names};

use super::{clusters::installation, warning};
use crate::input::{Bad, Found, Objects};

/// The network of the sample hosts.
const NETWORK: &str = "sample";

/// Warnings about all templates of the input.
pub(super) fn warnings(objects: &Objects) -> Vec<Bad> {
    objects.config_maps.iter().flat_map(about).collect()
}

fn about(found: &Found<ConfigMap>) -> Vec<Bad> {
    let name = found.key.name.as_str();
    let (key, role) = if names::CONTROL_PLANE_TEMPLATES.contains(&name) {
        (names::CONTROL_PLANE_TEMPLATE, keys::CONTROL_PLANE)
    } else if names::WORKER_TEMPLATES.contains(&name) {
        (names::WORKER_TEMPLATE, keys::WORKER)
    } else {
        return Vec::new();
    };
    let Some(text) = found.object.data.as_ref().and_then(|data| data.get(key)) else {
        let message = format!("has no key {key}: the built-in template is used");
        return vec![warning("ConfigMap", found, "data", message)];
    };
    let template = CustomTemplate { config_map: found.key.clone(), text: text.as_str().into() };
    let installation = installation();
    let spec = sample(role);
    let want = Want {
        owner: Key::new(&found.key.namespace, "sample"),
        owner_uid: String::new(),
        spec: &spec,
        backends: (1..=3).map(|number| backend(number, role)).collect(),
        installation: &installation,
        gone: false,
    };
    let seen = Seen { templates: BTreeMap::from([(key.to_owned(), template)]), ..Seen::default() };
    let problems = services::plan(&want, &seen).problems;
    let refused = problems.iter().filter(|problem| !problem.waiting);
    refused.map(|problem| warning("ConfigMap", found, &format!("data[{key}]"), &problem.message)).collect()
}

/// A SIPCluster with one load balancer, in front of this role.
fn sample(role: &str) -> SIPClusterSpec {
    let mut spec = SIPClusterSpec::default();
    if role == keys::WORKER {
        let mut entry = LoadBalancerWorker {
            node_port_range: NodePortRange { start: 30000, end: 30001 },
            ..LoadBalancerWorker::default()
        };
        entry.common.node_interface_id = Some(NETWORK.to_owned());
        spec.services.load_balancer_worker.push(entry);
    } else {
        let mut entry = LoadBalancerControlPlane { node_port: 30000, ..LoadBalancerControlPlane::default() };
        entry.common.node_interface_id = Some(NETWORK.to_owned());
        spec.services.load_balancer_control_plane.push(entry);
    }
    spec
}

fn backend(number: u8, role: &str) -> Backend {
    Backend {
        host: Key::new("sample", format!("host-{number}")),
        role: role.to_owned(),
        // RFC 5737, documentation.
        addresses: BTreeMap::from([(NETWORK.to_owned(), format!("192.0.2.{number}"))]),
        bmc_address: String::new(),
        bmc_insecure: false,
        leaving: false,
    }
}
