//! A new cluster: all its hosts or none, and one choice, completed.

use api::sipcluster::HostState::{Chosen, Claimed};
use rstest::rstest;

use super::build::*;
use crate::site::{SecretFacts, Settings};

#[test]
fn the_choice_is_recorded_before_any_label() {
    let mut world = world(hosts(3), [cluster("edge").asks(WORKER, 2)]);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Chosen", "n1 Worker Chosen"]);
    assert!(plan.record_first);
    assert_eq!(labels(&plan), ["n0", "n1"]);
    assert!(!plan.whole && !plan.established);
    assert_eq!(plan.to_string(), "+ claim metal/n0 as Worker\n+ claim metal/n1 as Worker\n");
}

#[test]
fn a_carried_out_plan_leaves_an_empty_plan() {
    let mut world = world(hosts(3), [cluster("edge").asks(PLANE, 1).asks(WORKER, 2)]);
    let plan = world.settle("edge");
    assert_eq!(record(&plan), ["n0 ControlPlane Claimed", "n1 Worker Claimed", "n2 Worker Claimed"]);
    assert!(plan.whole && plan.established && !plan.record_first && plan.confirm.is_empty());
    assert_eq!(plan.to_string(), "");
    assert_eq!(world.labelled("edge"), ["n0", "n1", "n2"]);
}

#[test]
fn labels_that_were_seen_are_no_reason_to_write_the_record_first_but_are_confirmed() {
    let mut world = world(hosts(1), [cluster("edge").asks(WORKER, 1)]);
    world.turn("edge", 0);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    assert!(!plan.record_first);
    assert_eq!(plan.confirm.len(), 1);
    assert_eq!(plan.confirm[0].resource_version.as_deref(), Some("2"));
}

#[rstest]
#[case::too_few_hosts(cluster("edge").asks(WORKER, 4))]
#[case::too_few_for_one_of_two_roles(cluster("edge").asks(PLANE, 1).asks(WORKER, 3))]
#[case::standby_counts(cluster("edge").asks(WORKER, 2).standby(WORKER, 2))]
#[case::too_few_racks(cluster("edge").asks(WORKER, 3).per_rack(WORKER, 1))]
fn a_new_cluster_that_cannot_be_whole_takes_nothing(#[case] want: crate::want::Want) {
    let hosts = [host("n0").rack("r0"), host("n1").rack("r0"), host("n2").rack("r1")];
    let plan = world(hosts, [want]).plan("edge");
    assert_eq!(record(&plan), [""; 0]);
    assert!(blocked(&plan).starts_with("Unschedulable: role Worker: "), "{}", blocked(&plan));
    assert!(!plan.record_first && !plan.whole && !plan.established);
}

#[test]
fn what_blocks_a_cluster_says_what_there_is_and_what_would_do() {
    let mut world = world(hosts(1), [cluster("edge").asks(WORKER, 2)]);
    assert_eq!(
        blocked(&world.plan("edge")),
        "Unschedulable: role Worker: 2 more hosts needed, 1 can be placed: 1 host matches any labels: 1 free. \
         1 more free host that matches would do."
    );
}

#[test]
fn an_unfinished_choice_is_completed_and_never_made_again() {
    // Placement of today would choose n0 and n1.
    let unfinished = cluster("edge").asks(WORKER, 2).holds("n1", WORKER, Chosen).holds("n2", WORKER, Chosen);
    let mut world = world([host("n0"), host("n1").claimed("edge", WORKER), host("n2")], [unfinished]);
    let plan = world.plan("edge");
    assert_eq!(record(&plan), ["n1 Worker Claimed", "n2 Worker Chosen"]);
    assert_eq!(labels(&plan), ["n2"]);
    assert!(plan.record_first, "the record is proved to be current before a host is labelled");
}

#[rstest]
#[case::in_error(host("n1").in_error())]
#[case::used_by_somebody(host("n1").used())]
#[case::provisioned(host("n1").provisioned())]
#[case::in_quarantine(host("n1").released_from("other", WORKER, Some(0), false))]
#[case::labelled_by_people(host("n1").claimed("nobody", WORKER))]
#[case::partly_labelled_by_people(host("n1").torn())]
fn a_chosen_host_that_became_impossible_is_replaced(#[case] lost: crate::host::Host) {
    let unfinished = cluster("edge").asks(WORKER, 2).holds("n0", WORKER, Chosen).holds("n1", WORKER, Chosen);
    let mut world = world([host("n0"), lost, host("n2")], [unfinished]);
    let plan = world.settle("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed", "n2 Worker Claimed"]);
}

#[test]
fn a_choice_that_cannot_be_completed_is_given_back() {
    let unfinished = cluster("edge").asks(WORKER, 2).holds("n0", WORKER, Chosen).holds("n1", WORKER, Chosen);
    let mut world = world([host("n0").claimed("edge", WORKER), host("n1").in_error()], [unfinished]);
    let plan = world.settle("edge");
    assert_eq!(record(&plan), [""; 0]);
    assert_eq!(world.labelled("edge"), [""; 0]);
    assert!(blocked(&plan).starts_with("Unschedulable: "));
    assert!(!plan.established);
}

#[test]
fn a_stranger_that_uses_a_chosen_host_does_not_make_the_cluster_count_as_once_whole() {
    let unfinished = cluster("edge").asks(WORKER, 2).holds("n0", WORKER, Chosen).holds("n1", WORKER, Chosen);
    let mut world = world([host("n0"), host("n1").used()], [unfinished]);
    let plan = world.settle("edge");
    assert!(!plan.established);
    assert_eq!(record(&plan), [""; 0]);
    assert_eq!(world.labelled("edge"), [""; 0]);
}

#[test]
fn what_is_given_back_without_labels_but_was_used_by_a_stranger_is_left_alone() {
    let unfinished = cluster("edge").asks(WORKER, 1).holds("n0", WORKER, Chosen);
    let plan = world([host("n0").used()], [unfinished]).plan("edge");
    assert_eq!(plan.to_string(), "- give back metal/n0 (Worker)\n! ".to_owned() + &blocked(&plan) + "\n");
    assert!(!plan.depart[0].quarantine, "the quarantine would give its labels back to this cluster");
}

#[test]
fn addresses_are_read_when_a_host_is_chosen_and_again_only_while_nobody_uses_it() {
    let mut world = world([], []);
    world.site.settings = Settings { host_namespaces: None, ..Settings::default() };
    let facts = |address: &str| {
        let found = [("oam".to_owned(), address.to_owned())].into();
        Some(SecretFacts { network_data: Some(Ok(found)), credentials: true })
    };
    world.site.put_secret(&metal("a"), facts("192.0.2.1"));
    world.site.put_host(host("n0").reads("a"));
    world.site.put_cluster(cluster("edge").asks(WORKER, 1));
    world.settle("edge");
    let address = |plan: &crate::claims::Plan| plan.record[0].addresses["oam"].clone();
    world.site.put_secret(&metal("a"), facts("192.0.2.2"));
    assert_eq!(address(&world.plan("edge")), "192.0.2.2");
    world.settle("edge");
    world.edit("n0", crate::host::Host::used);
    world.site.put_secret(&metal("a"), facts("192.0.2.3"));
    assert_eq!(address(&world.plan("edge")), "192.0.2.2");
    world.site.put_secret(&metal("a"), None);
    assert_eq!(address(&world.plan("edge")), "192.0.2.2");
}

#[test]
fn two_hosts_with_one_address_are_noted_and_no_error() {
    let twice = |name| host(name).claimed("edge", WORKER).keeps("oam", "192.0.2.1");
    let plan = world([twice("n0"), twice("n1")], [cluster("edge").asks(WORKER, 2)]).settle("edge");
    assert_eq!(plan.to_string(), "? DuplicateAddress: 192.0.2.1 in network oam: metal/n0, metal/n1\n");
    assert!(plan.whole);
}

#[test]
fn a_role_without_count_takes_nothing() {
    let mut sip = api::SIPCluster::new("edge", api::SIPClusterSpec::default());
    sip.spec.nodes.insert(WORKER.into(), api::sipcluster::NodeSet::default());
    let want = crate::want::Want::from(&sip).of(TENANT);
    let plan = world(hosts(2), [want]).plan("edge");
    assert_eq!(record(&plan), [""; 0]);
    assert!(plan.whole && plan.blocked.is_none());
    assert_eq!((plan.roles[0].name.as_str(), plan.roles[0].desired), (WORKER, 0));
}

#[test]
fn a_wrong_spec_claims_nothing_and_releases_nothing() {
    let mut want = cluster("edge").holds("n0", WORKER, Claimed);
    want.invalid = Some("spec.nodes[Worker].count.active is negative".into());
    let plan = world([host("n0").claimed("edge", WORKER), host("n1")], [want]).plan("edge");
    assert_eq!(record(&plan), ["n0 Worker Claimed"]);
    assert_eq!(blocked(&plan), "InvalidSpec: spec.nodes[Worker].count.active is negative");
    assert!(!plan.whole && !plan.established && plan.depart.is_empty());
}
