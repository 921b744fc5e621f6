//! What comparison finds: drift, adoption, what is no longer asked for, and what belongs to somebody else.

use rstest::rstest;

use super::*;
use crate::services::{Problem, holds};

fn lines(plan: &Plan) -> Vec<String> {
    plan.steps.iter().map(ToString::to_string).collect()
}

/// The settled tenant, with one object as the original operator, or somebody's hand, left it.
fn with(kind: Kind, change: impl FnOnce(&mut Owned, &mut Value)) -> (Tenant, Seen) {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    let owned = seen.objects.get_mut(&(kind, CONTROL_PLANE_INSTANCE.to_owned())).expect("it is there");
    let mut body = (**owned.live.as_ref().expect("it was read")).clone();
    change(owned, &mut body);
    owned.live = Some(Arc::new(body));
    (tenant, seen)
}

#[test]
fn at_rest_nothing_is_done_and_everything_holds() {
    let tenant = Tenant::with_hosts();
    let seen = tenant.settled();
    let plan = tenant.plan(&seen);
    assert_eq!(plan.steps, []);
    assert_eq!(plan.problems, []);
    assert!(plan.ready);
    assert_eq!(plan.again_in, None);
    assert_eq!(plan.verified.len(), seen.objects.len());
}

#[test]
fn an_edit_of_what_we_set_is_repaired_in_place() {
    let (tenant, seen) = with(Kind::Deployment, |_, body| body["spec"]["replicas"] = json!(0));
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), ["~ Deployment loadbalancer-controlplane-blue"]);
    let Step::Update { whole, .. } = &plan.steps[0] else { panic!("{}", plan.steps[0]) };
    assert!(!whole, "what others added stays");
}

#[test]
fn what_others_add_stays() {
    let (tenant, seen) = with(Kind::Deployment, |_, body| {
        body["metadata"]["labels"]["example.org/team"] = json!("storage");
        body["spec"]["template"]["metadata"]["annotations"] = json!({ "kubectl.kubernetes.io/restartedAt": "now" });
        body["spec"]["progressDeadlineSeconds"] = json!(600);
        body["status"] = json!({ "replicas": 2 });
    });
    assert_eq!(lines(&tenant.plan(&seen)), [""; 0]);
}

#[test]
fn a_node_selector_that_others_add_goes() {
    let (tenant, seen) =
        with(Kind::Deployment, |_, body| body["spec"]["template"]["spec"]["nodeSelector"] = json!({ "a": "b" }));
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), ["~ Deployment loadbalancer-controlplane-blue"]);
    assert!(matches!(plan.steps[0], Step::Update { whole: true, .. }));
}

#[test]
fn a_container_that_others_add_goes() {
    let (tenant, seen) = with(Kind::Deployment, |_, body| {
        let containers = body["spec"]["template"]["spec"]["containers"].as_array_mut().expect("a list");
        containers.push(json!({ "name": "somebody's" }));
    });
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), ["~ Deployment loadbalancer-controlplane-blue"]);
    assert!(matches!(plan.steps[0], Step::Update { whole: true, .. }));
}

#[test]
fn a_key_that_others_add_to_a_secret_goes() {
    let (tenant, seen) = with(Kind::Secret, |_, body| body["data"]["more"] = json!("AA=="));
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), ["~ Secret loadbalancer-controlplane-blue"]);
    assert!(matches!(plan.steps[0], Step::Update { whole: true, .. }));
}

#[test]
fn objects_of_the_original_operator_are_taken_over_in_place() {
    let (tenant, seen) = with(Kind::Deployment, |owned, body| {
        owned.owner_name = None;
        owned.owner_uid = None;
        owned.applied = None;
        let selector = body["spec"]["selector"].clone();
        *body = json!({
            "metadata": { "name": CONTROL_PLANE_INSTANCE, "labels": selector["matchLabels"] },
            "spec": {
                "replicas": 1,
                "selector": selector,
                "template": { "spec": { "nodeSelector": { "node-role.kubernetes.io/master": "" } } },
            },
        });
    });
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), ["~ Deployment loadbalancer-controlplane-blue"]);
    assert!(matches!(plan.steps[0], Step::Update { whole: true, .. }));
}

#[test]
fn objects_of_an_earlier_sipcluster_of_this_name_are_adopted() {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    let reborn = Tenant { uid: "uid-of-the-restored".to_owned(), ..tenant };
    let plan = reborn.plan(&seen);
    assert!(plan.steps.iter().all(|step| matches!(step, Step::Update { whole: false, .. })), "{plan}");
    assert_eq!(plan.steps.len(), seen.objects.len());
    seen = after(seen, &plan);
    assert_eq!(lines(&reborn.plan(&seen)), [""; 0]);
}

#[test]
fn the_objects_of_another_sipcluster_are_not_touched() {
    let (tenant, seen) = with(Kind::Service, |owned, _| {
        owned.owner_name = Some("controlplane".to_owned());
        owned.owner_uid = Some("uid-of-the-other".to_owned());
    });
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), [""; 0]);
    assert!(!plan.ready);
    assert_eq!(
        plan.problems[0].to_string(),
        "spec.services.loadBalancerControlPlane[0]: Service tenant/loadbalancer-controlplane-blue belongs to SIPCluster controlplane: \
         give the entry of spec.services another name"
    );
    let nothing = Tenant { gone: true, ..tenant }.plan(&seen);
    assert!(!lines(&nothing).iter().any(|line| line.contains("Service loadbalancer-controlplane-blue")), "{nothing}");
}

#[test]
fn a_selector_that_cannot_be_changed_costs_the_deployment() {
    let (tenant, seen) =
        with(Kind::Deployment, |_, body| body["spec"]["selector"]["matchLabels"]["more"] = json!("label"));
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), ["- Deployment loadbalancer-controlplane-blue"]);
    assert!(!plan.ready);
    assert_eq!(lines(&tenant.plan(&after(seen, &plan))), ["+ Deployment loadbalancer-controlplane-blue"]);
}

#[test]
fn an_entry_that_is_no_longer_asked_for_goes_before_another_takes_its_port() {
    let mut tenant = Tenant::with_hosts();
    let seen = tenant.settled();
    tenant.spec.services.load_balancer_worker.clear();
    tenant.spec.services.load_balancer_control_plane[0].common.name = Some("a".to_owned());
    assert_eq!(
        lines(&tenant.plan(&seen)),
        [
            "- Deployment loadbalancer-controlplane-blue",
            "- Deployment loadbalancer-worker-blue",
            "- PodDisruptionBudget loadbalancer-controlplane-blue",
            "- PodDisruptionBudget loadbalancer-worker-blue",
            "- Secret loadbalancer-controlplane-blue",
            "- Secret loadbalancer-worker-blue",
            "- Service loadbalancer-controlplane-blue",
            "- Service loadbalancer-worker-blue",
            "+ Service loadbalancer-controlplane-blue-a",
            "+ Secret loadbalancer-controlplane-blue-a",
            "+ PodDisruptionBudget loadbalancer-controlplane-blue-a",
            "+ Deployment loadbalancer-controlplane-blue-a",
        ]
    );
}

#[test]
fn at_the_end_everything_goes_with_what_the_original_left() {
    let (tenant, mut seen) = with(Kind::Secret, |owned, _| {
        owned.owner_name = None;
        owned.owner_uid = None;
    });
    let tenant = Tenant { gone: true, ..tenant };
    let plan = tenant.plan(&seen);
    assert!(!plan.ready);
    seen = after(seen, &plan);
    assert_eq!(seen.objects.len(), 0, "{:?}", seen.objects.keys());
    assert_eq!(tenant.plan(&seen), Plan { ready: true, ..Plan::default() });
}

#[test]
fn without_an_image_nothing_that_is_there_is_lost() {
    let mut tenant = Tenant::with_hosts();
    let seen = tenant.settled();
    tenant.installation.haproxy_image.clear();
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), [""; 0]);
    assert!(!plan.ready);
    assert_eq!(
        plan.problems[0].to_string(),
        "spec.services.loadBalancerControlPlane[0]: image is empty, and the installation names no default (SLIPWAY_HAPROXY_IMAGE of the manager)"
    );
}

#[test]
fn a_reversed_range_is_named_and_changes_nothing() {
    let mut tenant = Tenant::with_hosts();
    let seen = tenant.settled();
    tenant.spec.services.load_balancer_worker[0].node_port_range = NodePortRange { start: 9, end: 8 };
    let plan = tenant.plan(&seen);
    assert_eq!(lines(&plan), [""; 0]);
    assert_eq!(
        plan.problems[0].to_string(),
        "spec.services.loadBalancerWorker[0]: nodePortRange: start 9 is above end 8"
    );
}

#[test]
fn a_deployment_that_does_not_come_up_says_why() {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    let key = (Kind::Deployment, CONTROL_PLANE_INSTANCE.to_owned());
    seen.objects.get_mut(&key).expect("it is there").facts =
        Facts::Deployment { available: false, rolling: false, message: "no minimum availability".to_owned() };
    seen.pods = vec![Pod { trouble: "image haproxy:3.2 not found".to_owned(), ready: false, ..pod("a") }];
    let plan = tenant.plan(&seen);
    assert!(!plan.ready);
    assert_eq!(
        plan.problems[0].to_string(),
        "spec.services.loadBalancerControlPlane[0]: Deployment loadbalancer-controlplane-blue is not available yet: \
         image haproxy:3.2 not found; no minimum availability"
    );
}

#[test]
fn what_the_original_made_stays_while_a_host_behind_it_has_no_address() {
    let (mut tenant, mut seen) = with(Kind::Secret, |owned, _| owned.owner_uid = None);
    tenant.spec.services.load_balancer_worker.clear();
    seen.objects.retain(|(_, name), _| name == CONTROL_PLANE_INSTANCE);
    tenant.backends[0].addresses.clear();
    let plan = tenant.plan(&seen);
    assert_eq!(plan.steps, [], "{plan}");
    let message = &plan.problems.first().expect("it is told").message;
    assert!(message.contains("metal/node01") && message.contains("sip.airshipit.org/addresses"), "{message}");
    assert_eq!(plan.endpoints.control_plane, seen.published.clone().expect("published").control_plane);
    tenant.backends[0].addresses.insert("oam".to_owned(), "192.0.2.1".to_owned());
    assert_eq!(lines(&tenant.plan(&seen)), ["~ Secret loadbalancer-controlplane-blue"]);
}

#[test]
fn hosts_that_cannot_serve_are_named() {
    let mut tenant = Tenant::new().host(CONTROL_PLANE, "node01", "10.0.0.300");
    tenant = tenant.host(CONTROL_PLANE, "node02", "192.0.2.2");
    tenant.backends[1].addresses = BTreeMap::from([("pxe".to_owned(), "192.0.2.2".to_owned())]);
    let warnings: Vec<String> = tenant.plan(&before()).warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "spec.services.loadBalancerControlPlane[0]: host metal/node01 is left out: its address \"10.0.0.300\" on network oam is no IP address",
            "spec.services.loadBalancerControlPlane[0]: host metal/node02 is left out: it has no address on network oam",
        ]
    );
}

#[rstest]
#[case::more_keys(json!({"a": 1}), json!({"a": 1, "b": 2}), true)]
#[case::another_value(json!({"a": 1}), json!({"a": 2}), false)]
#[case::a_missing_key(json!({"a": 1}), json!({}), false)]
#[case::false_is_not_nothing(json!({"a": false}), json!({}), false)]
#[case::nothing_is_absent(json!({"a": {"b": []}, "c": "", "d": null}), json!({}), true)]
#[case::an_empty_map_is_there(json!({"emptyDir": {}}), json!({"emptyDir": {}}), true)]
#[case::more_items(json!([1]), json!([1, 2]), false)]
#[case::fewer_items(json!([1, 2]), json!([1]), false)]
#[case::other_order(json!([1, 2]), json!([2, 1]), false)]
#[case::defaults_in_items(json!([{"port": 1}]), json!([{"port": 1, "protocol": "TCP"}]), true)]
#[case::another_kind(json!({"a": "1"}), json!({"a": 1}), false)]
fn what_holds(#[case] desired: Value, #[case] live: Value, #[case] expected: bool) {
    assert_eq!(holds(&desired, &live), expected);
}

fn facts(available: bool, rolling: bool) -> Facts {
    Facts::Deployment { available, rolling, message: String::new() }
}

#[test]
fn a_change_that_is_on_its_way_into_pods_leaves_the_services_ready_and_is_told() {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    let key = (Kind::Deployment, CONTROL_PLANE_INSTANCE.to_owned());
    seen.objects.get_mut(&key).expect("it is there").facts = facts(true, true);
    let plan = tenant.plan(&seen);
    assert!(plan.ready && plan.problems.is_empty(), "{plan}");
    let said: Vec<(bool, String)> = plan.rollouts.iter().map(|r| (r.failing, r.problem.to_string())).collect();
    let text = "spec.services.loadBalancerControlPlane[0]: a change of Deployment loadbalancer-controlplane-blue is being \
                rolled out; the pods of before serve meanwhile";
    assert_eq!(said, [(false, text.to_owned())]);

    seen.pods = vec![Pod { trouble: "image haproxy:9 not found".to_owned(), ready: false, ..pod("a") }];
    let plan = tenant.plan(&seen);
    assert!(plan.ready && plan.rollouts[0].failing);
    assert_eq!(plan.rollouts[0].problem.to_string(), format!("{text}: image haproxy:9 not found"));

    seen.pods.clear();
    seen.objects.get_mut(&key).expect("it is there").facts = facts(false, true);
    let plan = tenant.plan(&seen);
    assert!(
        !plan.ready && plan.problems[0].message.ends_with("is not available yet: its pods are being started"),
        "{plan}"
    );
}

#[test]
fn the_same_text_about_several_entries_is_said_once() {
    let problem = |entry: &str, message: &str| Problem { waiting: false, entry: entry.into(), message: message.into() };
    let all = [
        problem("spec.services.loadBalancerControlPlane[0]", "published under a node"),
        problem("spec.services.jumpHost[0]", "spec.services.jumpHost[0].nodeSSHPrivateKeys: Secret t/k is missing"),
        problem("spec.services.loadBalancerWorker[0]", "published under a node"),
        problem("spec.services.auth[1]", "published under a node"),
    ];
    assert_eq!(
        Problem::text_of(&all),
        "spec.services.loadBalancerControlPlane[0], spec.services.loadBalancerWorker[0] and spec.services.auth[1]: \
         published under a node; spec.services.jumpHost[0].nodeSSHPrivateKeys: Secret t/k is missing"
    );
}
