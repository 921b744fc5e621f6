//! The load balancers of a tenant.

use std::collections::BTreeSet;

use base::Key;

use super::{Part, Seen, Want};

/// What the load balancers of the spec need, and the leaving hosts that every one of them has let go.
pub(crate) fn desired(want: &Want<'_>, _seen: &Seen) -> (Part, Part, BTreeSet<Key>) {
    let leaving = want.backends.iter().filter(|backend| backend.leaving);
    (Part::default(), Part::default(), leaving.map(|backend| backend.host.clone()).collect())
}
