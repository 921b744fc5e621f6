//! The kinds the server knows and how they differ.

use std::{collections::BTreeMap, sync::OnceLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};

/// A kind and how the server treats it.
#[derive(Clone, Debug, PartialEq)]
// Each is a fact of its own about the kind.
#[allow(clippy::struct_excessive_bools)]
pub struct Kind {
    /// API group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural, as in URLs.
    pub plural: String,
    /// Kind.
    pub kind: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` is separate from the rest.
    pub status: bool,
    pub(crate) custom: bool,
    pub(crate) generation: bool,
    /// A PUT without resourceVersion is taken.
    pub(crate) unconditional: bool,
    /// A PUT makes what is missing.
    pub(crate) create_on_update: bool,
    /// Lists with identity, of custom kinds: path of fields to the keys.
    pub(crate) lists: BTreeMap<String, Vec<String>>,
}

impl Kind {
    /// A custom resource. `status`: it has a status subresource.
    pub fn custom(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool, status: bool) -> Self {
        Kind {
            group: group.into(),
            version: version.into(),
            plural: plural.into(),
            kind: kind.into(),
            namespaced,
            status,
            custom: true,
            generation: true,
            unconditional: false,
            create_on_update: false,
            lists: BTreeMap::new(),
        }
    }

    /// The kinds of a CustomResourceDefinition, one per served version.
    pub fn of_crd(crd: &CustomResourceDefinition) -> Vec<Self> {
        let served = crd.spec.versions.iter().filter(|version| version.served);
        served
            .map(|version| {
                let status = version.subresources.as_ref().is_some_and(|sub| sub.status.is_some());
                let names = &crd.spec.names;
                let namespaced = crd.spec.scope == "Namespaced";
                let mut kind =
                    Kind::custom(&crd.spec.group, &version.name, &names.plural, &names.kind, namespaced, status);
                if let Some(schema) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) {
                    lists(schema, "", &mut kind.lists);
                }
                kind
            })
            .collect()
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// How errors name it, and under which its objects are kept: versions of a kind are one.
    pub(crate) fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    fn built_in(group: &str, plural: &str, kind: &str, traits: &str) -> Self {
        Kind {
            namespaced: !traits.contains('C'),
            status: traits.contains('S'),
            custom: false,
            generation: traits.contains('G'),
            unconditional: !traits.contains('v'),
            create_on_update: traits.contains('u'),
            ..Kind::custom(group, "v1", plural, kind, true, false)
        }
    }
}

/// Lists that a schema gives an identity: by path of field names, `[]` for elements.
fn lists(schema: &JSONSchemaProps, path: &str, found: &mut BTreeMap<String, Vec<String>>) {
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        match field.x_kubernetes_list_type.as_deref() {
            Some("map") => {
                found.insert(path.clone(), field.x_kubernetes_list_map_keys.clone().unwrap_or_default());
            }
            Some("set") => {
                found.insert(path.clone(), Vec::new());
            }
            _ => {}
        }
        lists(field, &path, found);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(element)) = &schema.items {
        lists(element, &format!("{path}[]"), found);
    }
}

/// The kinds every server has here. Traits: `C` cluster-wide, `S` status subresource, `G` counts generations,
/// `v` a PUT needs a resourceVersion, `u` a PUT makes what is missing.
/// Source: `AllowUnconditionalUpdate`, `AllowCreateOnUpdate` and `PrepareForUpdate` of Kubernetes 1.34's strategies.
pub(crate) fn known() -> Vec<Kind> {
    let built_in = [
        ("", "namespaces", "Namespace", "CS"),
        ("", "nodes", "Node", "CS"),
        ("", "services", "Service", "S"),
        ("", "secrets", "Secret", ""),
        ("", "configmaps", "ConfigMap", ""),
        ("", "pods", "Pod", "SG"),
        ("events.k8s.io", "events", "Event", "u"),
        ("", "events", "Event", "u"),
        ("", "persistentvolumeclaims", "PersistentVolumeClaim", "S"),
        ("", "serviceaccounts", "ServiceAccount", ""),
        ("apps", "deployments", "Deployment", "SG"),
        ("apps", "daemonsets", "DaemonSet", "SG"),
        ("apps", "statefulsets", "StatefulSet", "SG"),
        ("policy", "poddisruptionbudgets", "PodDisruptionBudget", "SGv"),
        ("networking.k8s.io", "networkpolicies", "NetworkPolicy", "G"),
        ("coordination.k8s.io", "leases", "Lease", "vu"),
        ("rbac.authorization.k8s.io", "roles", "Role", ""),
        ("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", ""),
        ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", "C"),
        ("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding", "C"),
        ("discovery.k8s.io", "endpointslices", "EndpointSlice", "G"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "CSGv"),
    ];
    let mut kinds: Vec<Kind> =
        built_in.iter().map(|(group, plural, kind, traits)| Kind::built_in(group, plural, kind, traits)).collect();
    kinds.extend([
        Kind::custom("metal3.io", "v1alpha1", "baremetalhosts", "BareMetalHost", true, true),
        Kind::custom("cluster.x-k8s.io", "v1beta1", "clusters", "Cluster", true, true),
        Kind::custom("cluster.x-k8s.io", "v1beta2", "clusters", "Cluster", true, true),
    ]);
    kinds.extend(api_kinds());
    kinds
}

/// Our own kinds. Their schemas are worked out once for all tests of a process.
fn api_kinds() -> Vec<Kind> {
    static OURS: OnceLock<Vec<Kind>> = OnceLock::new();
    OURS.get_or_init(|| ::api::crds().iter().flat_map(Kind::of_crd).collect()).clone()
}
