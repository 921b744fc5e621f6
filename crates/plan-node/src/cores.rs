//! Cores, memory and huge pages: planned from the domains that exist, and from nothing else.
//!
//! There is no file of assignments that could be lost: what a domain's definition and its running guest say they have, they
//! have. A pinned machine gets whole cores, all hyper-threads of each; so no two machines ever share a core. What stays
//! keeps its cores; what runs is never moved.

use std::collections::BTreeMap;

use api::vinonode::{CpuPolicy, NumaPolicy};
use base::CpuSet;
use hypervisor::{Domain, DomainSpec, Host, Placement, Uuid};

use crate::{plan::Reason, seen::Seen, want::WantVm};

/// What one domain has for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Claim {
    cpus: CpuSet,
    /// KiB by cell and size of huge pages (None: ordinary pages).
    memory: BTreeMap<(Option<u32>, Option<u64>), u64>,
    /// The cells it runs in without cores for itself (empty: anywhere): one processor has to be left for it.
    shares: Option<CpuSet>,
}

impl Claim {
    fn of(spec: &DomainSpec) -> Self {
        let Placement { pins: _, shared: _, emulator: _, cells, strict: _, hugepages_kib } = &spec.placement;
        let mut memory = BTreeMap::new();
        let among = u64::try_from(cells.len()).unwrap_or_default();
        if among == 0 {
            memory.insert((None, *hugepages_kib), spec.memory_kib);
        }
        for cell in cells.iter() {
            memory.insert((Some(cell), *hugepages_kib), spec.memory_kib.div_ceil(among));
        }
        let shares = (spec.mark.is_some() && spec.placement.pins.is_empty()).then(|| cells.clone());
        Self { cpus: spec.placement.pinned(), memory, shares }
    }

    /// What a domain holds: as it is defined, and as it still runs.
    fn of_domain(domain: &Domain) -> Self {
        let mut claim = Self::of(&domain.spec);
        if let Some(running) = &domain.running {
            claim = claim.and(Self::of(running));
        }
        claim
    }

    fn and(mut self, other: Self) -> Self {
        self.cpus = self.cpus.union(&other.cpus);
        for (place, kib) in other.memory {
            let held = self.memory.entry(place).or_default();
            *held = (*held).max(kib);
        }
        self
    }
}

/// Who has what of a machine.
pub(crate) struct Ledger<'a> {
    host: &'a Host,
    reserved: &'a CpuSet,
    claims: BTreeMap<Uuid, Claim>,
}

/// How good a cell is, the lowest first: whether it is not the one before, how many cores are left over, its number.
type Rank = (bool, usize, u32);

/// Why a machine finds no place.
pub(crate) type Short = (Reason, String);

impl<'a> Ledger<'a> {
    /// What all domains have that are on the machine, foreign ones included.
    pub(crate) fn new(seen: &'a Seen, reserved: &'a CpuSet) -> Self {
        let claims = seen.domains.iter().map(|(uuid, domain)| (*uuid, Claim::of_domain(domain))).collect();
        Self { host: &seen.host, reserved, claims }
    }

    /// A domain is gone.
    pub(crate) fn release(&mut self, uuid: Uuid) {
        self.claims.remove(&uuid);
    }

    /// A machine will have this; what it has while it runs, it keeps.
    pub(crate) fn claim(&mut self, uuid: Uuid, placement: &Placement, memory_kib: u64, running: Option<&DomainSpec>) {
        let mark = Some(hypervisor::Mark::default());
        let spec = DomainSpec { placement: placement.clone(), memory_kib, mark, ..DomainSpec::default() };
        let mut claim = Claim::of(&spec);
        if let Some(running) = running {
            claim = claim.and(Claim::of(running));
        }
        self.claims.insert(uuid, claim);
    }

    /// Processors of all cores of which somebody has one for himself, `but` one.
    fn pinned(&self, but: Uuid) -> CpuSet {
        let others = self.claims.iter().filter(|(uuid, _)| **uuid != but);
        let mut taken = CpuSet::new();
        for cpu in others.flat_map(|(_, claim)| claim.cpus.iter()) {
            taken.insert(cpu);
            let known = self.host.cells.values().find_map(|cell| cell.cpus.get(&cpu));
            taken.extend(known.iter().flat_map(|cpu| cpu.siblings.iter()));
        }
        taken
    }

    /// Whether somebody who shares cores would have none left if `uuid` took these.
    fn starves(&self, uuid: Uuid, cores: &CpuSet) -> bool {
        let others = self.claims.iter().filter(|(other, _)| **other != uuid);
        others.filter_map(|(_, claim)| claim.shares.as_ref()).any(|cells| {
            let left = self.shared(cells.iter().next(), uuid);
            !left.is_empty() && left.is_subset(cores)
        })
    }

    /// Where `uuid` runs without cores for itself: in `cell`, or anywhere.
    pub(crate) fn shared(&self, cell: Option<u32>, uuid: Uuid) -> CpuSet {
        let all = match cell {
            Some(cell) => {
                self.host.cells.get(&cell).map(|cell| cell.cpus.keys().copied().collect()).unwrap_or_default()
            }
            None => self.host.cpus(),
        };
        all.difference(self.reserved).difference(&self.pinned(uuid))
    }

    /// Whole cores of a cell that are free for `uuid`: none of their processors is reserved or another's.
    fn free_cores(&self, cell: u32, uuid: Uuid) -> Vec<CpuSet> {
        let taken = self.pinned(uuid).union(self.reserved);
        let cores = self.host.cells.get(&cell).map(hypervisor::Cell::cores).unwrap_or_default();
        cores.into_iter().filter(|core| core.is_disjoint(&taken)).collect()
    }

    /// KiB of pages of this size that are free in a cell, or in all, for `uuid`.
    fn free_memory(&self, cell: Option<u32>, hugepages: Option<u64>, uuid: Uuid) -> u64 {
        let cells = self.host.cells.iter().filter(|(id, _)| cell.is_none_or(|cell| cell == **id));
        let there: u64 = cells.map(|(_, cell)| pages(cell, hugepages)).sum();
        let claims = self.claims.iter().filter(|(other, _)| **other != uuid).flat_map(|(_, claim)| &claim.memory);
        let taken: u64 = claims
            .filter(|((at, size), _)| *size == hugepages && (cell.is_none() || *at == cell))
            .map(|(_, kib)| kib)
            .sum();
        there.saturating_sub(taken)
    }

    /// Whether memory is there in this cell: in the cell itself, and over all, for what is bound to none is somewhere too.
    fn has_memory(&self, vm: &WantVm, cell: Option<u32>, uuid: Uuid) -> bool {
        self.free_memory(None, vm.hugepages_kib, uuid) >= vm.memory_kib
            && cell.is_none_or(|cell| self.free_memory(Some(cell), vm.hugepages_kib, uuid) >= vm.memory_kib)
    }

    /// A place for a machine: near to `old`, where it had one.
    pub(crate) fn place(&self, uuid: Uuid, vm: &WantVm, old: Option<&Placement>) -> Result<(Placement, u32), Short> {
        let near: Vec<u32> = old.map(|old| cells_of(self.host, old)).unwrap_or_default();
        let one = match vm.numa_policy {
            NumaPolicy::Strict | NumaPolicy::Preferred => self.in_one_cell(uuid, vm, old, &near),
            NumaPolicy::Spread => None,
        };
        match (one, vm.numa_policy) {
            (Some(place), _) => Ok(place),
            (None, NumaPolicy::Strict) => Err(self.short(uuid, vm, true)),
            (None, NumaPolicy::Preferred | NumaPolicy::Spread) => {
                self.anywhere(uuid, vm, old, &near).ok_or_else(|| self.short(uuid, vm, false))
            }
        }
    }

    /// In one cell: where it was, else where the fewest cores are left over, so that large machines find room later.
    fn in_one_cell(&self, uuid: Uuid, vm: &WantVm, old: Option<&Placement>, near: &[u32]) -> Option<(Placement, u32)> {
        let mut best: Option<(Rank, (Placement, u32))> = None;
        for cell in self.host.cells.keys().copied().filter(|cell| self.has_memory(vm, Some(*cell), uuid)) {
            let Some((pins, threads)) = self.cpus(uuid, vm, &[cell], old) else { continue };
            let left = match vm.cpu_policy {
                CpuPolicy::Pinned => self.free_cores(cell, uuid).len(),
                CpuPolicy::Shared => 0,
            };
            let rank = (!near.contains(&cell), left, cell);
            if best.as_ref().is_none_or(|(other, _)| rank < *other) {
                let strict = vm.numa_policy == NumaPolicy::Strict;
                let place = self.placement(uuid, vm, pins, CpuSet::from_iter([cell]), strict);
                best = Some((rank, (place, threads)));
            }
        }
        best.map(|(_, place)| place)
    }

    fn anywhere(&self, uuid: Uuid, vm: &WantVm, old: Option<&Placement>, near: &[u32]) -> Option<(Placement, u32)> {
        if !self.has_memory(vm, None, uuid) {
            return None;
        }
        let others = self.host.cells.keys().copied().filter(|cell| !near.contains(cell));
        let cells: Vec<u32> = near.iter().copied().chain(others).collect();
        let (pins, threads) = self.cpus(uuid, vm, &cells, old)?;
        Some((self.placement(uuid, vm, pins, CpuSet::new(), false), threads))
    }

    /// The processors for each of its own, and how many threads its cores have; empty: shared ones.
    fn cpus(&self, uuid: Uuid, vm: &WantVm, cells: &[u32], old: Option<&Placement>) -> Option<(Vec<CpuSet>, u32)> {
        if vm.cpu_policy == CpuPolicy::Shared {
            let any = cells.iter().any(|cell| !self.shared(Some(*cell), uuid).is_empty());
            return any.then(|| (Vec::new(), 1));
        }
        let mine = old.map(Placement::pinned).unwrap_or_default();
        let mut cores: Vec<CpuSet> = cells.iter().flat_map(|cell| self.free_cores(*cell, uuid)).collect();
        // What it has already comes first, and stays in its order.
        cores.sort_by_key(|core| core.is_disjoint(&mine));
        let mut pins = Vec::new();
        let mut threads = Vec::new();
        let mut taken = CpuSet::new();
        for core in cores {
            if pins.len() >= vm.vcpus as usize {
                break;
            }
            let with = taken.union(&core);
            if self.starves(uuid, &with) {
                continue;
            }
            taken = with;
            threads.push(core.len());
            pins.extend(core.iter().map(|cpu| CpuSet::from_iter([cpu])));
        }
        if pins.len() < vm.vcpus as usize {
            return None;
        }
        pins.truncate(vm.vcpus as usize);
        let first = threads.first().copied().unwrap_or(1);
        let even = threads.iter().all(|count| *count == first) && (vm.vcpus as usize).is_multiple_of(first);
        Some((pins, if even { u32::try_from(first).unwrap_or(1) } else { 1 }))
    }

    fn placement(&self, uuid: Uuid, vm: &WantVm, pins: Vec<CpuSet>, cells: CpuSet, strict: bool) -> Placement {
        let pinned: CpuSet = pins.iter().flat_map(CpuSet::iter).collect();
        let shared = if pins.is_empty() { self.shared(cells.iter().next(), uuid) } else { CpuSet::new() };
        Placement { pins, shared, emulator: pinned, cells, strict, hugepages_kib: vm.hugepages_kib }
    }

    /// Why there is no place, with the numbers that a person needs.
    fn short(&self, uuid: Uuid, vm: &WantVm, one_cell: bool) -> Short {
        let cells: Vec<String> = self
            .host
            .cells
            .keys()
            .map(|cell| {
                let cpus: usize = match vm.cpu_policy {
                    CpuPolicy::Pinned => self.free_cores(*cell, uuid).iter().map(CpuSet::len).sum(),
                    CpuPolicy::Shared => self.shared(Some(*cell), uuid).len(),
                };
                let mib = self.free_memory(Some(*cell), vm.hugepages_kib, uuid) >> 10;
                format!("cell {cell}: {cpus} CPUs and {mib} MiB")
            })
            .collect();
        let pages = vm.hugepages_kib.map(|kib| format!(" in pages of {kib} KiB")).unwrap_or_default();
        let place = if one_cell { " in one cell" } else { "" };
        let message = format!(
            "it asks for {} {} CPUs and {} MiB{pages}{place}; free are {}",
            vm.vcpus,
            match vm.cpu_policy {
                CpuPolicy::Pinned => "whole-core",
                CpuPolicy::Shared => "shared",
            },
            vm.memory_kib >> 10,
            cells.join(", ")
        );
        let cpus_fit = if one_cell {
            self.host.cells.keys().any(|cell| self.cpus(uuid, vm, &[*cell], None).is_some())
        } else {
            let all: Vec<u32> = self.host.cells.keys().copied().collect();
            self.cpus(uuid, vm, &all, None).is_some()
        };
        (if cpus_fit { Reason::MemoryShort } else { Reason::CoresShort }, message)
    }

    /// Whether a machine that was placed like this may stay so.
    pub(crate) fn stays(&self, vm: &WantVm, spec: &DomainSpec) -> bool {
        let Placement { pins, shared: _, emulator: _, cells, strict, hugepages_kib } = &spec.placement;
        let cpus = match vm.cpu_policy {
            CpuPolicy::Pinned => {
                // One that was switched off since, or taken out, cannot be had any more.
                pins.len() == vm.vcpus as usize && spec.placement.pinned().is_subset(&self.host.cpus())
            }
            CpuPolicy::Shared => pins.is_empty(),
        };
        let numa = match vm.numa_policy {
            NumaPolicy::Strict => *strict && cells.len() == 1,
            NumaPolicy::Preferred => !*strict,
            NumaPolicy::Spread => cells.is_empty(),
        };
        cpus && numa
            && spec.vcpus == vm.vcpus
            && spec.memory_kib == vm.memory_kib
            && *hugepages_kib == vm.hugepages_kib
            && cells.iter().all(|cell| self.host.cells.contains_key(&cell))
    }
}

/// KiB that pages of a size make up in a cell.
fn pages(cell: &hypervisor::Cell, hugepages: Option<u64>) -> u64 {
    let ordinary = cell.pages.first_key_value();
    match (hugepages, ordinary) {
        (Some(size), _) => cell.pages.get(&size).map_or(0, |count| size * count),
        (None, Some((size, count))) => size * count,
        (None, None) => cell.memory_kib,
    }
}

/// The cells that a machine is in.
fn cells_of(host: &Host, placement: &Placement) -> Vec<u32> {
    let mut cells: Vec<u32> = placement.pinned().iter().filter_map(|cpu| host.cell_of(cpu)).collect();
    cells.extend(placement.cells.iter());
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// What a node has for virtual machines, and has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Its cells.
    pub cells: BTreeMap<u32, CellRoom>,
    /// Memory in KiB that is free over all, huge pages not included.
    pub free_kib: u64,
}

/// The same for one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellRoom {
    /// Processors that virtual machines may have.
    pub cpus: CpuSet,
    /// Of those, the ones that none has for itself.
    pub free_cpus: CpuSet,
    /// Memory in KiB, huge pages included.
    pub memory_kib: u64,
    /// Of that, what none has.
    pub free_kib: u64,
    /// Huge pages by their size in KiB: how many there are, and how many are free.
    pub hugepages: BTreeMap<u64, (u64, u64)>,
}

/// What a node has for virtual machines, and has left, with these processors reserved.
pub fn room(reserved: &CpuSet, seen: &Seen) -> Room {
    let ledger = Ledger::new(seen, reserved);
    let nobody = Uuid::nil();
    let cell = |(id, cell): (&u32, &hypervisor::Cell)| {
        let cpus: CpuSet = cell.cpus.keys().copied().collect();
        let huge = cell.pages.iter().skip(1).map(|(size, total)| {
            let free = ledger.free_memory(Some(*id), Some(*size), nobody) / (*size).max(1);
            (*size, (*total, free))
        });
        let hugepages: BTreeMap<u64, (u64, u64)> = huge.collect();
        let free_huge: u64 = hugepages.iter().map(|(size, (_, free))| size * free).sum();
        let room = CellRoom {
            cpus: cpus.difference(reserved),
            free_cpus: ledger.shared(Some(*id), nobody),
            memory_kib: cell.memory_kib,
            free_kib: ledger.free_memory(Some(*id), None, nobody) + free_huge,
            hugepages,
        };
        (*id, room)
    };
    Room { cells: seen.host.cells.iter().map(cell).collect(), free_kib: ledger.free_memory(None, None, nobody) }
}
