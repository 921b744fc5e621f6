//! What each service contributes to the plan: the objects it needs, and what it has to say.

use std::collections::BTreeSet;

use api::sipcluster::{Endpoint, OidcStatus};

use super::{Kind, Object, Problem, Step};

/// One service's, or one entry's, share of the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// Objects as they shall be. What differs from what is there is found by comparison, so a part only states them.
    pub objects: Vec<Object>,
    /// Objects that stay as they are where they are there: the service cannot say at present how they shall be (a Secret
    /// it needs is missing, a template does not render), or [`Part::steps`] deal with them. Whatever of the owner's is
    /// neither here nor in `objects` is deleted.
    pub keep: BTreeSet<(Kind, String)>,
    /// What comparison does not find: keys and certificates to make, pods to annotate or delete.
    pub steps: Vec<Step>,
    /// Where the entries are reached, in the order of the spec; one that is not known yet is left out.
    pub endpoints: Vec<Endpoint>,
    /// What the tenant's API server is told of its OIDC providers.
    pub oidc: Vec<OidcStatus>,
    /// What is not as asked.
    pub problems: Vec<Problem>,
    /// What is as asked, and may still surprise.
    pub warnings: Vec<Problem>,
    /// Something that shall exist is not in `objects` yet, or an endpoint is not known yet: the service is not ready.
    pub unfinished: bool,
    /// Seconds until time alone changes this part.
    pub again_in: Option<u64>,
}

impl Part {
    /// Leaves an object as it is, because how it shall be cannot be said at present. The service is not ready meanwhile.
    pub fn stays(&mut self, kind: Kind, name: &str) {
        self.keep.insert((kind, name.to_owned()));
        self.unfinished = true;
    }

    /// Adds what another part contributes.
    pub fn add(&mut self, other: Self) {
        let Self { objects, keep, steps, endpoints, oidc, problems, warnings, unfinished, again_in } = other;
        self.objects.extend(objects);
        self.keep.extend(keep);
        self.steps.extend(steps);
        self.endpoints.extend(endpoints);
        self.oidc.extend(oidc);
        self.problems.extend(problems);
        self.warnings.extend(warnings);
        self.unfinished |= unfinished;
        self.again_in = sooner(self.again_in, again_in);
    }
}

/// The earlier of two times, where `None` is never.
pub(crate) fn sooner(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
