//! Placement against an oracle that tries every assignment: same feasibility, same counts, same hosts; and the promises
//! that explanations make are carried out.

use std::collections::{BTreeMap, BTreeSet};

use base::Key;
use plan_sip::placement::{
    Answer, Choice, Explanation, Fleet, Host, Level, Namespaces, Owned, Partial, Request, Role, Selector, Standing,
    Unfit, place_all, place_most,
};
use proptest::prelude::*;

type Labels = BTreeMap<String, String>;

/// The value of an assignment, smaller is better: counts (negated), spread, supply (negated), crowding, hosts by role.
type Value = (Vec<i64>, i64, i64, i64, Vec<Vec<Key>>);

struct Oracle<'a> {
    hosts: &'a [Host],
    request: &'a Request,
    roles: Vec<(&'a str, &'a Role)>,
    candidates: Vec<Vec<&'a Host>>,
    assigned: Vec<Vec<Key>>,
    best: Option<Value>,
}

impl<'a> Oracle<'a> {
    fn new(hosts: &'a [Host], request: &'a Request) -> Self {
        let roles: Vec<(&str, &Role)> = request.in_order().collect();
        let none = vec![Vec::new(); roles.len()];
        let mut oracle = Self { hosts, request, candidates: Vec::new(), assigned: none, roles, best: None };
        oracle.candidates = (0..oracle.roles.len())
            .map(|role| hosts.iter().filter(|host| oracle.is_candidate(role, host)).collect())
            .collect();
        oracle
    }

    fn best(hosts: &'a [Host], request: &'a Request) -> Value {
        let mut oracle = Self::new(hosts, request);
        oracle.host(0);
        oracle.best.expect("choosing nothing is possible")
    }

    fn labels(&self, key: &Key) -> &Labels {
        &self.hosts.iter().find(|host| host.key == *key).expect("a host of the case").labels
    }

    fn in_domain(&self, role: usize, level: &str, domain: &str) -> i64 {
        let here = |labels: &Labels| labels.get(level).is_some_and(|value| value == domain);
        let owned = count(self.roles[role].1.owned.iter().filter(|owned| here(&owned.labels)));
        count(self.assigned[role].iter().filter(|key| here(self.labels(key)))) + owned
    }

    /// Whether the role could take the host if it had not chosen any yet.
    fn is_candidate(&self, role: usize, host: &Host) -> bool {
        let (_, about) = self.roles[role];
        let owned = self.roles.iter().any(|(_, role)| role.owned.iter().any(|owned| owned.key == host.key));
        host.standing == Standing::Candidate
            && !owned
            && !self.request.exclude.contains(&host.key)
            && self.request.namespaces.allow(&host.key.namespace)
            && about.selector.matches(&host.labels)
            && about.levels.iter().all(|level| {
                let here = |owned: &&Owned| owned.labels.get(&level.key) == host.labels.get(&level.key);
                let owned = about.owned.iter().filter(here).count();
                host.labels.contains_key(&level.key) && owned < level.max_per_domain as usize
            })
    }

    fn may_take(&self, role: usize, host: &Host) -> bool {
        let (_, about) = self.roles[role];
        let has_room = |level: &Level| {
            self.in_domain(role, &level.key, &host.labels[&level.key]) < i64::from(level.max_per_domain)
        };
        self.is_candidate(role, host)
            && self.assigned[role].len() < about.need as usize
            && about.levels.iter().all(has_room)
    }

    fn host(&mut self, at: usize) {
        let Some(host) = self.hosts.get(at) else {
            let value = self.value();
            if self.best.as_ref().is_none_or(|best| value < *best) {
                self.best = Some(value);
            }
            return;
        };
        for role in 0..self.roles.len() {
            if self.may_take(role, host) {
                self.assigned[role].push(host.key.clone());
                self.host(at + 1);
                self.assigned[role].pop();
            }
        }
        self.host(at + 1);
    }

    fn value(&self) -> Value {
        let counts = self.assigned.iter().map(|hosts| -count(hosts)).collect();
        let (mut spread, mut supply, mut crowding) = (0, 0, 0);
        for (role, (_, about)) in self.roles.iter().enumerate() {
            if about.need == 0 {
                continue;
            }
            for level in about.merged_levels() {
                let domains: BTreeSet<&String> =
                    self.hosts.iter().filter_map(|host| host.labels.get(&level.key)).collect();
                for domain in domains {
                    spread += self.in_domain(role, &level.key, domain).pow(2);
                    let here = |host: &&Host| host.labels.get(&level.key) == Some(domain);
                    let taken = self.hosts.iter().filter(here).filter(|host| host.standing != Standing::Candidate);
                    let taken = count(taken.filter(|host| matches!(host.standing, Standing::Taken { .. })));
                    let chosen =
                        self.assigned[role].iter().filter(|key| self.labels(key).get(&level.key) == Some(domain));
                    let chosen = count(chosen);
                    let candidates = count(self.candidates[role].iter().filter(|host| here(host)));
                    crowding += taken * chosen;
                    supply += candidates * chosen;
                }
            }
        }
        let sorted = |hosts: &Vec<Key>| {
            let mut hosts = hosts.clone();
            hosts.sort();
            hosts
        };
        (counts, spread, -supply, crowding, self.assigned.iter().map(sorted).collect())
    }

    fn choices(request: &Request, value: &Value) -> Vec<Choice> {
        let by_role = request.in_order().zip(&value.4);
        by_role
            .flat_map(|((role, _), hosts)| {
                hosts.iter().map(|host| Choice { role: role.to_owned(), host: host.clone() })
            })
            .collect()
    }
}

fn count<T>(items: impl IntoIterator<Item = T>) -> i64 {
    items.into_iter().map(|_| 1).sum()
}

#[derive(Clone, Debug)]
struct Case {
    hosts: Vec<Host>,
    request: Request,
}

const KEYS: [&str; 3] = ["server", "rack", "feed"];

fn labels_of(nested: bool, scale: u8) -> impl Strategy<Value = Labels> {
    let value = |most: u8| prop_oneof![15 => (0..most).prop_map(Some), 1 => Just(None)];
    (value(5 * scale), value(3 * scale), value(2 * scale), prop_oneof![8 => (0..2_u8).prop_map(Some), 1 => Just(None)])
        .prop_map(move |(server, rack, feed, pool)| {
            // Nested: three servers to a rack, two racks to a feed; otherwise any mixture.
            let rack = if nested { server.map(|server| server / 2) } else { rack };
            let feed = if nested { server.map(|server| server / 4) } else { feed };
            let values = [("server", server), ("rack", rack), ("feed", feed), ("pool", pool)];
            let written =
                values.into_iter().filter_map(|(key, value)| Some((key.to_owned(), format!("{key}-{}", value?))));
            written.collect()
        })
}

fn standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        10 => Just(Standing::Candidate),
        2 => Just(Standing::Taken { by: Key::new("b", "other"), role: "Worker".to_owned() }),
        1 => Just(Standing::Dropped(Unfit::Error("no power".to_owned()))),
    ]
}

fn selector() -> impl Strategy<Value = Selector> {
    let one = |value: &str| Selector::labels([("pool", value)]);
    prop_oneof![3 => Just(Selector::everything()), 2 => Just(one("pool-0")), 2 => Just(one("pool-1"))]
}

fn role(nested: bool, scale: u8) -> impl Strategy<Value = Role> {
    let level = (0..KEYS.len(), prop_oneof![1 => Just(0_u32), 12 => Just(1), 8 => Just(2), 3 => Just(3)])
        .prop_map(|(key, max_per_domain)| Level { key: KEYS[key].to_owned(), max_per_domain });
    let owned = proptest::collection::vec(labels_of(nested, scale), 0..2);
    (selector(), proptest::collection::vec(level, 0..4), 0..4 * u32::from(scale), owned).prop_map(
        |(selector, levels, need, owned)| {
            let owned = owned.into_iter().map(|labels| Owned { key: Key::default(), labels }).collect();
            Role { selector, levels, need, owned, ..Role::default() }
        },
    )
}

fn case(scale: u8) -> impl Strategy<Value = Case> {
    any::<bool>().prop_flat_map(move |nested| {
        let namespace = prop_oneof![9 => Just("metal3"), 1 => Just("elsewhere")];
        let hosts =
            proptest::collection::vec((labels_of(nested, scale), standing(), namespace), 0..8 * usize::from(scale));
        let roles = (
            role(nested, scale),
            proptest::option::of(role(nested, scale)),
            proptest::option::weighted(0.3, role(nested, scale)),
        );
        let excluded = proptest::option::weighted(0.1, 0..7_usize);
        (hosts, roles, excluded).prop_map(|(hosts, roles, excluded)| assemble(hosts, roles, excluded))
    })
}

fn assemble(
    hosts: Vec<(Labels, Standing, &str)>,
    roles: (Role, Option<Role>, Option<Role>),
    excluded: Option<usize>,
) -> Case {
    let cluster = Key::new("a", "mine");
    let mut hosts: Vec<Host> = hosts
        .into_iter()
        .enumerate()
        .map(|(at, (labels, standing, namespace))| Host {
            key: Key::new(namespace, format!("n{at}")),
            labels,
            standing,
        })
        .collect();
    let exclude = excluded.and_then(|at| hosts.get(at)).map(|host| host.key.clone()).into_iter().collect();
    let named = [("Worker", Some(roles.0)), ("ControlPlane", roles.1), ("Edge", roles.2)];
    let mut roles: BTreeMap<String, Role> =
        named.into_iter().filter_map(|(name, role)| Some((name.to_owned(), role?))).collect();
    for (name, role) in &mut roles {
        for (at, owned) in role.owned.iter_mut().enumerate() {
            owned.key = Key::new("metal3", format!("mine-{name}-{at}"));
            let standing = Standing::Taken { by: cluster.clone(), role: name.clone() };
            hosts.push(Host { key: owned.key.clone(), labels: owned.labels.clone(), standing });
        }
    }
    let namespaces = Namespaces::Of(BTreeSet::from(["metal3".to_owned()]));
    Case { hosts, request: Request { cluster, namespaces, exclude, roles } }
}

fn fleet(hosts: &[Host]) -> Fleet {
    let mut fleet = Fleet::new();
    for host in hosts {
        fleet.insert(host.clone());
    }
    fleet
}

/// A host for `role`, in a new domain of each key but those given.
fn newcomer(role: &Role, name: &str, at: usize, given: &Labels) -> Host {
    let pool = ["pool-0", "pool-1"]
        .into_iter()
        .find(|pool| role.selector.matches(&Labels::from([("pool".to_owned(), (*pool).to_owned())])));
    let pool = pool.expect("every selector of these cases matches a pool").to_owned();
    let mut labels: Labels = KEYS.iter().map(|key| ((*key).to_owned(), format!("{key}-new-{name}-{at}"))).collect();
    labels.insert("pool".to_owned(), pool);
    labels.extend(given.clone());
    Host { key: Key::new("metal3", format!("new-{name}-{at}")), labels, standing: Standing::Candidate }
}

fn chosen(answer: &Answer) -> bool {
    matches!(answer, Answer::Chosen(_))
}

fn falls_short(answer: &Answer) -> bool {
    matches!(answer, Answer::Short(_))
}

/// Carries out the remedies of all explanations, with `given` labels for the first hosts of one; less the last host if
/// `fewer`.
fn remedied(case: &Case, short: &[Explanation], at: usize, given: &[Labels], fewer: bool) -> Answer {
    let mut hosts = case.hosts.clone();
    for (index, explanation) in short.iter().enumerate() {
        let Some(remedy) = &explanation.remedy else { continue };
        let role = &case.request.roles[&explanation.role];
        for number in 0..remedy.more as usize {
            let labels = if index == at { given.get(number).cloned() } else { None };
            hosts.push(newcomer(role, &explanation.role, number, &labels.unwrap_or_default()));
        }
    }
    if fewer {
        hosts.pop();
    }
    place_all(&mut fleet(&hosts), &case.request)
}

/// The labels of a newcomer to `domain` of `key`: new servers, but the rack's own feed.
fn labels_in(case: &Case, role: &Role, key: &str, domain: &str) -> Labels {
    let matching: Vec<&Host> = case.hosts.iter().filter(|host| role.selector.matches(&host.labels)).collect();
    let mut given = Labels::from([(key.to_owned(), domain.to_owned())]);
    for level in role.merged_levels().iter().filter(|level| level.key != key) {
        let mut within: BTreeMap<&String, BTreeSet<Option<&String>>> = BTreeMap::new();
        for host in &matching {
            if let Some(fine) = host.labels.get(key) {
                within.entry(fine).or_default().insert(host.labels.get(&level.key));
            }
        }
        let coarse: BTreeSet<Option<&String>> = within.values().flatten().copied().collect();
        let nests = within.values().all(|coarse| coarse.len() == 1 && !coarse.contains(&None));
        if nests && coarse.len() < within.len() {
            let value = within[&domain.to_owned()].first().copied().flatten().expect("it nests");
            given.insert(level.key.clone(), value.clone());
        }
    }
    given
}

fn check_explanations(case: &Case, short: &[Explanation]) -> Result<(), TestCaseError> {
    for explanation in short {
        let text = explanation.to_string();
        prop_assert!(text.len() < 1024 && text.starts_with(&format!("role {}: ", explanation.role)), "{}", text);
        let role = &case.request.roles[&explanation.role];
        let dropped: u32 = explanation.dropped.iter().map(|dropped| dropped.hosts).sum();
        let claimed: u32 = explanation.claimed.iter().map(|claimed| claimed.hosts).sum();
        let counted =
            explanation.own + explanation.not_allowed + explanation.excluded + dropped + claimed + explanation.free;
        prop_assert_eq!(counted, explanation.matching, "the counts add up: {}", text);
        prop_assert!(explanation.placeable < explanation.need);
        if explanation.remedy.is_none() {
            prop_assert!(role.levels.iter().any(|level| level.max_per_domain == 0), "{}", text);
        }
    }
    if short.iter().any(|explanation| explanation.remedy.is_none()) {
        return Ok(());
    }
    // A search may end undecided; what is promised is that it is never short.
    prop_assert!(!falls_short(&remedied(case, short, 0, &[], false)), "the remedy works: {}", short[0]);
    if short.iter().filter_map(|explanation| explanation.remedy.as_ref()).all(|remedy| remedy.least) {
        prop_assert!(!chosen(&remedied(case, short, 0, &[], true)), "and no less does: {}", short[0]);
    }
    for (at, explanation) in short.iter().enumerate() {
        let remedy = explanation.remedy.as_ref().expect("checked above");
        for place in &remedy.places {
            let role = &case.request.roles[&explanation.role];
            let given = vec![labels_in(case, role, &place.key, &place.domain); place.hosts as usize];
            prop_assert!(
                !falls_short(&remedied(case, short, at, &given, false)),
                "{} works: {}",
                place.domain,
                explanation
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn placement_answers_as_trying_everything_does(case in case(1)) {
        let best = Oracle::best(&case.hosts, &case.request);
        let expected = Oracle::choices(&case.request, &best);
        let most = place_most(&mut fleet(&case.hosts), &case.request);
        prop_assert_eq!(&most.chosen, &expected, "value {:?}", best);
        prop_assert!(most.undecided.is_empty());
        let whole = case.request.in_order().zip(&best.0).all(|((_, role), count)| i64::from(role.need) == -count);
        match place_all(&mut fleet(&case.hosts), &case.request) {
            Answer::Chosen(choices) => {
                prop_assert!(whole);
                prop_assert_eq!(choices, expected);
                prop_assert!(most.short.is_empty());
            }
            Answer::Short(short) => {
                prop_assert!(!whole);
                prop_assert_eq!(&short, &most.short);
                check_explanations(&case, &short)?;
            }
            Answer::Undecided(undecided) => prop_assert!(false, "too small to be undecided: {:?}", undecided),
        }
    }

    #[test]
    fn the_order_in_which_hosts_came_is_no_matter(case in case(1), seed in any::<u64>()) {
        let straight = place_most(&mut fleet(&case.hosts), &case.request);
        let mut shuffled = case.hosts.clone();
        let mut state = seed;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(at, (state >> 33) as usize % (at + 1));
        }
        prop_assert_eq!(place_most(&mut fleet(&shuffled), &case.request), straight);
    }

    #[test]
    fn a_choice_carried_out_asks_for_nothing_more(case in case(1)) {
        let Case { mut hosts, mut request } = case;
        let Partial { chosen, .. } = place_most(&mut fleet(&hosts), &request);
        for Choice { role, host } in &chosen {
            let at = hosts.iter_mut().find(|known| known.key == *host).expect("a host of the case");
            at.standing = Standing::Taken { by: request.cluster.clone(), role: role.clone() };
            let role = request.roles.get_mut(role).expect("a role of the case");
            role.owned.push(Owned { key: host.clone(), labels: at.labels.clone() });
            role.need -= 1;
        }
        let again = place_most(&mut fleet(&hosts), &request);
        prop_assert!(again.chosen.is_empty(), "{:?}", again.chosen);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases() / 10) })]

    #[test]
    fn larger_fleets_keep_the_rules_and_the_promises(case in case(4)) {
        let most = place_most(&mut fleet(&case.hosts), &case.request);
        let hosts: BTreeSet<&Key> = most.chosen.iter().map(|choice| &choice.host).collect();
        prop_assert_eq!(hosts.len(), most.chosen.len(), "no host twice");
        let mut oracle = Oracle::new(&case.hosts, &case.request);
        for Choice { role, host } in &most.chosen {
            let at = oracle.roles.iter().position(|(name, _)| name == role).expect("a role of the case");
            let host = case.hosts.iter().find(|known| known.key == *host).expect("a host of the case");
            prop_assert!(oracle.may_take(at, host), "{} may not take {}", role, host.key);
            oracle.assigned[at].push(host.key.clone());
        }
        if let Answer::Short(short) = place_all(&mut fleet(&case.hosts), &case.request) {
            check_explanations(&case, &short)?;
        }
    }

    #[test]
    fn a_fleet_kept_up_to_date_answers_as_one_made_anew(
        case in case(1),
        changes in proptest::collection::vec((0..9_usize, labels_of(false, 1), proptest::option::weighted(0.8, standing())), 0..20),
    ) {
        let mut kept = fleet(&case.hosts);
        let mut hosts: BTreeMap<Key, Host> = case.hosts.iter().map(|host| (host.key.clone(), host.clone())).collect();
        prop_assert_eq!(place_most(&mut kept, &case.request), place_most(&mut fleet(&case.hosts), &case.request));
        for (number, labels, standing) in changes {
            let key = Key::new("metal3", format!("n{number}"));
            match standing {
                Some(standing) if number % 3 == 0 && hosts.contains_key(&key) => {
                    prop_assert!(kept.set_standing(&key, standing.clone()));
                    hosts.get_mut(&key).expect("just looked").standing = standing;
                }
                Some(standing) => {
                    let host = Host { key: key.clone(), labels, standing };
                    kept.insert(host.clone());
                    hosts.insert(key.clone(), host);
                }
                None => prop_assert_eq!(kept.remove(&key), hosts.remove(&key).is_some()),
            }
            prop_assert_eq!(kept.get(&key), hosts.get(&key).cloned());
            let anew: Vec<Host> = hosts.values().cloned().collect();
            prop_assert_eq!(place_most(&mut kept, &case.request), place_most(&mut fleet(&anew), &case.request));
        }
    }
}

/// `PROPTEST_CASES`, else what a debug build does in seconds.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}
