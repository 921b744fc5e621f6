//! The manager killed in the middle of claims and releases.

use std::{fs, thread, time::Duration};

use crate::{
    hosts::{self, RELEASED},
    sip::{self, NAMESPACE, SETTLES},
    stack::{Restore, command, create, get, kubectl, run, until},
};

const MANAGER: &str = "--namespace=slipway-system --selector=app.kubernetes.io/name=slipway-manager";

/// Ends the manager's processes by SIGKILL, and removes their pods, so that no back-off delays the next ones.
fn kill() {
    let pods = get(&format!("pods {MANAGER}"));
    let mut killed = 0;
    for pod in pods["items"].as_array().unwrap() {
        for pid in processes(pod["metadata"]["uid"].as_str().unwrap()) {
            // One of the turn before may just have ended by itself.
            killed += usize::from(run(command("kill").args(["-KILL", &pid])).ok().is_some());
        }
    }
    kubectl(&format!("delete pods {MANAGER} --force --grace-period=0 --wait=false")).success();
    assert!(killed > 0, "there was no manager to kill");
}

/// Processes called `manager` in a pod: its node is this machine.
fn processes(uid: &str) -> Vec<String> {
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

/// Sets the quarantine of released hosts, so that two spare ones are enough for many turns.
fn quarantine(seconds: u32) {
    let line =
        format!("set env deployment/slipway-manager --namespace=slipway-system SLIPWAY_QUARANTINE_SECONDS={seconds}");
    kubectl(&line).success();
    kubectl("rollout status deployment/slipway-manager --namespace=slipway-system --timeout=120s").success();
}

fn gone(name: &str) {
    until(&format!("SIPCluster {name} is gone"), SETTLES, || {
        let left = get(&format!("sipclusters --namespace={NAMESPACE} --field-selector=metadata.name={name}"));
        if left["items"].as_array().unwrap().is_empty() { Ok(()) } else { Err(left["items"][0].to_string()) }
    });
}

#[test]
fn a_manager_killed_at_any_moment_loses_no_host_and_claims_none_twice() {
    sip::edge();
    let edge = hosts::labelled("edge");
    let _quarantine = Restore(|| quarantine(60));
    quarantine(1);
    let burst = sip::workers("burst", 1);
    // The moments are the subject: from before the choice is recorded until after the labels are on.
    for (turn, after) in [0, 100, 300, 600, 1200].map(Duration::from_millis).into_iter().enumerate() {
        create(&burst).success();
        let _gone = Restore(|| {
            let _ =
                kubectl(&format!("delete sipcluster burst --namespace={NAMESPACE} --ignore-not-found --timeout=180s"));
        });
        thread::sleep(after);
        kill();
        let sip = sip::ready("burst");
        let held = hosts::labelled("burst");
        assert_eq!(held.len(), 1, "turn {turn}: {held:?}");
        let recorded = sip["status"]["hosts"].as_array().unwrap();
        assert_eq!(recorded.len(), 1, "turn {turn}: {recorded:?}");
        assert!(held.contains(recorded[0]["name"].as_str().unwrap()), "turn {turn}: {held:?} but {recorded:?}");

        kubectl(&format!("delete sipcluster burst --namespace={NAMESPACE} --wait=false")).success();
        thread::sleep(after);
        kill();
        gone("burst");
        assert!(hosts::labelled("burst").is_empty(), "turn {turn}: labels outlive the cluster");
        assert_eq!(hosts::labelled("edge"), edge, "turn {turn}: another cluster's hosts");
        let name = held.first().unwrap();
        until(&format!("{name} is out of quarantine"), SETTLES, || {
            let released = hosts::host(name)["metadata"]["annotations"][RELEASED].clone();
            if released.is_null() { Ok(()) } else { Err(released.to_string()) }
        });
    }
    sip::edge();
}
