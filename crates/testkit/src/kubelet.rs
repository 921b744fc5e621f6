//! A stand-in for what makes Deployments run: their pods appear, become ready and are counted.
//!
//! It works through a client only, so it also runs against a real API server that has no controllers.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

type Dress = Arc<dyn Fn(&Deployment, &mut Value) + Send + Sync>;

/// The stand-in.
#[derive(Clone)]
pub struct Kubelet {
    client: Client,
    namespace: Option<String>,
    ready: bool,
    dress: Dress,
}

impl Kubelet {
    /// Pods become ready at once.
    pub fn new(client: Client) -> Self {
        Kubelet { client, namespace: None, ready: true, dress: Arc::new(|_, _| {}) }
    }

    /// Only in one namespace.
    #[must_use]
    pub fn only_in(self, namespace: &str) -> Self {
        Kubelet { namespace: Some(namespace.into()), ..self }
    }

    /// Pods run, but do not become ready.
    #[must_use]
    pub fn never_ready(self) -> Self {
        Kubelet { ready: false, ..self }
    }

    /// What each pod is given when it is made, such as an annotation by which it reports.
    #[must_use]
    pub fn dressed(self, dress: impl Fn(&Deployment, &mut Value) + Send + Sync + 'static) -> Self {
        Kubelet { dress: Arc::new(dress), ..self }
    }

    /// Looks at all Deployments again and again.
    pub fn spawn(self, pause: Duration) -> JoinHandle<()> {
        tokio::spawn(async move {
            loop {
                // What failed is tried again next time.
                let _ = self.turn().await;
                tokio::time::sleep(pause).await;
            }
        })
    }

    /// Looks at all Deployments once.
    pub async fn turn(&self) -> kube::Result<()> {
        let deployments: Api<Deployment> = self.watched();
        for deployment in deployments.list(&ListParams::default()).await?.items {
            if deployment.metadata.deletion_timestamp.is_none() {
                self.run(&deployment).await?;
            }
        }
        self.clear().await
    }

    fn watched<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    async fn run(&self, deployment: &Deployment) -> kube::Result<()> {
        let namespace = deployment.namespace().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let ours = ListParams::default().labels(&format!("{OWNER}={}", deployment.name_any()));
        let have = pods.list(&ours).await?.items;
        let revision = revision(deployment);
        let (current, old): (Vec<Pod>, Vec<Pod>) =
            have.into_iter().partition(|pod| pod.annotations().get(REVISION) == Some(&revision));
        for pod in old {
            pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
        }
        let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let wanted = usize::try_from(wanted).unwrap_or(0);
        for pod in current.iter().skip(wanted) {
            pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
        }
        for _ in current.len()..wanted {
            let pod = self.pod(deployment, &revision);
            let made = pods.create(&PostParams::default(), &serde_json::from_value(pod).expect("a pod")).await?;
            let status = Patch::Merge(json!({ "status": self.pod_status() }));
            pods.patch_status(&made.name_any(), &PatchParams::default(), &status).await?;
        }
        self.report(deployment, wanted).await
    }

    /// Pods whose Deployment is gone go.
    async fn clear(&self) -> kube::Result<()> {
        let pods: Api<Pod> = self.watched();
        for pod in pods.list(&ListParams::default().labels(OWNER)).await?.items {
            let namespace = pod.namespace().unwrap_or_default();
            let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &namespace);
            if deployments.get_opt(&pod.labels()[OWNER]).await?.is_none() {
                let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
                pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }

    fn pod(&self, deployment: &Deployment, revision: &str) -> Value {
        let template = deployment.spec.as_ref().map(|spec| &spec.template);
        let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {} });
        if let Some(template) = template.and_then(|template| serde_json::to_value(template).ok()) {
            pod["metadata"] = template["metadata"].clone();
            pod["spec"] = template["spec"].clone();
        }
        pod["metadata"]["generateName"] = json!(format!("{}-", deployment.name_any()));
        pod["metadata"]["namespace"] = json!(deployment.namespace());
        pod["metadata"]["labels"][OWNER] = json!(deployment.name_any());
        pod["metadata"]["annotations"][REVISION] = json!(revision);
        (self.dress)(deployment, &mut pod);
        pod
    }

    fn pod_status(&self) -> Value {
        let ready = if self.ready { "True" } else { "False" };
        // Of the range for documentation (RFC 5737): nothing answers there, a test says itself what a pod reports.
        json!({ "phase": "Running", "podIP": "192.0.2.9", "conditions": [{ "type": "Ready", "status": ready }] })
    }

    async fn report(&self, deployment: &Deployment, replicas: usize) -> kube::Result<()> {
        let ready = if self.ready { replicas } else { 0 };
        let available = if ready == replicas { "True" } else { "False" };
        let status = json!({
            "observedGeneration": deployment.metadata.generation,
            "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
            "conditions": [{ "type": "Available", "status": available, "reason": "MinimumReplicasAvailable" }],
        });
        let have = serde_json::to_value(&deployment.status).unwrap_or_default();
        let same = ["observedGeneration", "replicas", "availableReplicas"].iter().all(|field| {
            // A count of zero is not written out.
            have[*field].as_i64().unwrap_or(0) == status[*field].as_i64().unwrap_or(0)
        });
        if same && !have.is_null() {
            return Ok(());
        }
        let namespace = deployment.namespace().unwrap_or_default();
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &namespace);
        let patch = Patch::Merge(json!({ "status": status }));
        deployments.patch_status(&deployment.name_any(), &PatchParams::default(), &patch).await.map(|_| ())
    }
}

/// Label of a pod: the Deployment it belongs to.
const OWNER: &str = "testkit.example.org/deployment";
/// Annotation of a pod: the template it was made of.
const REVISION: &str = "testkit.example.org/revision";

/// A name for the pod template as it is now.
fn revision(deployment: &Deployment) -> String {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let template = deployment.spec.as_ref().map(|spec| &spec.template);
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(&template).unwrap_or_default().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
