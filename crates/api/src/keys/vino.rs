//! Labels, annotations, finalizer and names of ViNO that others may rely on.

/// Finalizer of a Vino. It has no path, as the original's.
pub const FINALIZER: &str = "vino.airshipit.org";

/// Label on the DaemonSet's pods and in its selector: name of the Vino.
pub const CR_NAME: &str = "vino.airshipit.org/cr-name";
/// Label on the DaemonSet's pods and in its selector: namespace of the Vino.
pub const CR_NAMESPACE: &str = "vino.airshipit.org/cr-namespace";
/// Label on a node that is taken: uid of the Vino whose agent runs there.
pub const AGENT: &str = "vino.airshipit.org/agent";
/// Prefix of the labels on a node, one for each network that it carries: what follows is the network's name.
pub const NETWORK: &str = "network.vino.airshipit.org/";
/// Annotation on a node by which the original asked for virtual machines; we never set it.
pub const NETWORK_VALUES: &str = "airshipit.org/vino.network-values";

/// Label on everything a Vino makes: its namespace.
pub const OWNER_NAMESPACE: &str = "vino.airshipit.org/owner-namespace";
/// Label on everything a Vino makes: its name.
pub const OWNER_NAME: &str = "vino.airshipit.org/owner-name";
/// Label on everything a Vino makes: its uid.
pub const OWNER_UID: &str = "vino.airshipit.org/owner-uid";

/// Label on a BareMetalHost: the node its virtual machine is on.
pub const HOST: &str = "vino.airshipit.org/host";
/// Label on a BareMetalHost: the rack of that node, where the node says one.
pub const RACK: &str = "vino.airshipit.org/rack";
/// Label on a BareMetalHost: the group of the Vino that it belongs to.
pub const ROLE: &str = "vino.airshipit.org/role";
/// Label on a BareMetalHost: its flavor.
pub const FLAVOR: &str = "vino.airshipit.org/flavor";
/// Labels of a node that say its rack, the first that is there counts.
pub const RACKS: [&str; 3] = [RACK, "airshipit.org/rack", "topology.kubernetes.io/rack"];

/// Annotation on a BareMetalHost: UUID of its virtual machine.
pub const UUID: &str = "vino.airshipit.org/uuid";
/// Annotation on a BareMetalHost: identity of the machine its virtual machine is on.
pub const MACHINE: &str = "vino.airshipit.org/machine";
/// Annotation on a BareMetalHost: keys of the labels that we set, so that no other is ever taken off.
pub const LABELS: &str = "vino.airshipit.org/labels";
/// Annotation on a BareMetalHost by which an administrator gives up a virtual machine in use: its UUID.
pub const FORCE_REMOVE: &str = "vino.airshipit.org/force-remove";

/// Annotation on a VinoNode by which an administrator says that a machine will never run again: its machineID.
pub const GONE: &str = "vino.airshipit.org/gone";
/// Annotation on a VinoNode that keeps its free hosts from being claimed; the value is shown to people.
pub const MAINTENANCE: &str = "vino.airshipit.org/maintenance";

/// Name of the ConfigMap with the DaemonSet's template, key `template`, where the Vino names no other.
pub const DAEMONSET_TEMPLATE: &str = "vino-daemonset-template";
/// Name of the ConfigMap with flavors for all Vinos, key `flavors.yaml`.
pub const FLAVORS: &str = "vino-flavors";
/// The storage pool that every node has.
pub const DEFAULT_POOL: &str = "vino-default";
/// The directory of that pool.
pub const DEFAULT_POOL_PATH: &str = "/var/lib/libvirt/vino-pool";
/// The bridge of networks that name none, where the Vino names none either.
pub const DEFAULT_BRIDGE: &str = "vm-infra-bridge";
/// Port of the BMCs.
pub const BMC_PORT: i32 = 8000;
/// First MAC address of networks that name none.
pub const DEFAULT_MAC_PREFIX: &str = "02:00:00:00:00:00";
/// How many bits of addresses each node gets for DHCP, where a network does not say.
pub const DEFAULT_BIT_STEP: u32 = 4;
