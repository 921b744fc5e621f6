//! A cluster that has once been whole: it takes what it can get, and SIP never chooses which running machine dies.

use api::sipcluster::{HostState::Claimed, RoleStatus};
use rstest::rstest;

use super::build::*;
use crate::{host::Host, want::Want};

fn of(name: &str) -> Host {
    host(name).claimed("edge", WORKER)
}

/// A cluster that was whole with these hosts.
fn whole(names: &[&str], asked: u32) -> Want {
    names.iter().fold(cluster("edge").asks(WORKER, asked).established(), |want, name| want.holds(name, WORKER, Claimed))
}

#[test]
fn it_takes_what_it_can_get_control_plane_first() {
    let want = cluster("edge").asks(PLANE, 2).asks(WORKER, 2).established();
    let plan = world(hosts(3), [want]).plan("edge");
    assert_eq!(record(&plan), ["n0 ControlPlane Chosen", "n1 ControlPlane Chosen", "n2 Worker Chosen"]);
    assert!(blocked(&plan).starts_with("Unschedulable: role Worker: 2 more hosts needed, 1 can be placed"));
}

#[rstest]
#[case::consumed(of("n0").used())]
#[case::provisioned(of("n0").provisioned())]
fn a_host_in_use_counts_as_once_whole(#[case] used: Host) {
    let plan = world([used, host("n1")], [cluster("edge").asks(WORKER, 3)]).plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed", "n1 Worker Chosen"]);
    assert!(plan.established);
}

#[test]
fn releases_never_wait_for_a_role_that_is_short() {
    let want = whole(&["n0", "n1"], 1).asks(PLANE, 5);
    let plan = world([of("n0"), of("n1")], [want]).plan("edge");
    assert_eq!(departs(&plan), ["n1"]);
    assert!(blocked(&plan).starts_with("Unschedulable: role ControlPlane"));
}

#[test]
fn surplus_goes_unhealthy_first_then_what_breaks_the_rules_then_the_newest_then_by_name() {
    let hosts = || {
        [
            of("n0").rack("r0"),
            of("n1").rack("r1"),
            of("n2").rack("r1"),
            of("n3").rack("r3").in_error(),
            of("n4").rack("r4"),
        ]
    };
    let going = |asked: u32| {
        let want =
            Want { roles: whole(&[], asked).per_rack(WORKER, 1).roles, ..whole(&["n0", "n1", "n2", "n3", "n4"], 0) };
        let plan = world(hosts(), [want]).plan("edge");
        departs(&plan).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(going(4), ["n3"]);
    assert_eq!(going(3), ["n2", "n3"]);
    assert_eq!(going(2), ["n1", "n2", "n3"]);
    assert_eq!(going(1), ["n1", "n2", "n3", "n4"]);
    assert_eq!(going(0), ["n0", "n1", "n2", "n3", "n4"]);
}

#[test]
fn surplus_in_use_stays_labelled_and_is_reported_while_idle_surplus_goes() {
    let want = whole(&["n0", "n1", "n2", "n3"], 1);
    let mut world = world([of("n0").used(), of("n1"), of("n2").used(), of("n3").used()], [want]);
    let plan = world.plan("edge");
    assert_eq!(departs(&plan), ["n1"]);
    assert_eq!(
        plan.to_string(),
        "- release metal/n1 (Worker)\n\
         - release metal/n3 (Worker) when nobody uses it\n\
         - release metal/n2 (Worker) when nobody uses it\n\
         ? SurplusInUse: 2 surplus hosts wait until nobody uses them: metal/n3 (Worker) is used by Metal3Machine tenant/m; \
         metal/n2 (Worker) is used by Metal3Machine tenant/m\n"
    );
    let counts = RoleStatus { name: WORKER.into(), desired: 1, claimed: 3, standby: 0, waiting: 2 };
    assert_eq!(plan.roles, [counts]);
    assert!(plan.whole && plan.blocked.is_none());
}

#[test]
fn whenever_a_host_is_no_longer_used_the_choice_is_made_anew() {
    let mut world = world([of("n0").used(), of("n1").used()], [whole(&["n0", "n1"], 1)]);
    assert_eq!(world.settle("edge").waiting, [(WORKER.to_owned(), metal("n1"))]);
    world.edit("n0", Host::unused);
    assert_eq!(
        departs(&world.plan("edge")),
        ["n0"],
        "SIP took the one that the tenant gave up, not the one it had in mind"
    );
    world.settle("edge");
    assert_eq!(world.labelled("edge"), ["n1"]);
}

#[rstest]
#[case::the_role_is_gone(cluster("edge").asks(PLANE, 0))]
#[case::its_count_is_zero(cluster("edge").asks(WORKER, 0))]
fn a_role_that_is_no_longer_wanted_gives_its_hosts_back(#[case] want: Want) {
    let want = Want { record: whole(&["n0", "n1"], 0).record, established: true, ..want };
    let mut world = world([of("n0"), of("n1").used()], [want]);
    let plan = world.settle("edge");
    assert_eq!(record(&plan), ["n1 Worker Claimed"]);
    assert_eq!(notes(&plan), ["SurplusInUse"]);
}

#[test]
fn hosts_that_break_a_rule_are_reported_and_stay() {
    let want = whole(&["n0", "n1"], 2).per_rack(WORKER, 1);
    let plan = world([of("n0").rack("r0"), of("n1").rack("r0"), host("n2").rack("r1")], [want]).settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed", "n1 Worker Claimed"]);
    assert_eq!(
        plan.to_string(),
        "? SpreadViolated: role Worker: 2 hosts share rack=r0, at most 1 may: metal/n0; metal/n1; nothing is moved\n"
    );
    assert!(plan.whole);
}

#[test]
fn the_room_of_a_domain_is_what_owned_and_leaving_hosts_leave_of_it() {
    let mut want = whole(&["n0"], 1).per_rack(WORKER, 1);
    want.record[0].state = api::sipcluster::HostState::Releasing;
    let plan = world([of("n0").rack("r0"), host("n1").rack("r0"), host("n2").rack("r1")], [want]).plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Releasing", "n2 Worker Chosen"]);
}

#[test]
fn a_bad_host_is_reported_and_kept() {
    let plan = world([of("n0").in_error(), host("n1")], [whole(&["n0"], 1)]).settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    let said = "? HostUnhealthy: metal/n0: in error (no power); kept, since spec.replace is Never; WhenUnconsumed would \
                replace it once nobody uses it\n";
    assert_eq!(plan.to_string(), said);
}

#[test]
fn a_bad_host_is_replaced_where_the_spec_says_so_and_goes_when_another_has_come() {
    let mut world = world([of("n0").in_error(), host("n1")], [whole(&["n0"], 1).replacing()]);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Releasing", "n1 Worker Chosen"]);
    world.settle("edge");
    assert_eq!(world.labelled("edge"), ["n1"]);
}

#[rstest]
#[case::nobody_else(vec![of("n0").in_error()], "kept until another host is free to take its place")]
#[case::still_used(vec![of("n0").in_error().used(), host("n1")], "kept until nobody uses it, then replaced")]
fn a_bad_host_that_cannot_be_replaced_stays_and_blocks_nothing(#[case] hosts: Vec<Host>, #[case] fate: &str) {
    let still_used = hosts[0].in_use();
    let plan = world(hosts, [whole(&["n0"], 1).replacing()]).settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    assert_eq!(notes(&plan).contains(&"ReplacementMissing"), !still_used);
    assert!(plan.to_string().contains(&format!("? HostUnhealthy: metal/n0: in error (no power); {fate}\n")), "{plan}");
    assert_eq!(plan.seeks, !still_used, "a host that comes free is asked for");
    assert!(plan.blocked.is_none());
}

#[test]
fn a_bad_host_that_alone_keeps_its_rack_from_the_one_that_could_replace_it_goes_first() {
    let hosts = [of("n0").rack("r0").in_error(), of("n1").rack("r1"), of("n2").rack("r2"), host("n3").rack("r0")];
    let want = whole(&["n0", "n1", "n2"], 3).per_rack(WORKER, 1).replacing();
    let mut world = world(hosts, [want]);
    assert_eq!(departs(&world.plan("edge")), ["n0"]);
    world.settle("edge");
    assert_eq!(world.labelled("edge"), ["n1", "n2", "n3"]);
}

#[test]
fn of_two_bad_hosts_that_are_in_the_way_one_goes_at_a_time() {
    let hosts =
        [of("n0").rack("r0").in_error(), of("n1").rack("r1").in_error(), host("n2").rack("r0"), host("n3").rack("r1")];
    let mut world = world(hosts, [whole(&["n0", "n1"], 2).per_rack(WORKER, 1).replacing()]);
    assert_eq!(departs(&world.plan("edge")), ["n0"]);
    world.settle("edge");
    assert_eq!(world.labelled("edge"), ["n2", "n3"]);
}

#[test]
fn a_bad_host_whose_rack_has_no_other_stays_and_the_reason_is_told() {
    let hosts = [of("n0").rack("r0").in_error(), of("n1").rack("r1"), host("n2").rack("r1")];
    let plan = world(hosts, [whole(&["n0", "n1"], 2).per_rack(WORKER, 1).replacing()]).settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed", "n1 Worker Claimed"]);
    let note = plan.notes.iter().find(|note| note.parts().0 == "ReplacementMissing").expect("it is told");
    assert!(
        note.parts().1.starts_with("no host can take the place of metal/n0 (Worker): role Worker: 1 more"),
        "{plan}"
    );
}

#[test]
fn missing_hosts_come_before_replacements_and_only_they_block() {
    let want = whole(&["n0"], 2).replacing();
    let plan = world([of("n0").in_error(), host("n1")], [want]).plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed", "n1 Worker Chosen"]);
    assert!(plan.blocked.is_none());
}

#[test]
fn a_new_cluster_with_a_bad_host_that_cannot_be_replaced_is_not_undone() {
    let want = Want { established: false, ..whole(&["n0"], 1).replacing() };
    let plan = world([of("n0").in_error()], [want]).settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    assert!(plan.established && plan.blocked.is_none());
}

#[test]
fn a_host_that_is_gone_leaves_the_record_and_is_replaced() {
    let mut world = world([of("n0"), host("n2")], [whole(&["n0", "n1"], 2)]);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed", "n2 Worker Chosen"]);
    assert_eq!(notes(&plan), ["HostLost"]);
    assert_eq!(plan.confirm[0].host, metal("n1"));
    assert_eq!(plan.confirm[0].resource_version, None, "that it is gone has to be read live");
}

#[test]
fn a_host_made_anew_is_another_host() {
    let mut world = world([host("n0").of_uid("another")], [whole(&["n0"], 1)]);
    let plan = world.plan("edge");
    assert_eq!(notes(&plan), ["HostLost"]);
    assert_eq!((record(&plan), plan.record[0].uid.as_str()), (vec!["n0 Worker Chosen".into()], "another"));
}

#[test]
fn a_lost_record_is_rebuilt_from_labels_and_addresses() {
    let want = Want { record: Vec::new(), ..whole(&[], 2) };
    let mut world = world([of("n0").used().keeps("oam", "192.0.2.1"), of("n1"), host("n2")], [want]);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed", "n1 Worker Claimed"]);
    assert_eq!(plan.record[0].addresses["oam"], "192.0.2.1");
    assert!(plan.record_first && plan.label.is_empty());
    assert_eq!(plan.confirm.len(), 2, "a stale view must not bring hosts back");
}
