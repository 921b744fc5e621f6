//! What can be made to go wrong, and that it goes wrong exactly so.
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api as KubeApi, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    runtime::watcher,
};
use serde_json::{Value, json};
use testkit::{Api, Effect, Match, Refusal, Verb};
use tokio::time::timeout;

fn maps(client: Client) -> KubeApi<ConfigMap> {
    KubeApi::namespaced(client, "default")
}

fn object(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": name }, "data": {} })
}

async fn set(api: &KubeApi<ConfigMap>, name: &str, value: &str) -> kube::Result<ConfigMap> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(json!({ "data": { "key": value } }))).await
}

fn value(api: &Api, name: &str) -> Value {
    api.get("ConfigMap", &format!("default/{name}")).expect("it is there")["data"]["key"].clone()
}

/// So long nobody waits.
const LONG: Duration = Duration::from_hours(1);

#[tokio::test(start_paused = true)]
async fn the_second_write_is_refused_and_the_others_are_not() {
    let api = Api::new();
    api.seed(object("a"));
    let rule = api.faults().when(Match::writes().kind("ConfigMap")).nth(2).refuse(Refusal::Conflict);
    let maps = maps(api.client());
    set(&maps, "a", "1").await.unwrap();
    let refused = set(&maps, "a", "2").await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.is_conflict()));
    assert_eq!((value(&api, "a"), rule.fired()), (json!("1"), 1));
    set(&maps, "a", "3").await.unwrap();
    assert_eq!(value(&api, "a"), "3");
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_hides_a_write_that_took_effect() {
    let api = Api::new();
    api.seed(object("a"));
    api.faults().when(Match::writes().object("default/a")).lose_answer();
    assert!(matches!(set(&maps(api.client()), "a", "1").await, Err(kube::Error::Service(_))));
    assert_eq!(value(&api, "a"), "1");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hangs_is_never_carried_out() {
    let api = Api::new();
    api.seed(object("a"));
    api.faults().when(Match::writes()).hang();
    assert!(timeout(LONG, set(&maps(api.client()), "a", "1")).await.is_err());
    assert_eq!(value(&api, "a"), Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_write_arrives_though_its_sender_gave_up() {
    let api = Api::new();
    api.seed(object("a"));
    api.faults().when(Match::writes()).delay(Duration::from_secs(20));
    assert!(timeout(Duration::from_secs(5), set(&maps(api.client()), "a", "1")).await.is_err());
    assert_eq!(value(&api, "a"), Value::Null);
    tokio::time::sleep(Duration::from_secs(16)).await;
    assert_eq!(value(&api, "a"), "1");
}

#[tokio::test(start_paused = true)]
async fn somebody_else_can_be_faster() {
    let api = Api::new();
    let seen = api.seed(object("a"));
    api.faults().when(Match::writes()).first_do(|api| {
        api.edit("ConfigMap", "default/a", |map| map["data"]["key"] = json!("theirs"));
    });
    let bound =
        json!({ "metadata": { "resourceVersion": seen["metadata"]["resourceVersion"] }, "data": { "key": "ours" } });
    let written = maps(api.client()).patch("a", &PatchParams::default(), &Patch::Merge(bound)).await;
    assert!(matches!(written, Err(kube::Error::Api(status)) if status.is_conflict()));
    assert_eq!(value(&api, "a"), "theirs");
}

#[tokio::test(start_paused = true)]
async fn a_client_dies_right_after_its_second_write() {
    let api = Api::new();
    api.seed_all([object("a"), object("b")]);
    let crash = api.faults().crash_after_write("one", 2);
    let one = maps(api.client_named("one"));
    set(&one, "a", "1").await.unwrap();
    set(&one, "a", "1").await.expect("a write that changes nothing does not count");
    assert!(!crash.is_reached());
    assert!(timeout(LONG, set(&one, "b", "1")).await.is_err());
    assert!(crash.is_reached());
    assert_eq!(value(&api, "b"), "1");
    assert!(timeout(LONG, set(&one, "b", "2")).await.is_err(), "the dead do not write");
    set(&maps(api.client_named("two")), "b", "3").await.unwrap();
    assert_eq!(value(&api, "b"), "3");
}

#[tokio::test(start_paused = true)]
async fn a_paused_client_wakes_up_late_and_its_write_arrives() {
    let api = Api::new();
    api.seed(object("a"));
    let pause = api.faults().pause_before_write("one", 1);
    let one = maps(api.client_named("one"));
    let sleeper = tokio::spawn(async move { set(&one, "a", "late").await });
    pause.reached().await;
    set(&maps(api.client_named("two")), "a", "early").await.unwrap();
    assert_eq!(value(&api, "a"), "early");
    api.faults().resume("one");
    sleeper.await.unwrap().unwrap();
    assert_eq!(value(&api, "a"), "late");
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_into_a_partition_is_lost() {
    let api = Api::new();
    api.seed(object("a"));
    let one = maps(api.client_named("one"));
    api.faults().partition("one");
    let sent = tokio::spawn({
        let one = one.clone();
        async move { set(&one, "a", "lost").await }
    });
    tokio::time::sleep(LONG).await;
    assert!(!sent.is_finished());
    api.faults().heal("one");
    assert!(matches!(sent.await.unwrap(), Err(kube::Error::Service(_))));
    assert_eq!(value(&api, "a"), Value::Null);
    set(&one, "a", "1").await.unwrap();
}

/// Values that a watch of `client` tells, in order.
async fn told(api: &Api, client: &str, changes: &[&str], events: usize) -> Vec<String> {
    let maps = maps(api.client_named(client));
    let version = maps.get("a").await.unwrap().resource_version().unwrap();
    let stream = maps.watch(&WatchParams::default(), &version).await.unwrap();
    for change in changes {
        api.edit("ConfigMap", "default/a", |map| map["data"]["key"] = json!(change));
    }
    let text = |event: WatchEvent<ConfigMap>| match event {
        WatchEvent::Modified(map) => map.data.unwrap_or_default()["key"].clone(),
        WatchEvent::Error(status) => status.reason,
        other => panic!("{other:?}"),
    };
    stream.map_ok(text).map(|told| told.unwrap_or_else(|error| error.to_string())).take(events).collect().await
}

#[tokio::test(start_paused = true)]
async fn watch_events_are_dropped_repeated_and_swapped() {
    let api = Api::new();
    api.seed(object("a"));
    api.faults().event(Match::any().client("drops")).nth(2).skip();
    assert_eq!(told(&api, "drops", &["1", "2", "3"], 2).await, ["1", "3"]);
    api.faults().event(Match::any().client("repeats")).repeat();
    assert_eq!(told(&api, "repeats", &["4", "5"], 3).await, ["4", "4", "5"]);
    api.faults().event(Match::any().client("swaps")).swap();
    assert_eq!(told(&api, "swaps", &["6", "7", "8"], 3).await, ["7", "6", "8"]);
    api.faults().event(Match::any().client("expires")).nth(2).expire();
    assert_eq!(told(&api, "expires", &["9", "10"], 2).await, ["9", "Expired"]);
    api.faults().event(Match::any().client("closes")).nth(2).close();
    assert_eq!(told(&api, "closes", &["11", "12"], 2).await, ["11"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_watch_is_stale_until_it_is_let_go() {
    let api = Api::new();
    api.seed(object("a"));
    let rule = api.faults().event(Match::any().client("stale")).always().hold();
    let mut watching = Box::pin(told(&api, "stale", &["1", "2"], 2));
    assert!(timeout(LONG, &mut watching).await.is_err());
    rule.cancel();
    assert_eq!(watching.await, ["1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn after_history_is_forgotten_a_watcher_lists_anew() {
    let api = Api::new();
    api.seed_all([object("a"), object("b")]);
    let mut events = Box::pin(watcher(maps(api.client()), watcher::Config::default()));
    for expected in ["Init", "InitApply(a)", "InitApply(b)", "InitDone"] {
        assert_eq!(events.next().await.unwrap().unwrap().to_string(), expected);
    }
    api.faults().when(Match::any().verb(Verb::Watch)).first_do(|api| {
        api.remove("ConfigMap", "default/a");
        api.faults().forget_history();
    });
    let first = loop {
        if let Ok(event) = events.next().await.unwrap() {
            break event.to_string();
        }
    };
    assert_eq!(first, "Init");
    assert_eq!(events.next().await.unwrap().unwrap().to_string(), "InitApply(b)");
    assert_eq!(events.next().await.unwrap().unwrap().to_string(), "InitDone");
    api.seed(object("c"));
    assert_eq!(events.next().await.unwrap().unwrap().to_string(), "Apply(c)");
}

#[tokio::test(start_paused = true)]
async fn a_law_that_breaks_names_who_broke_it() {
    let api = Api::new();
    api.invariant("nothing is called b", |snapshot| {
        let broken = snapshot.all("ConfigMap").any(|map| map["metadata"]["name"] == "b");
        if broken { Err("there is a b".into()) } else { Ok(()) }
    });
    let map = |name: &str| serde_json::from_value::<ConfigMap>(object(name)).unwrap();
    let maps = maps(api.client_named("one"));
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    assert_eq!(api.violations(), Vec::<String>::new());
    maps.create(&PostParams::default(), &map("b")).await.unwrap();
    assert_eq!(api.violations(), ["nothing is called b: there is a b (after Create ConfigMap default/b by \"one\")"]);
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || drop(api)));
    assert!(dropped.is_err(), "a test that ends with a broken law fails");
}

#[tokio::test(start_paused = true)]
async fn the_log_tells_writes_from_what_changed_nothing() {
    let api = Api::new();
    api.seed(object("a"));
    let maps = maps(api.client_named("one"));
    maps.get("a").await.unwrap();
    let mark = api.mark();
    set(&maps, "a", "1").await.unwrap();
    set(&maps, "a", "1").await.unwrap();
    let _ = set(&maps, "none", "1").await;
    let effects: Vec<Effect> = api.since(mark).into_iter().map(|entry| entry.effect).collect();
    let missing = Effect::Refused(404, "configmaps \"none\" not found".into());
    assert_eq!(effects, [Effect::Wrote, Effect::NoOp, missing]);
    assert_eq!(api.writes_since(mark).len(), 1);
    assert_eq!(api.counts()[&(Verb::MergePatch, "ConfigMap".to_owned())], 3);
    assert!(api.transcript().contains("one MergePatch ConfigMap default/a: Wrote"), "{}", api.transcript());
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_taken_away_is_not_found() {
    let api = Api::new();
    api.unregister("BareMetalHost");
    let hosts: KubeApi<api_foreign::BareMetalHost> = KubeApi::all(api.client());
    let missing = hosts.list(&kube::api::ListParams::default()).await.unwrap_err();
    assert!(matches!(missing, kube::Error::Api(status) if status.is_not_found()));
}
