//! Machines of many shapes: cells, holes in their numbers, hyper-threads, what is switched off, huge pages.

use std::collections::{BTreeMap, BTreeSet};

use ::hypervisor::{Acceleration, Cell, Cpu, Host};
use base::CpuSet;

/// A machine to be. Processors are numbered as Linux does on PCs: first one thread of every core, cell by cell, then the
/// second.
#[derive(Clone, Debug)]
pub struct Shape {
    cells: Vec<u32>,
    cores: u32,
    threads: u32,
    offline: BTreeSet<u32>,
    memory_kib: u64,
    pages: BTreeMap<u64, u64>,
    bare: BTreeSet<u32>,
    kvm: bool,
}

impl Shape {
    /// A machine with this many cells, each of four cores without hyper-threads and 64 GiB.
    pub fn cells(cells: u32) -> Self {
        Self {
            cells: (0..cells).collect(),
            cores: 4,
            threads: 1,
            offline: BTreeSet::new(),
            memory_kib: 64 << 20,
            pages: BTreeMap::new(),
            bare: BTreeSet::new(),
            kvm: true,
        }
    }

    /// Cores of each cell.
    #[must_use]
    pub fn cores(self, cores: u32) -> Self {
        Self { cores, ..self }
    }

    /// Hyper-threads of each core.
    #[must_use]
    pub fn threads(self, threads: u32) -> Self {
        Self { threads, ..self }
    }

    /// The numbers of its cells, where they have holes.
    #[must_use]
    pub fn numbered(self, cells: &[u32]) -> Self {
        Self { cells: cells.to_vec(), ..self }
    }

    /// Processors that are switched off.
    #[must_use]
    pub fn offline(self, cpus: &str) -> Self {
        let cpus: CpuSet = cpus.parse().expect("a list of CPUs");
        Self { offline: cpus.iter().collect(), ..self }
    }

    /// Memory of each cell in MiB.
    #[must_use]
    pub fn memory_mib(self, mib: u64) -> Self {
        Self { memory_kib: mib << 10, ..self }
    }

    /// Huge pages of this size in KiB in each cell.
    #[must_use]
    pub fn hugepages(mut self, size_kib: u64, count: u64) -> Self {
        self.pages.insert(size_kib, count);
        self
    }

    /// A further cell that has memory and no processors.
    #[must_use]
    pub fn memory_only(mut self, cell: u32) -> Self {
        self.bare.insert(cell);
        self
    }

    /// A machine whose guests are emulated.
    #[must_use]
    pub fn without_kvm(self) -> Self {
        Self { kvm: false, ..self }
    }

    /// The machine.
    pub fn host(&self) -> Host {
        let count = u32::try_from(self.cells.len()).expect("few cells");
        let stride = count * self.cores;
        let mut cells = BTreeMap::new();
        for (at, id) in (0u32..).zip(&self.cells) {
            let mut cpus = BTreeMap::new();
            for core in 0..self.cores {
                let first = at * self.cores + core;
                let threads = (0..self.threads).map(|thread| first + thread * stride);
                let siblings: CpuSet = threads.filter(|cpu| !self.offline.contains(cpu)).collect();
                for cpu in siblings.iter() {
                    cpus.insert(cpu, Cpu { socket: at, core, siblings: siblings.clone() });
                }
            }
            cells.insert(*id, self.cell(cpus));
        }
        cells.extend(self.bare.iter().map(|id| (*id, self.cell(BTreeMap::new()))));
        let acceleration = if self.kvm {
            Acceleration::Kvm
        } else {
            Acceleration::Emulated { why: "a trial guest made no progress".to_owned() }
        };
        Host { arch: "x86_64".to_owned(), cells, acceleration, boot_id: "boot-1".to_owned() }
    }

    fn cell(&self, cpus: BTreeMap<u32, Cpu>) -> Cell {
        let huge: u64 = self.pages.iter().map(|(size, count)| size * count).sum();
        let mut pages = self.pages.clone();
        pages.insert(4, self.memory_kib.saturating_sub(huge) / 4);
        Cell { memory_kib: self.memory_kib, pages, cpus }
    }
}
