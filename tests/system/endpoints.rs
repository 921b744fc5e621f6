//! What the tenant's people reach through its load balancers.

use std::time::Duration;

use crate::{
    sip,
    stack::{NODE, command, run, state, until},
};

fn curl(words: &[&str]) -> Result<String, String> {
    let mut curl = command("curl");
    curl.args(["--silent", "--show-error", "--fail", "--max-time", "10", "--noproxy", "*"]).args(words);
    let answer = run(&mut curl);
    answer.ok().ok_or_else(|| format!("curl {words:?} failed"))
}

#[test]
fn the_tenants_api_server_answers_through_its_load_balancer() {
    sip::edge();
    // Its own CA, so what answers is the tenant's API server and nothing in between.
    let ca = state("tenant/edge/ca.crt");
    let url = format!("https://{NODE}:30443/version");
    let text =
        until("the tenant's /version", Duration::from_mins(1), || curl(&["--cacert", &ca.to_string_lossy(), &url]));
    let version: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(version["major"], "1", "{text}");
}

#[test]
fn a_node_port_of_the_tenant_reaches_its_workers_and_no_other_host() {
    sip::edge();
    let url = format!("http://{NODE}:30080/");
    let mut seen = std::collections::BTreeSet::new();
    until("both workers have answered", Duration::from_mins(1), || {
        seen.insert(curl(&[&url])?.trim().to_owned());
        let both = ["this is tenant-worker-0", "this is tenant-worker-1"];
        if both.iter().all(|one| seen.contains(*one)) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
    assert_eq!(seen.len(), 2, "a host answered that is not the tenant's: {seen:?}");
}
