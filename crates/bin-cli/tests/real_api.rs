//! A real API server takes our definition, refuses what `slipway lint` refuses, and is planned for without being written to.
#![cfg(feature = "real-api")]
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::ApiResource,
    runtime::wait::{await_condition, conditions::is_crd_established},
};
use serde_json::{Value, json};

fn kubeconfig() -> PathBuf {
    std::env::var_os("SLIPWAY_TEST_KUBECONFIG")
        .expect("SLIPWAY_TEST_KUBECONFIG must name the kubeconfig of an API server that may be written to; `make test` starts one")
        .into()
}

/// A client of the server, which knows our definition and Metal3's.
async fn client() -> Client {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let config = Kubeconfig::read_from(kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let metal3 = std::env::var("SLIPWAY_TEST_METAL3_CRD").expect("SLIPWAY_TEST_METAL3_CRD must name metal3's CRD");
    let ours = String::from_utf8(slipway(&["crds"], "", &kubeconfig()).stdout).unwrap();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for text in [ours, std::fs::read_to_string(metal3).unwrap()] {
        let document = text.split("\n---").next().unwrap().trim_start_matches("---");
        let crd: CustomResourceDefinition = serde_saphyr::from_str(document).unwrap();
        let (name, apply) = (crd.name_any(), PatchParams::apply("test").force());
        crds.patch(&name, &apply, &Patch::Apply(crd)).await.expect("the API server takes the definition");
        await_condition(crds.clone(), &name, is_crd_established()).await.unwrap();
    }
    client
}

fn slipway(args: &[&str], input: &str, kubeconfig: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_slipway"));
    command
        .args(args)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

const KINDS: [(&str, &str, &str); 8] = [
    ("namespaces", "v1", "Namespace"),
    ("secrets", "v1", "Secret"),
    ("baremetalhosts", "metal3.io/v1alpha1", "BareMetalHost"),
    ("sipclusters", "airship.airshipit.org/v1", "SIPCluster"),
    ("clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("clusterrolebindings", "rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rolebindings", "rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("subjectaccessreviews", "authorization.k8s.io/v1", "SubjectAccessReview"),
];

fn api(client: &Client, plural: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (_, version, kind) = KINDS.into_iter().find(|(known, ..)| *known == plural).unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let gvk = kube::core::GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

async fn create(api: &Api<DynamicObject>, mut object: Value) {
    let url = api.resource_url();
    let of = |(plural, ..): &(&str, &str, &str)| url.ends_with(&format!("/{plural}"));
    let (_, version, kind) = KINDS.into_iter().find(of).unwrap();
    (object["apiVersion"], object["kind"]) = (json!(version), json!(kind));
    let object = serde_json::from_value(object).unwrap();
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => {}
        // Left by an earlier test on this server.
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => panic!("{error}"),
    }
}

/// Manifests on both sides of every rule.
fn specs() -> Vec<(&'static str, Value)> {
    let nodes = |set: Value| json!({"nodes": {"Worker": set}, "services": {}});
    let services = |services: Value| json!({"services": services});
    let selector = |expression: Value| nodes(json!({"labelSelector": {"matchExpressions": [expression]}}));
    let range = |start: i64, end: i64| json!({"nodePortRange": {"start": start, "end": end}});
    let ranges = |entries: Value| services(json!({"loadBalancerWorker": entries}));
    let named = |name: &str, start: i64, end: i64| json!({"name": name, "nodePortRange": {"start": start, "end": end}});
    vec![
        ("a", services(json!({}))),
        ("a", json!({})),
        ("a.b", services(json!({}))),
        ("1a", services(json!({}))),
        (
            "a",
            services(
                json!({"loadBalancerControlPlane": [{"nodePort": 0}], "jumpHost": [{"nodePort": 22, "nodeSSHPrivateKeys": "k"}]}),
            ),
        ),
        (
            "a",
            services(
                json!({"loadBalancerControlPlane": [{"nodePort": 9}], "jumpHost": [{"nodePort": 9, "nodeSSHPrivateKeys": "k"}]}),
            ),
        ),
        ("a", services(json!({"loadBalancerControlPlane": [{"nodePort": 65536}]}))),
        ("a", services(json!({"loadBalancerControlPlane": [{"nodePort": -1}]}))),
        ("a", services(json!({"loadBalancerControlPlane": [{"nodePort": 0}, {"nodePort": 0}]}))),
        ("a", services(json!({"loadBalancerControlPlane": [{"nodePort": 0}, {"name": "b", "nodePort": 0}]}))),
        ("a", services(json!({"loadBalancerControlPlane": [{"name": "B", "nodePort": 0}]}))),
        ("a", services(json!({"loadBalancerControlPlane": [{"nodePort": null}]}))),
        (
            "a",
            services(
                json!({"loadBalancerControlPlane": [{"nodePort": 0, "image": null, "serviceType": null, "nodeLabels": {"a": null}}]}),
            ),
        ),
        ("a", services(json!({"loadBalancerControlPlane": [null]}))),
        ("a", services(json!({"jumpHost": null}))),
        ("a", services(json!({"auth": [{"nodePort": 0, "caSecret": "x", "replicas": 17}]}))),
        ("a", services(json!({"auth": [{"nodePort": 0, "serviceType": "Ingress"}]}))),
        ("a", ranges(json!([range(30000, 30010)]))),
        ("a", ranges(json!([range(30010, 30000)]))),
        ("a", ranges(json!([range(0, 1)]))),
        ("a", ranges(json!([range(1, 3000)]))),
        ("a", ranges(json!([named("x", 1, 10), named("y", 10, 20)]))),
        ("a", ranges(json!([named("x", 1, 10), named("y", 11, 20)]))),
        ("a", services(json!({"loadBalancerWorker": [range(10, 20)], "auth": [{"nodePort": 15}]}))),
        ("a", nodes(json!({}))),
        ("a", nodes(json!({"count": {"active": -1}}))),
        ("a", nodes(json!({"count": {"active": 1001}}))),
        ("a", nodes(json!({"count": {"active": "1"}}))),
        ("a", nodes(json!({"count": {"active": 1.5}}))),
        ("a", nodes(json!({"count": null, "labelSelector": null, "spread": null, "topologyKey": null}))),
        ("a", nodes(json!({"topologyKey": ""}))),
        ("a", nodes(json!({"topologyKey": "a b"}))),
        ("a", nodes(json!({"topologyKey": "Vino.org/rack"}))),
        ("a", nodes(json!({"spread": [{"topologyKey": "rack", "maxPerDomain": 2}]}))),
        ("a", nodes(json!({"spread": [{"topologyKey": "", "maxPerDomain": 2}]}))),
        ("a", nodes(json!({"spread": [{"topologyKey": "rack", "maxPerDomain": 0}]}))),
        ("a", nodes(json!({"spread": [{"topologyKey": "rack"}]}))),
        ("a", nodes(json!({"labelSelector": {"matchLabels": {"a/b/c": "x"}}}))),
        ("a", nodes(json!({"labelSelector": {"matchLabels": {"a": "x y"}}}))),
        ("a", nodes(json!({"labelSelector": {"matchLabels": {"a": ""}}}))),
        ("a", selector(json!({"key": "a", "operator": "In"}))),
        ("a", selector(json!({"key": "a", "operator": "In", "values": ["x"]}))),
        ("a", selector(json!({"key": "a", "operator": "Exists", "values": ["x"]}))),
        ("a", selector(json!({"key": "a", "operator": "in", "values": ["x"]}))),
        ("a", json!({"nodes": {"Control Plane": {}}, "services": {}})),
        ("a", json!({"nodes": {"gpu_nodes.v2": {}}, "services": {}})),
        ("a", json!({"replace": "WhenUnconsumed", "services": {}})),
        ("a", json!({"replace": "Always", "services": {}})),
    ]
}

#[tokio::test]
async fn lint_refuses_what_the_api_server_refuses() {
    let client = client().await;
    let server = api(&client, "sipclusters", Some("default"));
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let mut verdicts = [0, 0];
    let mut specs = specs();
    for file in ["stock-sample", "treasuremap-lma", "treasuremap-wordpress", "auth-legacy"] {
        let path = format!("{}/../../examples/compat/{file}.yaml", env!("CARGO_MANIFEST_DIR"));
        let object: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        specs.push(("compat", object["spec"].clone()));
    }
    for (name, spec) in specs {
        let object = json!({"apiVersion": "airship.airshipit.org/v1", "kind": "SIPCluster",
                            "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        let parsed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let taken = match server.create(&dry_run, &parsed).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if status.code == 422 => false,
            Err(error) => panic!("{object}: {error}"),
        };
        let said = slipway(&["lint", "-f", "-"], &object.to_string(), &kubeconfig());
        let text = String::from_utf8_lossy(&said.stdout);
        assert_eq!(said.status.code() == Some(0), taken, "{object}: {text}");
        assert!(taken || name != "compat", "manifests written for the original are taken: {text}");
        verdicts[usize::from(taken)] += 1;
    }
    assert!(verdicts.iter().all(|count| *count > 10), "both verdicts are met: {verdicts:?}");
}

#[tokio::test]
async fn a_live_cluster_is_planned_for_as_far_as_it_may_be_read() {
    let client = client().await;
    let namespaces = api(&client, "namespaces", None);
    for name in ["cli-hosts", "cli-tenants"] {
        create(&namespaces, json!({"metadata": {"name": name}})).await;
    }
    let hosts = api(&client, "baremetalhosts", Some("cli-hosts"));
    for name in ["n1", "n2"] {
        let spec = json!({"online": true, "bmc": {"address": "redfish+https://192.0.2.1/redfish/v1/Systems/1", "credentialsName": "bmc"},
                          "networkData": {"name": name}});
        create(&hosts, json!({"metadata": {"name": name, "labels": {"cli": "yes"}}, "spec": spec})).await;
    }
    let secrets = api(&client, "secrets", Some("cli-hosts"));
    create(&secrets, json!({"metadata": {"name": "bmc"}, "stringData": {"username": "root", "password": "x"}})).await;
    create(&secrets, json!({"metadata": {"name": "n2"}, "stringData": {"networkData": "networks: []"}})).await;
    let clusters = api(&client, "sipclusters", Some("cli-tenants"));
    let nodes = json!({"Worker": {"labelSelector": {"matchLabels": {"cli": "yes"}}, "count": {"active": 1}}});
    create(&clusters, json!({"metadata": {"name": "edge"}, "spec": {"nodes": nodes, "services": {}}})).await;
    let roles = api(&client, "clusterroles", None);
    let rules = json!([{"apiGroups": ["metal3.io", "airship.airshipit.org"], "resources": ["*"], "verbs": ["list"]}]);
    create(&roles, json!({"metadata": {"name": "cli-reader"}, "rules": rules})).await;
    let bindings = api(&client, "clusterrolebindings", None);
    create(
        &bindings,
        json!({
            "metadata": {"name": "cli-reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cli-reader"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "cli-reader"}],
        }),
    )
    .await;

    let plan = |config: &Path| {
        let said = slipway(&["plan", "-o", "json", "--host-namespaces", "cli-hosts"], "", config);
        let report: Value = serde_json::from_slice(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        let mine = report["clusters"].as_array().unwrap().iter().find(|c| c["namespace"] == "cli-tenants").unwrap();
        (mine["claims"][0]["host"].as_str().unwrap_or_default().to_owned(), String::from_utf8(said.stderr).unwrap())
    };
    assert_eq!(plan(&kubeconfig()).0, "n2", "n1 has no network data");

    let dir = tempfile::tempdir().unwrap();
    let restricted = dir.path().join("kubeconfig");
    let mut config: Value = serde_saphyr::from_str(&std::fs::read_to_string(kubeconfig()).unwrap()).unwrap();
    config["users"][0]["user"]["as"] = json!("cli-reader");
    std::fs::write(&restricted, config.to_string()).unwrap();
    let (host, notes) = plan(&restricted);
    assert_eq!(host, "n1", "what may not be read counts as usable");
    assert!(notes.contains("note: Secrets of namespace cli-hosts may not be read"), "{notes}");

    let before: Vec<Option<String>> = hosts
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::resource_version)
        .collect();
    let said = slipway(&["explain", "cli-tenants/edge", "--host-namespaces", "cli-hosts"], "", &kubeconfig());
    assert!(String::from_utf8(said.stdout).unwrap().contains("+ cli-hosts/n2 Worker"));
    let after: Vec<Option<String>> = hosts
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::resource_version)
        .collect();
    assert_eq!(before, after, "nothing was written");
}

/// Asks again until the server's own view of roles has caught up.
async fn until<T>(what: &str, ask: impl AsyncFn() -> Result<T, String>) -> T {
    let mut last = String::new();
    for _ in 0..200 {
        match ask().await {
            Ok(found) => return found,
            Err(why) => last = why,
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{what}: {last}")
}

#[tokio::test]
async fn the_manager_hands_out_dexs_rights_and_no_others() {
    let client = client().await;
    let roles = api(&client, "clusterroles", None);
    for document in include_str!("../../../deploy/rbac/namespaces.yaml").split("\n---\n") {
        let role: Value = serde_saphyr::from_str(document).unwrap();
        create(&roles, json!({"metadata": role["metadata"], "rules": role["rules"]})).await;
    }
    create(&api(&client, "namespaces", None), json!({"metadata": {"name": "dex-tenant"}})).await;
    let role = |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
    let manager = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "dex-manager"}]);
    let grant = json!({"metadata": {"name": "slipway-tenant"}, "roleRef": role("slipway-tenant"), "subjects": manager});
    create(&api(&client, "rolebindings", Some("dex-tenant")), grant).await;

    let config = Kubeconfig::read_from(kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    config.auth_info.impersonate = Some("dex-manager".to_owned());
    let manager = Client::try_from(config).unwrap();
    let bindings = api(&manager, "rolebindings", Some("dex-tenant"));
    let bind = async |name: &str| {
        let subjects = json!([{"kind": "ServiceAccount", "name": "auth-a", "namespace": "dex-tenant"}]);
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                             "metadata": {"name": name}, "roleRef": role(name), "subjects": subjects});
        match bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(kube::Error::Api(status)) => Err((status.code, status.message)),
            Err(error) => panic!("{error}"),
        }
    };
    until("the manager binds Dex's role", async || bind("slipway-dex").await.map_err(|(_, why)| why)).await;
    for name in ["cluster-admin", "system:node"] {
        let (code, why) = bind(name).await.expect_err(name);
        assert_eq!(code, 403, "{name}: {why}");
    }

    let reviews = api(&client, "subjectaccessreviews", None);
    let may = async |verb: &str, group: &str, resource: &str| {
        let attributes = json!({"namespace": "dex-tenant", "verb": verb, "group": group, "resource": resource});
        let spec = json!({"user": "system:serviceaccount:dex-tenant:auth-a", "resourceAttributes": attributes});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                            "metadata": {}, "spec": spec});
        let answer = reviews.create(&PostParams::default(), &serde_json::from_value(review).unwrap()).await.unwrap();
        answer.data["status"]["allowed"] == true
    };
    until("Dex may keep its keys", async || {
        if may("create", "dex.coreos.com", "signingkeies").await { Ok(()) } else { Err("not allowed".to_owned()) }
    })
    .await;
    assert!(!may("get", "", "secrets").await && !may("create", "", "pods").await);
}
