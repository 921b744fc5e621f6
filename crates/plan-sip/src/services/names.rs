//! What the services' objects are called, and which Secrets and ConfigMaps a spec refers to.

use std::collections::{BTreeMap, BTreeSet};

use api::sipcluster::{Auth, Common, SIPClusterSpec, Services};

use super::Kind;

/// Instance name of a control-plane load balancer (the original's; `entry` is ours).
pub fn load_balancer_control_plane(sip: &str, entry: Option<&str>) -> String {
    instance("loadbalancer-controlplane", sip, entry)
}

/// Instance name of a worker load balancer.
pub fn load_balancer_worker(sip: &str, entry: Option<&str>) -> String {
    instance("loadbalancer-worker", sip, entry)
}

/// Instance name of a jump host.
pub fn jump_host(sip: &str, entry: Option<&str>) -> String {
    instance("jumphost", sip, entry)
}

/// Instance name of an OIDC provider.
pub fn auth(sip: &str, entry: Option<&str>) -> String {
    instance("auth", sip, entry)
}

/// The RoleBinding of the one OIDC provider of a namespace that keeps its keys as Kubernetes objects: as there is one name,
/// there is one provider.
pub const DEX_BINDING: &str = "slipway-dex";
/// The ClusterRole it binds to, installed with Slipway: Dex's own objects and nothing else.
pub const DEX_ROLE: &str = "slipway-dex";

/// Name of the container port where the sidecar of a load balancer reports: 9404, or another where the tenant's own
/// ports cover that.
pub const REPORT: &str = "report";

/// Whether an instance name is that of a load balancer, whoever's.
pub fn is_load_balancer(instance: &str) -> bool {
    instance.starts_with("loadbalancer-controlplane-") || instance.starts_with("loadbalancer-worker-")
}

/// Whether an instance serves as long as one of its pods does: load balancers and OIDC providers.
pub fn is_served_by_any_pod(instance: &str) -> bool {
    is_load_balancer(instance) || instance.starts_with("auth-")
}

fn instance(service: &str, sip: &str, entry: Option<&str>) -> String {
    match entry {
        Some(entry) => format!("{service}-{sip}-{entry}"),
        None => format!("{service}-{sip}"),
    }
}

/// How people find an entry: `spec.services.loadBalancerWorker[0]`.
pub(crate) fn entry(list: &str, index: usize) -> String {
    format!("spec.services.{list}[{index}]")
}

/// How people find each entry, by the name of its instance.
pub(crate) fn entries(sip: &str, spec: &SIPClusterSpec) -> BTreeMap<String, String> {
    let Services {
        load_balancer_control_plane: control_plane,
        load_balancer_worker: worker,
        jump_host: jump,
        auth: login,
    } = &spec.services;
    let name = |make: fn(&str, Option<&str>) -> String, list, index, common: &Common| {
        (make(sip, common.name.as_deref()), entry(list, index))
    };
    let balancers = control_plane
        .iter()
        .enumerate()
        .map(|(index, it)| name(load_balancer_control_plane, "loadBalancerControlPlane", index, &it.common))
        .chain(
            worker
                .iter()
                .enumerate()
                .map(|(index, it)| name(load_balancer_worker, "loadBalancerWorker", index, &it.common)),
        );
    let others = jump
        .iter()
        .enumerate()
        .map(|(index, it)| name(jump_host, "jumpHost", index, &it.common))
        .chain(login.iter().enumerate().map(|(index, it)| name(auth, "auth", index, &it.common)));
    balancers.chain(others).collect()
}

/// Objects that the original operator may have made for this spec. It labelled none of them as its own, so they are
/// found by name.
pub fn taken_over(sip: &str, spec: &SIPClusterSpec) -> BTreeSet<(Kind, String)> {
    let Services { load_balancer_control_plane: control_plane, load_balancer_worker: worker, jump_host: jump, auth: _ } =
        &spec.services;
    let balancers = control_plane
        .iter()
        .map(|entry| load_balancer_control_plane(sip, entry.common.name.as_deref()))
        .chain(worker.iter().map(|entry| load_balancer_worker(sip, entry.common.name.as_deref())))
        .flat_map(|name| [Kind::Secret, Kind::Deployment, Kind::Service].map(|kind| (kind, name.clone())));
    let jump_hosts = jump.iter().map(|entry| jump_host(sip, entry.common.name.as_deref())).flat_map(|name| {
        [Kind::Service, Kind::Secret, Kind::ConfigMap, Kind::Deployment].map(|kind| (kind, name.clone()))
    });
    balancers.chain(jump_hosts).collect()
}

/// Names of Secrets and ConfigMaps, in the SIPCluster's namespace, that a spec refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Referrals {
    /// Secrets.
    pub secrets: BTreeSet<String>,
    /// ConfigMaps.
    pub config_maps: BTreeSet<String>,
}

/// Key of the control-plane load balancers' template, in ConfigMap [`CONTROL_PLANE_TEMPLATES`].
pub const CONTROL_PLANE_TEMPLATE: &str = "loadBalancerControlPlane.cfg";
/// Key of the worker load balancers' template, in ConfigMap [`WORKER_TEMPLATES`].
pub const WORKER_TEMPLATE: &str = "loadBalancerWorker.cfg";
/// ConfigMaps that hold [`CONTROL_PLANE_TEMPLATE`], the first that is there counts: in the namespace of the SIPCluster
/// only the first name is looked for, in that of the installation both (the original's installation prefixed it).
pub const CONTROL_PLANE_TEMPLATES: [&str; 2] = ["loadbalancercontrolplane", "sipcluster-loadbalancercontrolplane"];
/// The same for [`WORKER_TEMPLATE`].
pub const WORKER_TEMPLATES: [&str; 2] = ["loadbalancerworker", "sipcluster-loadbalancerworker"];

/// Secrets with the users and clients of an OIDC provider.
pub(crate) fn users(entry: &Auth) -> impl Iterator<Item = &String> {
    let connectors = entry.connectors.iter().map(|connector| &connector.config_secret.name);
    let clients = entry.clients.iter().filter_map(|client| Some(&client.secret.as_ref()?.name));
    connectors.chain(clients).chain(&entry.passwords_secret)
}

/// What `spec` refers to by name, templates included.
pub fn names_referred(spec: &SIPClusterSpec) -> Referrals {
    let Services { load_balancer_control_plane: control_plane, load_balancer_worker: worker, jump_host, auth } =
        &spec.services;
    let keys = jump_host.iter().map(|entry| entry.node_ssh_private_keys.clone());
    let providers = auth.iter().flat_map(|entry| users(entry).chain(&entry.ca_secret).cloned());
    let tenant_ca = spec.tenant_ca.iter().map(|ca| ca.name.clone());
    let templates = [
        (!control_plane.is_empty()).then_some(CONTROL_PLANE_TEMPLATES[0]),
        (!worker.is_empty()).then_some(WORKER_TEMPLATES[0]),
    ];
    Referrals {
        secrets: keys.chain(providers).chain(tenant_ca).filter(|name| !name.is_empty()).collect(),
        config_maps: templates.into_iter().flatten().map(str::to_owned).collect(),
    }
}
