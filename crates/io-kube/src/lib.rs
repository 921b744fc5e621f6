//! Everything that talks to the Kubernetes API: reads, writes, watches, events, leases, and the health and metrics server.

pub mod client;
pub mod error;
pub mod events;
pub mod health;
pub mod lease;
pub mod metrics;
pub mod read;
pub mod watch;
pub mod write;

pub use error::{Cause, Error, Retry, Target, Verb};
pub use lease::Leadership;
pub use metrics::Metrics;
pub use watch::{Change, Scope, changes};
pub use write::{Deletion, Version, Writer};
