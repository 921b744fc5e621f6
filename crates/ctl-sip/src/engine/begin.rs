//! What has to be listed before anything may be decided.

use std::collections::{BTreeMap, BTreeSet};

/// A listing that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Listing {
    Clusters,
    Hosts,
    Nodes,
    Pods,
    Objects(String),
    /// ConfigMaps of this name.
    Templates(String),
    Secrets(String),
    ConfigMaps(String),
}

/// What has to be listed before anything may be decided, and why it is not.
#[derive(Debug)]
pub(super) struct Beginning {
    open: BTreeMap<Listing, String>,
    /// Namespaces that we may not read, with what the server said.
    refused: BTreeMap<String, String>,
    known: BTreeSet<String>,
    /// Whether everything was listed once: a namespace that comes later holds up its own clusters only.
    over: bool,
}

impl Default for Beginning {
    fn default() -> Self {
        let mut open: BTreeMap<Listing, String> = [Listing::Clusters, Listing::Hosts, Listing::Nodes, Listing::Pods]
            .map(|l| (l, "not listed yet".to_owned()))
            .into();
        for kind in crate::sources::EVERYWHERE {
            open.insert(Listing::Objects(kind.to_string()), "not listed yet".to_owned());
        }
        for name in crate::sources::TEMPLATES {
            open.insert(Listing::Templates(name.to_owned()), "not listed yet".to_owned());
        }
        Self { open, refused: BTreeMap::new(), known: BTreeSet::new(), over: false }
    }
}

impl Beginning {
    pub(super) fn expect_namespace(&mut self, namespace: &str) {
        self.known.insert(namespace.to_owned());
        self.open.insert(Listing::Secrets(namespace.to_owned()), "not listed yet".to_owned());
    }

    /// What we made there is looked for before anything is made: else a new leader would make it again.
    pub(super) fn expect_config_maps(&mut self, namespace: &str) {
        self.open.insert(Listing::ConfigMaps(namespace.to_owned()), "not listed yet".to_owned());
    }

    pub(super) fn listed(&mut self, listing: &Listing) {
        self.open.remove(listing);
        if let Listing::Secrets(namespace) = listing {
            self.refused.remove(namespace);
        }
    }

    /// The server could not be asked. What was listed before is known still; the watch goes on by itself.
    pub(super) fn interrupted(&mut self, listing: &Listing, why: &str) {
        if let Some(said) = self.open.get_mut(listing) {
            why.clone_into(said);
        }
    }

    /// The server does not let us list this. One namespace's Secrets hold up nobody else. Whether that is news.
    pub(super) fn refused(&mut self, listing: &Listing, why: &str) -> bool {
        if let Listing::Secrets(namespace) = listing {
            self.open.remove(listing);
            return self.refused.insert(namespace.clone(), why.to_owned()).is_none_or(|before| before != why);
        }
        if let Listing::ConfigMaps(_) = listing {
            // Nor do its ConfigMaps: whoever may not list them is refused Secrets too, which is what is told.
            return self.open.remove(listing).is_some();
        }
        match self.open.get_mut(listing) {
            Some(said) if said != why => {
                why.clone_into(said);
                true
            }
            Some(_) => false,
            // It was listed before, and is tried again.
            None => true,
        }
    }

    /// Why the Secrets of a namespace cannot be read, if they cannot.
    pub(super) fn unreadable(&self, namespace: &str) -> Option<&str> {
        self.refused.get(namespace).map(String::as_str)
    }

    /// Whether clusters of this namespace have to wait.
    pub(super) fn holds_up(&self, namespace: &str) -> bool {
        let of = [Listing::Secrets(namespace.to_owned()), Listing::ConfigMaps(namespace.to_owned())];
        of.iter().any(|listing| self.open.contains_key(listing))
    }

    /// Everything was listed: from now on nobody waits for another one's namespace.
    pub(super) fn is_over(&mut self) {
        self.over = true;
    }

    /// What is still missing, for people.
    pub(super) fn missing(&self) -> Option<String> {
        let name = |listing: &Listing| match listing {
            Listing::Clusters => "SIPClusters (sipclusters.airship.airshipit.org)".to_owned(),
            Listing::Hosts => "BareMetalHosts (baremetalhosts.metal3.io)".to_owned(),
            Listing::Nodes => "Nodes".to_owned(),
            Listing::Pods => "our Pods".to_owned(),
            Listing::Templates(name) => format!("ConfigMaps called {name}"),
            Listing::Objects(kind) => format!("our {kind}s"),
            Listing::Secrets(namespace) => format!("Secrets in namespace {namespace}"),
            Listing::ConfigMaps(namespace) => format!("our ConfigMaps in namespace {namespace}"),
        };
        let counts = |listing: &Listing| !self.over || !matches!(listing, Listing::Secrets(_) | Listing::ConfigMaps(_));
        let open = self.open.iter().filter(|(listing, _)| counts(listing));
        let texts: Vec<String> = open.map(|(listing, why)| format!("{}: {why}", name(listing))).collect();
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
        for listing in [Listing::Clusters, Listing::Hosts, Listing::Nodes, Listing::Pods] {
            beginning.listed(&listing);
        }
        for name in crate::sources::TEMPLATES {
            beginning.listed(&Listing::Templates(name.to_owned()));
        }
        for kind in crate::sources::EVERYWHERE {
            beginning.listed(&Listing::Objects(kind.to_string()));
        }
        assert_eq!(beginning.missing(), None);
        beginning.expect_namespace("a");
        assert!(beginning.missing().is_some());
        beginning.refused(&Listing::Secrets("a".into()), "no");
        beginning.expect_config_maps("a");
        assert!(beginning.missing().is_some_and(|m| m.contains("our ConfigMaps in namespace a")));
        beginning.refused(&Listing::ConfigMaps("a".into()), "no");
        assert_eq!((beginning.missing(), beginning.unreadable("a")), (None, Some("no")));
    }

    #[test]
    fn a_namespace_that_comes_later_holds_up_its_own_clusters_only() {
        let mut beginning = Beginning::default();
        beginning.open.clear();
        beginning.is_over();
        beginning.expect_namespace("late");
        assert_eq!(beginning.missing(), None);
        assert!(beginning.holds_up("late") && !beginning.holds_up("other"));
        beginning.listed(&Listing::Secrets("late".into()));
        assert!(!beginning.holds_up("late"));
    }

    #[test]
    fn an_interruption_takes_back_nothing_that_was_listed() {
        let mut beginning = Beginning::default();
        beginning.expect_namespace("a");
        beginning.listed(&Listing::Secrets("a".into()));
        beginning.interrupted(&Listing::Secrets("a".into()), "connection refused");
        assert_eq!(beginning.unreadable("a"), None);
        assert!(!beginning.holds_up("a"));
    }
}
