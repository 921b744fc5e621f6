//! Programs that Debian has: looked for on the machine, installed if missing, their services neither started nor enabled.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    context::Cx,
    step::{Step, command},
};

/// A program, and the Debian package that has it.
struct Need {
    program: &'static str,
    package: &'static str,
    why: &'static str,
}

const fn need(program: &'static str, package: &'static str, why: &'static str) -> Need {
    Need { program, package, why }
}

/// What the local stack runs.
const STACK: &[Need] = &[
    need("containerd", "containerd", "runs the pods"),
    need("ctr", "containerd", "imports images"),
    need("runc", "runc", "starts containers"),
    need(BRIDGE_PLUGIN, "containernetworking-plugins", "gives pods their network"),
    need("ip", "iproute2", "makes the hosts' network"),
    need("iptables", "iptables", "kube-proxy's services"),
    need("nsenter", "util-linux", "starts the hosts in their network namespaces"),
    need("ssh-keygen", "openssh-client", "makes the example's keys"),
    need("curl", "curl", "asks the tenant's API, as the last words of `make up` propose"),
    need("sshd", "openssh-server", "the hosts' ssh"),
    need("busybox", "busybox-static", "the worker hosts' HTTP"),
    need("openssl", "openssl", "the BMC's certificate"),
    need("python3", "python3", "runs the BMC emulator"),
    need(VENV_MODULE, "python3-venv", "installs the BMC emulator"),
    need("tar", "tar", "packs the pause image"),
];

/// What images and programs are built with.
const BUILD: &[Need] = &[
    need("buildah", "buildah", "builds images"),
    need("mmdebstrap", "mmdebstrap", "makes the images' Debian"),
    need("gcc", "gcc", "compiles the C parts of Dex and of the TLS library"),
    need("musl-gcc", "musl-tools", "links static programs"),
    need("haproxy", "haproxy", "checks load balancer configurations in tests"),
];

/// What virtual machines run on, and what talks to it is built with.
const VIRT: &[Need] = &[
    need("libvirtd", "libvirt-daemon-system", "runs virtual machines"),
    need(QEMU_DRIVER, "libvirt-daemon-driver-qemu", "lets libvirt run QEMU"),
    need("qemu-system-x86_64", "qemu-system-x86", "is the virtual machines"),
    need("qemu-img", "qemu-utils", "makes their disks"),
    need("/usr/share/qemu/firmware/60-edk2-x86_64.json", "ovmf", "is their UEFI"),
    need("dnsmasq", "dnsmasq-base", "answers their DHCP"),
    need("nft", "nftables", "keeps their DHCP on its node"),
    need("pkg-config", "pkg-config", "finds libvirt's headers"),
    need("/usr/include/libvirt/libvirt.h", "libvirt-dev", "is what the agent is built with"),
];

/// Stands for libvirt's driver for QEMU, which lies in a directory named after the architecture.
const QEMU_DRIVER: &str = "libvirt_driver_qemu.so";
/// Stands for CNI's bridge plugin, which is on no PATH.
const BRIDGE_PLUGIN: &str = "cni/bridge";
/// Stands for Python's own venv with pip, which Debian packages apart.
const VENV_MODULE: &str = "python3 -m venv";

/// Installs what is missing of [`STACK`], [`BUILD`] and [`VIRT`].
pub fn ensure(cx: &Cx) -> Result<()> {
    cx.steps.run("packages", |step| {
        let missing: Vec<&Need> = STACK.iter().chain(BUILD).chain(VIRT).filter(|need| !present(need.program)).collect();
        if missing.is_empty() {
            return Ok("all there".to_owned());
        }
        let mut packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
        packages.sort_unstable();
        packages.dedup();
        install(step, &packages, &missing)?;
        for need in missing {
            if !present(need.program) {
                bail!(
                    "package {} is installed, but `{}` ({}) is still not found",
                    need.package,
                    need.program,
                    need.why
                );
            }
        }
        Ok(format!("installed {}", packages.join(", ")))
    })
}

fn install(step: &Step, packages: &[&str], missing: &[&Need]) -> Result<()> {
    if which("apt-get").is_none() {
        let list: Vec<String> = missing.iter().map(|need| format!("{} ({})", need.program, need.why)).collect();
        bail!("this machine lacks {} and has no apt-get to install them", list.join(", "));
    }
    step.note(format!("installing {}", packages.join(", ")));
    let quiet = QuietServices::begin()?;
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["-q", "-o", "DPkg::Lock::Timeout=300"]).args(args).env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    step.run(&mut apt(&["update"])).context("the package lists cannot be read: is there a network or a proxy?")?;
    let args = ["install", "-y", "--no-install-recommends"];
    step.run(&mut apt(&[&args[..], packages].concat()))?;
    quiet.end(step, packages)
}

/// While packages are installed: no service of theirs starts. Afterwards: none is enabled that was not there before.
struct QuietServices {
    policy: Option<&'static Path>,
}

impl QuietServices {
    fn begin() -> Result<Self> {
        let policy = Path::new("/usr/sbin/policy-rc.d");
        if policy.exists() {
            return Ok(Self { policy: None });
        }
        fs::write(policy, "#!/bin/sh\nexit 101\n").with_context(|| format!("cannot write {}", policy.display()))?;
        fs::set_permissions(policy, fs::Permissions::from_mode(0o755))?;
        Ok(Self { policy: Some(policy) })
    }

    fn end(self, step: &Step, packages: &[&str]) -> Result<()> {
        drop(self);
        if !Path::new("/run/systemd/system").is_dir() {
            return Ok(());
        }
        for (package, unit) in [
            ("containerd", "containerd"),
            ("haproxy", "haproxy"),
            ("openssh-server", "ssh"),
            ("libvirt-daemon-system", "libvirtd"),
        ] {
            if packages.contains(&package) {
                step.run(&mut command("systemctl", ["disable", unit]))?;
            }
        }
        Ok(())
    }
}

impl Drop for QuietServices {
    fn drop(&mut self) {
        if let Some(policy) = self.policy {
            // Left behind it would only keep services of later packages from starting; the next run removes nothing of others.
            let _ = fs::remove_file(policy);
        }
    }
}

fn present(program: &str) -> bool {
    match program {
        BRIDGE_PLUGIN => cni_plugins().is_some(),
        QEMU_DRIVER => fs::read_dir("/usr/lib").is_ok_and(|mut dirs| {
            dirs.any(|dir| dir.is_ok_and(|dir| dir.path().join("libvirt/connection-driver").join(QEMU_DRIVER).exists()))
        }),
        file if file.starts_with('/') => Path::new(file).exists(),
        VENV_MODULE => Command::new(system_python())
            .args(["-c", "import venv, ensurepip"])
            .output()
            .is_ok_and(|output| output.status.success()),
        "busybox" => Command::new("busybox")
            .arg("--list")
            .output()
            .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).lines().any(|applet| applet == "httpd")),
        program => which(program).is_some(),
    }
}

/// Python of the system, for which Debian's packages are, rather than one a version manager put on PATH.
pub fn system_python() -> PathBuf {
    let system = PathBuf::from("/usr/bin/python3");
    if system.exists() { system } else { PathBuf::from("python3") }
}

/// The directory of the CNI plugins: Debian's, else the one that others use.
pub fn cni_plugins() -> Option<PathBuf> {
    ["/usr/lib/cni", "/opt/cni/bin"].iter().map(PathBuf::from).find(|dir| dir.join("bridge").exists())
}

/// A program on PATH or in one of the directories that a user's PATH may lack.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin", "/sbin"].iter().map(PathBuf::from);
    env::split_paths(&path).chain(system).map(|dir| dir.join(program)).find(|file| executable(file))
}

/// The same, with a sentence when it is missing.
pub fn require(program: &str) -> Result<PathBuf> {
    let Some(found) = which(program) else {
        bail!("`{program}` is not on this machine: run `make up` once, it installs it")
    };
    Ok(found)
}

fn executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}
