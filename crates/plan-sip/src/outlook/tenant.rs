//! Whether the tenant's API servers answer, from what the checks of the control-plane load balancers found.

use std::collections::BTreeMap;

use super::{ANSWERING, NOT_ASKED, Reading, few};

/// Some answer, and every load balancer has one that does.
pub(super) const SOME_DOWN: &str = "SomeDown";
/// No API server answers any load balancer.
pub(super) const NONE_ANSWERS: &str = "NoneAnswers";
/// Some load balancer's pod reaches none, while another's does.
pub(super) const CUT_OFF: &str = "PodCutOff";
/// No host is behind the load balancers.
pub(super) const NO_HOSTS: &str = "NoHosts";
/// HAProxy was not told to check, or has just begun.
pub(super) const NOT_CHECKED: &str = "NotChecked";

/// What one pod of a control-plane load balancer says of its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodHealth {
    /// The pod.
    pub pod: String,
    /// Its servers; none where it could not be asked.
    pub servers: Option<Vec<ServerHealth>>,
}

/// How a server is, as one pod's checks found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerHealth {
    /// Its name in the configuration: with the built-in templates the name of the BareMetalHost.
    pub name: String,
    /// Whether it takes connections; none where it was not checked.
    pub up: Option<bool>,
    /// What the check found, for people.
    pub says: String,
}

/// How a server is over all that was said of it.
#[derive(Clone, Default)]
struct State {
    up: Option<bool>,
    says: String,
}

impl State {
    /// One word against it counts more than all for it.
    fn add(&mut self, up: Option<bool>, says: &str) {
        match (self.up, up) {
            (None, Some(_)) | (Some(true), Some(false)) => {
                self.up = up;
                says.clone_into(&mut self.says);
            }
            _ => {}
        }
    }
}

fn states<'a>(servers: impl IntoIterator<Item = &'a ServerHealth>) -> BTreeMap<&'a str, State> {
    let mut states: BTreeMap<&str, State> = BTreeMap::new();
    for ServerHealth { name, up, says } in servers {
        states.entry(name).or_default().add(*up, says);
    }
    states
}

/// Reads what the pods say. A server answers when every pod that checked it reaches it; with several backends of the
/// template, in all of them.
pub fn tenant(pods: &[PodHealth]) -> Reading {
    let asked: Vec<(&str, BTreeMap<&str, State>)> =
        pods.iter().filter_map(|pod| Some((pod.pod.as_str(), states(pod.servers.as_ref()?)))).collect();
    if asked.is_empty() {
        let message = "no pod of the control-plane load balancers could be asked".to_owned();
        return Reading { holds: None, reason: NOT_ASKED, mark: Some(String::new()), message };
    }
    let all = states(pods.iter().flat_map(|pod| pod.servers.iter().flatten()));
    let known = all.values().filter(|state| state.up.is_some()).count();
    let down: Vec<(&str, &State)> =
        all.iter().filter(|(_, state)| state.up == Some(false)).map(|(name, state)| (*name, state)).collect();
    let up = known - down.len();
    // One that has only begun to check knows nothing yet.
    let deaf = |states: &BTreeMap<&str, State>| {
        states.values().any(|s| s.up.is_some()) && states.values().all(|s| s.up != Some(true))
    };
    let deaf: Vec<&str> = asked.iter().filter(|(_, states)| deaf(states)).map(|(pod, _)| *pod).collect();
    let hears = asked.iter().any(|(_, states)| states.values().any(|s| s.up == Some(true)));

    let why = |(name, State { says, .. }): &(&str, &State)| {
        if says.is_empty() { (*name).to_owned() } else { format!("{name} ({says})") }
    };
    let names: Vec<&str> = down.iter().map(|(name, _)| *name).collect();
    let missing: Vec<String> = down.iter().map(why).collect();
    let counted = format!("{up} of {known} API servers answer");
    let not = if missing.is_empty() { String::new() } else { format!("; not: {}", few(&missing)) };
    let (holds, reason, message) = match () {
        () if all.is_empty() => {
            (Some(false), NO_HOSTS, "no host is behind the control-plane load balancers".to_owned())
        }
        () if known == 0 => {
            let message = format!(
                "HAProxy has checked none of {} servers: the template asks for no check, or it has just begun",
                all.len()
            );
            (None, NOT_CHECKED, message)
        }
        () if !hears => (Some(false), NONE_ANSWERS, format!("{counted}{not}")),
        () if !deaf.is_empty() => {
            (Some(false), CUT_OFF, format!("{counted}{not}; no API server answers pod {}", deaf.join(", ")))
        }
        () if down.is_empty() => (Some(true), ANSWERING, counted),
        () => (Some(true), SOME_DOWN, format!("{counted}{not}")),
    };
    Reading { holds, reason, mark: Some(format!("{up}/{known} {} | {}", names.join(","), deaf.join(","))), message }
}
