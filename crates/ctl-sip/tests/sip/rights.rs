//! Namespaces that the manager may not work in, and services that cannot be made.

use kube::api::DeleteParams;
use testkit::{Api, Fleet, Match, Refusal, Rule, sip};

use crate::harness::World;

const TENANT: &str = "tenant/edge";

fn asked() -> serde_json::Value {
    sip(TENANT).workers(2).services().with(|spec| spec.services.jump_host.clear()).object()
}

fn no_rights(world: &World) -> Rule {
    let secrets = Match::reads().kind("Secret").object("tenant/");
    world.api.faults().when(secrets).always().refuse(Refusal::Forbidden("not granted".into()))
}

async fn delete(world: &World) {
    let clusters: kube::Api<api::SIPCluster> = kube::Api::namespaced(world.api.client(), "tenant");
    clusters.delete("edge", &DeleteParams::default()).await.expect("deleted");
}

fn gone(api: &Api) -> Option<()> {
    api.get("SIPCluster", TENANT).is_none().then_some(())
}

#[tokio::test(start_paused = true)]
async fn without_rights_in_its_namespace_a_cluster_takes_no_host_and_can_be_deleted() {
    let world = World::new();
    world.api.seed_all(Fleet::of(2).prefix("w").flavor("worker").objects());
    let _refused = no_rights(&world);
    world.api.seed(asked());
    let _manager = world.manager("a");
    let message = world.condition(TENANT, "False", "InfraServiceFailure").await;
    assert!(message.contains("kubectl create rolebinding"), "{message}");
    let sip = world.sip(TENANT).expect("it is there");
    assert!(sip.status.is_some_and(|status| status.hosts.is_empty()), "hosts are reserved");
    delete(&world).await;
    world.until("it is gone", gone).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_namespace_loses_its_grant_lets_its_hosts_go_and_is_gone_with_its_pods() {
    let world = World::new();
    world.api.seed_all(Fleet::of(2).prefix("w").flavor("worker").objects());
    world.api.seed(asked());
    let first = world.manager("a");
    world.ready(TENANT).await;
    drop(first);
    let _refused = no_rights(&world);
    let _second = world.manager("b");
    delete(&world).await;
    // What the namespace controller does.
    for kind in ["Deployment", "Service", "Secret", "PodDisruptionBudget", "ConfigMap", "Pod"] {
        for name in world.api.names(kind).into_iter().filter(|name| name.starts_with("tenant/")) {
            world.api.remove(kind, &name);
        }
    }
    world.until("it is gone", gone).await;
    assert_eq!(world.counts(TENANT), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_later_is_noticed() {
    let world = World::new();
    world.api.seed_all(Fleet::of(2).prefix("w").flavor("worker").objects());
    let refused = no_rights(&world);
    world.api.seed(asked());
    let _manager = world.manager("a");
    world.condition(TENANT, "False", "InfraServiceFailure").await;
    world.api.faults().clear();
    drop(refused);
    world.ready(TENANT).await;
    assert_eq!(world.counts(TENANT), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_new_cluster_whose_labels_wait_for_a_service_says_which_and_why() {
    let world = World::new();
    world.api.seed_all(Fleet::of(2).prefix("w").flavor("worker").objects());
    let taken = "spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated";
    let services = Match::writes().kind("Service");
    world.api.faults().when(services).always().refuse(Refusal::Invalid(taken.into()));
    world.api.seed(asked());
    let _manager = world.manager("a");
    let message = world.condition(TENANT, "False", "InfraServiceFailure").await;
    assert!(message.contains("2 hosts are chosen") && message.contains("already allocated"), "{message}");
    world.api.faults().clear();
    world.ready(TENANT).await;
}
