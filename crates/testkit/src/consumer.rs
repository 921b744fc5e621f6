//! Who uses hosts: Metal3's Cluster API provider and its baremetal-operator, as far as we meet them.

use api_foreign::BareMetalHost;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

/// A consumer of hosts that writes as Metal3's provider does: blindly, without a resourceVersion.
#[derive(Clone)]
pub struct Consumer {
    client: Client,
    kind: String,
    namespace: String,
    name: String,
}

impl Consumer {
    /// A Metal3Machine of this name.
    pub fn new(client: Client, namespace: &str, name: &str) -> Self {
        Consumer { client, kind: "Metal3Machine".into(), namespace: namespace.into(), name: name.into() }
    }

    /// Takes a host: sets its consumerRef, whoever had it before.
    pub async fn consume(&self, namespace: &str, host: &str) -> kube::Result<BareMetalHost> {
        let reference = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": self.kind,
            "namespace": self.namespace, "name": self.name,
        });
        self.patch(namespace, host, json!({ "spec": { "consumerRef": reference } })).await
    }

    /// Gives a host back.
    pub async fn release(&self, namespace: &str, host: &str) -> kube::Result<BareMetalHost> {
        self.patch(namespace, host, json!({ "spec": { "consumerRef": null, "image": null } })).await
    }

    /// Takes a host and has an image on it, as after provisioning; its networkData is the consumer's then.
    pub async fn provision(&self, namespace: &str, host: &str) -> kube::Result<BareMetalHost> {
        self.consume(namespace, host).await?;
        let image = json!({ "url": "http://images.example.org/os.iso" });
        let spec = json!({ "spec": { "image": image, "networkData": { "namespace": self.namespace, "name": format!("{}-networkdata", self.name) } } });
        self.patch(namespace, host, spec).await?;
        self.patch_status(
            namespace,
            host,
            json!({ "status": { "provisioning": { "state": "provisioned", "image": image } } }),
        )
        .await
    }

    /// Gives a host back and cleans it, as after deprovisioning.
    pub async fn deprovision(&self, namespace: &str, host: &str) -> kube::Result<BareMetalHost> {
        self.patch(namespace, host, json!({ "spec": { "consumerRef": null, "image": null, "networkData": null } }))
            .await?;
        let state = json!({ "status": { "provisioning": { "state": "available", "image": { "url": "" } } } });
        self.patch_status(namespace, host, state).await
    }

    async fn patch(&self, namespace: &str, host: &str, patch: Value) -> kube::Result<BareMetalHost> {
        let api: Api<BareMetalHost> = Api::namespaced(self.client.clone(), namespace);
        api.patch(host, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    async fn patch_status(&self, namespace: &str, host: &str, patch: Value) -> kube::Result<BareMetalHost> {
        let api: Api<BareMetalHost> = Api::namespaced(self.client.clone(), namespace);
        api.patch_status(host, &PatchParams::default(), &Patch::Merge(patch)).await
    }
}
