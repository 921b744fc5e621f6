//! Labels that people changed: restored on a host in use, given back on an idle one, never cleaned where unknown.

use api::sipcluster::HostState::{Chosen, Claimed, Releasing};
use rstest::rstest;

use super::build::*;
use crate::host::{Claim, Host};

fn one(host: Host) -> World {
    world([host], [cluster("edge").asks(WORKER, 1).established().holds("n0", WORKER, Claimed)])
}

#[rstest]
#[case::taken_off(host("n0").used())]
#[case::taken_off_while_provisioned(host("n0").provisioned())]
#[case::some_taken_off(host("n0").torn().used())]
#[case::for_a_cluster_that_does_not_exist(host("n0").claimed("nobody", WORKER).used())]
#[case::another_role(host("n0").claimed("edge", PLANE).used())]
fn on_a_host_in_use_they_are_restored(#[case] host: Host) {
    let mut world = one(host);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    assert_eq!(notes(&plan), ["LabelsRestored"]);
    assert!(plan.label[0].restored && plan.record_first);
    let plan = world.settle("edge");
    assert_eq!((record(&plan), notes(&plan)), (vec!["n0 Worker Claimed".into()], vec![]));
    assert!(
        world
            .site
            .host(&metal("n0"))
            .is_some_and(|h| h.claim == Claim::By { cluster: tenant("edge"), role: WORKER.into() })
    );
}

#[rstest]
#[case::taken_off(host("n0"), true)]
#[case::some_taken_off(host("n0").torn(), true)]
#[case::for_a_cluster_that_does_not_exist(host("n0").claimed("nobody", WORKER), false)]
fn on_an_idle_host_it_counts_as_given_back(#[case] host: Host, #[case] quarantine: bool) {
    let mut world = one(host);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Releasing"]);
    assert_eq!(notes(&plan), ["GivenBack"]);
    assert_eq!(plan.depart[0].quarantine, quarantine);
    let plan = world.settle("edge");
    assert_eq!(record(&plan), [""; 0]);
    let claim = &world.site.host(&metal("n0")).expect("still there").claim;
    let unknown = Claim::By { cluster: tenant("nobody"), role: WORKER.into() };
    assert_eq!(*claim, if quarantine { Claim::Free } else { unknown }, "unknown labels are never cleaned");
}

#[test]
fn a_consumer_that_saw_the_labels_before_they_were_taken_off_finds_a_quarantine() {
    let mut world = one(host("n0"));
    world.site.put_host(host("n1"));
    world.site.put_cluster(cluster("other").asks(WORKER, 2));
    world.settle("edge");
    let message = blocked(&world.plan("other"));
    assert!(message.contains("1 in quarantine") && message.contains("metal/n0: until 1970-01-01T00:"), "{message}");
}

#[test]
fn a_force_released_host_gets_no_labels_back() {
    let mut world = one(host("n0").used().released_from("edge", WORKER, None, true));
    let plan = world.settle("edge");
    assert_eq!(record(&plan), [""; 0]);
    assert_eq!(world.labelled("edge"), [""; 0]);
}

#[test]
fn another_role_on_an_idle_host_is_taken_over() {
    let want = cluster("edge").asks(PLANE, 1).established().holds("n0", WORKER, Claimed);
    let plan = world([host("n0").claimed("edge", PLANE)], [want]).settle("edge");
    assert_eq!(record(&plan), ["n0 ControlPlane Claimed"]);
}

#[test]
fn labels_of_another_cluster_on_an_idle_host_give_it_to_that_cluster() {
    let clusters = [
        cluster("edge").asks(WORKER, 1).established().holds("n0", WORKER, Claimed),
        cluster("other").asks(WORKER, 1).established(),
    ];
    let mut world = world([host("n0").claimed("other", WORKER)], clusters);
    let plan = world.plan("edge");
    assert_eq!(plan.notes[0].parts(), ("HostYielded", "metal/n0 belongs to tenant/other"));
    assert!(!plan.depart[0].labelled && !plan.depart[0].quarantine, "it is only touched");
    assert_eq!(record(&world.settle("edge")), [""; 0]);
    assert_eq!(record(&world.settle("other")), ["n0 Worker Claimed"]);
}

#[rstest]
#[case::the_one_that_had_it_first("edge")]
#[case::the_one_that_was_named_first("other")]
fn labels_of_another_cluster_on_a_host_in_use_are_put_right_whoever_looks_first(#[case] first: &str) {
    let clusters = [
        cluster("edge").asks(WORKER, 1).established().holds("n0", WORKER, Claimed),
        cluster("other").asks(WORKER, 1).established(),
    ];
    let mut world = world([host("n0").claimed("other", WORKER).used()], clusters);
    world.turn(first, 0);
    world.turn("edge", 0);
    assert_eq!(world.labelled("edge"), ["n0"]);
    assert_eq!(record(&world.settle("other")), [""; 0]);
}

#[rstest]
#[case::free(host("n0"))]
#[case::torn(host("n0").torn())]
fn a_host_being_released_whose_labels_people_took_off_is_released(#[case] host: Host) {
    let want = cluster("edge").asks(WORKER, 0).established().holds("n0", WORKER, Releasing);
    let mut world = world([host], [want]);
    assert_eq!(record(&world.settle("edge")), [""; 0]);
    let host = world.site.host(&metal("n0")).expect("still there");
    assert!(host.claim == Claim::Free && host.released.is_some());
}

#[test]
fn a_host_being_released_that_people_labelled_for_nobody_known_leaves_the_record() {
    let want = cluster("edge").asks(WORKER, 0).established().holds("n0", WORKER, Releasing);
    let mut world = world([host("n0").claimed("nobody", WORKER)], [want]);
    assert_eq!(record(&world.settle("edge")), [""; 0]);
}

#[test]
fn labels_seen_by_nobody_yet_are_set_again() {
    let want = cluster("edge").asks(WORKER, 1).holds("n0", WORKER, Chosen);
    assert_eq!(record(&world([host("n0")], [want]).settle("edge")), ["n0 Worker Claimed"]);
}

#[test]
fn hosts_that_people_labelled_are_taken_up() {
    let plan = world([host("n3").claimed("edge", WORKER)], [cluster("edge").asks(WORKER, 1)]).settle("edge");
    assert_eq!(record(&plan), ["n3 Worker Claimed"]);
    assert!(plan.established);
}

#[test]
fn partly_labelled_hosts_of_nobody_are_nobodys_and_not_cleaned() {
    let mut world = world([host("n0").torn()], [cluster("edge").asks(WORKER, 1)]);
    let plan = world.settle("edge");
    assert!(
        blocked(&plan).contains("1 labelled for an unknown cluster (metal/n0: some of the claim labels are missing)")
    );
    assert_eq!(world.site.host(&metal("n0")).expect("still there").claim, Claim::Torn);
}

#[test]
fn an_annotation_that_would_force_a_host_out_of_another_cluster_is_told_of() {
    let wrong = Host { force_release: Some("tenant/edgy".to_owned()), ..host("n0").claimed("edge", WORKER).used() };
    let plan = one(wrong).settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    assert_eq!(
        plan.to_string(),
        "? ForceReleaseIgnored: metal/n0: annotation sip.airshipit.org/force-release names \"tenant/edgy\", and the host \
         belongs to tenant/edge: only that name releases it\n"
    );
}
