//! Contraction, release, quarantine, deletion.

use serde_json::json;
use testkit::{Consumer, Fleet, sip};

use crate::harness::World;

async fn world_with_workers(hosts: usize, workers: i32) -> (World, crate::harness::Manager) {
    let world = World::new();
    world.api.seed_all(Fleet::of(hosts).prefix("w").flavor("worker").objects());
    let cluster = sip("default/edge").workers(workers).services().with(|spec| spec.services.jump_host.clear());
    world.api.seed(cluster.object());
    let manager = world.manager("a");
    world.ready("default/edge").await;
    (world, manager)
}

fn workers(world: &World, count: i32) {
    world.spec("default/edge", |spec| spec["nodes"]["Worker"]["count"]["active"] = json!(count));
}

#[tokio::test(start_paused = true)]
async fn contraction_releases_exactly_the_surplus_and_takes_it_out_of_the_load_balancer_first() {
    let (world, _manager) = world_with_workers(5, 3).await;
    world.api.invariant("an unlabelled host is no backend any more", |now| {
        let config = now.get("Secret", "default/loadbalancer-worker-edge").cloned().unwrap_or_default();
        let data: k8s_openapi::api::core::v1::Secret = serde_json::from_value(config).unwrap_or_default();
        let text = data.data.and_then(|d| d.get("haproxy.cfg").map(|v| String::from_utf8_lossy(&v.0).into_owned()));
        let text = text.unwrap_or_default();
        for host in now.all("BareMetalHost") {
            let name = host["metadata"]["name"].as_str().unwrap_or_default();
            let labelled = host["metadata"]["labels"].get("sip.airshipit.org/cluster-name").is_some();
            if !labelled
                && host["metadata"]["annotations"].get("sip.airshipit.org/released").is_some()
                && text.contains(&format!("server {name} "))
            {
                return Err(format!("{name} is a backend"));
            }
        }
        Ok(())
    });
    workers(&world, 1);
    world.until("one worker", |_| (world.counts("default/edge") == (0, 1)).then_some(())).await;
    world.ready("default/edge").await;
    assert_eq!(world.counts("default/edge"), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_host_in_use_stays_until_nobody_uses_it() {
    let (world, _manager) = world_with_workers(3, 3).await;
    let consumer = Consumer::new(world.api.client_named("metal3"), "default", "m0");
    for host in world.claimed("default/edge")["Worker"].clone() {
        consumer.consume("default", &host).await.expect("consumed");
    }
    workers(&world, 2);
    let waits = |api: &testkit::Api| {
        let sip: api::SIPCluster = api.get_as("SIPCluster", "default/edge")?;
        (sip.status?.roles.iter().any(|r| r.waiting == 1)).then_some(())
    };
    world.until("one waits", waits).await;
    assert_eq!(world.counts("default/edge"), (0, 3));
    world.ready("default/edge").await;
    consumer.release("default", "w00").await.expect("released");
    world.until("two workers", |_| (world.counts("default/edge") == (0, 2)).then_some(())).await;
    assert!(!world.claimed("default/edge")["Worker"].contains(&"w00".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_released_host_is_nobodys_until_its_quarantine_ends() {
    let (world, _manager) = world_with_workers(1, 1).await;
    workers(&world, 0);
    world.until("no worker", |_| (world.counts("default/edge") == (0, 0)).then_some(())).await;
    let began = world.api.clock().now();
    world.api.seed(sip("default/next").workers(1).object());
    world.ready("default/next").await;
    let waited = world.api.clock().now().duration_since(began);
    assert!(
        waited >= jiff::SignedDuration::from_secs(59) && waited < jiff::SignedDuration::from_secs(75),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_writes_blindly_during_quarantine_keeps_the_host_with_its_cluster() {
    let (world, _manager) = world_with_workers(2, 2).await;
    workers(&world, 1);
    world.until("one worker", |_| (world.counts("default/edge") == (0, 1)).then_some(())).await;
    let gone = world
        .api
        .list("BareMetalHost")
        .into_iter()
        .find(|h| h["metadata"]["annotations"].get("sip.airshipit.org/released").is_some());
    let gone = gone.expect("a released host")["metadata"]["name"].as_str().expect("a name").to_owned();
    Consumer::new(world.api.client_named("metal3"), "default", "late")
        .consume("default", &gone)
        .await
        .expect("consumed");
    let back =
        |_: &testkit::Api| world.claimed("default/edge").get("Worker").is_some_and(|w| w.contains(&gone)).then_some(());
    world.until("it is back", back).await;
    // The one that nobody uses is the surplus now.
    world.until("one worker", |_| (world.counts("default/edge") == (0, 1)).then_some(())).await;
    assert_eq!(world.claimed("default/edge")["Worker"], std::slice::from_ref(&gone));
}

#[tokio::test(start_paused = true)]
async fn deletion_waits_for_users_and_leaves_nothing() {
    let (world, _manager) = world_with_workers(2, 2).await;
    let consumer = Consumer::new(world.api.client_named("metal3"), "default", "m0");
    consumer.consume("default", "w00").await.expect("consumed");
    let clusters: kube::Api<api::SIPCluster> = kube::Api::namespaced(world.api.client(), "default");
    clusters.delete("edge", &kube::api::DeleteParams::default()).await.expect("deleted");
    let message = world.condition("default/edge", "False", "UnableToDecommission").await;
    assert!(message.contains("default/w00") && message.contains("m0"), "{message}");
    assert_eq!(world.counts("default/edge"), (0, 1));
    assert!(!world.haproxy("default/edge", "worker").is_empty(), "services go on");
    consumer.release("default", "w00").await.expect("released");
    world.until("it is gone", |api| api.get("SIPCluster", "default/edge").is_none().then_some(())).await;
    for kind in ["Deployment", "Service", "PodDisruptionBudget", "ConfigMap"] {
        assert_eq!(world.api.names(kind), Vec::<String>::new(), "{kind}");
    }
    assert!(
        world.api.names("Secret").iter().all(|name| !name.contains("loadbalancer")),
        "{:?}",
        world.api.names("Secret")
    );
}

#[tokio::test(start_paused = true)]
async fn hosts_of_a_cluster_that_lost_its_finalizer_are_free_again_once_nobody_uses_any_of_them() {
    let (world, _manager) = world_with_workers(2, 2).await;
    let consume = |consumer: serde_json::Value| {
        world.api.edit("BareMetalHost", "default/w00", |host| host["spec"]["consumerRef"] = consumer.clone());
    };
    consume(json!({"kind": "Metal3Machine", "namespace": "default", "name": "m"}));
    world.api.edit("SIPCluster", "default/edge", |cluster| cluster["metadata"]["finalizers"] = json!([]));
    world.api.remove("SIPCluster", "default/edge");
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    assert_eq!(world.counts("default/edge"), (0, 2), "one is in use, and its services reach the other");

    let served = |api: &testkit::Api| api.get("Service", "default/loadbalancer-worker-edge").is_some();
    world.api.invariant("labels go after the services", move |now| {
        let labelled =
            |host: &&serde_json::Value| !host["metadata"]["labels"]["sip.airshipit.org/cluster-name"].is_null();
        let serves = now.get("Service", "default/loadbalancer-worker-edge").is_some();
        let held = now.all("BareMetalHost").filter(labelled).count();
        if serves && held < 2 { Err(format!("{held} of 2 hosts are labelled")) } else { Ok(()) }
    });
    assert!(served(&world.api));
    consume(serde_json::Value::Null);
    world.until("both are free", |_| (world.counts("default/edge") == (0, 0)).then_some(())).await;
    assert!(!served(&world.api));
    let quarantined =
        |host: &serde_json::Value| !host["metadata"]["annotations"]["sip.airshipit.org/released"].is_null();
    world.until("no quarantine", |api| (!api.list("BareMetalHost").iter().any(quarantined)).then_some(())).await;
    assert_eq!(world.api.violations(), Vec::<String>::new());
}
