//! The sample tenant's control plane: real etcd members and API servers at the addresses of its hosts.

use std::{fs, path::PathBuf, thread, time::Duration};

use anyhow::{Context as _, Result, anyhow};

use crate::{
    cluster::{
        api_server::ApiServer,
        etcd::{Health, Member},
        pki::Pki,
        says, worst,
    },
    config::{Host, NODE_IP, TENANT_API_PORT, TENANT_POD_CIDR, TENANT_SERVICE_CIDR, state},
    context::Cx,
    files,
    gobuild::{self, Programs},
    http,
    kube::Kubectl,
    process::Outcome,
    step::Step,
};

/// etcd's ports on a host: clients, peers, health.
const ETCD_PORTS: (u16, u16, u16) = (2379, 2380, 2381);
const LIMIT: Duration = Duration::from_mins(2);

/// What the API servers authenticate with until an identity provider is there: nothing but certificates.
const NO_PROVIDER: &str = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n";

/// How many hosts run the sample tenant's control plane: the first of the table.
pub const SAMPLE_SIZE: usize = 3;

/// A tenant's control plane.
pub struct TenantSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// The hosts that run it: their namespaces exist.
    pub hosts: &'a [Host],
    /// Names and addresses under which its API is reached besides the hosts' own: those of the load balancer.
    pub sans: Vec<String>,
}

impl TenantSpec<'_> {
    fn members(&self) -> Vec<Pki> {
        let mut sans: Vec<String> = self.hosts.iter().map(|host| host.address().to_string()).collect();
        sans.push(NODE_IP.to_string());
        sans.extend(self.sans.iter().cloned());
        let member = |host: &Host| Pki {
            dir: folder(self.name).join(host.name),
            cluster: self.name.to_owned(),
            node: host.name.to_owned(),
            address: host.address().to_string(),
            port: TENANT_API_PORT,
            sans: sans.clone(),
            pods: TENANT_POD_CIDR,
            services: TENANT_SERVICE_CIDR,
        };
        self.hosts.iter().map(member).collect()
    }
}

fn folder(tenant: &str) -> PathBuf {
    state("tenant").join(tenant)
}

fn authentication(tenant: &str) -> PathBuf {
    folder(tenant).join("authentication.yaml")
}

/// The kubeconfig with all rights on a tenant, directly at its first host.
pub fn kubeconfig(tenant: &str) -> PathBuf {
    folder(tenant).join("super-admin.conf")
}

/// The certificate of the authority that signed a tenant's API servers' certificates.
pub fn authority(tenant: &str) -> PathBuf {
    folder(tenant).join("ca.crt")
}

/// Makes the tenant's control plane run.
pub fn start(cx: &Cx, spec: &TenantSpec<'_>) -> Result<()> {
    let programs = gobuild::programs(cx)?;
    let members = spec.members();
    cx.steps.run(&format!("tenant {} certificates", spec.name), |step| {
        for member in &members {
            member.ensure(step, programs.kubernetes("kubeadm"), members.first())?;
        }
        let first = members.first().context("a tenant needs a host")?;
        files::write_private(&kubeconfig(spec.name), &fs::read_to_string(first.admin())?)?;
        files::write(&authority(spec.name), &fs::read_to_string(first.cert("ca.crt"))?)?;
        if !authentication(spec.name).exists() {
            files::write(&authentication(spec.name), NO_PROVIDER)?;
        }
        Ok("there")
    })?;
    cx.steps.run(&format!("tenant {} etcd", spec.name), |step| {
        // All at once: none is healthy before most are there.
        let cluster: Vec<String> = spec.hosts.iter().map(|host| format!("{}={}", host.name, peer(host))).collect();
        let outcomes =
            together(spec.hosts, &members, |host, pki| etcd(cx, step, &programs, host, pki, &cluster.join(",")))?;
        Ok(format!("{} members, {}", members.len(), says(worst(&outcomes))))
    })?;
    cx.steps.run(&format!("tenant {} API servers", spec.name), |step| {
        let outcomes = together(spec.hosts, &members, |host, pki| api_server(cx, step, &programs, spec, host, pki))?;
        Ok(format!("{} of them, {}", members.len(), says(worst(&outcomes))))
    })
}

/// Gives the tenant's API servers an `AuthenticationConfiguration`. They read the file again by themselves.
pub fn set_authentication(tenant: &str, yaml: &str) -> Result<()> {
    files::write(&authentication(tenant), yaml)
}

fn peer(host: &Host) -> String {
    format!("https://{}:{}", host.address(), ETCD_PORTS.1)
}

fn etcd(cx: &Cx, step: &Step, programs: &Programs, host: &Host, pki: &Pki, cluster: &str) -> Result<Outcome> {
    let member = Member {
        service: format!("etcd-{}", host.name),
        name: host.name.to_owned(),
        pki,
        address: pki.address.clone(),
        ports: ETCD_PORTS,
        health: Health::There,
        cluster: cluster.to_owned(),
        netns: Some(host.netns()),
    };
    let service = member.service(&programs.etcd, cx.steps.logs());
    service.ensure(step, LIMIT, || http::healthy(host.address(), ETCD_PORTS.2, "/health"))
}

fn api_server(
    cx: &Cx,
    step: &Step,
    programs: &Programs,
    spec: &TenantSpec<'_>,
    host: &Host,
    pki: &Pki,
) -> Result<Outcome> {
    let servers: Vec<String> =
        spec.hosts.iter().map(|host| format!("https://{}:{}", host.address(), ETCD_PORTS.0)).collect();
    let server = ApiServer {
        name: format!("api-{}", host.name),
        pki,
        etcd: servers.join(","),
        netns: Some(host.netns()),
        // Not an input of the service: the server reads it again when it changes.
        extra: vec![format!("--authentication-config={}", authentication(spec.name).display())],
    };
    let service = server.service(programs.kubernetes("kube-apiserver"), cx.steps.logs());
    let kubectl = Kubectl::new(programs.kubernetes("kubectl"), &pki.admin());
    service.ensure(step, LIMIT, || kubectl.ready())
}

/// Does something for every member at the same time.
fn together<T: Send>(hosts: &[Host], pkis: &[Pki], work: impl Fn(&Host, &Pki) -> Result<T> + Sync) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = hosts.iter().zip(pkis).map(|(host, pki)| scope.spawn(move || work(host, pki))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a thread of the step panicked"))?).collect()
    })
}
