//! Builders of hosts, clusters and sites for tests, and a world that carries plans out at once.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    SIPCluster, SIPClusterSpec,
    sipcluster::{HostRecord, HostState, Released, Replace},
};
use api_foreign::BareMetalHost;
use base::Key;
use jiff::Timestamp;

use crate::{
    claims::{self, Plan, Seen},
    host::{Claim, Host, Tenancy},
    network::Addresses,
    placement::{Level, Selector, Unfit},
    site::{Settings, Site},
    want::{Role, Want},
};

/// The namespace of the hosts in tests.
pub(crate) const METAL: &str = "metal";
/// The namespace of the clusters in tests.
pub(crate) const TENANT: &str = "tenant";
/// A role that is not the first in every decision.
pub(crate) const WORKER: &str = "Worker";
/// The role that is.
pub(crate) const PLANE: &str = "ControlPlane";

/// The key of a host.
pub(crate) fn metal(name: &str) -> Key {
    Key::new(METAL, name)
}

/// The key of a cluster.
pub(crate) fn tenant(name: &str) -> Key {
    Key::new(TENANT, name)
}

/// A host that is free and fit. Its uid is that of its name, so `of_uid` makes another host under the same name.
pub(crate) fn host(name: &str) -> Host {
    let mut host = Host::from(BareMetalHost::new(name, api_foreign::metal3::BareMetalHostSpec::default()));
    METAL.clone_into(&mut host.key.namespace);
    host.uid = format!("uid-{name}");
    host.resource_version = "1".into();
    host
}

/// So many hosts, `n0` and on, one per rack.
pub(crate) fn hosts(count: usize) -> Vec<Host> {
    (0..count).map(|n| host(&format!("n{n}")).label("rack", &format!("r{n}"))).collect()
}

impl Host {
    pub(crate) fn of_uid(mut self, uid: &str) -> Self {
        uid.clone_into(&mut self.uid);
        self
    }

    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    pub(crate) fn rack(self, rack: &str) -> Self {
        self.label("rack", rack)
    }

    pub(crate) fn claimed(mut self, cluster: &str, role: &str) -> Self {
        self.claim = Claim::By { cluster: tenant(cluster), role: role.into() };
        self
    }

    pub(crate) fn torn(mut self) -> Self {
        self.claim = Claim::Torn;
        self
    }

    pub(crate) fn used(mut self) -> Self {
        self.consumer = Some("Metal3Machine tenant/m".into());
        self.tenancy = Some(Tenancy { namespace: TENANT.into(), cluster: None });
        self
    }

    pub(crate) fn unused(mut self) -> Self {
        (self.consumer, self.tenancy) = (None, None);
        self
    }

    pub(crate) fn provisioned(mut self) -> Self {
        self.provisioned = true;
        self
    }

    pub(crate) fn in_error(mut self) -> Self {
        self.unfit = Some(Unfit::Error("no power".into()));
        self
    }

    pub(crate) fn released_from(mut self, cluster: &str, role: &str, at: Option<i64>, forced: bool) -> Self {
        let at = at.map(|s| Timestamp::from_second(s).expect("in range"));
        self.released =
            Some(Released { namespace: TENANT.into(), cluster: cluster.into(), role: role.into(), at, forced });
        self
    }

    pub(crate) fn forced(mut self, cluster: &str) -> Self {
        self.force_release = Some(tenant(cluster).to_string());
        self
    }

    pub(crate) fn keeps(mut self, network: &str, address: &str) -> Self {
        self.kept_addresses.get_or_insert_default().insert(network.into(), address.into());
        self
    }

    pub(crate) fn reads(mut self, secret: &str) -> Self {
        self.network_data = Some(metal(secret));
        self.credentials = Some(metal(secret));
        self
    }
}

/// A cluster that asks for nothing yet and was never whole.
pub(crate) fn cluster(name: &str) -> Want {
    let mut want = Want::from(&SIPCluster::new(name, SIPClusterSpec::default())).of(TENANT);
    want.uid = format!("uid-{name}");
    want.resource_version = "1".into();
    want
}

impl Want {
    pub(crate) fn asks(mut self, role: &str, active: u32) -> Self {
        self.roles.insert(role.into(), Role { active, ..Role::default() });
        self
    }

    fn change(mut self, role: &str, change: impl FnOnce(&mut Role)) -> Self {
        change(self.roles.get_mut(role).expect("asked for before"));
        self
    }

    pub(crate) fn standby(self, role: &str, standby: u32) -> Self {
        self.change(role, |r| r.standby = standby)
    }

    pub(crate) fn per_rack(self, role: &str, max_per_domain: u32) -> Self {
        self.change(role, |r| r.levels.push(Level { key: "rack".into(), max_per_domain }))
    }

    pub(crate) fn with(self, role: &str, key: &str, value: &str) -> Self {
        self.change(role, |r| {
            let labels = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
            let selector = k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector {
                match_labels: labels,
                match_expressions: None,
            };
            r.selector = Selector::parse(&selector).expect("a good selector");
        })
    }

    pub(crate) fn in_network(self, role: &str, network: &str) -> Self {
        self.change(role, |r| {
            r.networks.insert(network.into());
        })
    }

    pub(crate) fn holds(mut self, host: &str, role: &str, state: HostState) -> Self {
        self.record.push(HostRecord {
            namespace: METAL.into(),
            name: host.into(),
            uid: format!("uid-{host}"),
            role: role.into(),
            state,
            domains: BTreeMap::new(),
            addresses: Addresses::new(),
        });
        self
    }

    pub(crate) fn established(mut self) -> Self {
        self.established = true;
        self
    }

    pub(crate) fn created(mut self, second: i64) -> Self {
        self.created = second;
        self
    }

    pub(crate) fn deleting(mut self) -> Self {
        self.deleting = true;
        self.roles.clear();
        self
    }

    pub(crate) fn replacing(mut self) -> Self {
        self.replace = Replace::WhenUnconsumed;
        self
    }
}

/// A site whose plans are carried out at once and without fault.
pub(crate) struct World {
    pub(crate) site: Site,
    departed: BTreeMap<Key, BTreeSet<Key>>,
    writes: u64,
}

/// A world of these hosts and clusters in which network data and credentials play no part.
pub(crate) fn world(hosts: impl IntoIterator<Item = Host>, clusters: impl IntoIterator<Item = Want>) -> World {
    let settings = Settings { host_namespaces: None, secrets_known: false, ..Settings::default() };
    let mut world = World { site: Site::new(settings), departed: BTreeMap::new(), writes: 1 };
    for host in hosts {
        world.site.put_host(host);
    }
    for cluster in clusters {
        world.site.put_cluster(cluster);
    }
    world
}

impl World {
    /// The plan for a cluster as things stand.
    pub(crate) fn plan(&mut self, cluster: &str) -> Plan {
        let key = tenant(cluster);
        let want = self.site.cluster(&key).expect("a known cluster").clone();
        let seen = Seen { departed: self.departed.get(&key).cloned().unwrap_or_default(), ..Seen::default() };
        claims::plan(&want, &mut self.site, &seen)
    }

    /// Changes a host behind the back of everybody.
    pub(crate) fn edit(&mut self, host: &str, change: impl FnOnce(Host) -> Host) {
        let host = (**self.site.host(&metal(host)).expect("a known host")).clone();
        self.write(change(host));
    }

    /// Changes a cluster, its spec or its record.
    pub(crate) fn edit_cluster(&mut self, cluster: &str, change: impl FnOnce(Want) -> Want) {
        let want = (**self.site.cluster(&tenant(cluster)).expect("a known cluster")).clone();
        self.site.put_cluster(change(want));
    }

    fn write(&mut self, mut host: Host) {
        self.writes += 1;
        host.resource_version = self.writes.to_string();
        self.site.put_host(host);
    }

    /// Carries out one plan for a cluster, at second `now`, and returns it.
    pub(crate) fn turn(&mut self, cluster: &str, now: i64) -> Plan {
        let plan = self.plan(cluster);
        let key = tenant(cluster);
        let (record, established) = (plan.record.clone(), plan.established);
        self.edit_cluster(cluster, |want| Want { record, established, ..want });
        for label in &plan.label {
            let mut host = (**self.site.host(&label.host).expect("planned on")).clone();
            host.claim = Claim::By { cluster: key.clone(), role: label.role.clone() };
            host.kept_addresses = Some(label.addresses.clone());
            host.released = None;
            self.write(host);
        }
        for depart in &plan.depart {
            let mut host = (**self.site.host(&depart.host).expect("planned on")).clone();
            if depart.labelled {
                host.claim = Claim::Free;
            }
            let at = Timestamp::from_second(now).expect("in range");
            host.released = depart.released(&key, Some(at)).or(host.released);
            self.departed.entry(key.clone()).or_default().insert(depart.host.clone());
            if depart.forced {
                host.force_release = None;
            }
            self.write(host);
        }
        if plan.depart.is_empty() {
            self.departed.remove(&key);
        }
        plan
    }

    /// Carries out plans for a cluster until nothing is left to do, at second 0; the last plan.
    pub(crate) fn settle(&mut self, cluster: &str) -> Plan {
        for _ in 0..20 {
            let before = self.site.cluster(&tenant(cluster)).expect("a known cluster").record.clone();
            let plan = self.turn(cluster, 0);
            if plan.label.is_empty() && plan.depart.is_empty() && plan.record == before {
                return plan;
            }
        }
        panic!("cluster {cluster} does not come to rest");
    }

    /// The names of the hosts labelled for a cluster.
    pub(crate) fn labelled(&self, cluster: &str) -> Vec<String> {
        self.site.labelled(&tenant(cluster)).map(|key| key.name.clone()).collect()
    }
}

/// The record of a plan, one text per host: `n1 Worker Chosen`.
pub(crate) fn record(plan: &Plan) -> Vec<String> {
    plan.record.iter().map(|e| format!("{} {} {:?}", e.name, e.role, e.state)).collect()
}

/// The names of the hosts that a plan labels.
pub(crate) fn labels(plan: &Plan) -> Vec<&str> {
    plan.label.iter().map(|l| l.host.name.as_str()).collect()
}

/// The names of the hosts that a plan lets go.
pub(crate) fn departs(plan: &Plan) -> Vec<&str> {
    plan.depart.iter().map(|d| d.host.name.as_str()).collect()
}

/// The kinds of the notes of a plan.
pub(crate) fn notes(plan: &Plan) -> Vec<&'static str> {
    plan.notes.iter().map(|n| n.parts().0).collect()
}

/// Reason and text of what blocks a plan; empty when nothing does.
pub(crate) fn blocked(plan: &Plan) -> String {
    plan.blocked.as_ref().map_or_else(String::new, |b| format!("{}: {}", b.reason, b.message))
}
