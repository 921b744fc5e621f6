//! `slipway plan`.

use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    Said,
    sample::{claimed, cluster, host, host_with, secrets, with_spec},
    slipway,
};

const PLAN: [&str; 5] = ["plan", "-o", "json", "-f", "-"];

fn plan(input: &[String]) -> Said {
    slipway(&PLAN, &input.concat())
}

/// The hosts each cluster claims.
fn claims(said: &Said) -> Vec<String> {
    let report: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let of = |cluster: &Value| {
        let hosts: Vec<String> =
            cluster["claims"].as_array().expect("a list").iter().map(|c| text(&c["host"])).collect();
        format!("{}: {}", text(&cluster["name"]), hosts.join(" "))
    };
    report["clusters"].as_array().expect("a list").iter().map(of).collect()
}

/// Programs rely on every byte of this.
#[test]
fn the_json_is_what_it_always_was() {
    let input = [
        cluster("wide", 3),
        cluster("narrow", 1),
        host("n1", "r1"),
        host("n2", "r2"),
        host("n3", "r2"),
        claimed("n4", "r3", "narrow", true),
        claimed("n5", "r4", "narrow", false),
        claimed("n6", "r4", "narrow", true),
    ];
    let said = plan(&input);
    let expected = r#"{
  "clusters": [
    {
      "namespace": "tenants",
      "name": "narrow",
      "claims": [],
      "releases": [
        {
          "namespace": "metal3",
          "host": "n5",
          "role": "ControlPlane",
          "when": "now"
        },
        {
          "namespace": "metal3",
          "host": "n6",
          "role": "ControlPlane",
          "when": "unconsumed"
        }
      ],
      "blocked": null
    },
    {
      "namespace": "tenants",
      "name": "wide",
      "claims": [],
      "releases": [],
      "blocked": {
        "reason": "Unschedulable",
        "role": "ControlPlane",
        "message": "MESSAGE"
      }
    }
  ]
}
"#;
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    let message = report["clusters"][1]["blocked"]["message"].as_str().expect("a message");
    assert!(message.starts_with("role ControlPlane: 3 more hosts needed, 2 can be placed: "), "{message}");
    assert_eq!(said.out, expected.replace("MESSAGE", message));
    assert_eq!(said.status, 3);
}

#[test]
fn nothing_blocked_is_success_and_the_hosts_are_those_that_the_rules_leave() {
    let compat = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/compat");
    let (sample, hosts) = (format!("{compat}/stock-sample.yaml"), format!("{compat}/stock-hosts.yaml"));
    let said = slipway(&["plan", "-o", "json", "-f", &sample, &hosts], "");
    assert_eq!(claims(&said), ["sipcluster-system: rdm9r006o001 rdm9r007o001 rdm9r007o002 rdm9r008o002"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
}

#[test]
fn yaml_says_what_json_says() {
    let input = [cluster("edge", 2), host("n1", "r1"), host("n2", "r2")];
    let yaml = slipway(&["plan", "-o", "yaml", "-f", "-"], &input.concat());
    let read: Value = serde_saphyr::from_str(&yaml.out).expect("YAML");
    assert_eq!(read, serde_json::from_str::<Value>(&plan(&input).out).expect("JSON"));
}

#[test]
fn people_read_one_block_for_each_cluster_and_a_line_about_all() {
    let input =
        [cluster("edge", 2), cluster("late", 1), host("n1", "r1"), host("n2", "r2"), claimed("n3", "r3", "edge", true)];
    let said = slipway(&["plan", "--host-namespaces=metal3", "-f", "-"], &input.concat());
    let expected = "\
tenants/edge: 1 host to claim
  + metal3/n1 ControlPlane (rack=r1)

tenants/late: 1 host to claim
  + metal3/n2 ControlPlane (rack=r2)

2 clusters: 2 hosts to claim, nothing blocked
";
    assert_eq!((said.out.as_str(), said.status), (expected, 0));
}

#[test]
fn older_clusters_come_first_and_those_not_in_a_cluster_yet_come_last() {
    let born = |name: &str, day: u32| {
        cluster(name, 1).replace(
            "namespace: tenants}",
            &format!("namespace: tenants, creationTimestamp: '2026-01-0{day}T00:00:00Z'}}"),
        )
    };
    let input = [cluster("b-new", 1), cluster("a-new", 1), born("young", 2), born("old", 1)];
    let hosts = ["n1", "n2", "n3", "n4"].map(|name| host(name, "r1"));
    let said = plan(&[input.concat(), hosts.concat()]);
    assert_eq!(claims(&said), ["old: n1", "young: n2", "a-new: n3", "b-new: n4"]);
}

#[test]
fn the_answer_does_not_depend_on_the_order_of_the_input() {
    let mut input = vec![cluster("a", 2), cluster("b", 1)];
    input.extend((1..=5).map(|n| host(&format!("n{n}"), &format!("r{}", n % 3))));
    let first = plan(&input);
    input.reverse();
    assert_eq!(plan(&input).out, first.out);
}

#[test]
fn without_secrets_network_data_and_credentials_count_as_usable() {
    let spec = "nodes: {ControlPlane: {count: {active: 1}}}, services: {loadBalancerControlPlane: [{nodePort: 0, nodeInterfaceId: oam}]}";
    let hosts = [with_spec("edge", spec), host("n1", "r1"), host("n2", "r1"), host("n3", "r1")];
    assert_eq!(claims(&plan(&hosts)), ["edge: n1"]);
    let other_network = secrets("n2", "192.0.2.2").replace("oam", "storage");
    let input = [hosts.concat(), other_network, secrets("n3", "192.0.2.3")];
    assert_eq!(claims(&plan(&input)), ["edge: n3"], "n1 has no Secrets, n2 no address there");
}

#[test]
fn secrets_that_no_host_names_are_told_of_and_decide_nothing() {
    let said = plan(&[cluster("edge", 1), host("n1", "r1"), secrets("other", "192.0.2.9")]);
    assert_eq!((claims(&said), said.status), (vec!["edge: n1".to_owned()], 0));
    assert!(said.err.contains("note: Secrets are given, and no host names any of them: network data"), "{}", said.err);
}

#[test]
fn of_an_object_given_twice_the_later_one_counts() {
    let said = plan(&[cluster("edge", 1), host("n1", "r1"), host("n2", "r2"), cluster("edge", 2)]);
    assert_eq!(claims(&said), ["edge: n1 n2"]);
    let note = "note: SIPCluster tenants/edge is given twice, and not alike: the later one counts, standard input, \
                document 4, not standard input, document 1\n";
    assert!(said.err.contains(note), "{}", said.err);
}

#[test]
fn a_tenant_without_status_is_taken_up_from_its_labels_as_after_a_restore() {
    let hosts = [claimed("n1", "r1", "edge", false), claimed("n2", "r2", "edge", false)].concat();
    let said = plan(&[cluster("edge", 2), hosts.clone()]);
    assert_eq!((claims(&said), said.status), (vec!["edge: ".to_owned()], 0), "nothing is released");
    assert!(said.err.contains("tenants/edge is given without status, and 2 hosts are labelled for it"), "{}", said.err);
    assert!(said.err.contains("--live"), "{}", said.err);
}

#[test]
fn a_context_is_of_no_use_to_files_alone() {
    let said = slipway(&["plan", "--context", "x", "-f", "-"], &cluster("edge", 1));
    assert_eq!(said.status, 2);
    assert!(said.err.starts_with("slipway: --context: is of no use to files alone"), "{}", said.err);
}

#[test]
fn hosts_without_uid_are_told_apart_and_those_of_a_record_are_known() {
    let record = "\nstatus: {established: true, hosts: [{namespace: metal3, name: n2, uid: u2, role: ControlPlane, state: Chosen}]}\n";
    let interrupted = cluster("edge", 2).trim_end().to_owned() + record;
    let said = plan(&[interrupted, host("n1", "r1"), host("n2", "r2")]);
    assert_eq!(claims(&said), ["edge: n2 n1"], "the choice that was written down is carried out");
}

#[test]
fn only_namespaces_that_the_manager_allows() {
    let input = [cluster("edge", 1), host("n1", "r1")].concat();
    for (namespaces, status) in [("metal3", 0), ("a,metal3", 0), ("*", 0), ("elsewhere", 3), ("", 3)] {
        let said = slipway(&["plan", "--host-namespaces", namespaces, "-f", "-"], &input);
        assert_eq!((said.status, said.err.as_str()), (status, ""), "{namespaces}: {}", said.out);
    }
    let said = slipway(&["plan", "-f", "-"], &input);
    assert_eq!(said.status, 0);
    assert!(said.err.contains("note: hosts of all namespaces are candidates"), "{}", said.err);
}

#[test]
fn a_quarantine_is_over_only_where_its_length_is_told() {
    let released = r#", annotations: {sip.airshipit.org/released: '{"namespace": "tenants", "cluster": "gone", "role": "Worker", "at": "2026-01-01T00:00:00Z"}'}"#;
    let input = [cluster("edge", 1), host_with("n1", "r1", released)].concat();
    assert_eq!(slipway(&["plan", "-f", "-"], &input).status, 3);
    assert_eq!(slipway(&["plan", "--quarantine", "60", "-f", "-"], &input).status, 0);
}

#[test]
fn directories_lists_and_json_are_read() {
    let dir = tempfile::tempdir().expect("a directory");
    let json = json!({"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHostList", "items": [
        {"metadata": {"name": "n1", "namespace": "metal3", "labels": {"flavor": "cp", "rack": "r1"}}}]});
    std::fs::write(dir.path().join("hosts.json"), json.to_string()).expect("written");
    std::fs::write(dir.path().join("cluster.yml"), cluster("edge", 1)).expect("written");
    std::fs::write(dir.path().join("README.md"), "no manifest").expect("written");
    let said = slipway(&["plan", "-o", "json", "-f", dir.path().to_str().expect("UTF-8")], "");
    assert_eq!(claims(&said), ["edge: n1"]);
}

#[test]
fn other_kinds_are_passed_over_and_counted() {
    let other = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: tenants}\n".to_owned();
    let said = plan(&[other.clone(), other, cluster("edge", 1), host("n1", "r1")]);
    assert_eq!(said.status, 0);
    assert!(said.err.contains("note: ignored: 2 Namespace\n"), "{}", said.err);
}

#[rstest]
#[case::no_yaml("---\na: [1\n".to_owned(), "standard input, document 2: is neither YAML nor JSON (line ")]
#[case::no_object("--- 5\n".to_owned(), "standard input, document 2: is no object")]
#[case::no_kind("---\nmetadata: {name: x}\n".to_owned(), "standard input, document 2: has no kind")]
#[case::no_name("---\napiVersion: v1\nkind: Secret\n".to_owned(), "document 2, Secret: metadata.name: is missing")]
#[case::another_version(cluster("edge", 1).replace("org/v1", "org/v1beta1"),
    "document 2, SIPCluster tenants/edge: apiVersion: must be airship.airshipit.org/v1, and is \"airship.airshipit.org/v1beta1\"")]
#[case::refused_by_the_schema(
    with_spec("edge", "nodes: {Worker: {count: {active: -1}}}, services: {}"),
    "document 2, SIPCluster tenants/edge: spec.nodes[Worker].count.active: -1 is below the minimum of 0"
)]
#[case::refused_by_a_rule(
    with_spec("edge", "services: {loadBalancerWorker: [{nodePortRange: {start: 9, end: 8}}]}"),
    "document 2, SIPCluster tenants/edge: spec.services.loadBalancerWorker[0].nodePortRange: start is above end"
)]
#[case::misspelt(
    with_spec("edge", "services: {}, node: {}"),
    "document 2, SIPCluster tenants/edge: spec.node: there is no such field"
)]
#[case::a_label_that_is_no_text(
    host("n2", "7"),
    "document 2, BareMetalHost metal3/n2: metadata.labels.rack: invalid type: integer `7`, expected a string"
)]
fn bad_input_is_named_by_file_document_object_and_field(#[case] bad: String, #[case] said: &str) {
    let answer = plan(&[host("n1", "r1"), bad, cluster("other", 1)]);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    assert!(answer.err.starts_with("slipway: ") && answer.err.contains(said), "{}", answer.err);
    assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
}

#[test]
fn all_that_is_bad_is_told_at_once() {
    let bad = |name: &str| with_spec(name, "nodes: {A: {count: {active: -1, standby: -2}}}, services: {}");
    let said = plan(&[bad("one"), bad("two")]);
    assert_eq!((said.status, said.err.lines().count()), (2, 4), "{}", said.err);
}

#[test]
fn what_a_secret_holds_is_never_shown() {
    let number = secrets("n1", "192.0.2.1").replace("aHVudGVyMg==", "'4711secret!'");
    let broken = secrets("n2", "192.0.2.2").replace("'{\"networks\"", "{\"4711secret\"").replace("]}'", "]}}");
    let said = plan(&[number, broken]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("Secret metal3/n1-bmc: data.password: is not base64"), "{}", said.err);
    assert!(!said.err.contains("4711"), "{}", said.err);
}

#[test]
fn the_same_object_given_twice_counts_once() {
    let said = plan(&[cluster("edge", 1), host("n1", "r1"), host("n1", "r1")]);
    assert_eq!((claims(&said), said.status), (vec!["edge: n1".to_owned()], 0));
}

#[test]
fn a_file_that_is_not_there_is_bad_input() {
    let said = slipway(&["plan", "-f", "/does/not/exist.yaml"], "");
    assert_eq!(said.status, 2);
    assert!(said.err.starts_with("slipway: /does/not/exist.yaml: No such file"), "{}", said.err);
}

#[test]
fn without_a_cluster_to_read_it_says_how_to_name_one() {
    let home = tempfile::tempdir().expect("a directory");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_slipway"))
        .arg("plan")
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", home.path())
        .output()
        .expect("it runs");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(err.starts_with("slipway: no cluster: set KUBECONFIG, or give files with -f"), "{err}");
}

#[test]
fn a_kubeconfig_that_is_not_there_is_named_once() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_slipway"))
        .arg("plan")
        .env("KUBECONFIG", "/does/not/exist")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .expect("it runs");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!((output.status.code(), err.matches("/does/not/exist").count()), (Some(1), 1), "{err}");
}
