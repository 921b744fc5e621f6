//! Decides about the hosts of one cluster at a time, in order, and sends clusters on their turns.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::SIPCluster;
use base::Key;
use plan_sip::{
    claims::{self, Plan, Seen},
    network::Addresses,
    order::Rank,
    quarantine,
    services::{self, CustomTemplate, names},
};

use super::{Done, Engine, PATIENCE, TURNS};
use crate::sipcluster::{self, Job};

impl Engine {
    /// Decides about clusters that are due, best rank first, until a record has to be written or no place is free.
    pub(super) fn decide(&mut self) {
        if self.schedule.recording || self.schedule.running() >= TURNS {
            return;
        }
        let ready = self.schedule.ready().filter(|key| !self.beginning.holds_up(&key.namespace));
        let mut ranks: Vec<Rank> =
            ready.filter_map(|key| Some(Rank::of(self.site.cluster(key)?, &self.site))).collect();
        ranks.sort();
        let gone: Vec<Key> = self.schedule.ready().filter(|key| self.site.cluster(key).is_none()).cloned().collect();
        for key in gone {
            self.schedule.forget(&key);
            self.orphans(&key);
        }
        for rank in ranks {
            if self.schedule.recording || self.schedule.running() >= TURNS {
                return;
            }
            self.decide_about(rank.key());
        }
    }

    fn decide_about(&mut self, key: &Key) {
        let (Some(want), Some(sip)) = (self.site.cluster(key).cloned(), self.sips.get(key).cloned()) else { return };
        if want.deleting && !want.finalizer {
            // Somebody else's finalizer holds it; ours has done its work.
            self.schedule.forget(key);
            return;
        }
        let no_choice = self.beginning.unreadable(&key.namespace).is_some();
        let seen = Seen {
            departed: self.departed.get(key).cloned().unwrap_or_default(),
            no_choice,
            inherited: self.inherited(key, &sip),
        };
        let plan = claims::plan(&want, &mut self.site, &seen);
        self.note_waiting(key, plan.seeks);
        self.schedule.begin(key);
        // Where we may not work, and have no host, there is nothing to keep the SIPCluster for.
        let finalizer = !(want.finalizer || no_choice && plan.record.is_empty());
        if !finalizer && !plan.record_moves {
            self.begin_turn(key, plan);
            return;
        }
        tracing::info!(cluster = %key, plan = %plan, "decided");
        self.schedule.recording = true;
        let (cx, key) = (self.cx.clone(), key.clone());
        self.jobs.spawn(async move {
            let written = sipcluster::begin(&sip, &plan, finalizer, &cx).await;
            Done::Recorded(key, Box::new(written), Box::new(plan))
        });
    }

    /// Addresses that the services of a cluster know, where a host labelled for it does not tell its own.
    fn inherited(&self, key: &Key, sip: &SIPCluster) -> BTreeMap<String, Addresses> {
        let tells = |host: &Key| {
            let host = self.site.host(host);
            host.is_none_or(|host| host.kept_addresses.is_some() || self.site.addresses(host).is_ok())
        };
        if self.site.labelled(key).all(tells) {
            return BTreeMap::new();
        }
        services::inherited(&key.name, &sip.spec, &self.cache.objects(key))
    }

    /// Sends a cluster, whose record says what was decided, on its turn.
    pub(super) fn begin_turn(&mut self, key: &Key, plan: Plan) {
        let (Some(want), Some(sip)) = (self.site.cluster(key).cloned(), self.sips.get(key).cloned()) else {
            self.schedule.end(key);
            return;
        };
        let outlook = self.outlook(key, &sip, plan.finished);
        let host = |entry: &api::sipcluster::HostRecord| {
            let key = Key::new(&entry.namespace, &entry.name);
            Some((key.clone(), Arc::clone(self.site.host(&key)?)))
        };
        let job = Job {
            outlook,
            hosts: plan.record.iter().filter_map(host).collect(),
            objects: self.cache.objects(key),
            pods: self.cache.pods(key),
            templates: self.templates(&key.namespace),
            node_ips: self.cache.node_ips(),
            patient: self.schedule.failures(key) < PATIENCE,
            no_rights: self.beginning.unreadable(&key.namespace).map(str::to_owned),
            plan,
            want,
            sip,
        };
        let cx = self.cx.clone();
        self.jobs.spawn(async move {
            let began = tokio::time::Instant::now();
            let outcome = sipcluster::turn(job, &cx).await;
            let result = outcome.error.as_ref().map_or("ok", crate::Error::reason);
            cx.metrics.common.turned("sipcluster", result, began.elapsed());
            Done::Turned(Box::new(outcome))
        });
    }

    /// The template for each role's load balancers: the tenant's, else the installation's.
    fn templates(&self, namespace: &str) -> BTreeMap<String, CustomTemplate> {
        let installation = &self.cx.installation.namespace;
        let mut found = BTreeMap::new();
        for (key, maps) in [
            (names::CONTROL_PLANE_TEMPLATE, names::CONTROL_PLANE_TEMPLATES),
            (names::WORKER_TEMPLATE, names::WORKER_TEMPLATES),
        ] {
            let own = Key::new(namespace, maps[0]);
            let everybody = maps.into_iter().map(|map| Key::new(installation, map));
            let custom = std::iter::once(own).chain(everybody).find_map(|config_map| {
                let text = self.cache.template(&config_map).get(key).cloned()?;
                Some(CustomTemplate { config_map, text })
            });
            if let Some(custom) = custom {
                found.insert(key.to_owned(), custom);
            }
        }
        found
    }

    /// Looks after hosts that are nobody's: quarantine begins, ends, or their old owner comes back.
    pub(super) fn hosts_due(&mut self) {
        for key in self.schedule.take_hosts() {
            let Some(host) = self.site.host(&key).cloned() else { continue };
            let now = (self.cx.now)();
            let turn = quarantine::turn(&host, &self.site, now);
            match &turn {
                quarantine::Turn::Rest => {}
                quarantine::Turn::Stranger { cluster } => tracing::warn!(
                    host = %key, %cluster, user = host.user(),
                    "the host was released from this cluster and is used by somebody else's tenant: it stays without labels",
                ),
                quarantine::Turn::Until(end) => {
                    let wait = Duration::try_from(end.duration_since(now)).unwrap_or_default();
                    self.schedule.host_again(&key, wait);
                }
                _ => {
                    tracing::info!(host = %key, ?turn, "quarantine");
                    self.schedule.host_begin(&key);
                    let cx = self.cx.clone();
                    self.jobs.spawn(async move {
                        let written = sipcluster::quarantine(&host, &turn, &cx).await;
                        Done::Host(key, Box::new(written))
                    });
                }
            }
        }
    }
}
