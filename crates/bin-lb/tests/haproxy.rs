//! The sidecar against a real HAProxy and real connections.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::collections::BTreeSet;

use slipway_lb::{config::checksum, contract::Status};
use support::{Pod, Server};

/// What the manager waits for before it releases the hosts of these servers.
fn confirmed<'a>(config: &'a str, leaving: &'a [&'a str]) -> impl Fn(&Status) -> bool + 'a {
    move |status| status.confirms(&checksum(config), None, &leaving.iter().copied().collect::<BTreeSet<_>>())
}

#[tokio::test]
async fn a_connection_survives_the_arrival_and_the_departure_of_other_servers() {
    let [a, b, c] = [Server::start("a", 11).await, Server::start("b", 12).await, Server::start("c", 13).await];
    let mut pod = Pod::serving(&[&a, &c]).await;
    let mut through_a = pod.connect_to("a").await;

    let more = pod.config(&[&a, &b, &c]);
    pod.mount(&more, None, &[]);
    pod.until_serves(&more).await;
    assert!(through_a.alive().await, "adding b cut a connection to a");
    assert!(pod.connect_to("b").await.alive().await);

    let fewer = pod.config(&[&a, &b]);
    pod.mount(&fewer, None, &[&c]);
    pod.until("c has left", confirmed(&fewer, &["c"])).await;
    assert!(through_a.alive().await, "removing c cut a connection to a");
}

#[tokio::test]
async fn connections_to_a_server_that_leaves_are_cut_in_the_youngest_and_in_the_oldest_worker() {
    let [a, b, c] = [Server::start("a", 21).await, Server::start("b", 22).await, Server::start("c", 23).await];
    let mut pod = Pod::serving(&[&a, &c]).await;
    let oldest = pod.connect_to("c").await;
    let mut stays = pod.connect_to("a").await;
    for servers in [&[&a, &b, &c][..], &[&b, &a, &c], &[&c, &b, &a]] {
        let config = pod.config(servers);
        pod.mount(&config, None, &[]);
        pod.until_serves(&config).await;
    }
    let youngest = pod.connect_to("c").await;

    let fewer = pod.config(&[&a, &b]);
    pod.mount(&fewer, None, &[&c]);
    let status = pod.until("c has left", confirmed(&fewer, &["c"])).await;
    assert!(oldest.ended().await, "a connection to c lives on in the oldest worker");
    assert!(youngest.ended().await, "a connection to c lives on in the youngest worker");
    assert!(stays.alive().await, "a connection to a in the oldest worker was cut");
    assert!(status.workers.len() >= 2, "the oldest worker must still hold the connection to a: {status:?}");
}

#[tokio::test]
async fn a_server_that_leaves_is_cut_though_the_manager_does_not_name_it() {
    let [a, c] = [Server::start("a", 31).await, Server::start("c", 33).await];
    let mut pod = Pod::serving(&[&a, &c]).await;
    let (mut through_a, through_c) = (pod.connect_to("a").await, pod.connect_to("c").await);
    let fewer = pod.config(&[&a]);
    pod.mount(&fewer, None, &[]);
    pod.until_serves(&fewer).await;
    pod.until("only the worker that holds a is left", |status| status.workers.len() == 2).await;
    pod.sidecar.turn().await;
    assert!(through_c.ended().await);
    assert!(through_a.alive().await);
}

#[tokio::test]
async fn a_server_may_come_back() {
    let [a, c] = [Server::start("a", 41).await, Server::start("c", 43).await];
    let mut pod = Pod::serving(&[&a, &c]).await;
    let mut through_a = pod.connect_to("a").await;
    let fewer = pod.config(&[&a]);
    pod.mount(&fewer, None, &[&c]);
    pod.until("c has left", confirmed(&fewer, &["c"])).await;

    let both = pod.config(&[&a, &c]);
    pod.mount(&both, None, &[]);
    pod.until_serves(&both).await;
    let mut again = pod.connect_to("c").await;
    for _ in 0..3 {
        pod.sidecar.turn().await;
    }
    assert!(again.alive().await && through_a.alive().await);
}

#[tokio::test]
async fn a_server_that_is_said_to_leave_but_is_still_configured_keeps_its_connections() {
    let [a, c] = [Server::start("a", 51).await, Server::start("c", 53).await];
    let mut pod = Pod::serving(&[&a, &c]).await;
    let mut through_c = pod.connect_to("c").await;
    let both = pod.config(&[&a, &c]);
    pod.mount(&both, None, &[&c]);
    let status =
        pod.until("its session is counted", |status| status.leaving.iter().any(|c| c.sessions == Some(1))).await;
    assert!(status.leaving[0].configured && !confirmed(&both, &["c"])(&status));
    assert!(through_c.alive().await);
}

#[tokio::test]
async fn a_bad_candidate_is_refused_with_the_line_and_the_accepted_configuration_serves_on() {
    let a = Server::start("a", 61).await;
    let mut pod = Pod::serving(&[&a]).await;
    let mut through_a = pod.connect_to("a").await;
    let good = pod.config(&[&a]);
    let bad = good.replace("  balance roundrobin", "  balance by-mood");
    let line = 1 + bad.lines().position(|line| line.contains("by-mood")).unwrap();
    pod.mount(&good, Some(&bad), &[]);
    let status = pod.until("the candidate is refused", |status| !status.refused.is_empty()).await;
    assert_eq!(status.refused[0].sha, checksum(&bad));
    let message = &status.refused[0].message;
    assert!(message.contains(&format!("haproxy.cfg:{line}]")) && message.contains("balance"), "{message}");
    assert_eq!(status.serving, Some(checksum(&good)));
    assert_eq!(status.error, None);
    assert!(pod.file().starts_with(&good), "a restart must find the accepted configuration");
    assert!(through_a.alive().await);
    assert!(pod.connect_to("a").await.alive().await, "new connections must be served");

    pod.mount(&good, None, &[]);
    pod.until("the refusal is forgotten with the candidate", |status| status.refused.is_empty()).await;
}

#[tokio::test]
async fn a_good_candidate_is_served_and_its_promotion_changes_nothing() {
    let a = Server::start("a", 71).await;
    let mut pod = Pod::serving(&[&a]).await;
    let (old, new) = (pod.config(&[&a]), pod.config(&[&a]).replace("roundrobin", "leastconn"));
    pod.mount(&old, Some(&new), &[]);
    let tried = pod.until_serves(&new).await;
    pod.mount(&new, None, &[]);
    let promoted = pod.until("the volume is read", |status| status.accepted == Some(checksum(&new))).await;
    assert_eq!(promoted.workers[0], tried.workers[0], "promotion must not reload");
}

#[tokio::test]
async fn a_bad_accepted_configuration_leaves_the_last_good_one_in_place() {
    let a = Server::start("a", 81).await;
    let mut pod = Pod::serving(&[&a]).await;
    let good = pod.config(&[&a]);
    let bad = format!("{good}\nbackend broken\n  server x not-an-address:port\n");
    pod.mount(&bad, None, &[]);
    let status = pod.until("it is refused", |status| !status.refused.is_empty()).await;
    assert_eq!((status.serving, &status.refused[0].sha), (Some(checksum(&good)), &checksum(&bad)));
    assert!(pod.file().starts_with(&good), "a restart must find the last good configuration");

    let better = format!("{good}\n# repaired\n");
    pod.mount(&better, None, &[]);
    pod.until_serves(&better).await;
}

#[tokio::test]
async fn after_a_restart_of_its_node_a_pod_never_sends_to_a_server_that_was_released_meanwhile() {
    let [a, c] = [Server::start("a", 121).await, Server::start("c", 123).await];
    let mut pod = Pod::serving(&[&a, &c]).await;
    pod.until("the configuration is kept as a good one", |status| status.error.is_none()).await;
    pod.kill_haproxy().await;
    let fewer = pod.config(&[&a]);
    pod.mount(&fewer, None, &[]);
    pod.restarted();
    pod.sidecar.init().unwrap();
    assert!(pod.file().starts_with(&fewer), "HAProxy would start with c:\n{}", pod.file());
    pod.start_haproxy();
    pod.until_serves(&fewer).await;
}

#[tokio::test]
async fn after_a_restart_with_an_accepted_configuration_that_does_not_start_the_last_good_one_serves() {
    let a = Server::start("a", 131).await;
    let mut pod = Pod::serving(&[&a]).await;
    let good = pod.config(&[&a]);
    pod.until("it is served", |status| status.error.is_none()).await;
    pod.kill_haproxy().await;
    pod.mount("nonsense\n", None, &[]);
    pod.restarted();
    pod.sidecar.init().unwrap();
    pod.start_haproxy();
    pod.until("nonsense is given up", |status| !status.refused.is_empty()).await;
    pod.sidecar.turn().await;
    assert!(pod.file().starts_with(&good), "{}", pod.file());
    pod.start_haproxy();
    pod.until_serves(&good).await;
}

#[tokio::test]
async fn haproxy_that_was_killed_comes_back_with_the_good_configuration() {
    let [a, b] = [Server::start("a", 91).await, Server::start("b", 92).await];
    let mut pod = Pod::serving(&[&a]).await;
    let good = pod.config(&[&a, &b]);
    pod.mount(&good, Some("nonsense\n"), &[]);
    pod.until("nonsense is refused", |status| status.refused.len() == 1).await;
    pod.kill_haproxy().await;
    let status = pod.until("its end is noticed", |status| status.serving.is_none()).await;
    assert!(status.error.as_deref().is_some_and(|error| error.starts_with("HAProxy does not run")), "{status:?}");
    pod.start_haproxy();
    pod.until_serves(&good).await;
    assert!(pod.connect_to("b").await.alive().await);
}

#[tokio::test]
async fn a_first_configuration_that_does_not_load_is_reported_and_cured_by_a_better_one() {
    let a = Server::start("a", 101).await;
    let mut pod = Pod::new();
    pod.mount("nonsense\n", None, &[]);
    pod.sidecar.init().unwrap();
    pod.start_haproxy();
    let says = |status: &Status| status.error.as_deref().is_some_and(|error| error.contains("nonsense"));
    pod.until("HAProxy's words are reported", says).await;
    let good = pod.config(&[&a]);
    pod.mount(&good, None, &[]);
    pod.sidecar.turn().await;
    pod.start_haproxy();
    pod.until_serves(&good).await;
}

#[tokio::test]
async fn a_volume_whose_checksums_do_not_fit_changes_nothing() {
    let a = Server::start("a", 111).await;
    let mut pod = Pod::serving(&[&a]).await;
    let good = pod.config(&[&a]);
    pod.mount("x\n", None, &[]);
    pod.tear("haproxy.cfg", "y\n");
    let status = pod.until("the mismatch is reported", |status| status.error.is_some()).await;
    assert!(status.error.unwrap().starts_with("haproxy.cfg has checksum"));
    assert_eq!(status.serving, Some(checksum(&good)));
}

#[tokio::test]
async fn what_the_checks_find_is_told_for_each_server() {
    let [a, b] = [Server::start("a", 121).await, Server::start("b", 122).await];
    let pod = Pod::serving(&[&a, &b]).await;
    pod.until_backends(&[("a", Some(true)), ("b", Some(true))]).await;
    drop(b);
    let backends = pod.until_backends(&[("a", Some(true)), ("b", Some(false))]).await;
    assert_eq!(backends[1].backend, "api");
    assert!(backends[1].says.contains("Layer4"), "{backends:?}");
}

#[tokio::test]
async fn nobody_knows_of_servers_that_are_not_checked() {
    let a = Server::start("a", 131).await;
    let mut pod = Pod::serving(&[&a]).await;
    let unchecked = pod.config(&[&a]).replace(" check inter 200ms", "");
    pod.mount(&unchecked, None, &[]);
    pod.until_serves(&unchecked).await;
    pod.until_backends(&[("a", None)]).await;
}
