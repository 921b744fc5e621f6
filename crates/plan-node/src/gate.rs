//! Whether this VinoNode may change anything on this machine at all.

use crate::{
    plan::{Object, Reason, Trouble},
    seen::Seen,
    want::Want,
};

fn trouble(reason: Reason, message: String) -> Trouble {
    Trouble { object: Object::Node, reason, message }
}

/// What others defined and nobody can read: reported, and otherwise left alone.
pub(crate) fn unreadable(seen: &Seen) -> Vec<Trouble> {
    seen.unreadable.iter().map(|unreadable| trouble(Reason::Unreadable, unreadable.to_string())).collect()
}

/// Why nothing is changed.
pub(crate) fn check(want: &Want, seen: &Seen) -> Result<(), Trouble> {
    if want.machine != seen.machine {
        let message =
            format!("this VinoNode is for machine {}, and this is {}: nothing is changed", want.machine, seen.machine);
        return Err(trouble(Reason::OtherMachine, message));
    }
    let marks = seen.ours(&want.owner).filter_map(|(_, domain)| domain.spec.mark.as_ref().map(|mark| mark.serial));
    let networks = seen.networks.values().filter_map(|network| network.spec.mark.as_ref());
    let networks = networks.filter(|mark| mark.owner == want.owner).map(|mark| mark.serial);
    let highest = marks.chain(networks).chain([seen.serial]).max().unwrap_or_default();
    if want.serial < highest {
        let message = format!(
            "serial {} is older than {highest}, which this machine has seen: a backup was restored, or a late leader wrote; \
             nothing is changed",
            want.serial
        );
        return Err(trouble(Reason::SerialOlder, message));
    }
    let has_any = seen.ours(&want.owner).next().is_some();
    let asks_nothing = want.vms.is_empty() && want.networks.is_empty() && want.pools.is_empty();
    if asks_nothing && has_any {
        let message = "the VinoNode is empty, and this machine has virtual machines: nothing is changed".to_owned();
        return Err(trouble(Reason::Empty, message));
    }
    // Disks lie behind the marker: what is in its place without it is not their file system.
    let made =
        seen.ours(&want.owner).any(|(_, domain)| domain.spec.mark.as_ref().is_some_and(|mark| !mark.disks.is_empty()));
    let expected = want.marker.as_deref().or_else(|| made.then_some(want.machine.as_str()));
    if let Some(expected) = expected.filter(|expected| seen.marker.as_deref() != Some(*expected)) {
        let found =
            seen.marker.as_deref().map_or_else(|| "there is none".to_owned(), |marker| format!("it is {marker}"));
        let message = format!(
            "the marker of the default pool should be {expected}, and {found}: the file system is not mounted, or is another \
             one; nothing is changed"
        );
        return Err(trouble(Reason::PoolNotMounted, message));
    }
    Ok(())
}
