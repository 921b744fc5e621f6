//! Carries out what was decided, and decides nothing. Every write names the uid and resourceVersion it was decided on.

use std::collections::BTreeSet;

use api::{SIPCluster, keys};
use api_foreign::BareMetalHost;
use base::Key;
use futures::{StreamExt, stream};
use io_kube::{Cause, Version, read};
use k8s_openapi::api::core::v1::Pod;
use kube::core::ApiResource;
use plan_sip::{
    claims::{Confirm, Depart, Label, Plan},
    host::Host,
    quarantine,
    services::{self, Kind, Object, Step, names},
    want::Want,
};
use serde_json::{Value, json};

use super::{Job, Outcome};
use crate::{Context, Error, cache, certs};

/// Writes to hosts of one cluster that are under way at once.
const PARALLEL: usize = 8;

/// What comes before anything else: our finalizer, and the record, alone. What no write to a host can prove is read live
/// before; if it is not so, the view is stale and nothing is written.
pub async fn begin(sip: &SIPCluster, plan: &Plan, finalizer: bool, cx: &Context) -> Result<SIPCluster, Error> {
    let mut sip = sip.clone();
    if finalizer {
        let mut finalizers = sip.metadata.finalizers.clone().unwrap_or_default();
        finalizers.push(keys::FINALIZER.to_owned());
        sip = finalizers_of(&sip, &finalizers, cx).await?;
    }
    if plan.record_moves { record(&sip, plan, cx).await } else { Ok(sip) }
}

/// Proves that nobody else has changed the record since the decision: the record is written as it is, under the version
/// that the decision was made on.
pub(super) async fn fence(job: &Job, cx: &Context) -> Result<SIPCluster, Error> {
    record(&job.sip, &job.plan, cx).await
}

async fn record(sip: &SIPCluster, plan: &Plan, cx: &Context) -> Result<SIPCluster, Error> {
    for Confirm { host, uid, resource_version } in &plan.confirm {
        // Its metadata alone: a host that does not parse is there all the same.
        let resource = ApiResource::erase::<BareMetalHost>(&());
        let live = read::get(cx.writer.client(), &resource, Some(&host.namespace), &host.name).await;
        let live = live.map_err(Error::Api)?;
        let meta = live.as_ref().map(|h| &h.metadata).filter(|m| m.uid.as_ref() == Some(uid));
        let holds = match resource_version {
            Some(_) => meta.is_some_and(|m| m.resource_version == *resource_version),
            None => meta.is_none(),
        };
        if !holds {
            return Err(Error::Stale { host: host.clone() });
        }
    }
    let mut status = sip.status.clone().unwrap_or_default();
    status.hosts.clone_from(&plan.record);
    cx.writer.put_status_as(sip, &status).await.map_err(Error::Api)
}

/// Takes our finalizer off: nothing is left.
pub(super) async fn farewell(job: &Job, cx: &Context) -> Result<(), Error> {
    let present = job.sip.metadata.finalizers.iter().flatten();
    let left: Vec<String> = present.filter(|f| *f != keys::FINALIZER).cloned().collect();
    finalizers_of(&job.sip, &left, cx).await.map(drop)
}

async fn finalizers_of(sip: &SIPCluster, finalizers: &[String], cx: &Context) -> Result<SIPCluster, Error> {
    let metadata = &sip.metadata;
    let on =
        version(metadata.uid.as_deref().unwrap_or_default(), metadata.resource_version.as_deref().unwrap_or_default());
    let (namespace, name) = (metadata.namespace.as_deref(), metadata.name.as_deref().unwrap_or_default());
    let patch = json!({"metadata": {"finalizers": finalizers}});
    cx.writer.patch_merge_as(namespace, name, patch, &on).await.map_err(Error::Api)
}

/// Carries out the steps over the services, in order. One that fails holds up no other: a node port that is taken must
/// not keep a configuration from being written. The first error is returned.
pub(super) async fn services(job: &Job, plan: &services::Plan, cx: &Context, out: &mut Outcome) -> Result<(), Error> {
    let mut failed = Ok(());
    for step in &plan.steps {
        tracing::debug!(cluster = %job.want.key, %step, "services");
        failed = failed.and(service(step, &job.want, cx, out).await.map_err(|error| whose(error, job, out)));
    }
    failed
}

/// Says of an object that was met where one was to be made whether it is somebody else's, which is then not touched. One
/// of the original operator is taken over, and of what is ours people may have taken labels off: one sign is enough.
fn whose(error: Error, job: &Job, out: &mut Outcome) -> Error {
    let met = matches!(&error, Error::Api(error) if error.cause == Cause::AlreadyExists);
    let Some((kind, name, Some(owned))) = out.objects.last().filter(|_| met) else { return error };
    let signed = owned.owner_name.is_some() || owned.owner_uid.is_some() || owned.applied.is_some();
    if signed || names::taken_over(&job.want.key.name, &job.sip.spec).contains(&(*kind, name.clone())) {
        return error;
    }
    let foreign = Error::Foreign { kind: *kind, namespace: job.want.key.namespace.clone(), name: name.clone() };
    // It is not watched, so it is not remembered either: the next turn meets it again, or finds that it has gone.
    out.objects.pop();
    foreign
}

async fn service(step: &Step, want: &Want, cx: &Context, out: &mut Outcome) -> Result<(), Error> {
    let namespace = &want.key.namespace;
    match step {
        Step::Create(object) => create(object, namespace, cx, out).await,
        Step::Update { object, uid, resource_version, whole } => {
            let version = version(uid, resource_version);
            let resource = cache::resource(object.kind);
            let body = in_namespace(&object.body, namespace);
            let written = if *whole {
                cx.writer.replace(&resource, body, &version).await
            } else {
                cx.writer.update_ssa(&resource, body, &version).await
            };
            updated(object, resource_version, written, namespace, cx, out).await
        }
        Step::Delete { kind, name, uid, resource_version } => {
            let on = version(uid, resource_version);
            if *kind == Kind::RoleBinding {
                clear_dex(namespace, cx).await?;
            }
            let deleted = cx.writer.delete(&cache::resource(*kind), Some(namespace), name, &on).await;
            match deleted {
                Ok(_) => out.wrote = true,
                Err(error) if error.is_gone() => {}
                Err(error) => return stale(*kind, name, error, namespace, cx, out).await,
            }
            out.objects.push((*kind, name.clone(), None));
            Ok(())
        }
        Step::MakeHostKeys { object } => {
            let mut object = object.clone();
            certs::host_keys(&mut object)?;
            create(&object, namespace, cx, out).await
        }
        Step::MakeCertificate { object, replaces, names, ca_secret } => {
            let mut object = object.clone();
            certs::certificate(&mut object, names, ca_secret.as_deref(), namespace, cx).await?;
            match replaces {
                None => create(&object, namespace, cx, out).await,
                Some((uid, resource_version)) => {
                    let on = version(uid, resource_version);
                    let body = in_namespace(&object.body, namespace);
                    let written = cx.writer.update_ssa(&cache::resource(object.kind), body, &on).await;
                    updated(&object, resource_version, written, namespace, cx, out).await
                }
            }
        }
        Step::AnnotatePod { name, uid, resource_version, wanted } => {
            let patch = json!({"metadata": {"annotations": {keys::WANTED: wanted}}});
            let pod = ApiResource::erase::<Pod>(&());
            let written =
                cx.writer.patch_merge(&pod, Some(namespace), name, patch, &version(uid, resource_version)).await;
            passing(written, out)
        }
        Step::DeletePod { name, uid, resource_version } => {
            let pod = ApiResource::erase::<Pod>(&());
            let on = version(uid, resource_version);
            passing(cx.writer.delete(&pod, Some(namespace), name, &on).await, out)
        }
    }
}

/// A pod changes at any time; if it did, the next turn, which its change brings about, decides anew.
fn passing<T>(written: Result<T, io_kube::Error>, out: &mut Outcome) -> Result<(), Error> {
    match written {
        Ok(_) => {
            out.wrote = true;
            Ok(())
        }
        Err(error) if error.is_stale() => Ok(()),
        Err(error) => Err(Error::Api(error)),
    }
}

fn version(uid: &str, resource_version: &str) -> Version {
    Version { uid: uid.to_owned(), resource_version: resource_version.to_owned() }
}

fn in_namespace(body: &Value, namespace: &str) -> Value {
    let mut body = body.clone();
    body["metadata"]["namespace"] = namespace.into();
    body
}

async fn create(object: &Object, namespace: &str, cx: &Context, out: &mut Outcome) -> Result<(), Error> {
    let body = in_namespace(&object.body, namespace);
    let written = cx.writer.create(&cache::resource(object.kind), body).await;
    put(object, written, namespace, cx, out).await
}

/// An update of the version `before`. If that is its version still, the API server, or an admission webhook behind it,
/// says that nothing differs, whatever comparison says: it holds, and asking again and again would change nothing.
async fn updated(
    object: &Object,
    before: &str,
    written: Result<kube::core::DynamicObject, io_kube::Error>,
    namespace: &str,
    cx: &Context,
    out: &mut Outcome,
) -> Result<(), Error> {
    match &written {
        Ok(live) if live.metadata.resource_version.as_deref() == Some(before) => {
            tracing::debug!(cluster = %out.key, kind = %object.kind, name = object.name, "nothing to change");
            out.verified.insert((object.kind, object.name.clone()));
            Ok(())
        }
        _ => put(object, written, namespace, cx, out).await,
    }
}

async fn put(
    object: &Object,
    written: Result<kube::core::DynamicObject, io_kube::Error>,
    namespace: &str,
    cx: &Context,
    out: &mut Outcome,
) -> Result<(), Error> {
    match written {
        Ok(live) => {
            out.wrote = true;
            out.objects.push((object.kind, object.name.clone(), Some(cache::owned(object.kind, &live))));
            Ok(())
        }
        Err(error) => stale(object.kind, &object.name, error, namespace, cx, out).await,
    }
}

/// The object is not what was decided on: it is read live, for the next turn to decide anew. An object of the original
/// operator, that carries no label of ours, is met in this way.
async fn stale(
    kind: Kind,
    name: &str,
    error: io_kube::Error,
    namespace: &str,
    cx: &Context,
    out: &mut Outcome,
) -> Result<(), Error> {
    if error.is_stale() {
        let live = read::get(cx.writer.client(), &cache::resource(kind), Some(namespace), name).await;
        if let Ok(live) = live {
            out.objects.push((kind, name.to_owned(), live.map(|l| cache::owned(kind, &l))));
        }
    }
    Err(Error::Api(error))
}

/// Labels hosts, several at once; the first error is returned after all were tried.
pub(super) async fn labels(
    job: &Job,
    cx: &Context,
    out: &mut Outcome,
    labelled: &mut BTreeSet<Key>,
) -> Result<(), Error> {
    let claims: Vec<_> =
        job.plan.label.iter().map(|label| async move { (label, claim(label, &job.want.key, cx).await) }).collect();
    let written: Vec<_> = stream::iter(claims).buffered(PARALLEL).collect().await;
    let mut failed = Ok(());
    for (label, result) in written {
        match result {
            Ok(host) => {
                labelled.insert(label.host.clone());
                tracing::info!(cluster = %job.want.key, host = %label.host, role = label.role, "host claimed");
                out.wrote = true;
                out.hosts.push(host);
            }
            Err(error) => failed = failed.and(host_error(&label.host, error, cx, out).await),
        }
    }
    failed
}

async fn claim(label: &Label, cluster: &Key, cx: &Context) -> Result<BareMetalHost, io_kube::Error> {
    let addresses = serde_json::to_string(&label.addresses).expect("a map of strings is JSON");
    let patch = json!({"metadata": {
        "labels": {
            keys::CLUSTER_NAMESPACE: cluster.namespace,
            keys::CLUSTER_NAME: cluster.name,
            keys::NODE_TYPE: label.role,
        },
        "annotations": {keys::ADDRESSES: addresses},
    }});
    patch_host(&label.host, &label.uid, &label.resource_version, patch, cx).await
}

/// Hosts to let go now: no backend knows them any more. One that somebody uses goes only when forced (I4).
pub(super) fn departing<'a>(job: &'a Job, plan: &services::Plan) -> Vec<&'a Depart> {
    let in_use = |host: &Key| job.hosts.get(host).is_some_and(|h| h.in_use());
    let ready = |d: &&Depart| plan.confirmed.contains(&d.host) && (d.forced || !d.labelled || !in_use(&d.host));
    job.plan.depart.iter().filter(ready).collect()
}

/// Lets hosts go.
pub(super) async fn departures(job: &Job, departing: &[&Depart], cx: &Context, out: &mut Outcome) -> Result<(), Error> {
    let in_use = |host: &Key| job.hosts.get(host).is_some_and(|h| h.in_use());
    let mut failed = Ok(());
    for depart in departing {
        match release(depart, &job.want.key, in_use(&depart.host), cx).await {
            Ok(host) => {
                out.wrote = true;
                out.departed.insert(depart.host.clone());
                tracing::info!(cluster = %job.want.key, host = %depart.host, role = depart.role, "host released");
                out.hosts.push(host);
            }
            Err(error) => failed = failed.and(host_error(&depart.host, error, cx, out).await),
        }
    }
    failed
}

async fn release(depart: &Depart, cluster: &Key, in_use: bool, cx: &Context) -> Result<BareMetalHost, io_kube::Error> {
    let mut annotations = json!({});
    if let Some(released) = depart.released(cluster, (!in_use).then(|| (cx.now)())) {
        annotations[keys::RELEASED] = serde_json::to_string(&released).expect("strings and a time are JSON").into();
    } else {
        annotations[keys::TOUCHED] = format!("{cluster}@{}", depart.resource_version).into();
    }
    if depart.forced {
        annotations[keys::FORCE_RELEASE] = Value::Null;
    }
    let mut metadata = json!({ "annotations": annotations });
    if depart.labelled {
        metadata["labels"] = json!({keys::CLUSTER_NAMESPACE: null, keys::CLUSTER_NAME: null, keys::NODE_TYPE: null});
    }
    patch_host(&depart.host, &depart.uid, &depart.resource_version, json!({ "metadata": metadata }), cx).await
}

/// Whether the API server has this SIPCluster, readable to us or not.
pub async fn exists(cluster: &Key, cx: &Context) -> Result<bool, Error> {
    let resource = ApiResource::erase::<SIPCluster>(&());
    let found = read::get(cx.writer.client(), &resource, Some(&cluster.namespace), &cluster.name).await;
    Ok(found.map_err(Error::Api)?.is_some())
}

/// Carries out what was decided about a host that is nobody's.
pub async fn quarantine(host: &Host, turn: &quarantine::Turn, cx: &Context) -> Result<Option<BareMetalHost>, Error> {
    let metadata = match turn {
        quarantine::Turn::Rest | quarantine::Turn::Until(_) | quarantine::Turn::Stranger { .. } => return Ok(None),
        quarantine::Turn::Begin(released) => {
            let text = serde_json::to_string(released).expect("strings and a time are JSON");
            json!({"annotations": {keys::RELEASED: text}})
        }
        quarantine::Turn::Abandon(released) => {
            let text = serde_json::to_string(released).expect("strings and a time are JSON");
            json!({
                "annotations": {keys::RELEASED: text},
                "labels": {keys::CLUSTER_NAMESPACE: null, keys::CLUSTER_NAME: null, keys::NODE_TYPE: null},
            })
        }
        quarantine::Turn::End | quarantine::Turn::Clear => json!({"annotations": {keys::RELEASED: null}}),
        quarantine::Turn::Return { cluster, role } => json!({
            "annotations": {keys::RELEASED: null},
            "labels": {
                keys::CLUSTER_NAMESPACE: cluster.namespace,
                keys::CLUSTER_NAME: cluster.name,
                keys::NODE_TYPE: role,
            },
        }),
    };
    let patch = json!({ "metadata": metadata });
    patch_host(&host.key, &host.uid, &host.resource_version, patch, cx).await.map(Some).map_err(Error::Api)
}

async fn patch_host(
    host: &Key,
    uid: &str,
    resource_version: &str,
    patch: Value,
    cx: &Context,
) -> Result<BareMetalHost, io_kube::Error> {
    cx.writer.patch_merge_as(Some(&host.namespace), &host.name, patch, &version(uid, resource_version)).await
}

/// A host that changed meanwhile is read live, for the next turn to decide anew.
async fn host_error(host: &Key, error: io_kube::Error, cx: &Context, out: &mut Outcome) -> Result<(), Error> {
    if error.is_stale() {
        let live = read::get_as::<BareMetalHost>(cx.writer.client(), Some(&host.namespace), &host.name).await;
        out.hosts.extend(live.ok().flatten());
    }
    Err(Error::Api(error))
}

/// Deletes what a Dex that leaves kept in its namespace: the next one must not find keys and tokens of another. Each object
/// only as it was read; the binding, which goes after them, says until then that there is something to do.
async fn clear_dex(namespace: &str, cx: &Context) -> Result<(), Error> {
    let client = cx.writer.client();
    for kind in read::kinds(client, super::observe::DEX).await.map_err(Error::Api)? {
        for object in read::list(client, &kind, Some(namespace), "").await.map_err(Error::Api)? {
            let Some(on) = Version::of(&object.metadata) else { continue };
            let name = object.metadata.name.as_deref().unwrap_or_default();
            match cx.writer.delete(&kind, Some(namespace), name, &on).await {
                Ok(_) => {}
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(Error::Api(error)),
            }
        }
    }
    Ok(())
}

/// Deletes one object of a SIPCluster that is gone.
pub(super) async fn remove(
    kind: Kind,
    name: &str,
    owned: &services::Owned,
    namespace: &str,
    cx: &Context,
) -> Result<(), Error> {
    let on = version(&owned.uid, &owned.resource_version);
    if kind == Kind::RoleBinding {
        clear_dex(namespace, cx).await?;
    }
    match cx.writer.delete(&cache::resource(kind), Some(namespace), name, &on).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_gone() => Ok(()),
        Err(error) => Err(Error::Api(error)),
    }
}
