//! Fleets of BareMetalHosts with their Secrets, as JSON objects.
//!
//! The fixtures are those of the original operator's tests: hosts `node00`, `node01`, ...; network data with one address
//! on `oam-ipv4`; a BMC behind `redfish+https`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// Hosts of a fleet, to be shaped.
#[derive(Clone, Debug)]
pub struct Fleet {
    hosts: Vec<Host>,
    namespace: String,
}

#[derive(Clone, Debug)]
struct Host {
    name: String,
    labels: Vec<(String, String)>,
    bmc: String,
    ipv4: String,
    ipv6: String,
}

/// Label of the rack.
const RACK: &str = "vino.airshipit.org/rack";
/// Label of the physical server.
const HOST: &str = "vino.airshipit.org/host";

impl Fleet {
    /// So many hosts `node00`.. in namespace `default`, each in a server of its own, all in rack `r0`.
    pub fn of(hosts: usize) -> Self {
        let host = |n: usize| Host {
            name: format!("node{n:02}"),
            labels: vec![(RACK.into(), "r0".into()), (HOST.into(), format!("stl2r0o{n}"))],
            bmc: format!("32.68.51.{}", 12 + n % 200),
            ipv4: format!("32.68.{}.{}", 51 + n / 200, 139 + n % 100),
            ipv6: format!("2001:db8::{:x}", 0x139 + n),
        };
        Fleet { hosts: (0..hosts).map(host).collect(), namespace: "default".into() }
    }

    /// The six hosts of the original's samples, in `sipcluster-system`: three control-plane hosts in racks r006 and r007,
    /// three workers in racks r007, r008 and r009. Addresses repeat, as they do there.
    pub fn sample() -> Self {
        let hosts = [
            ("rdm9r006o001", "control-plane", "r006", 12, 139),
            ("rdm9r006o002", "control-plane", "r006", 13, 140),
            ("rdm9r007o001", "control-plane", "r007", 12, 139),
            ("rdm9r007o002", "worker", "r007", 12, 140),
            ("rdm9r008o002", "worker", "r008", 12, 140),
            ("rdm9r009o002", "worker", "r009", 12, 140),
        ];
        let host = |(name, flavor, rack, bmc, address): (&str, &str, &str, u8, u8)| Host {
            name: name.into(),
            labels: vec![
                ("vino.airshipit.org/flavor".into(), flavor.into()),
                (RACK.into(), rack.into()),
                (HOST.into(), name.into()),
            ],
            bmc: format!("32.68.51.{bmc}"),
            ipv4: format!("32.68.51.{address}"),
            ipv6: format!("2001:db8::{address}"),
        };
        Fleet { hosts: hosts.into_iter().map(host).collect(), namespace: "sipcluster-system".into() }
    }

    /// All in another namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Dealt to so many racks `r0`, `r1`, ... in turn; the servers are named after them.
    #[must_use]
    pub fn racks(mut self, racks: usize) -> Self {
        for (n, host) in self.hosts.iter_mut().enumerate() {
            set(host, RACK, &format!("r{}", n % racks));
            set(host, HOST, &format!("stl2r{}o{n}", n % racks));
        }
        self
    }

    /// Dealt to so many servers in turn: several hosts share one, as VMs of a node do.
    #[must_use]
    pub fn servers(mut self, servers: usize) -> Self {
        for (n, host) in self.hosts.iter_mut().enumerate() {
            set(host, HOST, &format!("server{}", n % servers));
        }
        self
    }

    /// Labelled with a flavor, under ViNO's key and under that of the original's tests.
    #[must_use]
    pub fn flavor(self, flavor: &str) -> Self {
        self.label("vino.airshipit.org/flavor", flavor).label("example.org/bmh-label", flavor)
    }

    /// Labelled.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.hosts.iter_mut().for_each(|host| set(host, key, value));
        self
    }

    /// Without a label.
    #[must_use]
    pub fn without_label(mut self, key: &str) -> Self {
        self.hosts.iter_mut().for_each(|host| host.labels.retain(|(other, _)| other != key));
        self
    }

    /// Named with another prefix than `node`.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        for (n, host) in self.hosts.iter_mut().enumerate() {
            host.name = format!("{prefix}{n:02}");
            set(host, HOST, &format!("{prefix}{n:02}"));
        }
        self
    }

    /// This fleet and another in one.
    #[must_use]
    pub fn and(&self, other: &Fleet) -> Vec<Value> {
        let mut objects = self.objects();
        objects.extend(other.objects());
        objects
    }

    /// Names of the hosts, in order.
    pub fn names(&self) -> Vec<String> {
        self.hosts.iter().map(|host| host.name.clone()).collect()
    }

    /// The BareMetalHosts, available.
    pub fn hosts(&self) -> Vec<Value> {
        self.hosts.iter().map(|host| self.host(host)).collect()
    }

    /// The Secrets: network data and BMC credentials of every host.
    pub fn secrets(&self) -> Vec<Value> {
        self.hosts.iter().flat_map(|host| [self.network_data(host), self.credentials(host)]).collect()
    }

    /// Secrets and hosts.
    pub fn objects(&self) -> Vec<Value> {
        self.secrets().into_iter().chain(self.hosts()).collect()
    }

    fn host(&self, host: &Host) -> Value {
        let labels: serde_json::Map<String, Value> =
            host.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": { "namespace": self.namespace, "name": host.name, "labels": labels },
            "spec": {
                "online": true,
                "bmc": {
                    "address": format!("redfish+https://{}/redfish/v1/Systems/System.Embedded.1", host.bmc),
                    "credentialsName": format!("{}-bmc-credentials", host.name),
                    "disableCertificateVerification": true,
                },
                "networkData": { "namespace": self.namespace, "name": format!("{}-networkdata", host.name) },
            },
            "status": {
                "operationalStatus": "OK", "errorType": "", "errorMessage": "", "poweredOn": true,
                "provisioning": { "state": "available", "ID": format!("id-{}", host.name), "image": { "url": "" } },
            },
        })
    }

    fn network_data(&self, host: &Host) -> Value {
        let network = |id: &str, address: &str, link: &str| {
            let sort = if address.contains(':') { "ipv6" } else { "ipv4" };
            json!({ "id": id, "type": sort, "link": link, "ip_address": address, "network_id": id })
        };
        let networks = [
            network("oam-ipv6", &host.ipv6, "bond0.41"),
            network("oam-ipv4", &host.ipv4, "bond0.41"),
            network("pxe-ipv4", &host.ipv4.replacen("32.68", "172.30", 1), "bond0.42"),
        ];
        let links = json!([{ "id": "bond0.41", "type": "vlan", "vlan_id": 41 }, { "id": "bond0.42", "type": "vlan", "vlan_id": 42 }]);
        let data = json!({ "links": links, "networks": networks, "services": [] }).to_string();
        self.secret(&format!("{}-networkdata", host.name), &[("networkData", &data)])
    }

    fn credentials(&self, host: &Host) -> Value {
        self.secret(&format!("{}-bmc-credentials", host.name), &[("username", "root"), ("password", "test")])
    }

    fn secret(&self, name: &str, data: &[(&str, &str)]) -> Value {
        let data: serde_json::Map<String, Value> =
            data.iter().map(|(key, value)| ((*key).to_owned(), json!(STANDARD.encode(value)))).collect();
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": { "namespace": self.namespace, "name": name }, "data": data,
        })
    }
}

fn set(host: &mut Host, key: &str, value: &str) {
    host.labels.retain(|(other, _)| other != key);
    host.labels.push((key.into(), value.into()));
}
