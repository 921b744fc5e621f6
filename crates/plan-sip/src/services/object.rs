//! Manifests as we make them: labels that select, labels that tell the owner, and the digest of what is asked.

use std::fmt::{self, Write as _};

use api::keys::{APPLIED, OWNER_NAME, OWNER_NAMESPACE, OWNER_UID};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::Want;

/// The kinds of objects that we make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// v1 Service.
    Service,
    /// v1 Secret.
    Secret,
    /// v1 ConfigMap.
    ConfigMap,
    /// v1 PersistentVolumeClaim.
    PersistentVolumeClaim,
    /// v1 ServiceAccount.
    ServiceAccount,
    /// rbac.authorization.k8s.io/v1 RoleBinding.
    RoleBinding,
    /// policy/v1 PodDisruptionBudget.
    PodDisruptionBudget,
    /// apps/v1 Deployment.
    Deployment,
}

/// One object as it shall be: a whole manifest, without what the API server adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its kind.
    pub kind: Kind,
    /// Its name; the namespace is the owner's.
    pub name: String,
    /// The manifest, owner labels and [`api::keys::APPLIED`] included.
    pub body: Value,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::Service,
        Self::Secret,
        Self::ConfigMap,
        Self::PersistentVolumeClaim,
        Self::ServiceAccount,
        Self::RoleBinding,
        Self::PodDisruptionBudget,
        Self::Deployment,
    ];

    /// `apiVersion` in manifests.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Service | Self::Secret | Self::ConfigMap | Self::PersistentVolumeClaim | Self::ServiceAccount => "v1",
            Self::RoleBinding => "rbac.authorization.k8s.io/v1",
            Self::PodDisruptionBudget => "policy/v1",
            Self::Deployment => "apps/v1",
        }
    }

    /// `kind` in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "Service",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::ServiceAccount => "ServiceAccount",
            Self::RoleBinding => "RoleBinding",
            Self::PodDisruptionBudget => "PodDisruptionBudget",
            Self::Deployment => "Deployment",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One service: what its objects are called and which labels find its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Name of the Deployment, the Service and whatever else there is one of.
    pub name: String,
    /// Label `app.kubernetes.io/name`: the program.
    pub program: &'static str,
    /// Label `app.kubernetes.io/component`: its part in the whole.
    pub component: &'static str,
}

impl Instance {
    /// The four labels that find the pods. Those of the original, to the letter: a Deployment's selector cannot be
    /// changed, and its Deployments are taken over in place.
    pub fn selector(&self) -> Value {
        let Self { name, program, component } = self;
        json!({
            "app.kubernetes.io/part-of": "sip",
            "app.kubernetes.io/name": program,
            "app.kubernetes.io/component": component,
            "app.kubernetes.io/instance": name,
        })
    }

    /// The labels of the instance's objects and pods: those that select, and those that tell the owner.
    pub fn labels(&self, want: &Want<'_>) -> Value {
        let mut labels = self.selector();
        let owner =
            [(OWNER_NAMESPACE, &want.owner.namespace), (OWNER_NAME, &want.owner.name), (OWNER_UID, &want.owner_uid)];
        for (key, value) in owner {
            labels[key] = Value::from(value.as_str());
        }
        labels
    }

    /// The object of this kind and name: `content` (`spec`, `data`, ...) with type, metadata and digest. It has no
    /// owner reference, so that nothing but our own plan ever deletes it.
    pub fn object(&self, want: &Want<'_>, kind: Kind, name: &str, content: Value) -> Object {
        let mut body = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.name(),
            "metadata": { "name": name, "namespace": want.owner.namespace, "labels": self.labels(want) },
        });
        if let (Value::Object(body), Value::Object(content)) = (&mut body, content) {
            body.extend(content);
        }
        let applied = digest(&body);
        body["metadata"]["annotations"][APPLIED] = Value::from(applied);
        Object { kind, name: name.to_owned(), body }
    }
}

impl Object {
    /// The digest in the manifest.
    pub fn applied(&self) -> Option<&str> {
        self.body["metadata"]["annotations"][APPLIED].as_str()
    }
}

/// SHA-256 of a text as 64 lower-case hexadecimal digits.
pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::with_capacity(64), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("a String takes everything");
        hex
    })
}

/// Digest of a manifest without its annotation [`APPLIED`]; the order of the fields does not matter.
pub(crate) fn digest(body: &Value) -> String {
    let mut body = sorted(body);
    if let Some(Value::Object(annotations)) = body.pointer_mut("/metadata/annotations") {
        annotations.remove(APPLIED);
        if annotations.is_empty()
            && let Some(Value::Object(metadata)) = body.get_mut("metadata")
        {
            metadata.remove("annotations");
        }
    }
    sha256(&body.to_string())
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| *key);
            Value::Object(keys.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
