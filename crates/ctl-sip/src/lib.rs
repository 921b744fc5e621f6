//! The SIP capability: SIPClusters get hosts and services.
//!
//! ```text
//!  watches ──► engine: one loop that owns the site (plan-sip) and the cache of our objects
//!                │ decides about hosts: serial, in order, one record write at a time
//!                ▼
//!              turns: one per cluster at a time, many clusters in parallel: observe, plan, apply, status
//!                │ what the API server answered
//!                └────► back into the engine, as if a watch had said it
//! ```

mod authority;
pub mod cache;
pub mod certs;
mod discovery;
pub mod engine;
pub mod error;
pub mod metrics;
pub mod reports;
pub mod sipcluster;
pub mod sources;

use std::{collections::BTreeSet, sync::Arc};

use io_kube::{Writer, events::Recorder};
use plan_sip::{services::Installation, site::Settings};

pub use engine::Engine;
pub use error::Error;

/// What the installation settles, and what every turn needs.
#[derive(Clone)]
pub struct Context {
    /// The base cluster: writes, and live reads through its client.
    pub writer: Writer,
    /// About claims.
    pub settings: Settings,
    /// About services.
    pub installation: Arc<Installation>,
    /// The clock, so that tests own the time.
    pub now: io_kube::lease::Now,
    /// How the sidecars of load balancers are asked.
    pub reports: Arc<dyn reports::Ask>,
    /// Figures.
    pub metrics: metrics::SipMetrics,
    /// Who tells people what happened; `None`: nobody.
    pub events: Option<Recorder>,
}

/// Namespaces in which hosts may lie, beside those of the SIPClusters themselves.
pub fn host_namespaces(settings: &Settings) -> BTreeSet<String> {
    settings.host_namespaces.clone().unwrap_or_default()
}
