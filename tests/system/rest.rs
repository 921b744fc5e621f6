//! A system at rest, on the real API server.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    hosts::RELEASED,
    manager::{self, ELECTION},
    sip,
    stack::{command, get, run, until},
};

/// What the leader has written since it began, by kind, verb and outcome: lease renewals are not counted there.
fn written() -> BTreeMap<String, String> {
    let (leader, _) = manager::leader();
    let pod = get(&format!("pod {leader} --namespace=slipway-system"));
    let address = pod["status"]["podIP"].as_str().unwrap().to_owned();
    let mut curl = command("curl");
    curl.args(["--silent", "--fail", "--max-time", "10"]).arg(format!("http://{address}:8080/metrics"));
    let metrics = run(&mut curl).success();
    let writes = metrics.lines().filter(|line| line.starts_with("slipway_writes_total"));
    writes.filter_map(|line| line.rsplit_once(' ')).map(|(what, count)| (what.to_owned(), count.to_owned())).collect()
}

/// When the leader renewed its lease last.
fn renewed() -> Value {
    get("lease slipway-sip --namespace=slipway-system")["spec"]["renewTime"].clone()
}

/// Waits for so many renewals: the leader lives, and time passes.
fn renewals(count: usize) {
    for nth in 1..=count {
        let last = renewed();
        until(&format!("renewal {nth} of {count}"), ELECTION, || {
            let now = renewed();
            if now == last { Err(now.to_string()) } else { Ok(()) }
        });
    }
}

#[test]
fn a_manager_that_begins_on_a_settled_system_writes_nothing() {
    sip::edge();
    manager::kill();
    manager::replicas(1);
    sip::edge();
    // The proof of its rights, and the end of quarantines that other tests left, come first.
    until("no host is in quarantine", sip::SETTLES, || {
        let hosts = get("baremetalhosts --all-namespaces");
        let released = |host: &&Value| !host["metadata"]["annotations"][RELEASED].is_null();
        let left = hosts["items"].as_array().unwrap().iter().filter(released).count();
        if left == 0 { Ok(()) } else { Err(format!("{left} are")) }
    });
    renewals(2);
    let before = written();
    renewals(5);
    assert_eq!(written(), before);
}
