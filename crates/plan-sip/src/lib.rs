//! Decides what SIP does: which hosts a SIPCluster gets, keeps and gives back, and the objects that serve it.
//!
//! Pure: no clock, no I/O, no randomness. Everything here is a function of values that `observe` read.

pub mod claims;
pub mod host;
pub mod network;
pub mod order;
pub mod outlook;
pub mod placement;
pub mod quarantine;
pub mod services;
pub mod site;
pub mod want;
