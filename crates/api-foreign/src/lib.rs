//! Read models of kinds that others own: only the fields we read or write.

pub mod cluster_api;
pub mod metal3;

pub use cluster_api::Cluster;
pub use metal3::BareMetalHost;
