//! Server-side apply.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{apply_of, config_map, made, refused, same_version};

fn maps(client: &Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), namespace)
}

fn ours() -> PatchParams {
    PatchParams::apply("ours").force()
}

fn map(name: &str, mut metadata: Value, data: Value) -> Patch<Value> {
    metadata["name"] = json!(name);
    Patch::Apply(apply_of::<ConfigMap>(json!({ "metadata": metadata, "data": data })))
}

fn keys(map: &ConfigMap) -> Vec<&str> {
    map.data.iter().flatten().map(|(key, _)| key.as_str()).collect()
}

pub async fn an_apply_makes_what_is_missing(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let made = api.patch("new", &ours(), &map("new", json!({}), json!({ "key": "a" }))).await.unwrap();
    assert_eq!((made.name_any().as_str(), keys(&made)), ("new", vec!["key"]));
    let same = api.patch("new", &ours(), &map("new", json!({}), json!({ "key": "a" }))).await.unwrap();
    assert!(same_version(&made, &same), "an apply that changes nothing keeps the version");
}

pub async fn an_apply_that_makes_needs_the_name(client: Client, namespace: String) {
    let nameless = Patch::Apply(apply_of::<ConfigMap>(json!({ "data": { "key": "a" } })));
    let status = refused(maps(&client, &namespace).patch("nameless", &ours(), &nameless).await);
    assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
    assert!(status.message.contains("name must be provided"), "{}", status.message);
}

pub async fn an_apply_with_an_impossible_version_only_makes(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let only_make = map("only", json!({ "resourceVersion": "1" }), json!({ "key": "a" }));
    let made = api.patch("only", &ours(), &only_make).await.unwrap();
    assert_eq!(keys(&made), ["key"]);
    assert_ne!(made.resource_version().as_deref(), Some("1"));
    let status = refused(api.patch("only", &ours(), &only_make).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
}

pub async fn an_apply_of_an_old_version_is_refused(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let old = made(&client, &namespace, "old").await;
    let bound = |object: &ConfigMap, value: &str| {
        map(
            "old",
            json!({ "uid": object.uid(), "resourceVersion": object.resource_version() }),
            json!({ "key": value }),
        )
    };
    let new = api.patch("old", &ours(), &bound(&old, "b")).await.unwrap();
    assert!(!same_version(&old, &new));
    let status = refused(api.patch("old", &ours(), &bound(&old, "c")).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(status.message.contains("the object has been modified"), "{}", status.message);
}

pub async fn an_apply_with_the_uid_of_an_object_that_is_gone_makes_nothing(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let gone = map("gone", json!({ "uid": "11111111-2222-3333-4444-555555555555", "resourceVersion": "7" }), json!({}));
    let status = refused(api.patch("gone", &ours(), &gone).await);
    assert_eq!(status.code, 409);
    assert!(status.message.contains("no existing object was found"), "{}", status.message);
    assert!(api.get_opt("gone").await.unwrap().is_none());
}

pub async fn fields_left_out_go_and_those_of_others_stay(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let full = map("shared", json!({ "labels": { "a": "1", "b": "2" } }), json!({ "key": "a", "more": "b" }));
    api.patch("shared", &ours(), &full).await.unwrap();
    let theirs = Patch::Merge(json!({ "metadata": { "labels": { "theirs": "x" } }, "data": { "foreign": "y" } }));
    api.patch("shared", &PatchParams::default(), &theirs).await.unwrap();
    let less = map("shared", json!({ "labels": { "a": "1" } }), json!({ "key": "a" }));
    let left = api.patch("shared", &ours(), &less).await.unwrap();
    assert_eq!(left.labels().keys().collect::<Vec<_>>(), ["a", "theirs"]);
    assert_eq!(keys(&left), ["foreign", "key"]);
}

fn deployment(env: Value, image: &str) -> Patch<Value> {
    Patch::Apply(apply_of::<Deployment>(json!({
        "metadata": { "name": "listed" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": "listed" } },
            "template": {
                "metadata": { "labels": { "app": "listed" } },
                "spec": { "containers": [{ "name": "main", "image": image, "env": env }] },
            },
        },
    })))
}

pub async fn elements_of_keyed_lists_are_owned_one_by_one(client: Client, namespace: String) {
    let api: Api<Deployment> = Api::namespaced(client, &namespace);
    let two = json!([{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }]);
    api.patch("listed", &ours(), &deployment(two, "example.org/main:1")).await.unwrap();
    let sidecar = Patch::Strategic(json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "side", "image": "example.org/side:1" },
        { "name": "main", "env": [{ "name": "THEIRS", "value": "3" }] },
    ] } } } }));
    api.patch("listed", &PatchParams::default(), &sidecar).await.unwrap();
    let one = json!([{ "name": "A", "value": "1" }]);
    let left = api.patch("listed", &ours(), &deployment(one, "example.org/main:2")).await.unwrap();
    let mut containers = left.spec.unwrap().template.spec.unwrap().containers;
    containers.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(containers.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["main", "side"]);
    assert_eq!(containers[0].image.as_deref(), Some("example.org/main:2"));
    let mut env: Vec<_> = containers[0].env.iter().flatten().map(|env| env.name.as_str()).collect();
    env.sort_unstable();
    assert_eq!(env, ["A", "THEIRS"]);
}

pub async fn fields_of_others_need_force(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    api.patch("fought", &ours(), &map("fought", json!({}), json!({ "key": "a" }))).await.unwrap();
    let theirs = map("fought", json!({}), json!({ "key": "b" }));
    let status = refused(api.patch("fought", &PatchParams::apply("theirs"), &theirs).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let causes = status.details.expect("details").causes;
    assert_eq!((causes[0].reason.as_str(), causes[0].field.as_str()), ("FieldManagerConflict", ".data.key"));
    let forced = api.patch("fought", &PatchParams::apply("theirs").force(), &theirs).await.unwrap();
    assert_eq!(forced.data.unwrap()["key"], "b");
    let left = api.patch("fought", &ours(), &map("fought", json!({}), json!({ "other": "c" }))).await.unwrap();
    assert_eq!(keys(&left), ["key", "other"], "what was taken from us does not go with us");
}

/// Why [`io-kube`] does not create by POST: fields of a POST belong to the manager as *updater*.
pub async fn fields_made_by_a_post_do_not_go(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    let by_post = PostParams { field_manager: Some("ours".into()), ..PostParams::default() };
    api.create(&by_post, &config_map("posted", "a")).await.unwrap();
    let left = api.patch("posted", &ours(), &map("posted", json!({}), json!({ "other": "c" }))).await.unwrap();
    assert_eq!(keys(&left), ["key", "other"]);
}

pub async fn the_status_is_applied_apart(client: Client, namespace: String) {
    let api: Api<api::SIPCluster> = Api::namespaced(client, &namespace);
    let made =
        api.create(&PostParams::default(), &testkit::sip(&format!("{namespace}/applied")).build()).await.unwrap();
    let version = json!({ "uid": made.uid(), "resourceVersion": made.resource_version() });
    let status = |metadata: Value| {
        Patch::Apply(apply_of::<api::SIPCluster>(json!({ "metadata": metadata, "status": { "controlPlane": "1/3" } })))
    };
    let after = api.patch_status("applied", &ours(), &status(version.clone())).await.unwrap();
    assert_eq!(after.status.unwrap().control_plane.as_deref(), Some("1/3"));
    let late = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    api.patch("applied", &PatchParams::default(), &late).await.unwrap();
    assert_eq!(refused(api.patch_status("applied", &ours(), &status(version)).await).code, 409);
}

pub async fn lists_of_our_kinds_are_keyed_as_their_schema_says(client: Client, namespace: String) {
    let api: Api<api::SIPCluster> = Api::namespaced(client, &namespace);
    api.create(&PostParams::default(), &testkit::sip(&format!("{namespace}/keyed")).build()).await.unwrap();
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let says = |kind: &str| {
        Patch::Apply(apply_of::<api::SIPCluster>(json!({ "status": { "conditions": [condition(kind)] } })))
    };
    api.patch_status("keyed", &PatchParams::apply("one").force(), &says("Ready")).await.unwrap();
    let both = api.patch_status("keyed", &PatchParams::apply("two").force(), &says("Other")).await.unwrap();
    let kinds: Vec<_> = both.status.unwrap().conditions.into_iter().map(|condition| condition.type_).collect();
    assert_eq!(kinds, ["Ready", "Other"]);
}
