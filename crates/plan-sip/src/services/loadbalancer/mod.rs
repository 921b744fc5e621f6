//! The load balancers of a tenant: in front of its API servers, and in front of its node ports.
//!
//! Each is a Secret with the configuration, a Deployment of HAProxy with our sidecar, a PodDisruptionBudget and a
//! Service. The configuration changes without a new pod: the sidecar loads what the Secret holds.

mod config;
mod departure;
mod manifest;
mod servers;

use std::collections::BTreeSet;

use api::{
    keys::{CONTROL_PLANE, WORKER},
    sipcluster::{Common, Endpoint, LoadBalancerControlPlane, LoadBalancerWorker},
};
use base::{Key, PortRange};
use serde_json::json;

use self::{
    config::Source,
    departure::{Balancer, Departures},
    manifest::Pods,
    servers::Servers,
};
use super::{
    Kind, Part, Pod, Problem, Seen, Want,
    endpoints::{Exposed, Port, Reached},
    names::{self, CONTROL_PLANE_TEMPLATE, WORKER_TEMPLATE},
    object::Instance,
    part::sooner,
};

/// Port of the tenant's API.
const API_PORT: i32 = 6443;
/// Pods of a load balancer, where its entry does not say.
const REPLICAS: i32 = 2;

/// What distinguishes the two lists of load balancers.
struct Role {
    /// Role of the hosts behind.
    hosts: &'static str,
    /// Built-in template.
    template: &'static str,
    /// Key of a custom one in its ConfigMap.
    template_key: &'static str,
}

const CONTROL_PLANE_ROLE: Role = Role {
    hosts: CONTROL_PLANE,
    template: include_str!("controlplane.cfg.tmpl"),
    template_key: CONTROL_PLANE_TEMPLATE,
};
const WORKER_ROLE: Role =
    Role { hosts: WORKER, template: include_str!("worker.cfg.tmpl"), template_key: WORKER_TEMPLATE };

/// One load balancer as asked for.
struct Entry<'a> {
    role: &'a Role,
    /// How people find it.
    label: String,
    name: String,
    common: &'a Common,
    /// Its ports, or why there are none.
    ports: Result<Vec<Port>, String>,
    published: &'a [Endpoint],
}

/// What the load balancers of both lists need, and the leaving hosts that no load balancer has any more.
pub(crate) fn desired(want: &Want<'_>, seen: &Seen) -> (Part, Part, BTreeSet<Key>) {
    let sip = &want.owner.name;
    let services = &want.spec.services;
    let published = seen.published.as_ref();
    let control_plane = services.load_balancer_control_plane.iter().enumerate().map(|(index, entry)| {
        let LoadBalancerControlPlane { common, node_port } = entry;
        Entry {
            role: &CONTROL_PLANE_ROLE,
            label: names::entry("loadBalancerControlPlane", index),
            name: names::load_balancer_control_plane(sip, common.name.as_deref()),
            common,
            ports: Ok(vec![Port { name: "http".into(), port: API_PORT, target: None, node_port: *node_port }]),
            published: published.map_or(&[], |published| &published.control_plane),
        }
    });
    let worker = services.load_balancer_worker.iter().enumerate().map(|(index, entry)| {
        let LoadBalancerWorker { common, node_port_range: range, node_port: _ } = entry;
        let ports = PortRange::new(range.start.into(), range.end.into()).map(|range| {
            let port = |port: u16| {
                let number = i32::from(port);
                Port { name: format!("port-{port}"), port: number, target: None, node_port: number }
            };
            range.ports().map(port).collect()
        });
        Entry {
            role: &WORKER_ROLE,
            label: names::entry("loadBalancerWorker", index),
            name: names::load_balancer_worker(sip, common.name.as_deref()),
            common,
            ports: ports.map_err(|error| format!("nodePortRange: {error}")),
            published: published.map_or(&[], |published| &published.worker),
        }
    });
    let (control_plane, worker): (Vec<_>, Vec<_>) = (control_plane.collect(), worker.collect());
    let mut held = BTreeSet::new();
    let control_plane_part = all(want, seen, &control_plane, &mut held);
    let mut worker_part = all(want, seen, &worker, &mut held);
    let known = control_plane.iter().chain(&worker).map(|entry| entry.name.as_str()).collect();
    worker_part.add(going(want, seen, &known, &mut held));
    let leaving = want.backends.iter().filter(|backend| backend.leaving).map(|backend| backend.host.clone());
    let confirmed = leaving.filter(|host| !held.contains(host)).collect();
    (control_plane_part, worker_part, confirmed)
}

fn all(want: &Want<'_>, seen: &Seen, entries: &[Entry<'_>], held: &mut BTreeSet<Key>) -> Part {
    let mut all = Part::default();
    for entry in entries {
        all.add(entry.part(want, seen, held));
    }
    all
}

/// Load balancers that are no longer asked for, but whose pods are still there: they know nothing of departures.
fn going(want: &Want<'_>, seen: &Seen, known: &BTreeSet<&str>, held: &mut BTreeSet<Key>) -> Part {
    let mut part = Part::default();
    let gone: BTreeSet<&str> = seen
        .pods
        .iter()
        .map(|pod| pod.instance.as_str())
        .filter(|instance| names::is_load_balancer(instance) && !known.contains(instance))
        .collect();
    for instance in gone {
        let pods = pods_of(seen, instance);
        let role = if instance.starts_with("loadbalancer-worker-") { WORKER } else { CONTROL_PLANE };
        // Whichever network they served, it is not known any more: all hosts of the role count.
        let backends: Vec<_> = want.backends.iter().filter(|backend| backend.role == role && backend.leaving).collect();
        if backends.is_empty() {
            continue;
        }
        let mut waits = pods.iter().filter(|pod| departure::counts(pod, seen.now)).peekable();
        if waits.peek().is_some() {
            held.extend(backends.into_iter().map(|backend| backend.host.clone()));
            part.again_in = Some(departure::LOOK);
        }
    }
    part
}

fn pods_of<'a>(seen: &'a Seen, instance: &str) -> Vec<&'a Pod> {
    seen.pods.iter().filter(|pod| pod.instance == instance).collect()
}

impl Entry<'_> {
    /// What this load balancer needs. Hosts that it has not let go are added to `held`.
    fn part(&self, want: &Want<'_>, seen: &Seen, held: &mut BTreeSet<Key>) -> Part {
        let Self { role, label, name, common, ports, published } = self;
        let servers = Servers::of(&want.backends, role.hosts, common.node_interface_id.as_deref());
        let pods = pods_of(seen, name);
        let problem = |message: String| Problem { waiting: false, entry: label.clone(), message };
        let mut part = Part { warnings: servers.left_out.iter().cloned().map(problem).collect(), ..Part::default() };

        let instance = Instance { name: name.clone(), program: "haproxy", component: "loadbalancer" };
        let images = self.images(want);
        let blind = Self::blind(seen, name, &servers);
        let (config, problems) = match ports {
            Ok(ports) if blind.is_none() => {
                Source { role, entry: label, ports, servers: &servers, secret: name, pods: &pods }.config(seen)
            }
            Ok(_) | Err(_) => (None, Vec::new()),
        };
        part.problems.extend(problems);
        let balancer = Balancer { entry: label, pods: &pods, config: config.as_ref(), servers: &servers };
        let Departures { held: still, steps, problems, again_in } = balancer.departures(seen);
        held.extend(still);
        part.steps.extend(steps);
        part.problems.extend(problems);
        part.again_in = sooner(part.again_in, again_in);

        match &config {
            Some(config) => part.objects.push(instance.object(want, Kind::Secret, name, config.secret())),
            None => part.stays(Kind::Secret, name),
        }
        let (ports, haproxy_image) = match (ports, images) {
            (Ok(ports), Ok(image)) if blind.is_none() => (ports, image),
            (ports, image) => {
                let why = ports.as_ref().err().cloned().into_iter().chain(image.err()).chain(blind);
                part.problems.extend(why.map(problem));
                for kind in [Kind::Service, Kind::PodDisruptionBudget, Kind::Deployment] {
                    part.stays(kind, name);
                }
                // Nothing of it goes, so it is reached as it was.
                let exposed = |ports| Exposed { instance: &instance, entry: label, common, ports, published };
                let reached = ports.as_ref().ok().and_then(|ports| exposed(ports).reached(seen).endpoint);
                let before = || published.iter().find(|endpoint| endpoint.service == *name).cloned();
                part.endpoints.extend(reached.or_else(before));
                return part;
            }
        };
        let exposed = Exposed { instance: &instance, entry: label, common, ports, published };
        let deployment = Pods {
            instance: &instance,
            ports,
            haproxy_image,
            slipway_image: &want.installation.slipway_image,
            replicas: common.replicas.unwrap_or(REPLICAS),
            node_labels: json!(common.node_labels),
        };
        part.objects.push(exposed.service(want));
        part.objects.push(deployment.deployment(want));
        part.objects.extend(deployment.disruption_budget(want));
        let Reached { endpoint, problem, warning } = exposed.reached(seen);
        part.unfinished |= endpoint.is_none();
        part.endpoints.extend(endpoint);
        part.problems.extend(problem);
        part.warnings.extend(warning);
        part
    }

    /// Why a load balancer of the original operator is not taken over yet: a host behind it has no address that we know,
    /// and would get no traffic any more.
    fn blind(seen: &Seen, secret: &str, servers: &Servers) -> Option<String> {
        let owned = seen.objects.get(&(Kind::Secret, secret.to_owned()))?;
        let left_out = servers.left_out.first().filter(|_| owned.owner_uid.is_none())?;
        Some(format!(
            "what the original operator made stays until every host has an address: {left_out}; restore the Secret with \
             its network data, or write annotation {} onto the host",
            api::keys::ADDRESSES
        ))
    }

    /// HAProxy's image, once both images are known.
    fn images<'a>(&'a self, want: &'a Want<'_>) -> Result<&'a str, String> {
        if want.installation.slipway_image.is_empty() {
            return Err("the installation names no image of the sidecar (SLIPWAY_IMAGE of the manager)".to_owned());
        }
        [self.common.image.as_str(), &want.installation.haproxy_image]
            .into_iter()
            .find(|image| !image.is_empty())
            .ok_or_else(|| {
                "image is empty, and the installation names no default (SLIPWAY_HAPROXY_IMAGE of the manager)"
                    .to_owned()
            })
    }
}
