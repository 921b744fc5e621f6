//! The jump host: who gets in, and what `host` does to machines through their BMCs.

use std::{path::PathBuf, process::Command, time::Duration};

use serde_json::Value;

use crate::{
    hosts::{self, HOSTS},
    sip,
    stack::{Answer, Folder, NODE, Restore, command, feed, get, repo, run, state, until},
};

/// The fake driver applies a power action within eleven seconds.
const POWER: Duration = Duration::from_secs(40);

/// ssh as this key's owner, asking nothing.
fn ssh(key: &PathBuf, options: &[&str]) -> Command {
    let mut ssh = command("ssh");
    ssh.args(["-F", "none", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "LogLevel=ERROR"]);
    ssh.args(["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=10"]);
    ssh.args(options).arg("-i").arg(key).args(["-p", "30022", &format!("ubuntu@{NODE}")]);
    ssh
}

fn on_jump_host(words: &[&str]) -> Answer {
    run(ssh(&repo().join(".slipway/id_ed25519"), &[]).args(words))
}

fn host(words: &[&str]) -> String {
    on_jump_host(&[&["/opt/sip/bin/host"], words].concat()).success()
}

/// What the BMC itself says, asked without Slipway.
fn power(name: &str) -> String {
    let url = hosts::host(name)["spec"]["bmc"]["address"].as_str().unwrap().replace("redfish+", "");
    let secret = get(&format!("secret {name}-bmc --namespace={HOSTS}"));
    let plain = |key: &str| {
        let mut base64 = command("base64");
        feed(base64.arg("--decode"), secret["data"][key].as_str().unwrap()).success()
    };
    let login = format!("user = \"{}:{}\"\n", plain("username"), plain("password"));
    let mut curl = command("curl");
    curl.args(["--silent", "--fail", "--noproxy", "*", "--config", "-", "--cacert"]).arg(state("bmc/ca.crt")).arg(url);
    let system: Value = serde_json::from_str(&feed(&mut curl, &login).success()).unwrap();
    system["PowerState"].as_str().unwrap().to_owned()
}

fn becomes(name: &str, state: &str) {
    until(&format!("the BMC says that {name} is {state}"), POWER, || {
        let is = power(name);
        if is == state { Ok(()) } else { Err(is) }
    });
}

#[test]
fn host_list_names_the_clusters_hosts_and_no_others() {
    sip::edge();
    let listed = host(&["list"]).lines().map(str::to_owned).collect();
    assert_eq!(hosts::labelled("edge"), listed);
}

#[test]
fn host_switches_machines_through_their_bmcs() {
    sip::edge();
    let name = "tenant-worker-1";
    let _on = Restore(|| drop(on_jump_host(&["/opt/sip/bin/host", "on", "tenant-worker-1"])));
    host(&["on", name]);
    becomes(name, "On");
    host(&["off", name]);
    becomes(name, "Off");
    let status = host(&["status", name]);
    assert!(status.lines().any(|line| line.starts_with(name) && line.contains("Off")), "{status}");
    host(&["on", name]);
    becomes(name, "On");
    // A restart is seen as a machine that is off until the emulator has it on again.
    host(&["reboot", name]);
    becomes(name, "Off");
    becomes(name, "On");
}

#[test]
fn host_says_which_name_it_does_not_know() {
    sip::edge();
    let said = on_jump_host(&["/opt/sip/bin/host", "reboot", "tenant-cp-3"]).refusal();
    assert!(said.contains("tenant-cp-3"), "a host of the stack that is not this tenant's: {said}");
}

#[test]
fn the_hosts_of_the_cluster_are_reached_by_name_from_the_jump_host() {
    sip::edge();
    assert_eq!(on_jump_host(&["ssh", "tenant-cp-0", "hostname"]).success().trim(), "tenant-cp-0");
}

#[test]
fn a_key_that_is_not_authorized_and_a_password_are_refused() {
    sip::edge();
    let folder = Folder::new("ssh");
    let key = folder.path().join("stranger");
    let mut keygen = command("ssh-keygen");
    run(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key)).success();
    let said = run(ssh(&key, &[]).arg("true")).refusal();
    assert!(said.contains("Permission denied"), "{said}");
    // No password is asked for at all: the methods that are left are what the server offers.
    let only = ["-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password,keyboard-interactive"];
    let said = run(ssh(&key, &only).arg("true")).refusal();
    assert!(said.contains("Permission denied (publickey)"), "{said}");
}
