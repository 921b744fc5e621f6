//! kubelet and kube-proxy of one node.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::Result;
use serde_json::json;

use crate::{
    cluster::containerd,
    config::{
        CGROUP, HOSTS_CIDR, KUBELET_HEALTH_PORT, KUBELET_PORT, NODE_IP, NODE_NAME, POD_CIDR, PROXY_HEALTH_PORT,
        PROXY_METRICS_PORT, state,
    },
    context::Cx,
    files,
    gobuild::Programs,
    http,
    kube::Kubectl,
    process::{Outcome, Service},
    step::Step,
};

const LOCALHOST: [u8; 4] = [127, 0, 0, 1];

/// Makes kubelet run and waits until its node is Ready.
pub fn kubelet(cx: &Cx, step: &Step, programs: &Programs, kubectl: &Kubectl) -> Result<Outcome> {
    let config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_IP,
        "port": KUBELET_PORT,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": KUBELET_HEALTH_PORT,
        "authentication": {
            "anonymous": { "enabled": false },
            "webhook": { "enabled": true },
            "x509": { "clientCAFile": state("base/pki/ca.crt") },
        },
        "authorization": { "mode": "Webhook" },
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{CGROUP}"),
        "containerRuntimeEndpoint": format!("unix://{}", containerd::socket().display()),
        "evictionHard": {},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "failSwapOn": false,
        "failCgroupV1": false,
        // There is no DNS in the cluster: nothing in it needs a name.
        "clusterDNS": [],
        "resolvConf": resolv_conf()?,
        "podLogsDir": state("pod-logs"),
        "volumePluginDir": state("kubelet-plugins"),
        "serializeImagePulls": false,
        // What is mounted anew after a Secret changed: the default of a minute makes every trial long.
        "syncFrequency": "10s",
        "shutdownGracePeriod": "0s",
    });
    let file = state("kubelet.json");
    fs::create_dir_all(state("kubelet"))?;
    files::write(&file, &serde_json::to_string_pretty(&config)?)?;
    let service = Service::new("kubelet", programs.kubernetes("kubelet"), cx.steps.logs())
        .file("config", file)
        .file("kubeconfig", state("base/kubelet.conf"))
        .flag("hostname-override", NODE_NAME)
        .flag("node-ip", NODE_IP)
        .flag("root-dir", state("kubelet").display())
        .flag("cert-dir", state("kubelet/pki").display())
        .flag("v", 1);
    let limit = Duration::from_mins(1);
    let outcome = service.ensure(step, limit, || http::healthy(LOCALHOST, KUBELET_HEALTH_PORT, "/healthz"))?;
    let line = format!("get node {NODE_NAME} --output=jsonpath={{.status.conditions[?(@.type==\"Ready\")].status}}");
    kubectl.wait(step, "the node to be Ready", limit, &line, |status| status == "True")?;
    Ok(outcome)
}

/// Makes kube-proxy run. Its node ports listen on the hosts' network alone.
pub fn proxy(cx: &Cx, step: &Step, programs: &Programs) -> Result<Outcome> {
    let config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": { "kubeconfig": state("base/kube-proxy.conf") },
        "clusterCIDR": POD_CIDR,
        "hostnameOverride": NODE_NAME,
        "nodePortAddresses": [HOSTS_CIDR],
        "healthzBindAddress": format!("127.0.0.1:{PROXY_HEALTH_PORT}"),
        "metricsBindAddress": format!("127.0.0.1:{PROXY_METRICS_PORT}"),
        // Kernel-wide limits stay as the machine has them.
        "conntrack": { "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
        "iptables": { "localhostNodePorts": false },
    });
    let file = state("kube-proxy.json");
    files::write(&file, &serde_json::to_string_pretty(&config)?)?;
    let mut service = Service::new("kube-proxy", programs.kubernetes("kube-proxy"), cx.steps.logs())
        .file("config", file)
        .flag("v", 1);
    service.inputs.push(state("base/kube-proxy.conf"));
    service.ensure(step, Duration::from_secs(30), || http::healthy(LOCALHOST, PROXY_HEALTH_PORT, "/healthz"))
}

/// The machine's name servers for pods, without those that only answer on its loopback.
fn resolv_conf() -> Result<PathBuf> {
    let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let local = |line: &str| {
        ["127.", "::1"].iter().any(|prefix| line.trim_start_matches("nameserver").trim().starts_with(prefix))
    };
    let usable: Vec<&str> = text.lines().filter(|line| !(line.starts_with("nameserver") && local(line))).collect();
    let file = state("resolv.conf");
    files::write(&file, &(usable.join("\n") + "\n"))?;
    Ok(file)
}
