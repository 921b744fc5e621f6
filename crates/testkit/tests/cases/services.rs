//! Services: what the server gives them and what it refuses.

use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::refused;

fn service(name: &str, sort: &str, ports: Value) -> Service {
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "type": sort, "ports": ports } }))
        .expect("a Service")
}

fn api(client: Client, namespace: &str) -> Api<Service> {
    Api::namespaced(client, namespace)
}

async fn port_of(api: &Api<Service>, name: &str) -> Option<i32> {
    let spec = api.get(name).await.expect("it is there").spec.expect("a spec");
    spec.ports.expect("ports")[0].node_port
}

pub async fn ports_and_addresses_are_given(client: Client, namespace: String) {
    let api = api(client, &namespace);
    let made =
        api.create(&PostParams::default(), &service("given", "NodePort", json!([{ "port": 6443 }]))).await.unwrap();
    let spec = made.spec.unwrap();
    let port = spec.ports.unwrap().remove(0);
    assert!((30_000..=32_767).contains(&port.node_port.expect("a node port")));
    assert_eq!(port.protocol.as_deref(), Some("TCP"));
    assert!(spec.cluster_ip.is_some_and(|ip| ip.parse::<std::net::IpAddr>().is_ok()));
    let inner =
        api.create(&PostParams::default(), &service("inner", "ClusterIP", json!([{ "port": 80 }]))).await.unwrap();
    assert_eq!(inner.spec.unwrap().ports.unwrap()[0].node_port, None);
}

pub async fn a_taken_node_port_is_refused(client: Client, namespace: String) {
    let api = api(client, &namespace);
    api.create(&PostParams::default(), &service("first", "NodePort", json!([{ "port": 80 }]))).await.unwrap();
    let taken = port_of(&api, "first").await.expect("a node port");
    let second = service("second", "NodePort", json!([{ "port": 80, "nodePort": taken }]));
    let status = refused(api.create(&PostParams::default(), &second).await);
    assert_eq!(status.code, 422);
    assert_eq!(status.details.expect("details").causes[0].field, "spec.ports[0].nodePort");
    assert!(status.message.contains("provided port is already allocated"), "{}", status.message);
}

pub async fn a_node_port_out_of_range_is_refused(client: Client, namespace: String) {
    let service = service("low", "NodePort", json!([{ "port": 80, "nodePort": 1234 }]));
    let status = refused(api(client, &namespace).create(&PostParams::default(), &service).await);
    assert_eq!(status.code, 422);
    assert!(status.message.contains("The range of valid ports is 30000-32767"), "{}", status.message);
}

pub async fn a_replacement_keeps_the_node_port_it_leaves_out(client: Client, namespace: String) {
    let api = api(client, &namespace);
    let plain = service("kept", "NodePort", json!([{ "port": 80 }]));
    api.create(&PostParams::default(), &plain).await.unwrap();
    let before = port_of(&api, "kept").await;
    api.replace("kept", &PostParams::default(), &plain).await.unwrap();
    assert_eq!(port_of(&api, "kept").await, before);
}

pub async fn ports_are_checked(client: Client, namespace: String) {
    let api = api(client, &namespace);
    for (ports, field) in [
        (json!([]), "spec.ports"),
        (json!([{ "port": 0 }]), "spec.ports[0].port"),
        (json!([{ "port": 80 }, { "port": 81 }]), "spec.ports[0].name"),
        (json!([{ "name": "a", "port": 80 }, { "name": "b", "port": 80 }]), "spec.ports[1]"),
    ] {
        let status = refused(api.create(&PostParams::default(), &service("bad", "ClusterIP", ports)).await);
        assert_eq!(status.code, 422, "{}", status.message);
        assert_eq!(status.details.expect("details").causes[0].field, field, "{}", status.message);
    }
}

pub async fn the_address_does_not_change(client: Client, namespace: String) {
    let api = api(client, &namespace);
    api.create(&PostParams::default(), &service("fixed", "ClusterIP", json!([{ "port": 80 }]))).await.unwrap();
    let patch = Patch::Merge(json!({ "spec": { "clusterIP": "10.96.77.77", "clusterIPs": ["10.96.77.77"] } }));
    assert_eq!(refused(api.patch("fixed", &PatchParams::default(), &patch).await).code, 422);
}
