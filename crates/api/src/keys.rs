//! Labels, annotations and finalizers that others may rely on: those of SIP; those of ViNO are in [`vino`].

pub mod vino;

/// API group of all our kinds.
pub const GROUP: &str = "airship.airshipit.org";

/// Finalizer of a SIPCluster. The doubled "airship" is the original's.
pub const FINALIZER: &str = "sip.airship.airshipit.org/finalizer";

/// Claim label on a BareMetalHost: namespace of the SIPCluster that has it.
pub const CLUSTER_NAMESPACE: &str = "sip.airshipit.org/cluster-namespace";
/// Claim label on a BareMetalHost: name of the SIPCluster that has it. Its mere presence marks a host as taken.
pub const CLUSTER_NAME: &str = "sip.airshipit.org/cluster-name";
/// Claim label on a BareMetalHost: the role, such as `ControlPlane`.
pub const NODE_TYPE: &str = "sip.airshipit.org/node-type";

/// Annotation on a BareMetalHost: addresses by network id (JSON), as read when the host was claimed.
pub const ADDRESSES: &str = "sip.airshipit.org/addresses";
/// Annotation on a BareMetalHost in quarantine after a release (JSON: [`crate::sipcluster::Released`]).
pub const RELEASED: &str = "sip.airshipit.org/released";
/// Annotation by which an administrator gives up a host that is in use: `<namespace>/<cluster>`.
pub const FORCE_RELEASE: &str = "sip.airshipit.org/force-release";
/// Annotation on a BareMetalHost whose only purpose is to move its resourceVersion.
pub const TOUCHED: &str = "sip.airshipit.org/touched";
/// Annotation on a BareMetalHost that keeps it from being claimed; the value is shown to people.
pub const MAINTENANCE: &str = "sip.airshipit.org/maintenance";
/// Annotation on a Cluster of Cluster API that names the one SIPCluster that may read its kubeconfig.
pub const CLUSTER: &str = "sip.airshipit.org/cluster";

/// Label on everything a SIPCluster makes: its namespace.
pub const OWNER_NAMESPACE: &str = "sip.airshipit.org/owner-namespace";
/// Label on everything a SIPCluster makes: its name.
pub const OWNER_NAME: &str = "sip.airshipit.org/owner-name";
/// Label on everything a SIPCluster makes: its uid.
pub const OWNER_UID: &str = "sip.airshipit.org/owner-uid";
/// Annotation on everything a SIPCluster makes: digest of what was last applied, so that nothing is written twice.
pub const APPLIED: &str = "sip.airshipit.org/applied";

/// Annotation on a pod of a load balancer: checksum of the configuration it shall serve, so that kubelet refreshes its
/// volume at once.
pub const WANTED: &str = "sip.airshipit.org/wanted";

/// Role whose hosts are the backends of the control-plane load balancers.
pub const CONTROL_PLANE: &str = "ControlPlane";
/// Role whose hosts are the backends of the worker load balancers.
pub const WORKER: &str = "Worker";
