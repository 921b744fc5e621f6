//! Takes in what the watches of Secrets say: of hosts, of tenants, and our own.

use base::Key;
use io_kube::Change;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{ResourceExt, core::DynamicObject};
use plan_sip::{services::Kind, site::SecretFacts};

use crate::{
    cache,
    engine::{Engine, begin::Listing},
};

impl Engine {
    pub(super) fn secret_changed(&mut self, namespace: &str, change: Change<Secret>) {
        match change {
            Change::Applied(secret) => {
                let key = Key::new(namespace, secret.name_any());
                let referring: Vec<Key> = self.referring.get(&key).into_iter().flatten().cloned().collect();
                self.due(&referring);
                if let Some(owner) = cache::owner(&secret) {
                    self.own_secret(&owner, &secret);
                    return;
                }
                let empty = std::collections::BTreeMap::new();
                let data = secret.data.as_ref().unwrap_or(&empty);
                let exposing = self.exposing(&key);
                self.due(&exposing);
                let facts = SecretFacts::read(|key| data.get(key).map(|ByteString(bytes)| bytes.as_slice()));
                let moved = self.site.put_secret(&key, Some(facts));
                self.moved(moved);
            }
            Change::Deleted { key, uid } | Change::Unreadable { key, uid, .. } => {
                let key = Key::new(namespace, key.name);
                let referring: Vec<Key> = self.referring.get(&key).into_iter().flatten().cloned().collect();
                self.due(&referring);
                self.object_gone(Kind::Secret, &key, &uid);
                let moved = self.site.put_secret(&key, None);
                self.moved(moved);
            }
            Change::Listed(_) => {
                self.beginning.listed(&Listing::Secrets(namespace.to_owned()));
                let moved = self.site.put_namespace(namespace, None);
                self.moved(moved);
                let here: Vec<Key> = self.sips.keys().filter(|k| k.namespace == namespace).cloned().collect();
                self.due(&here);
            }
            Change::Forbidden(why) => {
                self.refused(&Listing::Secrets(namespace.to_owned()), &why);
                let moved = self.site.put_namespace(namespace, Some(&self.grant_of(namespace)));
                self.moved(moved);
            }
            Change::Interrupted(why) => {
                tracing::warn!(namespace, why, "the watch of Secrets is interrupted");
                self.beginning.interrupted(&Listing::Secrets(namespace.to_owned()), &why);
            }
            Change::Absent => {}
        }
    }

    /// Clusters whose jump hosts have the BMC credentials in this Secret.
    fn exposing(&self, secret: &Key) -> Vec<Key> {
        let exposes = |key: &&Key| {
            let jump_hosts = self.sips.get(*key).into_iter().flat_map(|sip| &sip.spec.services.jump_host);
            jump_hosts.filter_map(|entry| entry.bmc).any(|bmc| bmc.expose == Some(true))
        };
        self.site.users_of(secret).flat_map(|host| self.site.holders(host)).filter(exposes).cloned().collect()
    }

    /// What lets us read the Secrets of a namespace: another role where only hosts lie than where tenants do.
    fn grant_of(&self, namespace: &str) -> String {
        let tenants = self.sips.keys().any(|key| key.namespace == namespace);
        let role = if tenants { "slipway-tenant" } else { "slipway-hosts" };
        let installation = &self.cx.installation.namespace;
        format!(
            "kubectl create rolebinding {role} --namespace={namespace} --clusterrole={role} \
             --serviceaccount={installation}:slipway-manager"
        )
    }

    fn own_secret(&mut self, owner: &Key, secret: &Secret) {
        let value = serde_json::to_value(secret).unwrap_or_default();
        let Ok(object) = serde_json::from_value::<DynamicObject>(value) else { return };
        if self.cache.put(owner, Kind::Secret, &secret.name_any(), cache::owned(Kind::Secret, &object)) {
            self.due([owner]);
        }
    }
}
