//! The sidecar of a load balancer: loads what the manager wrote into HAProxy and reports what it serves.
fn main() {}
