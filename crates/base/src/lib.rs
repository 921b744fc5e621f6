//! Types with laws and no I/O: object keys, port ranges, names, and how conditions are stated and merged.

pub mod condition;
pub mod key;
pub mod names;
pub mod port;

pub use condition::Says;
pub use key::Key;
pub use port::PortRange;
