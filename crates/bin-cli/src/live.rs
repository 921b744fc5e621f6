//! The live cluster: its SIPClusters, hosts and Secrets, as far as they may be read, and what its manager is told.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use api::SIPCluster;
use api_foreign::BareMetalHost;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Container, Secret},
};
use kube::{
    Api, Client, Config,
    api::ListParams,
    config::KubeConfigOptions,
    core::{ApiResource, DynamicObject},
};
use plan_sip::host::Host;

use crate::input::{Objects, Reader};

/// Objects per page of a list.
const PAGE: u32 = 500;
/// Labels of the manager's Deployment: ours, and those of the original, in whose place it may have been put.
const MANAGERS: [&str; 2] = ["app.kubernetes.io/name=slipway-manager", "control-plane=controller-manager"];

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
    /// Namespaces whose hosts every SIPCluster may take.
    pub host_namespaces: BTreeSet<String>,
    /// Seconds a released host is nobody's.
    pub quarantine: i64,
}

impl Default for Manager {
    fn default() -> Self {
        Self { host_namespaces: BTreeSet::from(["vino-system".to_owned()]), quarantine: 60 }
    }
}

/// A client of the cluster that the kubeconfig names.
pub async fn client(context: Option<&str>) -> anyhow::Result<Client> {
    let config = match context {
        Some(context) => {
            let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
            Config::from_kubeconfig(&options).await.with_context(|| format!("--context {context}"))?
        }
        None => Config::infer().await.context("no cluster: set KUBECONFIG, or give files with -f")?,
    };
    Client::try_from(config).context("no client for the cluster")
}

/// Reads all that decisions read. Writes nothing.
pub async fn read(context: Option<&str>) -> anyhow::Result<Cluster> {
    let client = client(context).await?;
    let mut reader = Reader::default();
    let mut notes = Vec::new();
    match list(&client, &ApiResource::erase::<SIPCluster>(&()), None, "").await? {
        Listed::All(found) => found.into_iter().for_each(|object| reader.accepted(object)),
        Listed::NoSuchKind => {
            bail!("the cluster does not know SIPClusters: `slipway crds | kubectl apply -f -` defines them")
        }
        Listed::Forbidden(why) => bail!("SIPClusters may not be listed: {why}"),
    }
    match list(&client, &ApiResource::erase::<BareMetalHost>(&()), None, "").await? {
        Listed::All(found) => found.into_iter().for_each(|object| reader.accepted(object)),
        Listed::NoSuchKind => {
            notes.push("the cluster does not know BareMetalHosts: Metal3 is not installed".to_owned());
        }
        Listed::Forbidden(why) => bail!("BareMetalHosts may not be listed: {why}"),
    }
    let (objects, bad) = reader.finish();
    notes.extend(bad.iter().map(|bad| format!("passed over: {bad}")));
    let mut cluster = Cluster { objects, unreadable: BTreeSet::new(), manager: manager(&client).await?, notes };
    secrets(&client, &mut cluster).await?;
    Ok(cluster)
}

/// Reads the Secrets of the namespaces that hosts name.
async fn secrets(client: &Client, cluster: &mut Cluster) -> anyhow::Result<()> {
    let hosts = cluster.objects.hosts.iter().map(|found| Host::from(found.object.clone()));
    let namespaces: BTreeSet<String> =
        hosts.flat_map(|host| [host.network_data, host.credentials]).flatten().map(|secret| secret.namespace).collect();
    let mut reader = Reader::default();
    for namespace in namespaces {
        match list(client, &ApiResource::erase::<Secret>(&()), Some(&namespace), "").await? {
            Listed::All(found) => found.into_iter().for_each(|object| reader.accepted(object)),
            Listed::NoSuchKind | Listed::Forbidden(_) => {
                cluster.notes.push(format!("Secrets of namespace {namespace} may not be read: network data and credentials there count as usable"));
                cluster.unreadable.insert(namespace);
            }
        }
    }
    let (objects, bad) = reader.finish();
    cluster.notes.extend(bad.iter().map(|bad| format!("passed over: {bad}")));
    cluster.objects.secrets = objects.secrets;
    Ok(())
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
            Err(error) => return Err(error).with_context(|| format!("cannot list {}", resource.plural)),
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

/// What the manager is told, read from its Deployment.
async fn manager(client: &Client) -> anyhow::Result<Option<Manager>> {
    for labels in MANAGERS {
        let Listed::All(found) = list(client, &ApiResource::erase::<Deployment>(&()), None, labels).await? else {
            return Ok(None);
        };
        let deployments = found.into_iter().filter_map(|object| serde_json::from_value::<Deployment>(object).ok());
        let pods = deployments.filter_map(|deployment| deployment.spec?.template.spec);
        if let Some(manager) = pods.flat_map(|pod| pod.containers).find_map(|container| told(&container)) {
            return Ok(Some(manager));
        }
    }
    Ok(None)
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
        host_namespaces: namespaces
            .map_or(defaults.host_namespaces, |list| list.split(',').map(|n| n.trim().to_owned()).collect()),
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

    fn manager(namespaces: &[&str], quarantine: i64) -> Manager {
        Manager { host_namespaces: namespaces.iter().map(|n| (*n).to_owned()).collect(), quarantine }
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
