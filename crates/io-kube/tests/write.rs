//! Writes name what they were decided on, are sent once, and say what came of them.
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use api_foreign::BareMetalHost;
use io_kube::{Cause, Deletion, Error, Metrics, Version, Writer, read};
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use testkit::{Api, Fleet, Match, Refusal, Verb, sip};

fn map(data: &Value) -> Value {
    json!({ "metadata": { "namespace": "default", "name": "a", "labels": { "app": "a" } }, "data": data })
}

fn maps() -> ApiResource {
    ApiResource::erase::<ConfigMap>(&())
}

fn version(object: &DynamicObject) -> Version {
    Version::of(&object.metadata).expect("it was read")
}

fn keys(api: &Api) -> Vec<String> {
    let map = api.get("ConfigMap", "default/a").expect("it is there");
    map["data"].as_object().expect("data").keys().cloned().collect()
}

/// The cause of a write that was to fail.
fn cause<T: std::fmt::Debug>(result: Result<T, Error>) -> Cause {
    result.expect_err("it was to fail").cause
}

#[tokio::test(start_paused = true)]
async fn a_creation_makes_and_never_overwrites() {
    let api = Api::new();
    let writer = Writer::new(api.client());
    writer.create(&maps(), map(&json!({ "key": "1" }))).await.unwrap();
    assert_eq!(cause(writer.create(&maps(), map(&json!({ "key": "2" }))).await), Cause::AlreadyExists);
    assert_eq!(api.get("ConfigMap", "default/a").unwrap()["data"]["key"], "1");
}

#[tokio::test(start_paused = true)]
async fn a_field_that_was_created_and_is_left_out_later_goes() {
    let api = Api::new();
    let writer = Writer::new(api.client());
    let made = writer.create(&maps(), map(&json!({ "key": "1", "more": "2" }))).await.unwrap();
    writer.update_ssa(&maps(), map(&json!({ "key": "1" })), &version(&made)).await.unwrap();
    assert_eq!(keys(&api), ["key"]);
}

#[tokio::test(start_paused = true)]
async fn every_write_names_what_it_was_decided_on() {
    let api = Api::new();
    let writer = Writer::new(api.client());
    let made = writer.create(&maps(), map(&json!({}))).await.unwrap();
    let updated = writer.update_ssa(&maps(), map(&json!({ "a": "1" })), &version(&made)).await.unwrap();
    let patch = json!({ "data": { "b": "2" } });
    let patched = writer.patch_merge(&maps(), Some("default"), "a", patch, &version(&updated)).await.unwrap();
    let gone = writer.delete(&maps(), Some("default"), "a", &version(&patched)).await.unwrap();
    assert_eq!(gone, Deletion::Gone);
    for entry in api.log() {
        let at = if entry.verb == Verb::Delete { &entry.body["preconditions"] } else { &entry.body["metadata"] };
        assert!(at["resourceVersion"].is_string(), "{entry}");
        assert_eq!(at["uid"].is_string(), entry.number > 0, "only a creation has no uid: {entry}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_decided_on_an_old_state_changes_nothing() {
    let api = Api::new();
    let writer = Writer::new(api.client());
    let old = version(&writer.create(&maps(), map(&json!({ "key": "1" }))).await.unwrap());
    api.edit("ConfigMap", "default/a", |map| map["data"]["key"] = json!("theirs"));
    let mark = api.mark();
    let patch = json!({ "data": { "key": "2" } });
    let conflict = |cause: Cause| assert!(matches!(cause, Cause::Conflict(_)), "{cause:?}");
    conflict(cause(writer.update_ssa(&maps(), map(&json!({ "key": "2" })), &old).await));
    conflict(cause(writer.patch_merge(&maps(), Some("default"), "a", patch, &old).await));
    conflict(cause(writer.delete(&maps(), Some("default"), "a", &old).await));
    assert_eq!(api.writes_since(mark), []);
}

#[tokio::test(start_paused = true)]
async fn a_write_to_an_object_made_anew_under_the_same_name_changes_nothing() {
    let api = Api::new();
    let writer = Writer::new(api.client());
    let old = version(&writer.create(&maps(), map(&json!({}))).await.unwrap());
    api.remove("ConfigMap", "default/a");
    assert_eq!(cause(writer.update_ssa(&maps(), map(&json!({ "key": "2" })), &old).await), Cause::Gone);
    assert_eq!(api.names("ConfigMap"), Vec::<String>::new());
    let new = writer.create(&maps(), map(&json!({}))).await.unwrap();
    let mixed = Version { uid: old.uid, ..version(&new) };
    let patch = json!({ "data": { "key": "2" } });
    let conflict = |cause: Cause| assert!(matches!(cause, Cause::Conflict(_)), "{cause:?}");
    conflict(cause(writer.patch_merge(&maps(), Some("default"), "a", patch, &mixed).await));
    conflict(cause(writer.update_ssa(&maps(), map(&json!({ "key": "2" })), &mixed).await));
    conflict(cause(writer.delete(&maps(), Some("default"), "a", &mixed).await));
}

#[tokio::test(start_paused = true)]
async fn a_status_is_replaced_and_nothing_else() {
    let api = Api::new();
    api.seed(sip("tenants/one").control_plane(3).object());
    let writer = Writer::new(api.client());
    let seen: api::SIPCluster = read::get_as(&api.client(), Some("tenants"), "one").await.unwrap().unwrap();
    let status = api::SIPClusterStatus { control_plane: Some("0/3".into()), ..Default::default() };
    let after = writer.put_status_as(&seen, &status).await.unwrap();
    assert_eq!(after.status.unwrap().control_plane.as_deref(), Some("0/3"));
    assert_eq!(after.spec, seen.spec);
    assert!(matches!(cause(writer.put_status_as(&seen, &status).await), Cause::Conflict(_)));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_makes_a_deletion_pending() {
    let api = Api::new();
    api.seed_all(Fleet::of(1).objects());
    api.edit("BareMetalHost", "default/node00", |host| host["metadata"]["finalizers"] = json!(["metal3.io/host"]));
    let host: BareMetalHost = api.get_as("BareMetalHost", "default/node00").unwrap();
    let writer = Writer::new(api.client());
    assert_eq!(writer.delete_as(&host).await.unwrap(), Deletion::Pending);
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_taken_is_invalid_and_named() {
    let api = Api::new();
    let service = |name: &str| -> Service {
        let spec = json!({ "type": "NodePort", "ports": [{ "port": 6443, "nodePort": 30_001 }] });
        serde_json::from_value(json!({ "metadata": { "namespace": "default", "name": name }, "spec": spec })).unwrap()
    };
    let writer = Writer::new(api.client());
    writer.create_as(&service("one")).await.unwrap();
    let error = writer.create_as(&service("two")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot create Service default/two: Service \"two\" is invalid: spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated"
    );
    assert_eq!((error.reason(), error.retry()), ("Invalid", io_kube::Retry::OnChange));
}

#[tokio::test(start_paused = true)]
async fn a_failed_write_is_sent_once() {
    for refusal in [Refusal::Unavailable, Refusal::Internal, Refusal::TooMany, Refusal::Timeout] {
        let api = Api::new();
        api.faults().when(Match::writes()).always().refuse(refusal);
        let error = Writer::new(api.client()).create(&maps(), map(&json!({}))).await.unwrap_err();
        assert_eq!(error.reason(), "Unavailable");
        assert_eq!(api.log().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_without_answer_counts_as_lost_after_its_deadline() {
    let api = Api::new();
    api.faults().when(Match::writes()).hang_after();
    let writer = Writer::new(api.client()).deadline(Duration::from_secs(7));
    let began = tokio::time::Instant::now();
    let error = writer.create(&maps(), map(&json!({}))).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot create ConfigMap default/a: the API server is unavailable: no answer within 7 s"
    );
    assert_eq!(began.elapsed(), Duration::from_secs(7));
    assert_eq!(api.names("ConfigMap"), ["default/a"], "it took effect all the same");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_judged_and_not_kept() {
    let api = Api::new();
    let writer = Writer::new(api.client());
    writer.dry_run().create(&maps(), map(&json!({}))).await.unwrap();
    assert_eq!(api.names("ConfigMap"), Vec::<String>::new());
    api.faults().when(Match::writes()).refuse(Refusal::Forbidden("denied by policy".into()));
    let denied = cause(writer.dry_run().create(&maps(), map(&json!({}))).await);
    assert_eq!(denied, Cause::Forbidden("denied by policy".into()));
}

#[tokio::test(start_paused = true)]
async fn writes_and_conflicts_are_counted() {
    let api = Api::new();
    let metrics = Metrics::new();
    let writer = Writer::new(api.client()).counted(metrics.clone());
    writer.create(&maps(), map(&json!({}))).await.unwrap();
    writer.create(&maps(), map(&json!({}))).await.unwrap_err();
    let text = metrics.text();
    for line in [
        "slipway_writes_total{kind=\"ConfigMap\",verb=\"create\",outcome=\"ok\"} 1",
        "slipway_writes_total{kind=\"ConfigMap\",verb=\"create\",outcome=\"AlreadyExists\"} 1",
        "slipway_conflicts_total{kind=\"ConfigMap\"} 1",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_page_by_page_with_types_and_without_managed_fields() {
    let api = Api::new();
    for n in 0..1203 {
        api.seed(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": format!("map{n:04}") } }));
    }
    Writer::new(api.client()).create(&maps(), map(&json!({}))).await.unwrap();
    let mark = api.mark();
    let found = read::list(&api.client(), &maps(), Some("default"), "").await.unwrap();
    assert_eq!((found.len(), api.mark() - mark), (1204, 3));
    assert!(found.iter().all(|map| map.metadata.managed_fields.is_none()));
    assert!(found.iter().all(|map| map.types.as_ref().is_some_and(|types| types.kind == "ConfigMap")));
}
