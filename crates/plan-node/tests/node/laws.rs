//! What holds whatever is wanted and whatever is there.

use std::collections::BTreeSet;

use api::vinonode::{CpuPolicy, Hugepages, NodeVm, NumaPolicy, State, VinoNodeSpec};
use base::CpuSet;
use hypervisor::{DomainSpec, Uuid};
use plan_node::{Seen, Step, Want, after, plan};
use proptest::{collection::vec, option, prelude::*, sample::select};
use testkit::hypervisor::Shape;

use crate::fixture::{bare, destroys, domain, stop, switch_on, uuid, vm, with};

fn shape() -> impl Strategy<Value = Shape> {
    (1u32..=8, 1u32..=6, 1u32..=2, vec(0u32..48, 0..6), any::<bool>(), 1024u64..16384, 0u64..8).prop_map(
        |(cells, cores, threads, offline, holes, memory, pages)| {
            let shape = Shape::cells(cells)
                .cores(cores)
                .threads(threads)
                .memory_mib(memory + (pages << 10))
                .hugepages(1 << 20, pages);
            let shape = shape.offline(&offline.into_iter().collect::<CpuSet>().to_string());
            if holes { shape.numbered(&(0..cells).map(|cell| cell * 3).collect::<Vec<_>>()) } else { shape }
        },
    )
}

fn machine() -> impl Strategy<Value = NodeVm> {
    (
        0u8..10,
        1i32..8,
        select(vec![512i64, 1024, 2048]),
        select(vec![CpuPolicy::Pinned, CpuPolicy::Shared]),
        select(vec![NumaPolicy::Strict, NumaPolicy::Preferred, NumaPolicy::Spread]),
        option::weighted(0.2, Just(Hugepages::Gi1)),
        prop::bool::weighted(0.8),
    )
        .prop_map(|(number, vcpus, memory_mib, cpu_policy, numa_policy, hugepages, present)| NodeVm {
            vcpus,
            memory_mib: if hugepages.is_some() { 1024 } else { memory_mib },
            cpu_policy,
            numa_policy,
            hugepages,
            state: if present { State::Present } else { State::Absent },
            ..vm(number)
        })
}

fn wants() -> impl Strategy<Value = Vec<VinoNodeSpec>> {
    let exclude = select(vec![None, Some("0".to_owned()), Some("0-3".to_owned())]);
    (exclude, vec(vec(machine(), 0..8), 1..4)).prop_map(|(cpu_exclude, rounds)| {
        let mut serial = 0;
        rounds
            .into_iter()
            .map(|vms| {
                serial += 1;
                let mut names = BTreeSet::new();
                let vms: Vec<NodeVm> = vms.into_iter().filter(|vm| names.insert(vm.name.clone())).collect();
                VinoNodeSpec { cpu_exclude: cpu_exclude.clone(), ..with(serial, vms) }
            })
            .collect()
    })
}

/// What is there at first, the VinoNodes one after the other, and who is switched on or off after each.
type History = (Seen, Vec<VinoNodeSpec>, Vec<Option<(u8, bool)>>);

/// A machine of any shape, perhaps with a foreign domain, and its life.
fn history() -> impl Strategy<Value = History> {
    let foreign = option::weighted(0.3, (0u8..10, vec(0u32..12, 1..3)));
    (shape(), wants(), vec(option::of((0u8..10, any::<bool>())), 4), foreign).prop_map(
        |(shape, wants, switches, foreign)| {
            let mut seen = bare(&shape);
            if let Some((number, cpus)) = foreign {
                let mut spec = DomainSpec { uuid: uuid(500), name: vm(number).name, vcpus: 1, ..DomainSpec::default() };
                spec.placement.pins = vec![cpus.into_iter().collect()];
                seen.domains.insert(spec.uuid, hypervisor::Domain { spec, persistent: true, ..Default::default() });
            }
            (seen, wants, switches)
        },
    )
}

/// Carries out all but the last VinoNode; gives what is there then, and the last.
fn lived((mut seen, mut wants, switches): History) -> (Seen, VinoNodeSpec) {
    let last = wants.pop().expect("at least one");
    for (spec, switch) in wants.iter().zip(switches) {
        let plan = plan(&Want::of(spec), &seen);
        seen = after(seen, &plan);
        if let Some((number, on)) = switch
            && seen.domains.contains_key(&uuid(number.into()))
        {
            if on { switch_on(&mut seen, uuid(number.into())) } else { stop(&mut seen, uuid(number.into())) }
        }
    }
    (seen, last)
}

fn ours(seen: &Seen) -> impl Iterator<Item = &hypervisor::Domain> {
    seen.domains.values().filter(|domain| domain.spec.mark.is_some())
}

proptest! {
    #[test]
    fn a_carried_out_plan_leaves_nothing_to_do(history in history()) {
        let (seen, spec) = lived(history);
        let want = Want::of(&spec);
        let first = plan(&want, &seen);
        let seen = after(seen, &first);
        let second = plan(&want, &seen);
        prop_assert!(second.steps.is_empty(), "{first}then\n{second}");
    }

    #[test]
    fn no_core_has_two_owners_and_no_reserved_one_is_dealt(history in history()) {
        let (before, spec) = lived(history);
        let want = Want::of(&spec);
        let seen = after(before.clone(), &plan(&want, &before));
        let held: Vec<(Uuid, CpuSet)> = seen.domains.iter().map(|(uuid, domain)| {
            let running = domain.running.as_ref().map(|running| running.placement.pinned()).unwrap_or_default();
            (*uuid, domain.spec.placement.pinned().union(&running))
        }).collect();
        for (at, (one, cpus)) in held.iter().enumerate() {
            for (other, others) in &held[at + 1..] {
                prop_assert!(cpus.is_disjoint(others), "{one} has {cpus}, {other} has {others}");
            }
        }
        for domain in ours(&seen) {
            let pinned = domain.spec.placement.pinned();
            let old = before.domains.get(&domain.spec.uuid).map(|old| old.spec.placement.pinned());
            prop_assert!(pinned.is_disjoint(&want.reserved) || old == Some(pinned.clone()), "{pinned}");
        }
    }

    #[test]
    fn a_core_is_never_shared_by_two_machines_thread_by_thread(history in history()) {
        let (before, spec) = lived(history);
        let seen = after(before.clone(), &plan(&Want::of(&spec), &before));
        for cell in seen.host.cells.values() {
            for core in cell.cores() {
                let owners = ours(&seen).filter(|domain| !domain.spec.placement.pinned().is_disjoint(&core)).count();
                prop_assert!(owners <= 1, "core {core} has {owners} owners");
            }
        }
    }

    #[test]
    fn what_is_strict_is_in_one_cell_with_its_memory(history in history()) {
        let (before, spec) = lived(history);
        let want = Want::of(&spec);
        let plan = plan(&want, &before);
        for step in &plan.steps {
            let Step::DefineDomain(spec) = step else { continue };
            let placement = &spec.placement;
            if placement.strict {
                prop_assert_eq!(placement.cells.len(), 1);
                let cell = placement.cells.iter().next().expect("one");
                prop_assert!(placement.pinned().iter().all(|cpu| before.host.cell_of(cpu) == Some(cell)));
            }
        }
        let seen = after(before, &plan);
        for (id, cell) in &seen.host.cells {
            let bound: u64 = ours(&seen)
                .filter(|domain| domain.spec.placement.cells.len() == 1 && domain.spec.placement.cells.contains(*id))
                .filter(|domain| domain.spec.placement.hugepages_kib.is_none())
                .map(|domain| domain.spec.memory_kib)
                .sum();
            let ordinary = cell.pages.get(&4).copied().unwrap_or_default() * 4;
            prop_assert!(bound <= ordinary, "cell {id} has {ordinary} KiB, {bound} are dealt");
        }
    }

    #[test]
    fn absence_destroys_nothing(history in history(), kept in vec(any::<bool>(), 10)) {
        let (seen, mut spec) = lived(history);
        spec.vms.retain(|vm| vm.state == State::Present && kept[usize::from(vm.name.as_bytes()[7] - b'0') % 10]);
        let plan = plan(&Want::of(&spec), &seen);
        prop_assert!(!plan.steps.iter().any(destroys), "{plan}");
    }

    #[test]
    fn what_runs_is_not_stopped_but_when_its_entry_says_absent(history in history()) {
        let (seen, spec) = lived(history);
        let want = Want::of(&spec);
        for step in &plan(&want, &seen).steps {
            if let Step::Stop { uuid, .. } | Step::UndefineDomain { uuid, .. } = step {
                prop_assert!(want.vms.get(uuid).is_some_and(|vm| !vm.present));
                prop_assert!(seen.domains[uuid].spec.mark.is_some());
            }
        }
    }

    #[test]
    fn what_stays_the_same_size_keeps_its_cores(history in history()) {
        let (before, spec) = lived(history);
        let want = Want::of(&spec);
        let seen = after(before.clone(), &plan(&want, &before));
        for (uuid, vm) in &want.vms {
            let (Some(old), Some(new)) = (before.domains.get(uuid), seen.domains.get(uuid)) else { continue };
            let stays = vm.present && old.spec.vcpus == vm.vcpus && old.spec.memory_kib == vm.memory_kib
                && old.spec.placement.hugepages_kib == vm.hugepages_kib
                && old.spec.placement.pins.is_empty() == (vm.cpu_policy == CpuPolicy::Shared)
                && (vm.numa_policy == NumaPolicy::Strict) == old.spec.placement.strict
                && (vm.numa_policy == NumaPolicy::Spread) == old.spec.placement.cells.is_empty();
            if stays {
                prop_assert_eq!(&old.spec.placement.pins, &new.spec.placement.pins);
                prop_assert_eq!(&old.spec.placement.cells, &new.spec.placement.cells);
            }
        }
    }

    #[test]
    fn what_is_foreign_is_not_touched(history in history()) {
        let (before, spec) = lived(history);
        let seen = after(before.clone(), &plan(&Want::of(&spec), &before));
        for (uuid, domain) in before.domains.iter().filter(|(_, domain)| domain.spec.mark.is_none()) {
            prop_assert_eq!(seen.domains.get(uuid), Some(domain));
        }
    }

    #[test]
    fn an_older_vino_node_changes_nothing(history in history(), older in 0i64..3) {
        let (mut seen, mut spec) = lived(history);
        seen.serial = 10;
        spec.serial = 9 - older;
        prop_assert!(plan(&Want::of(&spec), &seen).steps.is_empty());
    }

    #[test]
    fn a_disk_that_was_made_is_never_made_again(history in history(), lost in 0u8..10) {
        let (mut seen, spec) = lived(history);
        let id = uuid(lost.into());
        if seen.domains.get(&id).is_some_and(|domain| domain.spec.mark.is_some()) {
            let marker = seen.marker.clone();
            let made = domain(&mut seen, id).spec.mark.clone().expect("ours").disks;
            for volume in made.values() {
                seen.volumes.get_mut(&volume.pool).expect("the pool").remove(&volume.volume);
            }
            seen.marker = marker;
            for step in &plan(&Want::of(&spec), &seen).steps {
                if let Step::CreateVolume(spec) = step {
                    prop_assert!(!made.values().any(|volume| volume.volume == spec.name), "{step}");
                }
            }
        }
    }
}
