//! A provider as a whole: the order in which it comes to be, and what it does when a piece is missing.

use api::{
    SIPClusterSpec,
    sipcluster::{Auth, AuthClient, AuthConnector, SecretKey},
};
use base::Key;
use proptest::prelude::*;
use serde_json::Value;

use super::super::{
    Facts, Installation, Kind, Plan, Referred, Seen, Step, Want,
    carried_out::{self, after, decoded, made, texts},
    plan,
};
use super::certificate;

const HASH: &str = "$2y$10$J4uj33QYOx/zN8JvTuEvHeYq9vbN0bBfPM0T2W.pQnDw0zGmOpsGK";
const CA: &str = "-----BEGIN CERTIFICATE-----\nTUlJQw==\n-----END CERTIFICATE-----\n";
const HOST: &str = "10.9.0.1";

fn installation() -> Installation {
    Installation { dex_image: "dex:1".to_owned(), ..Installation::default() }
}

fn key(name: &str, key: &str) -> SecretKey {
    SecretKey { name: name.to_owned(), key: key.to_owned() }
}

fn spec() -> SIPClusterSpec {
    let mut entry = Auth {
        passwords_secret: Some("users".to_owned()),
        connectors: vec![AuthConnector {
            kind: "ldap".to_owned(),
            id: "staff".to_owned(),
            name: "Staff".to_owned(),
            config_secret: key("ldap", "config"),
        }],
        clients: vec![AuthClient {
            id: "grafana".to_owned(),
            secret: Some(key("grafana", "secret")),
            redirect_uris: vec!["https://grafana.example/login".to_owned()],
        }],
        ..Auth::default()
    };
    entry.common.cluster_ip = Some(HOST.to_owned());
    let mut spec = SIPClusterSpec::default();
    spec.services.auth.push(entry);
    spec
}

fn want<'a>(spec: &'a SIPClusterSpec, installation: &'a Installation) -> Want<'a> {
    Want {
        owner: Key::new("tenant", "a"),
        owner_uid: "uid-1".to_owned(),
        spec,
        backends: Vec::new(),
        installation,
        gone: false,
    }
}

fn secrets() -> Seen {
    let mut seen = Seen { now: 1_000_000, ..Seen::default() };
    for (name, key, text) in [
        ("users", "users", format!("ann@example.org:{HASH}")),
        ("ldap", "config", "host: ldap.example:636\nbindPW: 'pa$$word $HOME'\n".to_owned()),
        ("grafana", "secret", "s3cret\n".to_owned()),
    ] {
        seen.referred.insert(name.to_owned(), Referred { data: texts(&[(key, &text)]) });
    }
    seen
}

/// Plans and carries out until nothing is left to do, and tells what was done in each turn.
fn settle(want: &Want<'_>, mut seen: Seen) -> (Seen, Vec<Vec<String>>) {
    let mut turns = Vec::new();
    loop {
        let plan = plan(want, &seen);
        if plan.steps.is_empty() && seen.published.as_ref() == Some(&plan.endpoints) {
            return (seen, turns);
        }
        let mut turn: Vec<String> = plan.steps.iter().map(said).collect();
        turn.sort();
        turns.push(turn);
        assert!(turns.len() < 9, "{turns:?}");
        seen = after(seen, &plan);
    }
}

fn said(step: &Step) -> String {
    match step {
        Step::Create(object) => format!("create {} {}", object.kind, object.name),
        Step::Update { object, .. } => format!("update {} {}", object.kind, object.name),
        Step::MakeCertificate { object, replaces: None, .. } => format!("certificate {}", object.name),
        Step::MakeCertificate { object, replaces: Some(_), .. } => format!("renew {}", object.name),
        other => format!("{other:?}"),
    }
}

fn config(seen: &Seen) -> Value {
    let Facts::Secret { data } = &seen.objects[&(Kind::Secret, "auth-a-config".to_owned())].facts else {
        panic!("a Secret has data")
    };
    serde_json::from_slice(&data["config.yaml"]).expect("JSON")
}

fn messages(plan: &Plan) -> Vec<&str> {
    plan.problems.iter().map(|problem| problem.message.as_str()).collect()
}

#[test]
fn each_step_waits_for_the_one_before() {
    let (spec, installation) = (spec(), installation());
    let want = want(&spec, &installation);
    let (seen, turns) = settle(&want, secrets());
    assert_eq!(
        turns,
        [
            vec!["create Service auth-a"],
            vec![],
            // From now on the Service asks for the port that is on record.
            vec!["certificate auth-a-tls", "update Service auth-a"],
            vec![
                "create ConfigMap auth-a-oidc",
                "create Deployment auth-a",
                "create PersistentVolumeClaim auth-a-data",
                "create Secret auth-a-config",
            ],
        ]
    );
    let settled = plan(&want, &seen);
    assert!(settled.ready, "{:?}", settled.problems);
    assert_eq!(settled.problems, []);
    let oidc = &settled.oidc[0];
    assert_eq!(oidc.issuer_url, format!("https://{HOST}:{}/dex", carried_out::ALLOCATED));
    assert_eq!((oidc.client_id.as_str(), oidc.config_map.as_str()), ("kubernetes", "auth-a-oidc"));
    assert_eq!(settled.again_in, Some(u64::try_from(carried_out::LIFE).unwrap() / 3 * 2));
}

#[test]
fn the_objects_are_those_of_the_golden_file() {
    let (mut spec, installation) = (spec(), installation());
    spec.services.auth[0].username_prefix = Some("oidc:".to_owned());
    spec.services.auth[0].groups_prefix = Some("oidc:".to_owned());
    let (seen, _) = settle(&want(&spec, &installation), secrets());
    let bodies: Vec<Value> = seen
        .objects
        .values()
        .filter_map(|owned| owned.live.as_deref().cloned())
        .map(|mut body| {
            if body["kind"] == "Secret" {
                let texts = decoded(body.get("data").unwrap_or(&serde_json::json!({})));
                let text = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes));
                body["data"] = texts.into_iter().map(|(key, bytes)| (key, text(&bytes))).collect();
            }
            body["metadata"] = body["metadata"]["name"].clone();
            body
        })
        .collect();
    let text = serde_json::to_string_pretty(&bodies).unwrap() + "\n";
    assert_eq!(text, include_str!("golden.json"));
}

#[test]
fn the_names_of_the_certificate_are_those_it_is_reached_by() {
    let (spec, installation) = (spec(), installation());
    let want = want(&spec, &installation);
    let mut seen = secrets();
    let names = loop {
        let plan = plan(&want, &seen);
        if let Some(names) = plan.steps.iter().find_map(|step| match step {
            Step::MakeCertificate { names, .. } => Some(names.clone()),
            _ => None,
        }) {
            break names;
        }
        seen = after(seen, &plan);
    };
    let expected = [HOST, "auth-a", "auth-a.tenant", "auth-a.tenant.svc", "auth-a.tenant.svc.cluster.local"];
    assert_eq!(names, expected.map(str::to_owned).into());
}

#[test]
fn a_certificate_is_renewed_in_time_and_dex_reads_it() {
    let (spec, installation) = (spec(), installation());
    let want = want(&spec, &installation);
    let (mut seen, _) = settle(&want, secrets());
    seen.now += carried_out::LIFE / 3 * 2 - 1;
    assert_eq!(plan(&want, &seen).steps, []);
    seen.now += 1;
    let (_, turns) = settle(&want, seen);
    assert_eq!(turns, [vec!["renew auth-a-tls"], vec!["update Deployment auth-a"]]);
}

#[test]
fn another_host_means_another_certificate_before_dex_changes() {
    let (mut spec, installation) = (spec(), installation());
    let (seen, _) = settle(&want(&spec, &installation), secrets());
    spec.services.auth[0].common.external_host = Some("login.example".to_owned());
    let (seen, turns) = settle(&want(&spec, &installation), seen);
    let changed = vec!["update ConfigMap auth-a-oidc", "update Deployment auth-a", "update Secret auth-a-config"];
    assert_eq!(turns, [vec![], vec!["renew auth-a-tls"], changed]);
    assert_eq!(config(&seen)["issuer"], format!("https://login.example:{}/dex", carried_out::ALLOCATED));
}

#[test]
fn an_old_manifest_with_a_ca_of_its_own_applies() {
    let (mut spec, installation) = (SIPClusterSpec::default(), installation());
    let entry =
        "image: quay.io/dexidp/dex:v2.20.0\nnodeInterfaceId: oam-ipv4\nnodePort: 30556\ncaSecret: dex-ca-key-pair\n";
    spec.services.auth.push(serde_saphyr::from_str(entry).unwrap());
    let mut seen = Seen { node_ips: vec![HOST.to_owned()], ..secrets() };
    let pair = Referred { data: texts(&[("tls.crt", CA), ("tls.key", "key of the CA")]) };
    seen.referred.insert("dex-ca-key-pair".to_owned(), pair);
    let want = want(&spec, &installation);
    let (mut seen, _) = settle(&want, seen);
    let Facts::Secret { data } = &seen.objects[&(Kind::Secret, "auth-a-tls".to_owned())].facts else { panic!() };
    assert_eq!(&*data["ca.crt"], CA.as_bytes());
    let settled = plan(&want, &seen);
    assert_eq!(settled.oidc[0].issuer_url, format!("https://{HOST}:30556/dex"));
    assert_eq!(
        messages(&settled),
        ["spec.services.auth[0]: nobody can log in, neither connectors nor passwordsSecret give a user"]
    );

    let renewed = Referred { data: texts(&[("tls.crt", &CA.replace("TUlJ", "TVlZ")), ("tls.key", "another")]) };
    seen.referred.insert("dex-ca-key-pair".to_owned(), renewed);
    seen.now += 1;
    let (_, turns) = settle(&want, seen);
    assert_eq!(turns, [vec!["renew auth-a-tls"], vec!["update ConfigMap auth-a-oidc", "update Deployment auth-a"]]);
}

#[test]
fn a_lost_ca_is_named_and_ends_nothing() {
    let (mut spec, installation) = (spec(), installation());
    spec.services.auth[0].ca_secret = Some("ca".to_owned());
    let mut seen = secrets();
    seen.referred.insert("ca".to_owned(), Referred { data: texts(&[("tls.crt", CA), ("tls.key", "key")]) });
    let want = want(&spec, &installation);
    let (mut seen, _) = settle(&want, seen);
    seen.referred.remove("ca");
    seen.now += carried_out::LIFE;
    let plan = plan(&want, &seen);
    assert_eq!(plan.steps, []);
    assert_eq!(messages(&plan), ["spec.services.auth[0].caSecret: Secret tenant/ca is missing"]);
}

#[test]
fn a_missing_or_bad_piece_stays_as_it_was_and_is_named() {
    let (spec, installation) = (spec(), installation());
    let want = want(&spec, &installation);
    let (mut seen, _) = settle(&want, secrets());
    let before = config(&seen);
    seen.referred.clear();
    let lost = plan(&want, &seen);
    assert_eq!(lost.steps, []);
    assert_eq!(
        messages(&lost),
        [
            "spec.services.auth[0].connectors[0].configSecret: Secret tenant/ldap is missing",
            "spec.services.auth[0].passwordsSecret: Secret tenant/users is missing",
            "spec.services.auth[0].clients[0].secret: Secret tenant/grafana is missing",
        ]
    );
    seen.referred = secrets().referred;
    seen.referred.insert("ldap".to_owned(), Referred { data: texts(&[("config", "- not a map")]) });
    seen.referred
        .insert("users".to_owned(), Referred { data: texts(&[("users", &format!("bob@example.org:{HASH}\neve:x"))]) });
    let bad = plan(&want, &seen);
    assert_eq!(
        messages(&bad),
        [
            "spec.services.auth[0].connectors[0].configSecret: key config of Secret tenant/ldap is no YAML map",
            "spec.services.auth[0].passwordsSecret: Secret tenant/users: key users has no bcrypt hash ($2a$, $2b$ or $2y$)",
        ]
    );
    let now = config(&after(seen, &bad));
    assert_eq!(now["connectors"], before["connectors"]);
    assert_eq!(now["staticPasswords"][0]["email"], "bob@example.org");
}

#[test]
fn what_dex_would_not_start_with_is_not_passed_on() {
    let (mut spec, installation) = (spec(), installation());
    let entry = &mut spec.services.auth[0];
    let mut unknown = entry.connectors[0].clone();
    (unknown.id, unknown.kind) = ("b".to_owned(), "ladp".to_owned());
    entry.connectors = vec![entry.connectors[0].clone(), entry.connectors[0].clone(), unknown];
    let client = |id: &str| AuthClient { id: id.to_owned(), secret: None, redirect_uris: vec![] };
    entry.clients = vec![client("kubernetes"), client("cli"), client("cli")];
    let (seen, _) = settle(&want(&spec, &installation), secrets());
    let said = plan(&want(&spec, &installation), &seen).problems;
    let starts = [
        "connectors[1].id \"staff\"",
        "connectors[2].type \"ladp\"",
        "clients[0].id \"kubernetes\"",
        "clients[2].id \"cli\"",
    ];
    for (problem, start) in said.iter().zip(starts) {
        assert!(problem.message.starts_with(&format!("spec.services.auth[0].{start}")), "{}", problem.message);
    }
    assert_eq!(said.len(), starts.len());
    let config = config(&seen);
    assert_eq!(config["connectors"].as_array().unwrap().len(), 1);
    assert_eq!(config["staticClients"].as_array().unwrap().len(), 2);
    assert_eq!(
        config["staticClients"][1],
        serde_json::json!({ "id": "cli", "name": "cli", "public": true, "redirectURIs": [] })
    );
}

#[test]
fn the_key_of_the_ca_stays_out_of_the_pod_and_passwords_out_of_everything_but_secrets() {
    let (spec, installation) = (spec(), installation());
    let (seen, _) = settle(&want(&spec, &installation), secrets());
    for ((kind, name), owned) in &seen.objects {
        let text = owned.live.as_ref().map(ToString::to_string).unwrap_or_default();
        assert!(!text.contains(certificate::CA_PRIVATE_KEY), "{kind} {name}");
        assert!(
            *kind == Kind::Secret || !["s3cret", HASH, "pa$$word"].iter().any(|secret| text.contains(secret)),
            "{kind} {name}"
        );
    }
}

#[test]
fn a_prefix_or_host_that_could_become_a_line_of_its_own_is_refused() {
    let (mut spec, installation) = (spec(), installation());
    spec.services.auth[0].groups_prefix = Some("a\n--anonymous-auth=true".to_owned());
    let (seen, _) = settle(&want(&spec, &installation), secrets());
    assert!(!seen.objects.contains_key(&(Kind::ConfigMap, "auth-a-oidc".to_owned())));
    let plan_ = plan(&want(&spec, &installation), &seen);
    assert!(messages(&plan_)[0].starts_with("spec.services.auth[0].groupsPrefix may hold"), "{:?}", plan_.problems);

    spec.services.auth[0].common.external_host = Some("x.example\nissuer: y".to_owned());
    let plan_ = plan(&want(&spec, &installation), &seen);
    assert!(messages(&plan_)[0].ends_with("is neither a DNS name nor an address"), "{:?}", plan_.problems);
    assert_eq!(plan_.steps, []);
}

#[test]
fn an_image_that_nobody_names_or_two_replicas_are_problems() {
    let (mut spec, without) = (spec(), Installation::default());
    spec.services.auth[0].common.replicas = Some(2);
    let want = want(&spec, &without);
    let (seen, _) = settle(&want, secrets());
    let settled = plan(&want, &seen);
    assert!(!settled.ready);
    assert_eq!(
        messages(&settled),
        [
            "spec.services.auth[0].replicas: a Dex that keeps its keys on a volume is one pod",
            "spec.services.auth[0].image is empty, and the installation names no default (SLIPWAY_DEX_IMAGE of the manager)",
        ]
    );
    assert!(made(&settled, Kind::Deployment, "auth-a").is_none());
}

#[test]
fn ipv6_is_in_brackets() {
    let (mut spec, installation) = (spec(), installation());
    spec.services.auth[0].common.cluster_ip = Some("fd00::5".to_owned());
    let (seen, _) = settle(&want(&spec, &installation), secrets());
    assert_eq!(config(&seen)["issuer"], format!("https://[fd00::5]:{}/dex", carried_out::ALLOCATED));
}

fn with_definitions() -> Seen {
    Seen { dex_definitions: true, ..secrets() }
}

fn storage(seen: &Seen) -> Value {
    config(seen)["storage"]["type"].clone()
}

fn live<'a>(seen: &'a Seen, kind: Kind, name: &str) -> &'a Value {
    seen.objects[&(kind, name.to_owned())].live.as_deref().expect("it was just made")
}

#[test]
fn where_dex_has_its_definitions_two_pods_share_their_keys_by_an_account_that_may_read_nothing_else() {
    let (spec, installation) = (spec(), installation());
    let want = want(&spec, &installation);
    let (seen, turns) = settle(&want, with_definitions());
    let rights = vec!["create ConfigMap auth-a-oidc", "create RoleBinding slipway-dex", "create ServiceAccount auth-a"];
    let rest = vec!["create Deployment auth-a", "create PodDisruptionBudget auth-a", "create Secret auth-a-config"];
    assert_eq!(turns[turns.len() - 2..], [rights, rest], "nobody may write before the right to it is ours");
    assert_eq!(config(&seen)["storage"], serde_json::json!({"type": "kubernetes", "config": {"inCluster": true}}));
    let spec = &live(&seen, Kind::Deployment, "auth-a")["spec"];
    let pod = &spec["template"]["spec"];
    assert_eq!((&spec["replicas"], &spec["strategy"]["type"]), (&2.into(), &"RollingUpdate".into()));
    assert_eq!((&pod["serviceAccountName"], &pod["automountServiceAccountToken"]), (&"auth-a".into(), &true.into()));
    assert!(!pod["volumes"].to_string().contains("persistentVolumeClaim"));
    let binding = live(&seen, Kind::RoleBinding, "slipway-dex");
    assert_eq!(
        (&binding["roleRef"]["kind"], &binding["roleRef"]["name"]),
        (&"ClusterRole".into(), &"slipway-dex".into())
    );
    assert_eq!(binding["subjects"][0]["name"], "auth-a");
    let settled = plan(&want, &seen);
    assert!(settled.ready, "{:?}", settled.problems);
    assert_eq!(settled.oidc[0].storage.as_deref(), Some("Kubernetes"));
}

#[test]
fn what_was_chosen_stays_whatever_comes_or_goes_later() {
    let (spec, installation) = (spec(), installation());
    let want = want(&spec, &installation);
    let (on_volume, _) = settle(&want, secrets());
    assert_eq!(plan(&want, &on_volume).oidc[0].storage.as_deref(), Some("Volume"));
    let mut seen = Seen { dex_definitions: true, ..on_volume };
    assert_eq!(plan(&want, &seen).steps, []);
    // Not even when its configuration is lost.
    seen.objects.remove(&(Kind::Secret, "auth-a-config".to_owned()));
    assert_eq!(storage(&settle(&want, seen).0), "sqlite3");

    let (in_kubernetes, _) = settle(&want, with_definitions());
    let mut seen = Seen { dex_definitions: false, ..in_kubernetes };
    assert_eq!(plan(&want, &seen).steps, []);
    seen.objects.remove(&(Kind::Secret, "auth-a-config".to_owned()));
    assert_eq!(storage(&settle(&want, seen).0), "kubernetes");
}

#[test]
fn providers_of_one_namespace_never_share_keys() {
    let (mut spec, installation) = (spec(), installation());
    let mut second = spec.services.auth[0].clone();
    second.common.name = Some("guests".to_owned());
    spec.services.auth.push(second);
    let (seen, _) = settle(&want(&spec, &installation), with_definitions());
    assert_eq!(storage(&seen), "kubernetes");
    assert!(seen.objects.contains_key(&(Kind::PersistentVolumeClaim, "auth-a-guests-data".to_owned())));

    // Another SIPCluster of the namespace was first.
    let mut taken = with_definitions();
    let facts = Facts::Binding { account: "auth-b".to_owned() };
    let owner_name = Some("b".to_owned());
    let owned = super::super::Owned { owner_name, owner_uid: Some("uid-b".to_owned()), facts, ..Default::default() };
    taken.objects.insert((Kind::RoleBinding, "slipway-dex".to_owned()), owned);
    spec.services.auth.pop();
    let (seen, _) = settle(&want(&spec, &installation), taken);
    assert_eq!(storage(&seen), "sqlite3");
    assert_eq!(seen.objects[&(Kind::RoleBinding, "slipway-dex".to_owned())].owner_name.as_deref(), Some("b"));
}

#[test]
fn with_the_provider_its_rights_go_after_its_pods() {
    let (mut spec, installation) = (spec(), installation());
    let (seen, _) = settle(&want(&spec, &installation), with_definitions());
    spec.services.auth.clear();
    let plan = plan(&want(&spec, &installation), &seen);
    let text = plan.to_string();
    let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} stays: {text}"));
    assert!(at("- Deployment auth-a") < at("- RoleBinding slipway-dex"), "{text}");
    assert!(at("- RoleBinding slipway-dex") < at("- ServiceAccount auth-a"), "{text}");
}

proptest! {
    #[test]
    fn texts_of_people_are_read_back_as_they_were(
        title in "\\PC{1,12}|[ -~\u{7f}-\u{a0}\u{2028}\u{feff}]{1,12}",
        secret in "[ -~]{1,12}",
        password in "[ -~]{1,12}",
        prefix in "\\PC{0,8}|[ -~\n]{0,8}",
    ) {
        let (mut spec, installation) = (spec(), installation());
        spec.services.auth[0].connectors[0].name.clone_from(&title);
        spec.services.auth[0].username_prefix = Some(prefix.clone());
        let mut seen = secrets();
        let quoted = serde_json::to_string(&password).unwrap();
        seen.referred.insert("ldap".to_owned(), Referred { data: texts(&[("config", &format!("bindPW: {quoted}"))]) });
        seen.referred.insert("grafana".to_owned(), Referred { data: texts(&[("secret", &format!("x{secret}"))]) });
        let want = want(&spec, &installation);
        let (seen, _) = settle(&want, seen);
        prop_assert_eq!(plan(&want, &seen).steps, vec![]);

        let Facts::Secret { data } = &seen.objects[&(Kind::Secret, "auth-a-config".to_owned())].facts else { panic!() };
        let text = std::str::from_utf8(&data["config.yaml"]).unwrap();
        let yaml: Value = serde_saphyr::from_str(text).unwrap();
        prop_assert_eq!(&yaml, &config(&seen), "YAML and JSON readers agree");
        prop_assert_eq!(&yaml["connectors"][0]["name"], &title);
        prop_assert_eq!(&yaml["staticClients"][1]["secret"], &format!("x{secret}"));
        let expanded = yaml["connectors"][0]["config"]["bindPW"].as_str().unwrap().replace("${SLIPWAY_DOLLAR}", "$");
        prop_assert_eq!(expanded, password);

        if let Some(owned) = seen.objects.get(&(Kind::ConfigMap, "auth-a-oidc".to_owned())) {
            let flags = owned.live.as_ref().unwrap()["data"]["flags"].as_str().unwrap();
            prop_assert!(flags.lines().all(|line| line.starts_with("--oidc-") && !line.contains(' ')), "{}", flags);
            let config = owned.live.as_ref().unwrap()["data"]["authentication-config.yaml"].as_str().unwrap();
            let parsed: Value = serde_saphyr::from_str(config).unwrap();
            let expected = if prefix == "-" { "" } else { prefix.as_str() };
            prop_assert_eq!(&parsed["jwt"][0]["claimMappings"]["username"]["prefix"], expected);
            prop_assert_eq!(&parsed["jwt"][0]["issuer"]["certificateAuthority"], carried_out::OWN_CA);
        }
    }
}
