//! Who may change the labels of a claim, and who may give up a host in use.

use std::time::Duration;

use crate::{
    hosts::{self, kubectl_host},
    sip,
    stack::{Restore, kubectl, until},
};

const FORCE: &str = "sip.airshipit.org/force-release";

#[test]
fn claim_labels_are_not_changed_by_people_and_the_refusal_says_what_to_do_instead() {
    sip::edge();
    let before = hosts::labelled("edge");
    // The group to which RBAC denies nothing.
    let masters = "--as=system-test --as-group=system:masters";
    for words in [
        "--overwrite sip.airshipit.org/cluster-name=mine",
        "sip.airshipit.org/cluster-name-",
        "--overwrite sip.airshipit.org/node-type=Worker",
    ] {
        let said = kubectl_host("label", "tenant-cp-0", &format!("{words} {masters}")).refusal();
        for remedy in ["change the SIPCluster to move hosts", FORCE] {
            assert!(said.contains(remedy), "{words}: {said}");
        }
    }
    let said =
        kubectl_host("annotate", "tenant-cp-0", &format!("--overwrite sip.airshipit.org/addresses={{}} {masters}"))
            .refusal();
    assert!(said.contains("written by Slipway only"), "{said}");
    let said =
        kubectl_host("label", "tenant-cp-3", &format!("sip.airshipit.org/cluster-name=mine {masters}")).refusal();
    assert!(said.contains("written by Slipway only"), "a free host: {said}");
    assert_eq!(hosts::labelled("edge"), before);
}

#[test]
fn other_labels_of_a_claimed_host_stay_free() {
    sip::edge();
    let _off = Restore(|| drop(kubectl_host("label", "tenant-cp-0", "system-test-")));
    kubectl_host("label", "tenant-cp-0", "system-test=1").success();
}

#[test]
fn a_host_in_use_is_given_up_by_host_administrators_only() {
    sip::edge();
    // Eve may patch hosts, and is in none of the groups that the policy lists.
    let _gone = Restore(|| drop(kubectl("delete role,rolebinding system-test-eve --namespace=metal3")));
    kubectl("create role system-test-eve --namespace=metal3 --verb=get,patch --resource=baremetalhosts").success();
    kubectl("create rolebinding system-test-eve --namespace=metal3 --role=system-test-eve --user=eve").success();
    // A dry run asks admission, and leaves the host where it is.
    let annotate = |who: &str| {
        kubectl_host("annotate", "tenant-cp-0", &format!("{FORCE}=tenant-a/edge --dry-run=server --as=eve {who}"))
    };
    let said = until("RBAC knows Eve", Duration::from_secs(20), || {
        let said = annotate("").refusal();
        if said.contains("cannot patch") || said.contains("cannot get") { Err(said) } else { Ok(said) }
    });
    assert!(said.contains("only members of the groups listed as hostAdmins"), "{said}");
    annotate("--as-group=slipway:host-admins").success();
}
