//! Networks in which a role needs an address.

use super::build::*;
use crate::{
    network::Addresses,
    site::{SecretFacts, Settings},
};

#[test]
fn hosts_that_lack_an_address_in_a_needed_network_are_no_candidates() {
    let mut world = world([], []);
    world.site.settings = Settings { host_namespaces: None, ..Settings::default() };
    let facts = |networks: &[&str]| {
        let found: Addresses = networks.iter().map(|n| ((*n).to_owned(), "192.0.2.1".to_owned())).collect();
        Some(SecretFacts { network_data: Some(Ok(found)), credentials: true })
    };
    world.site.put_secret(&metal("a"), facts(&["oam"]));
    world.site.put_secret(&metal("b"), facts(&["pxe"]));
    for (name, secret) in [("n0", "b"), ("n1", "a"), ("n2", "b")] {
        world.site.put_host(host(name).reads(secret));
    }
    world.site.put_cluster(cluster("edge").asks(WORKER, 1).in_network(WORKER, "oam"));
    world.site.put_cluster(cluster("more").asks(WORKER, 2).in_network(WORKER, "oam"));
    assert_eq!(record(&world.plan("edge")), ["n1 Worker Chosen"]);
    let said = blocked(&world.plan("more"));
    assert!(said.contains("2 without an address in a needed network (metal/n0: oam, metal/n2: oam)"), "{said}");
}

#[test]
fn a_network_that_only_one_role_needs_keeps_no_host_from_the_others() {
    let mut world = world([], []);
    world.site.settings = Settings { host_namespaces: None, ..Settings::default() };
    let found: Addresses = [("pxe".to_owned(), "192.0.2.1".to_owned())].into();
    world.site.put_secret(&metal("b"), Some(SecretFacts { network_data: Some(Ok(found)), credentials: true }));
    world.site.put_host(host("n0").reads("b"));
    let want = cluster("edge").asks(PLANE, 1).asks(WORKER, 1).in_network(WORKER, "oam").established();
    world.site.put_cluster(want);
    assert_eq!(record(&world.plan("edge")), ["n0 ControlPlane Chosen"]);
}
