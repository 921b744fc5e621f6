//! Two records that hold one host: one keeps it, the other touches it, drops it and takes a replacement.

use api::sipcluster::HostState::{Chosen, Claimed, Releasing};
use rstest::rstest;

use super::build::*;
use crate::{claims::keeper, host::Host, want::Want};

#[rstest]
#[case::the_one_whose_labels_it_carries(host("n0").claimed("young", WORKER), 1, 2, "young")]
#[case::even_if_in_use(host("n0").claimed("young", WORKER).used(), 1, 2, "young")]
#[case::without_labels_the_older(host("n0"), 2, 1, "young")]
#[case::of_the_same_age_by_name(host("n0"), 1, 1, "old")]
#[case::unknown_labels_decide_nothing(host("n0").claimed("nobody", WORKER), 1, 2, "old")]
fn one_keeps_it(#[case] host: Host, #[case] old: i64, #[case] young: i64, #[case] keeps: &str) {
    let clusters = [
        cluster("old").created(old).holds("n0", WORKER, Chosen),
        cluster("young").created(young).holds("n0", WORKER, Chosen),
    ];
    let world = world([host.clone()], clusters);
    assert_eq!(keeper(&world.site, &host), Some(&tenant(keeps)));
}

#[rstest]
#[case::taken_off(host("n0").used())]
#[case::some_taken_off(host("n0").torn().used())]
#[case::of_an_unknown_cluster(host("n0").claimed("nobody", WORKER).used())]
fn in_use_and_without_its_labels_it_stays_with_the_record_that_has_seen_them(#[case] host: Host) {
    let clusters = [
        cluster("old").created(1).holds("n0", WORKER, Chosen),
        cluster("young").created(2).holds("n0", WORKER, Claimed),
    ];
    assert_eq!(keeper(&world([host.clone()], clusters).site, &host), Some(&tenant("young")));
}

#[test]
fn a_record_of_another_host_under_the_same_name_holds_nothing() {
    let clusters = [cluster("edge").holds("n0", WORKER, Chosen)];
    let other = host("n0").of_uid("another");
    assert_eq!(keeper(&world([other.clone()], clusters).site, &other), None);
}

fn both() -> [Want; 2] {
    [
        cluster("old").created(1).asks(WORKER, 1).holds("n0", WORKER, Chosen),
        cluster("young").created(2).asks(WORKER, 1).holds("n0", WORKER, Chosen),
    ]
}

#[test]
fn the_other_touches_it_drops_it_and_takes_a_replacement() {
    let mut world = world([host("n0"), host("n1")], both());
    let plan = world.turn("young", 0);
    assert_eq!(record(&plan), ["n0 Worker Releasing", "n1 Worker Chosen"]);
    assert_eq!(notes(&plan), ["HostYielded"]);
    let depart = &plan.depart[0];
    assert!(!depart.labelled && !depart.quarantine && !depart.forced, "it is only touched: it is the other's");
    assert_eq!(record(&world.settle("young")), ["n1 Worker Claimed"]);
    assert_eq!(record(&world.settle("old")), ["n0 Worker Claimed"]);
}

#[test]
fn a_new_cluster_that_yields_and_finds_nothing_else_gives_all_back() {
    let [old, young] = both();
    let young = young.asks(WORKER, 2).holds("n1", WORKER, Claimed);
    let mut world = world([host("n0"), host("n1").claimed("young", WORKER)], [old, young]);
    assert_eq!(record(&world.settle("young")), [""; 0]);
    assert_eq!(record(&world.settle("old")), ["n0 Worker Claimed"]);
    assert_eq!(world.labelled("young"), [""; 0]);
}

#[test]
fn the_one_that_yields_never_takes_labels_of_the_other_off() {
    let mut world = world([host("n0").claimed("young", WORKER).used(), host("n1")], both());
    assert_eq!(record(&world.settle("old")), ["n1 Worker Claimed"]);
    assert_eq!(world.labelled("young"), ["n0"]);
}

#[test]
fn a_quarantine_names_a_cluster_only_where_its_labels_are_taken_off() {
    let going = |host: Host| {
        let want = cluster("edge").asks(WORKER, 0).holds("n0", WORKER, Releasing);
        let plan = world([host], [want]).plan("edge");
        plan.depart[0].released(&tenant("edge"), None).map(|r| r.cluster)
    };
    assert_eq!(going(host("n0").claimed("edge", WORKER)).as_deref(), Some("edge"));
    assert_eq!(going(host("n0").torn()).as_deref(), Some("edge"));
    assert_eq!(going(host("n0").used().forced("edge")).as_deref(), Some("edge"));
    assert_eq!(going(host("n0")).as_deref(), Some(""), "it may never have had labels of this cluster");
    assert_eq!(going(host("n0").used()), None);
}

#[test]
fn what_is_left_of_labels_is_taken_off_only_by_the_one_record_that_holds_the_host() {
    let leaving = |name: &str, created| cluster(name).created(created).asks(WORKER, 0).holds("n0", WORKER, Releasing);
    let mut both = world([host("n0").torn()], [leaving("old", 1), leaving("young", 2)]);
    let depart = both.plan("old").depart.remove(0);
    assert!(!depart.labelled && !depart.quarantine, "they may have been those of the other");
    assert!(world([host("n0").torn()], [leaving("old", 1)]).plan("old").depart[0].labelled);
}
