//! The whole SIP controller against the in-memory API server, on paused time.

mod harness;
mod outlook;
mod release;
mod rights;
mod story;
mod told;
mod unreadable;
mod watching;
