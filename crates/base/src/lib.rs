//! Types with laws and no I/O: object keys, port ranges, Ethernet and IP addresses, sets of CPUs, names, and how
//! conditions are stated and merged.

pub mod condition;
pub mod cpuset;
pub mod ip;
pub mod key;
pub mod mac;
pub mod names;
pub mod port;

pub use condition::Says;
pub use cpuset::CpuSet;
pub use ip::{IpRange, Subnet};
pub use key::Key;
pub use mac::Mac;
pub use port::PortRange;
