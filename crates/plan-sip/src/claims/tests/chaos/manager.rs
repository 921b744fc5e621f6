//! A manager of the model: a view of its own age, and one decided plan at a time, carried out write by write.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use api::sipcluster::HostState;
use base::Key;
use jiff::Timestamp;

use super::truth::{Broken, QUARANTINE, Truth};
use crate::{
    claims::{self, Depart, Label, Plan, Seen},
    host::Host,
    order::Rank,
    quarantine,
    site::{Settings, Site},
};

#[derive(Debug)]
enum Step {
    Confirm,
    Record,
    Label(Label),
    Depart(Depart),
    Status,
    Finish,
}

/// A plan that is being carried out.
#[derive(Debug)]
struct Task {
    cluster: Key,
    uid: String,
    /// The resourceVersion of the record it was decided on, then of what it has written.
    version: String,
    plan: Plan,
    labelled: BTreeSet<Key>,
    steps: VecDeque<Step>,
}

pub(super) struct Manager {
    site: Site,
    hosts_seen: usize,
    clusters_seen: usize,
    task: Option<Task>,
    host_task: Option<(Host, quarantine::Turn)>,
    /// Hosts it has touched, and the resourceVersion of the record for which that counts.
    departed: BTreeMap<Key, (String, BTreeSet<Key>)>,
}

impl Manager {
    pub(super) fn new() -> Self {
        let settings = Settings { host_namespaces: None, quarantine: QUARANTINE, secrets_known: false };
        let departed = BTreeMap::new();
        Self { site: Site::new(settings), hosts_seen: 0, clusters_seen: 0, task: None, host_task: None, departed }
    }

    /// Its watch of hosts brings so many events.
    pub(super) fn see_hosts(&mut self, truth: &Truth, events: usize) {
        for (key, host) in truth.host_log.iter().skip(self.hosts_seen).take(events) {
            self.hosts_seen += 1;
            match host {
                Some(host) => self.site.put_host(host.clone()),
                None => self.site.remove_host(key),
            };
        }
    }

    /// Its watch of clusters brings so many events.
    pub(super) fn see_clusters(&mut self, truth: &Truth, events: usize) {
        for (key, want) in truth.cluster_log.iter().skip(self.clusters_seen).take(events) {
            self.clusters_seen += 1;
            match want {
                Some(want) => self.site.put_cluster(want.clone()),
                None => self.site.remove_cluster(key),
            };
        }
    }

    pub(super) fn see_all(&mut self, truth: &Truth) {
        self.see_hosts(truth, usize::MAX);
        self.see_clusters(truth, usize::MAX);
    }

    /// It loses all it had in memory, and lists what there is.
    pub(super) fn crash(&mut self, truth: &Truth) {
        *self = Self::new();
        self.see_all(truth);
    }

    /// Decides about a cluster on what it sees, unless it is still at work.
    pub(super) fn decide(&mut self, cluster: &Key) {
        let Some(want) = self.site.cluster(cluster).filter(|_| self.task.is_none()).cloned() else { return };
        let known = self.departed.get(cluster).filter(|(version, _)| *version == want.resource_version);
        let seen = Seen { departed: known.map(|(_, hosts)| hosts.clone()).unwrap_or_default(), ..Seen::default() };
        let plan = claims::plan(&want, &mut self.site, &seen);
        let mut steps = VecDeque::from([Step::Confirm]);
        steps.extend(plan.record_first.then_some(Step::Record));
        steps.extend(plan.label.iter().cloned().map(Step::Label));
        steps.extend(plan.depart.iter().cloned().map(Step::Depart));
        steps.push_back(Step::Status);
        steps.extend(plan.finished.then_some(Step::Finish));
        let (uid, version) = (want.uid.clone(), want.resource_version.clone());
        self.task = Some(Task { cluster: cluster.clone(), uid, version, plan, labelled: BTreeSet::new(), steps });
    }

    /// Decides about a host that is nobody's.
    pub(super) fn look_after(&mut self, host: &Key, truth: &Truth) {
        let now = Timestamp::from_second(truth.now).expect("in range");
        if let Some(host) = self.site.host(host) {
            let turn = quarantine::turn(host, &self.site, now);
            self.host_task = Some(((**host).clone(), turn));
        }
    }

    /// The next write of a host that is nobody's.
    pub(super) fn step_host(&mut self, truth: &mut Truth) -> Result<(), Broken> {
        if let Some((host, turn)) = self.host_task.take() {
            truth.quarantine(&host, &turn)?;
        }
        Ok(())
    }

    /// The next write of its plan; `confirmed`: whether backends have let go of the host concerned.
    pub(super) fn step(&mut self, truth: &mut Truth, confirmed: bool) -> Result<(), Broken> {
        let Some(mut task) = self.task.take() else { return Ok(()) };
        let Some(step) = task.steps.pop_front() else { return Ok(()) };
        let cluster = task.cluster.clone();
        // Whatever fails, the plan is given up, and the next one is made on a newer view.
        match step {
            Step::Confirm => {
                if !task.plan.confirm.iter().all(|c| truth.is_confirmed(c)) {
                    return Ok(());
                }
            }
            Step::Record => {
                let record = task.plan.record.clone();
                let Some(version) = truth.write_cluster(&cluster, &task.uid, &task.version, |w| w.record = record)
                else {
                    return Ok(());
                };
                truth.whole_or_nothing(&cluster, task.plan.established)?;
                self.wrote(&mut task, version);
            }
            Step::Label(label) => {
                if !truth.label(&cluster, &label)? {
                    return Ok(());
                }
                task.labelled.insert(label.host);
            }
            Step::Depart(depart) => {
                if confirmed {
                    if !truth.depart(&cluster, &depart)? {
                        return Ok(());
                    }
                    let fresh = || (task.version.clone(), BTreeSet::new());
                    let known = self.departed.entry(cluster).or_insert_with(fresh);
                    if known.0 != task.version {
                        *known = fresh();
                    }
                    known.1.insert(depart.host);
                }
            }
            Step::Status => {
                let mut record = task.plan.record.clone();
                for entry in record.iter_mut().filter(|e| e.state == HostState::Chosen) {
                    if task.labelled.contains(&Key::new(&entry.namespace, &entry.name)) {
                        entry.state = HostState::Claimed;
                    }
                }
                let established = task.plan.established;
                let write = |w: &mut crate::want::Want| {
                    w.record = record;
                    w.established = established;
                };
                let Some(version) = truth.write_cluster(&cluster, &task.uid, &task.version, write) else {
                    return Ok(());
                };
                self.wrote(&mut task, version);
            }
            Step::Finish => {
                truth.remove_cluster(&cluster, &task.uid, &task.version);
            }
        }
        self.task = Some(task).filter(|t| !t.steps.is_empty());
        Ok(())
    }

    /// What it knows of touched hosts goes on to count for the record that it has written itself.
    fn wrote(&mut self, task: &mut Task, version: String) {
        if let Some((of, _)) = self.departed.get_mut(&task.cluster)
            && *of == task.version
        {
            of.clone_from(&version);
        }
        task.version = version;
    }

    /// Carries out what it has decided to the end.
    pub(super) fn run(&mut self, truth: &mut Truth) -> Result<(), Broken> {
        while self.task.is_some() {
            self.step(truth, true)?;
        }
        self.step_host(truth)
    }

    /// Works alone, with a fresh view, until nothing changes any more.
    pub(super) fn settle(&mut self, truth: &mut Truth) -> Result<(), Broken> {
        let mut quiet = 0;
        for _ in 0..60 {
            let before = truth.version;
            self.see_all(truth);
            let mut ranks: Vec<Rank> = self.site.clusters().map(|want| Rank::of(want, &self.site)).collect();
            ranks.sort();
            for rank in ranks {
                self.decide(rank.key());
                self.run(truth)?;
                self.see_all(truth);
            }
            for host in truth.hosts.keys().cloned().collect::<Vec<_>>() {
                self.look_after(&host, truth);
                self.step_host(truth)?;
            }
            truth.now += QUARANTINE + 1;
            // Two rounds, so that a quarantine has ended between them.
            quiet = if truth.version == before { quiet + 1 } else { 0 };
            if quiet == 2 {
                return self.rests(truth);
            }
        }
        Err("it never comes to rest".to_owned())
    }

    /// Plans of a settled world are empty, and say truly who is blocked.
    fn rests(&mut self, truth: &Truth) -> Result<(), Broken> {
        truth.is_settled()?;
        for (key, want) in &truth.clusters {
            let plan = claims::plan(want, &mut self.site, &Seen::default());
            if plan.record_first || !plan.label.is_empty() || !plan.depart.is_empty() || !plan.confirm.is_empty() {
                return Err(format!("{key} is at rest, and its plan says: {plan}"));
            }
            if !want.deleting && plan.whole == plan.blocked.is_some() {
                return Err(format!("{key}: whole is {}, and it says {:?}", plan.whole, plan.blocked));
            }
        }
        Ok(())
    }
}
