//! Our CustomResourceDefinitions, one folder per kind: spec, status, admission rules, printer columns.
//!
//! Group, version and shape are those of the original operators, so manifests written for them apply unchanged;
//! every field beyond those is additive and optional.

pub mod ippool;
pub mod keys;
mod schema;
pub mod sipcluster;
pub mod vino;
pub mod vinonode;

pub use ippool::{IPPool, IPPoolSpec};
pub use sipcluster::{SIPCluster, SIPClusterSpec, SIPClusterStatus};
pub use vino::{Vino, VinoSpec, VinoStatus};
pub use vinonode::{VinoNode, VinoNodeSpec, VinoNodeStatus};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Every CustomResourceDefinition that this version installs, as it is applied and in that order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![schema::finished(SIPCluster::crd())]
}

/// The definition of one kind, such as `Vino`; upper and lower case alike.
pub fn crd(kind: &str) -> Option<CustomResourceDefinition> {
    let all = [SIPCluster::crd(), Vino::crd(), schema::without_subresources(IPPool::crd()), VinoNode::crd()];
    all.into_iter().map(schema::finished).find(|crd| crd.spec.names.kind.eq_ignore_ascii_case(kind))
}
