//! Reads what the services need beside the cache: reports of pods, Secrets that the spec names, credentials. Changes nothing.

use std::collections::BTreeMap;

use api::sipcluster::HostState;
use base::Key;
use futures::{StreamExt, stream};
use io_kube::read;
use k8s_openapi::api::core::v1::Secret;
use plan_sip::services::{self, Credentials, Kind, Referred, Seen, Unread, names};

use super::{Job, tenant};
use crate::{Context, Error, cache, sources::EVERYWHERE};

/// Where Dex keeps its objects.
pub(super) const DEX: &str = "dex.coreos.com/v1";

/// Live reads of one turn that are under way at once.
const PARALLEL: usize = 8;

/// What the services need, and why the tenant's Cluster is not read, if it is refused. A read that fails is a matter of
/// the service that needs it, and keeps nothing else from going on.
pub(super) async fn observe(job: &Job, cx: &Context) -> (Seen, Option<String>) {
    let mut unread = Unread::default();
    let namespace = &job.want.key.namespace;
    let reads: Vec<_> = services::names_referred(&job.sip.spec)
        .secrets
        .into_iter()
        .map(|name| async move {
            let data = secret(cx, &Key::new(namespace, &name)).await;
            (name, data)
        })
        .collect();
    let mut referred = BTreeMap::new();
    for (name, data) in stream::iter(reads).buffered(PARALLEL).collect::<Vec<_>>().await {
        match data {
            Ok(Some(data)) => drop(referred.insert(name, Referred { data })),
            Ok(None) => {}
            Err(error) => drop(unread.referred.insert(name, error.to_string())),
        }
    }
    let (tenant_kubeconfig, refused) = tenant::kubeconfig(job, cx).await.unwrap_or_else(|error| {
        unread.tenant_kubeconfig = Some(error.to_string());
        (None, None)
    });
    let dex_definitions = dex_definitions(job, cx).await.unwrap_or_else(|error| {
        unread.dex_definitions = Some(error.to_string());
        false
    });
    let seen = Seen {
        objects: job.objects.clone(),
        pods: pods(job, cx).await,
        templates: job.templates.clone(),
        referred,
        credentials: credentials(job, cx, &mut unread).await,
        node_ips: job.node_ips.clone(),
        dex_definitions,
        published: job.sip.status.as_ref().and_then(|s| s.endpoints.clone()),
        tenant_kubeconfig,
        unread,
        now: (cx.now)().as_second(),
    };
    (seen, refused)
}

/// Takes out of `job` the objects of kinds that are not watched in all namespaces. Where we have no rights, what is known
/// of them may be long past: the namespace may be going, and they with it.
pub(super) fn out_of_sight(job: &mut Job) -> Vec<(Kind, String)> {
    job.objects.extract_if(.., |(kind, _), _| !EVERYWHERE.contains(kind)).map(|(object, _)| object).collect()
}

/// What is seen of a SIPCluster that is being deleted where we have no rights.
pub(super) async fn without_rights(job: &Job, cx: &Context) -> Seen {
    Seen {
        objects: job.objects.clone(),
        pods: pods(job, cx).await,
        templates: job.templates.clone(),
        node_ips: job.node_ips.clone(),
        published: job.sip.status.as_ref().and_then(|s| s.endpoints.clone()),
        now: (cx.now)().as_second(),
        ..Seen::default()
    }
}

pub(super) async fn secret(cx: &Context, key: &Key) -> Result<Option<BTreeMap<String, std::sync::Arc<[u8]>>>, Error> {
    let found =
        read::get_as::<Secret>(cx.writer.client(), Some(&key.namespace), &key.name).await.map_err(Error::Api)?;
    Ok(found.map(cache::secret_data))
}

/// The pods, with reports where they are waited for: while a host leaves, or a configuration is on trial.
async fn pods(job: &Job, cx: &Context) -> Vec<services::Pod> {
    let leaving = job.plan.record.iter().any(|e| e.state == HostState::Releasing);
    let on_trial = job.objects.values().any(|o| match &o.facts {
        services::Facts::Secret { data } => data.contains_key("candidate.cfg"),
        _ => false,
    });
    let ask = leaving || on_trial;
    let namespace = &job.want.key.namespace;
    let asked: Vec<_> = job
        .pods
        .iter()
        .cloned()
        .map(|cached| async move {
            let mut pod = cached.pod;
            if let Some(address) = cached.reports_at.filter(|_| ask) {
                pod.report = cx.reports.ask(namespace, &pod.name, address).await;
            }
            pod
        })
        .collect();
    stream::iter(asked).buffered(PARALLEL).collect().await
}

/// Whether Dex's definitions are there; asked only while a provider has to choose where it keeps its keys.
async fn dex_definitions(job: &Job, cx: &Context) -> Result<bool, Error> {
    let chosen = |auth: &api::sipcluster::Auth| {
        let instance = names::auth(&job.want.key.name, auth.common.name.as_deref());
        job.objects.contains_key(&(Kind::Secret, format!("{instance}-config")))
    };
    if job.plan.finished || job.sip.spec.services.auth.iter().all(chosen) {
        return Ok(false);
    }
    read::kinds(cx.writer.client(), DEX).await.map(|kinds| !kinds.is_empty()).map_err(Error::Api)
}

/// BMC credentials, where a jump host may have them.
async fn credentials(job: &Job, cx: &Context, unread: &mut Unread) -> BTreeMap<Key, Credentials> {
    let exposed = job.sip.spec.services.jump_host.iter().any(|j| j.bmc.is_some_and(|b| b.expose == Some(true)));
    if !exposed || job.plan.finished {
        return BTreeMap::new();
    }
    let hosts = job.hosts.values().filter_map(|h| Some((h.key.clone(), h.credentials.clone()?)));
    let reads: Vec<_> = hosts.map(|(host, key)| async move { (host, secret(cx, &key).await) }).collect();
    let mut found = BTreeMap::new();
    for (host, data) in stream::iter(reads).buffered(PARALLEL).collect::<Vec<_>>().await {
        match data {
            Ok(data) => {
                let data = data.unwrap_or_default();
                let text = |name: &str| data.get(name).and_then(|v| String::from_utf8(v.to_vec()).ok());
                let login = text("username").zip(text("password"));
                found.extend(login.map(|(username, password)| (host, Credentials { username, password })));
            }
            Err(error) => drop(unread.credentials.insert(host, error.to_string())),
        }
    }
    found
}
