//! From a fresh machine to a running Slipway with a tenant.

use anyhow::Result;
use serde_json::json;

use crate::{
    bmc, cluster,
    config::{HOSTS, HOSTS_NAMESPACE, Host, TENANT_NAME},
    context::Cx,
    deploy, example, gobuild, hosts,
    kube::Kubectl,
    packages, summary,
    tenant::{self, TenantSpec},
};

/// The hosts that run the sample tenant's control plane.
const TENANT_HOSTS: &[Host] = HOSTS.split_at(tenant::SAMPLE_SIZE).0;

/// Makes everything that is missing and repairs what is broken. With `base`, only the cluster.
pub fn up(cx: &Cx, base: bool) -> Result<()> {
    packages::ensure(cx)?;
    let programs = gobuild::programs(cx)?;
    let kubectl = cluster::up(cx, &programs)?;
    if !base {
        hosts::up(cx)?;
        bmc::up(cx)?;
        sample_hosts(cx, &kubectl)?;
        tenant::start(cx, &TenantSpec { name: TENANT_NAME, hosts: TENANT_HOSTS, sans: Vec::new() })?;
        deploy::into(cx, &kubectl)?;
        if example::up(cx, &kubectl)? {
            return summary::print(cx, &kubectl);
        }
    }
    println!("export KUBECONFIG={}", cx.kubeconfig().display());
    Ok(())
}

/// Applies metal3's CRD and the sample hosts, which metal3 would have registered.
fn sample_hosts(cx: &Cx, kubectl: &Kubectl) -> Result<()> {
    let crd = gobuild::metal3_crd(cx)?;
    cx.steps.run("BareMetalHosts", |step| {
        let apply = "apply --server-side --force-conflicts --field-manager=slipway-local-stack --filename";
        kubectl.run_on(step, apply, &crd)?;
        kubectl.run(step, "wait --for=condition=Established --timeout=60s crd/baremetalhosts.metal3.io")?;
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
