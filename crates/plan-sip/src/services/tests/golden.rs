//! The objects of a usual tenant, to the letter.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;

/// Manifests by kind and name, Secrets with their values readable.
fn manifests(plan: &Plan) -> BTreeMap<String, Value> {
    let created = plan.steps.iter().map(|step| match step {
        Step::Create(object) => object,
        other => panic!("nothing was there, so everything is created, and not: {other}"),
    });
    created
        .map(|object| {
            let mut body = object.body.clone();
            if let Some(data) = body.get_mut("data").and_then(Value::as_object_mut) {
                for value in data.values_mut() {
                    let ByteString(bytes) = serde_json::from_value(value.clone()).expect("base64");
                    let lines: Vec<&str> = std::str::from_utf8(&bytes).expect("text").lines().collect();
                    *value = json!(lines);
                }
            }
            (format!("{} {}", object.kind, object.name), body)
        })
        .collect()
}

fn golden(tenant: &Tenant, expected: &str) {
    let found = manifests(&tenant.plan(&before()));
    let text = serde_json::to_string_pretty(&found).expect("JSON") + "\n";
    assert!(text == expected, "the manifests are now:\n{text}");
}

#[test]
fn a_tenant_with_both_load_balancers() {
    golden(&Tenant::with_hosts().leaving("node03"), include_str!("usual.json"));
}

#[test]
fn every_choice_of_an_entry_is_honoured() {
    let mut tenant = Tenant::new().host(WORKER, "node04", "2001:db8::4/64");
    tenant.spec.services.load_balancer_control_plane.clear();
    let entry = &mut tenant.spec.services.load_balancer_worker[0];
    entry.node_port_range = NodePortRange { start: 443, end: 444 };
    entry.common = api::sipcluster::Common {
        name: Some("edge".to_owned()),
        image: "example.org/haproxy:2.3.2".to_owned(),
        node_interface_id: Some("oam".to_owned()),
        node_labels: BTreeMap::from([("example.org/edge".to_owned(), "yes".to_owned())]),
        cluster_ip: Some("10.96.0.40".to_owned()),
        service_type: Some(api::sipcluster::ServiceType::ClusterIP),
        external_host: None,
        replicas: Some(1),
    };
    golden(&tenant, include_str!("choices.json"));
}

#[test]
fn a_plan_reads_like_this() {
    let text = Tenant::with_hosts().plan(&before()).to_string();
    assert_eq!(
        text,
        "\
+ Service loadbalancer-controlplane-blue
+ Service loadbalancer-worker-blue
+ Secret loadbalancer-controlplane-blue
+ Secret loadbalancer-worker-blue
+ PodDisruptionBudget loadbalancer-controlplane-blue
+ PodDisruptionBudget loadbalancer-worker-blue
+ Deployment loadbalancer-controlplane-blue
+ Deployment loadbalancer-worker-blue
! spec.services.loadBalancerControlPlane[0]: Deployment loadbalancer-controlplane-blue is not available yet
! spec.services.loadBalancerWorker[0]: Deployment loadbalancer-worker-blue is not available yet
"
    );
}

#[test]
fn no_object_has_an_owner_reference_and_every_one_has_the_owners_labels() {
    let plan = Tenant::with_hosts().plan(&before());
    for (name, body) in manifests(&plan) {
        assert_eq!(body["metadata"]["ownerReferences"], Value::Null, "{name}");
        assert_eq!(body["metadata"]["labels"][OWNER_UID], "uid-blue", "{name}");
        assert_eq!(body["spec"]["template"]["metadata"]["ownerReferences"], Value::Null, "{name}");
    }
}
