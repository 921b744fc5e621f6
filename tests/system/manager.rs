//! The manager's pods and processes: who leads, and what the tests do to them.

use std::{fs, time::Duration};

use crate::stack::{command, get, kubectl, run, until};

/// Its pods.
pub const PODS: &str = "--namespace=slipway-system --selector=app.kubernetes.io/name=slipway-manager";
/// Its Deployment.
const DEPLOYMENT: &str = "deployment/slipway-manager --namespace=slipway-system";
/// How long a new leader may take: the lease has to run out, and everything to be listed.
pub const ELECTION: Duration = Duration::from_mins(2);

/// Ends the manager's processes by SIGKILL, and removes their pods, so that no back-off delays the next ones.
pub fn kill() {
    let pods = get(&format!("pods {PODS}"));
    let mut killed = 0;
    for pod in pods["items"].as_array().unwrap() {
        for pid in processes(pod["metadata"]["uid"].as_str().unwrap()) {
            killed += usize::from(signal("KILL", &pid));
        }
    }
    kubectl(&format!("delete pods {PODS} --force --grace-period=0 --wait=false")).success();
    assert!(killed > 0, "there was no manager to kill");
}

/// Processes called `manager` in a pod: its node is this machine.
pub fn processes(uid: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let is =
            |file: &str, what: &str| fs::read_to_string(entry.path().join(file)).is_ok_and(|text| text.contains(what));
        if is("comm", "manager") && is("cgroup", uid) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

/// Sends a signal. Whether there was somebody to get it: a process may just have ended by itself.
pub fn signal(name: &str, pid: &str) -> bool {
    run(command("kill").arg(format!("-{name}")).arg(pid)).ok().is_some()
}

/// Sets the quarantine of released hosts, so that two spare ones are enough for many turns.
pub fn quarantine(seconds: u32) {
    kubectl(&format!("set env {DEPLOYMENT} SLIPWAY_QUARANTINE_SECONDS={seconds}")).success();
    settled();
}

/// Runs so many of them, and waits until they do.
pub fn replicas(count: u32) {
    kubectl(&format!("scale {DEPLOYMENT} --replicas={count}")).success();
    settled();
    until(&format!("{count} pods of the manager"), ELECTION, || {
        let pods = get(&format!("pods {PODS}"))["items"].as_array().unwrap().len();
        if u32::try_from(pods).unwrap() == count { Ok(()) } else { Err(format!("{pods} pods")) }
    });
}

fn settled() {
    kubectl(&format!("rollout status {DEPLOYMENT} --timeout=120s")).success();
}

/// The pod that leads: its name and uid.
pub fn leader() -> (String, String) {
    until("somebody leads", ELECTION, || {
        let lease = get("lease slipway-sip --namespace=slipway-system");
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        let pods = get(&format!("pods {PODS}"));
        let mut names = pods["items"].as_array().unwrap().iter().filter_map(|pod| {
            let (name, uid) = (pod["metadata"]["name"].as_str()?, pod["metadata"]["uid"].as_str()?);
            holder.starts_with(name).then(|| (name.to_owned(), uid.to_owned()))
        });
        names.next_back().ok_or(format!("the lease is held by {holder:?}"))
    })
}

/// Waits until another pod than this leads.
pub fn succeeded(old: &str) -> String {
    until(&format!("another pod than {old} leads"), ELECTION, || {
        let (name, _) = leader();
        if name == old { Err(format!("{name} leads")) } else { Ok(name) }
    })
}
