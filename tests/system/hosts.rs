//! BareMetalHosts: who holds which, and what the tests do to them in Metal3's place.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    sip::NAMESPACE,
    stack::{Answer, Restore, get, kubectl, patch},
};

/// The namespace of the stack's hosts.
pub const HOSTS: &str = "metal3";
/// On a host between its release and the end of its quarantine.
pub const RELEASED: &str = "sip.airshipit.org/released";

/// Names of the hosts that carry the labels of this cluster.
pub fn labelled(cluster: &str) -> BTreeSet<String> {
    let labels = format!("sip.airshipit.org/cluster-namespace={NAMESPACE},sip.airshipit.org/cluster-name={cluster}");
    names(&get(&format!("baremetalhosts --namespace={HOSTS} --selector={labels}")))
}

/// The host.
pub fn host(name: &str) -> Value {
    get(&format!("baremetalhost {name} --namespace={HOSTS}"))
}

/// Changes a host as an administrator would.
pub fn change(name: &str, change: &Value) -> Answer {
    patch(&format!("baremetalhost {name} --namespace={HOSTS}"), change)
}

/// A machine of Cluster API uses the host, until the test ends or says otherwise.
pub fn consumed(name: &str) -> Restore<impl FnMut() + use<>> {
    let consumer = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine",
        "name": "system-test", "namespace": NAMESPACE,
    });
    change(name, &json!({ "spec": { "consumerRef": consumer } })).success();
    let name = name.to_owned();
    Restore(move || {
        let line = format!("baremetalhost {name} --namespace={HOSTS}");
        if patch(&line, &json!({ "spec": { "consumerRef": null } })).ok().is_none() {
            eprintln!("host {name} still has a consumer");
        }
    })
}

/// kubectl on a host, e.g. `label`.
pub fn kubectl_host(verb: &str, name: &str, words: &str) -> Answer {
    kubectl(&format!("{verb} baremetalhost {name} --namespace={HOSTS} {words}"))
}

/// Names of the objects of a list.
pub fn names(list: &Value) -> BTreeSet<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}
