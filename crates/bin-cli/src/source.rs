//! Where `plan` and `explain` look: files or the live cluster, and the settings of the manager that would decide.

use std::{collections::BTreeSet, path::PathBuf};

use base::Key;
use jiff::Timestamp;
use plan_sip::{
    host::Host,
    site::{Settings, Site},
};

use crate::{
    input::{self, BadInput, Objects},
    live,
    site::{self, Known},
};

/// Stands for all namespaces.
const ALL: &str = "*";
/// What the manager takes unless it is told otherwise.
const QUARANTINE: i64 = 60;

/// Where to look, and with which settings of the manager.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Source {
    /// Files with SIPClusters, BareMetalHosts and Secrets (YAML or JSON, any number of documents), directories, or `-`
    /// for standard input. Without it: the live cluster, which is only read
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1..)]
    pub files: Vec<PathBuf>,

    /// Read directories in directories too
    #[arg(short = 'R', long, requires = "files")]
    pub recursive: bool,

    /// Namespaces whose hosts every SIPCluster may take, beside those of its own, as the manager is told; `*` for all.
    /// Default: of files all, of a live cluster what its manager is told
    #[arg(long, value_name = "NAMESPACE", value_delimiter = ',')]
    pub host_namespaces: Option<Vec<String>>,

    /// How many seconds a released host is nobody's, as the manager is told. With files, hosts in quarantine stay so
    /// unless this is given
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..=86400))]
    pub quarantine: Option<i64>,

    /// Context of the kubeconfig. Default: the current one
    #[arg(long, value_name = "NAME", conflicts_with = "files")]
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
        if self.files.is_empty() {
            return self.live().await;
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
        if useless(&objects) {
            notes.push("Secrets are given, and no host names any of them: no host has usable network data".into());
        }
        let settings = Settings {
            host_namespaces: self.namespaces_or(None),
            quarantine: self.quarantine.unwrap_or(QUARANTINE),
            secrets_known: !objects.secrets.is_empty(),
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
        let live::Cluster { objects, unreadable, manager, mut notes } = live::read(self.context.as_deref()).await?;
        let told = manager.unwrap_or_else(|| {
            if self.host_namespaces.is_none() || self.quarantine.is_none() {
                notes.push(format!(
                    "no manager of SIPClusters can be seen in this cluster: its defaults are taken, hosts of namespace {}",
                    live::Manager::default().host_namespaces.into_iter().collect::<Vec<_>>().join(", ")
                ));
            }
            live::Manager::default()
        });
        let settings = Settings {
            host_namespaces: self.namespaces_or(Some(told.host_namespaces)),
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

/// Whether there are Secrets, and none that a host names.
fn useless(objects: &Objects) -> bool {
    let given: BTreeSet<&Key> = objects.secrets.iter().map(|found| &found.key).collect();
    let mut hosts = objects.hosts.iter().map(|found| Host::from(found.object.clone()));
    let named =
        |host: Host| [host.network_data, host.credentials].into_iter().flatten().any(|key| given.contains(&key));
    !given.is_empty() && !objects.hosts.is_empty() && !hosts.any(named)
}

/// What was in the files and decides nothing.
pub fn ignored(objects: &Objects) -> Vec<String> {
    let others: Vec<String> = objects.others.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if others.is_empty() { Vec::new() } else { vec![format!("ignored: {}", others.join(", "))] }
}
