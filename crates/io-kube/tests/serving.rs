//! Events, probes and metrics as others see them.
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use axum::body::Body;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use io_kube::{
    Metrics,
    events::{Recorder, Told, Tone},
    health::{Health, Probe, router},
};
use k8s_openapi::api::core::v1::ObjectReference;
use testkit::{Api, Match, Refusal};
use tower::ServiceExt as _;

async fn get(health: &Health, metrics: &Metrics, path: &str) -> (StatusCode, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let answer = router(health.clone(), metrics.clone()).oneshot(request).await.unwrap();
    let (status, body) = (answer.status(), answer.into_body().collect().await.unwrap().to_bytes());
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_process_is_ready_when_every_check_passes_and_says_which_does_not() {
    let (health, metrics) = (Health::new(), Metrics::new());
    assert_eq!(get(&health, &metrics, "/readyz").await, (StatusCode::OK, "ok\n".into()));
    let hosts = health.check(Probe::Ready, "watch-hosts", "not listed yet");
    let policy = health.check(Probe::Ready, "policy", "not proved yet");
    policy.passes();
    let (status, text) = get(&health, &metrics, "/readyz").await;
    assert_eq!(
        (status, text.as_str()),
        (StatusCode::SERVICE_UNAVAILABLE, "[+] policy\n[-] watch-hosts: not listed yet\nfailed\n")
    );
    assert_eq!(get(&health, &metrics, "/healthz").await, (StatusCode::OK, "ok\n".into()));
    hosts.passes();
    assert_eq!(get(&health, &metrics, "/readyz").await.0, StatusCode::OK);
    policy.fails("the dry run was denied");
    assert!(get(&health, &metrics, "/readyz").await.1.contains("[-] policy: the dry run was denied"));
}

#[tokio::test]
async fn metrics_are_in_the_open_format_with_closed_labels() {
    let (health, metrics) = (Health::new(), Metrics::new());
    metrics.turned("sip", "ok", std::time::Duration::from_millis(20));
    metrics.requested(&http::Method::PATCH, Some(StatusCode::CONFLICT));
    metrics.wrote("SomethingElse", io_kube::Verb::Apply, None);
    let (status, text) = get(&health, &metrics, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    for line in [
        "slipway_turns_total{controller=\"sip\",result=\"ok\"} 1",
        "slipway_turn_duration_seconds_count{controller=\"sip\"} 1",
        "slipway_requests_total{method=\"PATCH\",status=\"409\"} 1",
        "slipway_writes_total{kind=\"Other\",verb=\"apply\",outcome=\"ok\"} 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

fn about() -> ObjectReference {
    ObjectReference {
        api_version: Some("airship.airshipit.org/v1".into()),
        kind: Some("SIPCluster".into()),
        namespace: Some("tenants".into()),
        name: Some("one".into()),
        uid: Some("1".into()),
        ..ObjectReference::default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_stands_beside_its_object() {
    let api = Api::new();
    api.seed(serde_json::json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "tenants" } }));
    let recorder = Recorder::new(api.client(), "slipway.airshipit.org/sip", "pod-1", api.clock().source());
    let told =
        Told { tone: Tone::Warning, reason: "Unschedulable".into(), action: "Place", note: "2 hosts short".into() };
    recorder.tell(&about(), &told).await.unwrap();
    recorder.tell(&about(), &told).await.unwrap();
    let events = api.list("Event");
    assert_eq!(events.len(), 2, "two events of one instant have two names");
    let event = &events[0];
    assert_eq!((&event["metadata"]["namespace"], &event["type"]), (&"tenants".into(), &"Warning".into()));
    assert_eq!((&event["regarding"]["name"], &event["note"]), (&"one".into(), &"2 hosts short".into()));
    api.faults().when(Match::writes().kind("Event")).refuse(Refusal::Forbidden("no".into()));
    assert_eq!(recorder.tell(&about(), &told).await.unwrap_err().reason(), "Forbidden");
}
