//! Laws and cases of [`super::plan`].

use proptest::prelude::*;

use super::*;

#[allow(clippy::unnecessary_wraps, reason = "the fields it fills are options")]
fn sha(name: &str) -> Option<Sha> {
    Some(name.to_owned())
}

fn server(name: &str, address: &str, sessions: u64) -> Server {
    Server { backend: "b".to_owned(), name: name.to_owned(), place: Place::parse(address), sessions }
}

fn worker(pid: u32, serving: &str, servers: Vec<Server>) -> Worker {
    Worker { pid, serving: sha(serving), servers: Some(servers) }
}

#[allow(clippy::unnecessary_wraps, reason = "the fields it fills are options")]
fn running(serving: &str) -> Option<Running> {
    Some(Running { current: worker(1, serving, Vec::new()), ..Running::default() })
}

fn want(accepted: &str, candidate: Option<&str>) -> Want {
    Want { accepted: accepted.to_owned(), candidate: candidate.and_then(sha), leaving: Vec::new() }
}

fn settled(on: &str) -> Seen {
    Seen { on_disk: sha(on), good: sha(on), running: running(on), ..Seen::default() }
}

#[test]
fn at_rest_nothing_is_done() {
    assert_eq!(plan(&want("a", None), &settled("a")), Plan::default());
}

#[test]
fn a_new_configuration_is_written_and_loaded() {
    let new = Plan { write: sha("b"), reload: sha("b"), ..Plan::default() };
    assert_eq!(plan(&want("b", None), &settled("a")), new);
    assert_eq!(plan(&want("a", Some("b")), &settled("a")), new, "a candidate goes first");
}

#[test]
fn a_configuration_that_is_served_is_kept_as_the_good_one() {
    let seen = Seen { good: sha("a"), ..settled("b") };
    assert_eq!(plan(&want("b", None), &seen), Plan { keep_good: true, ..Plan::default() });
}

#[test]
fn a_refused_candidate_gives_way_to_the_accepted_one_and_that_to_the_last_good_one() {
    let stale = |serving| running(serving).map(|running| Running { stale: true, ..running });
    let seen = Seen { on_disk: sha("c"), refused: ["c".to_owned()].into(), running: stale("a"), ..settled("a") };
    let back = Plan { write: sha("a"), reload: sha("a"), ..Plan::default() };
    assert_eq!(plan(&want("a", Some("c")), &seen), back);
    let seen = Seen { on_disk: sha("b"), refused: ["b".to_owned()].into(), running: stale("a"), ..settled("a") };
    assert_eq!(plan(&want("b", None), &seen), back);
}

#[test]
fn haproxy_that_is_away_only_gets_a_file() {
    let seen = Seen { running: None, ..settled("a") };
    assert_eq!(plan(&want("b", None), &seen), Plan { write: sha("b"), ..Plan::default() });
}

#[test]
fn haproxy_that_does_not_start_with_a_new_configuration_gets_the_good_one_back() {
    let seen = Seen { running: None, on_disk: sha("b"), will_not_start: true, ..settled("a") };
    assert_eq!(plan(&want("b", None), &seen).give_up, sha("b"));
    let seen = Seen { refused: ["b".to_owned()].into(), ..seen };
    assert_eq!(plan(&want("b", None), &seen), Plan { write: sha("a"), ..Plan::default() });
    let seen = Seen { running: None, will_not_start: true, ..settled("a") };
    assert_eq!(plan(&want("a", None), &seen), Plan::default(), "the good one itself is not at fault");
}

#[test]
fn only_servers_of_old_workers_that_are_configured_nowhere_are_cut() {
    let current = worker(3, "c", vec![server("stays", "10.0.0.1", 4), server("renamed", "10.0.0.2", 0)]);
    let old = vec![
        worker(
            2,
            "b",
            vec![server("stays", "10.0.0.1", 2), server("before", "10.0.0.2", 2), server("gone", "10.0.0.3", 1)],
        ),
        worker(1, "a", vec![server("gone", "10.0.0.3", 0), server("gone2", "10.0.0.4", 1)]),
    ];
    let seen = Seen { running: Some(Running { current, stale: false, old }), ..settled("c") };
    let cut = |pid, server: &str| Cut { pid, backend: "b".to_owned(), server: server.to_owned() };
    assert_eq!(plan(&want("c", None), &seen).cut, [cut(2, "gone"), cut(1, "gone2")]);
}

#[test]
fn a_server_named_as_leaving_is_cut_though_another_has_its_address() {
    let current = worker(2, "c", vec![server("twin", "10.0.0.1", 0)]);
    let old = vec![worker(1, "a", vec![server("leaver", "10.0.0.1", 1), server("twin", "10.0.0.1", 1)])];
    let seen = Seen { running: Some(Running { current, stale: false, old }), ..settled("c") };
    let leaver = Leaving { name: "leaver".to_owned(), address: None };
    let want = Want { leaving: vec![leaver], ..want("c", None) };
    assert_eq!(plan(&want, &seen).cut, [Cut { pid: 1, backend: "b".to_owned(), server: "leaver".to_owned() }]);
}

#[test]
fn what_is_left_of_a_leaving_server_is_counted_by_name_and_by_address_in_every_worker() {
    let leaver = [Leaving { name: "node-1".to_owned(), address: Some("10.0.0.1".to_owned()) }];
    let of = |running: Option<&Running>| {
        let state = leaving(&leaver, running).remove(0);
        (state.sessions, state.configured)
    };
    let old = vec![worker(1, "a", vec![server("node-1", "10.0.0.9", 1), server("s7", "10.0.0.1", 2)])];
    let gone = Running { current: worker(2, "b", Vec::new()), stale: false, old: old.clone() };
    assert_eq!(of(Some(&gone)), (Some(3), false));
    let there = Running { current: worker(2, "b", vec![server("s7", "10.0.0.1", 5)]), stale: false, old };
    assert_eq!(of(Some(&there)), (Some(8), true));
    let silent = Running { old: vec![Worker { pid: 1, ..Worker::default() }], ..gone };
    assert_eq!(of(Some(&silent)), (None, false), "a worker that cannot be asked may hold sessions");
    assert_eq!(of(None), (None, false));
}

fn shas() -> impl Strategy<Value = Option<Sha>> {
    prop_oneof![Just(None), Just(sha("a")), Just(sha("b")), Just(sha("c"))]
}

proptest! {
    /// Whatever the start, and whichever configurations HAProxy accepts, the turns come to rest, and then HAProxy
    /// serves the first of candidate, accepted, last good one that it accepts.
    #[test]
    fn turns_come_to_rest(
        accepted in "[abc]", candidate in shas(), on_disk in shas(), served in shas(), stale: bool,
        mut loads in proptest::collection::btree_set("[abc]", 0..=3),
    ) {
        loads.extend(served.clone()); // what is served has been loaded
        let want = Want { accepted, candidate, leaving: Vec::new() };
        let current = Worker { pid: 1, serving: served.clone(), servers: None };
        let mut seen = Seen {
            on_disk, good: served.clone(), running: Some(Running { current, stale, old: Vec::new() }), ..Seen::default()
        };
        let mut turns = 0;
        loop {
            let plan = plan(&want, &seen);
            if plan == Plan::default() { break }
            turns += 1;
            prop_assert!(turns <= 5, "does not come to rest: {plan:?} on {seen:?}");
            let Plan { keep_good, give_up, write, reload, cut } = plan;
            prop_assert!(cut.is_empty() && give_up.is_none());
            let running = seen.running.as_mut().unwrap();
            if keep_good { seen.good.clone_from(&seen.on_disk) }
            if write.is_some() { seen.on_disk = write }
            if let Some(sha) = reload {
                prop_assert_eq!(seen.on_disk.as_ref(), Some(&sha), "what is reloaded is what is on disk");
                running.stale = !loads.contains(&sha);
                if running.stale { seen.refused.insert(sha); } else { running.current.serving = Some(sha) }
            }
        }
        let wanted = want.candidate.iter().chain([&want.accepted]).find(|sha| loads.contains(*sha));
        let serving = seen.running.unwrap().current.serving;
        prop_assert_eq!(serving, wanted.cloned().or(served));
    }
}
