//! What the machine has: processors, cells, memory, and whether guests run at full speed.

use std::collections::BTreeMap;

use base::CpuSet;

/// A machine that runs guests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Processor architecture as libvirt says it, such as `x86_64`.
    pub arch: String,
    /// NUMA cells by number. A machine without NUMA has one, number 0.
    pub cells: BTreeMap<u32, Cell>,
    /// How fast guests run.
    pub acceleration: Acceleration,
    /// Changes with every start of the machine, and only then. Empty: not known.
    pub boot_id: String,
}

/// A NUMA cell: processors and the memory that is near to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Its memory in KiB, huge pages included.
    pub memory_kib: u64,
    /// Number of pages by their size in KiB; the ordinary size is the smallest.
    pub pages: BTreeMap<u64, u64>,
    /// Processors by number, those that are switched off not included. May be empty.
    pub cpus: BTreeMap<u32, Cpu>,
}

/// A logical processor that is switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its socket.
    pub socket: u32,
    /// Its core, as numbered in its socket and die.
    pub core: u32,
    /// The logical processors of its core that are switched on, itself included: hyper-threads.
    pub siblings: CpuSet,
}

/// Whether guests run on the processor itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Acceleration {
    /// They do: a trial guest has run.
    Kvm,
    /// They are emulated, slowly.
    Emulated {
        /// Why, for people.
        why: String,
    },
    /// Not tried.
    #[default]
    Unknown,
}

impl Acceleration {
    /// Whether guests run on the processor itself.
    pub fn is_kvm(&self) -> bool {
        *self == Acceleration::Kvm
    }
}

impl Host {
    /// All processors that are switched on.
    pub fn cpus(&self) -> CpuSet {
        self.cells.values().flat_map(|cell| cell.cpus.keys().copied()).collect()
    }

    /// The cell of a processor.
    pub fn cell_of(&self, cpu: u32) -> Option<u32> {
        self.cells.iter().find(|(_, cell)| cell.cpus.contains_key(&cpu)).map(|(id, _)| *id)
    }
}

impl Cell {
    /// Its cores, each as the set of its processors, ascending by the first.
    ///
    /// Siblings that a core shares with another cell (no real machine has that, but XML may say so) are left out.
    pub fn cores(&self) -> Vec<CpuSet> {
        let mine: CpuSet = self.cpus.keys().copied().collect();
        let mut seen = CpuSet::new();
        let mut cores = Vec::new();
        for (id, cpu) in &self.cpus {
            let core: CpuSet = cpu.siblings.intersection(&mine).union(&CpuSet::from_iter([*id])).difference(&seen);
            if seen.contains(*id) {
                continue;
            }
            seen.extend(core.iter());
            cores.push(core);
        }
        cores
    }
}
