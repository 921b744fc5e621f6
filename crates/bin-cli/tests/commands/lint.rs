//! `slipway lint`.

use rstest::rstest;

use crate::{
    Said,
    sample::{cluster, host, secrets, with_spec},
    slipway,
};

fn lint(args: &[&str], input: &[String]) -> Said {
    slipway(&[&["lint", "-f", "-"], args].concat(), &input.concat())
}

fn template(text: &str) -> String {
    let indented = text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n");
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: loadbalancercontrolplane, namespace: tenants}}\ndata:\n  loadBalancerControlPlane.cfg: |\n{indented}\n"
    )
}

#[test]
fn good_manifests_are_left_alone() {
    let input = [cluster("edge", 1), host("n1", "r1"), secrets("n1", "192.0.2.1")];
    let said = lint(&["--strict"], &input);
    assert_eq!((said.status, said.out.as_str()), (0, "4 objects, nothing to complain about\n"));
}

#[rstest]
#[case::legacy_field(
    with_spec(
        "edge",
        "nodes: {Worker: {}}, services: {loadBalancerWorker: [{nodePort: 30003, nodePortRange: {start: 30003, end: 30004}}]}"
    ),
    "SIPCluster tenants/edge: spec.services.loadBalancerWorker[0].nodePort: has no effect"
)]
#[case::role_without_service(
    with_spec("edge", "nodes: {controlplane: {}}, services: {}"),
    "SIPCluster tenants/edge: spec.nodes[controlplane]: is a role that no service uses: its hosts are claimed and labelled, nothing more; did you mean ControlPlane?"
)]
#[case::service_without_role(
    with_spec("edge", "services: {loadBalancerControlPlane: [{nodePort: 0}]}"),
    "SIPCluster tenants/edge: spec.services.loadBalancerControlPlane: has no backends: spec.nodes has no role ControlPlane"
)]
#[case::selector_without_hosts(
    with_spec(
        "edge",
        "nodes: {Worker: {labelSelector: {matchLabels: {flavor: gold}}, count: {active: 1}}}, services: {}"
    ),
    "SIPCluster tenants/edge: spec.nodes[Worker].labelSelector: flavor=gold matches none of the 1 host given"
)]
#[case::topology_label_missing(
    with_spec("edge", "nodes: {Worker: {topologyKey: room, count: {active: 1}}}, services: {}"),
    "SIPCluster tenants/edge: spec.nodes[Worker]: topology label room is missing on 1 of 1 matching host, never to be placed: metal3/n1"
)]
#[case::network_missing(
    with_spec(
        "edge",
        "nodes: {Worker: {count: {active: 1}}}, services: {loadBalancerWorker: [{nodeInterfaceId: wan, nodePortRange: {start: 30001, end: 30002}}]}"
    ),
    "BareMetalHost metal3/n1: spec.networkData: Secret metal3/n1-net has no address in network wan, which a service uses"
)]
#[case::bad_key(
    with_spec(
        "edge",
        "services: {jumpHost: [{nodePort: 0, nodeSSHPrivateKeys: keys, sshAuthorizedKeys: [ssh-rsa nonsense]}]}"
    ),
    "SIPCluster tenants/edge: spec.services.jumpHost[0].sshAuthorizedKeys[0] has a key of type \"ssh-rsa\" that cannot be read"
)]
#[case::old_jump_host(
    with_spec(
        "edge",
        "services: {jumpHost: [{nodePort: 0, image: 'quay.io/airshipit/jump-host:v1', nodeSSHPrivateKeys: keys}]}"
    ),
    "SIPCluster tenants/edge: spec.services.jumpHost[0].image: quay.io/airshipit/jump-host is the original operator's image"
)]
#[case::node_port_out_of_range(
    with_spec("edge", "services: {jumpHost: [{nodePort: 8022, nodeSSHPrivateKeys: keys}]}"),
    "SIPCluster tenants/edge: spec.services.jumpHost[0].nodePort: is outside 30000-32767"
)]
#[case::several_dex(
    with_spec("edge", "services: {auth: [{nodePort: 0, replicas: 2}]}"),
    "SIPCluster tenants/edge: spec.services.auth[0].replicas: 2 pods need a Dex that keeps its keys as Kubernetes objects"
)]
#[case::duplicate_address(
    host("n2", "r2") + &secrets("n2", "192.0.2.1"),
    "network data: 192.0.2.1 in network oam is the address of 2 hosts: metal3/n1, metal3/n2"
)]
#[case::network_data_unreadable(
    host("n2", "r2") + &secrets("n2", "nowhere"),
    "BareMetalHost metal3/n2: spec.networkData: Secret metal3/n2-net: key networkData networks[0].ip_address is not an IP address"
)]
#[case::template_that_does_not_parse(
    template("frontend x\n{{ range .Servers }}"),
    "ConfigMap tenants/loadbalancercontrolplane: data[loadBalancerControlPlane.cfg]: ConfigMap tenants/loadbalancercontrolplane, key loadBalancerControlPlane.cfg, line "
)]
#[case::template_that_does_not_render(
    template("{{ range .Servers }}\n{{ index .Name 77 }}\n{{ end }}"),
    "ConfigMap tenants/loadbalancercontrolplane: data[loadBalancerControlPlane.cfg]: ConfigMap tenants/loadbalancercontrolplane, key loadBalancerControlPlane.cfg, line 2"
)]
#[case::template_under_another_key(
    template("x").replace("Plane.cfg", "plane.cfg"),
    "ConfigMap tenants/loadbalancercontrolplane: data: has no key loadBalancerControlPlane.cfg: the built-in template is used"
)]
fn what_people_would_regret_is_a_warning(#[case] manifest: String, #[case] said: &str) {
    let input = [host("n1", "r1"), secrets("n1", "192.0.2.1"), manifest];
    let answer = lint(&[], &input);
    assert!(answer.out.contains(said), "{}", answer.out);
    assert_eq!(answer.out.lines().filter(|line| line.starts_with("warning: ")).count(), 1, "{}", answer.out);
    assert_eq!((answer.status, lint(&["--strict"], &input).status), (0, 1));
}

#[test]
fn errors_count_more_than_warnings_and_do_not_hide_them() {
    let bad = with_spec("bad", "nodes: {}");
    let doubtful = with_spec("doubtful", "nodes: {gpu: {}}, services: {}");
    let said = lint(&[], &[bad, doubtful]);
    let expected = "\
error: standard input, document 1, SIPCluster tenants/bad: spec.services: is missing
warning: standard input, document 2, SIPCluster tenants/doubtful: spec.nodes[gpu]: is a role that no service uses: its hosts are claimed and labelled, nothing more
2 objects: 1 error, 1 warning
";
    assert_eq!((said.out.as_str(), said.status), (expected, 2));
}

#[test]
fn a_template_that_renders_is_left_alone() {
    let text = "{{ range .ContainerPorts }}{{ $p := . }}{{ range $.Servers }}server {{ .Name }} {{ .IP }}:{{ $p.ContainerPort }}\n{{ end }}{{ end }}";
    assert_eq!(lint(&["--strict"], &[template(text)]).status, 0);
}

#[test]
fn input_without_a_readable_object_says_so() {
    let said = lint(&[], &["kind: [\n".to_owned()]);
    assert!(said.out.ends_with("no object: 1 error, 0 warnings\n"), "{}", said.out);
}
