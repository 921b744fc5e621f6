//! The pod of a jump host.

use api::sipcluster::JumpHost;
use serde_json::{Value, json};

use super::{
    super::{Kind, Object, Want, object::Instance},
    PATIENCE, PRIVATE_KEYS, SSH, hosts, script,
};

/// The user of the image, and the group by which it reads what is mounted.
const USER: u32 = 1000;
/// What uid 1000 reads by its group, and nobody writes.
const PRIVATE: u32 = 0o440;

/// The Deployment of one entry.
pub(super) fn of(
    want: &Want<'_>,
    instance: &Instance,
    entry: &JumpHost,
    image: &str,
    hosts: &[hosts::Host<'_>],
) -> Object {
    let aliases: Vec<Value> = hosts::aliases(hosts)
        .into_iter()
        .map(|(address, names)| json!({ "ip": address.to_string(), "hostnames": names }))
        .collect();
    let proxied = entry.bmc.and_then(|bmc| bmc.proxy).unwrap_or(false);
    let environment: Vec<Value> = if proxied {
        Vec::new()
    } else {
        ["NO_PROXY", "no_proxy"].map(|name| json!({ "name": name, "value": "*" })).into()
    };
    let container = json!({
        "name": "jumphost",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "ports": [{ "name": "ssh", "containerPort": SSH, "protocol": "TCP" }],
        "env": environment,
        "livenessProbe": { "tcpSocket": { "port": "ssh" }, "initialDelaySeconds": 15, "periodSeconds": 10 },
        "readinessProbe": { "tcpSocket": { "port": "ssh" }, "initialDelaySeconds": 5, "periodSeconds": 20 },
        "lifecycle": { "preStop": { "exec": { "command": ["/bin/sh", "-c", script::wait_for_sessions(SSH)] } } },
        "resources": { "requests": { "cpu": "10m", "memory": "32Mi" } },
        "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
        "volumeMounts": [
            { "name": "data", "mountPath": "/etc/opt/sip", "readOnly": true },
            { "name": "authorized-keys", "mountPath": "/etc/opt/sip/authorized-keys", "readOnly": true },
            { "name": "host-keys", "mountPath": "/etc/opt/sip/host-keys", "readOnly": true },
            { "name": "ssh-private-keys", "mountPath": PRIVATE_KEYS, "readOnly": true },
            { "name": "kubeconfig", "mountPath": "/etc/opt/sip/kubeconfig", "readOnly": true },
            { "name": "scripts", "mountPath": "/opt/sip/bin", "readOnly": true },
        ],
    });
    let secret = |volume: &str, name: &str, optional: bool| json!({ "name": volume, "secret": { "secretName": name, "defaultMode": PRIVATE, "optional": optional } });
    let config_map = |volume: &str, key: &str, path: &str, mode: u32| json!({ "name": volume, "configMap": { "name": instance.name, "defaultMode": mode, "items": [{ "key": key, "path": path }] } });
    let pod = json!({
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "hostAliases": aliases,
        "nodeSelector": entry.common.node_labels,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "terminationGracePeriodSeconds": PATIENCE,
        "containers": [container],
        "volumes": [
            secret("data", &instance.name, false),
            config_map("authorized-keys", "authorized-keys", "authorized_keys", 0o444),
            secret("host-keys", &format!("{}-host-keys", instance.name), false),
            // Without them the jump host serves all the same, and they appear in the running pod.
            secret("ssh-private-keys", &entry.node_ssh_private_keys, true),
            secret("kubeconfig", &format!("{}-kubeconfig", instance.name), true),
            config_map("scripts", "host", "host", 0o555),
        ],
    });
    let spec = json!({
        "replicas": entry.common.replicas.unwrap_or(1),
        "selector": { "matchLabels": instance.selector() },
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0 } },
        "template": { "metadata": { "labels": instance.labels(want) }, "spec": pod },
    });
    instance.object(want, Kind::Deployment, &instance.name, json!({ "spec": spec }))
}
