//! A host as placement sees it: its labels, and whether it may be chosen.

use std::{collections::BTreeMap, fmt};

use base::Key;

/// A BareMetalHost as placement sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Namespace and name.
    pub key: Key,
    /// Labels of the BareMetalHost: selectors and topology keys read them.
    pub labels: BTreeMap<String, String>,
    /// Whether it may be chosen.
    pub standing: Standing,
}

/// Whether a host may be chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Free and fit: it may be chosen.
    Candidate,
    /// Claimed by nobody we know, and yet no candidate.
    Dropped(Unfit),
    /// Recorded for, or labelled as belonging to, a cluster.
    Taken {
        /// The SIPCluster.
        by: Key,
        /// Its role.
        role: String,
    },
}

/// Why an unclaimed host is no candidate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    /// It has a deletion timestamp.
    Deleting,
    /// Metal3 reports an error; its text.
    Error(String),
    /// Somebody's consumerRef is set.
    Consumed {
        /// Who, as `kind namespace/name`.
        by: String,
    },
    /// An image is on it, though nobody consumes it.
    Provisioned,
    /// Registering, inspecting or otherwise not available yet; the state.
    NotReady(String),
    /// Metal3 is told to leave it alone (paused annotation).
    Paused,
    /// Metal3 is told to forget its machine (detached annotation).
    Detached,
    /// Its node or itself is under maintenance.
    Maintenance,
    /// Released a moment ago; not for anybody until the quarantine ends: `until <time>`, where that is known.
    Quarantine(String),
    /// Force-released and not yet clean.
    ForceReleased,
    /// In a namespace that no cluster may take from. (What one cluster may not take, `Request::namespaces` says.)
    NamespaceNotAllowed,
    /// Its network data cannot be read or lacks an address; the reason.
    NoNetworkData(String),
    /// Its BMC credentials cannot be read; the reason.
    NoCredentials(String),
    /// Its labels name a cluster that does not exist.
    ClaimedByUnknown(String),
    /// Only its metadata can be read; what is wrong with the rest.
    Unreadable(String),
}

impl Unfit {
    /// The kind in the order of display, and in words that follow a number of hosts: "3 in error".
    pub(super) fn phrase(&self) -> (u8, &'static str) {
        match self {
            Self::Deleting => (0, "being deleted"),
            Self::Error(_) => (1, "in error"),
            Self::Consumed { .. } => (2, "consumed by others"),
            Self::Provisioned => (3, "provisioned"),
            Self::NotReady(_) => (4, "not ready"),
            Self::Paused => (5, "paused"),
            Self::Detached => (6, "detached"),
            Self::Maintenance => (7, "in maintenance"),
            Self::Quarantine(_) => (8, "in quarantine"),
            Self::ForceReleased => (9, "force-released"),
            Self::NamespaceNotAllowed => (10, "in a namespace not allowed"),
            Self::NoNetworkData(_) => (11, "without usable network data"),
            Self::NoCredentials(_) => (12, "without usable BMC credentials"),
            Self::ClaimedByUnknown(_) => (13, "labelled for an unknown cluster"),
            Self::Unreadable(_) => (14, "unreadable"),
        }
    }

    /// What is known beyond the kind; empty when nothing.
    pub(super) fn detail(&self) -> &str {
        match self {
            Self::Error(text)
            | Self::NotReady(text)
            | Self::NoNetworkData(text)
            | Self::NoCredentials(text)
            | Self::Unreadable(text) => text,
            Self::Consumed { by } | Self::ClaimedByUnknown(by) => by,
            Self::Quarantine(until) => until,
            Self::Deleting
            | Self::Provisioned
            | Self::Paused
            | Self::Detached
            | Self::Maintenance
            | Self::ForceReleased
            | Self::NamespaceNotAllowed => "",
        }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail() {
            "" => f.write_str(self.phrase().1),
            detail => write!(f, "{} ({detail})", self.phrase().1),
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Candidate => f.write_str("free"),
            Self::Dropped(why) => why.fmt(f),
            Self::Taken { by, role } => write!(f, "claimed by {by} as {role}"),
        }
    }
}
