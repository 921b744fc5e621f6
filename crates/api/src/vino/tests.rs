//! What the Vino's definition accepts and refuses; judged by kube-cel, without an API server.

use kube::core::cel::Validator;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Vino, VinoSpec};

fn schema() -> Value {
    let crd = crate::crd("Vino").expect("our definition");
    let schema = crd.spec.versions[0].schema.clone().expect("a schema").open_api_v3_schema.expect("a schema");
    serde_json::to_value(schema).expect("a schema is JSON")
}

/// What the CEL rules say of this object, in the place of another one if there was one.
fn judged(object: &Value, old: Option<&Value>) -> Vec<String> {
    match Validator::new().validate(&schema(), object, old) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

fn vino(spec: &Value) -> Value {
    json!({"metadata": {"name": "fleet", "namespace": "default"}, "spec": spec})
}

#[expect(clippy::needless_pass_by_value, reason = "cases read better as `json!(..)` than as `&json!(..)`")]
fn refused(spec: Value) -> Vec<String> {
    judged(&vino(&spec), None)
}

fn network(more: &Value) -> Value {
    let mut network = json!({"name": "management", "subnet": "192.168.2.0/20"});
    for (key, value) in more.as_object().expect("an object") {
        network[key] = value.clone();
    }
    json!({"networks": [network]})
}

#[rstest]
#[case::host_bits(json!({"subnet": "192.168.2.0/20"}), "")]
#[case::six(json!({"subnet": "0001:0000:0000:0001::/32"}), "")]
#[case::no_prefix(json!({"subnet": "192.168.2.0"}), "spec.networks[0].subnet: is no CIDR such as 192.168.0.0/20")]
#[case::a_name(json!({"subnet": "lan/20"}), "spec.networks[0].subnet: is no CIDR such as 192.168.0.0/20")]
#[case::no_address(json!({"staticAllocationStart": "10.0.0.2.x"}), "spec.networks[0].staticAllocationStart: is no IP address")]
#[case::bridge_of_others(json!({"mode": "Bridge", "bridgeName": "br0"}), "")]
#[case::bridge_without_name(json!({"mode": "Bridge"}),
    "spec.networks[0]: mode Bridge uses an existing bridge: bridgeName names it, and physicalInterface is its owner's concern")]
fn networks(#[case] more: Value, #[case] said: &str) {
    assert_eq!(refused(network(&more)).join(""), said);
}

#[rstest]
#[case::subnet(json!({"subnet": "192.168.16.0/20"}), "spec.networks[0]: the subnet of a network cannot change, for its addresses are leased; add a network of another name")]
#[case::mac_prefix(json!({"macPrefix": "06:00:00:00:00:00"}), "spec.networks[0]: the macPrefix of a network cannot change")]
#[case::mode(json!({"mode": "NAT"}), "spec.networks[0]: the mode of a network cannot change; add a network of another name")]
#[case::more_addresses(json!({"staticAllocationStop": "192.168.2.99"}), "")]
fn what_is_leased_from_does_not_change(#[case] more: Value, #[case] said: &str) {
    let old = network(&json!({"staticAllocationStop": "192.168.2.50"}));
    assert_eq!(judged(&vino(&network(&more)), Some(&vino(&old))).join(""), said);
}

#[rstest]
#[case::known(json!({"networks": [{"name": "a"}], "nodes": [{"name": "w", "networkInterfaces": [{"name": "eth0", "network": "a"}]}]}), "")]
#[case::unknown(json!({"networks": [{"name": "a"}], "nodes": [{"name": "w", "networkInterfaces": [{"name": "eth0", "network": "b"}]}]}),
    "spec: an interface in nodes names a network that is not in networks")]
#[case::none(json!({"nodes": [{"name": "w", "networkInterfaces": [{"name": "eth0", "network": "b"}]}]}),
    "spec: an interface in nodes names a network that is not in networks")]
#[case::boots(json!({"nodes": [{"name": "w", "bootInterfaceName": "eth0", "networkInterfaces": [{"name": "eth0"}]}]}), "")]
#[case::boots_by_none(json!({"nodes": [{"name": "w", "bootInterfaceName": ""}]}), "")]
#[case::boots_by_nothing(json!({"nodes": [{"name": "w", "bootInterfaceName": "eth1", "networkInterfaces": [{"name": "eth0"}]}]}),
    "spec.nodes[0]: bootInterfaceName names none of networkInterfaces")]
#[case::one_port(json!({"networks": [{"name": "a", "physicalInterface": "eth1"}, {"name": "b", "physicalInterface": "eth1"}]}),
    "spec: two networks have the same physicalInterface")]
#[case::one_bridge(json!({"networks": [{"name": "a", "bridgeName": "br"}, {"name": "b", "bridgeName": "br"}]}),
    "spec: two networks have the same bridgeName")]
#[case::bridges(json!({"networks": [{"name": "a", "bridgeName": "br"}, {"name": "b"}, {"name": "c", "bridgeName": ""}, {"name": "d", "bridgeName": ""}]}), "")]
#[case::disk_called_root(json!({"nodes": [{"name": "w", "diskDrives": [{"name": "root"}]}]}),
    "spec.nodes[0].diskDrives[0].name: root is the name of the root disk")]
#[case::label_key(json!({"nodes": [{"name": "w", "bmhLabels": {"a b": "c"}}]}),
    "spec.nodes[0].bmhLabels: every key must be a label key, such as vino.airshipit.org/flavor")]
#[case::clear(json!({"bmcCredentials": {"username": "a", "password": "b"}}), "")]
#[case::secret(json!({"bmcCredentials": {"username": "", "secretRef": {"name": "s"}}}), "")]
#[case::both(json!({"bmcCredentials": {"username": "a", "secretRef": {"name": "s"}}}),
    "spec.bmcCredentials: secretRef and a login in the clear exclude each other")]
fn specs(#[case] spec: Value, #[case] said: &str) {
    assert_eq!(refused(spec).join(""), said);
}

#[rstest]
#[case("fleet", true)]
#[case("a.b", false)]
#[case("-a", false)]
#[case(&"a".repeat(64), false)]
fn names(#[case] name: &str, #[case] good: bool) {
    assert_eq!(judged(&json!({"metadata": {"name": name}, "spec": {}}), None).is_empty(), good);
}

#[test]
fn every_rule_compiles() {
    let rules = kube::core::cel::compile_schema(&schema());
    assert!(!rules.has_errors(), "{:?}", rules.compilation_errors());
}

/// The whole shape of the original, read and written back: no field is lost, renamed or turned into another type.
#[test]
fn a_manifest_of_the_original_is_read_and_written_back() {
    let spec = json!({
        "nodeSelector": {"matchLabels": {"beta.kubernetes.io/os": "linux"}},
        "configuration": {"cpuExclude": "0-1"},
        "networks": [{
            "name": "management", "subnet": "192.168.2.0/20", "type": "bridge",
            "staticAllocationStart": "192.168.2.10", "staticAllocationStop": "192.168.2.24",
            "dhcpAllocationStart": "192.168.4.0", "dhcpAllocationStop": "192.168.7.255",
            "instanceSubnetBitStep": 4, "macPrefix": "52:54:00:06:00:00", "dns_servers": ["192.0.2.53"],
            "routes": [{"network": "10.0.0.0", "netmask": "255.255.255.0", "gateway": "$vinobridge"}],
            "physicalInterface": "enp3s7", "libvirtTemplate": "management", "bridgeName": "vm-infra",
        }],
        "nodes": [{
            "name": "master", "count": 1, "bmhLabels": {"airshipit.org/k8s-role": "master"},
            "networkDataTemplate": {"name": "test-template", "namespace": "default"},
            "networkInterfaces": [{"name": "management", "type": "network", "network": "management", "mtu": 1500,
                                   "options": {"bond_mode": "802.3ad"}}],
            "bootInterfaceName": "management", "rootDeviceName": "/dev/vda", "enableVNC": true,
            "diskDrives": [{"name": "data", "type": "qcow2", "path": "/srv/vms", "options": {"sizeGb": 20, "sparse": true}}],
            "libvirtTemplate": {"name": "t", "namespace": "default"},
        }],
        "daemonSetOptions": {
            "namespacedName": {"name": "t", "namespace": "default"}, "libvirtImage": "l", "sushyImage": "s",
            "vinoBuilderImage": "b", "nodeAnnotatorImage": "a",
        },
        "bmcCredentials": {"username": "admin", "password": "passw0rd"},
        "nodeLabelKeysToCopy": ["airshipit.org/server"],
        "pxeBootImageHost": "192.0.2.1", "pxeBootImageHostPort": 80, "vmBridge": "lo",
    });
    let read: VinoSpec = serde_json::from_value(spec.clone()).expect("every field is known");
    assert_eq!(serde_json::to_value(&read).expect("JSON"), spec);
    assert_eq!(refused(spec), [""; 0]);
    let status = json!({"conditions": [], "configMapRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}});
    let vino: Vino = serde_json::from_value(json!({"apiVersion": "airship.airshipit.org/v1", "kind": "Vino",
        "metadata": {"name": "a"}, "spec": {}, "status": status}))
    .expect("a Vino");
    assert_eq!(vino.status.expect("a status").config_map_ref.expect("a reference").name.as_deref(), Some("x"));
}
