//! How long placement takes on 10 000 hosts. Prints its method; every figure is the median of three runs.
//!
//! Time is what this thread spent on the processor, where the kernel tells, so that a busy machine disturbs little.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use base::Key;
use plan_sip::placement::{
    Answer, Choice, Fleet, Host, Level, Namespaces, Request, Role, Selector, Standing, place_all, place_most,
};

const HOSTS: usize = 10_000;
const CLUSTERS: usize = 1_000;
const FLAVOR: &str = "vino.airshipit.org/flavor";
const RACK: &str = "vino.airshipit.org/rack";
const SERVER: &str = "vino.airshipit.org/host";
const FEED: &str = "example.org/feed";

fn main() {
    println!(
        "{HOSTS} hosts, 3 of 10 for control planes; one core, release build; {}; median of three (and the other two)",
        Clock::method()
    );
    clusters("each host its own server, racks of 25", &racks(25, 1));
    clusters("each host its own server, racks of 40", &racks(40, 1));
    clusters("10 hosts to a server, racks of 40", &racks(40, 10));
    large("one cluster of 50 (5 + 45), p99 of 200 fleets from empty to nearly full", |request| request);
    large("the same, roles overlapping: both take any host", |mut request| {
        for role in request.roles.values_mut() {
            role.selector = Selector::everything();
        }
        request
    });
    large(
        "the same as the first, and at most 2 workers per rack and per power feed, which do not nest",
        |mut request| {
            let worker = request.roles.get_mut("Worker").expect("a request of this file");
            worker.levels.push(Level { key: RACK.to_owned(), max_per_domain: 2 });
            worker.levels.push(Level { key: FEED.to_owned(), max_per_domain: 2 });
            request
        },
    );
    short();
    building();
}

struct Clock {
    wall: Instant,
    processor: Option<Duration>,
}

impl Clock {
    fn start() -> Self {
        Self { wall: Instant::now(), processor: Self::on_processor() }
    }

    fn elapsed(&self) -> Duration {
        match (self.processor, Self::on_processor()) {
            (Some(start), Some(now)) => now.saturating_sub(start),
            _ => self.wall.elapsed(),
        }
    }

    fn on_processor() -> Option<Duration> {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
    }

    fn method() -> &'static str {
        if Self::on_processor().is_some() { "time on the processor" } else { "wall time" }
    }
}

/// 1 000 clusters of 3 + 7 one after the other.
fn clusters(title: &str, hosts: &[Host]) {
    let mut waiting = 0;
    let times = three(|| {
        let mut fleet = fleet(hosts);
        let start = Clock::start();
        waiting = 0;
        for number in 0..CLUSTERS {
            match place_all(&mut fleet, &request(number, 3, 7)) {
                Answer::Chosen(choices) => take(&mut fleet, number, &choices),
                Answer::Short(_) | Answer::Undecided(_) => waiting += 1,
            }
        }
        start.elapsed()
    });
    println!(
        "{CLUSTERS} clusters of 3 + 7 until all hosts are taken, {title}: {times}; {waiting} clusters found no place"
    );
}

/// One large cluster, on fleets filled step by step.
fn large(title: &str, change: impl Fn(Request) -> Request) {
    let hosts = racks(25, 1);
    let times = three(|| {
        let mut fleet = fleet(&hosts);
        let mut took = Vec::new();
        let asked = change(request(CLUSTERS, 5, 45));
        for number in 0..200 {
            let start = Clock::start();
            let answer = place_all(&mut fleet, &asked);
            took.push(start.elapsed());
            drop(answer);
            for filler in 0..4 {
                let number = number * 4 + filler;
                if let Answer::Chosen(choices) = place_all(&mut fleet, &request(number, 3, 7)) {
                    take(&mut fleet, number, &choices);
                }
            }
        }
        took.sort();
        took[took.len() * 99 / 100]
    });
    println!("{title}: {times}");
}

/// A cluster that asks for more racks than there are, with its explanation.
fn short() {
    let hosts = racks(25, 1);
    let mut text = String::new();
    let times = three(|| {
        let mut fleet = fleet(&hosts);
        for number in 0..300 {
            if let Answer::Chosen(choices) = place_all(&mut fleet, &request(number, 3, 7)) {
                take(&mut fleet, number, &choices);
            }
        }
        let start = Clock::start();
        let answer = place_all(&mut fleet, &request(CLUSTERS, 405, 45));
        let Answer::Short(short) = answer else { return Duration::MAX };
        text = short.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        start.elapsed()
    });
    println!("405 control planes wanted in 400 racks, with explanation: {times}\n  {text}");
}

/// Building and changing the index.
fn building() {
    let hosts = racks(25, 1);
    println!(
        "a fleet of {HOSTS} built from nothing: {}",
        three(|| {
            let start = Clock::start();
            let fleet = fleet(&hosts);
            let took = start.elapsed();
            drop(fleet);
            took
        })
    );
    println!(
        "first answer of a new fleet, which builds its indexes: {}",
        three(|| {
            let mut fleet = fleet(&hosts);
            let start = Clock::start();
            let answer = place_most(&mut fleet, &request(0, 3, 7));
            let took = start.elapsed();
            drop(answer);
            took
        })
    );
    println!(
        "10 000 changes of one host each, indexes kept: {}",
        three(|| {
            let mut fleet = fleet(&hosts);
            let _ = place_most(&mut fleet, &request(0, 3, 7));
            let mut changed = hosts.clone();
            for host in &mut changed {
                host.labels.insert("example.org/seen".to_owned(), "again".to_owned());
            }
            let start = Clock::start();
            for host in changed {
                fleet.insert(host);
            }
            start.elapsed()
        })
    );
}

fn racks(per_rack: usize, per_server: usize) -> Vec<Host> {
    (0..HOSTS)
        .map(|number| {
            let labels = [
                (FLAVOR, if number % 10 < 3 { "control-plane" } else { "worker" }.to_owned()),
                (RACK, format!("r{:03}", number / per_rack)),
                (SERVER, format!("s{:05}", number / per_server)),
                (FEED, format!("f{:02}", number * 7 % 60)),
                ("kubernetes.io/arch", "amd64".to_owned()),
                ("example.org/site", "one".to_owned()),
            ];
            let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            Host { key: Key::new("metal3", format!("n{number:05}")), labels, standing: Standing::Candidate }
        })
        .collect()
}

fn fleet(hosts: &[Host]) -> Fleet {
    let mut fleet = Fleet::new();
    for host in hosts {
        fleet.insert(host.clone());
    }
    fleet
}

fn cluster(number: usize) -> Key {
    Key::new(format!("tenant-{number}"), "cluster")
}

fn request(number: usize, control_planes: u32, workers: u32) -> Request {
    let level = |key: &str, max_per_domain| Level { key: key.to_owned(), max_per_domain };
    let role = |flavor: &str, levels, need| Role {
        selector: Selector::labels([(FLAVOR, flavor)]),
        levels,
        need,
        ..Role::default()
    };
    let control_plane = role("control-plane", vec![level(SERVER, 1), level(RACK, 1)], control_planes);
    let worker = role("worker", vec![level(SERVER, 1)], workers);
    let roles = [("ControlPlane", control_plane), ("Worker", worker)];
    Request {
        cluster: cluster(number),
        namespaces: Namespaces::Of(BTreeSet::from(["metal3".to_owned(), format!("tenant-{number}")])),
        exclude: BTreeSet::new(),
        roles: BTreeMap::from(roles.map(|(name, role)| (name.to_owned(), role))),
    }
}

fn take(fleet: &mut Fleet, number: usize, choices: &[Choice]) {
    for Choice { role, host } in choices {
        fleet.set_standing(host, Standing::Taken { by: cluster(number), role: role.clone() });
    }
}

fn three(mut run: impl FnMut() -> Duration) -> String {
    let mut times = [run(), run(), run()];
    times.sort();
    format!("{:.2?} ({:.2?}, {:.2?})", times[1], times[0], times[2])
}
