//! Writes, watches, leases and the client itself against the real API server of SLIPWAY_TEST_KUBECONFIG.
#![cfg(feature = "real-api")]
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use futures::StreamExt as _;
use io_kube::{
    Cause, Change, Metrics, Scope, Version, Writer, changes,
    client::{Access, connect},
    events::{Recorder, Told, Tone},
    lease, read,
};
use k8s_openapi::{
    api::core::v1::{Namespace, Service},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    core::ApiResource,
    runtime::{
        wait::{await_condition, conditions::is_crd_established},
        watcher,
    },
};
use serde_json::{Value, json};
use tokio::time::timeout;

/// A client and a namespace of its own.
async fn ground(metrics: &Metrics) -> (Client, String) {
    let path = std::env::var("SLIPWAY_TEST_KUBECONFIG")
        .expect("SLIPWAY_TEST_KUBECONFIG must name the kubeconfig of an API server that may be written to; `make test` starts one");
    // Another test of this process may have been first.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let access = Access { kubeconfig: Some(path.into()), metrics: Some(metrics.clone()), ..Access::default() };
    let client = connect(access).await.expect("a client");
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in api::crds() {
        let name = crd.name_any();
        crds.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(crd)).await.expect("the CRD is taken");
        await_condition(crds.clone(), &name, is_crd_established()).await.expect("the CRD is established");
    }
    let mut namespace = Namespace::default();
    namespace.metadata.generate_name = Some("slipway-io-".into());
    let made = Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    (client, made.name_any())
}

fn service(namespace: &str, ports: &[i32]) -> Service {
    let ports: Vec<Value> = ports.iter().map(|port| json!({ "name": format!("p{port}"), "port": port })).collect();
    let object =
        json!({ "metadata": { "namespace": namespace, "name": "lb" }, "spec": { "type": "NodePort", "ports": ports } });
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn a_service_is_made_changed_and_deleted_as_decided() {
    let (client, namespace) = ground(&Metrics::new()).await;
    let writer = Writer::new(client.clone());
    let made = writer.create_as(&service(&namespace, &[80, 443])).await.unwrap();
    assert_eq!(writer.create_as(&service(&namespace, &[80])).await.unwrap_err().cause, Cause::AlreadyExists);
    let old = Version::of(made.meta()).unwrap();
    let updated = writer.update_ssa_as(&service(&namespace, &[443]), &old).await.unwrap();
    let ports = updated.spec.as_ref().unwrap().ports.as_ref().unwrap();
    assert_eq!(ports.iter().map(|port| port.port).collect::<Vec<_>>(), [443], "the port left out is gone");
    assert!(matches!(
        writer.update_ssa_as(&service(&namespace, &[80]), &old).await.unwrap_err().cause,
        Cause::Conflict(_)
    ));
    assert!(matches!(writer.delete_as(&made).await.unwrap_err().cause, Cause::Conflict(_)));
    writer.delete_as(&updated).await.unwrap();
    let resource = ApiResource::erase::<Service>(&());
    assert_eq!(read::get(&client, &resource, Some(&namespace), "lb").await.unwrap(), None);
    assert_eq!(writer.update_ssa_as(&service(&namespace, &[80]), &old).await.unwrap_err().cause, Cause::Gone);
}

#[tokio::test]
async fn a_sipcluster_takes_a_status_and_only_that() {
    let (client, namespace) = ground(&Metrics::new()).await;
    let writer = Writer::new(client.clone());
    let cluster = testkit::sip(&format!("{namespace}/one")).control_plane(3).build();
    let made = writer.create_as(&cluster).await.unwrap();
    let status = api::SIPClusterStatus { control_plane: Some("0/3".into()), ..Default::default() };
    let after = writer.put_status_as(&made, &status).await.unwrap();
    assert_eq!((after.status.as_ref().unwrap().control_plane.as_deref(), &after.spec), (Some("0/3"), &made.spec));
    assert!(matches!(writer.put_status_as(&made, &status).await.unwrap_err().cause, Cause::Conflict(_)));
    let mixed = Version { uid: "11111111-2222-3333-4444-555555555555".into(), ..Version::of(after.meta()).unwrap() };
    let patch = json!({ "metadata": { "labels": { "a": "b" } } });
    let refused = writer.patch_merge_as::<api::SIPCluster>(Some(&namespace), "one", patch, &mixed).await.unwrap_err();
    assert!(matches!(refused.cause, Cause::Conflict(_)), "{refused}");
}

#[tokio::test]
async fn changes_come_as_they_happen_and_requests_are_counted() {
    let metrics = Metrics::new();
    let (client, namespace) = ground(&metrics).await;
    let writer = Writer::new(client.clone());
    let scope = Scope::Namespace(namespace.clone());
    let mut stream = Box::pin(changes::<Service>(client, &scope, watcher::Config::default()));
    assert!(matches!(stream.next().await.unwrap(), Change::Listed(keys) if keys.is_empty()));
    let made = writer.create_as(&service(&namespace, &[80])).await.unwrap();
    match stream.next().await.unwrap() {
        Change::Applied(seen) => assert_eq!((seen.uid(), seen.metadata.managed_fields), (made.uid(), None)),
        other => panic!("{other:?}"),
    }
    writer.delete_as(&made).await.unwrap();
    assert!(matches!(stream.next().await.unwrap(), Change::Deleted { uid, .. } if Some(&uid) == made.uid().as_ref()));
    assert!(
        metrics.text().contains("slipway_requests_total{method=\"DELETE\",status=\"2xx\"} 1"),
        "{}",
        metrics.text()
    );
}

#[tokio::test]
async fn a_lease_goes_from_hand_to_hand() {
    let (client, namespace) = ground(&Metrics::new()).await;
    let config = |who: &str| [lease::Config::new(&namespace, "slipway-sip", lease::identity(who))];
    let one = lease::elected(&client, &config("one"), None).await;
    let theirs = config("two");
    assert!(timeout(Duration::from_secs(5), lease::elected(&client, &theirs, None)).await.is_err());
    assert!(one.holds());
    one.release().await;
    let two = timeout(Duration::from_secs(5), lease::elected(&client, &theirs, None)).await.expect("released");
    assert_eq!((two.holds(), two.transitions()), (true, 1));
    two.release().await;
}

#[tokio::test]
async fn an_event_is_taken() {
    let (client, namespace) = ground(&Metrics::new()).await;
    let made = Writer::new(client.clone()).create_as(&service(&namespace, &[80])).await.unwrap();
    let now = std::sync::Arc::new(jiff::Timestamp::now);
    let recorder = Recorder::new(client, "slipway.airshipit.org/sip", "pod-1", now);
    let told = Told { tone: Tone::Normal, reason: "Placed".into(), action: "Place", note: "ü".repeat(900) };
    recorder.tell(&made.object_ref(&()), &told).await.unwrap();
}
