//! The jump host's objects as a whole, and what a plan makes of them turn after turn.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    SIPClusterSpec,
    keys::CONTROL_PLANE,
    sipcluster::{Bmc, JumpHost},
};
use base::Key;
use proptest::prelude::*;
use serde_json::Value;

use super::super::{
    Backend, Credentials, Facts, Installation, Kind, Plan, Referred, Seen, Step, Want,
    carried_out::{after, decoded, made},
    plan,
};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti ann@desk";

fn installation() -> Installation {
    Installation {
        jump_host_image: "jump-host:1".to_owned(),
        proxy: BTreeMap::from([("HTTPS_PROXY".to_owned(), "http://proxy:3128".to_owned())]),
        ..Installation::default()
    }
}

fn spec() -> SIPClusterSpec {
    let mut entry = JumpHost {
        node_port: 30000,
        node_ssh_private_keys: "ssh-private-keys".to_owned(),
        ssh_authorized_keys: vec![KEY.to_owned()],
        ..JumpHost::default()
    };
    entry.common.node_interface_id = Some("oam-ipv4".to_owned());
    let mut spec = SIPClusterSpec::default();
    spec.services.jump_host.push(entry);
    spec
}

fn host(n: u8) -> Backend {
    Backend {
        host: Key::new("metal", format!("node{n:02}")),
        role: CONTROL_PLANE.to_owned(),
        addresses: BTreeMap::from([("oam-ipv4".to_owned(), format!("192.168.0.{n}"))]),
        bmc_address: format!("redfish+https://10.0.0.{n}:8000/redfish/v1/Systems/{n}"),
        bmc_insecure: false,
        leaving: false,
    }
}

fn want<'a>(spec: &'a SIPClusterSpec, installation: &'a Installation, backends: Vec<Backend>) -> Want<'a> {
    Want {
        owner: Key::new("default", "default"),
        owner_uid: "uid-1".to_owned(),
        spec,
        backends,
        installation,
        gone: false,
    }
}

fn with_keys() -> Seen {
    let keys = Referred { data: BTreeMap::from([("key".to_owned(), Arc::from(*b"private"))]) };
    Seen {
        referred: BTreeMap::from([("ssh-private-keys".to_owned(), keys)]),
        node_ips: vec!["10.9.0.1".to_owned()],
        ..Seen::default()
    }
}

fn secret_text(plan: &Plan, key: &str) -> String {
    let body = made(plan, Kind::Secret, "jumphost-default").expect("the Secret is made");
    let bytes: k8s_openapi::ByteString = serde_json::from_value(body["data"][key].clone()).expect("base64");
    String::from_utf8(bytes.0).expect("text")
}

#[test]
fn the_objects_are_those_of_the_golden_file() {
    let (spec, installation) = (spec(), installation());
    let plan = plan(&want(&spec, &installation, vec![host(1), host(2)]), &with_keys());
    let mut objects: Vec<_> = plan
        .steps
        .iter()
        .map(|step| match step {
            Step::Create(object) | Step::MakeHostKeys { object } => object,
            other => panic!("{other:?}"),
        })
        .collect();
    objects.sort_by_key(|object| (object.kind, &object.name));
    let bodies: Vec<Value> = objects.into_iter().map(|object| readable(object.body.clone())).collect();
    assert_eq!(serde_json::to_string_pretty(&bodies).unwrap() + "\n", include_str!("golden.json"));
}

/// A manifest with the texts of its Secret in the clear, and of its metadata only the name: the rest is the framework's.
fn readable(mut body: Value) -> Value {
    if body["kind"] == "Secret" {
        let texts = decoded(body.get("data").unwrap_or(&serde_json::json!({})));
        body["data"] =
            texts.into_iter().map(|(key, bytes)| (key, Value::from(String::from_utf8_lossy(&bytes)))).collect();
    }
    body["metadata"] = body["metadata"]["name"].clone();
    body
}

#[test]
fn what_the_originals_suite_asks_of_a_jump_host_holds() {
    let (mut spec, installation) = (spec(), installation());
    spec.services.jump_host[0].bmc = Some(Bmc { proxy: None, expose: Some(true) });
    let mut seen = with_keys();
    for n in [1, 2] {
        let login = Credentials { username: "root".to_owned(), password: format!("pass {n}") };
        seen.credentials.insert(host(n).host, login);
    }
    let plan = plan(&want(&spec, &installation, vec![host(1), host(2)]), &seen);
    for kind in [Kind::Deployment, Kind::Service, Kind::Secret] {
        assert!(made(&plan, kind, "jumphost-default").is_some(), "{kind}");
    }
    let deployment = made(&plan, Kind::Deployment, "jumphost-default").unwrap();
    assert_eq!(
        deployment["spec"]["template"]["spec"]["hostAliases"],
        serde_json::json!([
            { "ip": "192.168.0.1", "hostnames": ["node01"] },
            { "ip": "192.168.0.2", "hostnames": ["node02"] },
        ])
    );
    let hosts: Value = serde_json::from_str(&secret_text(&plan, "hosts")).unwrap();
    assert_eq!(hosts[1]["bmc"]["username"], "root");
    assert_eq!(hosts[1]["bmc"]["password"], "pass 2");
}

#[test]
fn logins_of_bmcs_stay_away_unless_they_are_asked_for() {
    let (spec, installation) = (spec(), installation());
    let mut seen = with_keys();
    let login = Credentials { username: "root".to_owned(), password: "hidden".to_owned() };
    seen.credentials.insert(host(1).host, login);
    let plan = plan(&want(&spec, &installation, vec![host(1)]), &seen);
    assert!(!secret_text(&plan, "hosts").contains("hidden"));
    assert!(!format!("{plan:?}").contains("hidden"));
}

#[test]
fn a_carried_out_plan_leaves_nothing_to_do() {
    let (spec, installation) = (spec(), installation());
    let want = want(&spec, &installation, vec![host(1), host(2)]);
    let mut seen = with_keys();
    seen.tenant_kubeconfig = Some(Arc::from(*b"kind: Config"));
    let seen = after(seen.clone(), &plan(&want, &seen));
    let rest = plan(&want, &seen);
    assert_eq!(rest.steps, []);
    assert!(rest.ready, "{:?}", rest.problems);
    assert_eq!((rest.endpoints.jump_host[0].host.as_str(), rest.endpoints.jump_host[0].port), ("10.9.0.1", 30000));
}

#[test]
fn keys_change_without_a_new_pod_and_a_leaving_host_is_forgotten() {
    let (mut spec, installation) = (spec(), installation());
    let mut backends = vec![host(1), host(2)];
    let first = want(&spec, &installation, backends.clone());
    let seen = after(with_keys(), &plan(&first, &with_keys()));

    spec.services.jump_host[0].ssh_authorized_keys.clear();
    let rotated = plan(&want(&spec, &installation, backends.clone()), &seen);
    let touched: Vec<_> = rotated.steps.iter().map(|step| format!("{step:?}")).collect();
    assert_eq!(touched.len(), 1, "{touched:?}");
    assert_eq!(made(&rotated, Kind::ConfigMap, "jumphost-default").unwrap()["data"]["authorized-keys"], "");

    backends[1].leaving = true;
    let left = plan(&want(&spec, &installation, backends), &after(seen, &rotated));
    assert!(
        !secret_text(&left, "hosts").contains("node02") && !secret_text(&left, "ssh_config").contains("192.168.0.2")
    );
    assert!(!made(&left, Kind::Deployment, "jumphost-default").unwrap().to_string().contains("node02"));
}

#[test]
fn a_bad_key_is_named_and_the_others_work() {
    let (mut spec, installation) = (spec(), installation());
    spec.services.jump_host[0].ssh_authorized_keys.insert(0, "garbage".to_owned());
    let plan = plan(&want(&spec, &installation, vec![]), &with_keys());
    let message = "spec.services.jumpHost[0].sshAuthorizedKeys[0] has no key: expected '[options] type base64 [comment]'; the other keys are in use";
    assert!(
        plan.problems.iter().any(|p| p.message == message && p.entry == "spec.services.jumpHost[0]"),
        "{:?}",
        plan.problems
    );
    assert_eq!(
        made(&plan, Kind::ConfigMap, "jumphost-default").unwrap()["data"]["authorized-keys"],
        format!("{KEY}\n")
    );
}

#[test]
fn missing_private_keys_are_named_and_everything_else_is_made() {
    let (spec, installation) = (spec(), installation());
    let plan = plan(&want(&spec, &installation, vec![host(1)]), &Seen::default());
    assert!(
        plan.problems.iter().any(|p| p
            .message
            .starts_with("spec.services.jumpHost[0].nodeSSHPrivateKeys: Secret default/ssh-private-keys is missing")),
        "{:?}",
        plan.problems
    );
    assert_eq!(secret_text(&plan, "ssh_config"), "Host *\n\nHost node01\n  HostName 192.168.0.1\n");
    assert!(made(&plan, Kind::Deployment, "jumphost-default").is_some());
}

#[test]
fn host_keys_survive_and_only_a_gutted_secret_is_made_anew() {
    let (spec, installation) = (spec(), installation());
    let want = want(&spec, &installation, vec![]);
    let seen = after(with_keys(), &plan(&want, &with_keys()));

    let mut restored = want.clone();
    restored.owner_uid = "uid-2".to_owned();
    let adopted = plan(&restored, &seen);
    let body = made(&adopted, Kind::Secret, "jumphost-default-host-keys").expect("it gets the new owner's label");
    assert_eq!(decoded(&body["data"])[super::HOST_KEY], Arc::from(*b"host key"));
    assert_eq!(plan(&restored, &after(seen.clone(), &adopted)).steps, []);

    let mut gutted = seen;
    let key = (Kind::Secret, "jumphost-default-host-keys".to_owned());
    gutted.objects.get_mut(&key).unwrap().facts = Facts::Secret { data: BTreeMap::new() };
    let cleared = plan(&want, &gutted);
    assert!(matches!(cleared.steps.as_slice(), [Step::Delete { name, .. }] if *name == key.1), "{:?}", cleared.steps);
    let next = plan(&want, &after(gutted, &cleared));
    assert!(matches!(next.steps.as_slice(), [Step::MakeHostKeys { .. }]), "{:?}", next.steps);
}

#[test]
fn an_image_that_nobody_names_leaves_the_pod_as_it_is() {
    let (spec, with) = (spec(), installation());
    let seen = after(with_keys(), &plan(&want(&spec, &with, vec![]), &with_keys()));
    let without = Installation::default();
    let plan = plan(&want(&spec, &without, vec![]), &seen);
    assert!(plan.problems.iter().any(|p| p.message.starts_with("spec.services.jumpHost[0].image is empty")));
    assert_eq!(plan.steps, []);
    assert!(!plan.ready);
}

#[test]
fn proxies_are_the_installations_only_where_they_are_asked_for() {
    let (mut spec, installation) = (spec(), installation());
    let plain = plan(&want(&spec, &installation, vec![]), &with_keys());
    assert_eq!(secret_text(&plain, "environment"), "export NO_PROXY='*'\nexport no_proxy='*'\n");
    spec.services.jump_host[0].bmc = Some(Bmc { proxy: Some(true), expose: None });
    let proxied = plan(&want(&spec, &installation, vec![]), &with_keys());
    assert_eq!(
        secret_text(&proxied, "environment"),
        "export HTTPS_PROXY='http://proxy:3128'\nexport SIP_BMC_PROXY='true'\n"
    );
    let deployment = made(&proxied, Kind::Deployment, "jumphost-default").unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["env"], serde_json::json!([]));
}

proptest! {
    #[test]
    fn settled_whatever_the_keys_and_hosts(
        keys in prop::collection::vec("\\PC{0,30}", 0..3),
        hosts in prop::collection::btree_set(1u8..9, 0..4),
        leaving in any::<u8>(),
        exposed in any::<bool>(),
    ) {
        let (mut spec, installation) = (spec(), installation());
        spec.services.jump_host[0].ssh_authorized_keys.extend(keys);
        spec.services.jump_host[0].bmc = Some(Bmc { proxy: None, expose: Some(exposed) });
        let backends = hosts.iter().map(|n| Backend { leaving: leaving & (1 << (n % 8)) != 0, ..host(*n) }).collect();
        let want = want(&spec, &installation, backends);
        let seen = after(with_keys(), &plan(&want, &with_keys()));
        prop_assert_eq!(plan(&want, &seen).steps, vec![]);
    }
}

#[test]
fn what_cannot_be_read_is_not_taken_for_absent() {
    let (spec, installation) = (spec(), installation());
    let made = |seen: &Seen| plan(&want(&spec, &installation, vec![host(1)]), seen);
    let mut seen = Seen { tenant_kubeconfig: Some(Arc::from(*b"config")), ..with_keys() };
    for _ in 0..3 {
        let next = made(&seen);
        seen = after(seen, &next);
    }
    assert_eq!(made(&seen).steps, []);
    seen.referred.clear();
    seen.tenant_kubeconfig = None;
    assert_ne!(made(&seen).steps, [], "absent, both are taken out");
    seen.unread.referred.insert("ssh-private-keys".to_owned(), "not now".to_owned());
    seen.unread.tenant_kubeconfig = Some("not now either".to_owned());
    let plan = made(&seen);
    assert_eq!(plan.steps, [], "{plan}");
    assert!(plan.problems.iter().any(|problem| problem.message.ends_with("nodeSSHPrivateKeys: not now")), "{plan}");
    assert!(plan.warnings.iter().any(|warning| warning.message.ends_with("not now either")), "{plan}");
    assert_eq!(plan.again_in, Some(30));
}
