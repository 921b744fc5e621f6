//! Our CustomResourceDefinitions, one folder per kind: spec, status, admission rules, printer columns.
//!
//! Group, version and shape are those of the original operators, so manifests written for them apply unchanged;
//! every field beyond those is additive and optional.

pub mod keys;
mod schema;
pub mod sipcluster;

pub use sipcluster::{SIPCluster, SIPClusterSpec, SIPClusterStatus};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Every CustomResourceDefinition of this version, as it is applied and in that order.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![schema::finished(SIPCluster::crd())]
}
