//! The pod of a provider, and the volume with what it may not forget.

use api::sipcluster::Auth;
use serde_json::{Value, json};

use super::{
    super::{
        Kind, Object, Want,
        object::{Instance, sha256},
    },
    config::{DATA, DOLLAR, PORT, TLS},
    storage::Storage,
};

/// The user of Dex's images.
const USER: u32 = 1001;
/// What that user reads by its group, and nobody writes.
const PRIVATE: u32 = 0o440;
/// Annotation on the pod: changes when Dex has to read its files again, which it does only when it starts.
const FILES: &str = "sip.airshipit.org/dex-files";

/// A digest of configuration and certificate. The private key is in it, so that it tells nothing of the passwords in
/// the configuration to those who may see pods and not Secrets.
pub(super) fn digest(config: &str, certificate: &[u8], private_key: &[u8]) -> String {
    sha256(&format!("{private_key:?}\n{certificate:?}\n{config}"))
}

/// The claim on the volume. Any volume of 64 MiB will do, also one that an administrator made by hand.
pub(super) fn claim(want: &Want<'_>, instance: &Instance) -> Object {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "64Mi" } } });
    instance.object(want, Kind::PersistentVolumeClaim, &format!("{}-data", instance.name), json!({ "spec": spec }))
}

/// The Deployment. On a volume one pod, and the old one ends before the new one starts: they share a file of SQLite.
pub(super) fn of(
    want: &Want<'_>,
    instance: &Instance,
    spec: &Auth,
    storage: Storage,
    image: &str,
    files: &str,
) -> Object {
    let name = &instance.name;
    let probe = |period: u32, failures: u32| {
        json!({
            "httpGet": { "path": "/dex/healthz", "port": "https", "scheme": "HTTPS" },
            "periodSeconds": period,
            "failureThreshold": failures,
            "timeoutSeconds": 5,
        })
    };
    let mut container = json!({
        "name": "dex",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        // Not the image's entry point: that of Dex's own images takes the configuration for a template.
        "command": ["dex", "serve", "/etc/dex/config/config.yaml"],
        "env": [{ "name": DOLLAR, "value": "$" }],
        "ports": [{ "name": "https", "containerPort": PORT, "protocol": "TCP" }],
        "readinessProbe": probe(5, 3),
        "livenessProbe": probe(20, 6),
        "resources": { "requests": { "cpu": "10m", "memory": "32Mi" } },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": { "drop": ["ALL"] },
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [
            { "name": "config", "mountPath": "/etc/dex/config", "readOnly": true },
            { "name": "tls", "mountPath": TLS, "readOnly": true },
            { "name": "tmp", "mountPath": "/tmp" },
        ],
    });
    if storage == Storage::Volume {
        put(&mut container["volumeMounts"], json!({ "name": "data", "mountPath": DATA }));
    }
    let item = |key: &str| json!({ "key": key, "path": key });
    let secret = |volume: &str, suffix: &str, keys: &[&str]| {
        json!({ "name": volume, "secret": {
            "secretName": format!("{name}-{suffix}"),
            "defaultMode": PRIVATE,
            "items": keys.iter().map(|key| item(key)).collect::<Vec<Value>>(),
        } })
    };
    let mut pod = json!({
        "automountServiceAccountToken": storage == Storage::Kubernetes,
        "enableServiceLinks": false,
        "nodeSelector": spec.common.node_labels,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": [container],
        "volumes": [
            secret("config", "config", &["config.yaml"]),
            // The certificate alone: the key of our CA, in the same Secret, is nothing to Dex.
            secret("tls", "tls", &[super::certificate::CERTIFICATE, super::certificate::PRIVATE_KEY]),
            { "name": "tmp", "emptyDir": { "sizeLimit": "64Mi" } },
        ],
    });
    let strategy = match storage {
        Storage::Volume => {
            let claim = json!({ "claimName": format!("{name}-data") });
            put(&mut pod["volumes"], json!({ "name": "data", "persistentVolumeClaim": claim }));
            json!({ "type": "Recreate" })
        }
        Storage::Kubernetes => {
            pod["serviceAccountName"] = name.as_str().into();
            pod["topologySpreadConstraints"] = json!([{
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": { "matchLabels": instance.selector() },
            }]);
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } })
        }
    };
    let content = json!({
        "replicas": storage.replicas(spec),
        "selector": { "matchLabels": instance.selector() },
        "strategy": strategy,
        "template": { "metadata": { "labels": instance.labels(want), "annotations": { FILES: files } }, "spec": pod },
    });
    instance.object(want, Kind::Deployment, name, json!({ "spec": content }))
}

/// Into a list, before its last item: where it has always been, so that nothing is written for it.
fn put(list: &mut Value, item: Value) {
    if let Value::Array(items) = list {
        items.insert(items.len().saturating_sub(1), item);
    }
}
