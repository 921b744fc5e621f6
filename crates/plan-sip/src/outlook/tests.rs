//! What is told of a tenant, and how seldom.

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;

fn pod(name: &str, servers: &[(&str, Option<bool>)]) -> PodHealth {
    let servers = servers.iter().map(|(name, up)| ServerHealth {
        name: (*name).to_owned(),
        up: *up,
        says: if *up == Some(false) { "Connection refused".to_owned() } else { String::new() },
    });
    PodHealth { pod: name.to_owned(), servers: Some(servers.collect()) }
}

fn silent(name: &str) -> PodHealth {
    PodHealth { pod: name.to_owned(), servers: None }
}

const UP: Option<bool> = Some(true);
const DOWN: Option<bool> = Some(false);

fn told(pods: &[PodHealth]) -> (Option<bool>, &'static str, String) {
    let Reading { holds, reason, message, .. } = tenant(pods);
    (holds, reason, message)
}

#[test]
fn the_tenant_is_reachable_when_every_pod_that_could_be_asked_reaches_one_of_its_api_servers() {
    let all = [pod("a", &[("n1", UP), ("n2", UP)]), pod("b", &[("n1", UP), ("n2", UP)])];
    assert_eq!(told(&all), (UP, ANSWERING, "2 of 2 API servers answer".to_owned()));
    let one = [pod("a", &[("n1", UP), ("n2", DOWN)]), silent("b")];
    let message = "1 of 2 API servers answer; not: n2 (Connection refused)".to_owned();
    assert_eq!(told(&one), (UP, tenant::SOME_DOWN, message));
    let none = [pod("a", &[("n1", DOWN), ("n2", DOWN)])];
    let (holds, reason, message) = told(&none);
    assert_eq!((holds, reason), (DOWN, tenant::NONE_ANSWERS));
    assert!(message.starts_with("0 of 2 API servers answer; not: n1 "), "{message}");
}

#[test]
fn a_pod_that_reaches_none_is_named_though_another_reaches_all() {
    let (holds, reason, message) = told(&[pod("a", &[("n1", UP)]), pod("b", &[("n1", DOWN)])]);
    assert_eq!((holds, reason), (DOWN, tenant::CUT_OFF));
    assert!(message.ends_with("no API server answers pod b"), "{message}");
}

#[test]
fn nothing_is_claimed_of_what_nobody_checked() {
    assert_eq!(tenant(&[]).reason, NOT_ASKED);
    assert_eq!(tenant(&[silent("a")]).holds, None);
    assert_eq!(tenant(&[pod("a", &[("n1", None)])]).reason, tenant::NOT_CHECKED);
    assert_eq!(tenant(&[pod("a", &[])]).reason, tenant::NO_HOSTS);
    let begun = [pod("a", &[("n1", UP)]), pod("b", &[("n1", None)])];
    assert_eq!(tenant(&begun).reason, ANSWERING, "a pod that has only begun to check is not cut off");
}

#[test]
fn of_many_that_are_down_a_few_are_named() {
    let names: Vec<String> = (0..40).map(|n| format!("n{n:02}")).collect();
    let servers: Vec<(&str, Option<bool>)> = names.iter().map(|name| (name.as_str(), DOWN)).collect();
    let message = tenant(&[pod("a", &servers)]).message;
    assert!(message.contains("n09") && !message.contains("n10") && message.ends_with("and 30 more"), "{message}");
}

fn provider(answer: Option<Result<&str, &str>>) -> Provider {
    let question = Question {
        address: [10, 96, 0, 1].into(),
        port: 5556,
        issuer: "https://login.example:5556/dex".to_owned(),
        ca: Vec::new(),
    };
    let answer = answer.map(|answer| answer.map(str::to_owned).map_err(str::to_owned));
    Provider { entry: "auth".to_owned(), lacks: None, question: Some(question), answer }
}

#[test]
fn a_provider_is_ready_when_it_answers_as_the_issuer_that_was_published() {
    let reason = |answer| oidc(&[provider(answer)]).reason;
    assert_eq!(reason(Some(Ok("https://login.example:5556/dex"))), ANSWERING);
    assert_eq!(reason(Some(Ok("https://other.example/dex"))), oidc::WRONG_ISSUER);
    assert_eq!(reason(Some(Err("certificate is not of our CA"))), oidc::NO_ANSWER);
    assert_eq!(reason(None), NOT_ASKED);
    let lacks = Provider {
        lacks: Some((oidc::NO_CERTIFICATE, "Secret auth-a-tls has no certificate yet".to_owned())),
        question: None,
        ..provider(None)
    };
    let both = oidc(&[provider(Some(Ok("https://login.example:5556/dex"))), lacks]);
    assert_eq!((both.holds, both.reason), (DOWN, oidc::NO_CERTIFICATE));
    assert_eq!(
        both.message,
        "auth: https://login.example:5556/dex answers; auth: Secret auth-a-tls has no certificate yet"
    );
}

fn written(outlook: &Outlook, old: &[Condition]) -> Vec<Condition> {
    condition::merge(old, vec![outlook.says()], Some(1), Timestamp::UNIX_EPOCH)
}

fn up() -> Reading {
    tenant(&[pod("a", &[("n1", UP)])])
}

fn down() -> Reading {
    tenant(&[pod("a", &[("n1", DOWN)])])
}

#[test]
fn the_first_reading_is_told_at_once_and_a_loss_only_when_it_lasts() {
    let mut outlook = Outlook::resume(TENANT_REACHABLE, &[], 0);
    assert_eq!((outlook.says().holds, outlook.says().reason), (None, NOT_ASKED));
    assert!(outlook.hear(down(), 5));
    assert!(!outlook.hear(up(), 15), "a second change so soon has to last");
    assert!(outlook.hear(up(), 15 + 40));
    assert!(!outlook.hear(down(), 100));
    assert!(!outlook.hear(up(), 110), "and a short loss is nothing");
    assert_eq!(outlook.look_in(110), 60);
    assert!(!outlook.hear(down(), 200));
    assert_eq!(outlook.look_in(200), 5);
    assert!(outlook.hear(down(), 200 + 80));
    assert_eq!(outlook.look_in(280), 10);
    assert_eq!(outlook.look_in(280 + PATIENCE), 30);
}

#[test]
fn words_that_vary_are_no_news_and_a_new_leader_goes_on_from_what_is_written() {
    let mut outlook = Outlook::resume(TENANT_REACHABLE, &[], 0);
    outlook.hear(down(), 0);
    let other_words = Reading { message: "0 of 1 API servers answer; not: n1 (timeout)".to_owned(), ..down() };
    assert!(!outlook.hear(other_words, 1000));
    let conditions = written(&outlook, &[]);
    let mut next = Outlook::resume(TENANT_REACHABLE, &conditions, 2000);
    assert_eq!(next.says(), outlook.says());
    assert!(!next.hear(down(), 2001));
}

proptest! {
    /// Whatever comes and goes: what is written changes at most once in a hold that has grown, and what lasts is told.
    #[test]
    fn flapping_costs_a_few_writes_an_hour(readings in proptest::collection::vec((any::<bool>(), 1_i64..60), 1..400)) {
        let mut outlook = Outlook::resume(TENANT_REACHABLE, &[], 0);
        let (mut now, mut writes) = (0, Vec::new());
        for (is_up, pause) in &readings {
            now += pause;
            if outlook.hear(if *is_up { up() } else { down() }, now) {
                writes.push(now);
            }
        }
        for hour in writes.windows(12) {
            prop_assert!(hour[11] - hour[0] > 3600, "{writes:?}");
        }
        let last = if readings.last().unwrap().0 { up() } else { down() };
        outlook.hear(last.clone(), now);
        outlook.hear(last.clone(), now + HOLD.1);
        prop_assert_eq!(outlook.says().reason, last.reason);
    }
}
