//! A cluster that is being deleted: no new claims, it waits for its consumers by name, then it is finished.

use api::sipcluster::HostState::{Chosen, Claimed};

use super::build::*;
use crate::host::Host;

#[test]
fn it_waits_for_hosts_in_use_by_name_and_gives_the_others_back() {
    let want = cluster("edge")
        .established()
        .holds("n0", WORKER, Claimed)
        .holds("n1", WORKER, Claimed)
        .holds("n2", PLANE, Chosen)
        .deleting();
    let hosts = [host("n0").claimed("edge", WORKER).used(), host("n1").claimed("edge", WORKER), host("n2"), host("n3")];
    let mut world = world(hosts, [want]);
    let plan = world.settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    assert_eq!(
        blocked(&plan),
        "UnableToDecommission: metal/n0 (Worker) is used by Metal3Machine tenant/m. The deletion goes on once nobody uses \
         it: delete what does (for Cluster API, the Cluster); to let a machine go while it runs, annotate its \
         BareMetalHost with sip.airshipit.org/force-release=tenant/edge"
    );
    assert!(!plan.finished);
    assert_eq!(world.labelled("edge"), ["n0"]);

    world.edit("n0", Host::unused);
    let plan = world.settle("edge");
    assert!(plan.finished && plan.blocked.is_none());
    assert_eq!(world.labelled("edge"), [""; 0]);
}

#[test]
fn it_is_not_finished_before_the_last_host_has_left_its_record() {
    let want = cluster("edge").holds("n0", WORKER, Claimed).deleting();
    let mut world = world([host("n0").claimed("edge", WORKER)], [want]);
    assert!(!world.turn("edge", 0).finished);
    assert!(world.turn("edge", 0).finished);
}

#[test]
fn labels_without_a_record_are_given_back_too() {
    let mut world = world([host("n0").claimed("edge", WORKER)], [cluster("edge").deleting()]);
    assert!(!world.plan("edge").finished);
    assert!(world.settle("edge").finished);
    assert_eq!(world.labelled("edge"), [""; 0]);
}

#[test]
fn it_neither_replaces_nor_chooses() {
    let want = cluster("edge").asks(WORKER, 2).established().replacing().holds("n0", WORKER, Claimed).deleting();
    let plan = world([host("n0").claimed("edge", WORKER).in_error().used(), host("n1")], [want]).settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
}

#[test]
fn what_is_gone_does_not_hold_it_up() {
    let plan = world([], [cluster("edge").holds("n0", WORKER, Claimed).deleting()]).settle("edge");
    assert!(plan.finished);
}

#[test]
fn a_long_list_of_consumers_is_cut() {
    let names: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
    let want = names.iter().fold(cluster("edge"), |want, name| want.holds(name, WORKER, Claimed)).deleting();
    let hosts = names.iter().map(|name| host(name).claimed("edge", WORKER).used());
    assert!(blocked(&world(hosts, [want]).plan("edge")).contains("; and 3 more. "));
}
