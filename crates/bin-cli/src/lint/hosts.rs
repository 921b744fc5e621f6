//! Warnings about hosts: addresses that occur twice, network data that cannot be read or lacks a network that a service uses.

use std::collections::{BTreeMap, BTreeSet};

use base::Key;
use plan_sip::{host::Host, site::SecretFacts, want::Want};

use super::warning;
use crate::{
    input::{Bad, Objects},
    site, words,
};

/// Warnings about all hosts of the input. Without Secrets that they name nothing is known of their network data.
pub(super) fn warnings(objects: &Objects) -> Vec<Bad> {
    if !objects.name_secrets() {
        return Vec::new();
    }
    let secrets: BTreeMap<&Key, SecretFacts> =
        objects.secrets.iter().map(|found| (&found.key, site::facts(&found.object))).collect();
    let mut warnings = Vec::new();
    let mut users: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for found in &objects.hosts {
        let host = Host::from(found.object.clone());
        let mut say = |field: &str, message: String| warnings.push(warning("BareMetalHost", found, field, message));
        match &host.credentials {
            None => say(
                "spec.bmc.credentialsName",
                "names no Secret: no service can use its BMC, and it is not placed".to_owned(),
            ),
            Some(secret) => match secrets.get(secret) {
                None => say("spec.bmc.credentialsName", format!("Secret {secret} is not given")),
                Some(facts) if !facts.credentials => {
                    say("spec.bmc.credentialsName", format!("Secret {secret} lacks username or password"));
                }
                Some(_) => {}
            },
        }
        let Some(secret) = &host.network_data else {
            say("spec.networkData", "names no Secret: the host has no addresses, and is not placed".to_owned());
            continue;
        };
        match secrets.get(secret).map(|facts| &facts.network_data) {
            None => say("spec.networkData", format!("Secret {secret} is not given")),
            Some(None) => say("spec.networkData", format!("Secret {secret} has no key networkData")),
            Some(Some(Err(why))) => say("spec.networkData", format!("Secret {secret}: key networkData {why}")),
            Some(Some(Ok(addresses))) => {
                for network in needed(&host, objects) {
                    if !addresses.contains_key(&network) {
                        say(
                            "spec.networkData",
                            format!("Secret {secret} has no address in network {network}, which a service uses"),
                        );
                    }
                }
                for (network, address) in addresses {
                    users.entry((network.clone(), address.clone())).or_default().push(found.key.to_string());
                }
            }
        }
    }
    for ((network, address), hosts) in users {
        if hosts.len() > 1 {
            let message = format!(
                "{address} in network {network} is the address of {}: {}",
                words::count(hosts.len(), "host"),
                words::few(&hosts)
            );
            warnings.push(Bad::whole("network data", message));
        }
    }
    warnings
}

/// The networks in which a host needs an address, because a role that matches it is served there.
fn needed(host: &Host, objects: &Objects) -> BTreeSet<String> {
    let wants = objects.clusters.iter().map(|found| Want::from(&found.object));
    let roles = wants.flat_map(|want| want.roles.into_values());
    roles
        .filter(|role| role.asked() > 0 && role.selector.matches(&host.labels))
        .flat_map(|role| role.networks)
        .collect()
}
