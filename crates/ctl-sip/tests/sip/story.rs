//! Creation: hosts, record, services, and what keeps a cluster from them.

use api::sipcluster::HostState;
use testkit::{Fleet, sip};

use crate::harness::World;

const RACK: &str = "vino.airshipit.org/rack";

fn hosts(world: &World, control_plane: usize, workers: usize) {
    world
        .api
        .seed_all(Fleet::of(control_plane).racks(control_plane.max(1)).prefix("cp").flavor("control-plane").objects());
    world.api.seed_all(Fleet::of(workers).racks(workers.max(1)).prefix("w").flavor("worker").objects());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_gets_its_hosts_and_its_services() {
    let world = World::new();
    hosts(&world, 3, 4);
    world.api.seed(sip("default/edge").control_plane(3).workers(2).topology(RACK).services().object());
    world.api.seed(serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "edge-ssh-private-key"},
        "data": {"key": "a2V5"},
    }));
    let _manager = world.manager("a");
    world.ready("default/edge").await;
    assert_eq!(world.counts("default/edge"), (3, 2));
    let status = world.sip("default/edge").and_then(|s| s.status).expect("a status");
    assert!(status.established);
    assert!(status.hosts.iter().all(|h| h.state == HostState::Claimed && h.addresses.contains_key("oam-ipv4")));
    assert_eq!(world.haproxy("default/edge", "controlplane").matches("  server ").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written() {
    let world = World::new();
    hosts(&world, 3, 2);
    world.api.seed(sip("default/edge").control_plane(3).workers(2).topology(RACK).object());
    let _manager = world.manager("a");
    world.ready("default/edge").await;
    let mark = world.api.mark();
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    let writes: Vec<_> = world.api.writes_since(mark);
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_begins_in_a_settled_world_does_not_even_ask_for_writes() {
    let world = World::new();
    hosts(&world, 3, 2);
    world.api.seed(sip("default/edge").control_plane(3).workers(2).topology(RACK).services().object());
    world.api.seed(serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "edge-ssh-private-key"},
        "data": {"key": "a2V5"},
    }));
    let first = world.manager("a");
    world.ready("default/edge").await;
    drop(first);
    let mark = world.api.mark();
    let _second = world.manager("b");
    tokio::time::sleep(std::time::Duration::from_mins(5)).await;
    let asked = world.api.since(mark).into_iter().filter(|entry| entry.client == "b" && !entry.dry_run);
    let writes: Vec<String> = asked.filter(|entry| entry.verb.writes()).map(|entry| entry.to_string()).collect();
    assert!(writes.is_empty(), "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_cannot_be_whole_takes_nothing_and_goes_on_when_a_host_becomes_free() {
    let world = World::new();
    hosts(&world, 2, 4);
    world.api.seed(sip("default/edge").control_plane(3).workers(3).topology(RACK).object());
    let _manager = world.manager("a");
    let message = world.condition("default/edge", "False", "Unschedulable").await;
    assert!(message.contains("ControlPlane"), "{message}");
    assert_eq!(world.counts("default/edge"), (0, 0));
    world.api.seed_all(Fleet::of(1).prefix("late").flavor("control-plane").label(RACK, "r9").objects());
    world.ready("default/edge").await;
    assert_eq!(world.counts("default/edge"), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_dies_between_any_two_writes_leaves_a_choice_that_the_next_one_completes() {
    for nth in 1..24 {
        let world = World::new();
        hosts(&world, 4, 4);
        world.api.seed(sip("default/edge").control_plane(3).workers(2).topology(RACK).object());
        world.api.faults().crash_after_write("a", nth);
        let first = world.manager("a");
        tokio::time::sleep(std::time::Duration::from_secs(30)).await;
        let chosen: Vec<String> = world
            .sip("default/edge")
            .and_then(|s| s.status)
            .map(|s| s.hosts.into_iter().map(|h| h.name).collect())
            .unwrap_or_default();
        drop(first);
        let _second = world.manager("b");
        world.ready("default/edge").await;
        assert_eq!(world.counts("default/edge"), (3, 2), "after write {nth}");
        let mut now: Vec<String> = world.claimed("default/edge").into_values().flatten().collect();
        now.sort();
        if !chosen.is_empty() {
            let mut chosen = chosen;
            chosen.sort();
            assert_eq!(now, chosen, "the same choice is completed after write {nth}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hosts_of_the_original_operator_whose_network_data_is_cleared_never_leave_their_load_balancer() {
    let world = World::new();
    for mut host in Fleet::of(2).prefix("w").flavor("worker").hosts() {
        for (key, value) in [("cluster-namespace", "default"), ("cluster-name", "edge"), ("node-type", "Worker")] {
            host["metadata"]["labels"][format!("sip.airshipit.org/{key}")] = value.into();
        }
        let machine = serde_json::json!({"kind": "Metal3Machine", "namespace": "default", "name": "m"});
        host["spec"]["consumerRef"] = machine;
        host["spec"]["networkData"] = serde_json::Value::Null;
        world.api.seed(host);
    }
    let config = "backend a\n  server w00 192.0.2.70:30002\n  server w01 192.0.2.71:30002\n";
    world.api.seed(serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", "name": "loadbalancer-worker-edge"},
        "data": {"haproxy.cfg": k8s_openapi::ByteString(config.as_bytes().to_vec())},
    }));
    world.api.invariant("both hosts are backends", |now| {
        let secret = now.get("Secret", "default/loadbalancer-worker-edge").cloned().unwrap_or_default();
        let data: k8s_openapi::api::core::v1::Secret = serde_json::from_value(secret).unwrap_or_default();
        let text = data.data.and_then(|d| d.get("haproxy.cfg").map(|v| String::from_utf8_lossy(&v.0).into_owned()));
        let text = text.unwrap_or_default();
        let both = ["192.0.2.70:", "192.0.2.71:"].iter().all(|address| text.contains(address));
        if both { Ok(()) } else { Err(text) }
    });
    world.api.seed(sip("default/edge").workers(2).services().with(|spec| spec.services.jump_host.clear()).object());
    let _manager = world.manager("a");
    world.ready("default/edge").await;
    let data: k8s_openapi::api::core::v1::Secret =
        world.api.get_as("Secret", "default/loadbalancer-worker-edge").expect("it is there");
    assert!(data.data.is_some_and(|data| data.contains_key("meta.json")), "it is taken over");
    assert_eq!(world.api.violations(), Vec::<String>::new());
}
