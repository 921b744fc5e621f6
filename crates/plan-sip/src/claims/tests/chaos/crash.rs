//! A leader that stops between any two writes: the next one completes the same choice, and the late one changes nothing.

use super::{CLUSTERS, World, asking, manager::Manager};
use crate::{
    claims::tests::build::{PLANE, WORKER, host, metal, tenant},
    host::{Claim, Host},
    want::Want,
};

/// The names of the hosts labelled for the first cluster.
fn labelled(world: &World) -> Vec<String> {
    let ours = |h: &&Host| h.is_claimed_by(&tenant(CLUSTERS[0]));
    world.truth.hosts.values().filter(ours).map(|h| h.key.name.clone()).collect()
}

/// A world with one cluster of one plane and two workers, whose first manager has decided and made so many writes.
fn stopped_after(writes: usize) -> World {
    let mut world = World::new(&[]);
    world.truth.put_cluster(asking(0, 0, 1, 2));
    world.managers[0].see_all(&world.truth);
    world.managers[0].decide(&tenant(CLUSTERS[0]));
    for _ in 0..writes {
        world.managers[0].step(&mut world.truth, true).expect("alone");
    }
    world
}

/// Confirmation, record, three labels, status.
const WRITES: usize = 6;

#[test]
fn the_next_leader_completes_the_same_choice_though_it_would_choose_otherwise_by_now() {
    for writes in 2..=WRITES {
        let mut world = stopped_after(writes);
        let record = &world.truth.clusters[&tenant(CLUSTERS[0])].record;
        let mut chosen: Vec<_> = record.iter().map(|e| e.name.clone()).collect();
        chosen.sort();
        assert_eq!(chosen, ["n1", "n2", "n3"], "after {writes} writes");
        // Hosts that come first in the fixed order of placement.
        for (flavor, rack) in [(PLANE, "r0"), (WORKER, "r0"), (WORKER, "r1")] {
            world.truth.put_host(host(&format!("a-{flavor}-{rack}")).rack(rack).label("flavor", flavor));
        }
        let mut next = Manager::new();
        next.settle(&mut world.truth).expect("alone");
        assert_eq!(labelled(&world), chosen, "after {writes} writes");
        // The first one wakes up with the rest of its writes.
        world.managers[0].run(&mut world.truth).expect("late, and harmless");
        next.settle(&mut world.truth).expect("alone");
        assert_eq!(labelled(&world), chosen, "after {writes} writes");
    }
}

#[test]
fn a_host_that_the_next_leader_dropped_is_not_labelled_by_the_late_one() {
    for writes in 2..=WRITES {
        let mut world = stopped_after(writes);
        let had: Vec<_> = labelled(&world);
        world.truth.edit(&metal("n1"), Host::in_error);
        let mut next = Manager::new();
        next.settle(&mut world.truth).expect("alone");
        world.truth.edit(&metal("n1"), |h| Host { unfit: None, ..h });
        world.managers[0].see_hosts(&world.truth, usize::MAX);
        world.managers[0].run(&mut world.truth).expect("late, and harmless");
        let takes_part = labelled(&world).contains(&"n1".to_owned());
        assert_eq!(takes_part, had.contains(&"n1".to_owned()), "after {writes} writes");
    }
}

#[test]
fn a_release_is_finished_by_the_next_leader_and_not_repeated_by_the_late_one() {
    for writes in 0..=4 {
        let mut world = stopped_after(WRITES);
        world.managers[0].settle(&mut world.truth).expect("alone");
        world.truth.put_cluster(Want {
            record: world.truth.clusters[&tenant(CLUSTERS[0])].record.clone(),
            ..asking(0, 0, 1, 1).established()
        });
        world.managers[0].see_all(&world.truth);
        world.managers[0].decide(&tenant(CLUSTERS[0]));
        for _ in 0..writes {
            world.managers[0].step(&mut world.truth, true).expect("alone");
        }
        let mut next = Manager::new();
        next.settle(&mut world.truth).expect("alone");
        assert_eq!(labelled(&world), ["n1", "n3"], "after {writes} writes");
        world.managers[0].run(&mut world.truth).expect("late, and harmless");
        assert_eq!(labelled(&world), ["n1", "n3"], "after {writes} writes");
        assert_eq!(world.truth.hosts[&metal("n2")].claim, Claim::Free);
    }
}

#[test]
fn a_manager_whose_record_is_behind_its_hosts_labels_nothing() {
    let mut world = stopped_after(2);
    let workers = ["n1", "n4", "n5"];
    world.managers[1].see_all(&world.truth);
    for name in workers {
        world.truth.edit(&metal(name), Host::in_error);
    }
    Manager::new().settle(&mut world.truth).expect("alone");
    for name in workers {
        world.truth.edit(&metal(name), |h| Host { unfit: None, ..h });
    }
    assert_eq!(labelled(&world), [""; 0], "two workers could not be had, so all was given back");
    let late = &mut world.managers[1];
    late.see_hosts(&world.truth, usize::MAX);
    late.decide(&tenant(CLUSTERS[0]));
    late.run(&mut world.truth).expect("late, and harmless");
    assert_eq!(labelled(&world), [""; 0], "the versions of the hosts were right, that of the record was not");
}

#[test]
fn a_host_that_is_no_longer_wanted_is_touched_before_it_leaves_the_record() {
    for writes in 2..WRITES {
        let mut world = stopped_after(writes);
        let record = world.truth.clusters[&tenant(CLUSTERS[0])].record.clone();
        world.truth.put_cluster(Want { record, ..asking(0, 0, 0, 0) });
        // One leader writes only the record, that they are leaving; the one after it does the rest.
        let mut next = Manager::new();
        next.see_all(&world.truth);
        next.decide(&tenant(CLUSTERS[0]));
        for _ in 0..2 {
            next.step(&mut world.truth, true).expect("alone");
        }
        Manager::new().settle(&mut world.truth).expect("alone");
        world.managers[0].run(&mut world.truth).expect("late, and harmless");
        assert_eq!(labelled(&world), [""; 0], "after {writes} writes");
    }
}

#[test]
fn a_manager_that_has_not_seen_a_new_host_does_not_call_it_lost() {
    let mut world = World::new(&[]);
    let key = tenant(CLUSTERS[0]);
    world.managers[1].see_all(&world.truth);
    world.truth.put_host(host("new").rack("r7").label("flavor", "new"));
    world.truth.put_cluster(asking(0, 0, 1, 0).with(PLANE, "flavor", "new"));
    world.managers[0].see_all(&world.truth);
    world.managers[0].decide(&key);
    world.managers[0].run(&mut world.truth).expect("alone");
    let record = world.truth.clusters[&key].record.clone();
    assert_eq!(record.len(), 1);
    let behind = &mut world.managers[1];
    behind.see_clusters(&world.truth, usize::MAX);
    behind.decide(&key);
    behind.run(&mut world.truth).expect("behind, and harmless");
    assert_eq!(world.truth.clusters[&key].record, record);
}
