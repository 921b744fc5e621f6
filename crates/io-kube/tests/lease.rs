//! Leader election: two never lead at once, and somebody leads again soon.
// A test says `unwrap` where its failure is a failure of the test, in its helpers too.
#![allow(clippy::unwrap_used)]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use io_kube::{Cause, Leadership, Metrics, Writer, lease};
use jiff::SignedDuration;
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::core::ApiResource;
use proptest::prelude::*;
use serde_json::json;
use testkit::{Api, Clock, Match, Refusal, Verb};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

/// Long enough for anything to happen that is going to.
const LONG: Duration = Duration::from_mins(10);

fn config(name: &str, who: &str, clock: &Clock) -> lease::Config {
    lease::Config::new("default", name, who).clock(clock.source())
}

/// A candidate of its own client and clock.
fn candidate(api: &Api, who: &'static str) -> impl Future<Output = Leadership> + use<> {
    candidate_on(api, who, &api.clock())
}

fn candidate_on(api: &Api, who: &'static str, clock: &Clock) -> impl Future<Output = Leadership> + use<> {
    let (client, leases) = (api.client_named(who), [config("slipway-sip", who, clock)]);
    async move { lease::elected(&client, &leases, None).await }
}

fn kept(api: &Api) -> Lease {
    api.get_as("Lease", "default/slipway-sip").expect("the lease is there")
}

fn holder(api: &Api) -> String {
    kept(api).spec.unwrap().holder_identity.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn the_first_leads_and_goes_on_leading() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    sleep(LONG).await;
    assert!(one.holds());
    assert_eq!((holder(&api).as_str(), one.transitions()), ("one", 0));
}

#[tokio::test(start_paused = true)]
async fn a_second_waits_as_long_as_the_first_renews() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    assert!(timeout(LONG, candidate(&api, "two")).await.is_err());
    assert!(one.holds());
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_look() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    let two = tokio::spawn(candidate(&api, "two"));
    sleep(Duration::from_mins(1)).await;
    let token = one.token();
    one.release().await;
    assert!(token.is_cancelled());
    let released = Instant::now();
    let two = two.await.unwrap();
    assert!(released.elapsed() <= Duration::from_secs(2), "{:?}", released.elapsed());
    assert_eq!((holder(&api).as_str(), two.transitions()), ("two", 1));
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_knows_before_anybody_follows() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    let two = tokio::spawn(candidate(&api, "two"));
    sleep(Duration::from_mins(1)).await;
    api.faults().partition("one");
    let cut = Instant::now();
    one.lost().await;
    let knew = cut.elapsed();
    assert!(!one.holds() && !two.is_finished());
    assert!(knew <= Duration::from_secs(10), "{knew:?}");
    let two = two.await.unwrap();
    let followed = cut.elapsed();
    assert!(followed >= Duration::from_secs(13) && followed <= Duration::from_secs(20), "{followed:?}");
    assert!(two.holds() && !one.holds());
    api.faults().heal("one");
    sleep(LONG).await;
    assert_eq!(holder(&api), "two");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_crashed_is_followed_within_twenty_seconds() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    let two = tokio::spawn(candidate(&api, "two"));
    sleep(Duration::from_secs(30)).await;
    api.faults().crash("one");
    drop(one);
    assert!(timeout(Duration::from_secs(20), two).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn of_two_that_take_an_expired_lease_at_once_one_leads() {
    for round in 0..4_u64 {
        let api = Api::new();
        // Both have read the free lease before either writes.
        api.faults().when(Match::writes().kind("Lease").client("one")).delay(Duration::from_millis(100 * round));
        api.faults().when(Match::writes().kind("Lease").client("two")).delay(Duration::from_millis(150));
        let mut both = [tokio::spawn(candidate(&api, "one")), tokio::spawn(candidate(&api, "two"))];
        sleep(LONG).await;
        let leading = both.iter_mut().filter(|candidate| candidate.is_finished()).count();
        assert_eq!(leading, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_does_not_depose_a_leader_it_answers_in_time() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    api.faults().when(Match::any().kind("Lease").client("one")).always().delay(Duration::from_secs(3));
    sleep(LONG).await;
    assert!(one.holds());
}

#[tokio::test(start_paused = true)]
async fn errors_that_pass_do_not_depose_a_leader_and_lasting_ones_do() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    api.faults().when(Match::writes().kind("Lease")).times(3).refuse(Refusal::Unavailable);
    sleep(Duration::from_mins(1)).await;
    assert!(one.holds());
    let always = api.faults().when(Match::writes().kind("Lease")).always().refuse(Refusal::Internal);
    assert!(timeout(Duration::from_secs(10), one.lost()).await.is_ok());
    always.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_answer_is_lost_counts_as_ours() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    api.faults().when(Match::writes().kind("Lease")).times(2).lose_answer();
    sleep(LONG).await;
    assert!(one.holds());
}

#[tokio::test(start_paused = true)]
async fn an_election_whose_answer_is_lost_is_found_out_at_the_next_look() {
    let api = Api::new();
    api.faults().when(Match::writes().kind("Lease")).lose_answer();
    let one = timeout(Duration::from_secs(3), candidate(&api, "one")).await.expect("elected soon");
    assert!(one.holds());
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_or_jump_change_nothing() {
    let api = Api::new();
    let wrong = Clock::new();
    wrong.jump(SignedDuration::from_hours(-48));
    let one = candidate_on(&api, "one", &wrong).await;
    let two = tokio::spawn(candidate(&api, "two"));
    sleep(Duration::from_mins(1)).await;
    wrong.jump(SignedDuration::from_hours(96));
    sleep(LONG).await;
    assert!(one.holds() && !two.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_lease_taken_away_by_hand_is_given_up_at_once() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    api.edit("Lease", "default/slipway-sip", |lease| lease["spec"]["holderIdentity"] = json!("somebody"));
    assert!(timeout(Duration::from_secs(3), one.lost()).await.is_ok());
    assert_eq!(holder(&api), "somebody", "and is not released for others");
    let two = candidate(&api, "two").await;
    api.remove("Lease", "default/slipway-sip");
    assert!(timeout(Duration::from_secs(3), two.lost()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn somebody_who_only_labels_the_lease_does_no_harm() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    api.edit("Lease", "default/slipway-sip", |lease| lease["metadata"]["labels"] = json!({ "a": "b" }));
    sleep(LONG).await;
    assert!(one.holds());
    assert_eq!(kept(&api).metadata.labels.unwrap()["a"], "b");
}

#[tokio::test(start_paused = true)]
async fn the_originals_lease_is_held_too_or_nobody_leads() {
    let api = Api::new();
    let both = |who: &'static str| {
        let (client, clock) = (api.client_named(who), api.clock());
        let leases = [config("slipway-sip", who, &clock), config(lease::ORIGINAL, who, &clock)];
        async move { lease::elected(&client, &leases, None).await }
    };
    let original = json!({ "holderIdentity": "original_1", "leaseDurationSeconds": 15, "leaseTransitions": 4 });
    let renewed = |n: u32| json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "namespace": "default", "name": lease::ORIGINAL, "annotations": { "n": n.to_string() } }, "spec": original });
    api.seed(renewed(0));
    let ours = tokio::spawn(both("one"));
    for n in 0..30 {
        sleep(Duration::from_secs(2)).await;
        api.seed(renewed(n));
    }
    assert!(!ours.is_finished(), "the original is alive");
    let leadership = timeout(Duration::from_secs(20), ours).await.expect("the original is gone").unwrap();
    assert!(leadership.holds());
    // It comes back and takes its lease by force.
    api.seed(renewed(99));
    assert!(timeout(Duration::from_secs(3), leadership.lost()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_does_not_lead_writes_nothing() {
    let api = Api::new();
    let one = candidate(&api, "one").await;
    let writer = Writer::new(api.client_named("one")).while_leading(one.clone());
    let maps = ApiResource::erase::<ConfigMap>(&());
    let map = |name: &str| json!({ "metadata": { "namespace": "default", "name": name } });
    writer.create(&maps, map("a")).await.unwrap();
    api.faults().when(Match::writes().kind("Lease")).always().refuse(Refusal::Internal);
    one.lost().await;
    let error = writer.create(&maps, map("b")).await.unwrap_err();
    assert_eq!((error.cause, api.names("ConfigMap")), (Cause::NotLeading, vec!["default/a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn the_metrics_say_who_leads() {
    let api = Api::new();
    let metrics = Metrics::new();
    let leases = [config("slipway-sip", "one", &api.clock())];
    let one = lease::elected(&api.client(), &leases, Some(&metrics)).await;
    sleep(Duration::from_secs(1)).await;
    assert!(metrics.text().contains("slipway_leader{lease=\"slipway-sip\"} 1"));
    one.release().await;
    assert!(metrics.text().contains("slipway_leader{lease=\"slipway-sip\"} 0"));
}

#[tokio::test(start_paused = true)]
async fn at_rest_a_leader_writes_its_lease_every_two_seconds_and_nothing_else() {
    let api = Api::new();
    let _one = candidate(&api, "one").await;
    let mark = api.mark();
    sleep(Duration::from_mins(10)).await;
    let writes = api.since(mark);
    assert!(writes.iter().all(|entry| entry.verb == Verb::Replace && entry.wrote()));
    assert!((295..=300).contains(&writes.len()), "{}", writes.len());
}

/// What befalls one of the candidates.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Partition,
    Heal,
    Slow(u64),
    LoseAnswers(usize),
    Errors(usize),
    Release,
    Jump(i64),
}

fn fates() -> impl Strategy<Value = Vec<(usize, Fate, u64)>> {
    let fate = prop_oneof![
        Just(Fate::Partition),
        Just(Fate::Heal),
        Just(Fate::Heal),
        (0_u64..20).prop_map(Fate::Slow),
        (1_usize..5).prop_map(Fate::LoseAnswers),
        (1_usize..8).prop_map(Fate::Errors),
        Just(Fate::Release),
        (-4000_i64..4000).prop_map(Fate::Jump),
    ];
    prop::collection::vec((0_usize..3, fate, 1_u64..25), 1..30)
}

const NAMES: [&str; 3] = ["one", "two", "three"];

/// Leads whenever it can; shows its leadership while it has one.
fn persistent(api: &Api, who: &'static str, clock: &Clock, shown: Arc<Mutex<Option<Leadership>>>) -> JoinHandle<()> {
    let (api, clock) = (api.clone(), clock.clone());
    tokio::spawn(async move {
        loop {
            let leadership = candidate_on(&api, who, &clock).await;
            *shown.lock().unwrap() = Some(leadership.clone());
            leadership.lost().await;
            *shown.lock().unwrap() = None;
            leadership.release().await;
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn two_never_lead_at_once_and_somebody_leads_again(fates in fates()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let api = Api::new();
            let clocks = NAMES.map(|_| Clock::new());
            let shown = NAMES.map(|_| Arc::new(Mutex::new(None::<Leadership>)));
            let running: Vec<_> =
                (0..3).map(|n| persistent(&api, NAMES[n], &clocks[n], shown[n].clone())).collect();
            let leaders = || shown.iter().filter(|one| one.lock().unwrap().as_ref().is_some_and(Leadership::holds)).count();
            let watch = async |seconds: u64| {
                for _ in 0..seconds * 4 {
                    sleep(Duration::from_millis(250)).await;
                    assert!(leaders() <= 1, "two lead at once:\n{}", api.transcript());
                }
            };
            for (who, fate, seconds) in fates {
                let about = Match::writes().kind("Lease").client(NAMES[who]);
                match fate {
                    Fate::Partition => api.faults().partition(NAMES[who]),
                    Fate::Heal => api.faults().heal(NAMES[who]),
                    Fate::Slow(pause) => drop(api.faults().when(about).times(3).delay(Duration::from_secs(pause))),
                    Fate::LoseAnswers(times) => drop(api.faults().when(about).times(times).lose_answer()),
                    Fate::Errors(times) => drop(api.faults().when(about).times(times).refuse(Refusal::Unavailable)),
                    Fate::Release => {
                        let leadership = shown[who].lock().unwrap().clone();
                        if let Some(leadership) = leadership {
                            leadership.token().cancel();
                        }
                    }
                    Fate::Jump(seconds) => clocks[who].jump(SignedDuration::from_secs(seconds)),
                }
                watch(seconds).await;
            }
            for who in NAMES {
                api.faults().heal(who);
            }
            api.faults().clear();
            watch(60).await;
            assert_eq!(leaders(), 1, "nobody leads:\n{}", api.transcript());
            for candidate in running {
                candidate.abort();
            }
        });
    }
}
