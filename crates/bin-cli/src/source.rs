//! Where `plan` and `explain` look: files or the live cluster, and the settings of the manager that would decide.

use std::{collections::BTreeSet, path::PathBuf};

use jiff::Timestamp;
use plan_sip::{
    host::Host,
    site::{Settings, Site},
};

use crate::{
    input::{self, Bad, BadInput, Objects},
    live,
    site::{self, Known},
    words,
};

/// Stands for all namespaces.
const ALL: &str = "*";
/// What the manager takes unless it is told otherwise.
const QUARANTINE: i64 = 60;

/// Where to look, and with which settings of the manager.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Source {
    /// Files with SIPClusters, BareMetalHosts and Secrets (YAML or JSON, any number of documents), directories, or `-`
    /// for standard input; of an object given twice the later one counts. Network data and credentials count as usable
    /// unless there is a Secret that a host names. Without -f: the live cluster, which is only read
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,

    /// Read directories in directories too
    #[arg(short = 'R', long, requires = "files")]
    pub recursive: bool,

    /// Look at the live cluster as it would be with the files applied: what they hold counts in place of what is there
    /// under the same names, each with its present status. Nothing is written
    #[arg(long, requires = "files")]
    pub live: bool,

    /// Namespaces whose hosts every SIPCluster may take, beside those of its own, as the manager is told; `*` for all.
    /// Default: of files all, of a live cluster what its manager is told
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub host_namespaces: Option<Vec<String>>,

    /// How many seconds a released host is nobody's, as the manager is told. With files, hosts in quarantine stay so
    /// unless this is given
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..=86400))]
    pub quarantine: Option<i64>,

    /// Context of the kubeconfig. Default: the current one
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// What there is to decide on.
pub struct World {
    /// The objects.
    pub objects: Objects,
    /// The same, as decisions read them.
    pub site: Site,
    /// What people should know about the input.
    pub notes: Vec<String>,
}

impl Source {
    /// Reads everything.
    pub async fn read(&self) -> anyhow::Result<World> {
        if self.files.is_empty() || self.live {
            return self.live().await;
        }
        if self.context.is_some() {
            let why = "is of no use to files alone; with --live they are looked at as applied to that cluster";
            return Err(BadInput(vec![Bad::whole("--context", why)]).into());
        }
        let (objects, bad) = input::load(&self.files, self.recursive);
        if !bad.is_empty() {
            return Err(BadInput(bad).into());
        }
        let mut notes = ignored(&objects);
        if self.host_namespaces.is_none() && foreign_hosts(&objects) {
            notes.push(
                "hosts of all namespaces are candidates; --host-namespaces narrows that as the manager does".into(),
            );
        }
        if objects.clusters.is_empty() {
            notes.push("there is no SIPCluster in the input".into());
        }
        let secrets_known = objects.name_secrets();
        if !secrets_known && !objects.secrets.is_empty() && !objects.hosts.is_empty() {
            notes.push(
                "Secrets are given, and no host names any of them: network data and credentials count as usable".into(),
            );
        }
        notes.extend(rebuilt(&objects));
        let settings = Settings {
            host_namespaces: self.namespaces_or(None),
            quarantine: self.quarantine.unwrap_or(QUARANTINE),
            secrets_known,
        };
        let known = Known { unreadable: BTreeSet::new(), now: self.quarantine.map(|_| Timestamp::now()) };
        let site = site::site(&objects, settings, &known);
        Ok(World { objects, site, notes })
    }

    /// The namespaces given, where some are; none: all.
    fn namespaces_or(&self, default: Option<BTreeSet<String>>) -> Option<BTreeSet<String>> {
        let Some(given) = &self.host_namespaces else { return default };
        let given: BTreeSet<String> = given.iter().map(|n| n.trim().to_owned()).filter(|n| !n.is_empty()).collect();
        (!given.contains(ALL)).then_some(given)
    }

    async fn live(&self) -> anyhow::Result<World> {
        let live::Cluster { objects, unreadable, manager, mut notes } =
            live::read(self.context.as_deref(), &self.files, self.recursive).await?;
        notes.extend(ignored(&objects));
        let told = manager.unwrap_or_else(|| {
            if self.host_namespaces.is_none() || self.quarantine.is_none() {
                notes.push(format!(
                    "no manager of SIPClusters can be seen in this cluster: its defaults are taken, hosts of namespace {}",
                    live::Manager::default().namespaces.into_iter().collect::<Vec<_>>().join(", ")
                ));
            }
            live::Manager::default()
        });
        let settings = Settings {
            host_namespaces: self.namespaces_or(told.host_namespaces()),
            quarantine: self.quarantine.unwrap_or(told.quarantine),
            secrets_known: true,
        };
        let site = site::site(&objects, settings, &Known { unreadable, now: Some(Timestamp::now()) });
        Ok(World { objects, site, notes })
    }
}

/// Whether there are hosts in a namespace that is not their cluster's own.
fn foreign_hosts(objects: &Objects) -> bool {
    objects.clusters.iter().any(|cluster| objects.hosts.iter().any(|host| host.key.namespace != cluster.key.namespace))
}

/// SIPClusters without status whose labels are on hosts: the manager would take them for restored ones, and rebuild their
/// record from the labels, as is done here; people mostly mean a change to a live cluster.
fn rebuilt(objects: &Objects) -> Vec<String> {
    let mut notes = Vec::new();
    for cluster in objects.clusters.iter().filter(|cluster| cluster.object.status.is_none()) {
        let hosts = objects.hosts.iter().map(|found| Host::from(found.object.clone()));
        let own = hosts.filter(|host| host.is_claimed_by(&cluster.key)).count();
        if own > 0 {
            let (number, are) = (words::count(own, "host"), if own == 1 { "is" } else { "are" });
            notes.push(format!(
                "SIPCluster {} is given without status, and {number} {are} labelled for it: it is taken for one restored \
                 from a backup, whose record is rebuilt from the labels; --live takes the status of the live one",
                cluster.key
            ));
        }
    }
    notes
}

/// What was in the files and decides nothing.
pub fn ignored(objects: &Objects) -> Vec<String> {
    let others: Vec<String> = objects.others.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let ignored = if others.is_empty() { None } else { Some(format!("ignored: {}", others.join(", "))) };
    objects.twice.iter().cloned().chain(ignored).collect()
}
