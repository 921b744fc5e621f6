//! What people are told: no false alarm about what is routine, and a name for what is wrong.

use serde_json::json;
use testkit::{Fleet, sip};

use crate::harness::{Manager, World};

const EDGE: &str = "default/edge";

/// A cluster with two workers, a load balancer for each role, and a spare host.
async fn ready() -> (World, Manager) {
    let world = World::new();
    world.api.seed_all(Fleet::of(3).prefix("w").flavor("worker").objects());
    world.api.seed(sip(EDGE).workers(2).services().with(|spec| spec.services.jump_host.clear()).object());
    let manager = world.manager("a");
    world.ready(EDGE).await;
    (world, manager)
}

/// From now on condition Ready never falls.
fn stays_ready(world: &World) {
    world.api.invariant("Ready stays True", |now| {
        let sip = now.get("SIPCluster", EDGE).cloned().unwrap_or_default();
        let conditions = sip["status"]["conditions"].as_array().cloned().unwrap_or_default();
        match conditions.iter().find(|c| c["type"] == "Ready" && c["status"] != "True") {
            Some(ready) => Err(ready.to_string()),
            None => Ok(()),
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_ready_says_what_it_has() {
    let (world, _manager) = ready().await;
    let message = world.condition(EDGE, "True", "ReconciliationSucceeded").await;
    assert!(message.starts_with("2 hosts, 2 services, API 192.0.2.1:"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_ours_that_is_met_where_one_was_to_be_made_is_no_failure() {
    let (world, _manager) = ready().await;
    stays_ready(&world);
    let mark = world.api.mark();
    // Without the label by which it is watched it is gone, as far as the watch tells.
    world.api.edit("Service", "default/loadbalancer-worker-edge", |object| {
        object["metadata"]["labels"] = json!({});
    });
    let back = |api: &testkit::Api| {
        let service = api.get("Service", "default/loadbalancer-worker-edge")?;
        service["metadata"]["labels"].get(api::keys::OWNER_UID).map(drop)
    };
    world.until("it is labelled again", back).await;
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    let asked = world.api.since(mark);
    assert!(asked.iter().any(|e| matches!(&e.effect, testkit::Effect::Refused(409, _)) && e.kind == "Service"));
    assert_eq!(world.api.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_object_of_somebody_else_is_named_and_left_alone_until_it_goes() {
    let world = World::new();
    world.api.seed_all(Fleet::of(2).prefix("w").flavor("worker").objects());
    let theirs = world.api.seed(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "default", "name": "loadbalancer-worker-edge"}, "spec": {"maxUnavailable": 3},
    }));
    world.api.seed(sip(EDGE).workers(2).services().with(|spec| spec.services.jump_host.clear()).object());
    let _manager = world.manager("a");
    let message = world.condition(EDGE, "False", "InfraServiceFailure").await;
    assert!(
        message.ends_with("PodDisruptionBudget default/loadbalancer-worker-edge is there, and was not made here: delete it, or give the \
         entry of spec.services another name"),
        "{message}"
    );
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    assert_eq!(world.api.get("PodDisruptionBudget", "default/loadbalancer-worker-edge"), Some(theirs));
    world.api.remove("PodDisruptionBudget", "default/loadbalancer-worker-edge");
    world.ready(EDGE).await;
}

#[tokio::test(start_paused = true)]
async fn while_a_change_is_rolled_out_and_the_pods_of_before_serve_the_cluster_stays_ready() {
    let (world, _manager) = ready().await;
    stays_ready(&world);
    world.spec(EDGE, |spec| spec["services"]["loadBalancerWorker"][0]["image"] = json!("haproxy:other"));
    let rolled = |api: &testkit::Api| {
        let deployment = api.get("Deployment", "default/loadbalancer-worker-edge")?;
        let current = deployment["status"]["observedGeneration"] == deployment["metadata"]["generation"];
        (deployment.to_string().contains("haproxy:other") && current).then_some(())
    };
    world.until("the change is in its pods", rolled).await;
    world.ready(EDGE).await;
    assert_eq!(world.api.violations(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_may_use_all_hosts_reads_their_secrets_wherever_they_lie() {
    let world = World::new();
    world.api.seed_all(Fleet::of(2).prefix("w").namespace("far-away").flavor("worker").objects());
    world.api.seed(sip(EDGE).workers(2).object());
    let all = plan_sip::site::Settings { host_namespaces: None, quarantine: 60, secrets_known: true };
    let _manager = world.manager_with("a", all);
    world.ready(EDGE).await;
    assert_eq!(world.counts(EDGE), (0, 2));
}
