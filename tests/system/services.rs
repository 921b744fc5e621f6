//! Services that are asked for what cannot work: what worked goes on, and a condition says what and where.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    sip::{self, NAMESPACE, SETTLES},
    stack::{NODE, Restore, command, create, feed, kubectl, run, until},
};

/// What the workers of the example answer through their load balancer, now.
fn served() -> Option<String> {
    let mut curl = command("curl");
    curl.args(["--silent", "--fail", "--max-time", "10", "--noproxy", "*"]).arg(format!("http://{NODE}:30080/"));
    run(&mut curl).ok()
}

/// Waits until some condition of the cluster speaks of all of this; the service answers whenever it is asked meanwhile.
fn tells_and_serves(name: &str, words: &[&str]) {
    until(&format!("{name} says {words:?}"), SETTLES, || {
        assert!(served().is_some(), "the old configuration does not serve any more");
        let sip = sip::sip(name);
        let conditions = sip["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let tells = |one: &Value| words.iter().all(|word| one["message"].as_str().unwrap_or_default().contains(word));
        if conditions.iter().any(tells) { Ok(()) } else { Err(Value::from(conditions).to_string()) }
    });
}

fn template(text: &str) {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "loadbalancerworker", "namespace": NAMESPACE },
        "data": { "loadBalancerWorker.cfg": text },
    });
    let line = ["apply", "--server-side", "--force-conflicts", "--filename=-"];
    feed(command("kubectl").args(line), &map.to_string()).success();
}

#[test]
fn a_template_that_does_not_work_is_named_and_what_worked_serves_on() {
    sip::edge();
    let _gone = Restore(|| {
        drop(kubectl(&format!("delete configmap loadbalancerworker --namespace={NAMESPACE} --ignore-not-found")));
    });
    template("{{ range .Servers }}\n{{ .Nmae ");
    tells_and_serves("edge", &["loadbalancerworker", "loadBalancerWorker.cfg", "line 2"]);
    template("frontend workers\n  bind *:30080\n  no-such-keyword 1\n");
    tells_and_serves("edge", &["loadBalancerWorker", "no-such-keyword"]);
    kubectl(&format!("delete configmap loadbalancerworker --namespace={NAMESPACE}")).success();
    until("nothing is wrong any more", SETTLES, || {
        let sip = sip::edge();
        match sip::condition(&sip, "ServicesAvailable") {
            Some(("True", "Available", "")) => Ok(()),
            seen => Err(format!("{seen:?}")),
        }
    });
    assert!(served().is_some());
}

#[test]
fn an_image_that_cannot_be_had_is_named_and_the_pods_with_the_old_one_serve_on() {
    let before = sip::edge()["spec"]["services"]["loadBalancerWorker"].clone();
    let change = |entries: &Value| sip::change("edge", &json!({ "services": { "loadBalancerWorker": entries } }));
    let _back = Restore(|| {
        change(&before);
        sip::edge();
    });
    let mut entries = before.clone();
    // Nobody listens there: the answer comes at once, and from this machine.
    entries[0]["image"] = json!("127.0.0.1:1/absent:dev");
    change(&entries);
    tells_and_serves("edge", &["loadBalancerWorker", "127.0.0.1:1/absent:dev"]);
}

#[test]
fn a_secret_that_is_missing_is_named_and_looked_for_until_it_is_there() {
    sip::edge();
    let services = json!({ "jumpHost": [{
        "nodeInterfaceId": "oam-ipv4", "nodePort": 31023, "nodeSSHPrivateKeys": "system-test-keys",
        "sshAuthorizedKeys": [],
    }] });
    let _made = sip::made(&sip::with_services("keyless", 0, &services));
    let _gone = Restore(|| {
        drop(kubectl(&format!("delete secret system-test-keys --namespace={NAMESPACE} --ignore-not-found")));
    });
    tells_and_serves("keyless", &["jumpHost", "system-test-keys"]);
    create(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "system-test-keys", "namespace": NAMESPACE },
        "stringData": { "id_test": "not a key, and never tried" },
    }))
    .success();
    let began = std::time::Instant::now();
    sip::ready("keyless");
    assert!(began.elapsed() < Duration::from_mins(2), "it was noticed only after {:?}", began.elapsed());
}
