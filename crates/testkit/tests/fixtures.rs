//! Fleets, clusters, consumers, the kubelet's stand-in, the clock.
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use api_foreign::BareMetalHost;
use jiff::SignedDuration;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{Api as KubeApi, api::PostParams};
use serde_json::json;
use testkit::{Api, Clock, Consumer, Fleet, Kubelet, sip};

#[tokio::test(start_paused = true)]
async fn a_fleet_is_readable_hosts_with_secrets() {
    let api = Api::new();
    api.seed_all(Fleet::of(4).racks(2).flavor("worker").objects());
    let hosts: Vec<BareMetalHost> = api.list_as("BareMetalHost");
    let racks: Vec<_> = hosts
        .iter()
        .map(|host| host.metadata.labels.clone().unwrap_or_default()["vino.airshipit.org/rack"].clone())
        .collect();
    assert_eq!(racks, ["r0", "r1", "r0", "r1"]);
    assert_eq!(hosts[0].status.as_ref().unwrap().provisioning.state, "available");
    for host in &hosts {
        let data = host.spec.network_data.as_ref().unwrap();
        assert!(api.get("Secret", &format!("{}/{}", data.namespace, data.name)).is_some());
        let bmc = host.spec.bmc.as_ref().unwrap();
        assert!(api.get("Secret", &format!("default/{}", bmc.credentials_name)).is_some());
    }
}

#[test]
fn the_sample_fleet_is_that_of_the_original() {
    let fleet = Fleet::sample();
    assert_eq!(
        fleet.names(),
        ["rdm9r006o001", "rdm9r006o002", "rdm9r007o001", "rdm9r007o002", "rdm9r008o002", "rdm9r009o002"]
    );
    assert_eq!(fleet.hosts()[2]["metadata"]["labels"]["vino.airshipit.org/rack"], "r007");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_built_as_it_would_be_written() {
    let api = Api::new();
    let cluster = sip("tenants/one").control_plane(3).workers(2).topology("vino.airshipit.org/rack").services();
    let kept = api.seed(cluster.object());
    assert_eq!(kept["spec"]["nodes"]["ControlPlane"]["count"]["active"], 3);
    assert_eq!(kept["spec"]["nodes"]["Worker"]["topologyKey"], "vino.airshipit.org/rack");
    assert_eq!(kept["spec"]["services"]["jumpHost"][0]["nodePort"], 30_000);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_writes_blindly() {
    let api = Api::new();
    api.seed_all(Fleet::of(1).objects());
    let consumer = Consumer::new(api.client_named("capm3"), "tenants", "machine-0");
    consumer.provision("default", "node00").await.unwrap();
    let host: BareMetalHost = api.get_as("BareMetalHost", "default/node00").unwrap();
    assert_eq!(host.spec.consumer_ref.unwrap().name, "machine-0");
    assert_eq!(host.status.unwrap().provisioning.state, "provisioned");
    assert!(api.log().iter().all(|entry| entry.body["metadata"]["resourceVersion"].is_null()));
    consumer.deprovision("default", "node00").await.unwrap();
    let host: BareMetalHost = api.get_as("BareMetalHost", "default/node00").unwrap();
    assert_eq!((host.spec.consumer_ref, host.spec.network_data), (None, None));
}

#[tokio::test(start_paused = true)]
async fn the_kubelet_runs_deployments_and_rests() {
    let api = Api::new();
    let deployments: KubeApi<Deployment> = KubeApi::namespaced(api.client(), "default");
    let deployment = json!({
        "metadata": { "name": "lb" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "lb" } },
            "template": { "metadata": { "labels": { "app": "lb" } }, "spec": { "containers": [{ "name": "haproxy", "image": "haproxy:2.3.2" }] } },
        },
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    let dressed = Kubelet::new(api.client_named("kubelet"))
        .dressed(|_, pod| pod["metadata"]["annotations"]["serves"] = json!("abc"));
    dressed.turn().await.unwrap();
    let pods: Vec<Pod> = api.list_as("Pod");
    assert_eq!(pods.len(), 2);
    assert!(pods.iter().all(|pod| pod.metadata.annotations.as_ref().unwrap()["serves"] == "abc"));
    let status = deployments.get("lb").await.unwrap().status.unwrap();
    assert_eq!((status.available_replicas, status.observed_generation), (Some(2), Some(1)));
    let mark = api.mark();
    dressed.turn().await.unwrap();
    assert_eq!(api.writes_since(mark), []);
    let old: Vec<_> = api.names("Pod");
    api.edit("Deployment", "default/lb", |lb| lb["spec"]["template"]["metadata"]["annotations"]["roll"] = json!("1"));
    dressed.turn().await.unwrap();
    let new = api.names("Pod");
    assert!(new.len() == 2 && new.iter().all(|pod| !old.contains(pod)));
    api.remove("Deployment", "default/lb");
    dressed.turn().await.unwrap();
    assert_eq!(api.names("Pod"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_clock_follows_paused_time_and_jumps() {
    let clock = Clock::new();
    let twin = clock.twin();
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(clock.now().to_string(), "2026-01-01T00:01:30Z");
    clock.jump(SignedDuration::from_hours(-1));
    assert_eq!(clock.now().to_string(), "2025-12-31T23:01:30Z");
    assert_eq!(twin.now().to_string(), "2026-01-01T00:01:30Z");
}
