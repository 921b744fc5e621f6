//! A stream of changes that survives everything but its reader.
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use std::{pin::Pin, time::Duration};

use api_foreign::BareMetalHost;
use futures::{Stream, StreamExt as _};
use io_kube::{Change, Scope, changes};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{ResourceExt as _, runtime::watcher};
use serde_json::json;
use testkit::{Api, Fleet, Match, Refusal, Verb};
use tokio::time::{Instant, timeout};

type Hosts = Pin<Box<dyn Stream<Item = Change<BareMetalHost>> + Send>>;

fn hosts(api: &Api, scope: &Scope) -> Hosts {
    Box::pin(changes(api.client_named("manager"), scope, watcher::Config::default()))
}

/// The next changes, as short text.
async fn told(stream: &mut Hosts, changes: usize) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..changes {
        let change = timeout(Duration::from_hours(1), stream.next()).await;
        told.push(match change.expect("a change within an hour").expect("the stream does not end") {
            Change::Applied(host) => format!("+{}", host.name_any()),
            Change::Deleted { key, .. } => format!("-{key}"),
            Change::Unreadable { key, error, .. } => format!("?{key}: {error}"),
            Change::Listed(keys) => format!("all {}", keys.len()),
            Change::Forbidden(message) => format!("forbidden: {message}"),
            Change::Absent => "absent".into(),
            Change::Interrupted(message) => format!("interrupted: {message}"),
        });
    }
    told
}

#[tokio::test(start_paused = true)]
async fn what_is_there_comes_first_then_what_happens() {
    let api = Api::new();
    api.seed_all(Fleet::of(2).objects());
    let mut stream = hosts(&api, &Scope::All);
    assert_eq!(told(&mut stream, 3).await, ["+node00", "+node01", "all 2"]);
    api.edit("BareMetalHost", "default/node01", |host| host["spec"]["online"] = json!(false));
    api.remove("BareMetalHost", "default/node00");
    assert_eq!(told(&mut stream, 2).await, ["+node01", "-default/node00"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_narrows_it() {
    let api = Api::new();
    api.seed_all(Fleet::of(1).namespace("one").and(&Fleet::of(1).namespace("two")));
    let mut stream = hosts(&api, &Scope::Namespace("two".into()));
    assert_eq!(told(&mut stream, 2).await, ["+node00", "all 1"]);
}

#[tokio::test(start_paused = true)]
async fn one_object_that_does_not_parse_stops_only_itself() {
    let api = Api::new();
    api.seed_all(Fleet::of(3).objects());
    api.edit("BareMetalHost", "default/node01", |host| host["spec"]["online"] = json!("perhaps"));
    let mut stream = hosts(&api, &Scope::All);
    let bad = "?default/node01: invalid type: string \"perhaps\", expected a boolean";
    assert_eq!(told(&mut stream, 4).await, ["+node00", bad, "+node02", "all 3"]);
    api.edit("BareMetalHost", "default/node01", |host| host["spec"]["online"] = json!(true));
    api.edit("BareMetalHost", "default/node02", |host| host["spec"]["online"] = json!(1));
    api.remove("BareMetalHost", "default/node02");
    let worse = "?default/node02: invalid type: integer `1`, expected a boolean";
    assert_eq!(told(&mut stream, 3).await, ["+node01", worse, "-default/node02"]);
}

#[tokio::test(start_paused = true)]
async fn what_went_away_meanwhile_is_told_before_the_list_is_whole() {
    let api = Api::new();
    api.seed_all(Fleet::of(3).objects());
    let mut stream = hosts(&api, &Scope::All);
    assert_eq!(told(&mut stream, 4).await.last().unwrap(), "all 3");
    api.faults().partition("manager");
    api.remove("BareMetalHost", "default/node00");
    // Made anew under the same name: another object.
    let again = api.get("BareMetalHost", "default/node01").unwrap();
    api.remove("BareMetalHost", "default/node01");
    api.seed(json!({ "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "namespace": "default", "name": "node01" }, "spec": again["spec"] }));
    api.faults().forget_history();
    api.faults().heal("manager");
    let mut told = told(&mut stream, 5).await;
    told.retain(|change| !change.starts_with("interrupted"));
    assert_eq!(told, ["-default/node01", "+node01", "+node02", "-default/node00", "all 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_crd_is_told_and_found_within_seconds_of_its_installation() {
    let api = Api::new();
    api.unregister("BareMetalHost");
    let mut stream = hosts(&api, &Scope::All);
    assert_eq!(told(&mut stream, 20).await, vec!["absent"; 20]);
    api.register(testkit::Kind::custom("metal3.io", "v1alpha1", "baremetalhosts", "BareMetalHost", true, true));
    api.seed_all(Fleet::of(1).objects());
    let began = Instant::now();
    assert_eq!(told(&mut stream, 2).await, ["+node00", "all 1"]);
    assert!(began.elapsed() <= Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_forbidden_is_told_with_the_servers_words() {
    let api = Api::new();
    api.faults().when(Match::any().verb(Verb::List)).refuse(Refusal::Forbidden("hosts is forbidden".into()));
    let mut stream = hosts(&api, &Scope::All);
    assert_eq!(told(&mut stream, 2).await, ["forbidden: hosts is forbidden", "all 0"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_refused_for_a_while_says_when_it_sees_again() {
    let api = Api::new();
    api.seed_all(Fleet::of(2).objects());
    let mut stream = hosts(&api, &Scope::All);
    assert_eq!(told(&mut stream, 3).await, ["+node00", "+node01", "all 2"]);
    let watches = Match::any().verb(Verb::Watch);
    api.faults().when(watches).refuse(Refusal::Forbidden("hosts is forbidden".into()));
    api.faults().close_watches();
    assert_eq!(told(&mut stream, 1).await, ["forbidden: hosts is forbidden"]);
    api.remove("BareMetalHost", "default/node00");
    assert_eq!(told(&mut stream, 3).await, ["+node01", "-default/node00", "all 1"]);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_told_and_nothing_is_lost() {
    let api = Api::new();
    api.seed_all(Fleet::of(1).objects());
    let mut stream = hosts(&api, &Scope::All);
    assert_eq!(told(&mut stream, 2).await, ["+node00", "all 1"]);
    api.faults().when(Match::any().verb(Verb::Watch)).times(3).refuse(Refusal::Unavailable);
    api.faults().close_watches();
    api.edit("BareMetalHost", "default/node00", |host| host["spec"]["online"] = json!(false));
    let told = told(&mut stream, 4).await;
    assert!(told[..3].iter().all(|change| change.starts_with("interrupted: ")), "{told:?}");
    assert_eq!(told[3], "+node00");
}

#[tokio::test(start_paused = true)]
async fn a_long_list_comes_in_pages_and_managed_fields_stay_behind() {
    let api = Api::new();
    for n in 0..1001 {
        api.seed(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": "default", "name": format!("map{n:04}"), "managedFields": [{ "manager": "somebody" }] } }));
    }
    let mut stream = Box::pin(changes::<ConfigMap>(api.client(), &Scope::All, watcher::Config::default()));
    let mut seen = 0;
    loop {
        match stream.next().await.unwrap() {
            Change::Applied(map) => {
                assert_eq!(map.metadata.managed_fields, None);
                seen += 1;
            }
            Change::Listed(keys) => break assert_eq!((seen, keys.len()), (1001, 1001)),
            other => panic!("{other:?}"),
        }
    }
    let lists = api.log().iter().filter(|entry| entry.verb == Verb::List).count();
    assert_eq!(lists, 3);
}

#[tokio::test(start_paused = true)]
async fn at_rest_it_asks_nothing_but_to_go_on_watching() {
    let api = Api::new();
    api.seed_all(Fleet::of(1).objects());
    let mut stream = hosts(&api, &Scope::All);
    told(&mut stream, 2).await;
    assert!(timeout(Duration::from_hours(24), stream.next()).await.is_err());
    let asked = api.log();
    assert_eq!(asked.iter().filter(|entry| entry.verb == Verb::List).count(), 1);
    assert!(asked.len() < 24 * 20, "{} requests in a day", asked.len());
}
