//! Looks at what answers the tenants' users, beside the turns: asks sidecars and OIDC providers now and then, and makes a
//! cluster due only when there is something else to tell.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use api::SIPCluster;
use base::{Key, Says};
use futures::{StreamExt, stream};
use plan_sip::{
    outlook::{self, OIDC_READY, Outlook, PodHealth, Provider, Reading, TENANT_REACHABLE},
    services::names,
};

use super::{Done, Engine};
use crate::Context;

/// Clusters that are looked at at once.
const LOOKS: usize = 16;
/// Questions of one look that are under way at once.
const PARALLEL: usize = 4;

/// What is known of the clusters' users' view, by condition type.
pub(super) type Outlooks = BTreeMap<Key, BTreeMap<&'static str, Outlook>>;

/// What one look asks.
struct Look {
    namespace: String,
    /// Ready pods of control-plane load balancers; none where the cluster asks for no such load balancer.
    pods: Option<Vec<(String, Option<SocketAddr>)>>,
    providers: Option<Vec<Provider>>,
}

/// What it found, by condition type.
pub(super) type Looked = BTreeMap<&'static str, Reading>;

/// The conditions that a cluster has.
fn kinds(sip: &SIPCluster) -> impl Iterator<Item = &'static str> {
    let services = &sip.spec.services;
    let tenant = (!services.load_balancer_control_plane.is_empty()).then_some(TENANT_REACHABLE);
    let oidc = (!services.auth.is_empty()).then_some(OIDC_READY);
    tenant.into_iter().chain(oidc)
}

impl Engine {
    /// What a turn tells of the users' view. A cluster whose services all go tells nothing.
    pub(super) fn outlook(&mut self, key: &Key, sip: &SIPCluster, finished: bool) -> Vec<Says> {
        if finished {
            self.outlooks.remove(key);
            return Vec::new();
        }
        let now = (self.cx.now)().as_second();
        let conditions = sip.status.as_ref().map(|s| s.conditions.as_slice()).unwrap_or_default();
        let known = self.outlooks.entry(key.clone()).or_default();
        known.retain(|kind, _| kinds(sip).any(|asked| asked == *kind));
        kinds(sip)
            .map(|kind| known.entry(kind).or_insert_with(|| Outlook::resume(kind, conditions, now)).says())
            .collect()
    }

    /// After its first turn a cluster is looked at from then on.
    pub(super) fn look_from_now_on(&mut self, key: &Key) {
        let asked = self.outlooks.get(key).is_some_and(|known| !known.is_empty());
        if asked && self.sips.contains_key(key) {
            self.schedule.look_unless_planned(key);
        }
    }

    /// Sends out looks that are due.
    pub(super) fn looks(&mut self) {
        while let Some(key) = self.schedule.begin_look(LOOKS) {
            let Some(look) = self.look(&key) else {
                self.schedule.forget_look(&key);
                continue;
            };
            let cx = self.cx.clone();
            self.jobs.spawn(async move { Done::Looked(key, look.ask(&cx).await) });
        }
    }

    fn look(&self, key: &Key) -> Option<Look> {
        let sip = self.sips.get(key)?;
        let known = self.outlooks.get(key)?;
        let entries = &sip.spec.services.load_balancer_control_plane;
        let instances: Vec<String> = entries
            .iter()
            .map(|entry| names::load_balancer_control_plane(&key.name, entry.common.name.as_deref()))
            .collect();
        let pods = known.contains_key(TENANT_REACHABLE).then(|| {
            let pods = self.cache.pods(key).into_iter();
            let ours = pods.filter(|p| p.pod.ready && !p.pod.deleting && instances.contains(&p.pod.instance));
            ours.map(|p| (p.pod.name, p.reports_at)).collect()
        });
        let providers = known.contains_key(OIDC_READY).then(|| {
            let published = sip.status.as_ref().map(|s| s.oidc.as_slice()).unwrap_or_default();
            outlook::providers(key, &sip.spec, &self.cache.objects(key), published)
        });
        Some(Look { namespace: key.namespace.clone(), pods, providers })
    }

    /// Takes in what a look found.
    pub(super) fn looked(&mut self, key: &Key, mut found: Looked) {
        let now = (self.cx.now)().as_second();
        let mut news = false;
        let mut next: Option<u64> = None;
        for (kind, outlook) in self.outlooks.get_mut(key).into_iter().flatten() {
            if let Some(reading) = found.remove(kind) {
                news |= outlook.hear(reading, now);
            }
            let look_in = outlook.look_in(now);
            next = Some(next.map_or(look_in, |next| next.min(look_in)));
        }
        match next {
            Some(seconds) if self.sips.contains_key(key) => {
                self.schedule.look_again(key, Duration::from_secs(seconds));
                if news {
                    self.schedule.due(key);
                }
            }
            _ => self.schedule.forget_look(key),
        }
    }
}

impl Look {
    async fn ask(self, cx: &Context) -> Looked {
        let Self { namespace, pods, providers } = self;
        let mut found = Looked::new();
        if let Some(pods) = pods {
            let asked = pods.into_iter().map(|(pod, address)| {
                let namespace = namespace.as_str();
                async move {
                    let servers = match address {
                        Some(address) => cx.reports.health(namespace, &pod, address).await,
                        None => None,
                    };
                    PodHealth { pod, servers }
                }
            });
            let asked: Vec<PodHealth> = stream::iter(asked).buffered(PARALLEL).collect().await;
            found.insert(TENANT_REACHABLE, outlook::tenant(&asked));
        }
        if let Some(providers) = providers {
            let asked = providers.into_iter().map(|mut provider| async move {
                if let Some(question) = &provider.question {
                    provider.answer = cx.reports.issuer(question).await;
                }
                provider
            });
            let asked: Vec<Provider> = stream::iter(asked).buffered(PARALLEL).collect().await;
            found.insert(OIDC_READY, outlook::oidc(&asked));
        }
        found
    }
}
