//! Managers with stale views that stop between any two writes and wake up late, consumers that write blindly, and people:
//! after every write the invariants hold, and when it is over everything comes to rest where it should.

mod crash;
mod manager;
mod truth;

use proptest::{collection::vec, prelude::*};

use self::{manager::Manager, truth::Truth};
use super::build::{PLANE, WORKER, cluster, host, metal, tenant};
use crate::{
    host::{Claim, Host},
    placement::Unfit,
    want::Want,
};

const MANAGERS: usize = 3;
const CLUSTERS: [&str; 3] = ["c0", "c1", "c2"];

/// One thing that happens.
#[derive(Clone, Debug)]
enum Event {
    SeeHosts(usize, usize),
    SeeClusters(usize, usize),
    SeeAll(usize),
    Decide(usize, usize),
    /// A fresh view, a decision, and so many writes.
    Turn(usize, usize, usize),
    Step(usize, bool),
    Run(usize),
    Crash(usize),
    LookAfter(usize, usize),
    StepHost(usize),
    Look(usize),
    Consume(usize),
    /// A consumer that looks and writes at once.
    Take(usize),
    Unconsume(usize),
    Provision(usize),
    Deprovision(usize),
    Stranger(usize),
    Strip(usize),
    Tear(usize),
    Mislabel(usize),
    Relabel(usize),
    Force(usize),
    Break(usize),
    Mend(usize),
    Remove(usize),
    Create(usize),
    Count(usize, bool, u32),
    Delete(usize),
    Make(usize),
    Later(i64),
}

fn event() -> impl Strategy<Value = Event> {
    use Event::*;
    let (m, h, c) = (0..MANAGERS, 0..HOSTS, 0..CLUSTERS.len());
    let managers = prop_oneof![
        2 => (m.clone(), 1..4_usize).prop_map(|(m, n)| SeeHosts(m, n)),
        2 => (m.clone(), 1..4_usize).prop_map(|(m, n)| SeeClusters(m, n)),
        3 => m.clone().prop_map(SeeAll),
        5 => (m.clone(), c.clone()).prop_map(|(m, c)| Decide(m, c)),
        9 => (m.clone(), c.clone(), 0..9_usize).prop_map(|(m, c, n)| Turn(m, c, n)),
        9 => (m.clone(), any::<bool>()).prop_map(|(m, confirmed)| Step(m, confirmed)),
        2 => m.clone().prop_map(Run),
        1 => m.clone().prop_map(Crash),
        2 => (m.clone(), h.clone()).prop_map(|(m, h)| LookAfter(m, h)),
        2 => m.prop_map(StepHost),
    ];
    let others = prop_oneof![
        4 => h.clone().prop_map(Take),
        3 => h.clone().prop_map(Look),
        3 => h.clone().prop_map(Consume),
        2 => h.clone().prop_map(Unconsume),
        1 => h.clone().prop_map(Provision),
        1 => h.clone().prop_map(Deprovision),
        1 => h.clone().prop_map(Stranger),
        1 => h.clone().prop_map(Strip),
        1 => h.clone().prop_map(Tear),
        1 => h.clone().prop_map(Mislabel),
        1 => h.clone().prop_map(Relabel),
        1 => h.clone().prop_map(Force),
        1 => h.clone().prop_map(Break),
        1 => h.clone().prop_map(Mend),
        1 => h.clone().prop_map(Remove),
        1 => h.prop_map(Create),
        2 => (c.clone(), any::<bool>(), 0..3_u32).prop_map(|(c, plane, n)| Count(c, plane, n)),
        1 => c.clone().prop_map(Delete),
        1 => c.prop_map(Make),
        2 => (1..7_i64).prop_map(Later),
    ];
    prop_oneof![3 => managers, 1 => others]
}

const HOSTS: usize = 7;

fn fresh(number: usize, uid: u64) -> Host {
    let flavor = if number.is_multiple_of(3) { PLANE } else { WORKER };
    host(&format!("n{number}"))
        .of_uid(&format!("uid-{number}-{uid}"))
        .rack(&format!("r{}", number % 2 + number / 5))
        .label("flavor", flavor)
}

fn asking(number: usize, uid: u64, plane: u32, workers: u32) -> Want {
    let want = cluster(CLUSTERS[number]).asks(PLANE, plane).asks(WORKER, workers);
    let mut want = want
        .with(PLANE, "flavor", PLANE)
        .with(WORKER, "flavor", WORKER)
        .created(i64::try_from(number).expect("a small number"));
    if number != 1 {
        want = want.per_rack(PLANE, 1).per_rack(WORKER, 1);
    }
    if number == 2 {
        want = want.replacing();
    }
    want.uid = format!("uid-{number}-{uid}");
    want
}

struct World {
    truth: Truth,
    managers: Vec<Manager>,
}

impl World {
    fn new(counts: &[(u32, u32)]) -> Self {
        let mut world = Self { truth: Truth::default(), managers: Vec::new() };
        (0..HOSTS).for_each(|n| world.truth.put_host(fresh(n, 0)));
        for (number, (plane, workers)) in counts.iter().enumerate() {
            world.truth.put_cluster(asking(number, 0, *plane, *workers));
        }
        world.managers.extend((0..MANAGERS).map(|_| Manager::new()));
        world.managers.iter_mut().for_each(|m| m.see_all(&world.truth));
        world
    }

    fn happens(&mut self, event: &Event) -> Result<(), String> {
        use Event::*;
        let truth = &mut self.truth;
        let key = |n: usize| metal(&format!("n{n}"));
        let used = |truth: &Truth, n: usize| truth.hosts.get(&key(n)).is_some_and(Host::in_use);
        match *event {
            SeeHosts(m, n) => self.managers[m].see_hosts(truth, n),
            SeeClusters(m, n) => self.managers[m].see_clusters(truth, n),
            SeeAll(m) => self.managers[m].see_all(truth),
            Decide(m, c) => self.managers[m].decide(&tenant(CLUSTERS[c])),
            Step(m, confirmed) => return self.managers[m].step(truth, confirmed),
            Turn(m, c, writes) => {
                self.managers[m].see_all(truth);
                self.managers[m].decide(&tenant(CLUSTERS[c]));
                return (0..writes).try_for_each(|_| self.managers[m].step(truth, writes % 2 == 0));
            }
            Run(m) => return self.managers[m].run(truth),
            Crash(m) => self.managers[m].crash(truth),
            LookAfter(m, h) => self.managers[m].look_after(&key(h), truth),
            StepHost(m) => return self.managers[m].step_host(truth),
            Look(h) => truth.look(&key(h)),
            Take(h) => {
                truth.look(&key(h));
                return truth.consume(&key(h));
            }
            Consume(h) => return truth.consume(&key(h)),
            Unconsume(h) => truth.edit(&key(h), Host::unused),
            Provision(h) => truth.edit(&key(h), |h| if h.consumer.is_some() { h.provisioned() } else { h }),
            Deprovision(h) => truth.edit(&key(h), |h| Host { provisioned: h.provisioned && h.consumer.is_some(), ..h }),
            Stranger(h) => truth.stranger(&key(h)),
            Strip(h) => truth.edit(&key(h), |h| Host { claim: Claim::Free, ..h }),
            Tear(h) => truth.edit(&key(h), |h| if matches!(h.claim, Claim::By { .. }) { h.torn() } else { h }),
            Mislabel(h) => truth.edit(&key(h), |h| h.claimed("nobody", WORKER)),
            Relabel(h) => truth.edit(&key(h), |h| match &h.claim {
                Claim::By { cluster, role } => {
                    let role = if role == PLANE { WORKER } else { PLANE };
                    Host { claim: Claim::By { cluster: cluster.clone(), role: role.into() }, ..h }
                }
                _ => h,
            }),
            Force(h) => truth.edit(&key(h), |h| match &h.claim {
                Claim::By { cluster, .. } => Host { force_release: Some(cluster.to_string()), ..h },
                _ => h,
            }),
            Break(h) => truth.edit(&key(h), Host::in_error),
            Mend(h) => truth.edit(&key(h), |h| Host { unfit: None::<Unfit>, ..h }),
            Remove(h) if !used(truth, h) && truth.hosts.contains_key(&key(h)) => truth.remove_host(&key(h)),
            Create(h) if !truth.hosts.contains_key(&key(h)) => truth.put_host(fresh(h, truth.version)),
            Count(c, plane, n) => {
                if let Some(mut want) = truth.clusters.get(&tenant(CLUSTERS[c])).filter(|w| !w.deleting).cloned() {
                    let role = if plane { PLANE } else { WORKER };
                    want.roles.get_mut(role).expect("both are asked for").active = n;
                    truth.put_cluster(want);
                }
            }
            Delete(c) => {
                if let Some(want) = truth.clusters.get(&tenant(CLUSTERS[c])).cloned() {
                    truth.put_cluster(want.deleting());
                }
            }
            Make(c) if !truth.clusters.contains_key(&tenant(CLUSTERS[c])) => {
                truth.put_cluster(asking(c, truth.version, 1, 1));
            }
            Later(seconds) => truth.now += seconds,
            Remove(_) | Create(_) | Make(_) => {}
        }
        Ok(())
    }

    /// Chaos stops; one manager works on, and then the others wake up with what they had in mind.
    fn settles(&mut self) -> Result<(), String> {
        let (first, sleepers) = self.managers.split_first_mut().expect("there are some");
        first.crash(&self.truth);
        first.settle(&mut self.truth)?;
        for sleeper in sleepers {
            sleeper.run(&mut self.truth)?;
        }
        first.settle(&mut self.truth)
    }
}

/// How many cases, variable `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_the_laws_hold_and_it_comes_to_rest(
        counts in vec((0..3_u32, 0..4_u32), CLUSTERS.len()),
        events in vec(event(), 1..120),
    ) {
        let mut world = World::new(&counts);
        for (at, event) in events.iter().enumerate() {
            world.happens(event).map_err(|broken| TestCaseError::fail(format!("event {at}: {broken}")))?;
        }
        world.settles().map_err(TestCaseError::fail)?;
    }
}
