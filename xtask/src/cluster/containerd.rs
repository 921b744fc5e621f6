//! containerd of our own: own state, own socket, so that one that the machine already runs is left alone.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    cluster::PAUSE_IMAGE,
    config::{NODE_POD_CIDR, POD_BRIDGE, POD_CIDR, run, state},
    context::Cx,
    files,
    images::Built,
    packages::{cni_plugins, require},
    process::{Outcome, Service, hex},
    step::{Step, command},
};

/// The name of the pods' network in CNI's records.
const NETWORK: &str = "slipway-dev";
/// Where CNI keeps what its plugins answered, for every runtime of the machine.
const CNI_RESULTS: &str = "/var/lib/cni/results";

/// The socket of containerd.
pub fn socket() -> PathBuf {
    run("containerd/containerd.sock")
}

/// `ctr` in the namespace of Kubernetes.
pub fn ctr(args: &[&str]) -> Command {
    let socket = socket();
    let mut ctr = command("ctr", ["--address", &socket.to_string_lossy(), "--namespace", "k8s.io"]);
    ctr.args(args);
    ctr
}

/// Makes containerd run, with a network for pods and the image of their pause process.
pub fn ensure(cx: &Cx, step: &Step) -> Result<Outcome> {
    let config = write_config()?;
    if !socket().exists() && !run("containerd").exists() {
        // After a reboot no pod is alive: its address is free whatever the old lease says.
        let _ = fs::remove_dir_all(state("cni/networks"));
    }
    let mut service = Service::new("containerd", &require("containerd")?, cx.steps.logs()).file("config", config);
    service.inputs.push(state("cni/net.d/10-slipway.conflist"));
    let answers = || {
        let mut ctr = ctr(&["version"]);
        ctr.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let outcome = service.ensure(step, Duration::from_secs(30), answers)?;
    pause_image(cx, step)?;
    Ok(outcome)
}

fn write_config() -> Result<PathBuf> {
    let plugins = cni_plugins().context("no CNI plugins on this machine")?;
    let conflist = json!({
        "cniVersion": "0.4.0",
        "name": NETWORK,
        "plugins": [
            {
                "type": "bridge",
                "bridge": POD_BRIDGE,
                "isGateway": true,
                "ipMasq": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": state("cni/networks"),
                    "ranges": [[{ "subnet": NODE_POD_CIDR }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    });
    debug_assert!(POD_CIDR.starts_with("10.233."), "the node's range lies in the cluster's");
    files::write(&state("cni/net.d/10-slipway.conflist"), &serde_json::to_string_pretty(&conflist)?)?;
    let text = format!(
        r#"version = 2
root = "{root}"
state = "{run}"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]

[grpc]
  address = "{socket}"

[plugins."io.containerd.grpc.v1.cri"]
  # A negative oom_score_adj needs CAP_SYS_RESOURCE, which a machine inside a sandbox lacks: without this no pod starts there.
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE_IMAGE}"
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{conf}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "{runc}"
"#,
        root = state("containerd").display(),
        run = run("containerd").display(),
        socket = socket().display(),
        plugins = plugins.display(),
        conf = state("cni/net.d").display(),
        runc = run("runc").display(),
    );
    let file = state("containerd.toml");
    files::write(&file, &text)?;
    Ok(file)
}

/// Removes CNI's records of our pods: they lie in a folder that other runtimes use too.
pub fn forget_networks() {
    let names = || {
        fs::read_dir(CNI_RESULTS)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
    };
    let prefix = format!("{NETWORK}-");
    let pods: Vec<String> =
        names().filter_map(|name| Some(name.strip_prefix(&prefix)?.split('-').next()?.to_owned())).collect();
    for name in names().filter(|name| pods.iter().any(|pod| name.contains(pod.as_str()))) {
        // A record that stays is a file of a few bytes that nobody reads.
        let _ = fs::remove_file(Path::new(CNI_RESULTS).join(name));
    }
}

/// Whether an image of this name is there.
pub fn has_image(step: &Step, name: &str) -> Result<bool> {
    let images = step.output(&mut ctr(&["images", "list", "--quiet"]))?;
    Ok(images.lines().any(|image| image == name))
}

/// Gives containerd an image that was built here. False if it has it already.
pub fn import(step: &Step, image: &Built) -> Result<bool> {
    let Built { name, archive, stamp } = image;
    let record = state("images").join(name.replace(['/', ':'], "-"));
    if fs::read_to_string(&record).is_ok_and(|have| have == *stamp) && has_image(step, name)? {
        return Ok(false);
    }
    step.run(ctr(&["images", "import", "--base-name"]).arg(name.split(':').next().unwrap_or(name)).arg(archive))?;
    if !has_image(step, name)? {
        bail!("{} was imported, but holds no image called {name}", archive.display());
    }
    files::write(&record, stamp)?;
    Ok(true)
}

/// The image that holds a pod's namespaces: one static program that sleeps.
fn pause_image(cx: &Cx, step: &Step) -> Result<()> {
    if has_image(step, PAUSE_IMAGE)? {
        return Ok(());
    }
    let dir = cx.cache.join("pause");
    let layer = dir.join("layer");
    fs::create_dir_all(&layer)?;
    let (source, program) = (cx.repo.join("dev/pause/pause.rs"), layer.join("pause"));
    let args =
        ["--edition=2024", "-Copt-level=s", "-Cpanic=abort", "-Cstrip=symbols", "--target=x86_64-unknown-linux-musl"];
    step.run(command("rustc", args).arg("-o").arg(&program).arg(&source))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    let tar = |output: &Path, from: &Path, files: &[&str]| {
        let mut tar = command("tar", ["--create", "--owner=0", "--group=0", "--numeric-owner", "--file"]);
        tar.arg(output).arg("--directory").arg(from).args(files);
        tar
    };
    step.run(&mut tar(&dir.join("layer.tar"), &layer, &["pause"]))?;
    let digest = hex(&Sha256::digest(fs::read(dir.join("layer.tar"))?));
    let config = json!({
        "architecture": "amd64",
        "os": "linux",
        "config": { "Entrypoint": ["/pause"], "User": "65535:65535" },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
    });
    let manifest = json!([{ "Config": "config.json", "RepoTags": [PAUSE_IMAGE], "Layers": ["layer.tar"] }]);
    fs::write(dir.join("config.json"), config.to_string())?;
    fs::write(dir.join("manifest.json"), manifest.to_string())?;
    let archive = dir.join("pause.tar");
    step.run(&mut tar(&archive, &dir, &["manifest.json", "config.json", "layer.tar"]))?;
    step.run(ctr(&["images", "import"]).arg(&archive))
}
