//! Nonsense: what admission refuses, and what is reported while everybody else is served.

use serde_json::{Value, json};

use crate::{
    sip,
    stack::{create, get, kubectl},
};

fn worker_balancer(range: &Value) -> Value {
    json!({ "nodeInterfaceId": "oam-ipv4", "nodePortRange": range })
}

/// Admission refuses it, and its words name the field.
fn refused(what: &str, field: &str, object: &Value) {
    let answer = create(object);
    let name = object["metadata"]["name"].as_str().unwrap();
    let _ = kubectl(&format!("delete sipcluster {name} --namespace={} --ignore-not-found", sip::NAMESPACE));
    let said = answer.refusal();
    assert!(said.contains(field), "{what}: the refusal does not name {field}: {said}");
}

#[test]
fn nonsense_is_refused_at_admission_and_the_field_is_named() {
    let with = |services: Value| sip::with_services("nonsense", 1, &services);
    let reversed = worker_balancer(&json!({ "start": 31090, "end": 31080 }));
    refused("a reversed range", "nodePortRange", &with(json!({ "loadBalancerWorker": [reversed] })));

    let one = worker_balancer(&json!({ "start": 31080, "end": 31085 }));
    let two = worker_balancer(&json!({ "start": 31085, "end": 31090 }));
    refused("ranges that overlap", "loadBalancerWorker", &with(json!({ "loadBalancerWorker": [one, two] })));

    let high = json!({ "nodeInterfaceId": "oam-ipv4", "nodePort": 70000 });
    refused("a port above 65535", "nodePort", &with(json!({ "loadBalancerControlPlane": [high] })));

    refused("a negative count", "count.active", &sip::workers("nonsense", -1));

    let mut key = sip::workers("nonsense", 1);
    key["spec"]["nodes"]["Worker"]["topologyKey"] = json!("not a label key!");
    refused("a key that no label can have", "topologyKey", &key);
}

#[test]
fn an_ssh_key_that_is_none_is_reported_and_the_cluster_is_served_without_it() {
    sip::edge();
    let services = json!({ "jumpHost": [{
        "nodeInterfaceId": "oam-ipv4", "nodePort": 31022, "nodeSSHPrivateKeys": "ssh-private-keys",
        "sshAuthorizedKeys": ["ssh-ed25519 this-is-no-key"],
    }] });
    let _made = sip::made(&sip::with_services("badkey", 0, &services));
    let told = crate::stack::until("the key is reported", sip::SETTLES, || {
        let sip = sip::sip("badkey");
        let conditions = sip["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let told = conditions
            .iter()
            .find(|one| one["message"].as_str().is_some_and(|message| message.contains("sshAuthorizedKeys")));
        told.cloned().ok_or_else(|| format!("{conditions:?}"))
    });
    assert!(told["message"].as_str().unwrap().contains("jumpHost"), "{told}");
    sip::edge();
}

#[test]
fn a_node_port_of_another_tenant_is_named_and_the_other_tenant_does_not_notice() {
    let before = sip::edge();
    let taken = json!({ "loadBalancerControlPlane": [{ "nodeInterfaceId": "oam-ipv4", "nodePort": 30443 }] });
    let _made = sip::made(&sip::with_services("greedy", 0, &taken));
    sip::complains("greedy", "Ready", "False", "InfraServiceFailure", "30443");
    let service = get("service loadbalancer-controlplane-edge --namespace=tenant-a");
    assert_eq!(service["spec"]["ports"][0]["nodePort"], 30443);
    let after = sip::edge();
    assert_eq!(
        sip::condition(&after, "Ready").map(|(status, ..)| status),
        sip::condition(&before, "Ready").map(|(status, ..)| status)
    );
    assert_eq!(after["status"]["endpoint"], before["status"]["endpoint"]);
}
