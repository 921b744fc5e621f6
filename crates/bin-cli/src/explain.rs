//! `slipway explain`: why one SIPCluster is as it is, and what would change that.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use api::{SIPCluster, sipcluster::HostState};
use base::Key;
use plan_sip::{
    claims::{self, Seen},
    order::Rank,
    placement::Standing,
    site::Site,
    want::{Role, Want},
};

use crate::{
    input::{Bad, BadInput},
    plan::{Answer, headline, steps},
    source::{Source, World},
    words,
};

/// Arguments of `slipway explain`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The SIPCluster
    #[arg(value_name = "NAMESPACE/NAME")]
    cluster: String,
    #[command(flatten)]
    source: Source,
    /// More files
    #[arg(value_name = "FILE", hide = true, requires = "files")]
    more: Vec<PathBuf>,
}

/// Explains one SIPCluster.
pub async fn run(mut args: Args) -> anyhow::Result<Answer> {
    let cluster = named(&mut args)?;
    let World { objects, mut site, notes } = args.source.read().await?;
    let Some(found) = objects.clusters.iter().find(|found| found.key == cluster) else {
        let known: Vec<String> = objects.clusters.iter().map(|found| found.key.to_string()).collect();
        let there = if known.is_empty() {
            "there is none at all".to_owned()
        } else {
            format!("there are: {}", words::few(&known))
        };
        let why = format!("is not there; {there}");
        return Err(BadInput(vec![Bad::whole(format!("SIPCluster {cluster}"), why)]).into());
    };
    let (text, blocked) = explain(&found.object, &cluster, &mut site);
    Ok(Answer { text, notes, blocked })
}

/// The SIPCluster among the names given; whatever else is among them are more files after `-f`, as in `-f a.yaml b.yaml`.
fn named(args: &mut Args) -> anyhow::Result<Key> {
    let mut names = vec![std::mem::take(&mut args.cluster)];
    names.extend(args.more.drain(..).map(|path| path.to_string_lossy().into_owned()));
    let is_cluster = |name: &String| name.parse::<Key>().is_ok() && !Path::new(name).exists();
    let Some(found) = names.iter().position(is_cluster) else {
        let why = "is no SIPCluster: name it as NAMESPACE/NAME";
        return Err(BadInput(vec![Bad::whole(format!("{:?}", names.join(" ")), why)]).into());
    };
    let cluster = names.remove(found).parse().expect("it was parsed a moment ago");
    args.source.files.extend(names.into_iter().map(PathBuf::from));
    Ok(cluster)
}

/// The explanation, and whether the cluster is blocked.
fn explain(sip: &SIPCluster, key: &Key, site: &mut Site) -> (String, bool) {
    let (place, all) = serve_those_before(key, site);
    let Some(want) = site.cluster(key).cloned() else { return (String::new(), false) };
    let mut text = String::new();
    let roles: Vec<String> = want.roles.iter().map(|(name, role)| about_role(name, role, &want, site)).collect();
    let plan = claims::plan(&want, site, &Seen::default());

    let _ = writeln!(text, "{key}: {}", headline(&plan));
    if all > 1 {
        let _ = writeln!(
            text,
            "  served as number {place} of {} by unfinished choices, lost hosts, age",
            words::count(all, "cluster")
        );
    }
    if want.deleting {
        let _ =
            writeln!(text, "  is being deleted: hosts go as soon as nobody uses them, services after the last host");
    }
    if !want.established && !want.record.is_empty() {
        let _ = writeln!(text, "  has not been whole yet: it gets all its hosts or none");
    }
    text.push_str(&roles.concat());
    text.push_str(&record(&want, site));
    let steps = steps(&plan);
    if !steps.is_empty() {
        let _ = write!(text, "\nnow\n{steps}");
    }
    if let Some(since) = sip.status.as_ref().and_then(|status| status.blocked.as_ref()).map(|blocked| &blocked.since.0)
    {
        let _ = writeln!(text, "  blocked since {since}, as its status says");
    }
    text.push_str(&status(sip));
    (text, plan.blocked.is_some())
}

/// Decides about the clusters that are served before this one. Its place, and how many there are.
fn serve_those_before(key: &Key, site: &mut Site) -> (usize, usize) {
    let mut ranks: Vec<Rank> = site.clusters().map(|want| Rank::of(want, site)).collect();
    ranks.sort();
    let before = ranks.iter().position(|rank| rank.key() == key).unwrap_or(ranks.len());
    for rank in &ranks[..before] {
        let Some(want) = site.cluster(rank.key()).cloned() else { continue };
        let plan = claims::plan(&want, site, &Seen::default());
        site.put_cluster(Want { record: plan.record, ..(*want).clone() });
    }
    (before + 1, ranks.len())
}

/// What a role asks for, and what became of every host that it matches.
fn about_role(name: &str, role: &Role, want: &Want, site: &mut Site) -> String {
    let lacking: BTreeMap<Key, String> = site.without_address(&role.networks).into_iter().collect();
    let namespaces = site.namespaces(&want.key);
    let recorded: BTreeSet<Key> = want
        .record
        .iter()
        .filter(|entry| entry.role == name && entry.state != HostState::Releasing)
        .map(|entry| Key::new(&entry.namespace, &entry.name))
        .collect();
    let (mut matching, mut own, mut free) = (0, 0, Vec::new());
    let mut dropped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for host in site.hosts().filter(|host| role.selector.matches(&host.labels)) {
        matching += 1;
        let label = role.levels.iter().find(|level| !host.labels.contains_key(&level.key));
        let standing = site.standing(&host.key);
        let (why, detail) = match standing {
            Some(Standing::Taken { by, .. }) if *by == want.key => {
                own += 1;
                continue;
            }
            _ if !namespaces.allow(&host.key.namespace) => {
                ("in a namespace this cluster may not take from".to_owned(), String::new())
            }
            Some(Standing::Candidate) => match (lacking.get(&host.key), label) {
                (Some(network), _) => (format!("without an address in network {network}"), String::new()),
                (None, Some(level)) => (format!("without label {}", level.key), String::new()),
                (None, None) => {
                    free.push(host.clone());
                    continue;
                }
            },
            Some(standing) => {
                let said = standing.to_string();
                // What is special about one host is in brackets, and said with its name.
                match said.split_once(" (") {
                    Some((why, detail)) => (why.to_owned(), format!(" ({detail}")),
                    None => (said, String::new()),
                }
            }
            None => continue,
        };
        dropped.entry(why).or_default().push(format!("{}{detail}", host.key));
    }
    let have = recorded.len();
    let asked = role.asked() as usize;
    let mut text = format!(
        "\n{name}: {} asked ({} active, {} standby), {have} claimed, {} free\n",
        words::count(asked, "host"),
        role.active,
        role.standby,
        free.len(),
    );
    let _ = writeln!(text, "  selector  {}", role.selector);
    for level in &role.levels {
        let domains: BTreeSet<String> = free.iter().filter_map(|host| host.labels.get(&level.key).cloned()).collect();
        let domains: Vec<String> = domains.into_iter().collect();
        let (most, key) = (level.max_per_domain, &level.key);
        let free_in =
            if domains.is_empty() { String::new() } else { format!("; free hosts in {}", words::few(&domains)) };
        let _ = writeln!(text, "  spread    at most {most} per {key}{free_in}");
    }
    for network in &role.networks {
        let _ = writeln!(text, "  address   in network {network}");
    }
    let own = if own > 0 { format!(", {own} of them this cluster's") } else { String::new() };
    let _ = writeln!(text, "  hosts     {matching} match{own}");
    if !free.is_empty() {
        let names: Vec<String> = free.iter().map(|host| host.key.to_string()).collect();
        let _ = writeln!(text, "    {} free: {}", free.len(), words::few(&names));
    }
    for (why, hosts) in &dropped {
        let _ = writeln!(text, "    {} {why}: {}", hosts.len(), words::few(hosts));
    }
    text
}

/// The hosts of the record.
fn record(want: &Want, site: &Site) -> String {
    let mut text = String::new();
    for entry in &want.record {
        let key = Key::new(&entry.namespace, &entry.name);
        let addresses: Vec<String> =
            entry.addresses.iter().map(|(network, address)| format!("{network} {address}")).collect();
        let mut parts = vec![format!("{:?}", entry.state), words::labels(&entry.domains), addresses.join(", ")];
        match site.host(&key).filter(|host| host.uid == entry.uid) {
            None => parts.push("gone".to_owned()),
            Some(host) => {
                parts.extend(host.in_use().then(|| format!("used by {}", host.user())));
                parts.extend(host.bad().map(ToString::to_string));
            }
        }
        parts.retain(|part| !part.is_empty());
        let _ = writeln!(text, "  {key} {}: {}", entry.role, parts.join("; "));
    }
    if text.is_empty() { text } else { format!("\nhosts of this cluster\n{text}") }
}

/// The conditions, as the manager wrote them.
fn status(sip: &SIPCluster) -> String {
    let mut text = String::new();
    let Some(status) = &sip.status else { return text };
    for condition in &status.conditions {
        let message = if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
        let _ = writeln!(text, "  {}={} {}{message}", condition.type_, condition.status, condition.reason);
    }
    match (text.is_empty(), status.observed_generation, sip.metadata.generation) {
        (true, ..) => String::new(),
        (false, Some(seen), Some(now)) if seen < now => {
            format!("\nconditions (of an earlier spec: generation {seen}, now {now})\n{text}")
        }
        _ => format!("\nconditions\n{text}"),
    }
}
