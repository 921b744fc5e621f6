//! Placement in named situations: the original's suites and sample, its measured failures, and what people read.

use std::collections::{BTreeMap, BTreeSet};

use base::Key;
use plan_sip::placement::{
    Answer, Choice, Explanation, Fleet, Host, Level, Namespaces, Owned, Request, Role, Selector, Standing, Undecided,
    Unfit, place_all, place_most,
};
use rstest::rstest;

const FLAVOR: &str = "vino.airshipit.org/flavor";
const RACK: &str = "vino.airshipit.org/rack";
const SERVER: &str = "vino.airshipit.org/host";

/// A host `metal3/<name>`, free, of this flavor, rack and server.
fn host(name: &str, flavor: &str, rack: &str, server: &str) -> Host {
    let labels = [(FLAVOR, flavor), (RACK, rack), (SERVER, server)];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Host { key: Key::new("metal3", name), labels, standing: Standing::Candidate }
}

fn fleet(hosts: impl IntoIterator<Item = Host>) -> Fleet {
    let mut fleet = Fleet::new();
    for host in hosts {
        fleet.insert(host);
    }
    fleet
}

fn level(key: &str, max_per_domain: u32) -> Level {
    Level { key: key.to_owned(), max_per_domain }
}

fn role(flavor: &str, need: u32, levels: &[Level]) -> Role {
    Role { selector: Selector::labels([(FLAVOR, flavor)]), levels: levels.to_vec(), need, ..Role::default() }
}

fn request<const N: usize>(roles: [(&str, Role); N]) -> Request {
    Request {
        cluster: Key::new("tenant-a", "cluster"),
        namespaces: Namespaces::All,
        exclude: BTreeSet::new(),
        roles: BTreeMap::from(roles.map(|(name, role)| (name.to_owned(), role))),
    }
}

fn chosen(answer: Answer) -> Vec<String> {
    let Answer::Chosen(choices) = answer else { panic!("not chosen: {answer:?}") };
    choices.iter().map(|Choice { role, host }| format!("{role} {}", host.name)).collect()
}

fn short(answer: Answer) -> Vec<Explanation> {
    let Answer::Short(short) = answer else { panic!("not short: {answer:?}") };
    short
}

/// The original's fixture: control planes and workers as (rack, server) each.
fn suite(control_planes: &[(&str, &str)], workers: &[(&str, &str)]) -> Fleet {
    let of = |flavor: &'static str, prefix: &'static str| {
        move |(at, (rack, server)): (usize, &(&str, &str))| host(&format!("{prefix}{at}"), flavor, rack, server)
    };
    let control_planes = control_planes.iter().enumerate().map(of("control-plane", "cp"));
    fleet(control_planes.chain(workers.iter().enumerate().map(of("worker", "w"))))
}

const APART: [(&str, &str); 4] = [("r1", "s1"), ("r1", "s2"), ("r2", "s3"), ("r2", "s4")];

#[test]
fn c1_hosts_for_all_roles_are_chosen() {
    let mut fleet = suite(&APART[..3], &APART);
    let on = [level(SERVER, 1)];
    let asked = request([("ControlPlane", role("control-plane", 3, &on)), ("Worker", role("worker", 4, &on))]);
    let expected = ["cp0", "cp1", "cp2"].map(|name| format!("ControlPlane {name}"));
    let workers = ["w0", "w1", "w2", "w3"].map(|name| format!("Worker {name}"));
    assert_eq!(chosen(place_all(&mut fleet, &asked)), [&expected[..], &workers[..]].concat());
}

#[rstest]
#[case::c2_too_few_control_planes(&APART[..2], &APART, SERVER, (3, 4), &["ControlPlane"])]
#[case::c3_too_few_workers(&APART[..3], &APART[..2], SERVER, (3, 4), &["Worker"])]
#[case::c4_workers_on_one_server(&APART[..1], &[("r6", "s1"), ("r6", "s1")], SERVER, (1, 2), &["Worker"])]
#[case::c5_control_planes_on_one_server(&[("r6", "s1"), ("r6", "s1")], &APART[..1], SERVER, (2, 1), &["ControlPlane"])]
#[case::c6_workers_in_one_rack(&APART[..1], &[("r6", "s1"), ("r6", "s2")], RACK, (1, 2), &["Worker"])]
#[case::c7_control_planes_in_one_rack(&[("r6", "s1"), ("r6", "s2")], &APART[..1], RACK, (2, 1), &["ControlPlane"])]
#[case::both(&APART[..1], &APART[..1], SERVER, (2, 2), &["ControlPlane", "Worker"])]
fn a_new_cluster_gets_nothing_unless_it_gets_all(
    #[case] control_planes: &[(&str, &str)],
    #[case] workers: &[(&str, &str)],
    #[case] topology_key: &str,
    #[case] wanted: (u32, u32),
    #[case] short_roles: &[&str],
) {
    let on = [level(topology_key, 1)];
    let (control_plane, worker) = (role("control-plane", wanted.0, &on), role("worker", wanted.1, &on));
    let asked = request([("ControlPlane", control_plane), ("Worker", worker)]);
    let answer = short(place_all(&mut suite(control_planes, workers), &asked));
    assert_eq!(answer.iter().map(|explanation| explanation.role.as_str()).collect::<Vec<_>>(), short_roles);
}

#[test]
fn the_sample_takes_control_planes_from_two_racks_and_two_of_three_workers() {
    let hosts = [
        ("rdm9r006o001", "control-plane", "r006"),
        ("rdm9r006o002", "control-plane", "r006"),
        ("rdm9r007o001", "control-plane", "r007"),
        ("rdm9r007o002", "worker", "r007"),
        ("rdm9r008o002", "worker", "r008"),
        ("rdm9r009o002", "worker", "r009"),
    ];
    let mut fleet = fleet(hosts.map(|(name, flavor, rack)| host(name, flavor, rack, name)));
    let asked = request([
        ("ControlPlane", role("control-plane", 2, &[level(RACK, 1)])),
        ("Worker", role("worker", 2, &[level(SERVER, 1)])),
    ]);
    let expected =
        ["ControlPlane rdm9r006o001", "ControlPlane rdm9r007o001", "Worker rdm9r007o002", "Worker rdm9r008o002"];
    assert_eq!(chosen(place_all(&mut fleet, &asked)), expected);
}

/// The original, in racks of 25, stopped at nine of ten clusters though hosts for all ten are there.
#[rstest]
#[case::racks_of_25(4, 25, 10)]
#[case::three_racks(3, 10, 3)]
#[case::many_racks(40, 25, 100)]
fn all_hosts_of_a_site_can_be_used(#[case] racks: usize, #[case] per_rack: usize, #[case] clusters: usize) {
    let flavor = |number: usize| if number % 10 < 3 { "control-plane" } else { "worker" };
    let of = |number: usize| {
        let name = format!("n{number:03}");
        host(&name, flavor(number), &format!("r{}", number / per_rack), &name)
    };
    let mut fleet = fleet((0..racks * per_rack).map(of));
    let asked = request([
        ("ControlPlane", role("control-plane", 3, &[level(RACK, 1)])),
        ("Worker", role("worker", 7, &[level(SERVER, 1)])),
    ]);
    for number in 0..clusters {
        let by = Key::new(format!("tenant-{number}"), "cluster");
        let Answer::Chosen(choices) = place_all(&mut fleet, &Request { cluster: by.clone(), ..asked.clone() }) else {
            panic!("cluster {number} found no place");
        };
        for Choice { role, host } in choices {
            assert_eq!(fleet.standing(&host), Some(&Standing::Candidate));
            fleet.set_standing(&host, Standing::Taken { by: by.clone(), role });
        }
    }
}

/// First fit gives the only host both roles may take to the first of them, and then finds none for the other.
#[test]
fn roles_that_overlap_are_placed_together() {
    let mut shared = host("a-shared", "control-plane", "r1", "s1");
    shared.labels.insert("gpu".to_owned(), "yes".to_owned());
    let mut fleet = fleet([shared, host("b-plain", "control-plane", "r1", "s2")]);
    let mut gpu = role("control-plane", 1, &[]);
    gpu.selector = Selector::labels([("gpu", "yes")]);
    let asked = request([("ControlPlane", role("control-plane", 1, &[])), ("Worker", gpu)]);
    assert_eq!(chosen(place_all(&mut fleet, &asked)), ["ControlPlane b-plain", "Worker a-shared"]);
}

#[test]
fn owned_hosts_stay_and_occupy_room() {
    let hosts = [host("n1", "control-plane", "r1", "s1"), host("n2", "control-plane", "r1", "s2")];
    let mut fleet = fleet(hosts.into_iter().chain([host("n3", "control-plane", "r2", "s3")]));
    let mut control_plane = role("control-plane", 1, &[level(RACK, 1)]);
    let labels = fleet.get(&Key::new("metal3", "n1")).expect("just added").labels;
    control_plane.owned.push(Owned { key: Key::new("metal3", "n1"), labels });
    let asked = request([("ControlPlane", control_plane.clone())]);
    assert_eq!(chosen(place_all(&mut fleet, &asked)), ["ControlPlane n3"]);

    control_plane.need = 0;
    fleet.set_standing(&Key::new("metal3", "n3"), Standing::Dropped(Unfit::Deleting));
    let satisfied = request([("ControlPlane", control_plane)]);
    assert_eq!(chosen(place_all(&mut fleet, &satisfied)), Vec::<String>::new(), "nothing is needed, nothing is free");
}

#[test]
fn owned_hosts_beyond_a_new_rule_are_reported_and_leave_no_room() {
    let mut hosts = [host("n1", "worker", "r1", "s1"), host("n2", "worker", "r1", "s2")]
        .map(|host| Owned { key: host.key, labels: host.labels });
    hosts.reverse();
    let worker = Role { owned: hosts.to_vec(), ..role("worker", 1, &[level(SERVER, 1), level(RACK, 1)]) };
    let violations = worker.violations();
    assert_eq!(violations.len(), 1);
    assert_eq!((violations[0].key.as_str(), violations[0].domain.as_str()), (RACK, "r1"));
    assert_eq!(violations[0].hosts, [Key::new("metal3", "n1"), Key::new("metal3", "n2")]);
    let mut fleet = fleet([host("n3", "worker", "r1", "s3")]);
    assert_eq!(short(place_all(&mut fleet, &request([("Worker", worker)])))[0].placeable, 0);
}

#[test]
fn hosts_of_one_name_in_two_namespaces_are_two_hosts() {
    let mut twin = host("n1", "worker", "r2", "s2");
    twin.key.namespace = "vino-system".to_owned();
    let mut fleet = fleet([host("n1", "worker", "r1", "s1"), twin]);
    let asked = request([("Worker", role("worker", 2, &[]))]);
    assert_eq!(chosen(place_all(&mut fleet, &asked)), ["Worker n1", "Worker n1"]);
    let mut own = asked.clone();
    own.namespaces = Namespaces::Of(BTreeSet::from(["metal3".to_owned()]));
    let explained = short(place_all(&mut fleet, &own));
    assert_eq!((explained[0].free, explained[0].not_allowed), (1, 1));
    assert!(!explained[0].to_string().contains("vino-system"), "hosts of other namespaces are not named");
}

#[test]
fn a_cluster_that_was_whole_takes_what_it_can_get_control_plane_first() {
    let mut fleet = fleet(["n1", "n2", "n3"].map(|name| host(name, "any", "r1", name)));
    let asked = request([
        ("ControlPlane", role("any", 2, &[])),
        ("Edge", role("any", 2, &[])),
        ("Worker", role("any", 1, &[])),
    ]);
    let partial = place_most(&mut fleet, &asked);
    let chosen: Vec<(&str, &str)> = partial.chosen.iter().map(|c| (c.role.as_str(), c.host.name.as_str())).collect();
    assert_eq!(chosen, [("ControlPlane", "n1"), ("ControlPlane", "n2"), ("Edge", "n3")]);
    let short: Vec<(&str, u32)> = partial.short.iter().map(|e| (e.role.as_str(), e.placeable)).collect();
    assert_eq!(short, [("Edge", 1), ("Worker", 0)]);
}

/// Levels that cross, for one role: servers over racks and power feeds. First fit (n1) leaves no second host.
#[test]
fn two_levels_that_cross_are_decided_exactly() {
    let of = |name: &str, rack: &str, feed: &str| {
        let mut host = host(name, "worker", rack, name);
        host.labels.insert("feed".to_owned(), feed.to_owned());
        host
    };
    let mut fleet = fleet([of("n1", "r1", "f1"), of("n2", "r1", "f2"), of("n3", "r2", "f1")]);
    let asked = request([("Worker", role("worker", 2, &[level(RACK, 1), level("feed", 1)]))]);
    assert_eq!(chosen(place_all(&mut fleet, &asked)), ["Worker n2", "Worker n3"]);
}

/// Hosts at (x, y, z) where x + y + z is even, and three levels, one host per x, per y and per z: n hosts would need
/// 3 n (n - 1) / 2 to be even. No two of the levels see that, so only a search can.
fn parity(n: usize) -> (Fleet, Request) {
    let mut hosts = Vec::new();
    for (x, y, z) in (0..n * n * n).map(|at| (at / n / n, at / n % n, at % n)).filter(|(x, y, z)| (x + y + z) % 2 == 0)
    {
        let mut host = host(&format!("n{x:02}{y:02}{z:02}"), "worker", "r", "s");
        for (key, value) in [("x", x), ("y", y), ("z", z)] {
            host.labels.insert(key.to_owned(), value.to_string());
        }
        hosts.push(host);
    }
    let need = u32::try_from(n).expect("small");
    let levels = [level("x", 1), level("y", 1), level("z", 1)];
    (fleet(hosts), request([("Worker", role("worker", need, &levels))]))
}

#[test]
fn a_search_that_ends_is_a_proof() {
    let (mut fleet, asked) = parity(3);
    let explained = short(place_all(&mut fleet, &asked));
    assert_eq!((explained[0].need, explained[0].placeable), (3, 2));
}

#[test]
fn a_search_that_does_not_end_is_undecided_never_unschedulable() {
    let (mut fleet, asked) = parity(7);
    let Answer::Undecided(undecided) = place_all(&mut fleet, &asked) else { panic!("a search found the end") };
    let [Undecided { role, need: 7, found, steps }] = undecided.as_slice() else { panic!("{undecided:?}") };
    assert_eq!((role.as_str(), *found), ("Worker", 6));
    assert!(*steps > 0);
    assert_eq!(place_most(&mut fleet, &asked).chosen.len(), 6, "what was found can be taken");
}

// What people read.

fn claimed(mut host: Host, by: (&str, &str)) -> Host {
    host.standing = Standing::Taken { by: Key::new(by.0, by.1), role: "ControlPlane".to_owned() };
    host
}

fn explained(hosts: impl IntoIterator<Item = Host>, asked: &Request) -> String {
    short(place_all(&mut fleet(hosts), asked)).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_reason_names_what_was_dropped_which_racks_are_used_up_and_what_would_do() {
    let cp = |name: &str, rack: &str| host(name, "control-plane", rack, name);
    let mut broken = cp("n7", "r5");
    broken.standing = Standing::Dropped(Unfit::Error("power supply".to_owned()));
    let owned = claimed(cp("n1", "r1"), ("tenant-a", "cluster"));
    let mut control_plane = role("control-plane", 3, &[level(RACK, 1)]);
    control_plane.owned.push(Owned { key: owned.key.clone(), labels: owned.labels.clone() });
    let others = ["n8", "n9"].map(|name| claimed(cp(name, "r4"), ("tenant-b", "edge")));
    let free = [cp("n2", "r1"), cp("n3", "r2"), cp("n4", "r3"), cp("n5", "r3")];
    let hosts = free.into_iter().chain(others).chain([owned, broken]);
    assert_eq!(
        explained(hosts, &request([("ControlPlane", control_plane)])),
        "role ControlPlane: 3 more hosts needed (1 of 4 owned), 2 can be placed: \
         8 hosts match vino.airshipit.org/flavor=control-plane: 1 is this cluster's already, 2 claimed by tenant-b/edge, \
         1 in error (metal3/n7: power supply), 4 free in 3 domains of vino.airshipit.org/rack; \
         at most 1 per vino.airshipit.org/rack: r1 already used by metal3/n1, r2 and r3 have free hosts. \
         1 more free host in another vino.airshipit.org/rack, or in vino.airshipit.org/rack r4 or r5, would do."
    );
}

#[test]
fn the_reason_says_so_when_nothing_matches_or_a_label_is_missing() {
    let asked = |need| request([("Worker", role("worker", need, &[level(RACK, 1)]))]);
    assert_eq!(
        explained([host("n1", "control-plane", "r1", "s1")], &asked(1)),
        "role Worker: 1 more host needed, none can be placed: no host matches vino.airshipit.org/flavor=worker. \
         1 more free host in another vino.airshipit.org/rack would do."
    );
    let mut bare = host("n2", "worker", "r1", "s2");
    bare.labels.remove(RACK);
    assert_eq!(
        explained([host("n1", "worker", "r1", "s1"), bare], &asked(3)),
        "role Worker: 3 more hosts needed, 1 can be placed: 2 hosts match vino.airshipit.org/flavor=worker: 2 free; \
         1 of the free lacks label vino.airshipit.org/rack (metal3/n2). \
         2 more free hosts in other domains, at most 1 per vino.airshipit.org/rack, would do."
    );
}

#[test]
fn the_reason_names_the_roles_that_compete() {
    let asked = request([("ControlPlane", role("any", 3, &[])), ("Worker", role("any", 2, &[]))]);
    assert_eq!(
        explained(["n1", "n2", "n3", "n4"].map(|name| host(name, "any", "r1", name)), &asked),
        "role Worker: 2 more hosts needed, 1 can be placed: 4 hosts match vino.airshipit.org/flavor=any: 4 free; \
         roles ControlPlane and Worker compete for the same hosts: together they need 5 more, 4 can be placed. \
         1 more free host that matches would do."
    );
}

#[test]
fn a_level_of_zero_has_no_remedy() {
    let asked = request([("Worker", role("worker", 1, &[level(RACK, 0)]))]);
    let explained = short(place_all(&mut fleet([host("n1", "worker", "r1", "s1")]), &asked));
    assert_eq!(explained[0].remedy, None);
    assert_eq!(
        explained[0].to_string(),
        "role Worker: 1 more host needed, none can be placed: 1 host matches vino.airshipit.org/flavor=worker: \
         1 free in 1 domain of vino.airshipit.org/rack; at most 0 per vino.airshipit.org/rack: r1 has no room."
    );
}

#[test]
fn the_reason_stays_below_1_kib_whatever_the_names() {
    let long = |text: &str| text.repeat(63 / text.len());
    let mut hosts = Vec::new();
    for (at, letter) in ["a", "b", "c", "d", "e", "f"].into_iter().enumerate() {
        let mut host = host(&format!("{}{}", long(letter), long("x")), "worker", &long(letter), &long("s"));
        host.key.namespace = long("n");
        let detail = "\u{fc}ber ".repeat(200);
        host.standing = [
            Standing::Dropped(Unfit::Error(detail.clone())),
            Standing::Dropped(Unfit::NoNetworkData(detail.clone())),
            Standing::Dropped(Unfit::NoCredentials(detail)),
            Standing::Taken { by: Key::new(long("t"), long("u")), role: "Worker".to_owned() },
            Standing::Candidate,
            Standing::Candidate,
        ][at]
            .clone();
        hosts.push(host);
    }
    let keys: Vec<Level> = ["k", "l", "m", "o"].map(|key| level(&format!("{}/{}", long("y"), long(key)), 1)).to_vec();
    let text = explained(hosts, &request([("Worker", role("worker", 4_000_000_000, &keys))]));
    assert!(text.len() < 1024, "{} bytes: {text}", text.len());
    assert!(text.contains(" more free hosts ") && text.ends_with('.'), "what would do is kept: {text}");
}
