//! Deployments, and who makes them run.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use testkit::Kubelet;

use super::refused;

fn deployment(name: &str, label: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": label } },
                "spec": { "containers": [{ "name": "main", "image": "example.org/main:1" }] },
            },
        },
    }))
    .expect("a Deployment")
}

pub async fn a_selector_must_match_and_stay(client: Client, namespace: String) {
    let api: Api<Deployment> = Api::namespaced(client, &namespace);
    let status = refused(api.create(&PostParams::default(), &deployment("one", "other")).await);
    assert_eq!(status.code, 422);
    assert_eq!(status.details.expect("details").causes[0].field, "spec.template.metadata.labels");
    api.create(&PostParams::default(), &deployment("one", "one")).await.unwrap();
    let labels = json!({ "app": "two" });
    let spec = json!({ "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels } } });
    let patch = Patch::Merge(json!({ "spec": spec }));
    let status = refused(api.patch("one", &PatchParams::default(), &patch).await);
    assert_eq!((status.code, status.details.expect("details").causes[0].field.as_str()), (422, "spec.selector"));
}

pub async fn the_kubelets_stand_in_makes_a_deployment_available(client: Client, namespace: String) {
    let api: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    api.create(&PostParams::default(), &deployment("runs", "runs")).await.unwrap();
    let kubelet = Kubelet::new(client.clone()).only_in(&namespace);
    kubelet.turn().await.unwrap();
    let status = api.get("runs").await.unwrap().status.unwrap();
    assert_eq!((status.available_replicas, status.observed_generation), (Some(2), Some(1)));
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let pods = pods.list(&ListParams::default().labels("app=runs")).await.unwrap().items;
    let ready = |pod: &Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    assert_eq!((pods.len(), pods.iter().all(ready)), (2, true));
}
