//! Lists and watches.

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::json;

use super::{config_map, made, refused};

fn maps(client: &Client, namespace: &str) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), namespace)
}

async fn labelled(client: &Client, namespace: &str, name: &str, role: &str) {
    let mut map = config_map(name, "a");
    map.labels_mut().insert("role".into(), role.into());
    maps(client, namespace).create(&PostParams::default(), &map).await.expect("it is made");
}

/// The next events of a watch, as text; bookmarks left out.
async fn told(api: &Api<ConfigMap>, params: &WatchParams, version: &str, events: usize) -> Vec<String> {
    let stream = api.watch(params, version).await.expect("a watch");
    let stream = stream.try_filter_map(async |event| {
        Ok(match event {
            WatchEvent::Added(map) => Some(format!("+{}", map.name_any())),
            WatchEvent::Modified(map) => Some(format!("~{}", map.name_any())),
            WatchEvent::Deleted(map) => Some(format!("-{}", map.name_any())),
            WatchEvent::Bookmark(_) => None,
            WatchEvent::Error(status) => panic!("the watch broke: {status:?}"),
        })
    });
    let told: Vec<_> = Box::pin(stream).take(events).try_collect().await.expect("events");
    // The namespace's own ConfigMap of a real server is not ours.
    told.into_iter().filter(|event| !event.ends_with("kube-root-ca.crt")).collect()
}

pub async fn a_list_comes_in_pages_of_one_version(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    for n in 0..5 {
        labelled(&client, &namespace, &format!("page{n}"), "paged").await;
    }
    let first = api.list(&ListParams::default().labels("role=paged").limit(2)).await.unwrap();
    labelled(&client, &namespace, "late", "paged").await;
    let mut names: Vec<String> = first.items.iter().map(ResourceExt::name_any).collect();
    let mut token = first.metadata.continue_.clone();
    while let Some(next) = token.filter(|token| !token.is_empty()) {
        let page = api.list(&ListParams::default().labels("role=paged").limit(2).continue_token(&next)).await.unwrap();
        assert_eq!(page.metadata.resource_version, first.metadata.resource_version);
        names.extend(page.items.iter().map(ResourceExt::name_any));
        token = page.metadata.continue_;
    }
    assert_eq!(names, ["page0", "page1", "page2", "page3", "page4"]);
}

pub async fn selectors_narrow_a_list(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    for (name, role) in [("one", "a"), ("two", "b"), ("three", "c")] {
        labelled(&client, &namespace, name, role).await;
    }
    let names = async |selector: &str| -> Vec<String> {
        let found = api.list(&ListParams::default().labels(selector)).await.unwrap();
        found.items.iter().map(ResourceExt::name_any).collect()
    };
    assert_eq!(names("role=a").await, ["one"]);
    assert_eq!(names("role,role!=a").await, ["three", "two"]);
    assert_eq!(names("role in (a, b)").await, ["one", "two"]);
    assert_eq!(names("role,role notin (a,b)").await, ["three"]);
    assert_eq!(names("role,!role").await, Vec::<String>::new());
    let by_name = api.list(&ListParams::default().fields("metadata.name=two")).await.unwrap();
    assert_eq!(by_name.items.len(), 1);
    assert_eq!(refused(api.list(&ListParams::default().labels("role in a")).await).code, 400);
}

pub async fn a_watch_begins_where_a_list_ended(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    made(&client, &namespace, "before").await;
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    made(&client, &namespace, "after").await;
    let patch = Patch::Merge(json!({ "data": { "key": "b" } }));
    api.patch("before", &PatchParams::default(), &patch).await.unwrap();
    api.delete("after", &DeleteParams::default()).await.unwrap();
    let told = told(&api, &WatchParams::default().fields("metadata.name!=kube-root-ca.crt"), &version, 3).await;
    assert_eq!(told, ["+after", "~before", "-after"]);
}

pub async fn a_watch_tells_what_enters_and_leaves_its_selection(client: Client, namespace: String) {
    let api = maps(&client, &namespace);
    labelled(&client, &namespace, "changing", "out").await;
    let version = api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    for role in ["in", "in", "out"] {
        let patch =
            Patch::Merge(json!({ "metadata": { "labels": { "role": role, "n": role } }, "data": { "key": role } }));
        api.patch("changing", &PatchParams::default(), &patch).await.unwrap();
        let patch = Patch::Merge(json!({ "data": { "again": role } }));
        api.patch("changing", &PatchParams::default(), &patch).await.unwrap();
    }
    let told = told(&api, &WatchParams::default().labels("role=in"), &version, 3).await;
    assert_eq!(told, ["+changing", "~changing", "-changing"]);
}

pub async fn a_watch_without_version_begins_with_what_is_there(client: Client, namespace: String) {
    labelled(&client, &namespace, "there", "seen").await;
    let api = maps(&client, &namespace);
    assert_eq!(told(&api, &WatchParams::default().labels("role=seen"), "0", 1).await, ["+there"]);
}

pub async fn metadata_can_be_had_alone(client: Client, namespace: String) {
    labelled(&client, &namespace, "thin", "thin").await;
    let api = maps(&client, &namespace);
    let list = api.list_metadata(&ListParams::default().labels("role=thin")).await.unwrap();
    assert_eq!(list.items[0].name_any(), "thin");
    assert_eq!(api.get_metadata("thin").await.unwrap().labels()["role"], "thin");
}

pub async fn a_version_from_the_future_is_refused(client: Client, namespace: String) {
    made(&client, &namespace, "now").await;
    let status = refused(maps(&client, &namespace).get_with("now", &GetParams::at("999999999999")).await);
    assert_eq!((status.code, status.reason.as_str()), (504, "Timeout"));
}
