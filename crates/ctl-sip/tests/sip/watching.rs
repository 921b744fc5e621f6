//! What the manager does while it does not see everything, or sees it late.

use serde_json::json;
use testkit::{Fleet, Match, Refusal, Verb, sip};

use crate::harness::{Manager, World};

/// Workers behind a load balancer.
async fn served(hosts: usize, workers: i32) -> (World, Manager) {
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

async fn minutes(minutes: u64) {
    tokio::time::sleep(std::time::Duration::from_mins(minutes)).await;
}

fn listing(kind: &str, client: &str) -> Match {
    Match::any().verb(Verb::List).kind(kind).client(client)
}

#[tokio::test(start_paused = true)]
async fn no_host_is_released_while_the_pods_that_may_serve_it_are_not_seen() {
    let (world, first) = served(3, 3).await;
    drop(first);
    workers(&world, 2);
    let refused = world.api.faults().when(listing("Pod", "b")).always().refuse(Refusal::Forbidden("not you".into()));
    let _second = world.manager("b");
    minutes(5).await;
    assert_eq!(world.counts("default/edge"), (0, 3));
    refused.cancel();
    world.until("the surplus is released", |_| (world.counts("default/edge") == (0, 2)).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn a_template_that_is_not_seen_yet_is_not_taken_for_one_that_does_not_exist() {
    let (world, first) = served(2, 2).await;
    let template = "frontend mine\n  bind *:30080\n  default_backend b\nbackend b\n{{ range .Servers }}  server {{ .Name }} {{ .IP }}:30080\n{{ end }}";
    world.api.seed(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": "loadbalancerworker" },
        "data": { "loadBalancerWorker.cfg": template },
    }));
    world.until("it serves", |_| world.haproxy("default/edge", "worker").contains("frontend mine").then_some(())).await;
    minutes(5).await;
    drop(first);
    let mark = world.api.mark();
    let refused = world.api.faults().when(listing("ConfigMap", "b")).always().refuse(Refusal::Unavailable);
    let _second = world.manager("b");
    minutes(5).await;
    refused.cancel();
    minutes(5).await;
    let writes: Vec<String> = world.api.writes_since(mark).iter().map(ToString::to_string).collect();
    assert!(!writes.iter().any(|write| write.contains("loadbalancer-worker-edge")), "{writes:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_off_for_a_moment_takes_no_rights_away() {
    let (world, _manager) = served(3, 2).await;
    let watches = Match::any().verb(Verb::Watch).kind("Secret").client("a");
    world.api.faults().when(watches).times(3).refuse(Refusal::Unavailable);
    world.api.faults().close_watches();
    workers(&world, 3);
    world.until("it grows", |_| (world.counts("default/edge") == (0, 3)).then_some(())).await;
    world.ready("default/edge").await;
}

#[tokio::test(start_paused = true)]
async fn one_host_that_nobody_may_write_holds_up_no_cluster() {
    let world = World::new();
    world.api.seed_all(Fleet::of(3).prefix("w").flavor("worker").objects());
    world.api.seed(sip("default/edge").workers(2).object());
    let broken = Match::writes().kind("BareMetalHost").object("default/w00").client("a");
    world.api.faults().when(broken).always().refuse(Refusal::Invalid("spec.bmc.address: unknown scheme".into()));
    world.api.edit("BareMetalHost", "default/w00", |host| {
        host["metadata"]["labels"].as_object_mut().expect("labels").clear();
    });
    let _manager = world.manager("a");
    world.ready("default/edge").await;
    let proofs = world.api.log().into_iter().filter(|entry| entry.client == "a" && entry.dry_run).count();
    assert!(proofs < 5, "{proofs} attempts to prove rights");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_names_another_namespaces_cluster_does_not_count_there() {
    let (world, _manager) = served(3, 3).await;
    world.api.seed(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": "evil", "name": "loadbalancer-worker-edge-x", "labels": {
            "sip.airshipit.org/owner-namespace": "default", "sip.airshipit.org/owner-name": "edge",
            "sip.airshipit.org/owner-uid": "x", "app.kubernetes.io/instance": "loadbalancer-worker-edge",
        } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }], "podIP": "192.0.2.99" },
    }));
    workers(&world, 2);
    world.until("the surplus is released", |_| (world.counts("default/edge") == (0, 2)).then_some(())).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_tenant_whose_namespace_answers_slowly_holds_up_nobody_else() {
    let (world, _manager) = served(4, 2).await;
    let slow = listing("Secret", "a");
    world.api.faults().when(slow).delay(std::time::Duration::from_mins(10));
    world.api.seed(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "slow" } }));
    world.api.seed(sip("slow/late").workers(1).object());
    minutes(1).await;
    workers(&world, 3);
    let began = tokio::time::Instant::now();
    world.until("the other grows", |_| (world.counts("default/edge") == (0, 3)).then_some(())).await;
    assert!(began.elapsed() < std::time::Duration::from_mins(5));
    world.ready("slow/late").await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_goes_while_it_is_written_to_does_not_come_back_with_the_answer() {
    let world = World::new();
    world.api.seed_all(Fleet::of(2).prefix("w").flavor("worker").objects());
    world.api.seed(sip("default/edge").workers(2).object());
    // The labels of the first are written, and before the turn has ended the host is gone.
    let status = Match::writes().kind("SIPCluster").client("a").status(true);
    world.api.faults().when(status).nth(2).first_do(|api| api.remove("BareMetalHost", "default/w00"));
    let _manager = world.manager("a");
    minutes(5).await;
    world.api.seed_all(Fleet::of(1).prefix("x").flavor("worker").objects());
    world.ready("default/edge").await;
    assert_eq!(world.claimed("default/edge")["Worker"], ["w01", "x00"]);
}
