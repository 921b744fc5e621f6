//! Proves at the start that this process may claim hosts: the admission policy that protects claim labels admits it.

use std::time::Duration;

use api::keys;
use base::Key;
use io_kube::{Cause, Version};
use kube::core::ApiResource;
use serde_json::json;

use super::{Done, Engine};

/// Pause before the next attempt.
const PAUSE: Duration = Duration::from_secs(10);

/// How far the proof is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Proof {
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
        match &self.proof {
            Proof::Given => true,
            Proof::Running | Proof::Refused(_) => false,
            Proof::Open => {
                let Some(host) = self.site.hosts().next().cloned() else { return true };
                self.proof = Proof::Running;
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
        self.proof = match result {
            Ok(()) => Proof::Given,
            Err(error) if matches!(error.cause, Cause::Forbidden(_)) => {
                tracing::error!(%error, "this process may not claim hosts");
                Proof::Refused(error.to_string())
            }
            // The host changed or went meanwhile, or the server is busy: tried again with what is there then.
            Err(_) => Proof::Open,
        };
        if self.proof != Proof::Given {
            self.schedule.wake_after(PAUSE);
        }
    }

    /// A refused proof is tried again when time has passed.
    pub(super) fn proof_again(&mut self) {
        if matches!(self.proof, Proof::Refused(_)) {
            self.proof = Proof::Open;
        }
    }
}
