//! How hosts stand, whom a change concerns, and that a site kept up to date is as good as a new one.

use api::sipcluster::HostState::{Chosen, Claimed};
use proptest::{collection::vec, prelude::*};
use rstest::rstest;

use super::*;
use crate::claims::tests::build::{WORKER, cluster, host, metal, tenant, world};

fn facts(networks: &[&str]) -> SecretFacts {
    let found: Addresses = networks.iter().map(|n| ((*n).to_owned(), "192.0.2.1".to_owned())).collect();
    SecretFacts { network_data: Some(Ok(found)), credentials: true }
}

/// A site that knows Secrets, with Secret `a` and host `n0` that names it.
fn with_secret() -> Site {
    let mut site = Site::new(Settings { host_namespaces: None, ..Settings::default() });
    site.put_secret(&metal("a"), Some(facts(&["oam"])));
    site.put_host(host("n0").reads("a"));
    site
}

fn keys(keys: &BTreeSet<Key>) -> Vec<&str> {
    keys.iter().map(|key| key.name.as_str()).collect()
}

#[rstest]
#[case::free(host("n0"), "free")]
#[case::consumed(host("n0").used(), "consumed by others (Metal3Machine tenant/m)")]
#[case::provisioned(host("n0").provisioned(), "provisioned")]
#[case::in_error(host("n0").in_error(), "in error (no power)")]
#[case::labelled(host("n0").claimed("edge", WORKER), "claimed by tenant/edge as Worker")]
#[case::labelled_for_nobody(host("n0").claimed("nobody", WORKER), "labelled for an unknown cluster (tenant/nobody)")]
#[case::torn(host("n0").torn(), "labelled for an unknown cluster (some of the claim labels are missing)")]
#[case::released(host("n0").released_from("edge", WORKER, Some(1), false), "in quarantine (until 1970-01-01T00:01:01Z)")]
#[case::released_and_used(host("n0").used().released_from("edge", WORKER, Some(1), false), "in quarantine (until 1970-01-01T00:01:01Z)")]
#[case::force_released_and_used(host("n0").used().released_from("edge", WORKER, None, true), "force-released")]
#[case::force_released_and_clean(host("n0").released_from("edge", WORKER, Some(1), true), "in quarantine (until 1970-01-01T00:01:01Z)")]
fn how_a_host_stands(#[case] host: Host, #[case] standing: &str) {
    let site = world([host], [cluster("edge")]).site;
    assert_eq!(site.standing(&metal("n0")).map(ToString::to_string).as_deref(), Some(standing));
}

#[rstest]
#[case::no_secret_named(host("n0"), "without usable network data (spec.networkData names no Secret)")]
#[case::secret_missing(host("n0").reads("b"), "without usable network data (Secret metal/b does not exist)")]
#[case::no_network_data(host("n0").reads("empty"), "without usable network data (Secret metal/empty has no key networkData)")]
#[case::rubbish(host("n0").reads("bad"), "without usable network data (Secret metal/bad: key networkData is rubbish)")]
#[case::kept_addresses_do_for_network_data(
    host("n0").keeps("oam", "192.0.2.9"),
    "without usable BMC credentials (spec.bmc.credentialsName names no Secret)"
)]
#[case::all_there(host("n0").reads("a"), "free")]
fn a_host_needs_network_data_and_credentials(#[case] host: Host, #[case] standing: &str) {
    let mut site = with_secret();
    site.put_secret(&metal("empty"), Some(SecretFacts::default()));
    let bad = SecretFacts { network_data: Some(Err("is rubbish".into())), credentials: true };
    site.put_secret(&metal("bad"), Some(bad));
    site.put_host(host);
    assert_eq!(site.standing(&metal("n0")).map(ToString::to_string).as_deref(), Some(standing));
}

#[test]
fn a_recorded_host_is_taken_before_it_has_a_label_and_only_under_its_uid() {
    let mut site = world([host("n0")], [cluster("edge").holds("n0", WORKER, Chosen)]).site;
    assert!(matches!(site.standing(&metal("n0")), Some(Standing::Taken { by, .. }) if *by == tenant("edge")));
    site.put_host(host("n0").of_uid("another"));
    assert_eq!(site.standing(&metal("n0")), Some(&Standing::Candidate));
}

#[test]
fn a_cluster_takes_hosts_of_its_own_namespace_and_of_those_listed() {
    let listed = Site::new(Settings { host_namespaces: Some(["vino".to_owned()].into()), ..Settings::default() });
    let namespaces = listed.namespaces(&tenant("edge"));
    assert!(namespaces.allow("tenant") && namespaces.allow("vino") && !namespaces.allow("other"));
}

/// Each change frees host n0 for whoever waits.
#[rstest]
#[case::its_quarantine_ends(host("n0").released_from("edge", WORKER, Some(1), false), |s: &mut Site| s.put_host(host("n0")))]
#[case::its_user_leaves(host("n0").used(), |s: &mut Site| s.put_host(host("n0")))]
#[case::it_gets_a_label(host("n0"), |s: &mut Site| s.put_host(host("n0").rack("r1")))]
#[case::it_is_new(host("n1"), |s: &mut Site| s.put_host(host("n0")))]
#[case::its_cluster_gives_it_up(host("n0"), |s: &mut Site| {
    s.put_cluster(cluster("edge").holds("n0", WORKER, Chosen));
    s.put_cluster(cluster("edge"))
})]
#[case::its_cluster_is_gone(host("n0"), |s: &mut Site| {
    s.put_cluster(cluster("edge").holds("n0", WORKER, Chosen));
    s.remove_cluster(&tenant("edge"))
})]
#[case::it_is_made_anew(host("n0"), |s: &mut Site| {
    s.put_cluster(cluster("edge").holds("n0", WORKER, Chosen));
    s.put_host(host("n0").of_uid("another"))
})]
fn what_frees_a_host_is_told(#[case] before: Host, #[case] change: fn(&mut Site) -> Moved) {
    let mut site = world([before], []).site;
    assert_eq!(keys(&change(&mut site).freed), ["n0"]);
}

#[test]
fn what_changes_nothing_frees_nothing() {
    let mut site = world([host("n0")], []).site;
    assert_eq!(site.put_host(host("n0")), Moved::default());
    assert_eq!(keys(&site.put_host(host("n0").used()).freed), [""; 0]);
}

#[test]
fn a_secret_that_comes_or_gets_a_network_frees_the_hosts_that_name_it() {
    let mut site = with_secret();
    assert_eq!(keys(&site.put_secret(&metal("a"), None).freed), [""; 0]);
    assert_eq!(keys(&site.put_secret(&metal("a"), Some(facts(&["oam"]))).freed), ["n0"]);
    assert_eq!(site.without_address(&["pxe".to_owned()].into()), [(metal("n0"), "pxe".to_owned())].into());
    let moved = site.put_secret(&metal("a"), Some(facts(&["oam", "pxe"])));
    assert_eq!(keys(&moved.freed), ["n0"], "it was a candidate before, and yet of no use to a role that needs pxe");
    assert!(site.without_address(&["pxe".to_owned()].into()).is_empty());
    assert_eq!(site.put_secret(&metal("a"), Some(facts(&["oam", "pxe"]))), Moved::default());
}

#[test]
fn all_that_hold_or_held_a_host_are_concerned_by_what_happens_to_it() {
    let clusters = [cluster("edge").holds("n0", WORKER, Chosen), cluster("more"), cluster("other")];
    let mut site = world([host("n0").claimed("more", WORKER)], clusters).site;
    assert_eq!(keys(&site.put_host(host("n0").claimed("other", WORKER)).clusters), ["edge", "more", "other"]);
    assert_eq!(keys(&site.put_cluster(cluster("more").holds("n0", WORKER, Claimed)).clusters), ["edge", "more"]);
    assert_eq!(keys(&site.remove_cluster(&tenant("more")).clusters), ["edge"]);
    assert_eq!(keys(&site.remove_host(&metal("n0")).clusters), ["edge", "other"]);
}

#[test]
fn networks_asked_for_do_not_pile_up() {
    let mut site = with_secret();
    for n in 0..3 * NETWORKS_KEPT {
        site.without_address(&[format!("net-{n}")].into());
    }
    assert!(site.lacking.len() <= NETWORKS_KEPT);
}

/// One change of a small site.
#[derive(Clone, Debug)]
enum Change {
    Host(Box<Host>),
    NoHost(usize),
    Cluster(Box<Want>),
    NoCluster(usize),
    Secret(usize, usize),
}

const NAMES: [&str; 3] = ["n0", "n1", "n2"];
const CLUSTERS: [&str; 2] = ["c0", "c1"];

fn change() -> impl Strategy<Value = Change> {
    let host = (0..3_usize, 0..2_usize, 0..6_usize, 0..3_usize).prop_map(|(name, uid, how, secret)| {
        let host = host(NAMES[name]).of_uid(&format!("uid-{}", if uid == 0 { NAMES[name] } else { "x" }));
        let host = host.reads(["s0", "s1", "s2"][secret]);
        Change::Host(Box::new(match how {
            0 => host.claimed("c0", WORKER),
            1 => host.claimed("c1", WORKER),
            2 => host.torn(),
            3 => host.used(),
            _ => host,
        }))
    });
    let cluster = (0..2_usize, vec(0..3_usize, 0..3)).prop_map(|(name, held)| {
        let held: BTreeSet<usize> = held.into_iter().collect();
        let want = held.into_iter().fold(cluster(CLUSTERS[name]), |c, h| c.holds(NAMES[h], WORKER, Chosen));
        Change::Cluster(Box::new(want))
    });
    prop_oneof![
        4 => host,
        1 => (0..3_usize).prop_map(Change::NoHost),
        3 => cluster,
        1 => (0..2_usize).prop_map(Change::NoCluster),
        2 => (0..3_usize, 0..4_usize).prop_map(|(name, how)| Change::Secret(name, how)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_site_kept_up_to_date_is_the_site_made_of_what_there_is(changes in vec(change(), 1..40)) {
        let settings = || Settings { host_namespaces: None, ..Settings::default() };
        let needed: BTreeSet<String> = ["pxe".to_owned()].into();
        let mut site = Site::new(settings());
        for change in changes {
            match change {
                Change::Host(host) => { site.put_host(*host); }
                Change::NoHost(n) => { site.remove_host(&metal(NAMES[n])); }
                Change::Cluster(want) => { site.put_cluster(*want); }
                Change::NoCluster(n) => { site.remove_cluster(&tenant(CLUSTERS[n])); }
                Change::Secret(n, how) => {
                    let facts = [None, Some(SecretFacts::default()), Some(facts(&["oam"])), Some(facts(&["oam", "pxe"]))];
                    site.put_secret(&metal(["s0", "s1", "s2"][n]), facts[how].clone());
                }
            }
            let lacking = site.without_address(&needed);
            let mut anew = Site::new(settings());
            site.secrets.iter().for_each(|(key, facts)| { anew.put_secret(key, Some(facts.clone())); });
            site.hosts.values().for_each(|host| { anew.put_host((**host).clone()); });
            site.clusters.values().for_each(|want| { anew.put_cluster((**want).clone()); });
            for key in site.hosts.keys() {
                prop_assert_eq!(site.standing(key), anew.standing(key), "{}", key);
            }
            prop_assert_eq!(lacking, anew.without_address(&needed));
            prop_assert_eq!(&site.users, &anew.users);
            prop_assert_eq!(&site.holders, &anew.holders);
            prop_assert_eq!(&site.labelled, &anew.labelled);
            prop_assert_eq!(site.fleet.len(), anew.fleet.len());
        }
    }
}

#[test]
fn secrets_that_may_not_be_read_are_told_apart_from_those_that_are_not_there_with_what_helps() {
    let mut site = Site::new(Settings { host_namespaces: None, ..Settings::default() });
    let want = cluster("edge").asks(WORKER, 1);
    site.put_cluster(want.clone());
    site.put_host(host("n0").reads("a"));
    site.put_host(host("n1").reads("b"));
    let says = |site: &Site| site.standing(&metal("n0")).map(ToString::to_string).unwrap_or_default();
    assert_eq!(says(&site), "without usable network data (Secret metal/a does not exist)");
    let moved = site.put_namespace("metal", Some("kubectl create rolebinding x"));
    assert!(moved.freed.is_empty());
    assert_eq!(says(&site), "without usable network data (Secrets of namespace metal may not be read)");
    let plan = crate::claims::plan(&want, &mut site, &crate::claims::Seen::default());
    let message = plan.blocked.expect("no host").message;
    assert!(
        message.ends_with("Secrets of namespace metal may not be read; to let them: kubectl create rolebinding x."),
        "{message}"
    );
    site.put_namespace("metal", None);
    site.put_secret(&metal("a"), Some(facts(&["oam"])));
    assert_eq!(says(&site), "free");
}
