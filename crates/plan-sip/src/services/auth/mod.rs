//! The OIDC providers of a tenant.

use super::{Part, Seen, Want};

/// What the OIDC providers of the spec need.
pub(crate) fn desired(_want: &Want<'_>, _seen: &Seen) -> Part {
    Part::default()
}
