//! One tenant to test with, and what is there once a plan for it is carried out.

mod departures;
mod differences;
mod golden;
mod laws;
mod promotion;
mod reached;

use std::{collections::BTreeMap, sync::Arc};

use api::{
    keys::{APPLIED, CONTROL_PLANE, OWNER_NAME, OWNER_UID, WORKER},
    sipcluster::{LoadBalancerControlPlane, LoadBalancerWorker, NodePortRange, SIPClusterSpec},
};
use base::Key;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::{
    Backend, CustomTemplate, Facts, Installation, Kind, Object, Owned, Plan, Pod, Report, Seen, Step, Want, plan,
};

/// Name of the control-plane load balancer of [`Tenant::new`].
const CONTROL_PLANE_INSTANCE: &str = "loadbalancer-controlplane-blue";
/// Name of its worker load balancer.
const WORKER_INSTANCE: &str = "loadbalancer-worker-blue";
/// When the tests begin, in seconds since the epoch.
const NOW: i64 = 1_800_000_000;

/// A SIPCluster `tenant/blue` and its hosts.
#[derive(Clone, Debug)]
struct Tenant {
    spec: SIPClusterSpec,
    installation: Installation,
    backends: Vec<Backend>,
    uid: String,
    gone: bool,
}

impl Tenant {
    /// With one load balancer of each kind, and no hosts.
    fn new() -> Self {
        let mut spec = SIPClusterSpec::default();
        let mut control_plane = LoadBalancerControlPlane { node_port: 30_000, ..LoadBalancerControlPlane::default() };
        control_plane.common.node_interface_id = Some("oam".to_owned());
        let mut worker = LoadBalancerWorker {
            node_port_range: NodePortRange { start: 30_001, end: 30_003 },
            ..LoadBalancerWorker::default()
        };
        worker.common.node_interface_id = Some("oam".to_owned());
        spec.services.load_balancer_control_plane.push(control_plane);
        spec.services.load_balancer_worker.push(worker);
        let installation = Installation {
            namespace: "slipway-system".to_owned(),
            haproxy_image: "haproxy:3.2".to_owned(),
            slipway_image: "slipway:1".to_owned(),
            ..Installation::default()
        };
        Self { spec, installation, backends: Vec::new(), uid: "uid-blue".to_owned(), gone: false }
    }

    fn host(mut self, role: &str, name: &str, address: &str) -> Self {
        self.backends.push(Backend {
            host: Key::new("metal", name),
            role: role.to_owned(),
            addresses: BTreeMap::from([("oam".to_owned(), address.to_owned())]),
            bmc_address: String::new(),
            bmc_insecure: false,
            leaving: false,
        });
        self
    }

    /// Three hosts of role ControlPlane and two of role Worker.
    fn with_hosts() -> Self {
        Self::new()
            .host(CONTROL_PLANE, "node01", "192.0.2.1")
            .host(CONTROL_PLANE, "node02", "192.0.2.2")
            .host(CONTROL_PLANE, "node03", "192.0.2.3")
            .host(WORKER, "node04", "192.0.2.4")
            .host(WORKER, "node05", "192.0.2.5")
    }

    /// The host of this name is being released.
    fn leaving(mut self, name: &str) -> Self {
        let host = self.backends.iter_mut().find(|backend| backend.host.name == name);
        host.expect("the host exists").leaving = true;
        self
    }

    fn want(&self) -> Want<'_> {
        Want {
            owner: Key::new("tenant", "blue"),
            owner_uid: self.uid.clone(),
            spec: &self.spec,
            backends: self.backends.clone(),
            installation: &self.installation,
            gone: self.gone,
        }
    }

    fn plan(&self, seen: &Seen) -> Plan {
        plan(&self.want(), seen)
    }

    /// What is there once everything is as asked, and published.
    fn settled(&self) -> Seen {
        let mut seen = before();
        let first = self.plan(&seen);
        seen = after(seen, &first);
        seen.published = Some(self.plan(&seen).endpoints);
        seen
    }
}

fn before() -> Seen {
    Seen { node_ips: vec!["10.9.0.1".to_owned()], now: NOW, ..Seen::default() }
}

fn template(text: &str) -> CustomTemplate {
    CustomTemplate { config_map: Key::new("tenant", "loadbalancercontrolplane"), text: Arc::from(text) }
}

/// A pod of the control-plane load balancer, Ready for a long time, that reports nothing.
fn pod(name: &str) -> Pod {
    Pod {
        name: name.to_owned(),
        uid: format!("uid-{name}"),
        resource_version: "1".to_owned(),
        instance: CONTROL_PLANE_INSTANCE.to_owned(),
        deleting: false,
        ready: true,
        ready_since: NOW - 3600,
        wanted: None,
        report: None,
        trouble: String::new(),
    }
}

fn serving(name: &str, checksum: &str) -> Pod {
    Pod { report: Some(Report { serving: checksum.to_owned(), ..Report::default() }), ..pod(name) }
}

/// One value of a Secret.
fn value(seen: &Seen, secret: &str, key: &str) -> Option<String> {
    match &seen.objects.get(&(Kind::Secret, secret.to_owned()))?.facts {
        Facts::Secret { data } => data.get(key).map(|value| String::from_utf8_lossy(value).into_owned()),
        other => panic!("{secret} is a Secret, and not {other:?}"),
    }
}

/// The checksums in `meta.json`: accepted, candidate.
fn checksums(seen: &Seen, secret: &str) -> (String, Option<String>) {
    let meta: Value =
        serde_json::from_str(&value(seen, secret, "meta.json").expect("the Secret is there")).expect("JSON");
    (meta["accepted"].as_str().expect("a checksum").to_owned(), meta["candidate"].as_str().map(str::to_owned))
}

/// What `seen` becomes once `plan` is carried out, as the API server and the other controllers would have it.
fn after(mut seen: Seen, plan: &Plan) -> Seen {
    for step in &plan.steps {
        match step {
            Step::Create(object) | Step::MakeHostKeys { object } | Step::MakeCertificate { object, .. } => {
                let key = (object.kind, object.name.clone());
                assert!(!seen.objects.contains_key(&key), "{object:?} is created a second time");
                seen.objects.insert(key, live(object, None));
            }
            Step::Update { object, uid, resource_version, whole: _ } => {
                let key = (object.kind, object.name.clone());
                let before = seen.objects.remove(&key).expect("what is updated is there");
                assert_eq!((uid, resource_version), (&before.uid, &before.resource_version));
                seen.objects.insert(key, live(object, Some(&before)));
            }
            Step::Delete { kind, name, uid, resource_version } => {
                let gone = seen.objects.remove(&(*kind, name.clone())).expect("what is deleted is there");
                assert_eq!((uid, resource_version), (&gone.uid, &gone.resource_version));
            }
            Step::AnnotatePod { name, wanted, .. } => {
                let pod = seen.pods.iter_mut().find(|pod| pod.name == *name).expect("the pod is there");
                pod.wanted = Some(wanted.clone());
            }
            Step::DeletePod { name, .. } => seen.pods.retain(|pod| pod.name != *name),
        }
    }
    seen
}

/// An object as it is read back: with what the API server fills in, and what others add.
fn live(object: &Object, before: Option<&Owned>) -> Owned {
    let mut body = object.body.clone();
    body["metadata"]["uid"] = json!("filled in");
    body["metadata"]["annotations"]["example.org/note"] = json!("somebody else's");
    let label = |key: &str| body["metadata"]["labels"][key].as_str().map(str::to_owned);
    let facts = match object.kind {
        Kind::Service => {
            let ports = body["spec"]["ports"].as_array().expect("a Service has ports");
            let asked = |port: &Value| port["nodePort"].as_i64().map(|port| i32::try_from(port).expect("a port"));
            let node_ports = ports.iter().zip(31_000..).map(|(port, free)| asked(port).unwrap_or(free)).collect();
            let cluster_ip = body["spec"]["clusterIP"].as_str().unwrap_or("10.96.0.7").to_owned();
            Facts::Service { cluster_ip, node_ports, ingress: None }
        }
        Kind::Deployment => Facts::Deployment { available: true, message: String::new() },
        Kind::Secret => {
            let data = body["data"].as_object().into_iter().flatten().map(|(key, value)| {
                let ByteString(bytes) = serde_json::from_value(value.clone()).expect("base64");
                (key.clone(), Arc::from(bytes))
            });
            Facts::Secret { data: data.collect() }
        }
        Kind::ConfigMap | Kind::PersistentVolumeClaim | Kind::PodDisruptionBudget | Kind::NetworkPolicy => Facts::None,
    };
    let version: u64 = before.map_or(0, |before| before.resource_version.parse().expect("a number"));
    Owned {
        uid: before.map_or_else(|| format!("uid of {}", object.name), |before| before.uid.clone()),
        resource_version: (version + 1).to_string(),
        owner_name: label(OWNER_NAME),
        owner_uid: label(OWNER_UID),
        applied: body["metadata"]["annotations"][APPLIED].as_str().map(str::to_owned),
        live: Some(Arc::new(body)),
        facts,
    }
}
