//! What goes by itself: owned objects, deleted namespaces.
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api as KubeApi,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::Api;

fn map(name: &str, owner: Option<&Value>) -> Value {
    let owners: Vec<Value> = owner
        .iter()
        .map(|owner| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true }))
        .collect();
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": name, "ownerReferences": owners } })
}

fn maps(api: &Api) -> KubeApi<ConfigMap> {
    KubeApi::namespaced(api.client(), "default")
}

#[tokio::test(start_paused = true)]
async fn what_is_owned_goes_with_its_owner() {
    let api = Api::new();
    let owner = api.seed(map("owner", None));
    let child = api.seed(map("child", Some(&owner)));
    api.seed(map("grandchild", Some(&child)));
    api.seed(map("free", None));
    maps(&api).delete("owner", &DeleteParams::background()).await.unwrap();
    assert_eq!(api.names("ConfigMap"), ["default/free"]);
}

#[tokio::test(start_paused = true)]
async fn in_a_foreground_deletion_the_owner_waits_for_what_it_owns() {
    let api = Api::new();
    let owner = api.seed(map("owner", None));
    let mut held = map("held", Some(&owner));
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    api.seed(held);
    api.seed(map("child", Some(&owner)));
    maps(&api).delete("owner", &DeleteParams::foreground()).await.unwrap();
    assert_eq!(api.names("ConfigMap"), ["default/held", "default/owner"]);
    let strip = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps(&api).patch("held", &PatchParams::default(), &strip).await.unwrap();
    assert_eq!(api.names("ConfigMap"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_never_was_goes_at_once() {
    let api = Api::new();
    let nobody = json!({ "metadata": { "name": "nobody", "uid": "11111111-2222-3333-4444-555555555555" } });
    api.seed(map("orphan", Some(&nobody)));
    assert_eq!(api.names("ConfigMap"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_goes_when_it_is_empty_and_takes_nothing_new() {
    let api = Api::new();
    api.seed(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "old", "name": "held", "finalizers": ["example.org/hold"] } }));
    let namespaces: KubeApi<Namespace> = KubeApi::all(api.client());
    namespaces.delete("old", &DeleteParams::default()).await.unwrap();
    let maps: KubeApi<ConfigMap> = KubeApi::namespaced(api.client(), "old");
    let late: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "late" } })).unwrap();
    let refused = maps.create(&kube::api::PostParams::default(), &late).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.is_forbidden()));
    let strip = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("held", &PatchParams::default(), &strip).await.unwrap();
    assert!(namespaces.get_opt("old").await.unwrap().is_none());
}
