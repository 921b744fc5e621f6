//! What a SIPCluster left behind that went without our finalizer: its services and hosts, once nobody uses any of them.
//!
//! ```text
//!   a host is in use ──► everything stays; the warning names the hosts (I4)
//!        │ none is any more
//!        ▼
//!   one quarantine passes, in which a backup may bring the SIPCluster back
//!        ▼
//!   the services go ──► then the labels: no load balancer of the old tenant ever reaches a host of the next one
//! ```

use std::{sync::Arc, time::Duration};

use base::Key;
use plan_sip::{host::Host, quarantine};
use tokio::time::Instant;

use super::{Done, Engine};
use crate::sipcluster;

impl Engine {
    pub(super) fn orphans(&mut self, key: &Key) {
        let labelled: Vec<Arc<Host>> =
            self.site.labelled(key).filter_map(|host| Some(Arc::clone(self.site.host(host)?))).collect();
        let used: Vec<String> = labelled.iter().filter(|host| host.in_use()).map(|host| host.key.to_string()).collect();
        if !used.is_empty() {
            self.abandoned.remove(key);
            tracing::warn!(cluster = %key, hosts = used.join(", "), "the SIPCluster is gone and hosts labelled for it are in use: they and its services stay until nobody uses them");
            return;
        }
        if !labelled.is_empty() {
            let since = *self.abandoned.entry(key.clone()).or_insert_with(Instant::now);
            let grace = Duration::from_secs(u64::try_from(self.cx.settings.quarantine).unwrap_or_default());
            let left = grace.saturating_sub(since.elapsed());
            if !left.is_zero() {
                self.schedule.again(key, left);
                return;
            }
        }
        if self.cache.has_objects(key) {
            let (cx, objects, key) = (self.cx.clone(), self.cache.objects(key), key.clone());
            self.schedule.begin(&key);
            self.jobs.spawn(async move { Done::Turned(Box::new(sipcluster::demolish(key, objects, &cx).await)) });
            return;
        }
        self.abandoned.remove(key);
        for host in labelled {
            let Some(turn) = quarantine::abandoned(&host, (self.cx.now)()) else { continue };
            tracing::info!(cluster = %key, host = %host.key, "host released: its SIPCluster is gone and nobody uses it");
            self.schedule.host_begin(&host.key);
            let (cx, cluster) = (self.cx.clone(), key.clone());
            self.jobs.spawn(async move {
                let written = match sipcluster::exists(&cluster, &cx).await {
                    Ok(false) => sipcluster::quarantine(&host, &turn, &cx).await,
                    // Our view is old, or the object is one that we cannot read: it is somebody's.
                    Ok(true) => Ok(None),
                    Err(error) => Err(error),
                };
                Done::Host(host.key.clone(), Box::new(written))
            });
        }
    }
}
