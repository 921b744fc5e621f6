//! `slipway plan`: what would become of all SIPClusters and their hosts, without touching anything.

use std::fmt::Write as _;

use api::sipcluster::HostRecord;
use base::Key;
use plan_sip::{
    claims::{Label, Plan},
    order,
};
use serde::Serialize;

use crate::{
    source::{Source, World},
    words,
};

/// Arguments of `slipway plan`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// For people, or for programs
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}

/// The answer for programs. Its form is stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// SIPClusters in the order they are served.
    pub clusters: Vec<Cluster>,
}

/// What becomes of one SIPCluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Hosts that get its labels.
    pub claims: Vec<Claim>,
    /// Hosts that lose them.
    pub releases: Vec<Release>,
    /// What cannot be done.
    pub blocked: Option<Blocked>,
}

/// A host that gets labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// The host's namespace.
    pub namespace: String,
    /// The host's name.
    pub host: String,
    /// Its role.
    pub role: String,
}

/// A host that loses its labels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Release {
    /// The host's namespace.
    pub namespace: String,
    /// The host's name.
    pub host: String,
    /// The role it had.
    pub role: String,
    /// When.
    pub when: When,
}

/// When a host is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// At once, as soon as no load balancer has it as a backend.
    Now,
    /// When nobody uses it any more. The present preference, not a promise.
    Unconsumed,
}

/// What cannot be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// CamelCase, as in condition Ready.
    pub reason: String,
    /// The role that is short of hosts, where one is.
    pub role: Option<String>,
    /// For people.
    pub message: String,
}

/// What a command has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// For standard output.
    pub text: String,
    /// For standard error: what people should know about the input.
    pub notes: Vec<String>,
    /// Whether anything is blocked.
    pub blocked: bool,
}

/// Decides about everything in the input.
pub async fn run(args: Args) -> anyhow::Result<Answer> {
    let World { mut site, notes, objects: _ } = args.source.read().await?;
    let plans = order::sweep(&mut site);
    let report = report(&plans);
    let text = match args.output {
        Output::Text => text(&plans),
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
        Output::Yaml => serde_saphyr::to_string(&report)?,
    };
    Ok(Answer { text, notes, blocked: report.clusters.iter().any(|cluster| cluster.blocked.is_some()) })
}

fn report(plans: &[(Key, Plan)]) -> Report {
    let clusters = plans.iter().map(|(key, plan)| {
        let claims = plan.label.iter().map(|Label { host, role, .. }| {
            let Key { namespace, name } = host.clone();
            Claim { namespace, host: name, role: role.clone() }
        });
        let release = |host: &Key, role: &String, when| {
            let Key { namespace, name } = host.clone();
            Release { namespace, host: name, role: role.clone(), when }
        };
        let now = plan.depart.iter().map(|depart| release(&depart.host, &depart.role, When::Now));
        let later = plan.waiting.iter().map(|(role, host)| release(host, role, When::Unconsumed));
        Cluster {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            claims: claims.collect(),
            releases: now.chain(later).collect(),
            blocked: plan.blocked.as_ref().map(|blocked| Blocked {
                reason: blocked.reason.to_string(),
                role: blocked.role.clone(),
                message: blocked.message.clone(),
            }),
        }
    });
    Report { clusters: clusters.collect() }
}

/// One block for each cluster, and a last line about all of them.
fn text(plans: &[(Key, Plan)]) -> String {
    let mut text = String::new();
    for (key, plan) in plans {
        let _ = writeln!(text, "{key}: {}", headline(plan));
        text.push_str(&steps(plan));
        text.push('\n');
    }
    let sum = |count: fn(&Plan) -> usize| plans.iter().map(|(_, plan)| count(plan)).sum::<usize>();
    let parts = words::parts(&[
        (sum(|plan| plan.label.len()), "to claim"),
        (sum(|plan| plan.depart.len()), "to release now"),
        (sum(|plan| plan.waiting.len()), "to release when nobody uses them"),
    ]);
    let blocked = sum(|plan| usize::from(plan.blocked.is_some()));
    let _ = writeln!(
        text,
        "{}: {}, {}",
        words::count(plans.len(), "cluster"),
        parts.unwrap_or_else(|| "nothing to do".to_owned()),
        if blocked == 0 { "nothing blocked".to_owned() } else { format!("{blocked} blocked") },
    );
    text
}

/// A cluster in one line.
pub fn headline(plan: &Plan) -> String {
    let parts = words::parts(&[
        (plan.label.len(), "to claim"),
        (plan.depart.len(), "to release now"),
        (plan.waiting.len(), "to release when nobody uses them"),
    ]);
    let (have, asked) = plan.roles.iter().fold((0, 0), |(h, d), role| (h + role.claimed, d + role.desired));
    match (parts, plan.blocked.is_some()) {
        (Some(parts), false) => parts,
        (Some(parts), true) => format!("blocked; {parts}"),
        (None, false) => format!("nothing to do, {have} of {asked} hosts claimed"),
        (None, true) => format!("blocked, {have} of {asked} hosts claimed"),
    }
}

/// What is done to which host, what cannot be done, and what people should know.
pub fn steps(plan: &Plan) -> String {
    let mut text = String::new();
    for Label { host, role, restored, uid: _, resource_version: _, addresses: _ } in &plan.label {
        let restored = if *restored { ", labels restored" } else { "" };
        let _ = writeln!(text, "  + {host} {role}{}{restored}", domains(plan, host));
    }
    for depart in &plan.depart {
        let forced = if depart.forced { ", forced" } else { "" };
        let _ = writeln!(text, "  - {} {} release now{forced}", depart.host, depart.role);
    }
    for (role, host) in &plan.waiting {
        let _ = writeln!(text, "  - {host} {role} release when nobody uses it");
    }
    if let Some(blocked) = &plan.blocked {
        let _ = writeln!(text, "  ! {}: {}", blocked.reason, blocked.message);
    }
    for note in &plan.notes {
        let (kind, said) = note.parts();
        let _ = writeln!(text, "  ? {kind}: {said}");
    }
    text
}

/// ` (rack=r1)`: the domains a host was chosen in.
fn domains(plan: &Plan, host: &Key) -> String {
    let entry = plan.record.iter().find(|e| e.namespace == host.namespace && e.name == host.name);
    match entry.map(|HostRecord { domains, .. }| words::labels(domains)) {
        Some(labels) if !labels.is_empty() => format!(" ({labels})"),
        _ => String::new(),
    }
}
