//! When a leaving host has left.

use rstest::rstest;

use super::*;

/// Three control-plane hosts of which `node03` leaves, with the Secret that says so written at [`NOW`].
fn departure() -> (Tenant, Seen, String) {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    let tenant = tenant.leaving("node03");
    seen = after(seen.clone(), &tenant.plan(&seen));
    let (checksum, _) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    (tenant, seen, checksum)
}

fn with_sessions(name: &str, checksum: &str, sessions: u64) -> Pod {
    let mut pod = serving(name, checksum);
    pod.report.as_mut().expect("it reports").leaving.insert("node03".to_owned(), sessions);
    pod
}

fn left(plan: &Plan) -> Vec<String> {
    plan.confirmed.iter().map(ToString::to_string).collect()
}

fn deleted(plan: &Plan) -> Vec<&str> {
    let names = plan.steps.iter().filter_map(|step| match step {
        Step::DeletePod { name, .. } => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

#[test]
fn a_leaving_host_is_in_no_configuration_and_the_sidecar_is_told() {
    let (_, seen, _) = departure();
    let config = value(&seen, CONTROL_PLANE_INSTANCE, "haproxy.cfg").expect("it is there");
    assert!(config.contains("192.0.2.2") && !config.contains("192.0.2.3"), "{config}");
    let meta: Value =
        serde_json::from_str(&value(&seen, CONTROL_PLANE_INSTANCE, "meta.json").expect("it is there")).expect("JSON");
    assert_eq!(meta["leaving"], json!([{ "name": "node03", "address": "192.0.2.3" }]));
}

#[test]
fn the_address_is_left_out_when_a_host_that_stays_has_it_too() {
    let tenant = Tenant::new().host(CONTROL_PLANE, "node01", "192.0.2.1").host(CONTROL_PLANE, "twin", "192.0.2.1");
    let tenant = tenant.leaving("twin");
    let seen = after(before(), &tenant.plan(&before()));
    let meta: Value =
        serde_json::from_str(&value(&seen, CONTROL_PLANE_INSTANCE, "meta.json").expect("it is there")).expect("JSON");
    assert_eq!(meta["leaving"], json!([{ "name": "twin" }]));
}

#[test]
fn a_leaving_host_whose_address_is_not_known_any_more_is_waited_for_by_its_name() {
    let (mut tenant, mut seen, _) = departure();
    tenant.backends.iter_mut().find(|b| b.host.name == "node03").expect("it exists").addresses.clear();
    seen.pods = vec![serving("a", &checksums(&seen, CONTROL_PLANE_INSTANCE).0)];
    let plan = tenant.plan(&seen);
    assert_eq!(left(&plan), [""; 0], "no pod has let it go");
    seen = after(seen.clone(), &plan);
    let (checksum, _) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    let meta: Value =
        serde_json::from_str(&value(&seen, CONTROL_PLANE_INSTANCE, "meta.json").expect("it is there")).expect("JSON");
    assert_eq!(meta["leaving"], json!([{ "name": "node03" }]));
    seen.pods = vec![with_sessions("a", &checksum, 0)];
    assert_eq!(left(&tenant.plan(&seen)), ["metal/node03"]);
}

#[test]
fn without_pods_a_host_has_left() {
    let (tenant, seen, _) = departure();
    assert_eq!(left(&tenant.plan(&seen)), ["metal/node03"]);
}

#[test]
fn without_a_load_balancer_a_host_has_left() {
    let (mut tenant, mut seen, checksum) = departure();
    tenant.spec.services.load_balancer_control_plane.clear();
    assert_eq!(left(&tenant.plan(&seen)), ["metal/node03"]);
    seen.pods = vec![with_sessions("a", &checksum, 0)];
    let plan = tenant.plan(&seen);
    assert_eq!(left(&plan), [""; 0], "its pods are still there");
    assert_eq!(plan.again_in, Some(2));
}

#[rstest]
#[case::told_and_served(|checksum: &str| with_sessions("b", checksum, 0), true)]
#[case::one_session_left(|checksum: &str| with_sessions("b", checksum, 1), false)]
#[case::it_cannot_tell(|checksum: &str| serving("b", checksum), false)]
#[case::another_configuration(|_: &str| with_sessions("b", "another", 0), false)]
#[case::no_report(|_: &str| pod("b"), false)]
#[case::not_ready_for_a_moment(|_: &str| Pod { ready: false, ready_since: NOW - 59, ..pod("b") }, false)]
#[case::not_ready_for_a_minute(|_: &str| Pod { ready: false, ready_since: NOW - 60, ..pod("b") }, true)]
#[case::another_service(|_: &str| Pod { instance: "jumphost-blue".to_owned(), ..pod("b") }, true)]
fn a_host_has_left_when_every_pod_that_counts_says_so(#[case] other: fn(&str) -> Pod, #[case] expected: bool) {
    let (tenant, mut seen, checksum) = departure();
    seen.pods = vec![with_sessions("a", &checksum, 0), other(&checksum)];
    let plan = tenant.plan(&seen);
    assert_eq!(plan.confirmed.contains(&Key::new("metal", "node03")), expected, "{plan}");
    assert_eq!(plan.again_in, (!expected).then_some(2));
    assert_eq!(deleted(&plan), [""; 0]);
}

#[test]
fn a_pod_that_serves_the_candidate_lets_go_as_well() {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    seen.templates.insert("loadBalancerControlPlane.cfg".to_owned(), template("# ours\n"));
    let tenant = tenant.leaving("node03");
    seen = after(seen.clone(), &tenant.plan(&seen));
    let (_, candidate) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    seen.pods = vec![with_sessions("a", &candidate.expect("a candidate"), 0)];
    // Promotion changes what the Secret shall hold, but the pod serves just that.
    assert_eq!(left(&tenant.plan(&seen)), ["metal/node03"]);
}

#[test]
fn a_ready_pod_that_does_not_let_go_is_deleted_after_two_minutes_one_at_a_time() {
    let (tenant, mut seen, _) = departure();
    seen.pods = vec![pod("a"), pod("b")];
    seen.now = NOW + 119;
    assert_eq!(deleted(&tenant.plan(&seen)), [""; 0]);
    seen.now = NOW + 120;
    assert_eq!(deleted(&tenant.plan(&seen)), ["a"]);

    seen.pods[0].deleting = true;
    assert_eq!(deleted(&tenant.plan(&seen)), [""; 0], "the other one alone serves");
    seen.pods[0] = Pod { ready: false, ready_since: seen.now, ..pod("c") };
    assert_eq!(deleted(&tenant.plan(&seen)), [""; 0], "the new one does not serve yet");
    seen.pods[0] = Pod { ready_since: seen.now, ..pod("c") };
    assert_eq!(deleted(&tenant.plan(&seen)), ["b"]);
}

#[test]
fn where_nobody_is_left_to_be_served_no_pod_is_spared() {
    let tenant = Tenant::new().host(CONTROL_PLANE, "node03", "192.0.2.3");
    let seen = tenant.settled();
    let tenant = tenant.leaving("node03");
    let mut seen = after(seen.clone(), &tenant.plan(&seen));
    seen.pods = vec![pod("a"), Pod { ready: false, ..pod("b") }];
    seen.now = NOW + 120;
    assert_eq!(deleted(&tenant.plan(&seen)), ["a"]);
}

#[test]
fn a_template_that_names_the_host_itself_is_reported_and_costs_no_pod() {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    let fixed = "backend b\n  server x 192.0.2.3:6443\n  server y 192.0.2.31:6443\n";
    seen.templates.insert("loadBalancerControlPlane.cfg".to_owned(), template(fixed));
    let tenant = tenant.leaving("node03");
    seen = after(seen.clone(), &tenant.plan(&seen));
    seen.pods = vec![pod("a"), pod("b")];
    seen.now = NOW + 3600;
    let plan = tenant.plan(&seen);
    assert_eq!(deleted(&plan), [""; 0]);
    assert!(
        plan.problems.iter().any(|problem| problem.message
            == "host metal/node03 cannot leave: the template itself names its address 192.0.2.3; use .Servers instead"),
        "{plan}"
    );
}

#[test]
fn without_a_configuration_to_ask_for_no_pod_is_deleted() {
    let (mut tenant, mut seen) = (Tenant::with_hosts().leaving("node05"), Tenant::with_hosts().settled());
    tenant.spec.services.load_balancer_worker[0].node_port_range = NodePortRange { start: 9, end: 8 };
    seen.pods = vec![Pod { instance: WORKER_INSTANCE.to_owned(), ..pod("a") }];
    let plan = tenant.plan(&seen);
    assert_eq!((left(&plan), deleted(&plan)), (vec![], vec![]));
}

#[test]
fn a_worker_is_no_matter_of_the_control_plane() {
    let tenant = Tenant::with_hosts();
    let seen = tenant.settled();
    let tenant = tenant.leaving("node05");
    let mut seen = after(seen.clone(), &tenant.plan(&seen));
    seen.pods = vec![pod("a")];
    assert_eq!(left(&tenant.plan(&seen)), ["metal/node05"]);
    seen.pods.push(Pod { instance: WORKER_INSTANCE.to_owned(), ..pod("b") });
    assert_eq!(left(&tenant.plan(&seen)), [""; 0]);
}

#[test]
fn hosts_of_a_name_that_two_namespaces_have_are_told_apart() {
    let mut tenant =
        Tenant::new().host(CONTROL_PLANE, "node01", "192.0.2.1").host(CONTROL_PLANE, "node01", "192.0.2.2");
    tenant.backends[1].host.namespace = "other".to_owned();
    tenant.backends[1].leaving = true;
    let seen = after(before(), &tenant.plan(&before()));
    let config = value(&seen, CONTROL_PLANE_INSTANCE, "haproxy.cfg").expect("it is there");
    assert!(config.contains("  server metal_node01 192.0.2.1:6443\n"), "{config}");
    let meta = value(&seen, CONTROL_PLANE_INSTANCE, "meta.json").expect("it is there");
    assert!(meta.contains("\"other_node01\""), "{meta}");
}
