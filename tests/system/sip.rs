//! SIPClusters of the tests: the one of `make up`, those made here, and what their status says.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use crate::stack::{Restore, create, get, kubectl, patch, until};

/// The namespace of the tenant.
pub const NAMESPACE: &str = "tenant-a";
/// How long a change may take to settle: pods start within it on a machine that does other things too.
pub const SETTLES: Duration = Duration::from_mins(3);

/// The SIPCluster of `make up`, settled.
pub fn edge() -> Value {
    ready("edge")
}

/// A SIPCluster as it is now.
pub fn sip(name: &str) -> Value {
    get(&format!("sipcluster {name} --namespace={NAMESPACE}"))
}

/// A condition: status, reason and message.
pub fn condition<'a>(sip: &'a Value, kind: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let one = sip["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind)?;
    Some((one["status"].as_str()?, one["reason"].as_str()?, one["message"].as_str().unwrap_or_default()))
}

/// Waits until Ready is true for the spec as it is.
pub fn ready(name: &str) -> Value {
    until(&format!("SIPCluster {name} is Ready"), SETTLES, || {
        let sip = sip(name);
        let current = sip["status"]["observedGeneration"] == sip["metadata"]["generation"];
        match condition(&sip, "Ready") {
            Some(("True", ..)) if current => Ok(sip),
            seen => Err(format!("{seen:?}, generation observed: {current}")),
        }
    })
}

/// Waits for a condition whose message names something.
pub fn complains(name: &str, kind: &str, status: &str, reason: &str, names: &str) {
    until(&format!("{name} has {kind}={status} {reason} naming {names}"), SETTLES, || {
        let sip = sip(name);
        match condition(&sip, kind) {
            Some((is, why, message)) if is == status && why == reason && message.contains(names) => Ok(()),
            seen => Err(format!("{seen:?}")),
        }
    });
}

/// Waits until a deleted SIPCluster says that it stays because of this host.
pub fn kept_for(name: &str, host: &str) {
    until(&format!("{name} says that {host} is still used"), SETTLES, || {
        let sip = sip(name);
        let told = sip["status"]["conditions"].as_array().unwrap().iter().any(|condition| {
            condition["reason"] == "UnableToDecommission"
                && condition["message"].as_str().is_some_and(|message| message.contains(host))
        });
        if told { Ok(()) } else { Err(sip["status"]["conditions"].to_string()) }
    });
}

/// Waits until it is gone.
pub fn gone(name: &str) {
    until(&format!("SIPCluster {name} is gone"), SETTLES, || {
        let left = get(&format!("sipclusters --namespace={NAMESPACE} --field-selector=metadata.name={name}"));
        if left["items"].as_array().unwrap().is_empty() { Ok(()) } else { Err(left["items"][0].to_string()) }
    });
}

/// Objects that serve a tenant, by the uid of its SIPCluster, as kind/name.
pub fn owned(uid: &str) -> BTreeSet<String> {
    let kinds = "deployments,services,secrets,configmaps,poddisruptionbudgets,persistentvolumeclaims,pods";
    let line =
        format!("get {kinds} --namespace={NAMESPACE} --selector=sip.airshipit.org/owner-uid={uid} --output=name");
    kubectl(&line).success().lines().map(str::to_owned).collect()
}

/// Changes the spec of a SIPCluster.
pub fn change(name: &str, spec: &Value) {
    patch(&format!("sipcluster {name} --namespace={NAMESPACE}"), &json!({ "spec": spec })).success();
}

/// A SIPCluster with so many workers and no services.
pub fn workers(name: &str, active: i64) -> Value {
    json!({
        "apiVersion": "airship.airshipit.org/v1",
        "kind": "SIPCluster",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "nodes": { "Worker": {
                "labelSelector": { "matchLabels": { "vino.airshipit.org/flavor": "worker" } },
                "topologyKey": "vino.airshipit.org/host",
                "count": { "active": active, "standby": 0 },
            } },
            "services": {},
        },
    })
}

/// A SIPCluster with so many workers and these services.
pub fn with_services(name: &str, active: i64, services: &Value) -> Value {
    let mut sip = workers(name, active);
    sip["spec"]["services"] = services.clone();
    sip
}

/// Creates it; it is gone, hosts and all, when the test ends.
pub fn made(object: &Value) -> Restore<impl FnMut() + use<>> {
    create(object).success();
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    Restore(move || {
        let line = format!("delete sipcluster {name} --namespace={NAMESPACE} --ignore-not-found --timeout=180s");
        if let Err(why) = kubectl(&line).ok().ok_or("not deleted") {
            eprintln!("SIPCluster {name}: {why}");
        }
    })
}
