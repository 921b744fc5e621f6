//! A bare etcd and kube-apiserver for the time of one command: what controller tests and benchmarks run against. Needs no root.

use std::{
    ffi::OsString,
    fs,
    net::TcpListener,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    cluster::{
        api_server::ApiServer,
        etcd::{Health, Member},
        pki::Pki,
    },
    config::{POD_CIDR, SERVICE_CIDR},
    context::Cx,
    files,
    gobuild::{self, Programs},
    http,
    kube::Kubectl,
    process::Service,
    step::Step,
};

/// The variable with the kubeconfig of the pair.
pub const KUBECONFIG: &str = "SLIPWAY_TEST_KUBECONFIG";
/// The variable with the path of metal3's CRD, to be applied by whoever needs it.
pub const METAL3_CRD: &str = "SLIPWAY_TEST_METAL3_CRD";

const LIMIT: Duration = Duration::from_mins(1);

/// A running pair; ends with the value.
struct Pair {
    dir: std::path::PathBuf,
    children: Vec<Child>,
}

impl Drop for Pair {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            // It may have ended by itself; its data goes in any case.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Runs `words` with a pair of their own; without words, a shell to try things in.
pub fn run(cx: &Cx, words: &[OsString]) -> Result<()> {
    let status = with(cx, |command| {
        let shell = [std::env::var_os("SHELL").unwrap_or_else(|| "sh".into())];
        let words = if words.is_empty() { &shell[..] } else { words };
        let mut child = command(&words[0]);
        child.args(&words[1..]).status().with_context(|| format!("cannot start {}", words[0].display()))
    })?;
    if status.success() { Ok(()) } else { bail!("the command ended with {status}") }
}

/// Starts a pair, calls `work` with a maker of commands that know it, and ends it.
pub fn with(cx: &Cx, work: impl FnOnce(&dyn Fn(&OsString) -> Command) -> Result<ExitStatus>) -> Result<ExitStatus> {
    let programs = gobuild::programs(cx)?;
    let crd = gobuild::metal3_crd(cx)?;
    let dir = cx.cache.join(format!("real-api/{}", std::process::id()));
    clear_dead(&cx.cache.join("real-api"))?;
    let mut pair = Pair { dir: dir.clone(), children: Vec::new() };
    let kubeconfig = dir.join("kubeconfig");
    cx.steps.run("bare API server", |step| {
        start(cx, step, &programs, &mut pair, &kubeconfig)?;
        Ok("answers")
    })?;
    work(&|program| {
        let mut command = Command::new(program);
        command.env(KUBECONFIG, &kubeconfig).env(METAL3_CRD, &crd).current_dir(&cx.repo);
        command
    })
}

fn start(cx: &Cx, step: &Step, programs: &Programs, pair: &mut Pair, kubeconfig: &Path) -> Result<()> {
    // The certificates name no port, so they serve every run; the ports are free ones, so that runs do not meet.
    let shared = pki(&cx.cache.join("real-api/shared"), 6443);
    let lock = fs::File::create(cx.cache.join("real-api/lock"))?;
    lock.lock()?;
    shared.ensure(step, programs.kubernetes("kubeadm"), None)?;
    drop(lock);
    let ports = free_ports()?;
    let mut pki = pki(&shared.dir, ports[3]);
    pki.sans.clear();
    let admin = fs::read_to_string(shared.admin())?.replace("127.0.0.1:6443", &format!("127.0.0.1:{}", ports[3]));
    files::write_private(kubeconfig, &admin)?;
    let member = Member {
        service: "etcd".into(),
        name: "etcd".into(),
        pki: &pki,
        address: "127.0.0.1".into(),
        ports: (ports[0], ports[1], ports[2]),
        health: Health::Loopback,
        cluster: format!("etcd=https://127.0.0.1:{}", ports[1]),
        netns: None,
    };
    let mut etcd = member.service(&programs.etcd, &pair.dir).arg("--unsafe-no-fsync");
    let data = format!("--data-dir={}", pair.dir.join("etcd").display());
    etcd.args.iter_mut().filter(|arg| arg.starts_with("--data-dir=")).for_each(|arg| arg.clone_from(&data));
    pair.children.push(spawn(step, &etcd)?);
    step.wait("etcd to answer", LIMIT, || Ok(http::healthy([127, 0, 0, 1], ports[2], "/health").then_some(())))?;
    let server = ApiServer {
        name: "kube-apiserver".into(),
        pki: &pki,
        etcd: format!("https://127.0.0.1:{}", ports[0]),
        netns: None,
        // There is no controller-manager to make the accounts that pods would need.
        extra: vec!["--disable-admission-plugins=ServiceAccount".into()],
    };
    pair.children.push(spawn(step, &server.service(programs.kubernetes("kube-apiserver"), &pair.dir))?);
    let kubectl = Kubectl::new(programs.kubernetes("kubectl"), kubeconfig);
    step.wait("the API server to be ready", LIMIT, || Ok(kubectl.ready().then_some(())))
}

/// Removes the folders of runs that were killed.
fn clear_dead(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    for entry in fs::read_dir(dir)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.parse::<u32>().is_ok() && !Path::new("/proc").join(&name).exists() {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn pki(dir: &Path, port: u16) -> Pki {
    Pki {
        dir: dir.to_owned(),
        cluster: "bare".into(),
        node: "bare".into(),
        address: "127.0.0.1".into(),
        port,
        sans: Vec::new(),
        pods: POD_CIDR,
        services: SERVICE_CIDR,
    }
}

/// A child that the kernel ends when this process does, however that comes.
fn spawn(step: &Step, service: &Service) -> Result<Child> {
    if let Some(dir) = service.log.parent() {
        fs::create_dir_all(dir)?;
    }
    let log = fs::File::create(&service.log)?;
    step.blame(&service.log);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(&service.program).args(&service.args);
    let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
    child.context("cannot start `setpriv` (package util-linux)")
}

/// Ports that nobody listens on now.
fn free_ports() -> Result<[u16; 4]> {
    let mut listeners = Vec::new();
    let mut ports = [0; 4];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener); // kept until all are known, so that none is given twice
    }
    Ok(ports)
}
