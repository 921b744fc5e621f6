//! What can go wrong with a hypervisor, and what to do about it.

use std::{fmt, time::Duration};

use crate::xml::{Unreadable, Unwritable};

/// What an answer of a hypervisor is.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A kind of thing that a hypervisor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A virtual machine.
    Domain,
    /// A virtual network.
    Network,
    /// A storage pool.
    Pool,
    /// A volume of a pool, named `pool/volume`.
    Volume,
    /// What the machine itself has.
    Host,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Domain => "domain",
            Kind::Network => "network",
            Kind::Pool => "pool",
            Kind::Volume => "volume",
            Kind::Host => "host",
        })
    }
}

/// A call that did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no such thing.
    #[error("{kind} {name} does not exist")]
    NotFound {
        /// What was asked for.
        kind: Kind,
        /// Its name or UUID.
        name: String,
    },
    /// The name belongs to something else.
    #[error("{kind} {name} exists already and is another one")]
    Exists {
        /// What should be made.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// Not in this state.
    #[error("{kind} {name} is {state}: cannot {doing}")]
    WrongState {
        /// What was to change.
        kind: Kind,
        /// Its name or UUID.
        name: String,
        /// In what state it is.
        state: String,
        /// What was to be done.
        doing: String,
    },
    /// The hypervisor refuses, and says why.
    #[error("cannot {doing}: {why}")]
    Refused {
        /// What was to be done.
        doing: String,
        /// In the words of the hypervisor.
        why: String,
    },
    /// The disk is full.
    #[error("cannot {doing}: no space left: {why}")]
    NoSpace {
        /// What was to be done.
        doing: String,
        /// In the words of the hypervisor.
        why: String,
    },
    /// This hypervisor cannot do that.
    #[error("cannot {doing}: this hypervisor does not support it: {why}")]
    Unsupported {
        /// What was to be done.
        doing: String,
        /// In the words of the hypervisor.
        why: String,
    },
    /// There is no connection to the hypervisor. Whether the call was carried out is not known.
    #[error("cannot {doing}: the hypervisor cannot be reached: {why}")]
    Unreachable {
        /// What was to be done.
        doing: String,
        /// What the connection says.
        why: String,
    },
    /// The hypervisor did not answer in time. Whether the call was carried out is not known.
    #[error("cannot {doing}: no answer within {} s", after.as_secs())]
    Timeout {
        /// What was to be done.
        doing: String,
        /// How long was waited.
        after: Duration,
    },
    /// What should be written cannot be said in XML.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    /// What was read is not what it should be.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

impl Error {
    /// Condition reason and metric label: one of a closed set.
    pub fn reason(&self) -> &'static str {
        match self {
            Error::NotFound { .. } => "HypervisorObjectMissing",
            Error::Exists { .. } => "HypervisorNameTaken",
            Error::WrongState { .. } => "HypervisorWrongState",
            Error::Refused { .. } => "HypervisorRefused",
            Error::NoSpace { .. } => "HypervisorNoSpace",
            Error::Unsupported { .. } => "HypervisorUnsupported",
            Error::Unreachable { .. } => "HypervisorUnreachable",
            Error::Timeout { .. } => "HypervisorTimeout",
            Error::Unwritable(_) => "HypervisorInputInvalid",
            Error::Unreadable(_) => "HypervisorOutputInvalid",
        }
    }

    /// Whether the same call may do better a moment later, nothing else having changed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Error::Unreachable { .. } | Error::Timeout { .. })
    }

    /// Whether it says that what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Error::NotFound { .. })
    }
}
