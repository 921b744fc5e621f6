//! The order in which clusters are served, and what becomes of all of them together.

use base::Key;

use crate::{
    claims::{self, Plan, Seen},
    site::Site,
    want::Want,
};

/// Where a cluster stands in the queue: unfinished choices first, then replacement of lost hosts, then by age.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    class: Class,
    created: i64,
    key: Key,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Unfinished,
    LostHosts,
    ByAge,
}

impl Rank {
    /// The rank of a cluster as the site stands.
    pub fn of(want: &Want, site: &Site) -> Self {
        let gone = |r: &api::sipcluster::HostRecord| {
            site.host(&Key::new(&r.namespace, &r.name)).is_none_or(|h| h.uid != r.uid)
        };
        let class = if !want.established && !want.record.is_empty() {
            Class::Unfinished
        } else if want.record.iter().any(gone) {
            Class::LostHosts
        } else {
            Class::ByAge
        };
        Self { class, created: want.created, key: want.key.clone() }
    }

    /// The cluster.
    pub fn key(&self) -> &Key {
        &self.key
    }
}

/// What would become of all clusters if nothing changed meanwhile: each is served, in order, after the choices of those
/// before it. Changes the site accordingly.
pub fn sweep(site: &mut Site) -> Vec<(Key, Plan)> {
    let mut ranks: Vec<Rank> = site.clusters().map(|want| Rank::of(want, site)).collect();
    ranks.sort();
    let mut plans = Vec::with_capacity(ranks.len());
    for rank in ranks {
        let Some(want) = site.cluster(rank.key()).cloned() else { continue };
        let plan = claims::plan(&want, site, &Seen::default());
        site.put_cluster(Want { record: plan.record.clone(), ..(*want).clone() });
        plans.push((want.key.clone(), plan));
    }
    plans
}

#[cfg(test)]
mod tests;
