//! From a fresh machine to a running Slipway with a tenant.

use std::{fs, os::unix::fs::symlink, path::Path, time::Duration};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::{
    before, bmc,
    cluster::{self, containerd},
    config::{self, HOSTS, HOSTS_NAMESPACE, Host, TENANT_NAME},
    context::Cx,
    deploy, down, example,
    gobuild::{self, Programs},
    hosts,
    images::{self, Built, Image},
    kube::Kubectl,
    packages, process, summary,
    tenant::{self, TenantSpec},
};

/// The hosts that run the sample tenant's control plane.
const TENANT_HOSTS: &[Host] = HOSTS.split_at(tenant::SAMPLE_SIZE).0;

/// Makes everything that is missing and repairs what is broken. With `base`, only the cluster.
pub fn up(cx: &Cx, base: bool) -> Result<()> {
    packages::ensure(cx)?;
    if !before::complete() && !process::recorded().is_empty() {
        cx.steps.line("the stack runs, but its state was removed: starting over");
        down::down(cx)?;
    }
    let programs = gobuild::programs(cx)?;
    // Before the cluster starts: compiling takes all of a small machine, and health checks would fail meanwhile.
    let built = if base { Vec::new() } else { build_images(cx)? };
    tools(cx, &programs)?;
    let kubectl = cluster::up(cx, &programs)?;
    if !base {
        hosts::up(cx)?;
        bmc::up(cx)?;
        sample_hosts(cx, &kubectl)?;
        tenant::start(cx, &TenantSpec { name: TENANT_NAME, hosts: TENANT_HOSTS, sans: Vec::new() })?;
        load(cx, &kubectl, &built)?;
        // Where dev/deploy/volume.yaml points; a local volume is not made by anybody.
        fs::create_dir_all(config::state("volumes/auth-edge"))?;
        deploy::into(cx, &kubectl, Path::new("dev/deploy"))?;
        if deploy::possible(cx) && example::up(cx, &kubectl)? {
            return summary::print(cx, &kubectl);
        }
    }
    println!("export KUBECONFIG={}", cx.kubeconfig().display());
    Ok(())
}

/// Puts `kubectl` and `slipway` where the last words of `make up` say they are, wherever they came from.
fn tools(cx: &Cx, programs: &Programs) -> Result<()> {
    let kubectl = programs.kubernetes("kubectl").to_owned();
    for (name, file) in [("kubectl", kubectl), ("slipway", images::command_line(cx))] {
        let link = cx.tools().join(name);
        if link == file || !file.exists() || fs::read_link(&link).is_ok_and(|now| now == file) {
            continue;
        }
        // kubectl of our own build is such a link already, a relative one beside the binary.
        if link.canonicalize().is_ok_and(|now| file.canonicalize().is_ok_and(|file| now == file)) {
            continue;
        }
        fs::create_dir_all(cx.tools())?;
        let _ = fs::remove_file(&link);
        symlink(&file, &link).with_context(|| format!("cannot link {} to {}", link.display(), file.display()))?;
    }
    Ok(())
}

/// The images of everything that runs in pods; none while there is nothing to deploy.
fn build_images(cx: &Cx) -> Result<Vec<Built>> {
    if !deploy::possible(cx) {
        return Ok(Vec::new());
    }
    gobuild::dex(cx)?;
    images::build(cx, &Image::ALL)
}

/// Gives the node the images; pods that run an older one of the same name are made anew by their controllers.
fn load(cx: &Cx, kubectl: &Kubectl, built: &[Built]) -> Result<()> {
    cx.steps.run("load images", |step| {
        let mut changed = Vec::new();
        for image in built {
            step.note(&image.name);
            if containerd::import(step, image)? {
                changed.push(image.name.as_str());
            }
        }
        if changed.is_empty() {
            return Ok("all there".to_owned());
        }
        let pods = kubectl.json(step, "get pods --all-namespaces")?;
        for pod in pods["items"].as_array().into_iter().flatten() {
            let mut containers = pod["spec"]["containers"].as_array().into_iter().flatten();
            if containers.any(|container| container["image"].as_str().is_some_and(|image| changed.contains(&image))) {
                let field = |name: &str| pod["metadata"][name].as_str().unwrap_or_default().to_owned();
                let line = format!("delete pod {} --namespace={} --wait=false", field("name"), field("namespace"));
                kubectl.run(step, &line)?;
            }
        }
        Ok(changed.join(", "))
    })
}

/// Applies metal3's CRD and the sample hosts, which metal3 would have registered.
fn sample_hosts(cx: &Cx, kubectl: &Kubectl) -> Result<()> {
    let crd = gobuild::metal3_crd(cx)?;
    cx.steps.run("BareMetalHosts", |step| {
        let apply = "apply --server-side --force-conflicts --field-manager=slipway-local-stack --filename";
        kubectl.run_on(step, apply, &crd)?;
        // Not `kubectl wait`: it fails on an object that has no conditions yet.
        let line = "get crd baremetalhosts.metal3.io --output=jsonpath={.status.conditions[?(@.type==\"Established\")].status}";
        kubectl.wait(step, "the CRD to be served", Duration::from_mins(1), line, |status| status == "True")?;
        kubectl.run_on(step, apply, &cx.repo.join("dev/sample/hosts.yaml"))?;
        let known = kubectl.json(step, &format!("get baremetalhosts --namespace={HOSTS_NAMESPACE}"))?;
        for host in HOSTS {
            // Once only: from then on the status belongs to whoever plays metal3.
            let mut items = known["items"].as_array().into_iter().flatten();
            let state = items
                .find(|item| item["metadata"]["name"] == host.name)
                .map(|item| &item["status"]["provisioning"]["state"]);
            if state.is_some_and(|state| !state.is_null() && *state != "") {
                continue;
            }
            let status = json!({ "status": {
                "operationalStatus": "OK",
                "errorMessage": "",
                "errorCount": 0,
                "poweredOn": true,
                "hardwareProfile": "unknown",
                "provisioning": { "ID": host.system(), "state": "available", "image": { "url": "" } },
            } });
            let line = format!(
                "patch baremetalhost {} --namespace={HOSTS_NAMESPACE} --subresource=status --type=merge --patch",
                host.name
            );
            step.run(kubectl.command(&line).arg(status.to_string()))?;
        }
        Ok(format!("{} in namespace {HOSTS_NAMESPACE}, marked available as metal3 would", HOSTS.len()))
    })
}
