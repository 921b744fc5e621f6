//! Warnings about SIPClusters: fields without effect, roles without services, selectors without hosts, bad keys.

use std::ops::RangeInclusive;

use api::{
    SIPCluster, keys,
    sipcluster::{LoadBalancerWorker, ServiceType, Services},
};
use plan_sip::{
    services::{self, Installation, Seen},
    want::{Role, Want},
};

use super::warning;
use crate::{
    input::{Bad, Found, Objects},
    words,
};

/// Warnings about all SIPClusters of the input.
pub(super) fn warnings(objects: &Objects) -> Vec<Bad> {
    objects.clusters.iter().flat_map(|found| about(found, objects)).collect()
}

fn about(found: &Found<SIPCluster>, objects: &Objects) -> Vec<Bad> {
    let mut said: Vec<(String, String)> = Vec::new();
    let want = Want::from(&found.object);
    said.extend(want.invalid.clone().map(|why| ("spec".to_owned(), why)));
    legacy(&found.object, &mut said);
    entries(&found.object, &mut said);
    roles(&found.object, &mut said);
    for (name, role) in &want.roles {
        hosts(name, role, objects, &mut said);
    }
    said.extend(problems(found));
    said.into_iter().map(|(field, message)| warning("SIPCluster", found, &field, message)).collect()
}

/// Fields that are accepted for old manifests.
fn legacy(sip: &SIPCluster, said: &mut Vec<(String, String)>) {
    for (index, entry) in sip.spec.services.load_balancer_worker.iter().enumerate() {
        if entry.node_port.is_some() {
            let field = format!("spec.services.loadBalancerWorker[{index}].nodePort");
            said.push((field, "has no effect; it is accepted for manifests of earlier versions".to_owned()));
        }
    }
}

/// Node ports that Kubernetes hands out unless its API server is told otherwise.
const NODE_PORTS: RangeInclusive<i32> = 30_000..=32_767;
/// The jump host's image of the original operator, which its samples name.
const OLD_JUMP_HOST: &str = "quay.io/airshipit/jump-host";

/// Fields of entries whose values are accepted and hardly work.
fn entries(sip: &SIPCluster, said: &mut Vec<(String, String)>) {
    let Services { load_balancer_control_plane: control_plane, load_balancer_worker: worker, jump_host, auth } =
        &sip.spec.services;
    let one = |port: i32| (port != 0).then_some(port..=port);
    let worker_ports = |e: &LoadBalancerWorker| Some(e.node_port_range.start..=e.node_port_range.end);
    let all = (control_plane.iter().map(|e| (&e.common, one(e.node_port))).enumerate())
        .map(|(index, entry)| (format!("loadBalancerControlPlane[{index}].nodePort"), entry))
        .chain(
            (worker.iter().map(|e| (&e.common, worker_ports(e))).enumerate())
                .map(|(index, entry)| (format!("loadBalancerWorker[{index}].nodePortRange"), entry)),
        )
        .chain(
            (jump_host.iter().map(|e| (&e.common, one(e.node_port))).enumerate())
                .map(|(index, entry)| (format!("jumpHost[{index}].nodePort"), entry)),
        )
        .chain(
            (auth.iter().map(|e| (&e.common, one(e.node_port))).enumerate())
                .map(|(index, entry)| (format!("auth[{index}].nodePort"), entry)),
        );
    for (field, (common, ports)) in all {
        let of_nodes = common.service_type.unwrap_or_default() == ServiceType::NodePort;
        let Some(ports) = ports.filter(|_| of_nodes) else { continue };
        if !NODE_PORTS.contains(ports.start()) || !NODE_PORTS.contains(ports.end()) {
            let message = "is outside 30000-32767, the node ports of an API server that is not told otherwise";
            said.push((format!("spec.services.{field}"), message.to_owned()));
        }
    }
    for (index, entry) in jump_host.iter().enumerate() {
        let image = entry.common.image.split([':', '@']).next().unwrap_or_default();
        if image == OLD_JUMP_HOST {
            let message = format!(
                "{image} is the original operator's image; the pod starts an sshd as uid 1000 on port 2222: leave the field \
                 out for the installation's own image"
            );
            said.push((format!("spec.services.jumpHost[{index}].image"), message));
        }
    }
    for (index, entry) in auth.iter().enumerate() {
        if let Some(replicas) = entry.common.replicas.filter(|replicas| *replicas > 1) {
            let message = format!(
                "{replicas} pods need a Dex that keeps its keys as Kubernetes objects; on a volume it is one pod"
            );
            said.push((format!("spec.services.auth[{index}].replicas"), message));
        }
    }
}

/// Roles that no service knows, and services that no role serves.
fn roles(sip: &SIPCluster, said: &mut Vec<(String, String)>) {
    let nodes = &sip.spec.nodes;
    let Services { load_balancer_control_plane: control_plane, load_balancer_worker: worker, jump_host: _, auth: _ } =
        &sip.spec.services;
    for role in nodes.keys().filter(|role| !matches!(role.as_str(), keys::CONTROL_PLANE | keys::WORKER)) {
        let known = [keys::CONTROL_PLANE, keys::WORKER].into_iter().find(|known| known.eq_ignore_ascii_case(role));
        let hint = known.map(|known| format!("; did you mean {known}?")).unwrap_or_default();
        said.push((
            format!("spec.nodes[{role}]"),
            format!("is a role that no service uses: its hosts are claimed and labelled, nothing more{hint}"),
        ));
    }
    for (list, entries, role) in [
        ("loadBalancerControlPlane", control_plane.len(), keys::CONTROL_PLANE),
        ("loadBalancerWorker", worker.len(), keys::WORKER),
    ] {
        if entries > 0 && !nodes.contains_key(role) {
            said.push((format!("spec.services.{list}"), format!("has no backends: spec.nodes has no role {role}")));
        }
    }
}

/// Selectors and topology keys, against the hosts of the input.
fn hosts(name: &str, role: &Role, objects: &Objects, said: &mut Vec<(String, String)>) {
    if objects.hosts.is_empty() || role.asked() == 0 {
        return;
    }
    let none = std::collections::BTreeMap::new();
    let labels = |host: &'_ Found<api_foreign::BareMetalHost>| {
        host.object.metadata.labels.clone().unwrap_or_else(|| none.clone())
    };
    let matching: Vec<_> = objects.hosts.iter().filter(|host| role.selector.matches(&labels(host))).collect();
    if matching.is_empty() {
        let all = words::count(objects.hosts.len(), "host");
        said.push((
            format!("spec.nodes[{name}].labelSelector"),
            format!("{} matches none of the {all} given", role.selector),
        ));
    }
    for level in &role.levels {
        let lacking: Vec<String> = matching
            .iter()
            .filter(|host| !labels(host).contains_key(&level.key))
            .map(|host| host.key.to_string())
            .collect();
        if !lacking.is_empty() {
            let field = format!("spec.nodes[{name}]");
            let (key, all, named) = (&level.key, words::count(matching.len(), "matching host"), words::few(&lacking));
            let message =
                format!("topology label {key} is missing on {} of {all}, never to be placed: {named}", lacking.len());
            said.push((field, message));
        }
    }
}

/// What the services would have to say, whatever the cluster is like: ssh keys that cannot be read, and the like.
fn problems(found: &Found<SIPCluster>) -> Vec<(String, String)> {
    let installation = installation();
    let want = services::Want {
        owner: found.key.clone(),
        owner_uid: String::new(),
        spec: &found.object.spec,
        backends: Vec::new(),
        installation: &installation,
        gone: false,
    };
    let plan = services::plan(&want, &Seen::default());
    // Each begins with its place.
    plan.problems.iter().filter(|problem| !problem.waiting).map(|p| (String::new(), p.to_string())).collect()
}

/// An installation that has a default for everything.
pub(super) fn installation() -> Installation {
    let image = || "image".to_owned();
    Installation {
        haproxy_image: image(),
        slipway_image: image(),
        jump_host_image: image(),
        dex_image: image(),
        ..Installation::default()
    }
}
