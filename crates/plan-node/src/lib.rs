//! What has to change on a node so that it carries what its VinoNode asks for: networks, disks, virtual machines, cores.
//! Pure: no clock, no I/O, no randomness.
//!
//! ```text
//!   VinoNode ──► Want ──┐
//!                       ├──► plan ──► Plan: steps in order, and what stays open
//!   the machine ► Seen ─┘
//! ```
//!
//! What never happens, whatever is wanted and seen: something that is merely absent from the VinoNode goes; a disk that was
//! once made is made again; anything foreign is touched; a running guest is stopped or moved, unless its entry says
//! `Absent`. A VinoNode that is older than what the domains remember changes nothing at all.

mod cores;
mod disks;
mod domains;
mod firewall;
mod gate;
mod images;
mod networks;
mod plan;
mod pools;
mod seen;
mod want;

pub use cores::{CellRoom, Room, room};
pub use domains::at_next_start;
pub use firewall::{FirewallMode, NetworkRules, Rules};
pub use plan::{Object, Plan, Reason, Step, Trouble, after};
pub use seen::{Interface, Seen};
pub use want::{Want, WantDhcp, WantDisk, WantImage, WantNetwork, WantNic, WantPool, WantVm};

/// Decides the steps from what is wanted and what is there.
pub fn plan(want: &Want, seen: &Seen) -> Plan {
    let mut plan = Plan { steps: Vec::new(), troubles: want.troubles.clone() };
    plan.troubles.extend(gate::unreadable(seen));
    if let Err(trouble) = gate::check(want, seen) {
        plan.troubles.push(trouble);
        return plan;
    }
    pools::plan(want, seen, &mut plan);
    networks::plan(want, seen, &mut plan);
    domains::remove(want, seen, &mut plan);
    domains::plan(want, seen, &mut plan);
    images::clear(want, seen, &mut plan);
    networks::remove(want, seen, &mut plan);
    pools::remove(want, seen, &mut plan);
    firewall::plan(want, seen, &mut plan);
    plan
}
