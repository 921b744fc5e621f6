//! Deletion: preconditions, finalizers, propagation.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

use super::{config_map, made, refused};

fn maps(client: &Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), namespace)
}

async fn held(client: &Client, namespace: &str, name: &str) -> ConfigMap {
    let mut map = config_map(name, "a");
    map.metadata.finalizers = Some(vec!["example.org/hold".into()]);
    maps(client, namespace).create(&PostParams::default(), &map).await.expect("it is made")
}

pub async fn a_deletion_is_bound_to_version_and_uid(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let old = made(&client, &namespace, "bound").await;
    let patch = Patch::Merge(json!({ "data": { "key": "b" } }));
    let new = api.patch("bound", &PatchParams::default(), &patch).await.unwrap();
    let if_it_is = |uid: Option<String>, resource_version: Option<String>| {
        DeleteParams::background().preconditions(Preconditions { uid, resource_version })
    };
    let foreign = Some("11111111-2222-3333-4444-555555555555".into());
    let status = refused(api.delete("bound", &if_it_is(foreign, None)).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let status = refused(api.delete("bound", &if_it_is(old.uid(), old.resource_version())).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let gone = api.delete("bound", &if_it_is(new.uid(), new.resource_version())).await.unwrap();
    assert!(gone.is_right(), "what nothing holds is gone at once");
    assert_eq!(refused(api.get("bound").await).code, 404);
    let status = refused(api.delete("bound", &DeleteParams::default()).await);
    assert_eq!((status.code, status.message.as_str()), (404, "configmaps \"bound\" not found"));
}

pub async fn finalizers_hold_an_object(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let before = held(&client, &namespace, "held").await;
    let marked = api.delete("held", &DeleteParams::default()).await.unwrap().left().expect("the object");
    assert!(marked.metadata.deletion_timestamp.is_some());
    assert_ne!(before.resource_version(), marked.resource_version());
    let again = api.delete("held", &DeleteParams::default()).await.unwrap().left().expect("the object");
    assert_eq!(again.resource_version(), marked.resource_version());
}

pub async fn the_last_finalizer_lets_it_go(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    held(&client, &namespace, "let-go").await;
    api.delete("let-go", &DeleteParams::default()).await.unwrap();
    let strip = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    api.patch("let-go", &PatchParams::default(), &strip).await.unwrap();
    assert!(api.get_opt("let-go").await.unwrap().is_none());
}

pub async fn no_finalizer_is_added_to_what_is_deleted(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    held(&client, &namespace, "late").await;
    api.delete("late", &DeleteParams::default()).await.unwrap();
    let more = Patch::Merge(json!({ "metadata": { "finalizers": ["example.org/hold", "example.org/more"] } }));
    let status = refused(api.patch("late", &PatchParams::default(), &more).await);
    assert_eq!(status.code, 422);
    assert!(
        status.message.contains("no new finalizers can be added if the object is being deleted"),
        "{}",
        status.message
    );
}

pub async fn a_name_is_taken_until_its_object_is_gone(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    held(&client, &namespace, "lingers").await;
    api.delete("lingers", &DeleteParams::default()).await.unwrap();
    let status = refused(api.create(&PostParams::default(), &config_map("lingers", "b")).await);
    assert_eq!(status.reason, "AlreadyExists");
    assert_eq!(status.message, "object is being deleted: configmaps \"lingers\" already exists");
}

pub async fn a_foreground_deletion_leaves_its_finalizer(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let owner = held(&client, &namespace, "owner").await;
    api.delete("owner", &DeleteParams::foreground()).await.unwrap();
    let marked = api.get("owner").await.unwrap();
    assert_eq!(marked.uid(), owner.uid());
    assert!(marked.finalizers().contains(&"example.org/hold".to_owned()));
}
