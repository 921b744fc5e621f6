//! Decides one turn of the sidecar: which configuration to load, whether to reload, which sessions to shut. Pure.
//!
//! ```text
//!              candidate, not refused?  ──yes──► load it ──► refused? remember it, go on below
//!                       │ no
//!              accepted, not refused?   ──yes──► load it ──► refused? remember it, go on below
//!                       │ no
//!              the last one that HAProxy loaded
//! ```

use std::collections::BTreeSet;

use crate::{
    contract::{Leaving, LeavingState},
    master::{Place, Server},
};

/// A checksum.
pub type Sha = String;

/// What the manager wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Want {
    /// The accepted configuration.
    pub accepted: Sha,
    /// The configuration to try first.
    pub candidate: Option<Sha>,
    /// Servers of which no session may be left.
    pub leaving: Vec<Leaving>,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What HAProxy would read at its next start.
    pub on_disk: Option<Sha>,
    /// The last configuration that it is known to have loaded.
    pub good: Option<Sha>,
    /// Configurations it refused a short while ago.
    pub refused: BTreeSet<Sha>,
    /// The running HAProxy.
    pub running: Option<Running>,
    /// HAProxy has been away for so long that what is on disk must be what keeps it from starting.
    pub will_not_start: bool,
}

/// A running HAProxy: the worker that takes new connections, and those that finish theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Running {
    /// The worker that takes new connections.
    pub current: Worker,
    /// It outlived a reload that failed: the master waits for a better configuration.
    pub stale: bool,
    /// The other workers.
    pub old: Vec<Worker>,
}

/// One worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worker {
    /// Process id.
    pub pid: u32,
    /// The configuration it runs; none if it is not ours.
    pub serving: Option<Sha>,
    /// Its servers; none if it was not asked or did not answer.
    pub servers: Option<Vec<Server>>,
}

/// What to do, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Keep a copy of what is on disk: it is served.
    pub keep_good: bool,
    /// Remember that this configuration does not load.
    pub give_up: Option<Sha>,
    /// Write this configuration to disk.
    pub write: Option<Sha>,
    /// Reload, and expect this configuration to be served.
    pub reload: Option<Sha>,
    /// Sessions to shut.
    pub cut: Vec<Cut>,
}

/// The sessions of a server that is no longer configured, in an old worker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// The worker.
    pub pid: u32,
    /// The backend.
    pub backend: String,
    /// The server.
    pub server: String,
}

/// What this turn does.
pub fn plan(want: &Want, seen: &Seen) -> Plan {
    let Seen { on_disk, good, refused, running, will_not_start } = seen;
    let target = target(want, good.as_ref(), refused);
    let serving = running.as_ref().and_then(|running| running.current.serving.as_ref());
    let stale = running.as_ref().is_some_and(|running| running.stale);
    let on_target = on_disk.as_ref() == Some(target);
    // A configuration that was served once is not at fault when HAProxy is away.
    let give_up = running.is_none() && *will_not_start && on_target && good.as_ref().is_some_and(|good| good != target);
    let reload = running.is_some() && (serving != Some(target) || stale) && !refused.contains(target);
    Plan {
        keep_good: serving.is_some() && serving == on_disk.as_ref() && serving != good.as_ref(),
        give_up: give_up.then(|| target.clone()),
        write: (!on_target).then(|| target.clone()),
        reload: reload.then(|| target.clone()),
        cut: running.as_ref().map(|running| cuts(&want.leaving, running)).unwrap_or_default(),
    }
}

/// How far each leaving server is.
pub fn leaving(want: &[Leaving], running: Option<&Running>) -> Vec<LeavingState> {
    let state = |leaving: &Leaving| {
        let name = leaving.name.clone();
        let Some(Running { current, old, stale: _ }) = running else {
            return LeavingState { name, sessions: None, configured: false };
        };
        let in_worker = |worker: &Worker| {
            let servers = worker.servers.as_ref()?;
            Some(servers.iter().filter(|server| is(leaving, server)).map(|server| server.sessions).sum::<u64>())
        };
        let sessions = std::iter::once(current).chain(old).map(in_worker).sum();
        LeavingState { name, sessions, configured: configured(leaving, current) }
    };
    want.iter().map(state).collect()
}

fn target<'a>(want: &'a Want, good: Option<&'a Sha>, refused: &BTreeSet<Sha>) -> &'a Sha {
    let wanted = want.candidate.iter().chain([&want.accepted]);
    wanted.into_iter().find(|sha| !refused.contains(*sha)).or(good).unwrap_or(&want.accepted)
}

/// In old workers: the servers whose address is nowhere in the served configuration, whatever their names (a template
/// may number its servers), and those the manager names.
fn cuts(leaving: &[Leaving], running: &Running) -> Vec<Cut> {
    let Running { current, old, stale: _ } = running;
    let Some(served) = &current.servers else { return Vec::new() };
    let places: BTreeSet<&Place> = served.iter().map(|server| &server.place).collect();
    let gone: Vec<&Leaving> = leaving.iter().filter(|leaving| !configured(leaving, current)).collect();
    let leaves = |server: &Server| !places.contains(&server.place) || gone.iter().any(|leaving| is(leaving, server));
    let mut cuts = Vec::new();
    for Worker { pid, servers, serving: _ } in old {
        for server in servers.iter().flatten().filter(|server| leaves(server)) {
            if server.sessions > 0 {
                cuts.push(Cut { pid: *pid, backend: server.backend.clone(), server: server.name.clone() });
            }
        }
    }
    cuts
}

fn configured(leaving: &Leaving, current: &Worker) -> bool {
    current.servers.iter().flatten().any(|server| is(leaving, server))
}

fn is(leaving: &Leaving, server: &Server) -> bool {
    server.name == leaving.name
        || leaving.address.as_deref().is_some_and(|address| Place::parse(address) == server.place)
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
