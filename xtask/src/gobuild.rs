//! Programs that come as Go modules: those on the machine are used when their version fits, the others are built once.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use sha2::{Digest, Sha256};

use crate::{
    config::{ETCD_MINOR, KUBERNETES, KUBERNETES_MINOR},
    context::Cx,
    packages::which,
    process::hex,
    step::{Step, command},
};

/// The programs of Kubernetes, all in one binary.
const KUBERNETES_PROGRAMS: [&str; 7] =
    ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubeadm", "kubectl"];

/// Where the programs of the local stack are.
#[derive(Clone, Debug)]
pub struct Programs {
    /// etcd.
    pub etcd: PathBuf,
    kubernetes: Vec<(&'static str, PathBuf)>,
}

impl Programs {
    /// One of Kubernetes' programs.
    pub fn kubernetes(&self, name: &str) -> &Path {
        let found = self.kubernetes.iter().find(|(known, _)| *known == name);
        &found.expect("only the names of KUBERNETES_PROGRAMS are asked for").1
    }
}

/// A binary to be built from a Go module under `dev/`.
struct Binary {
    /// The folder under `dev/`, also the step's name.
    module: &'static str,
    /// The package to build, as `go build` takes it.
    package: &'static str,
    /// The file's name.
    name: &'static str,
    /// Values for `-ldflags`.
    ldflags: String,
    /// Whether it contains C.
    cgo: bool,
    /// What people are told who wait.
    note: &'static str,
}

/// Everything the cluster runs.
pub fn programs(cx: &Cx) -> Result<Programs> {
    let kubernetes = kubernetes(cx, &KUBERNETES_PROGRAMS)?;
    Ok(Programs { etcd: etcd(cx)?, kubernetes })
}

/// kubectl alone, for `make deploy` on a cluster that is somebody else's.
pub fn kubectl(cx: &Cx) -> Result<PathBuf> {
    if let Some(found) = which("kubectl") {
        return Ok(found);
    }
    Ok(kubernetes(cx, &["kubectl"])?.remove(0).1)
}

/// Dex, of 2018: for the local stack only. Returns the binary; its web files are put beside as `dex-web`.
pub fn dex(cx: &Cx) -> Result<PathBuf> {
    let binary = Binary {
        module: "dex",
        package: "github.com/dexidp/dex/cmd/dex",
        name: "dex",
        ldflags: String::new(),
        cgo: true,
        note: "building Dex (half a minute, once)",
    };
    let built = build(cx, &binary)?;
    let web = cx.cache.join("dex-web");
    if !web.join("templates").is_dir() {
        cx.steps.run("dex web files", |step| {
            let args = ["list", "-m", "-f", "{{.Dir}}", "github.com/dexidp/dex"];
            let module = step.output(go()?.args(args).current_dir(cx.repo.join("dev/dex")))?;
            let from = format!("{}/web", module.trim());
            // Without the modes: the module cache is read-only, and this copy must be removable.
            step.run(&mut command("cp", ["-r", "--no-preserve=mode", &from, &web.to_string_lossy()]))?;
            Ok("copied")
        })?;
    }
    Ok(built)
}

/// The CRD of metal3's BareMetalHost, written from its Go types.
pub fn metal3_crd(cx: &Cx) -> Result<PathBuf> {
    let binary = Binary {
        module: "controller-gen",
        package: "sigs.k8s.io/controller-tools/cmd/controller-gen",
        name: "controller-gen",
        ldflags: String::new(),
        cgo: false,
        note: "building controller-gen (half a minute, once)",
    };
    let crd = cx.cache.join("metal3-crd.yaml");
    let stamp = cx.cache.join("stamp/metal3-crd");
    let key = source_hash(&cx.repo.join("dev/controller-gen"))?;
    if crd.exists() && fs::read_to_string(&stamp).is_ok_and(|old| old == key) {
        return Ok(crd);
    }
    let generator = build(cx, &binary)?;
    cx.steps.run("metal3 CRD", |step| {
        let dir = cx.cache.join("metal3-crds");
        let args = [
            "crd:allowDangerousTypes=true".to_owned(),
            "paths=github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1".to_owned(),
            format!("output:crd:dir={}", dir.display()),
        ];
        let module = cx.repo.join("dev/controller-gen");
        go()?; // controller-gen loads packages by calling `go`
        step.run(command(&generator, args).current_dir(module).env("GOFLAGS", "-mod=readonly"))?;
        fs::copy(dir.join("metal3.io_baremetalhosts.yaml"), &crd)
            .context("controller-gen wrote no BareMetalHost CRD")?;
        fs::write(&stamp, &key)?;
        Ok("written from the types of baremetal-operator 0.9.0")
    })?;
    Ok(crd)
}

fn kubernetes(cx: &Cx, names: &[&'static str]) -> Result<Vec<(&'static str, PathBuf)>> {
    let version = |file: &Path| {
        let client = file.file_name().is_some_and(|name| name == "kubectl" || name == "kubeadm");
        printed(file, if client { &["version", "--output=json"] } else { &["--version"] })
    };
    let fits = |file: &Path| version(file).is_some_and(|text| text.contains(&format!("v{KUBERNETES_MINOR}.")));
    let found: Vec<_> = names.iter().filter_map(|name| Some((*name, on_machine(name, &fits)?))).collect();
    if found.len() == names.len() {
        return Ok(found);
    }
    let flag = |key: &str, value: &str| format!("-X k8s.io/component-base/version.{key}={value} ");
    let (major, minor) = KUBERNETES_MINOR.split_once('.').expect("the constant has a dot");
    let binary = Binary {
        module: "kubernetes",
        package: ".",
        name: "kubernetes",
        ldflags: flag("gitVersion", KUBERNETES) + &flag("gitMajor", major) + &flag("gitMinor", minor),
        cgo: false,
        note: "building Kubernetes (5 to 10 minutes on two cores, once)",
    };
    let built = build(cx, &binary)?;
    let mut programs = Vec::new();
    for name in names {
        let link = built.with_file_name(name);
        if fs::read_link(&link).ok().as_deref() != Some(Path::new("kubernetes")) {
            // A file of that name is one we made: this folder is ours.
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink("kubernetes", &link)?;
        }
        let theirs = found.iter().find(|(known, _)| known == name).map(|(_, file)| file.clone());
        programs.push((*name, theirs.unwrap_or(link)));
    }
    Ok(programs)
}

fn etcd(cx: &Cx) -> Result<PathBuf> {
    let version = format!("etcd Version: {ETCD_MINOR}.");
    let fits = |file: &Path| printed(file, &["--version"]).is_some_and(|text| text.contains(&version));
    if let Some(found) = on_machine("etcd", &fits) {
        return Ok(found);
    }
    let binary = Binary {
        module: "etcd",
        package: "go.etcd.io/etcd/server/v3",
        name: "etcd",
        ldflags: String::new(),
        cgo: false,
        note: "building etcd (half a minute, once)",
    };
    build(cx, &binary)
}

/// A program of this name in $KUBEBUILDER_ASSETS or on PATH, if its version fits.
fn on_machine(name: &str, fits: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    let assets = env::var_os("KUBEBUILDER_ASSETS").map(|dir| Path::new(&dir).join(name));
    assets.into_iter().chain(which(name)).find(|file| file.exists() && fits(file))
}

fn printed(program: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds a binary unless it was built from the same sources.
fn build(cx: &Cx, binary: &Binary) -> Result<PathBuf> {
    let module = cx.repo.join("dev").join(binary.module);
    let file = cx.cache.join("bin").join(binary.name);
    let stamp = cx.cache.join("stamp").join(binary.name);
    let key = format!("{} {}", source_hash(&module)?, binary.ldflags);
    if file.exists() && fs::read_to_string(&stamp).is_ok_and(|old| old == key) {
        return Ok(file);
    }
    cx.steps.run(&format!("build {}", binary.name), |step| {
        step.note(binary.note);
        for dir in [&file, &stamp].iter().filter_map(|path| path.parent()) {
            fs::create_dir_all(dir)?;
        }
        compile(step, binary, &module, &file)?;
        fs::write(&stamp, &key)?;
        Ok("built")
    })?;
    Ok(file)
}

fn compile(step: &Step, binary: &Binary, module: &Path, file: &Path) -> Result<()> {
    let ldflags = format!("-s -w {}", binary.ldflags);
    let output = file.to_string_lossy();
    let args = ["build", "-mod=readonly", "-trimpath", "-ldflags", &ldflags, "-o", &output, binary.package];
    let mut go = go()?;
    // Proxies, extra certificates and GOPROXY come with the environment; the checksum database stays on.
    go.args(args).current_dir(module).env("CGO_ENABLED", if binary.cgo { "1" } else { "0" }).env("GOWORK", "off");
    step.run(&mut go)
}

fn go() -> Result<Command> {
    let usual = PathBuf::from("/usr/local/go/bin/go");
    let Some(go) = which("go").or_else(|| usual.exists().then_some(usual)) else {
        bail!("Go is not on this machine: install Go 1.26 or newer (https://go.dev/dl), Kubernetes is built with it");
    };
    Ok(Command::new(go))
}

/// One hash over all that decides what comes out: the module's requirements and sources.
fn source_hash(module: &Path) -> Result<String> {
    let mut files = Vec::new();
    list(module, &mut files)?;
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file.strip_prefix(module).unwrap_or(&file).to_string_lossy().as_bytes());
        hash.update(fs::read(&file)?);
    }
    Ok(hex(&hash.finalize()))
}

fn list(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
