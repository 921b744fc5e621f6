//! Connections through the load balancer that outlive an expansion and a contraction.

use std::{
    collections::BTreeSet,
    fs::File,
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::json;

use crate::{
    hosts::{self, RELEASED},
    sip::{self, SETTLES},
    stack::{Folder, Restore, get, kubectl, run, tenant_kubectl, until},
};

/// Servers in the configuration that this pod's HAProxy has loaded.
fn servers(pod: &str) -> BTreeSet<String> {
    let line = format!("exec {pod} --namespace=tenant-a --container=loadbalancer -- cat /run/haproxy/haproxy.cfg");
    let config = kubectl(&line).success();
    let servers = config.lines().filter_map(|line| line.trim().strip_prefix("server "));
    servers.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

fn backends_are(names: &[&str]) {
    let wanted: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
    until(&format!("every load balancer's servers are {names:?}"), SETTLES, || {
        let pods =
            get("pods --namespace=tenant-a --selector=app.kubernetes.io/instance=loadbalancer-controlplane-edge");
        let pods = hosts::names(&pods);
        let seen: Vec<_> = pods.iter().map(|pod| servers(pod)).collect();
        if seen.len() == 2 && seen.iter().all(|one| *one == wanted) { Ok(()) } else { Err(format!("{seen:?}")) }
    });
}

/// A watch held open by one process over one connection.
struct Watch {
    child: Child,
    out: std::path::PathBuf,
}

impl Watch {
    fn open(folder: &Folder, name: &str) -> Self {
        let out = folder.path().join(name);
        let mut kubectl = tenant_kubectl("get configmaps --namespace=default --watch-only --output=name");
        let child = kubectl
            .stdin(Stdio::null())
            .stdout(File::create(&out).unwrap())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("kubectl starts");
        let mut watch = Self { child, out };
        // It is open when it delivers; what was made before that is not repeated, so make until something comes.
        let mut count = 0;
        until("the watch is open", Duration::from_secs(30), || {
            count += 1;
            let marker = format!("{name}-open-{count}");
            make(&marker);
            if watch.delivered("-open-") { Ok(()) } else { Err(format!("{count} objects made, none delivered")) }
        });
        watch
    }

    fn delivered(&mut self, marker: &str) -> bool {
        assert!(self.child.try_wait().unwrap().is_none(), "the watch was cut");
        std::fs::read_to_string(&self.out).unwrap().contains(marker)
    }

    /// Something new in the tenant comes through.
    fn goes_on(&mut self, marker: &str) {
        make(marker);
        until(&format!("{marker} comes through the watch"), Duration::from_secs(20), || {
            if self.delivered(marker) { Ok(()) } else { Err("not delivered".to_owned()) }
        });
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make(marker: &str) {
    run(&mut tenant_kubectl(&format!("create configmap system-test-{marker} --namespace=default"))).success();
    let line = format!("label configmap system-test-{marker} --namespace=default system-test=1");
    run(&mut tenant_kubectl(&line)).success();
}

#[test]
fn connections_go_on_while_the_cluster_grows_and_shrinks() {
    let before = sip::edge();
    let spec = before["spec"].clone();
    let folder = Folder::new("sessions");
    let _objects = Restore(|| {
        let line = "delete configmaps --namespace=default --selector=system-test=1";
        let _ = run(&mut tenant_kubectl(line)).ok();
    });
    let _spec = Restore(|| {
        sip::change("edge", &json!({ "nodes": spec["nodes"] }));
        sip::ready("edge");
        // The next test may want the host that was lent.
        until("tenant-cp-3 is out of quarantine", SETTLES, || {
            let released = hosts::host("tenant-cp-3")["metadata"]["annotations"][RELEASED].clone();
            if released.is_null() { Ok(()) } else { Err(released.to_string()) }
        });
    });
    // Several at once, so that both load balancers and more than one of their servers hold one.
    let mut watches: Vec<Watch> = (0..4).map(|number| Watch::open(&folder, &format!("w{number}"))).collect();
    let mut all_go_on = |when: &str| {
        for (number, watch) in watches.iter_mut().enumerate() {
            watch.goes_on(&format!("{when}-{number}"));
        }
    };

    // The spare host shares a rack, so the rule has to be weaker before a fourth one is possible.
    let control_plane = |active: i64, standby: i64| {
        json!({ "nodes": { "ControlPlane": {
            "topologyKey": "vino.airshipit.org/host", "count": { "active": active, "standby": standby },
        } } })
    };
    sip::change("edge", &control_plane(3, 1));
    sip::ready("edge");
    backends_are(&["tenant-cp-0", "tenant-cp-1", "tenant-cp-2", "tenant-cp-3"]);
    assert!(hosts::labelled("edge").contains("tenant-cp-3"));
    all_go_on("grown");

    // The newest host leaves. It has no API server, so no connection is one to it and none may be cut.
    sip::change("edge", &control_plane(3, 0));
    sip::ready("edge");
    until("tenant-cp-3 is released", SETTLES, || {
        let host = hosts::host("tenant-cp-3");
        let labels = &host["metadata"]["labels"];
        let free = labels["sip.airshipit.org/cluster-name"].is_null();
        let noted = !host["metadata"]["annotations"][RELEASED].is_null();
        if free && noted { Ok(()) } else { Err(format!("{}", host["metadata"])) }
    });
    // Not "soon": at the moment its labels are off it is no backend any more.
    let pods = get("pods --namespace=tenant-a --selector=app.kubernetes.io/instance=loadbalancer-controlplane-edge");
    for pod in hosts::names(&pods) {
        assert!(!servers(&pod).contains("tenant-cp-3"), "{pod} still serves a host that is given back");
    }
    backends_are(&["tenant-cp-0", "tenant-cp-1", "tenant-cp-2"]);
    all_go_on("shrunk");
}
