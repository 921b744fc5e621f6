//! Proves at the start that this process may claim hosts: the admission policy that protects claim labels admits it.

use std::time::Duration;

use api::keys;
use base::Key;
use io_kube::Version;
use kube::core::ApiResource;
use serde_json::json;

use super::{Done, Engine};

/// Pause before the next attempt: after the first few, and later. Each attempt is made on another host, for a webhook may
/// refuse one that is broken, whoever writes it.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));
/// How many attempts count as the first few.
const FEW: usize = 10;

/// How far the proof is, and how often it was tried in vain.
#[derive(Debug, Default)]
pub(super) struct Proof {
    pub(super) state: State,
    attempts: usize,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing was tried.
    #[default]
    Open,
    /// The dry run is under way.
    Running,
    /// Refused, with what the server said.
    Refused(String),
    /// The server would have let us.
    Given,
}

impl Engine {
    /// Whether hosts may be decided about. Without hosts there is nothing to prove, and nothing to claim.
    pub(super) fn proved(&mut self) -> bool {
        match &self.proof.state {
            State::Given => true,
            State::Running | State::Refused(_) => false,
            State::Open => {
                let hosts = self.site.hosts().count();
                let nth = self.proof.attempts.checked_rem(hosts).unwrap_or(0);
                let Some(host) = self.site.hosts().nth(nth).cloned() else { return true };
                self.proof.state = State::Running;
                let writer = self.cx.writer.dry_run();
                self.jobs.spawn(async move {
                    let resource = ApiResource::erase::<api_foreign::BareMetalHost>(&());
                    let on = Version { uid: host.uid.clone(), resource_version: host.resource_version.clone() };
                    let patch = json!({"metadata": {"labels": {keys::CLUSTER_NAME: "slipway-proof"}}});
                    let Key { namespace, name } = &host.key;
                    let tried = writer.patch_merge(&resource, Some(namespace), name, patch, &on).await;
                    Done::Proved(tried.map(drop))
                });
                false
            }
        }
    }

    pub(super) fn proof_ended(&mut self, result: Result<(), io_kube::Error>) {
        let Err(error) = result else {
            self.proof.state = State::Given;
            return;
        };
        tracing::warn!(%error, "not proved that this process may claim hosts");
        self.proof.attempts += 1;
        self.proof.state = State::Refused(error.to_string());
        self.schedule.wake_after(if self.proof.attempts < FEW { PAUSE.0 } else { PAUSE.1 });
    }

    /// A proof that failed is tried again when time has passed.
    pub(super) fn proof_again(&mut self) {
        if matches!(self.proof.state, State::Refused(_)) {
            self.proof.state = State::Open;
        }
    }
}
