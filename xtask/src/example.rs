//! The example tenant on the local stack: applied, waited for, and its API servers told of the tenant's OIDC provider.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Deserializer, Value, json};
use sha2::{Digest, Sha256};

use crate::{
    config::{HOSTS, TENANT_API_PORT, TENANT_NAME, TENANT_NAMESPACE},
    context::Cx,
    hosts,
    kube::Kubectl,
    process::hex,
    step::Step,
    tenant,
};

/// How long a tenant may take from creation to Ready, image start included.
const LIMIT: Duration = Duration::from_mins(5);
/// The API servers look at their file at once and, after a failure, once a minute.
const RELOAD: Duration = Duration::from_mins(3);

/// The key with which a person logs in to the tenant's jump host.
pub fn login_key(cx: &Cx) -> PathBuf {
    cx.repo.join(".slipway/id_ed25519")
}

/// Applies the example and waits until its tenant is served. False while there is no example.
pub fn up(cx: &Cx, kubectl: &Kubectl) -> Result<bool> {
    let file = cx.repo.join("examples/quickstart.yaml");
    if !file.exists() {
        cx.steps.run("example", |_| Ok("examples/quickstart.yaml is not there yet"))?;
        return Ok(false);
    }
    cx.steps.run("example", |step| {
        apply(cx, step, kubectl, &file)?;
        ready(step, kubectl)?;
        Ok(format!("{TENANT_NAMESPACE}/{TENANT_NAME} is Ready"))
    })?;
    cx.steps.run("tenant's login", |step| login(cx, step, kubectl))?;
    Ok(true)
}

/// The tenant's object.
pub fn sipcluster(step: &Step, kubectl: &Kubectl) -> Result<Value> {
    kubectl.json(step, &format!("get sipcluster {TENANT_NAME} --namespace={TENANT_NAMESPACE}"))
}

/// Applies the manifests, with the keys of this machine in them.
fn apply(cx: &Cx, step: &Step, kubectl: &Kubectl, file: &Path) -> Result<()> {
    hosts::key(step, &login_key(cx), "local stack login")?;
    let public = fs::read_to_string(login_key(cx).with_extension("pub"))?;
    let mut create = kubectl.command("create --dry-run=client --output=json --filename");
    let manifests = step.output(create.arg(file))?;
    let mut objects = Vec::new();
    for object in Deserializer::from_str(&manifests).into_iter::<Value>() {
        let mut object = object.context("the example is not what kubectl prints as JSON")?;
        if object["kind"] == "SIPCluster" {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or(TENANT_NAMESPACE).to_owned();
            if let Some(name) = object["spec"]["tenantCA"]["name"].as_str() {
                let key = object["spec"]["tenantCA"]["key"].as_str().unwrap_or("tls.crt");
                let authority = fs::read_to_string(tenant::authority(TENANT_NAME))?;
                objects.push(secret(&namespace, name, key, &authority));
            }
            for entry in object["spec"]["services"]["jumpHost"].as_array_mut().into_iter().flatten() {
                entry["sshAuthorizedKeys"] = json!([public.trim()]);
                if let Some(name) = entry["nodeSSHPrivateKeys"].as_str() {
                    let private = fs::read_to_string(hosts::node_key())?;
                    objects.push(secret(&namespace, name, "id_ed25519", &private));
                }
            }
        }
        objects.push(object);
    }
    let text: Vec<String> = objects.iter().map(Value::to_string).collect();
    kubectl.apply(step, &text.join("\n---\n"))
}

fn secret(namespace: &str, name: &str, key: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "namespace": namespace, "name": name },
        "stringData": { key: value },
    })
}

/// Waits for condition Ready, saying meanwhile what the tenant waits for.
fn ready(step: &Step, kubectl: &Kubectl) -> Result<()> {
    let mut last = String::new();
    step.wait("the tenant to be Ready", LIMIT, || {
        let object = sipcluster(step, kubectl)?;
        let conditions = object["status"]["conditions"].as_array();
        let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
        let word = |name: &str| ready.and_then(|ready| ready[name].as_str()).unwrap_or_default().to_owned();
        let said = format!("{}: {}", word("reason"), word("message"));
        if said != last {
            step.note(&said);
            last = said;
        }
        let current = ready.is_some_and(|ready| ready["observedGeneration"] == object["metadata"]["generation"]);
        Ok((word("status") == "True" && current).then_some(()))
    })
}

/// Gives the tenant's API servers what Slipway published about its OIDC provider, and waits until they use it.
fn login(cx: &Cx, step: &Step, kubectl: &Kubectl) -> Result<String> {
    let object = sipcluster(step, kubectl)?;
    let Some(name) = object["status"]["oidc"][0]["configMap"].as_str() else {
        return Ok("the tenant has no OIDC provider".into());
    };
    let published = kubectl.json(step, &format!("get configmap {name} --namespace={TENANT_NAMESPACE}"))?;
    let Some(config) = published["data"]["authentication-config.yaml"].as_str() else {
        bail!("ConfigMap {TENANT_NAMESPACE}/{name} has no key authentication-config.yaml");
    };
    tenant::set_authentication(TENANT_NAME, config)?;
    let loaded = format!("hash=\"sha256:{}\"}} 1", hex(&Sha256::digest(config)));
    let admin = kubectl.with(&tenant::kubeconfig(TENANT_NAME));
    for host in &HOSTS[..tenant::SAMPLE_SIZE] {
        let line = format!("--server=https://{}:{TENANT_API_PORT} get --raw /metrics", host.address());
        let what = format!("the API server of {} to trust the provider", host.name);
        admin.wait(step, &what, RELOAD, &line, |metrics| {
            metrics.lines().any(|line| line.contains("authentication_config") && line.ends_with(&loaded))
        })?;
    }
    let rights = cx.repo.join("examples/tenant-rbac.yaml");
    if rights.exists() {
        admin.run_on(step, "apply --server-side --force-conflicts --filename", &rights)?;
    }
    let issuer = object["status"]["oidc"][0]["issuerURL"].as_str().unwrap_or_default();
    Ok(format!("its API servers trust {issuer}"))
}
