//! What deletion takes away, and when.

use std::time::Duration;

use serde_json::json;

use crate::{
    hosts,
    sip::{self, NAMESPACE, SETTLES, owned},
    stack::{Restore, get, kubectl, until},
};

#[test]
fn a_cluster_in_use_is_served_until_nobody_uses_it_and_then_leaves_nothing() {
    sip::edge();
    let services = json!({ "loadBalancerWorker": [{
        "nodeInterfaceId": "oam-ipv4", "nodePortRange": { "start": 31080, "end": 31080 },
    }] });
    let _made = sip::made(&sip::with_services("doomed", 1, &services));
    let sip = sip::ready("doomed");
    let uid = sip["metadata"]["uid"].as_str().unwrap();
    let held = hosts::labelled("doomed");
    let name = held.first().expect("one host").clone();
    let running = hosts::consumed(&name);

    // Foreground: the garbage collector must not take our objects before we let it.
    let line = format!("delete sipcluster doomed --namespace={NAMESPACE} --cascade=foreground --wait=false");
    kubectl(&line).success();
    sip::kept_for("doomed", &name);
    assert_eq!(hosts::labelled("doomed"), held, "the host stays while it is used");
    let serving = owned(uid);
    for object in ["deployment.apps/loadbalancer-worker-doomed", "service/loadbalancer-worker-doomed"] {
        assert!(serving.contains(object), "{object} is gone while a host is used: {serving:?}");
    }
    let available = get(&format!("deployment loadbalancer-worker-doomed --namespace={NAMESPACE}"));
    assert_eq!(available["status"]["availableReplicas"], 2);

    drop(running);
    until("the SIPCluster is gone", SETTLES, || {
        let left = get(&format!("sipclusters --namespace={NAMESPACE} --field-selector=metadata.name=doomed"));
        if left["items"].as_array().unwrap().is_empty() { Ok(()) } else { Err(left["items"][0]["status"].to_string()) }
    });
    assert!(hosts::labelled("doomed").is_empty());
    // Pods have their grace; everything else went before the SIPCluster did or is collected now.
    until("nothing is left", Duration::from_mins(1), || {
        let left = owned(uid);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

#[test]
fn a_used_host_is_given_up_when_a_host_administrator_says_so() {
    sip::edge();
    let _made = sip::made(&sip::workers("forced", 1));
    sip::ready("forced");
    let name = hosts::labelled("forced").first().expect("one host").clone();
    let _running = hosts::consumed(&name);
    kubectl(&format!("delete sipcluster forced --namespace={NAMESPACE} --wait=false")).success();
    sip::kept_for("forced", &name);

    let force = "sip.airshipit.org/force-release";
    let admin = "--as=system-test --as-group=system:masters";
    let _force = Restore(|| drop(hosts::kubectl_host("annotate", &name, &format!("{force}- {admin}"))));
    hosts::kubectl_host("annotate", &name, &format!("{force}={NAMESPACE}/forced {admin}")).success();
    until("the host is given up", SETTLES, || {
        let held = hosts::labelled("forced");
        if held.is_empty() { Ok(()) } else { Err(format!("{held:?}")) }
    });
}
