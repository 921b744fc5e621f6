//! Releases: labels go when the backends have let go, nobody uses the host, and in one write with the quarantine.

use api::sipcluster::HostState::{Chosen, Claimed, Releasing};
use rstest::rstest;

use super::build::*;
use crate::host::Host;

fn of(name: &str) -> Host {
    host(name).claimed("edge", WORKER)
}

#[test]
fn a_release_is_recorded_first_and_the_host_leaves_the_record_after_its_labels() {
    let mut world = world([of("n0")], [cluster("edge").asks(WORKER, 0).established().holds("n0", WORKER, Claimed)]);
    let first = world.turn("edge", 100);
    assert_eq!(record(&first), ["n0 Worker Releasing"]);
    assert!(first.record_first && first.depart[0].labelled && first.depart[0].quarantine && !first.depart[0].forced);
    let released = world.site.host(&metal("n0")).expect("still there").released.clone().expect("in quarantine");
    assert_eq!((released.cluster.as_str(), released.role.as_str()), ("edge", WORKER));
    let then = world.turn("edge", 100);
    assert_eq!(record(&then), [""; 0]);
    assert!(then.record_first && then.depart.is_empty());
    assert_eq!(then.confirm.len(), 1, "that the labels are off has to be read live");
}

#[test]
fn a_release_begun_is_finished_by_whoever_comes_next() {
    let want = || cluster("edge").asks(WORKER, 1).established().holds("n0", WORKER, Releasing);
    let plan = world([of("n0"), host("n1")], [want()]).plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Releasing", "n1 Worker Chosen"], "even if it is wanted again by now");
    assert_eq!(departs(&plan), ["n0"]);
}

#[rstest]
#[case::consumed(of("n0").used())]
#[case::provisioned(of("n0").provisioned())]
fn a_host_used_again_before_its_labels_went_keeps_them(#[case] used: Host) {
    let want = cluster("edge").asks(WORKER, 0).established().holds("n0", WORKER, Releasing);
    let mut world = world([used], [want]);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    assert!(plan.depart.is_empty() && plan.record_first);
    assert_eq!(plan.confirm.len(), 1);
    assert_eq!(world.settle("edge").waiting.len(), 1);
    assert_eq!(world.labelled("edge"), ["n0"]);
}

#[rstest]
#[case::used(of("n0").used().forced("edge"), true)]
#[case::idle(of("n0").forced("edge"), true)]
#[case::for_another_cluster(of("n0").used().forced("other"), false)]
#[case::unreadable(Host { force_release: Some("edge".into()), ..of("n0").used() }, false)]
fn an_administrator_may_take_a_host_that_is_in_use_by_name(#[case] host: Host, #[case] goes: bool) {
    let want = cluster("edge").asks(WORKER, 1).established().holds("n0", WORKER, Claimed);
    let mut world = world([host], [want]);
    let plan = world.settle("edge");
    assert_eq!(record(&plan).is_empty(), goes);
    let host = world.site.host(&metal("n0")).expect("still there");
    assert_eq!(host.released.as_ref().is_some_and(|r| r.forced), goes);
    if goes {
        assert_eq!(host.force_release, None, "it is taken off once acted on");
    }
}

#[test]
fn what_is_forced_out_says_so() {
    let want = cluster("edge").asks(WORKER, 1).established().holds("n0", WORKER, Claimed);
    let plan = world([of("n0").used().forced("edge"), host("n1")], [want]).plan("edge");
    assert_eq!(
        plan.to_string(),
        "- release, forced metal/n0 (Worker)\n+ claim metal/n1 as Worker\n"
            .lines()
            .rev()
            .map(|l| l.to_owned() + "\n")
            .collect::<String>()
    );
    assert!(plan.depart[0].forced && plan.depart[0].quarantine);
}

#[rstest]
#[case::no_longer_labelled(host("n0").used().forced("edge"), Claimed)]
#[case::partly_labelled(host("n0").torn().used().forced("edge"), Claimed)]
#[case::not_yet_labelled(host("n0").forced("edge"), Chosen)]
fn a_forced_release_is_one_whatever_became_of_the_labels(
    #[case] host: Host,
    #[case] state: api::sipcluster::HostState,
) {
    let want = cluster("edge").asks(WORKER, 1).established().holds("n0", WORKER, state);
    let mut world = world([host], [want]);
    let plan = world.plan("edge");
    assert!(plan.label.is_empty() && plan.depart[0].forced && plan.depart[0].quarantine);
    assert_eq!(notes(&plan), [""; 0]);
    world.settle("edge");
    let host = world.site.host(&metal("n0")).expect("still there");
    assert!(host.force_release.is_none() && host.claim == crate::host::Claim::Free);
}
