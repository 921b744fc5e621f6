//! Hosts and Secrets that cannot be read stop nothing but themselves.

use testkit::{Fleet, sip};

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
