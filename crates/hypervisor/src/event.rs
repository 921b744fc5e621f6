//! What a hypervisor tells without being asked.

use uuid::Uuid;

/// Something happened. Events are hints: whoever acts on one reads first what is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// About one domain.
    Domain {
        /// Which.
        uuid: Uuid,
        /// What happened to it.
        change: Change,
    },
    /// Anything may have changed: the connection was made anew, or events were lost.
    Resync,
}

/// What happened to a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It was made, or its definition changed.
    Defined,
    /// It is gone.
    Undefined,
    /// It runs.
    Started,
    /// It no longer runs.
    Stopped,
    /// It no longer runs, by a fault of its own.
    Crashed,
    /// It is held, or goes on.
    Paused,
    /// The guest restarted itself: what is defined for the next start (a boot override that held once, more processors)
    /// takes effect only with a cold restart.
    Rebooted,
}
