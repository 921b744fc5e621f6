//! Hosts and Secrets that cannot be read stop nothing but themselves.

use testkit::{Fleet, Match, Refusal, Verb, sip};

use crate::harness::World;

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_be_read_stays_with_its_cluster_which_goes_on() {
    let world = World::new();
    world.api.seed_all(Fleet::of(3).prefix("w").flavor("worker").objects());
    world.api.seed(sip("default/edge").workers(2).services().with(|spec| spec.services.jump_host.clear()).object());
    let _manager = world.manager("a");
    world.ready("default/edge").await;
    let mine = world.claimed("default/edge")["Worker"].clone();
    world.api.edit("BareMetalHost", &format!("default/{}", mine[0]), |host| {
        host["spec"]["consumerRef"] = 7.into();
    });
    let unhealthy = |api: &testkit::Api| {
        let sip: api::SIPCluster = api.get_as("SIPCluster", "default/edge")?;
        base::condition::find(&sip.status?.conditions, "HostUnhealthy").map(|c| c.message.clone())
    };
    let message = world.until("it is reported", unhealthy).await;
    assert!(message.contains(&mine[0]) && message.contains("unreadable"), "{message}");
    world.spec("default/edge", |spec| spec["nodes"]["Worker"]["count"]["active"] = serde_json::json!(3));
    world.ready("default/edge").await;
    assert_eq!(world.counts("default/edge"), (0, 3));
    assert!(world.claimed("default/edge")["Worker"].contains(&mine[0]));
    assert!(world.haproxy("default/edge", "worker").contains(&format!("server {} ", mine[0])), "it is a backend still");
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_finds_an_unreadable_host_in_a_record_goes_on_too() {
    let world = World::new();
    world.api.seed_all(Fleet::of(3).prefix("w").flavor("worker").objects());
    world.api.seed(sip("default/edge").workers(2).object());
    let first = world.manager("a");
    world.ready("default/edge").await;
    drop(first);
    let mine = world.claimed("default/edge")["Worker"].clone();
    world.api.edit("BareMetalHost", &format!("default/{}", mine[0]), |host| {
        host["spec"]["consumerRef"] = 7.into();
    });
    // Its record is lost too, so that what is found has to be confirmed live.
    world.api.edit("SIPCluster", "default/edge", |sip| sip["status"]["hosts"] = serde_json::json!([]));
    let _second = world.manager("b");
    let recorded = |api: &testkit::Api| {
        let sip: api::SIPCluster = api.get_as("SIPCluster", "default/edge")?;
        (sip.status?.hosts.len() == 2).then_some(())
    };
    world.until("the record is rebuilt", recorded).await;
    assert_eq!(world.counts("default/edge"), (0, 2));
}

/// A cluster with a jump host, and the keys for it.
fn with_a_jump_host(world: &World) {
    world.api.seed_all(Fleet::of(3).prefix("w").flavor("worker").objects());
    let key = serde_json::json!({"namespace": "default", "name": "edge-ssh-private-key"});
    world.api.seed(serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": key, "data": {"key": "a2V5"}}));
    let cluster = sip("default/edge").workers(3).services();
    let exposing = cluster.with(|spec| {
        let bmc = api::sipcluster::Bmc { expose: Some(true), ..Default::default() };
        spec.services.jump_host[0].bmc = Some(bmc);
    });
    world.api.seed(exposing.object());
}

fn services(world: &World) -> String {
    let status = world.sip("default/edge").and_then(|sip| sip.status).unwrap_or_default();
    status.conditions.iter().filter(|c| c.type_.starts_with("Service")).map(|c| c.message.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_that_may_not_be_read_is_told_and_holds_nothing_up() {
    let world = World::new();
    let kubeconfig = Match::reads().verb(Verb::Get).kind("Secret").object("default/edge-kubeconfig");
    world.api.faults().when(kubeconfig).always().refuse(Refusal::Forbidden("not this one".into()));
    with_a_jump_host(&world);
    let _manager = world.manager("a");
    world.ready("default/edge").await;
    assert!(services(&world).contains("the tenant's kubeconfig") && services(&world).contains("not this one"));
    world.spec("default/edge", |spec| spec["nodes"]["Worker"]["count"]["active"] = serde_json::json!(1));
    world.until("releases go on", |_| (world.counts("default/edge") == (0, 1)).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn credentials_that_cannot_be_read_hold_up_the_jump_host_alone() {
    let world = World::new();
    let fleet = Fleet::of(3).prefix("w").flavor("worker").hosts();
    let secret = fleet[0]["spec"]["bmc"]["credentialsName"].as_str().expect("it has credentials").to_owned();
    let read = Match::reads().verb(Verb::Get).kind("Secret").object(&format!("default/{secret}"));
    let refused = world.api.faults().when(read).always().refuse(Refusal::Forbidden("not this one".into()));
    with_a_jump_host(&world);
    let _manager = world.manager("a");
    world.until("it is told", |_| services(&world).contains("credentials of host default/w00").then_some(())).await;
    world.until("hosts are labelled", |_| (world.counts("default/edge") == (0, 3)).then_some(())).await;
    assert!(world.haproxy("default/edge", "worker").contains("  server w00 "), "the load balancer is written");
    refused.cancel();
    world.ready("default/edge").await;
}
