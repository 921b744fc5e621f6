//! What can go wrong in a turn, and when to try again.

use std::time::Duration;

pub use io_kube::Retry;
use plan_sip::services::Kind;

/// A step that failed. `Display` names the object and what was to be done with it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not do what was asked.
    #[error(transparent)]
    Api(io_kube::Error),
    /// A host is not what the decision was made on.
    #[error("BareMetalHost {host} changed since it was read")]
    Stale {
        /// The host.
        host: base::Key,
    },
    /// The manager has no rights in the namespace of a SIPCluster.
    #[error(
        "namespace {namespace}: the manager may not work there ({why}); to let it: kubectl create rolebinding \
         slipway-tenant --namespace={namespace} --clusterrole=slipway-tenant --serviceaccount={installation}:slipway-manager"
    )]
    Namespace {
        /// The namespace.
        namespace: String,
        /// The namespace of the manager.
        installation: String,
        /// What the API server said.
        why: String,
    },
    /// Where an object of ours is to be, there is somebody's.
    #[error(
        "{kind} {namespace}/{name} is there, and was not made here: delete it, or give the entry of spec.services \
         another name"
    )]
    Foreign {
        /// Its kind.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Keys or certificates could not be made.
    #[error("Secret {name}: {why}")]
    Keys {
        /// The Secret.
        name: String,
        /// What went wrong, without key material.
        why: String,
    },
}

impl Error {
    /// One of a closed set.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Api(error) => error.reason(),
            Self::Stale { .. } => "Conflict",
            Self::Namespace { .. } => "NamespaceNotGranted",
            Self::Foreign { .. } => "AlreadyExists",
            Self::Keys { .. } => "KeysNotMade",
        }
    }

    /// When to try again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Api(error) => error.retry(),
            Self::Stale { .. } => Retry::Now,
            // The watch on its Secrets tells when it is granted.
            Self::Namespace { .. } => Retry::OnChange,
            // It is not watched.
            Self::Foreign { .. } => Retry::After(Duration::from_secs(30)),
            Self::Keys { .. } => Retry::After(Duration::from_secs(15)),
        }
    }

    /// Whether an object was not what the decision was made on.
    pub fn is_stale(&self) -> bool {
        match self {
            Self::Api(error) => error.is_stale(),
            Self::Stale { .. } => true,
            Self::Namespace { .. } | Self::Foreign { .. } | Self::Keys { .. } => false,
        }
    }
}
