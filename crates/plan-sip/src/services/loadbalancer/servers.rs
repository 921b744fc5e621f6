//! The servers behind a load balancer: whose hosts they are, what they are called in the configuration and where they are.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use base::Key;

use crate::services::{Backend, object::sha256};

/// One server of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// The host.
    pub host: Key,
    /// Its name in the configuration: unique among those of its role, and a word to HAProxy.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
}

impl Server {
    /// The address as it stands before `:port`.
    pub fn ip(&self) -> String {
        match self.address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        }
    }
}

/// A server that is being released.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaver {
    /// The host.
    pub host: Key,
    /// The name it had in configurations.
    pub name: String,
    /// The address it had; `None` if that is not known any more. Its departure is confirmed by its name all the same.
    pub address: Option<IpAddr>,
}

/// The hosts of a role on one network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Servers {
    /// Those that serve, in the order of their keys.
    pub staying: Vec<Server>,
    /// Those that are being released.
    pub leaving: Vec<Leaver>,
    /// Hosts that cannot serve, each with the reason.
    pub left_out: Vec<String>,
}

impl Servers {
    /// The hosts of `role` among `backends`, reached on network `network` (the only one of a host if none is named).
    pub fn of(backends: &[Backend], role: &str, network: Option<&str>) -> Self {
        let hosts: BTreeMap<&Key, &Backend> =
            backends.iter().filter(|backend| backend.role == role).map(|backend| (&backend.host, backend)).collect();
        let names = names(hosts.keys().copied());
        let mut servers = Self::default();
        for (host, backend) in hosts {
            let (key, name) = (host.clone(), names[host].clone());
            match address(&backend.addresses, network) {
                address if backend.leaving => {
                    servers.leaving.push(Leaver { host: key, name, address: address.ok() });
                }
                Ok(address) => servers.staying.push(Server { host: key, name, address }),
                Err(why) => servers.left_out.push(format!("host {host} is left out: {why}")),
            }
        }
        servers
    }

    /// The address by which a server that leaves can be told from those that stay, if there is one.
    pub fn own_address(&self, leaver: &Leaver) -> Option<IpAddr> {
        leaver.address.filter(|address| self.staying.iter().all(|other| other.address != *address))
    }
}

/// The address, parsed, so that no text of a host ever reaches a configuration as it is.
fn address(addresses: &BTreeMap<String, String>, network: Option<&str>) -> Result<IpAddr, String> {
    let (network, text) = match network.filter(|network| !network.is_empty()) {
        Some(network) => {
            let text = addresses.get(network).ok_or_else(|| format!("it has no address on network {network}"))?;
            (network, text)
        }
        None => match addresses.iter().collect::<Vec<_>>()[..] {
            [] => return Err("it has no address".to_owned()),
            [(network, text)] => (network.as_str(), text),
            _ => {
                let networks: Vec<&str> = addresses.keys().map(String::as_str).collect();
                return Err(format!("nodeInterfaceId has to say which of its networks: {}", networks.join(", ")));
            }
        },
    };
    let bare = text.split_once('/').map_or(text.as_str(), |(address, _prefix)| address);
    bare.trim().parse().map_err(|_| format!("its address {text:?} on network {network} is no IP address"))
}

/// Each host's name in the configuration: its own; with its namespace before it where two namespaces have the name.
fn names<'a>(hosts: impl Iterator<Item = &'a Key> + Clone) -> BTreeMap<Key, String> {
    let mut with_name: BTreeMap<String, usize> = BTreeMap::new();
    for host in hosts.clone() {
        *with_name.entry(word(&host.name)).or_default() += 1;
    }
    let mut used = BTreeSet::new();
    hosts
        .map(|host| {
            let plain = word(&host.name);
            let mut name = if with_name[&plain] == 1 { plain } else { format!("{}_{plain}", word(&host.namespace)) };
            if name.is_empty() || used.contains(&name) {
                name = format!("{name}_{}", sha256(&host.to_string()));
            }
            used.insert(name.clone());
            (host.clone(), name)
        })
        .collect()
}

/// A text made of nothing but what HAProxy takes in a name. Names of real hosts pass unchanged.
fn word(text: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "-_.:".contains(c) { c } else { '_' };
    text.chars().map(allowed).collect()
}
