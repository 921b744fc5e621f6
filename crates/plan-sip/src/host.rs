//! A BareMetalHost as SIP sees it: what decides whether it may be claimed, kept or released.

use std::collections::BTreeMap;

use api::{keys, sipcluster::Released};
use api_foreign::{
    BareMetalHost,
    metal3::{self, BareMetalHostSpec},
};
use base::Key;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::{network::Addresses, placement::Unfit};

/// What SIP reads of a BareMetalHost, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Namespace and name.
    pub key: Key,
    /// uid; another one under the same name is another host.
    pub uid: String,
    /// The resourceVersion this was read at.
    pub resource_version: String,
    /// Seconds since the epoch at which it was created.
    pub created: i64,
    /// Its labels, without the claim labels.
    pub labels: BTreeMap<String, String>,
    /// Its claim labels.
    pub claim: Claim,
    /// Who uses it: `kind namespace/name` of consumerRef.
    pub consumer: Option<String>,
    /// Whose tenant that user belongs to.
    pub tenancy: Option<Tenancy>,
    /// Whether a system is, or is being put, on it.
    pub provisioned: bool,
    /// What speaks against choosing it, beside claim, consumer and quarantine.
    pub unfit: Option<Unfit>,
    /// Annotation [`keys::RELEASED`].
    pub released: Option<Released>,
    /// Annotation [`keys::FORCE_RELEASE`], as it stands there.
    pub force_release: Option<String>,
    /// Annotation [`keys::ADDRESSES`], where it can be read.
    pub kept_addresses: Option<Addresses>,
    /// The Secret with its network data.
    pub network_data: Option<Key>,
    /// The Secret with its BMC credentials.
    pub credentials: Option<Key>,
    /// `spec.bmc.address`.
    pub bmc_address: String,
    /// Whether the certificate of its BMC is not verified.
    pub bmc_insecure: bool,
}

/// Whose tenant the user of a host belongs to, as far as the host tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tenancy {
    /// Namespace of its consumerRef.
    pub namespace: String,
    /// The Cluster of Cluster API that Metal3's provider writes onto a host it takes ([`metal3::CAPI_CLUSTER`]).
    pub cluster: Option<String>,
}

/// Claim labels on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Claim {
    /// None of them.
    #[default]
    Free,
    /// All three.
    By {
        /// The SIPCluster.
        cluster: Key,
        /// Its role.
        role: String,
    },
    /// Some of them, put there or left by people: taken, and by nobody who could be named.
    Torn,
}

impl Host {
    /// Whether somebody uses it: then nothing of ours takes its labels off (I4).
    pub fn in_use(&self) -> bool {
        self.consumer.is_some() || self.provisioned
    }

    /// Who uses it, for people.
    pub fn user(&self) -> String {
        self.consumer.clone().unwrap_or_else(|| "an image that is provisioned on it".to_owned())
    }

    /// Whether it is bad: in error, being deleted, out of Metal3's hands or unreadable.
    pub fn bad(&self) -> Option<&Unfit> {
        let bad =
            |why: &&Unfit| matches!(why, Unfit::Deleting | Unfit::Error(_) | Unfit::Detached | Unfit::Unreadable(_));
        self.unfit.as_ref().filter(bad)
    }

    /// A host of which only the metadata can be read, because `error`; `known`: the same host as it was read before.
    /// Nobody can say that it is not in use, so it counts as used.
    pub fn unreadable(metadata: ObjectMeta, error: String, known: Option<&Self>) -> Self {
        let host = Self::from(BareMetalHost { metadata, spec: BareMetalHostSpec::default(), status: None });
        let known = known.filter(|known| known.uid == host.uid);
        let nobody_known = || Some("somebody, for all that can be read of it".to_owned());
        Self {
            consumer: known.and_then(|known| known.consumer.clone()).or_else(nobody_known),
            tenancy: known.and_then(|known| known.tenancy.clone()),
            provisioned: known.is_some_and(|known| known.provisioned),
            unfit: Some(Unfit::Unreadable(error)),
            network_data: known.and_then(|known| known.network_data.clone()),
            credentials: known.and_then(|known| known.credentials.clone()),
            bmc_address: known.map(|known| known.bmc_address.clone()).unwrap_or_default(),
            bmc_insecure: known.is_some_and(|known| known.bmc_insecure),
            ..host
        }
    }

    /// The cluster an administrator took it from by annotation, if the annotation names one.
    pub fn forced_from(&self) -> Option<Key> {
        self.force_release.as_deref().and_then(|text| text.trim().parse().ok())
    }

    /// Whether an administrator took it from this cluster by annotation.
    pub fn is_forced_from(&self, cluster: &Key) -> bool {
        self.forced_from().as_ref() == Some(cluster)
    }

    /// Whether its labels name this cluster.
    pub fn is_claimed_by(&self, cluster: &Key) -> bool {
        matches!(&self.claim, Claim::By { cluster: by, .. } if by == cluster)
    }
}

impl From<BareMetalHost> for Host {
    fn from(host: BareMetalHost) -> Self {
        let BareMetalHost { metadata, spec, status } = host;
        let status = status.unwrap_or_default();
        let mut labels = metadata.labels.unwrap_or_default();
        let mut annotations = metadata.annotations.unwrap_or_default();
        let key = Key::new(metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());

        let claim =
            (labels.remove(keys::CLUSTER_NAMESPACE), labels.remove(keys::CLUSTER_NAME), labels.remove(keys::NODE_TYPE));
        let claim = match claim {
            (None, None, None) => Claim::Free,
            (Some(namespace), Some(name), Some(role)) => Claim::By { cluster: Key::new(namespace, name), role },
            _ => Claim::Torn,
        };

        let maintenance = annotations.contains_key(keys::MAINTENANCE);
        let unfit = unfit(metadata.deletion_timestamp.is_some(), maintenance, &annotations, &status);
        let state = status.provisioning.state.as_str();
        let in_namespace = |name: String, namespace: &str| {
            let namespace = if namespace.is_empty() { key.namespace.clone() } else { namespace.to_owned() };
            (!name.is_empty()).then(|| Key::new(namespace, name))
        };
        let network_data = spec
            .network_data
            .and_then(|s| in_namespace(s.name, &s.namespace))
            .or_else(|| spec.preprovisioning_network_data_name.and_then(|name| in_namespace(name, "")));
        let bmc = spec.bmc.unwrap_or_default();
        Self {
            uid: metadata.uid.unwrap_or_default(),
            resource_version: metadata.resource_version.unwrap_or_default(),
            created: metadata.creation_timestamp.map_or(0, |t| t.0.as_second()),
            claim,
            tenancy: spec.consumer_ref.as_ref().map(|consumer| Tenancy {
                namespace: consumer.namespace.clone(),
                cluster: labels.get(metal3::CAPI_CLUSTER).cloned(),
            }),
            consumer: spec.consumer_ref.map(|c| format!("{} {}/{}", c.kind, c.namespace, c.name)),
            // From the moment that an image is asked for, Metal3 may begin to write it.
            provisioned: spec.externally_provisioned
                || spec.image.is_some_and(|image| !image.url.is_empty())
                || matches!(state, "provisioning" | "provisioned" | "externally provisioned" | "deprovisioning"),
            unfit,
            released: annotations.remove(keys::RELEASED).map(|text| released(&text)),
            force_release: annotations.remove(keys::FORCE_RELEASE),
            kept_addresses: annotations.remove(keys::ADDRESSES).and_then(|text| serde_json::from_str(&text).ok()),
            network_data,
            credentials: in_namespace(bmc.credentials_name, ""),
            bmc_address: bmc.address,
            bmc_insecure: bmc.disable_certificate_verification,
            labels,
            key,
        }
    }
}

/// The annotation, or, where people have made it unreadable, one that keeps the host out for a whole quarantine from an
/// unknown time: the controller writes it anew.
fn released(text: &str) -> Released {
    serde_json::from_str(text).unwrap_or_else(|_| Released {
        namespace: String::new(),
        cluster: String::new(),
        role: String::new(),
        at: None,
        forced: false,
    })
}

fn unfit(
    deleting: bool,
    maintenance: bool,
    annotations: &BTreeMap<String, String>,
    status: &metal3::BareMetalHostStatus,
) -> Option<Unfit> {
    let state = status.provisioning.state.as_str();
    if deleting {
        return Some(Unfit::Deleting);
    }
    if annotations.contains_key(metal3::DETACHED) || status.operational_status == "detached" {
        return Some(Unfit::Detached);
    }
    if status.operational_status == "error" || !status.error_type.is_empty() {
        let text = if status.error_message.is_empty() { &status.error_type } else { &status.error_message };
        return Some(Unfit::Error(text.clone()));
    }
    if maintenance {
        return Some(Unfit::Maintenance);
    }
    if annotations.contains_key(metal3::PAUSED) {
        return Some(Unfit::Paused);
    }
    // An empty state is a host that Metal3 has not looked at yet; where no Metal3 runs it stays so, and may be claimed.
    (!matches!(state, "" | "available" | "ready")).then(|| Unfit::NotReady(state.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn host(patch: Value) -> Host {
        let mut object = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": {"name": "n1", "namespace": "metal3", "uid": "u", "resourceVersion": "7"},
            "spec": {"bmc": {"address": "redfish+https://192.0.2.1/redfish/v1/Systems/1", "credentialsName": "c"}},
        });
        merge(&mut object, patch);
        Host::from(serde_json::from_value::<BareMetalHost>(object).expect("a host"))
    }

    fn merge(into: &mut Value, patch: Value) {
        match (into, patch) {
            (Value::Object(into), Value::Object(patch)) => {
                for (key, value) in patch {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, patch) => *into = patch,
        }
    }

    #[rstest]
    #[case::fresh(json!({}), None)]
    #[case::available(json!({"status": {"provisioning": {"state": "available"}}}), None)]
    #[case::inspecting(json!({"status": {"provisioning": {"state": "inspecting"}}}), Some(Unfit::NotReady("inspecting".into())))]
    #[case::error(json!({"status": {"operationalStatus": "error", "errorMessage": "no power"}}), Some(Unfit::Error("no power".into())))]
    #[case::deleting(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), Some(Unfit::Deleting))]
    #[case::maintenance(json!({"metadata": {"annotations": {"sip.airshipit.org/maintenance": ""}}}), Some(Unfit::Maintenance))]
    #[case::paused(json!({"metadata": {"annotations": {"baremetalhost.metal3.io/paused": ""}}}), Some(Unfit::Paused))]
    fn what_speaks_against_a_host(#[case] patch: Value, #[case] why: Option<Unfit>) {
        assert_eq!(host(patch).unfit, why);
    }

    #[test]
    fn a_host_without_namespaces_in_its_references_means_its_own() {
        let seen = host(json!({"spec": {"networkData": {"name": "nd"}}}));
        assert_eq!(seen.network_data, Some(Key::new("metal3", "nd")));
        assert_eq!(seen.credentials, Some(Key::new("metal3", "c")));
    }

    #[test]
    fn cleared_network_data_falls_back_to_that_of_preprovisioning() {
        let seen = host(json!({"spec": {"preprovisioningNetworkDataName": "pre"}}));
        assert_eq!(seen.network_data, Some(Key::new("metal3", "pre")));
    }

    #[rstest]
    #[case(json!({"spec": {"consumerRef": {"kind": "Metal3Machine", "namespace": "m", "name": "x"}}}), true)]
    #[case(json!({"status": {"provisioning": {"state": "provisioned"}}}), true)]
    #[case(json!({"spec": {"externallyProvisioned": true}}), true)]
    #[case(json!({"spec": {"image": {"url": "http://images.example.org/os.iso"}}}), true)]
    #[case(json!({"spec": {"image": {"url": ""}}}), false)]
    #[case(json!({"status": {"provisioning": {"state": "available"}}}), false)]
    fn a_host_in_use(#[case] patch: Value, #[case] used: bool) {
        assert_eq!(host(patch).in_use(), used);
    }

    #[test]
    fn an_unreadable_host_keeps_its_labels_and_counts_as_used() {
        let labels = json!({
            "sip.airshipit.org/cluster-namespace": "t", "sip.airshipit.org/cluster-name": "edge",
            "sip.airshipit.org/node-type": "Worker",
        });
        let metadata: ObjectMeta =
            serde_json::from_value(json!({"name": "n1", "namespace": "metal3", "uid": "u", "labels": labels})).unwrap();
        let seen = Host::unreadable(metadata.clone(), "spec.online: not a flag".into(), None);
        assert!(seen.in_use() && seen.is_claimed_by(&Key::new("t", "edge")));
        assert_eq!(seen.bad().map(ToString::to_string), Some("unreadable (spec.online: not a flag)".into()));
        let before = host(json!({"spec": {"consumerRef": {"kind": "M", "namespace": "m", "name": "x"}}}));
        let seen = Host::unreadable(metadata, String::new(), Some(&before));
        assert_eq!((seen.consumer, seen.bmc_address), (before.consumer, before.bmc_address));
    }

    #[test]
    fn some_claim_labels_are_torn() {
        let seen = host(json!({"metadata": {"labels": {"sip.airshipit.org/cluster-name": "edge", "rack": "r1"}}}));
        assert_eq!(seen.claim, Claim::Torn);
        assert_eq!(seen.labels.keys().collect::<Vec<_>>(), ["rack"]);
    }
}
