//! Networks in which a role needs an address.

use super::build::*;
use crate::{
    claims::{self, Seen},
    network::Addresses,
    site::{SecretFacts, Settings},
    want::Want,
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

#[test]
fn a_labelled_host_that_tells_no_address_has_the_one_its_services_know() {
    let hosts = [host("n0").claimed("edge", WORKER).used(), host("n1").claimed("edge", WORKER).used()];
    let world = world(hosts, [cluster("edge").asks(WORKER, 2)]);
    let mut site = world.site;
    site.settings.secrets_known = true;
    let inherited = Addresses::from([("oam".to_owned(), "192.0.2.7".to_owned())]);
    let seen = Seen { inherited: [("n1".to_owned(), inherited.clone())].into(), ..Seen::default() };
    let want = site.cluster(&tenant("edge")).expect("a known cluster").clone();
    let plan = claims::plan(&want, &mut site, &seen);
    assert_eq!(
        plan.record.iter().map(|entry| entry.addresses.clone()).collect::<Vec<_>>(),
        [Addresses::new(), inherited]
    );
    assert!(plan.record_moves, "it is on record before anything is rendered from it");
    let before = Want { record: plan.record.clone(), ..(*want).clone() };
    let plan = claims::plan(&before, &mut site, &Seen::default());
    assert_eq!(plan.record, before.record, "and stays, whatever becomes of the services");
}
