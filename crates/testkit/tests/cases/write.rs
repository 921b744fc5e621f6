//! Creation, replacement and patches.

use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use super::{config_map, made, refused, same_version};

fn maps(client: &Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), namespace)
}

pub async fn a_name_is_taken_once(client: Client, namespace: String) {
    let first = made(&client, &namespace, "once").await;
    assert!(first.uid().is_some() && first.resource_version().is_some() && first.creation_timestamp().is_some());
    let status = refused(maps(&client, &namespace).create(&PostParams::default(), &config_map("once", "b")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(status.message, "configmaps \"once\" already exists");
}

pub async fn nothing_is_made_in_a_namespace_that_is_not_there(client: Client, _: String) {
    let status = refused(maps(&client, "not-there").create(&PostParams::default(), &config_map("lost", "a")).await);
    assert_eq!((status.code, status.message.as_str()), (404, "namespaces \"not-there\" not found"));
}

pub async fn names_and_labels_are_checked(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let status = refused(api.create(&PostParams::default(), &config_map("Not_A_Name", "a")).await);
    assert_eq!(status.code, 422);
    let mut labelled = config_map("labelled", "a");
    labelled.labels_mut().insert("role".into(), "no spaces".into());
    let status = refused(api.create(&PostParams::default(), &labelled).await);
    assert_eq!(status.code, 422);
    assert_eq!(status.details.expect("details").causes[0].field, "metadata.labels");
}

pub async fn a_generated_name_begins_as_asked(client: Client, namespace: String) {
    let mut map = config_map("", "a");
    map.metadata.name = None;
    map.metadata.generate_name = Some("made-".into());
    let api = maps(&client, &namespace);
    let one = api.create(&PostParams::default(), &map).await.unwrap();
    let two = api.create(&PostParams::default(), &map).await.unwrap();
    assert!(one.name_any().starts_with("made-") && two.name_any().starts_with("made-"));
    assert_ne!(one.name_any(), two.name_any());
}

pub async fn a_replacement_of_an_old_version_is_refused(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let old = made(&client, &namespace, "old").await;
    let mut new = old.clone();
    new.data = config_map("old", "b").data;
    let new = api.replace("old", &PostParams::default(), &new).await.unwrap();
    assert!(!same_version(&old, &new));
    let status = refused(api.replace("old", &PostParams::default(), &old).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on configmaps \"old\": the object has been modified; please apply your changes to the latest version and try again"
    );
}

pub async fn a_replacement_without_a_version_depends_on_the_kind(client: Client, namespace: String) {
    made(&client, &namespace, "free").await;
    let replaced = maps(&client, &namespace).replace("free", &PostParams::default(), &config_map("free", "b")).await;
    assert_eq!(replaced.unwrap().data.unwrap()["key"], "b");

    let leases: Api<Lease> = Api::namespaced(client, &namespace);
    let lease: Lease = serde_json::from_value(json!({ "metadata": { "name": "bound" } })).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
    let status = refused(leases.replace("bound", &PostParams::default(), &lease).await);
    assert_eq!(status.code, 422);
    assert!(status.message.contains("metadata.resourceVersion"), "{}", status.message);
    assert!(status.message.contains("must be specified for an update"), "{}", status.message);
}

pub async fn a_replacement_of_another_uid_is_refused(client: Client, namespace: String) {
    let mut map = made(&client, &namespace, "other").await;
    map.metadata.uid = Some("11111111-2222-3333-4444-555555555555".into());
    let status = refused(maps(&client, &namespace).replace("other", &PostParams::default(), &map).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(status.message.contains("Precondition failed: UID in precondition"), "{}", status.message);
}

pub async fn a_write_that_changes_nothing_keeps_the_version(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let map = made(&client, &namespace, "still").await;
    let put = api.replace("still", &PostParams::default(), &map).await.unwrap();
    assert!(same_version(&map, &put));
    let patch = Patch::Merge(json!({ "data": { "key": "a" } }));
    let patched = api.patch("still", &PatchParams::default(), &patch).await.unwrap();
    assert!(same_version(&map, &patched));
}

pub async fn a_merge_patch_of_an_old_version_is_refused(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let old = made(&client, &namespace, "merged").await;
    let blind = Patch::Merge(json!({ "data": { "key": "b", "more": "c" } }));
    api.patch("merged", &PatchParams::default(), &blind).await.unwrap();
    let bound =
        Patch::Merge(json!({ "metadata": { "resourceVersion": old.resource_version() }, "data": { "key": null } }));
    let status = refused(api.patch("merged", &PatchParams::default(), &bound).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let removed = api.patch("merged", &PatchParams::default(), &Patch::Merge(json!({ "data": { "key": null } }))).await;
    assert_eq!(removed.unwrap().data.unwrap().into_keys().collect::<Vec<_>>(), ["more"]);
}

pub async fn a_merge_patch_of_another_uid_is_refused(client: Client, namespace: String) {
    made(&client, &namespace, "foreign").await;
    let patch =
        Patch::Merge(json!({ "metadata": { "uid": "11111111-2222-3333-4444-555555555555" }, "data": { "key": "b" } }));
    let status = refused(maps(&client, &namespace).patch("foreign", &PatchParams::default(), &patch).await);
    assert_eq!(status.code, 422);
    assert_eq!(status.details.expect("details").causes[0].field, "metadata.uid");
}

pub async fn a_json_patch_tests_and_changes(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    made(&client, &namespace, "json").await;
    let patch = |from: &str| {
        let steps = json!([
            { "op": "test", "path": "/data/key", "value": from },
            { "op": "replace", "path": "/data/key", "value": "b" },
        ]);
        Patch::Json::<()>(serde_json::from_value(steps).expect("a patch"))
    };
    let changed = api.patch("json", &PatchParams::default(), &patch("a")).await.unwrap();
    assert_eq!(changed.data.unwrap()["key"], "b");
    let status = refused(api.patch("json", &PatchParams::default(), &patch("a")).await);
    assert_eq!(status.code, 422);
}

pub async fn a_dry_run_keeps_nothing(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let made = api.create(&dry, &config_map("dry", "a")).await.unwrap();
    assert!(made.uid().is_some());
    assert!(api.get_opt("dry").await.unwrap().is_none());
}

fn deployment(name: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": "example.org/main:1" }] },
            },
        },
    }))
    .expect("a Deployment")
}

pub async fn the_generation_counts_changes_of_the_spec(client: Client, namespace: String) {
    let api: Api<Deployment> = Api::namespaced(client, &namespace);
    let first = api.create(&PostParams::default(), &deployment("counted")).await.unwrap();
    assert_eq!((first.metadata.generation, first.spec.unwrap().replicas), (Some(1), Some(1)));
    let labelled = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    let labelled = api.patch("counted", &PatchParams::default(), &labelled).await.unwrap();
    assert_eq!(labelled.metadata.generation, Some(1));
    let scaled = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let scaled = api.patch("counted", &PatchParams::default(), &scaled).await.unwrap();
    assert_eq!(scaled.metadata.generation, Some(2));
    let status = Patch::Merge(json!({ "status": { "replicas": 3 } }));
    let status = api.patch_status("counted", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(status.metadata.generation, Some(2));
}

pub async fn the_status_is_written_apart(client: Client, namespace: String) {
    let api: Api<api::SIPCluster> = Api::namespaced(client, &namespace);
    let made = api.create(&PostParams::default(), &testkit::sip(&format!("{namespace}/apart")).build()).await.unwrap();
    let mut both = made.clone();
    both.status = Some(serde_json::from_value(json!({ "conditions": [] })).unwrap());
    both.status.as_mut().expect("just set").control_plane = Some("1/1".into());
    both.labels_mut().insert("from".into(), "status".into());
    both.spec.replace = Some(api::sipcluster::Replace::WhenUnconsumed);
    let after = api.replace_status("apart", &PostParams::default(), &both).await.unwrap();
    assert_eq!(after.status.as_ref().and_then(|status| status.control_plane.as_deref()), Some("1/1"));
    assert_eq!(
        (after.spec.replace, after.metadata.generation),
        (None, Some(1)),
        "the spec is not the status's to change"
    );
    assert!(!after.labels().contains_key("from"), "nor are the labels");
    let mut main = after.clone();
    main.status = None;
    main.spec.replace = Some(api::sipcluster::Replace::WhenUnconsumed);
    let after = api.replace("apart", &PostParams::default(), &main).await.unwrap();
    assert!(after.status.is_some(), "the status is not the spec's to change");
    assert_eq!(after.metadata.generation, Some(2));
}

pub async fn the_status_is_bound_to_version_and_uid(client: Client, namespace: String) {
    let api: Api<api::SIPCluster> = Api::namespaced(client, &namespace);
    let old = api.create(&PostParams::default(), &testkit::sip(&format!("{namespace}/bound")).build()).await.unwrap();
    let touch = Patch::Merge(json!({ "metadata": { "labels": { "touched": "yes" } } }));
    let new = api.patch("bound", &PatchParams::default(), &touch).await.unwrap();
    let status = refused(api.replace_status("bound", &PostParams::default(), &old).await);
    assert_eq!(status.code, 409);
    let mut foreign = new.clone();
    foreign.metadata.uid = Some("11111111-2222-3333-4444-555555555555".into());
    let status = refused(api.replace_status("bound", &PostParams::default(), &foreign).await);
    assert_eq!(status.code, 409);
    let mut blind = new;
    blind.metadata.resource_version = None;
    let status = refused(api.replace_status("bound", &PostParams::default(), &blind).await);
    assert_eq!(status.code, 422);
}

pub async fn a_secret_takes_plain_text_and_keeps_its_type(client: Client, namespace: String) {
    let api: Api<Secret> = Api::namespaced(client, &namespace);
    let secret = json!({ "metadata": { "name": "plain" }, "stringData": { "user": "root" } });
    let made = api.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    assert_eq!(made.data.unwrap()["user"].0, b"root");
    assert_eq!((made.string_data, made.type_.as_deref()), (None, Some("Opaque")));
    let retype = Patch::Merge(json!({ "type": "kubernetes.io/tls" }));
    assert_eq!(refused(api.patch("plain", &PatchParams::default(), &retype).await).code, 422);
}

pub async fn a_missing_lease_is_made_by_a_replacement_without_uid_only(client: Client, namespace: String) {
    let api: Api<Lease> = Api::namespaced(client, &namespace);
    let mut lease: Lease = serde_json::from_value(json!({ "metadata": { "name": "absent" } })).unwrap();
    lease.metadata.uid = Some("11111111-2222-3333-4444-555555555555".into());
    lease.metadata.resource_version = Some("7".into());
    assert_eq!(refused(api.replace("absent", &PostParams::default(), &lease).await).code, 409);
    lease.metadata.uid = None;
    lease.metadata.resource_version = None;
    assert_eq!(api.replace("absent", &PostParams::default(), &lease).await.unwrap().name_any(), "absent");
}
