//! The live cluster: its SIPClusters, hosts and Secrets, as far as they may be read, and what its manager is told.

use std::{collections::BTreeSet, path::PathBuf};

use anyhow::{Context as _, anyhow, bail};
use api::SIPCluster;
use api_foreign::BareMetalHost;
use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{Container, Secret},
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::ListParams,
    config::KubeConfigOptions,
    core::{ApiResource, DynamicObject},
};
use plan_sip::host::Host;

use crate::input::{Bad, BadInput, Objects, Reader};

/// Objects per page of a list.
const PAGE: u32 = 500;
/// Labels of the manager's Deployment: ours, and those of the original, in whose place it may have been put.
const MANAGERS: [&str; 2] = ["app.kubernetes.io/name=slipway-manager", "control-plane=controller-manager"];

/// The lease of whoever looks after SIPClusters.
const LEASE: &str = "slipway-sip";

/// What the cluster shows.
pub struct Cluster {
    /// Its objects.
    pub objects: Objects,
    /// Namespaces whose Secrets may not be read.
    pub unreadable: BTreeSet<String>,
    /// What the manager is told; none: no manager can be seen.
    pub manager: Option<Manager>,
    /// What people should know.
    pub notes: Vec<String>,
}

/// What the manager is told about hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// Namespaces whose hosts every SIPCluster may take; `*` among them: all.
    pub namespaces: BTreeSet<String>,
    /// Seconds a released host is nobody's.
    pub quarantine: i64,
}

impl Default for Manager {
    fn default() -> Self {
        Self { namespaces: BTreeSet::from(["vino-system".to_owned()]), quarantine: 60 }
    }
}

impl Manager {
    /// Namespaces whose hosts every SIPCluster may take; `None`: all.
    pub fn host_namespaces(&self) -> Option<BTreeSet<String>> {
        (!self.namespaces.contains("*")).then(|| self.namespaces.clone())
    }
}

/// A client of the cluster that the kubeconfig names.
pub async fn client(context: Option<&str>) -> anyhow::Result<Client> {
    let config = match context {
        Some(context) => {
            let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
            Config::from_kubeconfig(&options).await.with_context(|| format!("--context {context}"))?
        }
        None => Config::infer().await.map_err(|error| {
            // The error tells of both ways, each with all of its causes; the kubeconfig is the one people mean.
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            anyhow!("no cluster: set KUBECONFIG, or give files with -f: {cause}")
        })?,
    };
    Client::try_from(config).context("no client for the cluster")
}

/// What the API server says, once and without its form.
pub fn said(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!("{}", status.message),
        other => other.into(),
    }
}

/// Reads all that decisions read, with what the files hold in place of what is there. Writes nothing.
pub async fn read(context: Option<&str>, files: &[PathBuf], recursive: bool) -> anyhow::Result<Cluster> {
    let client = client(context).await?;
    of(&client, files, recursive).await
}

async fn of(client: &Client, files: &[PathBuf], recursive: bool) -> anyhow::Result<Cluster> {
    let mut reader = Reader::default();
    let mut notes = Vec::new();
    match list(client, &ApiResource::erase::<SIPCluster>(&()), None, "").await? {
        Listed::All(found) => found.into_iter().for_each(|object| reader.accepted(object)),
        Listed::NoSuchKind => {
            bail!("the cluster does not know SIPClusters: `slipway crds | kubectl apply -f -` defines them")
        }
        Listed::Forbidden(why) => bail!("SIPClusters may not be listed: {why}"),
    }
    match list(client, &ApiResource::erase::<BareMetalHost>(&()), None, "").await? {
        Listed::All(found) => found.into_iter().for_each(|object| reader.accepted(object)),
        Listed::NoSuchKind => {
            notes.push("the cluster does not know BareMetalHosts: Metal3 is not installed".to_owned());
        }
        Listed::Forbidden(why) => bail!("BareMetalHosts may not be listed: {why}"),
    }
    let passed_over = |bad: Vec<Bad>| bad.into_iter().map(|bad| format!("passed over: {bad}"));
    notes.extend(passed_over(reader.bad()));
    let bad = reader.files(files, recursive);
    if !bad.is_empty() {
        return Err(BadInput(bad).into());
    }
    let unreadable = secrets(client, &mut reader, &mut notes).await?;
    let (objects, bad) = reader.finish();
    notes.extend(passed_over(bad));
    let manager = manager(client, &mut notes).await?;
    Ok(Cluster { objects, unreadable, manager, notes })
}

/// Reads the Secrets of the namespaces that hosts name. Those that may not be read.
async fn secrets(client: &Client, reader: &mut Reader, notes: &mut Vec<String>) -> anyhow::Result<BTreeSet<String>> {
    let hosts = reader.objects().hosts.iter().map(|found| Host::from(found.object.clone()));
    let namespaces: BTreeSet<String> =
        hosts.flat_map(|host| [host.network_data, host.credentials]).flatten().map(|secret| secret.namespace).collect();
    let mut unreadable = BTreeSet::new();
    for namespace in namespaces {
        match list(client, &ApiResource::erase::<Secret>(&()), Some(&namespace), "").await? {
            Listed::All(found) => found.into_iter().for_each(|object| reader.accepted(object)),
            Listed::NoSuchKind | Listed::Forbidden(_) => {
                notes.push(format!("Secrets of namespace {namespace} may not be read: network data and credentials there count as usable"));
                unreadable.insert(namespace);
            }
        }
    }
    Ok(unreadable)
}

enum Listed {
    All(Vec<serde_json::Value>),
    NoSuchKind,
    Forbidden(String),
}

async fn list(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
    labels: &str,
) -> anyhow::Result<Listed> {
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let mut params = ListParams::default().limit(PAGE);
    if !labels.is_empty() {
        params = params.labels(labels);
    }
    let mut found = Vec::new();
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Listed::NoSuchKind),
            Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Listed::Forbidden(status.message)),
            Err(error) => return Err(said(error)).with_context(|| format!("cannot list {}", resource.plural)),
        };
        for mut object in page.items {
            object.metadata.managed_fields = None;
            let mut value = serde_json::to_value(object)?;
            // Items of a list come without them.
            value["apiVersion"] = resource.api_version.clone().into();
            value["kind"] = resource.kind.clone().into();
            found.push(value);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(Listed::All(found)),
        }
    }
}

/// What the manager is told, read from its Deployment; and a note if nobody is there to do it.
async fn manager(client: &Client, notes: &mut Vec<String>) -> anyhow::Result<Option<Manager>> {
    for labels in MANAGERS {
        let Listed::All(found) = list(client, &ApiResource::erase::<Deployment>(&()), None, labels).await? else {
            return Ok(None);
        };
        let deployments = found.into_iter().filter_map(|object| serde_json::from_value::<Deployment>(object).ok());
        for deployment in deployments {
            let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
            let Some(manager) = pod.into_iter().flat_map(|pod| &pod.containers).find_map(told) else { continue };
            notes.extend(idle(client, &deployment).await?);
            return Ok(Some(manager));
        }
    }
    Ok(None)
}

/// Why what is shown is not being done, if it is not: the manager has no ready pod, or nobody renews its lease.
async fn idle(client: &Client, manager: &Deployment) -> anyhow::Result<Option<String>> {
    let namespace = manager.namespace().unwrap_or_default();
    let name = manager.name_any();
    if manager.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0) == 0 {
        return Ok(Some(format!(
            "Deployment {namespace}/{name} has no ready pod: nobody carries out what is shown here"
        )));
    }
    let Listed::All(leases) = list(client, &ApiResource::erase::<Lease>(&()), Some(&namespace), "").await? else {
        return Ok(None);
    };
    let leases = leases.into_iter().filter_map(|object| serde_json::from_value::<Lease>(object).ok());
    let lease = leases.into_iter().find(|lease| lease.name_any() == LEASE);
    Ok(unrenewed(lease.as_ref(), Timestamp::now())
        .map(|why| format!("nobody leads, so nobody carries out what is shown here: lease {namespace}/{LEASE} {why}")))
}

/// What is wrong with a lease that nobody keeps. As long again as it holds is for clocks that differ.
fn unrenewed(lease: Option<&Lease>, now: Timestamp) -> Option<String> {
    let Some(spec) = lease.and_then(|lease| lease.spec.as_ref()) else { return Some("is not there".to_owned()) };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let Some(renewed) = spec.renew_time.as_ref().map(|time| time.0).filter(|_| !holder.is_empty()) else {
        return Some("has no holder".to_owned());
    };
    let holds = i64::from(spec.lease_duration_seconds.unwrap_or(15));
    let renewed = renewed.as_second();
    let since = Timestamp::from_second(renewed).unwrap_or_default();
    (now.as_second() - renewed > 2 * holds).then(|| format!("was last renewed at {since}"))
}

/// What a container is told, if it is a manager of ours.
fn told(container: &Container) -> Option<Manager> {
    let args: Vec<&str> = container.command.iter().chain(&container.args).flatten().map(String::as_str).collect();
    let variable = |name: &str| container.env.iter().flatten().find(|v| v.name == name)?.value.clone();
    let is_ours = container.env.iter().flatten().any(|v| v.name.starts_with("SLIPWAY_"))
        || args.iter().any(|arg| arg.starts_with("--host-namespaces") || arg.starts_with("--controllers"));
    if container.name != "manager" || !is_ours {
        return None;
    }
    let defaults = Manager::default();
    let namespaces = argument(&args, "--host-namespaces").or_else(|| variable("SLIPWAY_HOST_NAMESPACES"));
    let quarantine = argument(&args, "--quarantine-seconds").or_else(|| variable("SLIPWAY_QUARANTINE_SECONDS"));
    Some(Manager {
        namespaces: namespaces
            .map_or(defaults.namespaces, |list| list.split(',').map(|n| n.trim().to_owned()).collect()),
        quarantine: quarantine.and_then(|text| text.parse().ok()).unwrap_or(defaults.quarantine),
    })
}

/// The value of `--name=value` or `--name value`.
fn argument(args: &[&str], name: &str) -> Option<String> {
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.strip_prefix(name) {
            Some("") => return rest.next().map(|value| (*value).to_owned()),
            Some(value) if value.starts_with('=') => return Some(value[1..].to_owned()),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[test]
    fn a_lease_that_nobody_renews_is_told() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let lease = |spec: Value| serde_json::from_value::<Lease>(json!({ "spec": spec })).expect("a lease");
        let held = lease(
            json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "1970-01-01T00:01:40.000000Z"}),
        );
        assert_eq!(unrenewed(Some(&held), at(130)), None);
        assert_eq!(unrenewed(Some(&held), at(131)).as_deref(), Some("was last renewed at 1970-01-01T00:01:40Z"));
        let free = lease(json!({"holderIdentity": "", "renewTime": "1970-01-01T00:01:40.000000Z"}));
        assert_eq!(unrenewed(Some(&free), at(100)).as_deref(), Some("has no holder"));
        assert_eq!(unrenewed(None, at(100)).as_deref(), Some("is not there"));
    }

    /// A cluster with hosts that are labelled for a tenant, one of its size, and a manager that has gone.
    fn cluster() -> testkit::Api {
        let api = testkit::Api::new();
        let labels = json!({"flavor": "worker", "sip.airshipit.org/cluster-namespace": "default",
            "sip.airshipit.org/cluster-name": "edge", "sip.airshipit.org/node-type": "Worker"});
        for (name, labels) in [("w0", labels.clone()), ("w1", labels), ("w2", json!({"flavor": "worker"}))] {
            api.seed(json!({
                "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
                "metadata": {"namespace": "default", "name": name, "uid": name, "labels": labels},
                "spec": {"bmc": {"credentialsName": "bmc"}, "networkData": {"name": "net"}},
            }));
        }
        let text = |key: &str, text: &str| json!({ key: base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text) });
        let mut bmc = text("username", "u");
        bmc["password"] = text("password", "p")["password"].clone();
        let net = text("networkData", r#"{"networks": [{"id": "oam", "ip_address": "192.0.2.1"}]}"#);
        for (name, data) in [("bmc", bmc), ("net", net)] {
            let metadata = json!({"namespace": "default", "name": name});
            api.seed(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}));
        }
        let mut edge = serde_json::to_value(manifest(2)).expect("JSON");
        let entry = |name: &str| json!({"namespace": "default", "name": name, "uid": name, "role": "Worker", "state": "Claimed"});
        edge["status"] = json!({"established": true, "hosts": [entry("w0"), entry("w1")]});
        api.seed(edge);
        api.seed(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "slipway-system", "name": "slipway-manager", "labels": {"app.kubernetes.io/name": "slipway-manager"}},
            "spec": {"selector": {"matchLabels": {"app": "m"}}, "template": {"metadata": {"labels": {"app": "m"}}, "spec": {"containers": [{"name": "manager", "args": ["--controllers=sip"]}]}}},
        }));
        api
    }

    fn manifest(workers: i32) -> Value {
        json!({
            "apiVersion": "airship.airshipit.org/v1", "kind": "SIPCluster",
            "metadata": {"namespace": "default", "name": "edge"},
            "spec": {"services": {}, "nodes": {"Worker": {"labelSelector": {"matchLabels": {"flavor": "worker"}}, "count": {"active": workers}}}},
        })
    }

    /// What becomes of the tenant when a manifest of it with so many workers is applied.
    async fn headline(workers: i32) -> (String, Vec<String>) {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("changed.json");
        std::fs::write(&file, manifest(workers).to_string()).expect("written");
        let Cluster { objects, unreadable, manager, notes } =
            of(&cluster().client(), &[file], false).await.expect("it is read");
        let settings = plan_sip::site::Settings {
            host_namespaces: manager.expect("a manager").host_namespaces(),
            ..plan_sip::site::Settings::default()
        };
        let known = crate::site::Known { unreadable, now: None };
        let mut site = crate::site::site(&objects, settings, &known);
        let plans = plan_sip::order::sweep(&mut site);
        (crate::plan::headline(&plans[0].1), notes)
    }

    #[tokio::test]
    async fn a_manifest_over_a_live_cluster_keeps_what_the_tenant_has() {
        assert_eq!(headline(2).await.0, "nothing to do, 2 of 2 hosts claimed");
        assert_eq!(headline(3).await.0, "1 host to claim");
        assert_eq!(headline(9).await.0, "blocked; 1 host to claim", "nothing is given back");
        assert_eq!(headline(1).await.0, "1 host to release now");
    }

    #[tokio::test]
    async fn a_manager_without_a_ready_pod_is_told() {
        let notes = headline(2).await.1;
        assert_eq!(
            notes,
            ["Deployment slipway-system/slipway-manager has no ready pod: nobody carries out what is shown here"]
        );
    }

    fn manager(namespaces: &[&str], quarantine: i64) -> Manager {
        Manager { namespaces: namespaces.iter().map(|n| (*n).to_owned()).collect(), quarantine }
    }

    #[rstest]
    #[case::by_environment(json!({"env": [{"name": "SLIPWAY_HOST_NAMESPACES", "value": "metal3,pool"}]}), Some(manager(&["metal3", "pool"], 60)))]
    #[case::by_argument(json!({"args": ["--host-namespaces=metal3", "--quarantine-seconds", "5"]}), Some(manager(&["metal3"], 5)))]
    #[case::the_argument_counts(json!({"args": ["--host-namespaces=a"], "env": [{"name": "SLIPWAY_HOST_NAMESPACES", "value": "b"}]}), Some(manager(&["a"], 60)))]
    #[case::told_nothing(json!({"args": ["--controllers=sip"]}), Some(manager(&["vino-system"], 60)))]
    #[case::another_operator(json!({"args": ["--metrics-addr=:8080"]}), None)]
    #[case::a_proxy_beside_it(json!({"name": "kube-rbac-proxy", "args": ["--controllers=sip"]}), None)]
    fn the_manager_is_found_by_what_it_is_told(#[case] mut container: Value, #[case] said: Option<Manager>) {
        if container.get("name").is_none() {
            container["name"] = json!("manager");
        }
        assert_eq!(told(&serde_json::from_value(container).expect("a container")), said);
    }
}
