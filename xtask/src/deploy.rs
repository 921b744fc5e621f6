//! Installs Slipway into a cluster from `deploy/`, and waits until it is available.

use std::{path::Path, time::Duration};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::{
    config::{API_PORT, NODE_IP},
    context::Cx,
    gobuild,
    kube::Kubectl,
    step::Step,
};

/// How long the manager may take to become available.
const LIMIT: Duration = Duration::from_mins(3);

/// What the names of images begin with that are built here and in no registry.
const LOCAL_IMAGES: &str = "slipway.local/";

/// `make deploy`: into the cluster that KUBECONFIG names, from `deploy/` or a kustomization on top of it.
pub fn deploy(cx: &Cx, overlay: Option<&Path>) -> Result<()> {
    let kubectl = Kubectl::of_environment(&gobuild::kubectl(cx)?);
    let dir = cx.repo.join(overlay.unwrap_or(Path::new("deploy")));
    cx.steps.run("cluster", |step| {
        let name = kubectl.output(step, "config view --minify --output=jsonpath={.clusters[0].cluster.server}")?;
        if name.is_empty() {
            bail!("KUBECONFIG names no cluster: set it, e.g. `export KUBECONFIG=$HOME/.kube/config`");
        }
        if name != format!("https://{NODE_IP}:{API_PORT}") {
            let manifests = step.output(kubectl.command("kustomize").arg(&dir))?;
            let missing = local_images(&manifests);
            if !missing.is_empty() {
                bail!(
                    "{name} cannot pull {}, which only the local stack has: push them to a registry and name them in an \
                     overlay (`make deploy OVERLAY=DIR`, docs/guides/install.md)",
                    missing.join(", ")
                );
            }
        }
        Ok(name)
    })?;
    into(cx, &kubectl, &dir)
}

/// Images in rendered manifests that no registry has, each once.
fn local_images(manifests: &str) -> Vec<&str> {
    let words = manifests.split(|c: char| c.is_whitespace() || c == '"' || c == '\'');
    let mut found: Vec<&str> = words.filter(|word| word.starts_with(LOCAL_IMAGES)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether there is something to install.
pub fn possible(cx: &Cx) -> bool {
    cx.repo.join("deploy/crds").is_dir()
}

/// Installs into this cluster, from a kustomization of the checkout. Says so when there is nothing to install yet.
pub fn into(cx: &Cx, kubectl: &Kubectl, kustomization: &Path) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_no_registry_has_are_found_wherever_they_are_named() {
        let manifests = "image: slipway.local/slipway:dev\nenv:\n- name: SLIPWAY_IMAGE\n  value: slipway.local/slipway:dev\n\
                         - value: \"slipway.local/jump-host:dev\"\n- value: docker.io/library/haproxy:3.2\n";
        assert_eq!(local_images(manifests), ["slipway.local/jump-host:dev", "slipway.local/slipway:dev"]);
        assert!(local_images("image: registry.example.org/slipway.local/slipway:1\n").is_empty());
    }
}
