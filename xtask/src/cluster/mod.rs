//! The base cluster: one node, from nothing to Ready, each part kept if it is well and started anew if not.

pub mod api_server;
pub mod containerd;
pub mod etcd;
mod node;
pub mod pki;

use std::{fs, time::Duration};

use anyhow::Result;

use crate::{
    before,
    config::{
        API_PORT, CONTROLLER_MANAGER_PORT, ETCD_CLIENT_PORT, ETCD_HEALTH_PORT, ETCD_PEER_PORT, NODE_IP, NODE_NAME,
        POD_CIDR, RUN, SCHEDULER_PORT, SERVICE_CIDR, STATE, state,
    },
    context::Cx,
    files, firewall,
    gobuild::Programs,
    http,
    kube::Kubectl,
    net,
    process::{Outcome, Service},
    step::Step,
};
use api_server::ApiServer;
use etcd::{Health, Member};
use pki::Pki;

/// The pause image's name, known to containerd and built here.
pub const PAUSE_IMAGE: &str = "slipway.local/pause:1";

const LOCALHOST: [u8; 4] = [127, 0, 0, 1];

/// How long a part may take to answer, on a machine that builds at the same time.
const LIMIT: Duration = Duration::from_secs(90);

/// The base cluster's control plane, as its certificates name it.
fn control_plane() -> Pki {
    Pki {
        dir: state("base"),
        cluster: "slipway-base".into(),
        node: NODE_NAME.into(),
        address: NODE_IP.to_string(),
        port: API_PORT,
        sans: vec!["localhost".into(), "127.0.0.1".into()],
        pods: POD_CIDR,
        services: SERVICE_CIDR,
    }
}

/// kubectl with all rights on the base cluster.
pub fn kubectl(programs: &Programs) -> Kubectl {
    Kubectl::new(programs.kubernetes("kubectl"), &control_plane().admin())
}

/// Brings the base cluster up, or repairs it.
pub fn up(cx: &Cx, programs: &Programs) -> Result<Kubectl> {
    fs::create_dir_all(STATE)?;
    fs::create_dir_all(RUN)?;
    let pki = control_plane();
    let kubectl = kubectl(programs);
    cx.steps.run("network", |step| {
        before::remember(step)?;
        net::bridge(step)?;
        before::set(step)?;
        firewall::open(step)?;
        Ok(format!("the node is {NODE_IP}"))
    })?;
    cx.steps.run("certificates", |step| {
        pki.ensure(step, programs.kubernetes("kubeadm"), None)?;
        Ok("there")
    })?;
    cx.steps.run("etcd", |step| etcd(cx, step, programs, &pki).map(says))?;
    cx.steps.run("kube-apiserver", |step| {
        let etcd = format!("https://127.0.0.1:{ETCD_CLIENT_PORT}");
        let server = ApiServer { name: "kube-apiserver".into(), pki: &pki, etcd, netns: None, extra: Vec::new() };
        let service = server.service(programs.kubernetes("kube-apiserver"), cx.steps.logs());
        let outcome = service.ensure(step, LIMIT, || kubectl.ready())?;
        first_rights(step, &kubectl)?;
        Ok(says(outcome))
    })?;
    cx.steps.run("kube-controller-manager", |step| controller_manager(cx, step, programs, &pki).map(says))?;
    cx.steps.run("kube-scheduler", |step| scheduler(cx, step, programs, &pki).map(says))?;
    cx.steps.run("containerd", |step| containerd::ensure(cx, step).map(says))?;
    cx.steps.run("kubelet", |step| {
        let outcome = node::kubelet(cx, step, programs, &kubectl)?;
        Ok(format!("{}, node Ready", says(outcome)))
    })?;
    cx.steps.run("kube-proxy", |step| node::proxy(cx, step, programs).map(says))?;
    publish(cx, &pki)?;
    Ok(kubectl)
}

/// What became of several parts together.
pub fn worst(outcomes: &[Outcome]) -> Outcome {
    let all = [Outcome::Restarted, Outcome::Started];
    all.into_iter().find(|outcome| outcomes.contains(outcome)).unwrap_or(Outcome::Kept)
}

/// What became of a part, in a word.
pub fn says(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Kept => "well",
        Outcome::Started => "started",
        Outcome::Restarted => "started anew",
    }
}

fn etcd(cx: &Cx, step: &Step, programs: &Programs, pki: &Pki) -> Result<Outcome> {
    let member = Member {
        service: "etcd".into(),
        name: "etcd".into(),
        pki,
        address: "127.0.0.1".into(),
        ports: (ETCD_CLIENT_PORT, ETCD_PEER_PORT, ETCD_HEALTH_PORT),
        health: Health::Loopback,
        cluster: format!("etcd=https://127.0.0.1:{ETCD_PEER_PORT}"),
        netns: None,
    };
    let service = member.service(&programs.etcd, cx.steps.logs());
    service.ensure(step, LIMIT, || http::healthy(LOCALHOST, ETCD_HEALTH_PORT, "/health"))
}

fn controller_manager(cx: &Cx, step: &Step, programs: &Programs, pki: &Pki) -> Result<Outcome> {
    let kubeconfig = pki.dir.join("controller-manager.conf");
    let service =
        Service::new("kube-controller-manager", programs.kubernetes("kube-controller-manager"), cx.steps.logs())
            .file("kubeconfig", &kubeconfig)
            .flag("authentication-kubeconfig", kubeconfig.display())
            .flag("authorization-kubeconfig", kubeconfig.display())
            .flag("bind-address", "127.0.0.1")
            .flag("secure-port", CONTROLLER_MANAGER_PORT)
            .flag("cluster-name", &pki.cluster)
            .flag("cluster-cidr", POD_CIDR)
            .flag("service-cluster-ip-range", SERVICE_CIDR)
            .flag("allocate-node-cidrs", "true")
            .flag("leader-elect", "false")
            .arg("--use-service-account-credentials")
            .file("root-ca-file", pki.cert("ca.crt"))
            .file("cluster-signing-cert-file", pki.cert("ca.crt"))
            .file("cluster-signing-key-file", pki.cert("ca.key"))
            .file("service-account-private-key-file", pki.cert("sa.key"))
            .file("client-ca-file", pki.cert("ca.crt"))
            .file("requestheader-client-ca-file", pki.cert("front-proxy-ca.crt"))
            .flag("v", 1);
    let kubectl = kubectl(programs);
    service.ensure(step, LIMIT, || kubectl.healthy_at(CONTROLLER_MANAGER_PORT))
}

fn scheduler(cx: &Cx, step: &Step, programs: &Programs, pki: &Pki) -> Result<Outcome> {
    let kubeconfig = pki.dir.join("scheduler.conf");
    let service = Service::new("kube-scheduler", programs.kubernetes("kube-scheduler"), cx.steps.logs())
        .file("kubeconfig", &kubeconfig)
        .flag("authentication-kubeconfig", kubeconfig.display())
        .flag("authorization-kubeconfig", kubeconfig.display())
        .flag("bind-address", "127.0.0.1")
        .flag("secure-port", SCHEDULER_PORT)
        .flag("leader-elect", "false")
        .flag("v", 1);
    let kubectl = kubectl(programs);
    service.ensure(step, LIMIT, || kubectl.healthy_at(SCHEDULER_PORT))
}

/// Rights that kubeadm gives in phases which need its static pods: administrators, and the API server on kubelets.
fn first_rights(step: &Step, kubectl: &Kubectl) -> Result<()> {
    kubectl.apply(
        step,
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: kubeadm:cluster-admins }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: Group, name: kubeadm:cluster-admins }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: { name: slipway-dev:kubelet-api }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:kubelet-api-admin }
subjects: [{ apiGroup: rbac.authorization.k8s.io, kind: User, name: kube-apiserver-kubelet-client }]
",
    )
}

/// Puts the administrator's kubeconfig where people look for it.
fn publish(cx: &Cx, pki: &Pki) -> Result<()> {
    files::write_private(&cx.kubeconfig(), &fs::read_to_string(pki.dir.join("admin.conf"))?)
}
