//! The sample bare-metal hosts: a network namespace each, with ssh, and HTTP on the workers.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};

use crate::{
    cluster::{says, worst},
    config::{Flavor, HOST_USERS, HOSTS, Host, WORKER_PORT, state},
    context::Cx,
    files, http, net,
    packages::require,
    process::{Outcome, Service},
    step::{Step, command},
};

const LIMIT: Duration = Duration::from_secs(15);

/// The key that opens the hosts: the tenant's jump host gets it.
pub fn node_key() -> PathBuf {
    state("keys/node")
}

/// Makes every host answer at its address.
pub fn up(cx: &Cx) -> Result<()> {
    cx.steps.run("hosts", |step| {
        key(step, &node_key(), "jump host to hosts")?;
        accounts()?;
        let mut outcomes = Vec::new();
        for host in HOSTS {
            step.note(format!("{} in rack {}", host.name, host.rack));
            net::host(step, &host)?;
            outcomes.push(sshd(cx, step, &host)?);
            if host.flavor == Flavor::Worker {
                outcomes.push(httpd(cx, step, &host)?);
            }
        }
        Ok(format!("{} of them, {}", HOSTS.len(), says(worst(&outcomes))))
    })
}

/// Makes an ed25519 key pair without a passphrase, unless it is there.
pub fn key(step: &Step, file: &std::path::Path, comment: &str) -> Result<()> {
    if file.exists() {
        return Ok(());
    }
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    step.run(command("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", comment, "-f"]).arg(file))
}

/// The `/etc` of the hosts: their accounts, and what programs need to start. A folder, for it stays when the machine's
/// own `/etc/passwd` is replaced, as every package with an account of its own does.
fn accounts() -> Result<()> {
    let mut passwd = vec!["root:x:0:0:root:/:/usr/sbin/nologin".to_owned()];
    let mut shadow = vec!["root:*:19000::::::".to_owned(), "sshd:*:19000::::::".to_owned()];
    let mut group = vec!["root:x:0:".to_owned(), "nogroup:x:65534:".to_owned()];
    passwd.push("sshd:x:64000:65534::/run/sshd:/usr/sbin/nologin".into());
    for (id, user) in (64001..).zip(HOST_USERS) {
        passwd.push(format!("{user}:x:{id}:{id}::/:/bin/sh"));
        shadow.push(format!("{user}:*:19000::::::"));
        group.push(format!("{user}:x:{id}:"));
    }
    let text = |lines: Vec<String>| lines.join("\n") + "\n";
    files::write(&state("hosts/etc/passwd"), &text(passwd))?;
    files::write_private(&state("hosts/etc/shadow"), &text(shadow))?;
    files::write(&state("hosts/etc/group"), &text(group))?;
    files::write(&state("hosts/etc/nsswitch.conf"), "passwd: files\ngroup: files\nshadow: files\nhosts: files\n")?;
    fs::copy("/etc/ld.so.cache", state("hosts/etc/ld.so.cache")).context("no /etc/ld.so.cache")?;
    Ok(())
}

fn sshd(cx: &Cx, step: &Step, host: &Host) -> Result<Outcome> {
    let dir = state("hosts").join(host.name);
    key(step, &dir.join("host_key"), host.name)?;
    fs::copy(node_key().with_extension("pub"), dir.join("authorized_keys"))?;
    let config = format!(
        "ListenAddress {address}\nHostKey {dir}/host_key\nAuthorizedKeysFile {dir}/authorized_keys\nPidFile none\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin no\nUsePAM no\nUseDNS no\n\
         PrintMotd no\nAllowUsers {users}\n",
        address = host.address(),
        dir = dir.display(),
        users = HOST_USERS.join(" "),
    );
    let file = dir.join("sshd_config");
    files::write(&file, &config)?;
    // With mount and UTS namespaces of its own, so that a login sees a host and not this machine's accounts and homes.
    let etc = state("hosts/etc");
    let script = format!(
        "hostname {name}; mkdir -p /run/sshd; mount --bind {etc} /etc; for d in /root /home; do mount -t tmpfs none $d; done; exec {sshd} -D -e -f {file}",
        name = host.name,
        etc = etc.display(),
        sshd = require("sshd")?.display(),
        file = file.display(),
    );
    let mut service = Service::new(&format!("ssh-{}", host.name), &require("unshare")?, cx.steps.logs());
    service.args = ["--mount", "--uts", "--propagation=private", "sh", "-ec", &script].map(str::to_owned).into();
    service.inputs = vec![file, etc.join("passwd"), dir.join("authorized_keys")];
    service.netns = Some(host.netns());
    service.ensure(step, LIMIT, || http::greets(host.address(), 22, "SSH-2.0"))
}

fn httpd(cx: &Cx, step: &Step, host: &Host) -> Result<Outcome> {
    let dir = state("hosts").join(host.name).join("www");
    files::write(&dir.join("index.html"), &format!("this is {}\n", host.name))?;
    let mut service = Service::new(&format!("http-{}", host.name), &require("busybox")?, cx.steps.logs());
    let listen = format!("{}:{WORKER_PORT}", host.address());
    service.args = ["httpd", "-f", "-p", &listen, "-h", &dir.to_string_lossy()].map(str::to_owned).into();
    service.netns = Some(host.netns());
    service.ensure(step, LIMIT, || http::healthy(host.address(), WORKER_PORT, "/"))
}
