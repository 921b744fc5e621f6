//! One tenant to test with, and what is there once a plan for it is carried out.

mod departures;
mod differences;
mod golden;
mod laws;
mod promotion;
mod reached;

use std::{collections::BTreeMap, sync::Arc};

use api::{
    keys::{CONTROL_PLANE, OWNER_UID, WORKER},
    sipcluster::{LoadBalancerControlPlane, LoadBalancerWorker, NodePortRange, SIPClusterSpec},
};
use base::Key;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::{
    Backend, CustomTemplate, Facts, Installation, Kind, Object, Owned, Plan, Pod, Report, Seen, Step, Want,
    carried_out, plan,
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
        let made = after(before(), &self.plan(&before()));
        after(made.clone(), &self.plan(&made))
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

/// What `seen` becomes once `plan` is carried out: each change as the API server allows it, and with what others add.
fn after(seen: Seen, plan: &Plan) -> Seen {
    for step in &plan.steps {
        match step {
            Step::Create(object) => assert!(!seen.objects.contains_key(&(object.kind, object.name.clone())), "{step}"),
            Step::Update { object: Object { kind, name, .. }, uid, resource_version, whole: _ }
            | Step::Delete { kind, name, uid, resource_version } => {
                let there = seen.objects.get(&(*kind, name.clone())).expect("what is changed is there");
                assert_eq!((uid, resource_version), (&there.uid, &there.resource_version), "{step}");
            }
            Step::MakeHostKeys { .. } | Step::MakeCertificate { .. } => {}
            Step::AnnotatePod { name, uid, .. } | Step::DeletePod { name, uid, .. } => {
                assert!(seen.pods.iter().any(|pod| pod.name == *name && pod.uid == *uid), "{step}");
            }
        }
    }
    let mut seen = carried_out::after(seen, plan);
    for live in seen.objects.values_mut().filter_map(|owned| owned.live.as_mut()) {
        let mut body = (**live).clone();
        body["metadata"]["uid"] = json!("filled in");
        body["metadata"]["annotations"]["example.org/note"] = json!("somebody else's");
        *live = Arc::new(body);
    }
    seen
}
