//! The manager: one process, one lease per capability.
fn main() {}
