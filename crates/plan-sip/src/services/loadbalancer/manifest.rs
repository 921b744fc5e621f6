//! Deployment and PodDisruptionBudget of a load balancer.

use serde_json::{Value, json};

use crate::services::{Kind, Object, Want, endpoints::Port, names::REPORT, object::Instance};

/// User and group of both containers. No image needs to know them: all they write to is an `emptyDir`.
const USER: i64 = 65_532;
/// Where the sidecar finds the Secret.
const VOLUME: &str = "/etc/slipway/lb";
/// Where sidecar and HAProxy meet.
const SHARED: &str = "/run/haproxy";
/// Port of the sidecar's reports, unless the tenant needs it. It is found by its name, [`REPORT`].
const REPORT_PORT: i32 = 9404;
/// Seconds a pod that ends leaves to the connections it has.
const GRACE: i64 = 60;

/// HAProxy's start.
///
/// `SLIPWAY_LISTEN` is the address of the built-in templates' `bind`: all of IPv6 and IPv4, or of IPv4 alone where the
/// kernel has no IPv6. HAProxy makes room for as many connections as it may have open files, which may be a thousand
/// million here; the built-in templates give no `maxconn`, because one beyond the limit of open files keeps HAProxy from
/// starting. Its standard error goes to a file, because only there it says why it refuses a configuration; the
/// sidecar passes it on. `exec` makes it process 1.
const START: &str = "\
[ ! -e /proc/net/if_inet6 ] || export SLIPWAY_LISTEN='[::]'
ulimit -n 262144 2>/dev/null
exec haproxy -W -db -S /run/haproxy/master.sock,mode,0660 -f /run/haproxy/haproxy.cfg 2>>/run/haproxy/errors";

/// HAProxy's end: while the base cluster takes the pod out of its Service, serve on; then take nothing new, and let the
/// connections come to their end. kubelet cuts this off with the grace period.
const STOP: &str = "sleep 5; kill -USR1 1; while kill -0 1; do sleep 1; done";

/// One load balancer.
pub(super) struct Pods<'a> {
    pub instance: &'a Instance,
    pub ports: &'a [Port],
    pub haproxy_image: &'a str,
    pub slipway_image: &'a str,
    pub replicas: i32,
    pub node_labels: Value,
}

impl Pods<'_> {
    /// The Deployment.
    pub fn deployment(&self, want: &Want<'_>) -> Object {
        let Self { instance, ports: _, haproxy_image: _, slipway_image: _, replicas, node_labels } = self;
        let spread = |topology: &str| {
            json!({
                "maxSkew": 1,
                "topologyKey": topology,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": instance.selector() },
            })
        };
        let tolerations = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]
            .map(|key| json!({ "key": key, "operator": "Exists", "effect": "NoSchedule" }));
        let mut pod = json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": GRACE,
            "securityContext": self.pod_security(),
            "tolerations": tolerations,
            "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
                "weight": 100,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": { "matchLabels": instance.selector() },
                },
            }] } },
            "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
            "initContainers": [self.configure()],
            "containers": [self.haproxy(), self.reload()],
            "volumes": [
                { "name": "haproxy-config", "secret": { "secretName": instance.name, "defaultMode": 0o440 } },
                { "name": "run", "emptyDir": {} },
            ],
        });
        if node_labels.as_object().is_some_and(|labels| !labels.is_empty()) {
            pod["nodeSelector"] = node_labels.clone();
        }
        let spec = json!({
            "replicas": replicas,
            "revisionHistoryLimit": 2,
            "selector": { "matchLabels": instance.selector() },
            "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
            "template": { "metadata": { "labels": instance.labels(want) }, "spec": pod },
        });
        instance.object(want, Kind::Deployment, &instance.name, json!({ "spec": spec }))
    }

    /// The PodDisruptionBudget; with a single pod it would only keep nodes from being drained.
    pub fn disruption_budget(&self, want: &Want<'_>) -> Option<Object> {
        let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": self.instance.selector() } });
        let object =
            || self.instance.object(want, Kind::PodDisruptionBudget, &self.instance.name, json!({ "spec": spec }));
        (self.replicas > 1).then(object)
    }

    fn pod_security(&self) -> Value {
        let mut security = json!({
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        });
        let lowest = self.ports.iter().map(|port| port.port).min();
        if let Some(port) = lowest.filter(|port| *port < 1024) {
            // One of the sysctls that Pod Security "restricted" allows.
            security["sysctls"] = json!([{ "name": "net.ipv4.ip_unprivileged_port_start", "value": port.to_string() }]);
        }
        security
    }

    fn configure(&self) -> Value {
        json!({
            "name": "configure",
            "image": self.slipway_image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["slipway-lb", "init"],
            "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } },
            "securityContext": container_security(),
            "volumeMounts": volume_mounts(),
        })
    }

    fn haproxy(&self) -> Value {
        let ports: Vec<Value> = self
            .ports
            .iter()
            .map(|port| json!({ "name": port.name, "containerPort": port.port, "protocol": "TCP" }))
            .collect();
        json!({
            "name": "loadbalancer",
            "image": self.haproxy_image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", START],
            "lifecycle": { "preStop": { "exec": { "command": ["/bin/sh", "-c", STOP] } } },
            "ports": ports,
            "resources": { "requests": { "cpu": "50m", "memory": "64Mi" } },
            "securityContext": container_security(),
            "volumeMounts": [{ "name": "run", "mountPath": SHARED }],
        })
    }

    fn reload(&self) -> Value {
        let port = self.report_port();
        let probe = |path: &str, period: i32| json!({ "httpGet": { "path": path, "port": REPORT }, "periodSeconds": period, "timeoutSeconds": 5 });
        json!({
            "name": "reload",
            "image": self.slipway_image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["slipway-lb", "run", "--listen", format!("[::]:{port}")],
            "ports": [{ "name": REPORT, "containerPort": port, "protocol": "TCP" }],
            "readinessProbe": probe("/healthz", 5),
            "livenessProbe": probe("/livez", 20),
            "resources": { "requests": { "cpu": "10m", "memory": "16Mi" } },
            "securityContext": container_security(),
            "volumeMounts": volume_mounts(),
        })
    }

    /// [`REPORT_PORT`], or a port beside the range where the range covers it.
    fn report_port(&self) -> i32 {
        let (Some(first), Some(last)) = (self.ports.first(), self.ports.last()) else { return REPORT_PORT };
        if !(first.port..=last.port).contains(&REPORT_PORT) {
            REPORT_PORT
        } else if last.port < 65_535 {
            last.port + 1
        } else {
            first.port - 1
        }
    }
}

fn container_security() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    })
}

fn volume_mounts() -> Value {
    json!([
        { "name": "haproxy-config", "mountPath": VOLUME, "readOnly": true },
        { "name": "run", "mountPath": SHARED },
    ])
}
