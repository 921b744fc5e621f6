//! What the status says of services that change, fail, or go.

use rstest::rstest;
use serde_json::json;

use super::*;
use crate::sipcluster::events::worth_telling;

fn cluster() -> SIPCluster {
    let object = json!({
        "apiVersion": "airship.airshipit.org/v1", "kind": "SIPCluster",
        "metadata": {"name": "edge", "namespace": "tenants", "generation": 2},
        "spec": {"services": {}},
    });
    serde_json::from_value(object).expect("a SIPCluster")
}

/// A cluster that has been Ready since its present generation.
fn settled() -> SIPCluster {
    let mut sip = cluster();
    let plan = services::Plan { ready: true, ..services::Plan::default() };
    sip.status = Some(after(&sip, &plan));
    sip
}

fn after(sip: &SIPCluster, plan: &services::Plan) -> SIPClusterStatus {
    let done = Done { services: Some(plan), ..Done::default() };
    of(sip, &Plan::default(), &done, Timestamp::UNIX_EPOCH)
}

fn problem(message: &str) -> Problem {
    Problem { waiting: true, entry: "spec.services.jumpHost[0]".to_owned(), message: message.to_owned() }
}

fn rolls(failing: bool, ready: bool) -> services::Plan {
    let problems = if ready { Vec::new() } else { vec![problem("is not available yet")] };
    services::Plan {
        ready,
        problems,
        rollouts: vec![Rollout { failing, problem: problem("is being rolled out") }],
        ..services::Plan::default()
    }
}

fn says(status: &SIPClusterStatus, kind: &str) -> String {
    let found = find(&status.conditions, kind).expect("it is stated");
    format!("{} {} {}", found.status, found.reason, found.message)
}

#[test]
fn a_ready_cluster_says_what_it_has_and_says_the_same_at_rest() {
    let sip = settled();
    let status = sip.status.clone().expect("a status");
    assert_eq!(says(&status, READY), "True ReconciliationSucceeded 0 hosts, 0 services");
    assert_eq!(after(&sip, &services::Plan { ready: true, ..services::Plan::default() }), status);
}

#[rstest]
#[case::it_goes_well(
    false,
    true,
    "True ReconciliationSucceeded 0 hosts, 0 services",
    "True RollingOut spec.services.jumpHost[0]: is being rolled out"
)]
#[case::new_pods_do_not_run(
    true,
    true,
    "True ReconciliationSucceeded 0 hosts, 0 services",
    "True RolloutFailing spec.services.jumpHost[0]: is being rolled out"
)]
#[case::nothing_serves_for_a_moment(
    false,
    false,
    "False Progressing spec.services.jumpHost[0]: is not available yet",
    "False Progressing spec.services.jumpHost[0]: is not available yet"
)]
#[case::nothing_serves_at_all(
    true,
    false,
    "False InfraServiceFailure spec.services.jumpHost[0]: is not available yet",
    "False Progressing spec.services.jumpHost[0]: is not available yet"
)]
fn a_change_on_its_way_into_pods(
    #[case] failing: bool,
    #[case] serves: bool,
    #[case] ready: &str,
    #[case] services: &str,
) {
    let status = after(&settled(), &rolls(failing, serves));
    assert_eq!(says(&status, READY), ready);
    assert_eq!(says(&status, SERVICES), services);
    assert!(says(&status, "Reconciling").starts_with("True "), "{}", says(&status, "Reconciling"));
}

#[test]
fn a_rollout_that_fails_is_told_once_and_one_that_goes_well_is_not() {
    let mut sip = settled();
    assert_eq!(worth_telling(&sip, &after(&sip, &rolls(false, true)), &[]), []);
    let failing = after(&sip, &rolls(true, true));
    let told = worth_telling(&sip, &failing, &[]);
    let told: Vec<_> = told.iter().map(|t| (t.tone, t.reason.as_str())).collect();
    assert_eq!(told, [(io_kube::events::Tone::Warning, ROLLOUT_FAILING)]);
    sip.status = Some(failing.clone());
    assert_eq!(worth_telling(&sip, &failing, &[]), []);
}

#[test]
fn that_people_change_or_delete_a_cluster_is_no_warning() {
    let mut sip = settled();
    sip.metadata.generation = Some(3);
    sip.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    let status = after(&sip, &services::Plan::default());
    assert_eq!(says(&status, READY), "False Progressing no host is left to release");
    let told: Vec<_> = worth_telling(&sip, &status, &[]).iter().map(|t| t.tone).collect();
    assert_eq!(told, [io_kube::events::Tone::Normal]);
}

#[test]
fn every_reason_of_condition_ready_is_a_label_of_the_figures() {
    let metrics = crate::metrics::SipMetrics::new(io_kube::Metrics::new());
    let settled = settled().status.expect("a status");
    let failing = after(
        &cluster(),
        &services::Plan { problems: vec![Problem { waiting: false, ..problem("x") }], ..services::Plan::default() },
    );
    let says = [&settled, &failing].map(crate::metrics::readiness);
    assert_eq!(says, [("True", "ReconciliationSucceeded"), ("False", "InfraServiceFailure")]);
    metrics.readiness(&says.into_iter().map(|label| (label, 1)).collect());
    let text = metrics.common.text();
    assert!(text.contains("sip_clusters_ready{ready=\"False\",reason=\"InfraServiceFailure\"} 1"), "{text}");
    metrics.readiness(&[(says[0], 2)].into());
    let text = metrics.common.text();
    assert!(text.contains("sip_clusters_ready{ready=\"False\",reason=\"InfraServiceFailure\"} 0"), "{text}");
}

#[test]
fn numbers_agree_with_their_words() {
    assert_eq!(
        [0, 1, 2].map(departing),
        ["no host is left to release", "1 host is being released", "2 hosts are being released"]
    );
}
