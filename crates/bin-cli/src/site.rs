//! All objects of the input, as the site that decisions read.

use std::collections::{BTreeMap, BTreeSet};

use base::Key;
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::Resource;
use plan_sip::{
    host::Host,
    quarantine,
    site::{SecretFacts, Settings, Site},
    want::Want,
};

use crate::input::{Found, Objects};

/// What is known beside the objects.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Namespaces whose Secrets may not be read: what hosts name there counts as usable.
    pub unreadable: BTreeSet<String>,
    /// By this time quarantines are over or not; none: none is.
    pub now: Option<Timestamp>,
}

/// The site of these objects.
pub fn site(objects: &Objects, settings: Settings, known: &Known) -> Site {
    let mut site = Site::new(settings);
    for secret in &objects.secrets {
        site.put_secret(&secret.key, Some(facts(&secret.object)));
    }
    for cluster in &objects.clusters {
        site.put_cluster(want(cluster));
    }
    let networks: BTreeSet<String> =
        site.clusters().flat_map(|want| want.roles.values().flat_map(|role| role.networks.clone())).collect();
    let recorded = recorded_uids(&site);
    for found in &objects.hosts {
        let mut host = Host::from(found.object.clone());
        if host.uid.is_empty() {
            // A host written by hand has none. One that a record names is that host; any other is its own.
            host.uid = recorded.get(&host.key).cloned().unwrap_or_else(|| made_up(&host.key));
        }
        if known.now.is_some_and(|now| quarantine::turn(&host, &site, now) == quarantine::Turn::End) {
            host.released = None;
        }
        for secret in [&host.network_data, &host.credentials].into_iter().flatten() {
            if known.unreadable.contains(&secret.namespace) {
                site.put_secret(secret, Some(presumed(&host.key, &networks)));
            }
        }
        site.put_host(host);
    }
    site
}

fn want(found: &Found<api::SIPCluster>) -> Want {
    let mut want = Want::from(&found.object);
    if want.uid.is_empty() {
        want.uid = made_up(&want.key);
    }
    if found.object.meta().creation_timestamp.is_none() {
        // It is not in a cluster yet: whatever is, is older.
        want.created = i64::MAX;
    }
    want
}

/// A uid for an object that is not in a cluster: never one that an API server gives, and always the same.
fn made_up(key: &Key) -> String {
    format!("not-in-a-cluster:{key}")
}

fn recorded_uids(site: &Site) -> BTreeMap<Key, String> {
    let records = site.clusters().flat_map(|want| want.record.clone());
    records.map(|record| (Key::new(record.namespace, record.name), record.uid)).collect()
}

/// What decisions read of a Secret.
pub fn facts(secret: &Secret) -> SecretFacts {
    let (given, text) = (secret.data.as_ref(), secret.string_data.as_ref());
    SecretFacts::read(|key| {
        let text = text.and_then(|data| data.get(key)).map(String::as_bytes);
        text.or_else(|| given.and_then(|data| data.get(key)).map(|ByteString(bytes)| bytes.as_slice()))
    })
}

/// What a Secret that may not be read is taken for: usable, with an address in every network, no two alike.
fn presumed(host: &Key, networks: &BTreeSet<String>) -> SecretFacts {
    let addresses = networks.iter().map(|network| (network.clone(), format!("unread address of {host}"))).collect();
    SecretFacts { network_data: Some(Ok(addresses)), credentials: true }
}
