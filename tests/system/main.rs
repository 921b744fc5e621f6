//! The whole system, from outside: kubectl, curl, ssh and `slipway` against the stack that `make up` starts.
//!
//! Every test gives back what it changed, and they share one tenant: `--test-threads=1`.

#![allow(clippy::unwrap_used, reason = "all of it is test code, where a failure is a failure of the test")]

mod bad_input;
mod claims;
mod crashes;
mod deletion;
mod endpoints;
mod faults;
mod hosts;
mod jump_host;
mod login;
mod manager;
mod privileges;
mod rest;
mod services;
mod sessions;
mod sip;
mod stack;
