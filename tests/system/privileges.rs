//! What the manager may do in the base cluster, and that it asks for nothing else.

use crate::{
    sip,
    stack::{command, kubectl, run},
};

const MANAGER: &str = "system:serviceaccount:slipway-system:slipway-manager";

/// kubectl's own answer, `yes` or `no`.
fn may(line: &str) -> bool {
    let mut kubectl = command("kubectl");
    kubectl.args(["auth", "can-i"]).args(line.split_whitespace()).arg(format!("--as={MANAGER}"));
    // kubectl ends with a failure when the answer is no.
    run(&mut kubectl).ok().is_some_and(|said| said.trim() == "yes")
}

#[test]
fn the_manager_reads_secrets_only_where_hosts_and_tenants_are() {
    for line in ["list secrets --namespace=tenant-a", "list secrets --namespace=metal3"] {
        assert!(may(line), "{line}");
    }
    for line in [
        "list secrets --all-namespaces",
        "get secrets --namespace=kube-system",
        "get secrets --namespace=default",
        "create secrets --namespace=metal3",
        "delete baremetalhosts --namespace=metal3",
        "create clusterrolebindings",
        "create pods --namespace=tenant-a",
        "create pods/exec --namespace=tenant-a",
        "impersonate users",
        "update validatingadmissionpolicies",
        "update configmaps --namespace=slipway-system",
    ] {
        assert!(!may(line), "{line}");
    }
}

#[test]
fn the_manager_asks_for_nothing_that_it_may_not_have() {
    sip::edge();
    let log = kubectl("logs deployment/slipway-manager --namespace=slipway-system --tail=-1").success();
    let refused: Vec<&str> = log.lines().filter(|line| line.contains("is forbidden")).collect();
    assert!(refused.is_empty(), "{} refused requests, the last: {:?}", refused.len(), refused.last());
}
