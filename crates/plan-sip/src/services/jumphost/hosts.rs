//! The hosts as the jump host knows them: the file of the host utility, the ssh aliases, the entries of /etc/hosts.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use api::{
    keys::{CONTROL_PLANE, WORKER},
    sipcluster::JumpHost,
};
use base::Key;
use serde::Serialize;

use super::super::{Backend, Credentials};

/// One host of the tenant that stays, under the name people use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host<'a> {
    /// Name of the BareMetalHost; `<name>.<namespace>` where two namespaces have one of that name.
    pub name: String,
    /// Its address on the network of the entry.
    pub address: Option<IpAddr>,
    /// Where it comes from.
    pub backend: &'a Backend,
}

/// The hosts of both roles that are not leaving, in the order of their keys.
pub(super) fn of<'a>(backends: &'a [Backend], entry: &JumpHost) -> Vec<Host<'a>> {
    let staying: BTreeMap<&Key, &Backend> = backends
        .iter()
        .filter(|backend| !backend.leaving && [CONTROL_PLANE, WORKER].contains(&backend.role.as_str()))
        .map(|backend| (&backend.host, backend))
        .collect();
    let mut seen = BTreeSet::new();
    let doubled: BTreeSet<&str> =
        staying.keys().map(|key| key.name.as_str()).filter(|name| !seen.insert(*name)).collect();
    staying
        .into_iter()
        .filter(|(key, _)| is_host_name(&key.name) && is_host_name(&key.namespace))
        .map(|(key, backend)| Host {
            name: if doubled.contains(key.name.as_str()) {
                format!("{}.{}", key.name, key.namespace)
            } else {
                key.name.clone()
            },
            address: address(backend, entry.common.node_interface_id.as_deref()),
            backend,
        })
        .collect()
}

/// A DNS name, as the API server demands of object names. Nothing else may come near a file that ssh or a shell reads.
fn is_host_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= 253 && text.split('.').all(base::names::is_dns_label)
}

fn address(backend: &Backend, network: Option<&str>) -> Option<IpAddr> {
    backend.addresses.get(network?)?.parse().ok()
}

/// File `hosts` of the host utility (the original's shape, with `address` and `disableCertificateVerification` added).
#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    bmc: Bmc<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bmc<'a> {
    ip: &'a str,
    address: Cow<'a, str>,
    disable_certificate_verification: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    username: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<&'a str>,
}

/// The file `hosts`: a JSON array. `credentials` are those that this jump host may have.
pub(super) fn file(hosts: &[Host<'_>], credentials: &BTreeMap<Key, Credentials>) -> String {
    let entries: Vec<Entry<'_>> = hosts
        .iter()
        .map(|host| {
            let login = credentials.get(&host.backend.host);
            Entry {
                name: &host.name,
                bmc: Bmc {
                    ip: authority(&host.backend.bmc_address),
                    address: without_login(&host.backend.bmc_address),
                    disable_certificate_verification: host.backend.bmc_insecure,
                    username: login.map(|login| login.username.as_str()),
                    password: login.map(|login| login.password.as_str()),
                },
            }
        })
        .collect();
    serde_json::to_string(&entries).expect("texts and flags are always JSON")
}

/// `host[:port]` of a URL; empty where it has no scheme, as in the original.
fn authority(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return "" };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// The URL without user and password, which reach the jump host only as `username` and `password`.
fn without_login(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://") else { return Cow::Borrowed(url) };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => Cow::Owned(format!("{scheme}://{}", &rest[at + 1..])),
        None => Cow::Borrowed(url),
    }
}

/// The file `ssh_config`: the keys of the tenant's machines, and an alias for each host that has an address.
///
/// An alias names the address, so that a host that joins or moves is known at once, without a restart of the pod.
pub(super) fn ssh_config<'a>(hosts: &[Host<'_>], keys: impl Iterator<Item = &'a str>) -> String {
    let mut text = "Host *\n".to_owned();
    for key in keys.filter(|key| is_key_name(key)) {
        text.extend(["  IdentityFile ", super::PRIVATE_KEYS, "/", key, "\n"]);
    }
    for host in hosts {
        if let Some(address) = host.address {
            text.extend(["\nHost ", &host.name, "\n  HostName ", &address.to_string(), "\n"]);
        }
    }
    text
}

/// A key of a Secret, as the API server demands of it.
fn is_key_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

/// `hostAliases` of the pod: one entry for each address, sorted.
pub(super) fn aliases<'a>(hosts: &'a [Host<'a>]) -> BTreeMap<IpAddr, Vec<&'a str>> {
    let mut aliases: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for host in hosts {
        if let Some(address) = host.address {
            aliases.entry(address).or_default().push(host.name.as_str());
        }
    }
    aliases
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn backend(namespace: &str, name: &str, address: &str) -> Backend {
        Backend {
            host: Key::new(namespace, name),
            role: CONTROL_PLANE.to_owned(),
            addresses: BTreeMap::from([("oam".to_owned(), address.to_owned())]),
            bmc_address: "redfish+https://10.0.0.2:8000/redfish/v1/Systems/x".to_owned(),
            bmc_insecure: true,
            leaving: false,
        }
    }

    fn entry() -> JumpHost {
        let mut entry = JumpHost::default();
        entry.common.node_interface_id = Some("oam".to_owned());
        entry
    }

    #[rstest]
    #[case("redfish+https://10.0.0.1/redfish/v1/Systems/x", "10.0.0.1")]
    #[case("redfish+http://10.0.0.2:8000/redfish/v1/Systems/x", "10.0.0.2:8000")]
    #[case("ipmi://[fd00::7]:623", "[fd00::7]:623")]
    #[case("redfish://root:secret@bmc.example", "bmc.example")]
    #[case("10.0.0.3/redfish", "")]
    #[case("", "")]
    fn the_bmc_is_found_where_url_parsing_finds_it(#[case] url: &str, #[case] ip: &str) {
        assert_eq!(authority(url), ip);
    }

    #[test]
    fn a_login_in_the_address_of_a_bmc_is_not_passed_on() {
        assert_eq!(without_login("redfish://root:se@cret@bmc.example/a@b"), "redfish://bmc.example/a@b");
        assert_eq!(without_login("redfish://bmc.example/a@b"), "redfish://bmc.example/a@b");
        assert_eq!(without_login("bmc.example"), "bmc.example");
    }

    #[test]
    fn the_file_has_a_login_only_where_one_is_given() {
        let backends = [backend("a", "node01", "192.168.0.1"), backend("a", "node02", "192.168.0.2")];
        let credentials = BTreeMap::from([(
            Key::new("a", "node02"),
            Credentials { username: "root".to_owned(), password: "a \"b\" \\ *".to_owned() },
        )]);
        let parsed: serde_json::Value = serde_json::from_str(&file(&of(&backends, &entry()), &credentials)).unwrap();
        let bmc = |i: usize| parsed[i]["bmc"].clone();
        assert_eq!(parsed[0]["name"], "node01");
        assert_eq!(bmc(0)["ip"], "10.0.0.2:8000");
        assert_eq!(bmc(0)["address"], "redfish+https://10.0.0.2:8000/redfish/v1/Systems/x");
        assert_eq!(bmc(0)["disableCertificateVerification"], true);
        assert_eq!((bmc(0).get("username"), bmc(0).get("password")), (None, None));
        assert_eq!((&bmc(1)["username"], &bmc(1)["password"]), (&"root".into(), &"a \"b\" \\ *".into()));
    }

    #[test]
    fn leaving_hosts_and_hosts_of_other_roles_are_not_there() {
        let mut backends =
            vec![backend("a", "n1", "10.0.0.1"), backend("a", "n2", "10.0.0.2"), backend("a", "n3", "10.0.0.3")];
        backends[1].leaving = true;
        backends[2].role = "Storage".to_owned();
        let hosts = of(&backends, &entry());
        assert_eq!(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["n1"]);
    }

    #[test]
    fn hosts_of_one_name_in_two_namespaces_are_told_apart() {
        let backends = [backend("b", "n1", "10.0.0.2"), backend("a", "n1", "10.0.0.1"), backend("a", "n2", "10.0.0.3")];
        let hosts = of(&backends, &entry());
        assert_eq!(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["n1.a", "n2", "n1.b"]);
    }

    #[test]
    fn a_host_without_address_on_the_network_has_no_alias() {
        let mut backends =
            vec![backend("a", "n1", "10.0.0.1"), backend("a", "n2", "fd00::2"), backend("a", "n3", "10.0.0.1")];
        backends.push(backend("a", "n4", "not an address"));
        let hosts = of(&backends, &entry());
        assert_eq!(
            ssh_config(&hosts, ["id_ed25519", "key"].into_iter()),
            "Host *\n  IdentityFile /etc/opt/sip/ssh-private-keys/id_ed25519\n  IdentityFile /etc/opt/sip/ssh-private-keys/key\n\
             \nHost n1\n  HostName 10.0.0.1\n\nHost n2\n  HostName fd00::2\n\nHost n3\n  HostName 10.0.0.1\n"
        );
        let aliases: Vec<_> = aliases(&hosts).into_iter().map(|(ip, names)| (ip.to_string(), names)).collect();
        assert_eq!(aliases, [("10.0.0.1".to_owned(), vec!["n1", "n3"]), ("fd00::2".to_owned(), vec!["n2"])]);
        assert!(super::aliases(&of(&backends, &JumpHost::default())).is_empty(), "no network is named");
    }

    proptest! {
        #[test]
        fn no_name_address_or_key_brings_a_line_of_its_own(name in "\\PC{0,20}|[ -~\n\r]{0,20}", address in "[0-9.\n \r]{0,20}", key in "[ -~\n\r]{0,20}") {
            let backends = [backend("a", &name, &address), backend("a", "n1", "10.0.0.1")];
            let hosts = of(&backends, &entry());
            let config = ssh_config(&hosts, [key.as_str()].into_iter());
            for line in config.lines().filter(|line| !line.is_empty()) {
                let words: Vec<_> = line.trim_start().split(' ').collect();
                prop_assert_eq!(words.len(), 2, "{}", line);
                prop_assert!(["Host", "HostName", "IdentityFile"].contains(&words[0]), "{}", line);
            }
        }
    }
}
