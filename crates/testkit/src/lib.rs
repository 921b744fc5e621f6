//! What the tests stand on: an in-memory API server and an in-memory hypervisor with fault injection, a fleet builder, a clock.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use k8s_openapi::api::core::v1::Secret;
//! use testkit::{Api, Fleet, Match};
//!
//! let api = Api::new();
//! api.seed_all(Fleet::of(3).racks(2).flavor("control-plane").objects());
//! api.faults().when(Match::writes().kind("BareMetalHost")).nth(2).lose_answer();
//! let secrets: kube::Api<Secret> = kube::Api::all(api.client_named("manager-a"));
//! assert_eq!(secrets.list(&Default::default()).await.unwrap().items.len(), 6);
//! # }
//! ```
// A test that uses these wrongly shall fail where it does so.
#![allow(clippy::missing_panics_doc)]

mod api;
mod clock;
mod consumer;
mod faults;
mod fleet;
pub mod hypervisor;
mod kubelet;
mod log;
mod server;
mod sip;
mod snapshot;

pub use api::Api;
pub use clock::Clock;
pub use consumer::Consumer;
pub use faults::{Faults, Match, Milestone, Refusal, Rule, When, WhenEvent};
pub use fleet::Fleet;
pub use kubelet::Kubelet;
pub use log::{Effect, Entry, Verb};
pub use server::Kind;
pub use sip::{Sip, sip};
pub use snapshot::{Changed, Snapshot};
