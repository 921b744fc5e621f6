//! Conditions about what answers a tenant's users: they follow, `Ready` does not wait, and flapping costs next to nothing.

use std::time::Duration;

use plan_sip::outlook::ServerHealth;
use serde_json::json;
use testkit::{Fleet, sip};

use crate::harness::World;

/// Three API servers of which those named do not answer.
fn servers(down: &[&str]) -> Vec<ServerHealth> {
    let server = |name: &str| ServerHealth {
        name: name.to_owned(),
        up: Some(!down.contains(&name)),
        says: "Connection refused".to_owned(),
    };
    ["cp-0", "cp-1", "cp-2"].map(server).into()
}

async fn given() -> (World, crate::harness::Manager) {
    let world = World::new();
    world.api.seed_all(Fleet::of(3).racks(3).prefix("cp").flavor("control-plane").objects());
    world.api.seed(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "edge-ssh-private-key"},
        "data": {"key": "a2V5"},
    }));
    world.api.seed(sip("default/edge").control_plane(3).workers(0).services().object());
    let manager = world.manager("a");
    world.ready("default/edge").await;
    (world, manager)
}

#[tokio::test(start_paused = true)]
async fn ready_does_not_wait_for_the_tenant_and_the_condition_follows_without_a_change_of_any_object() {
    let (world, _manager) = given().await;
    world.says("default/edge", "TenantReachable", "Unknown", "NotAsked").await;
    world.answers.lock().unwrap().servers = Some(servers(&["cp-0", "cp-1", "cp-2"]));
    let message = world.says("default/edge", "TenantReachable", "False", "NoneAnswers").await;
    assert!(message.starts_with("0 of 3 API servers answer; not: cp-0 (Connection refused)"), "{message}");
    world.answers.lock().unwrap().servers = Some(servers(&["cp-1"]));
    world.says("default/edge", "TenantReachable", "True", "SomeDown").await;
    world.answers.lock().unwrap().servers = Some(servers(&[]));
    let message = world.says("default/edge", "TenantReachable", "True", "Answering").await;
    assert_eq!(message, "3 of 3 API servers answer");
    world.ready("default/edge").await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_flaps_costs_a_few_writes_and_a_new_leader_none() {
    let (world, first) = given().await;
    world.answers.lock().unwrap().servers = Some(servers(&[]));
    world.says("default/edge", "TenantReachable", "True", "Answering").await;
    let mark = world.api.mark();
    for round in 0..14 {
        let down: &[&str] = if round % 2 == 0 { &["cp-1", "cp-2"] } else { &[] };
        world.answers.lock().unwrap().servers = Some(servers(down));
        tokio::time::sleep(Duration::from_secs(45)).await;
    }
    let writes = world.api.writes_since(mark).len();
    assert!(writes <= 4, "{writes} writes in ten minutes");

    world.says("default/edge", "TenantReachable", "True", "Answering").await;
    let mark = world.api.mark();
    drop(first);
    let _second = world.manager("b");
    tokio::time::sleep(Duration::from_mins(3)).await;
    let writes = world.api.writes_since(mark);
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn an_oidc_provider_is_ready_once_its_discovery_document_names_what_was_published() {
    let (world, _manager) = given().await;
    world.api.seed(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "users"},
        "data": {"users": "YW5uQGV4YW1wbGUub3JnOiQyeSQxMCRKNHVqMzNRWU94L3pOOEp2VHVFdkhlWXE5dmJOMGJCZlBNMFQyVy5wUW5EdzB6R21PcHNHSwo="},
    }));
    world.spec("default/edge", |spec| {
        spec["services"]["auth"] = json!([{"nodePort": 30556, "clusterIP": "10.9.0.1", "passwordsSecret": "users"}]);
    });
    world.answers.lock().unwrap().issuer = Some(Err("connection refused".to_owned()));
    let message = world.says("default/edge", "OIDCReady", "False", "NoAnswer").await;
    assert!(message.contains("https://10.9.0.1:30556/dex") && message.contains("connection refused"), "{message}");
    let asked = world.answers.lock().unwrap().asked.clone().expect("a question");
    assert!(asked.ca.starts_with(b"-----BEGIN CERTIFICATE-----"), "our CA is what the answer is judged by");
    world.answers.lock().unwrap().issuer = Some(Ok(asked.issuer));
    world.says("default/edge", "OIDCReady", "True", "Answering").await;
    world.ready("default/edge").await;
    world.spec("default/edge", |spec| spec["services"]["auth"] = json!([]));
    world
        .until("the condition goes with the provider", |api| {
            let sip: api::SIPCluster = api.get_as("SIPCluster", "default/edge")?;
            sip.status?.conditions.iter().all(|c| c.type_ != "OIDCReady").then_some(())
        })
        .await;
}
