//! The sidecar beside an unmodified HAProxy: loads what the manager accepted without cutting live connections, ends the
//! sessions of servers that leave, and says what is served.
//!
//! ```text
//!  Secret volume ──► watch ──► Want ─┐
//!                                    ├─► turn::plan ──► sidecar (writes, reloads, cuts) ──► report ──► GET /status
//!  master socket ──► master ─► Seen ─┘
//!                        └────► health ──────────────────────────────────────────────────────► GET /backends
//! ```
//!
//! The sidecar never believes that a reload worked because nothing complained: every configuration it writes ends with
//! a mark (see [`config`]), and the mark that a worker shows is what that worker serves. This holds for every HAProxy
//! since 2.2, whatever its reload command answers.
pub mod config;
pub mod contract;
pub mod error;
pub mod errors;
pub mod health;
pub mod master;
pub mod report;
pub mod sidecar;
pub mod turn;
pub mod watch;
