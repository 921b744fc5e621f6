//! `cluster.x-k8s.io` Cluster, as much of it as tells which tenant runs on our hosts.

use kube::CustomResource;
use serde::{Deserialize, Serialize};

/// What a Cluster shall be; nothing of it is read.
#[derive(CustomResource, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[kube(
    group = "cluster.x-k8s.io",
    version = "v1beta1",
    kind = "Cluster",
    plural = "clusters",
    namespaced,
    derive = "Default",
    schema = "disabled"
)]
pub struct ClusterSpec {}
