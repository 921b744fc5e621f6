//! The in-memory API server: what is stored, how requests change it, how changes are watched.
//!
//! ```text
//!  client ──► serve.rs: faults, log ──► read.rs  · lists and single objects ┐
//!                                  ├──► watch.rs · streams                  ├── state.rs: objects, versions, history
//!                                  └──► write.rs · create, replace, patch,  ┘
//!                                         delete, with owners.rs (server-side apply), patch.rs, rules.rs
//!                                         (what single kinds demand) and garbage.rs
//! ```
//! Source of the behaviour: `k8s.io/apiserver` 0.34 (`registry/generic/registry/store.go`, `registry/rest`,
//! `endpoints/handlers`), and the conformance cases in `tests/`, which also run against a real server.

mod call;
mod garbage;
mod kind;
mod owners;
mod patch;
mod read;
mod refusal;
mod rules;
mod selector;
mod serve;
mod state;
mod watch;
mod write;

pub(crate) use call::Call;
pub use kind::Kind;
pub(crate) use kind::known;
pub(crate) use refusal::Refused;
pub(crate) use serve::{Connection, Content, Server};
pub(crate) use state::{Happened, State, key_text};
