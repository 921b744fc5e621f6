//! What has to be listed before anything may be decided.

use std::collections::{BTreeMap, BTreeSet};

/// A listing that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Listing {
    Clusters,
    Hosts,
    Nodes,
    Objects(String),
    Secrets(String),
}

/// What has to be listed before anything may be decided, and why it is not.
#[derive(Debug)]
pub(super) struct Beginning {
    open: BTreeMap<Listing, String>,
    /// Namespaces that we may not read, with what the server said.
    refused: BTreeMap<String, String>,
    known: BTreeSet<String>,
}

impl Default for Beginning {
    fn default() -> Self {
        let mut open: BTreeMap<Listing, String> =
            [Listing::Clusters, Listing::Hosts, Listing::Nodes].map(|l| (l, "not listed yet".to_owned())).into();
        for kind in crate::sources::EVERYWHERE {
            open.insert(Listing::Objects(kind.to_string()), "not listed yet".to_owned());
        }
        Self { open, refused: BTreeMap::new(), known: BTreeSet::new() }
    }
}

impl Beginning {
    pub(super) fn expect_namespace(&mut self, namespace: &str) {
        self.known.insert(namespace.to_owned());
        self.open.insert(Listing::Secrets(namespace.to_owned()), "not listed yet".to_owned());
    }

    pub(super) fn listed(&mut self, listing: &Listing) {
        self.open.remove(listing);
        if let Listing::Secrets(namespace) = listing {
            self.refused.remove(namespace);
        }
    }

    /// The server does not let us list this. One namespace's Secrets hold up nobody else.
    pub(super) fn refused(&mut self, listing: &Listing, why: &str) {
        if let Listing::Secrets(namespace) = listing {
            self.open.remove(listing);
            self.refused.insert(namespace.clone(), why.to_owned());
        } else if let Some(said) = self.open.get_mut(listing) {
            why.clone_into(said);
        }
    }

    /// Why the Secrets of a namespace cannot be read, if they cannot.
    pub(super) fn unreadable(&self, namespace: &str) -> Option<&str> {
        self.refused.get(namespace).map(String::as_str)
    }

    /// What is still missing, for people.
    pub(super) fn missing(&self) -> Option<String> {
        let name = |listing: &Listing| match listing {
            Listing::Clusters => "SIPClusters (sipclusters.airship.airshipit.org)".to_owned(),
            Listing::Hosts => "BareMetalHosts (baremetalhosts.metal3.io)".to_owned(),
            Listing::Nodes => "Nodes".to_owned(),
            Listing::Objects(kind) => format!("our {kind}s"),
            Listing::Secrets(namespace) => format!("Secrets in namespace {namespace}"),
        };
        let texts: Vec<String> = self.open.iter().map(|(listing, why)| format!("{}: {why}", name(listing))).collect();
        (!texts.is_empty()).then(|| format!("waiting for {}", texts.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_missing_until_nothing_is() {
        let mut beginning = Beginning::default();
        beginning.refused(&Listing::Hosts, "the CRD is not installed");
        assert!(beginning.missing().is_some_and(|m| m.contains("baremetalhosts.metal3.io): the CRD is not installed")));
        for listing in [Listing::Clusters, Listing::Hosts, Listing::Nodes] {
            beginning.listed(&listing);
        }
        for kind in crate::sources::EVERYWHERE {
            beginning.listed(&Listing::Objects(kind.to_string()));
        }
        assert_eq!(beginning.missing(), None);
        beginning.expect_namespace("a");
        assert!(beginning.missing().is_some());
        beginning.refused(&Listing::Secrets("a".into()), "no");
        assert_eq!((beginning.missing(), beginning.unreadable("a")), (None, Some("no")));
    }
}
