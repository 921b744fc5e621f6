//! Our objects, their pods, the base cluster's nodes and the users' templates, as the watches last showed them.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use api::keys;
use base::Key;
use k8s_openapi::{
    ByteString,
    api::core::v1::{ConfigMap, Node, Pod as ApiPod, Secret},
};
use kube::{
    ResourceExt,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use plan_sip::services::{
    Facts, Kind, Owned, Pod,
    names::{REPORT, is_served_by_any_pod},
};
use serde_json::Value;

/// The API resource of a kind that we make.
pub fn resource(kind: Kind) -> ApiResource {
    let (group, version) = match kind.api_version().split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", kind.api_version()),
    };
    let plural = match kind {
        Kind::Service => "services",
        Kind::Secret => "secrets",
        Kind::ConfigMap => "configmaps",
        Kind::PersistentVolumeClaim => "persistentvolumeclaims",
        Kind::PodDisruptionBudget => "poddisruptionbudgets",
        Kind::ServiceAccount => "serviceaccounts",
        Kind::RoleBinding => "rolebindings",
        Kind::Deployment => "deployments",
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind.name()), plural)
}

/// Whether `version` was before `known`: watches may show again what a write has already told. Versions that are no
/// numbers cannot be compared; then what comes later counts.
pub fn is_past(version: &str, known: &str) -> bool {
    match (version.parse::<u128>(), known.parse::<u128>()) {
        (Ok(version), Ok(known)) => version < known,
        _ => false,
    }
}

/// Objects of one owner.
pub type Objects = BTreeMap<(Kind, String), Owned>;

/// A pod with what is needed to ask it.
#[derive(Clone, Debug)]
pub struct CachedPod {
    /// As the services see it, without report.
    pub pod: Pod,
    /// Where its sidecar reports; `None`: nowhere, or not yet.
    pub reports_at: Option<SocketAddr>,
}

/// What the watches last showed.
#[derive(Debug, Default)]
pub struct Cache {
    objects: BTreeMap<Key, Objects>,
    pods: BTreeMap<Key, BTreeMap<String, CachedPod>>,
    nodes: BTreeMap<String, String>,
    templates: BTreeMap<Key, BTreeMap<String, Arc<str>>>,
}

/// The owner that an object's labels name. Everything we make is in its owner's namespace: who writes another one on a
/// label cannot make an object count there.
pub fn owner(object: &impl ResourceExt) -> Option<Key> {
    let labels = object.labels();
    let owner = Key::new(labels.get(keys::OWNER_NAMESPACE)?, labels.get(keys::OWNER_NAME)?);
    (object.namespace().as_deref() == Some(&owner.namespace)).then_some(owner)
}

/// An object of ours, as the services see it.
pub fn owned(kind: Kind, object: &DynamicObject) -> Owned {
    let mut live = serde_json::to_value(object).unwrap_or_default();
    let facts = match kind {
        Kind::Service => service_facts(&live),
        Kind::Deployment => deployment_facts(&live, is_served_by_any_pod(&object.name_any())),
        Kind::Secret => Facts::Secret { data: decoded(&live) },
        Kind::RoleBinding => {
            let account = live.pointer("/subjects/0/name").and_then(Value::as_str).unwrap_or_default().to_owned();
            Facts::Binding { account }
        }
        _ => Facts::None,
    };
    if let Value::Object(fields) = &mut live {
        // Items of a list do not repeat what they are, and would differ from what we say for ever.
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.name().into());
        // The status decides nothing but the facts, and changes often.
        fields.remove("status");
    }
    Owned {
        uid: object.uid().unwrap_or_default(),
        resource_version: object.resource_version().unwrap_or_default(),
        owner_name: object.labels().get(keys::OWNER_NAME).cloned(),
        owner_uid: object.labels().get(keys::OWNER_UID).cloned(),
        applied: object.annotations().get(keys::APPLIED).cloned(),
        live: Some(Arc::new(live)),
        facts,
    }
}

fn decoded(live: &Value) -> BTreeMap<String, Arc<[u8]>> {
    let data: BTreeMap<String, ByteString> =
        live.get("data").cloned().and_then(|data| serde_json::from_value(data).ok()).unwrap_or_default();
    data.into_iter().map(|(key, ByteString(bytes))| (key, Arc::from(bytes))).collect()
}

fn service_facts(live: &Value) -> Facts {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).filter(|t| !t.is_empty());
    let ports = live.pointer("/spec/ports").and_then(Value::as_array);
    let node_port = |port: &Value| port.get("nodePort").and_then(Value::as_i64).and_then(|p| i32::try_from(p).ok());
    let ingress = text("/status/loadBalancer/ingress/0/hostname").or_else(|| text("/status/loadBalancer/ingress/0/ip"));
    Facts::Service {
        cluster_ip: text("/spec/clusterIP").unwrap_or_default().to_owned(),
        node_ports: ports.into_iter().flatten().map(|port| node_port(port).unwrap_or(0)).collect(),
        ingress: ingress.map(str::to_owned),
    }
}

/// What several pods serve is available as long as one of them is: condition Available falls with the first of two. Pods of
/// an earlier generation serve as well, so a change that is on its way takes nothing off.
fn deployment_facts(live: &Value, any_pod: bool) -> Facts {
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    let condition = |kind: &str| {
        let found = conditions.into_iter().flatten().find(|c| c.get("type").and_then(Value::as_str) == Some(kind))?;
        let text = |field: &str| found.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some((text("status") == "True", text("message")))
    };
    let current = number("/status/observedGeneration") >= number("/metadata/generation");
    let holds = condition("Available").is_some_and(|(holds, _)| holds);
    let available = holds || any_pod && number("/status/availableReplicas") > 0;
    let wanted = live.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let updated = number("/status/updatedReplicas");
    // As `kubectl rollout status` has it; pods that die later are no rollout.
    let rolling = !current || updated < wanted || number("/status/replicas") > updated;
    let failure = condition("ReplicaFailure").filter(|(holds, _)| *holds);
    let stuck = condition("Progressing").filter(|(holds, _)| !*holds);
    let absent = condition("Available").filter(|(holds, _)| !*holds);
    // What is said of an earlier generation is not about what is wanted now.
    let why = current.then(|| failure.or(stuck).or(absent)).flatten();
    Facts::Deployment { available, rolling, message: why.map(|(_, text)| text).unwrap_or_default() }
}

impl Cache {
    /// Objects of an owner.
    pub fn objects(&self, owner: &Key) -> Objects {
        self.objects.get(owner).cloned().unwrap_or_default()
    }

    /// Whether an owner has objects.
    pub fn has_objects(&self, owner: &Key) -> bool {
        self.objects.contains_key(owner)
    }

    /// Owners of objects.
    pub fn owners(&self) -> impl Iterator<Item = &Key> {
        self.objects.keys()
    }

    /// An object is there, or has changed. Whether that is news.
    pub fn put(&mut self, owner: &Key, kind: Kind, name: &str, new: Owned) -> bool {
        let objects = self.objects.entry(owner.clone()).or_default();
        let known = objects.get(&(kind, name.to_owned()));
        let news = known.is_none_or(|old| {
            old.uid != new.uid
                || (old.resource_version != new.resource_version
                    && !is_past(&new.resource_version, &old.resource_version))
        });
        if news {
            objects.insert((kind, name.to_owned()), new);
        }
        news
    }

    /// An object is gone. Whether that is news.
    pub fn remove(&mut self, owner: &Key, kind: Kind, name: &str, uid: &str) -> bool {
        let Some(objects) = self.objects.get_mut(owner) else { return false };
        let known = objects.get(&(kind, name.to_owned())).is_some_and(|old| uid.is_empty() || old.uid == uid);
        if known {
            objects.remove(&(kind, name.to_owned()));
        }
        if objects.is_empty() {
            self.objects.remove(owner);
        }
        known
    }

    /// Objects of a kind that a whole listing did not show.
    pub fn missing(&self, kind: Kind, namespace: Option<&str>, listed: &BTreeSet<Key>) -> Vec<(Key, String, String)> {
        let in_scope = |owner: &&Key| namespace.is_none_or(|n| n == owner.namespace);
        let mut gone = Vec::new();
        for owner in self.objects.keys().filter(in_scope) {
            for ((k, name), object) in &self.objects[owner] {
                if *k == kind && !listed.contains(&Key::new(&owner.namespace, name)) {
                    gone.push((owner.clone(), name.clone(), object.uid.clone()));
                }
            }
        }
        gone
    }

    /// These objects were compared with what they shall be: their live form is not needed any more.
    pub fn verified(&mut self, owner: &Key, objects: &BTreeSet<(Kind, String)>, as_of: &Objects) {
        let Some(known) = self.objects.get_mut(owner) else { return };
        for id in objects {
            if let (Some(known), Some(compared)) = (known.get_mut(id), as_of.get(id))
                && known.resource_version == compared.resource_version
            {
                known.live = None;
            }
        }
    }

    /// Pods of an owner.
    pub fn pods(&self, owner: &Key) -> Vec<CachedPod> {
        self.pods.get(owner).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }

    /// A pod is there, or has changed. Its owner, if something that matters changed.
    pub fn put_pod(&mut self, pod: &ApiPod) -> Option<Key> {
        let owner = owner(pod)?;
        let new = cached_pod(pod);
        let pods = self.pods.entry(owner.clone()).or_default();
        let same = pods.get(&new.pod.name).is_some_and(|old| {
            let old = Pod { resource_version: new.pod.resource_version.clone(), ..old.pod.clone() };
            old == new.pod
        });
        pods.insert(new.pod.name.clone(), new);
        (!same).then_some(owner)
    }

    /// A pod is gone. Its owner, if it was known.
    pub fn remove_pod(&mut self, key: &Key) -> Option<Key> {
        let holds = |(owner, pods): (&Key, &BTreeMap<String, CachedPod>)| {
            (owner.namespace == key.namespace && pods.contains_key(&key.name)).then(|| owner.clone())
        };
        let owner = self.pods.iter().find_map(holds)?;
        let pods = self.pods.get_mut(&owner)?;
        pods.remove(&key.name);
        if pods.is_empty() {
            self.pods.remove(&owner);
        }
        Some(owner)
    }

    /// InternalIPs of Ready nodes in the order of their names.
    pub fn node_ips(&self) -> Vec<String> {
        self.nodes.values().cloned().collect()
    }

    /// A node is there, has changed, or (`None`) is gone. Whether an address came or went.
    pub fn put_node(&mut self, name: &str, node: Option<&Node>) -> bool {
        let status = node.and_then(|n| n.status.as_ref());
        let ready = status.and_then(|s| s.conditions.as_ref()).into_iter().flatten();
        let ready = ready.clone().any(|c| c.type_ == "Ready" && c.status == "True");
        let addresses = status.and_then(|s| s.addresses.as_ref()).into_iter().flatten();
        let internal = addresses.clone().find(|a| a.type_ == "InternalIP").map(|a| a.address.clone());
        match internal.filter(|_| ready) {
            Some(address) => self.nodes.insert(name.to_owned(), address.clone()) != Some(address),
            None => self.nodes.remove(name).is_some(),
        }
    }

    /// The templates of a ConfigMap; empty where it does not exist.
    pub fn template(&self, config_map: &Key) -> BTreeMap<String, Arc<str>> {
        self.templates.get(config_map).cloned().unwrap_or_default()
    }

    /// A ConfigMap with templates is there, has changed, or (`None`) is gone.
    pub fn put_template(&mut self, key: &Key, config_map: Option<&ConfigMap>) -> bool {
        let Some(config_map) = config_map else { return self.templates.remove(key).is_some() };
        let data = config_map.data.iter().flatten();
        let texts: BTreeMap<String, Arc<str>> = data.map(|(k, text)| (k.clone(), Arc::from(text.as_str()))).collect();
        self.templates.insert(key.clone(), texts.clone()) != Some(texts)
    }
}

fn cached_pod(pod: &ApiPod) -> CachedPod {
    let status = pod.status.clone().unwrap_or_default();
    let ready = status.conditions.iter().flatten().find(|c| c.type_ == "Ready");
    let since = ready.and_then(|c| c.last_transition_time.as_ref()).or(pod.metadata.creation_timestamp.as_ref());
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let trouble = containers.filter_map(|c| {
        let waiting = c.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let passing = matches!(reason, "" | "ContainerCreating" | "PodInitializing");
        let message = waiting.message.as_deref().map(|m| format!(": {m}")).unwrap_or_default();
        (!passing).then(|| format!("container {}: {reason}{message}", c.name))
    });
    let ports = pod.spec.iter().flat_map(|s| &s.containers).flat_map(|c| c.ports.iter().flatten());
    let port =
        ports.clone().find(|p| p.name.as_deref() == Some(REPORT)).and_then(|p| u16::try_from(p.container_port).ok());
    let address: Option<IpAddr> = status.pod_ip.as_ref().and_then(|ip| ip.parse().ok());
    CachedPod {
        reports_at: address.zip(port).map(SocketAddr::from),
        pod: Pod {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            resource_version: pod.resource_version().unwrap_or_default(),
            instance: pod.labels().get("app.kubernetes.io/instance").cloned().unwrap_or_default(),
            deleting: pod.metadata.deletion_timestamp.is_some(),
            ready: ready.is_some_and(|c| c.status == "True"),
            ready_since: since.map_or(0, |t| t.0.as_second()),
            wanted: pod.annotations().get(keys::WANTED).cloned(),
            report: None,
            trouble: trouble.collect::<Vec<_>>().join("; "),
        },
    }
}

/// Data of a Secret that the spec of a cluster names.
pub fn secret_data(secret: Secret) -> BTreeMap<String, Arc<[u8]>> {
    secret.data.into_iter().flatten().map(|(key, ByteString(bytes))| (key, Arc::from(bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn deployment(observed: i64, status: Value) -> Value {
        let mut status = status;
        status["observedGeneration"] = json!(observed);
        json!({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status})
    }

    fn available(holds: &str) -> Value {
        json!({"type": "Available", "status": holds, "message": "Deployment says so."})
    }

    #[rstest]
    #[case::new(0, json!({}), (false, true, ""))]
    #[case::whole(2, json!({"replicas": 2, "updatedReplicas": 2, "conditions": [available("True")]}), (true, false, ""))]
    #[case::changed_a_moment_ago(1, json!({"replicas": 2, "updatedReplicas": 2, "conditions": [available("True")]}), (true, true, ""))]
    #[case::old_pods_still_there(2, json!({"replicas": 3, "updatedReplicas": 1, "conditions": [available("True")]}), (true, true, ""))]
    #[case::a_pod_died(2, json!({"replicas": 2, "updatedReplicas": 2, "conditions": [available("False")]}), (false, false, "Deployment says so."))]
    #[case::stuck(
        2,
        json!({"replicas": 3, "updatedReplicas": 1, "conditions": [
            available("True"), {"type": "Progressing", "status": "False", "message": "deadline exceeded"}]}),
        (true, true, "deadline exceeded")
    )]
    fn what_a_deployment_says_of_itself(
        #[case] observed: i64,
        #[case] status: Value,
        #[case] said: (bool, bool, &str),
    ) {
        let Facts::Deployment { available, rolling, message } = deployment_facts(&deployment(observed, status), false)
        else {
            panic!("it is a Deployment")
        };
        assert_eq!((available, rolling, message.as_str()), said);
    }
}
