//! `host`: power and state of a tenant's hosts through Redfish, from the jump host.
fn main() {}
