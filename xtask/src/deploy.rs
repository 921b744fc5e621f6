//! Installs Slipway into a cluster from `deploy/`, and waits until it is available.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::{context::Cx, gobuild, kube::Kubectl, step::Step};

/// How long the manager may take to become available.
const LIMIT: Duration = Duration::from_mins(3);

/// `make deploy`: into the cluster that KUBECONFIG names.
pub fn deploy(cx: &Cx) -> Result<()> {
    let kubectl = Kubectl::of_environment(&gobuild::kubectl(cx)?);
    cx.steps.run("cluster", |step| {
        let name = kubectl.output(step, "config view --minify --output=jsonpath={.clusters[0].cluster.server}")?;
        if name.is_empty() {
            bail!("KUBECONFIG names no cluster: set it, e.g. `export KUBECONFIG=$HOME/.kube/config`");
        }
        Ok(name)
    })?;
    into(cx, &kubectl, "deploy")
}

/// Whether there is something to install.
pub fn possible(cx: &Cx) -> bool {
    cx.repo.join("deploy/crds").is_dir()
}

/// Installs into this cluster, from a kustomization of the checkout. Says so when there is nothing to install yet.
pub fn into(cx: &Cx, kubectl: &Kubectl, kustomization: &str) -> Result<()> {
    cx.steps.run("deploy", |step| {
        let dir = cx.repo.join(kustomization);
        if !possible(cx) {
            return Ok("deploy/crds is not there yet: `make gen` writes it".to_owned());
        }
        kubectl.run_on(
            step,
            "apply --server-side --force-conflicts --field-manager=slipway-install --kustomize",
            &dir,
        )?;
        let live: Value = {
            let mut get = kubectl.command("get --output=json --kustomize");
            serde_json::from_str(&step.output(get.arg(&dir))?)?
        };
        let deployments = of_kind(&live, "Deployment");
        for object in &deployments {
            available(step, kubectl, object)?;
        }
        Ok(format!("{} available", names(&deployments)))
    })
}

/// The objects of a kind in a List.
pub fn of_kind<'a>(list: &'a Value, kind: &str) -> Vec<&'a Value> {
    list["items"].as_array().into_iter().flatten().filter(|item| item["kind"] == kind).collect()
}

/// Names of objects, for people.
fn names(objects: &[&Value]) -> String {
    let names: Vec<&str> = objects.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
    names.join(", ")
}

fn available(step: &Step, kubectl: &Kubectl, deployment: &Value) -> Result<()> {
    let field = |name: &str| deployment["metadata"][name].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (field("namespace"), field("name"));
    step.note(format!("waiting for Deployment {namespace}/{name}"));
    let line = format!("rollout status deployment/{name} --namespace={namespace} --timeout={}s", LIMIT.as_secs());
    if let Err(error) = kubectl.run(step, &line) {
        // What people would look at next.
        for line in [
            format!("get pods --namespace={namespace} --output=wide"),
            format!("get events --namespace={namespace} --sort-by=.lastTimestamp"),
            format!("logs deployment/{name} --namespace={namespace} --tail=20"),
        ] {
            let _ = kubectl.run(step, &line);
        }
        return Err(error);
    }
    Ok(())
}
