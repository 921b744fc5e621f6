//! A template on its way into service: tried, promoted, refused, and never between a tenant and its API.

use super::*;
use crate::services::names::CONTROL_PLANE_TEMPLATE;

const CUSTOM: &str = "# ours\n{{range .Servers}}server {{.Name}} {{.IP}}\n{{end}}";

fn messages(plan: &Plan) -> Vec<String> {
    plan.problems.iter().map(ToString::to_string).collect()
}

/// A tenant whose namespace has `text` as the template.
fn given(seen: Seen, text: &str) -> Seen {
    Seen { templates: BTreeMap::from([(CONTROL_PLANE_TEMPLATE.to_owned(), template(text))]), ..seen }
}

fn accepted(seen: &Seen) -> String {
    value(seen, CONTROL_PLANE_INSTANCE, "haproxy.cfg").expect("the Secret is there")
}

fn candidate(seen: &Seen) -> Option<String> {
    value(seen, CONTROL_PLANE_INSTANCE, "candidate.cfg")
}

#[test]
fn at_creation_the_built_in_template_serves_until_the_given_one_has_been_loaded() {
    let tenant = Tenant::with_hosts();
    let mut seen = given(before(), CUSTOM);
    seen = after(seen.clone(), &tenant.plan(&seen));
    assert!(accepted(&seen).contains("http-frontend"));
    assert_eq!(
        candidate(&seen).as_deref(),
        Some("# ours\nserver node01 192.0.2.1\nserver node02 192.0.2.2\nserver node03 192.0.2.3\n")
    );
    let (_, tried) = checksums(&seen, CONTROL_PLANE_INSTANCE);

    seen.pods = vec![serving("a", &tried.expect("a candidate"))];
    let plan = tenant.plan(&seen);
    assert_eq!(messages(&plan), [""; 0]);
    seen = after(seen, &plan);
    assert!(accepted(&seen).starts_with("# ours"));
    assert_eq!(candidate(&seen), None);
    assert_eq!(tenant.plan(&seen).steps, []);
}

#[test]
fn while_it_is_tried_people_are_told_and_the_pods_are_asked_again() {
    let tenant = Tenant::with_hosts();
    let mut seen = given(tenant.settled(), CUSTOM);
    seen = after(seen.clone(), &tenant.plan(&seen));
    let (good, _) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    seen.pods = vec![serving("a", &good)];
    let plan = tenant.plan(&seen);
    assert_eq!(
        messages(&plan),
        [
            "spec.services.loadBalancerControlPlane[0]: ConfigMap tenant/loadbalancercontrolplane, key loadBalancerControlPlane.cfg, \
          is being tried: no pod serves it yet"
        ]
    );
    assert!(plan.problems[0].waiting);
    assert_eq!(plan.again_in, Some(2));
    assert!(plan.ready, "the one before stays in service");
    seen.now += 3600;
    assert_eq!(tenant.plan(&seen).again_in, Some(30));
}

#[test]
fn what_haproxy_refuses_stays_out_of_service() {
    let tenant = Tenant::with_hosts();
    let mut seen = given(tenant.settled(), CUSTOM);
    let before = accepted(&seen);
    seen = after(seen.clone(), &tenant.plan(&seen));
    let (good, tried) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    let mut refusing = serving("a", &good);
    let refused = Some((tried.expect("a candidate"), "haproxy.cfg:1: unknown keyword".to_owned()));
    refusing.report.as_mut().expect("it reports").refused = refused;
    seen.pods = vec![refusing];
    let plan = tenant.plan(&seen);
    assert_eq!(
        messages(&plan),
        [
            "spec.services.loadBalancerControlPlane[0]: ConfigMap tenant/loadbalancercontrolplane, key loadBalancerControlPlane.cfg, renders \
          a configuration that HAProxy refuses; the one before stays in service: haproxy.cfg:1: unknown keyword"
        ]
    );
    assert!(!plan.problems[0].waiting);
    assert_eq!(plan.steps, [], "a pod that has tried it need not be told again");
    assert_eq!(accepted(&after(seen, &plan)), before);
}

#[test]
fn a_template_that_does_not_parse_is_named_with_its_line() {
    let tenant = Tenant::with_hosts();
    let seen = given(tenant.settled(), "global\n  {{ if }}\n");
    let plan = tenant.plan(&seen);
    assert_eq!(plan.steps, []);
    let [message] = &messages(&plan)[..] else { panic!("{plan}") };
    assert!(
        message.starts_with(
            "spec.services.loadBalancerControlPlane[0]: ConfigMap tenant/loadbalancercontrolplane, key loadBalancerControlPlane.cfg, line 2 "
        ),
        "{message}"
    );
    assert!(plan.ready);
}

#[test]
fn new_hosts_reach_the_accepted_configuration_and_the_candidate() {
    let tenant = Tenant::with_hosts();
    let mut seen = given(tenant.settled(), CUSTOM);
    seen = after(seen.clone(), &tenant.plan(&seen));
    let tenant = tenant.host(CONTROL_PLANE, "node06", "192.0.2.6");
    seen = after(seen.clone(), &tenant.plan(&seen));
    assert!(accepted(&seen).contains("  server node06 192.0.2.6:6443\n"));
    assert!(candidate(&seen).expect("a candidate").contains("server node06 192.0.2.6\n"));
}

#[test]
fn another_candidate_takes_the_place_of_one_that_nobody_has_loaded() {
    let tenant = Tenant::with_hosts();
    let mut seen = given(tenant.settled(), CUSTOM);
    seen = after(seen.clone(), &tenant.plan(&seen));
    let (_, first) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    seen = given(seen, "# another\n");
    seen.pods = vec![serving("a", &first.expect("a candidate"))];
    seen = after(seen.clone(), &tenant.plan(&seen));
    assert!(accepted(&seen).contains("http-frontend"), "what is no longer asked for is not promoted");
    assert_eq!(candidate(&seen).as_deref(), Some("# another\n"));
}

#[test]
fn a_template_that_renders_the_same_is_accepted_at_once() {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    let text = accepted(&seen);
    seen = given(seen, &text);
    let plan = tenant.plan(&seen);
    assert_eq!(messages(&plan), [""; 0]);
    seen = after(seen, &plan);
    assert_eq!((accepted(&seen), candidate(&seen)), (text, None));
}

#[test]
fn a_template_that_is_taken_away_gives_way_to_the_built_in_one() {
    let tenant = Tenant::with_hosts();
    let mut seen = given(before(), CUSTOM);
    seen = after(seen.clone(), &tenant.plan(&seen));
    let (_, tried) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    seen.pods = vec![serving("a", &tried.expect("a candidate"))];
    seen = after(seen.clone(), &tenant.plan(&seen));
    assert!(accepted(&seen).starts_with("# ours"));
    seen.templates.clear();
    seen = after(seen.clone(), &tenant.plan(&seen));
    assert!(candidate(&seen).expect("the built-in one is tried").contains("http-frontend"));
}

#[test]
fn a_template_that_no_longer_renders_does_not_keep_hosts_that_left() {
    let tenant = Tenant::with_hosts();
    let mut seen = given(before(), "# third: {{(index .Servers 2).IP}}\n");
    seen = after(seen.clone(), &tenant.plan(&seen));
    let (_, tried) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    seen.pods = vec![serving("a", &tried.expect("a candidate"))];
    seen = after(seen.clone(), &tenant.plan(&seen));
    assert_eq!(accepted(&seen), "# third: 192.0.2.3\n");

    let tenant = tenant.leaving("node03");
    let plan = tenant.plan(&seen);
    let [fallback, given] = &messages(&plan)[..] else { panic!("{plan}") };
    assert!(fallback.contains("the template in service can no longer be rendered"), "{fallback}");
    assert!(given.contains("ConfigMap tenant/loadbalancercontrolplane"), "{given}");
    seen = after(seen, &plan);
    assert!(accepted(&seen).contains("http-frontend") && !accepted(&seen).contains("192.0.2.3"));
}

#[test]
fn a_configuration_that_no_secret_holds_is_refused_with_figures() {
    let mut tenant = Tenant::with_hosts();
    for n in 6..=30 {
        tenant = tenant.host(WORKER, &format!("node{n:02}"), &format!("192.0.2.{n}"));
    }
    let seen = tenant.settled();
    tenant.spec.services.load_balancer_worker[0].node_port_range = NodePortRange { start: 30_001, end: 32_767 };
    let plan = tenant.plan(&seen);
    assert!(plan.steps.iter().all(|step| !matches!(step, Step::Update { object, .. } if object.kind == Kind::Secret)));
    let said = messages(&plan);
    assert!(said[0].starts_with("spec.services.loadBalancerWorker[0]: "), "{said:?}");
    assert!(!plan.ready);
}

#[test]
fn a_pod_that_serves_something_else_is_told_once() {
    let tenant = Tenant::with_hosts();
    let mut seen = tenant.settled();
    let (good, _) = checksums(&seen, CONTROL_PLANE_INSTANCE);
    let starting = Pod { ready: false, ready_since: NOW, ..pod("starting") };
    seen.pods = vec![serving("current", &good), serving("stale", "another"), starting, pod("silent")];
    let plan = tenant.plan(&seen);
    let told: Vec<String> = plan.steps.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["> Pod silent reads its configuration", "> Pod stale reads its configuration"]);
    assert_eq!(tenant.plan(&after(seen, &plan)).steps, []);
}
