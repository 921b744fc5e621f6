//! Cores, memory and huge pages on machines of many shapes.

use api::vinonode::{Hugepages, NodeVm, NumaPolicy, VinoNodeSpec};
use hypervisor::{Domain, DomainSpec, Placement};
use plan_node::room;
use rstest::rstest;
use testkit::hypervisor::Shape;

use crate::fixture::{
    absent, bare, carried_out, cores, cpus, domain, numa, planned, reasons, shared, switch_on, uuid, vm, with,
};

#[rstest]
#[case::one_core(Shape::cells(1).cores(4), 1, "0")]
#[case::four_cores(Shape::cells(1).cores(4), 4, "0-3")]
#[case::hyper_threads_together(Shape::cells(1).cores(4).threads(2), 2, "0,4")]
#[case::an_odd_number_takes_whole_cores(Shape::cells(1).cores(4).threads(2), 3, "0-1,4")]
#[case::two_cells(Shape::cells(2).cores(2), 2, "0-1")]
#[case::the_smallest_cell_that_fits(Shape::cells(2).cores(4).offline("5-7"), 1, "4")]
#[case::eight_cells(Shape::cells(8).cores(4).threads(2).offline("0-3,32-35"), 8, "4-7,36-39")]
#[case::holes_in_the_numbers(Shape::cells(2).numbered(&[0, 5]).cores(2).offline("0"), 2, "2-3")]
#[case::a_thread_switched_off(Shape::cells(1).cores(4).threads(2).offline("4"), 3, "0-1,5")]
#[case::a_cell_of_memory_alone(Shape::cells(1).cores(2).memory_only(1), 2, "0-1")]
fn whole_cores_of_one_cell(#[case] shape: Shape, #[case] vcpus: i32, #[case] expected: &str) {
    let seen = carried_out(&with(1, [cpus(vcpus, vm(0))]), bare(&shape));
    assert_eq!(cores(&seen, 0), expected);
    let placement = &seen.domains[&uuid(0)].spec.placement;
    assert!(placement.strict && placement.cells.len() == 1);
    assert!(placement.pins.iter().all(|pin| pin.len() == 1));
}

#[test]
fn hyper_threads_are_shown_to_the_guest_where_all_its_cores_have_them() {
    let threads =
        |shape: Shape, vcpus| carried_out(&with(1, [cpus(vcpus, vm(0))]), bare(&shape)).domains[&uuid(0)].spec.threads;
    assert_eq!(threads(Shape::cells(1).threads(2), 4), 2);
    assert_eq!(threads(Shape::cells(1).threads(2), 3), 1);
    assert_eq!(threads(Shape::cells(1), 4), 1);
}

#[test]
fn reserved_cores_are_nobodys_with_all_their_threads() {
    let spec = VinoNodeSpec { cpu_exclude: Some("0-1".into()), ..with(1, [cpus(4, vm(0))]) };
    let seen = carried_out(&spec, bare(&Shape::cells(1).cores(4).threads(2)));
    assert_eq!(cores(&seen, 0), "2-3,6-7");
}

#[test]
fn what_does_not_fit_says_what_is_asked_and_what_is_free() {
    let seen = bare(&Shape::cells(2).cores(2).memory_mib(4096));
    let plan = planned(&with(1, [cpus(3, vm(0))]), &seen);
    assert_eq!(reasons(&plan), ["CoresShort"]);
    assert_eq!(
        plan.troubles[0].to_string(),
        "vm worker-0: it asks for 3 whole-core CPUs and 1024 MiB in one cell; free are cell 0: 2 CPUs and 4096 MiB, cell 1: \
         2 CPUs and 4096 MiB"
    );
    let plan = planned(&with(1, [NodeVm { memory_mib: 5000, ..vm(0) }]), &seen);
    assert_eq!(reasons(&plan), ["MemoryShort"]);
}

#[rstest]
#[case::strict(NumaPolicy::Strict, None)]
#[case::preferred(NumaPolicy::Preferred, Some("0-2"))]
#[case::spread(NumaPolicy::Spread, Some("0-2"))]
fn a_machine_larger_than_a_cell(#[case] policy: NumaPolicy, #[case] expected: Option<&str>) {
    let seen = carried_out(&with(1, [numa(policy, cpus(3, vm(0)))]), bare(&Shape::cells(2).cores(2)));
    assert_eq!(
        seen.domains.get(&uuid(0)).map(|domain| domain.spec.placement.pinned().to_string()).as_deref(),
        expected
    );
}

#[test]
fn memory_and_cores_are_of_the_same_cell() {
    let large = NodeVm { memory_mib: 3072, ..vm(0) };
    let also = NodeVm { memory_mib: 3072, ..vm(1) };
    let seen = carried_out(&with(1, [large, also]), bare(&Shape::cells(2).cores(2).memory_mib(4096)));
    let cells: Vec<String> = seen.domains.values().map(|domain| domain.spec.placement.cells.to_string()).collect();
    assert_eq!(cells, ["0", "1"]);
    assert_eq!((cores(&seen, 0), cores(&seen, 1)), ("0".into(), "2".into()));
}

#[test]
fn huge_pages_are_counted_by_cell_and_size() {
    let huge = |number, pages| NodeVm { hugepages: Some(pages), memory_mib: 4096, ..vm(number) };
    let shape = Shape::cells(2).hugepages(1 << 20, 6).hugepages(2 << 10, 100);
    let spec = with(1, [huge(0, Hugepages::Gi1), huge(1, Hugepages::Gi1), huge(2, Hugepages::Gi1)]);
    let seen = carried_out(&spec, bare(&shape));
    assert_eq!(seen.domains.len(), 2, "one in each cell, and two pages are left over in both");
    let plan = planned(&spec, &seen);
    assert_eq!(reasons(&plan), ["MemoryShort"]);
    assert!(plan.to_string().contains("4096 MiB in pages of 1048576 KiB in one cell; free are cell 0:"), "{plan}");
    assert_eq!(seen.domains[&uuid(0)].spec.placement.hugepages_kib, Some(1 << 20));
    let room = room(&base::CpuSet::new(), &seen);
    assert_eq!(room.cells[&0].hugepages[&(1 << 20)], (6, 2));
}

#[test]
fn cores_are_released_when_a_machine_goes_and_dealt_again() {
    let seen = carried_out(&with(1, [cpus(4, vm(0))]), bare(&Shape::cells(1).cores(4)));
    assert_eq!(reasons(&planned(&with(2, [cpus(4, vm(0)), vm(1)]), &seen)), ["CoresShort"]);
    let seen = carried_out(&with(3, [absent(cpus(4, vm(0))), vm(1)]), seen);
    assert_eq!(cores(&seen, 1), "0");
}

#[test]
fn what_stays_keeps_its_cores_whoever_comes_and_goes() {
    let seen = carried_out(&with(1, [vm(0), vm(1), vm(2)]), bare(&Shape::cells(1).cores(8)));
    let before = (cores(&seen, 0), cores(&seen, 2));
    let seen = carried_out(&with(2, [cpus(2, vm(5)), vm(0), absent(vm(1)), vm(2)]), seen);
    assert_eq!((cores(&seen, 0), cores(&seen, 2)), before);
    let excluded = VinoNodeSpec { cpu_exclude: Some("0-7".into()), ..with(3, [vm(0), vm(2), cpus(2, vm(5))]) };
    let seen = carried_out(&excluded, seen);
    assert_eq!((cores(&seen, 0), cores(&seen, 2)), before, "reserved later: what stays is not moved");
}

#[test]
fn cores_of_foreign_domains_are_theirs() {
    let mut seen = bare(&Shape::cells(1).cores(4));
    let placement = Placement { pins: vec!["0-2".parse().expect("CPUs")], ..Placement::default() };
    let spec = DomainSpec { uuid: uuid(99), name: "theirs".into(), vcpus: 1, placement, ..DomainSpec::default() };
    seen.domains.insert(uuid(99), Domain { spec, persistent: true, ..Domain::default() });
    let seen = carried_out(&with(1, [vm(0)]), seen);
    assert_eq!(cores(&seen, 0), "3");
}

#[test]
fn a_running_guest_keeps_the_cores_it_runs_on_until_it_stops() {
    let mut seen = carried_out(&with(1, [cpus(3, vm(0))]), bare(&Shape::cells(1).cores(4)));
    switch_on(&mut seen, uuid(0));
    let seen = carried_out(&with(2, [vm(0)]), seen);
    assert_eq!(cores(&seen, 0), "0");
    let plan = planned(&with(3, [vm(0), cpus(2, vm(1))]), &seen);
    assert_eq!(reasons(&plan), ["CoresShort"], "cores 1 and 2 are its own while it runs");
}

#[test]
fn a_resize_that_finds_no_room_leaves_it_as_it_is() {
    let seen = carried_out(&with(1, [vm(0), cpus(3, vm(1))]), bare(&Shape::cells(1).cores(4)));
    let resized = with(2, [cpus(2, vm(0)), cpus(3, vm(1))]);
    let plan = planned(&resized, &seen);
    assert_eq!(reasons(&plan), ["CoresShort"]);
    let seen = plan_node::after(seen, &plan);
    assert_eq!((cores(&seen, 0), seen.domains[&uuid(0)].spec.vcpus), ("3".into(), 1));
    assert!(planned(&resized, &seen).steps.is_empty(), "and says no more than that");
}

#[test]
fn shared_machines_run_where_nobody_has_cores_for_himself() {
    let spec = VinoNodeSpec { cpu_exclude: Some("0".into()), ..with(1, [shared(vm(0)), cpus(2, vm(1))]) };
    let seen = carried_out(&spec, bare(&Shape::cells(1).cores(8)));
    assert_eq!(cores(&seen, 1), "1-2");
    let placement = &seen.domains[&uuid(0)].spec.placement;
    assert_eq!((placement.pins.len(), placement.shared.to_string()), (0, "3-7".into()));
}

#[test]
fn a_shared_guest_that_runs_is_moved_only_at_its_next_start() {
    let mut seen = carried_out(&with(1, [shared(vm(0))]), bare(&Shape::cells(1).cores(4)));
    switch_on(&mut seen, uuid(0));
    let mut seen = carried_out(&with(2, [shared(vm(0)), vm(1)]), seen);
    let found = domain(&mut seen, uuid(0));
    assert_eq!(found.running.as_ref().map(|running| running.placement.shared.to_string()).as_deref(), Some("0-3"));
    assert_eq!(plan_node::at_next_start(found), ["cpus shared 0-3 to shared 1-3"]);
}

#[test]
fn a_core_that_was_switched_off_is_replaced_by_another() {
    let seen = carried_out(&with(1, [vm(0)]), bare(&Shape::cells(1).cores(4)));
    let seen = plan_node::Seen { host: Shape::cells(1).cores(4).offline("0").host(), ..seen };
    let seen = carried_out(&with(1, [vm(0)]), seen);
    assert_eq!(cores(&seen, 0), "1");
}

#[test]
fn room_is_what_is_left() {
    let spec = VinoNodeSpec { cpu_exclude: Some("0".into()), ..with(1, [cpus(2, vm(0))]) };
    let seen = carried_out(&spec, bare(&Shape::cells(1).cores(8).memory_mib(8192)));
    let room = room(&"0".parse().expect("CPUs"), &seen);
    let cell = &room.cells[&0];
    assert_eq!((cell.cpus.to_string(), cell.free_cpus.to_string()), ("1-7".into(), "3-7".into()));
    assert_eq!((cell.memory_kib >> 10, cell.free_kib >> 10, room.free_kib >> 10), (8192, 7168, 7168));
}
