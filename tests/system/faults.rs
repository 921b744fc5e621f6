//! What a cluster does to its controllers: leaders change, the API server dies, finalizers are stripped, backups come back.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::{
    hosts,
    manager::{self, processes, signal},
    sip::{self, NAMESPACE, SETTLES},
    stack::{Restore, command, feed, get, kubectl, run, until},
};

/// The service of a worker load balancer, on a port of its own.
fn balanced(name: &str, port: u16) -> Value {
    let range = json!({ "start": port, "end": port });
    let services = json!({ "loadBalancerWorker": [{ "nodeInterfaceId": "oam-ipv4", "nodePortRange": range }] });
    sip::with_services(name, 1, &services)
}

/// Recorded hosts: name, role, address.
fn record(sip: &Value) -> BTreeSet<String> {
    let hosts = sip["status"]["hosts"].as_array().cloned().unwrap_or_default();
    hosts.iter().map(|host| format!("{} {} {}", host["name"], host["role"], host["addresses"])).collect()
}

/// Another cluster comes and goes: whatever the manager and the garbage collector were about to do, they have done.
fn barrier() {
    let _witness = sip::made(&sip::workers("witness", 0));
    sip::ready("witness");
}

#[test]
fn a_standby_takes_over_from_a_leader_that_is_killed_and_from_one_that_is_paused() {
    sip::edge();
    let edge = hosts::labelled("edge");
    let _alone = Restore(|| manager::replicas(1));
    manager::replicas(2);

    let (old, uid) = manager::leader();
    let _burst = sip::made(&sip::workers("burst", 1));
    for pid in processes(&uid) {
        signal("KILL", &pid);
    }
    kubectl(&format!("delete pod {old} --namespace=slipway-system --force --grace-period=0 --wait=false")).success();
    manager::succeeded(&old);
    assert_eq!(record(&sip::ready("burst")).len(), 1);
    assert_eq!(hosts::labelled("burst").len(), 1);
    manager::replicas(2);

    // A paused process holds its connections, and wakes up in the middle of what it was about to write.
    let (old, uid) = manager::leader();
    let paused = processes(&uid);
    assert!(!paused.is_empty(), "the leader {old} has a process");
    let woken = Restore(|| {
        for pid in &paused {
            signal("CONT", pid);
        }
    });
    for pid in &paused {
        signal("STOP", pid);
    }
    kubectl(&format!("delete sipcluster burst --namespace={NAMESPACE} --wait=false")).success();
    manager::succeeded(&old);
    sip::gone("burst");
    drop(woken);
    manager::replicas(2);
    barrier();
    assert!(hosts::labelled("burst").is_empty(), "a late write of the old leader labelled a host");
    assert_eq!(hosts::labelled("edge"), edge);
    sip::edge();
}

#[test]
fn an_api_server_that_dies_in_the_middle_of_claims_costs_time_and_nothing_else() {
    let before = record(&sip::edge());
    let _up = Restore(|| drop(run(command("cargo").args(["xtask", "up", "--base"]))));
    let kill = || {
        let known = fs::read("/run/slipway-dev/processes/kube-apiserver.json").unwrap();
        let known: Value = serde_json::from_slice(&known).unwrap();
        assert!(signal("KILL", &known["pid"].to_string()), "the API server ran");
        run(command("cargo").args(["xtask", "up", "--base"])).success();
    };
    let _made = sip::made(&sip::workers("burst", 1));
    kill();
    assert_eq!(record(&sip::ready("burst")).len(), 1);
    assert_eq!(hosts::labelled("burst").len(), 1);
    kubectl(&format!("delete sipcluster burst --namespace={NAMESPACE} --wait=false")).success();
    kill();
    sip::gone("burst");
    assert!(hosts::labelled("burst").is_empty());
    assert_eq!(record(&sip::edge()), before);
}

#[test]
fn a_finalizer_stripped_by_hand_takes_nothing_from_a_host_in_use() {
    sip::edge();
    let _made = sip::made(&balanced("stripped", 31081));
    let uid = sip::ready("stripped")["metadata"]["uid"].as_str().unwrap().to_owned();
    let held = hosts::labelled("stripped");
    let name = held.first().expect("one host").clone();
    let running = hosts::consumed(&name);
    kubectl(&format!("delete sipcluster stripped --namespace={NAMESPACE} --cascade=foreground --wait=false")).success();
    sip::kept_for("stripped", &name);
    let strip = ["patch", "sipcluster", "stripped", "--namespace", NAMESPACE, "--type=merge", "--patch"];
    run(command("kubectl").args(strip).arg(r#"{"metadata":{"finalizers":null}}"#)).success();
    sip::gone("stripped");

    barrier();
    assert_eq!(hosts::labelled("stripped"), held, "the host stays while it is used");
    let owned = || sip::owned(&uid);
    for object in ["deployment.apps/loadbalancer-worker-stripped", "service/loadbalancer-worker-stripped"] {
        assert!(owned().contains(object), "{object} is gone while a host is used: {:?}", owned());
    }

    drop(running);
    until("the host is free and nothing is left", SETTLES, || {
        let (held, left) = (hosts::labelled("stripped"), owned());
        if held.is_empty() && left.is_empty() { Ok(()) } else { Err(format!("{held:?} {left:?}")) }
    });
    sip::edge();
}

#[test]
fn clusters_restored_without_their_status_know_their_hosts_and_addresses() {
    sip::edge();
    let _made = sip::made(&balanced("restored", 31082));
    let before = sip::ready("restored");
    let held = hosts::labelled("restored");
    let name = held.first().expect("one host").clone();
    let running = hosts::consumed(&name);
    // Metal3's provider takes networkData for itself.
    let data = hosts::host(&name)["spec"]["networkData"].clone();
    assert!(!data.is_null(), "the sample's hosts have network data");
    let _data = Restore(|| drop(hosts::change(&name, &json!({ "spec": { "networkData": data } }))));
    hosts::change(&name, &json!({ "spec": { "networkData": null } })).success();

    // As a backup brings it back: the spec, a new uid, no status; and nobody was there meanwhile.
    let managers = Restore(|| manager::replicas(1));
    manager::replicas(0);
    let mut backup = sip::sip("restored");
    let object = backup.as_object_mut().unwrap();
    object.remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        metadata.remove(field);
    }
    kubectl(&format!("delete sipcluster restored --namespace={NAMESPACE} --wait=false")).success();
    let strip = ["patch", "sipcluster", "restored", "--namespace", NAMESPACE, "--type=merge", "--patch"];
    run(command("kubectl").args(strip).arg(r#"{"metadata":{"finalizers":null}}"#)).success();
    sip::gone("restored");
    feed(command("kubectl").args(["create", "--filename=-"]), &backup.to_string()).success();
    drop(managers);

    let after = sip::ready("restored");
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert_eq!(record(&after), record(&before), "the same hosts with the same addresses");
    assert_eq!(hosts::labelled("restored"), held);
    assert_eq!(after["status"]["endpoint"], before["status"]["endpoint"]);
    let secret = get(&format!("secret loadbalancer-worker-restored --namespace={NAMESPACE}"));
    assert_eq!(secret["metadata"]["labels"]["sip.airshipit.org/owner-uid"], after["metadata"]["uid"]);
    drop(running);
}
