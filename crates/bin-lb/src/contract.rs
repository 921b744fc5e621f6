//! What manager and sidecar agree on: the keys of the Secret, `meta.json` in it, and the report over HTTP.
//!
//! The manager writes a Secret with
//!
//! | key | content |
//! |---|---|
//! | [`ACCEPTED_KEY`] | the accepted configuration: HAProxy has loaded one rendered from the same template before |
//! | [`CANDIDATE_KEY`] | optional: a configuration to try, after a change of template or image |
//! | [`META_KEY`] | [`Meta`] as JSON: checksums of the two, and the servers that leave |
//!
//! mounts it whole (never by `subPath`, which is not refreshed) and reads [`Status`] from each pod. Both sides ignore
//! fields they do not know, so either may be upgraded first.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Secret key of the accepted configuration.
pub const ACCEPTED_KEY: &str = "haproxy.cfg";
/// Secret key of the candidate configuration.
pub const CANDIDATE_KEY: &str = "candidate.cfg";
/// Secret key of [`Meta`].
pub const META_KEY: &str = "meta.json";

/// What `meta.json` of the Secret holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// SHA-256 of the accepted configuration, 64 lower-case hexadecimal digits.
    pub accepted: String,
    /// The same of the candidate; absent or null when there is none, and then `candidate.cfg` is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// Servers of which no session may be left. The configurations no longer hold them.
    #[serde(default)]
    pub leaving: Vec<Leaving>,
}

/// A server that leaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// Its name in the configuration, whatever the backend: the name of the BareMetalHost.
    pub name: String,
    /// Its address. It finds the server under templates that name servers otherwise (by number, say). Leave it out
    /// when another server that stays has the same address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// What one pod reports at `GET /status`. It holds no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Checksum of the configuration that new connections meet; null while HAProxy does not run.
    pub serving: Option<String>,
    /// What the sidecar read from its volume, so that the manager sees whether kubelet has refreshed it.
    pub accepted: Option<String>,
    /// The candidate read from the volume.
    pub candidate: Option<String>,
    /// Those of the two that HAProxy refused, with its own words. They are tried again, ever more rarely.
    pub refused: Vec<Refused>,
    /// One entry per server of `meta.json`'s `leaving`, in its order.
    pub leaving: Vec<LeavingState>,
    /// The processes that hold connections, the serving one first.
    pub workers: Vec<WorkerState>,
    /// As HAProxy prints it, for example `2.6.12-1+deb12u4`.
    pub haproxy_version: Option<String>,
    /// What keeps the sidecar from its work, if anything.
    pub error: Option<String>,
    /// Seconds since these facts were read. More than a few mean that the sidecar hangs.
    pub age_seconds: u64,
}

/// A configuration that HAProxy did not load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Its checksum.
    pub sha: String,
    /// What HAProxy said, with the lines it named.
    pub message: String,
}

/// How far a leaving server is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeavingState {
    /// As in `meta.json`.
    pub name: String,
    /// Sessions left in all workers, old ones too; null when some worker could not be asked.
    pub sessions: Option<u64>,
    /// The served configuration still has the server, so its sessions are left alone.
    pub configured: bool,
}

/// One HAProxy worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerState {
    /// Its process id, in HAProxy's container.
    pub pid: u32,
    /// Checksum of the configuration it runs; null if it was not written by the sidecar.
    pub serving: Option<String>,
    /// Whether it takes new connections; the others only finish theirs.
    pub current: bool,
}

/// What one pod answers at `GET /backends`: what its HAProxy's own checks found. It is asked for seldom, and read from
/// HAProxy only then. It holds no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backends {
    /// The servers of the configuration that new connections meet.
    pub backends: Vec<BackendState>,
}

/// How one server is, as HAProxy's checks found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendState {
    /// The backend in the configuration.
    pub backend: String,
    /// The server in it: with the built-in templates the name of the BareMetalHost.
    pub server: String,
    /// Whether connections are sent to it; null where the configuration asks for no check, or none has ended yet.
    pub up: Option<bool>,
    /// What the last check found, in HAProxy's words.
    pub says: String,
}

impl Status {
    /// Whether this pod has done all the manager waits for before a host may be released: it serves what the Secret
    /// with checksum `accepted` (or its `candidate`) holds, and none of `leaving` has a session or a place left.
    pub fn confirms(&self, accepted: &str, candidate: Option<&str>, leaving: &BTreeSet<&str>) -> bool {
        let serves = self.serving.as_deref().is_some_and(|sha| sha == accepted || Some(sha) == candidate);
        let gone = |name: &str| {
            self.leaving.iter().any(|state| state.name == name)
                && self
                    .leaving
                    .iter()
                    .filter(|state| state.name == name)
                    .all(|state| state.sessions == Some(0) && !state.configured)
        };
        serves && leaving.iter().all(|name| gone(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(serving: &str, sessions: Option<u64>, configured: bool) -> Status {
        Status {
            serving: Some(serving.to_owned()),
            leaving: vec![LeavingState { name: "node-1".to_owned(), sessions, configured }],
            ..Status::default()
        }
    }

    #[test]
    fn a_pod_confirms_only_what_it_serves_and_only_without_sessions() {
        let node = BTreeSet::from(["node-1"]);
        assert!(status("new", Some(0), false).confirms("new", None, &node));
        assert!(status("try", Some(0), false).confirms("new", Some("try"), &node));
        assert!(!status("old", Some(0), false).confirms("new", None, &node), "serves another configuration");
        assert!(!status("new", Some(1), false).confirms("new", None, &node), "one session is left");
        assert!(!status("new", None, false).confirms("new", None, &node), "a worker could not be asked");
        assert!(!status("new", Some(0), true).confirms("new", None, &node), "the server still has its place");
        assert!(!status("new", Some(0), false).confirms("new", None, &BTreeSet::from(["node-2"])), "not read yet");
    }

    #[test]
    fn fields_of_a_newer_manager_are_ignored() {
        let meta: Meta = serde_json::from_str(r#"{"accepted":"aa","candidate":null,"later":{"x":1}}"#).unwrap();
        assert_eq!(meta, Meta { accepted: "aa".to_owned(), ..Meta::default() });
    }
}
