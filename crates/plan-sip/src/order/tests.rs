//! Which cluster is served first, and what a sweep over all of them gives.

use api::sipcluster::HostState::{Chosen, Claimed};

use super::*;
use crate::claims::tests::build::{WORKER, cluster, host, hosts, record, world};

fn order(site: &Site) -> Vec<String> {
    let mut ranks: Vec<Rank> = site.clusters().map(|want| Rank::of(want, site)).collect();
    ranks.sort();
    ranks.iter().map(|rank| rank.key().name.clone()).collect()
}

#[test]
fn unfinished_choices_come_first_then_lost_hosts_then_age_then_name() {
    let clusters = [
        cluster("b-same-age").created(1),
        cluster("a-same-age").created(1),
        cluster("oldest").created(0),
        cluster("lost-a-host").created(8).established().holds("gone", WORKER, Claimed),
        cluster("unfinished").created(9).holds("n0", WORKER, Chosen),
    ];
    let site = world([host("n0")], clusters).site;
    assert_eq!(order(&site), ["unfinished", "lost-a-host", "oldest", "a-same-age", "b-same-age"]);
}

#[test]
fn a_host_made_anew_is_a_lost_one() {
    let clusters = [cluster("old").created(0), cluster("lost").created(1).established().holds("n0", WORKER, Claimed)];
    let site = world([host("n0").of_uid("another")], clusters).site;
    assert_eq!(order(&site), ["lost", "old"]);
}

#[test]
fn a_sweep_serves_the_older_cluster_first_and_never_gives_one_host_twice() {
    let clusters = [cluster("young").created(2).asks(WORKER, 2), cluster("old").created(1).asks(WORKER, 2)];
    let mut site = world(hosts(3), clusters).site;
    let plans = sweep(&mut site);
    assert_eq!(record(&plans[0].1), ["n0 Worker Chosen", "n1 Worker Chosen"]);
    assert_eq!((plans[1].0.name.as_str(), record(&plans[1].1)), ("young", vec![]));
}

#[test]
fn a_blocked_cluster_reserves_nothing() {
    let clusters = [cluster("old").created(1).asks(WORKER, 9), cluster("young").created(2).asks(WORKER, 2)];
    let mut site = world(hosts(3), clusters).site;
    let plans = sweep(&mut site);
    assert!(plans[0].1.blocked.is_some());
    assert_eq!(record(&plans[1].1), ["n0 Worker Chosen", "n1 Worker Chosen"]);
}
