//! What becomes of a host after its release: nobody's for a while, because an old consumer may write late.
//!
//! ```text
//!                    nobody uses it for the whole quarantine
//!   released ───────────────────────────────────────────────► free (annotation off)
//!      │ somebody uses it again ──► not of the tenant it had: it stays without labels, and people are told
//!      ▼ of the tenant it had
//!   labels go back to the cluster it had (that takes it up again from its labels)
//!
//!   released by force, in use ── nobody uses it any more ──► released by force, quarantine begins ──► free
//! ```
//!
//! Metal3's provider writes consumerRef without a resourceVersion, so a write decided before the release can land after it.

use api::sipcluster::Released;
use base::Key;
use jiff::Timestamp;

use crate::{
    host::{Claim, Host},
    site::Site,
};

/// What to do with a host that is not claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing, for ever or until it changes.
    Rest,
    /// Look again at this time.
    Until(Timestamp),
    /// Write the annotation like this: the quarantine begins.
    Begin(Released),
    /// Take the annotation off: the host is free.
    End,
    /// Give the labels back to this cluster, and take the annotation off.
    Return {
        /// The cluster.
        cluster: Key,
        /// The role the host had.
        role: String,
    },
    /// Nothing: the host was released from this cluster, and whoever uses it now is not of its tenant.
    Stranger {
        /// The cluster.
        cluster: Key,
    },
    /// Take the labels off a host whose SIPCluster is gone, and write this annotation: the quarantine begins.
    Abandon(Released),
    /// Take the annotation off a host that is claimed: it has served its purpose.
    Clear,
}

/// Decides what to do with a host at `now`.
pub fn turn(host: &Host, site: &Site, now: Timestamp) -> Turn {
    let Some(released) = &host.released else { return Turn::Rest };
    if host.claim != Claim::Free {
        return Turn::Clear;
    }
    let begin = || Turn::Begin(Released { at: Some(now), ..released.clone() });
    if host.in_use() {
        let cluster = Key::new(&released.namespace, &released.cluster);
        return match (released.forced, &released.at) {
            (true, Some(_)) => Turn::Begin(Released { at: None, ..released.clone() }),
            (false, _) if site.is_user_of(host, &cluster) => Turn::Return { cluster, role: released.role.clone() },
            (false, None) => begin(),
            (false, Some(_)) if host.consumer.is_some() && site.cluster(&cluster).is_some() => {
                Turn::Stranger { cluster }
            }
            (true, None) | (false, Some(_)) => Turn::Rest,
        };
    }
    let Some(at) = released.at.filter(|at| *at <= now) else { return begin() };
    let end = end(at, site.settings.quarantine).unwrap_or(Timestamp::MAX);
    if now >= end { Turn::End } else { Turn::Until(end) }
}

/// When a quarantine of so many seconds that began at `at` is over; `None`: never, as far as calendars go.
pub fn end(at: Timestamp, seconds: i64) -> Option<Timestamp> {
    at.checked_add(jiff::SignedDuration::from_secs(seconds)).ok()
}

/// The release, at `now`, of a host whose SIPCluster is gone; `None`: somebody uses it, or no SIPCluster has it.
pub fn abandoned(host: &Host, now: Timestamp) -> Option<Turn> {
    let Claim::By { cluster, role } = &host.claim else { return None };
    let (namespace, name, role) = (cluster.namespace.clone(), cluster.name.clone(), role.clone());
    let released = Released { namespace, cluster: name, role, at: Some(now), forced: false };
    (!host.in_use()).then_some(Turn::Abandon(released))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{host::Tenancy, site::Settings, want::Want};
    use api_foreign::BareMetalHost;
    use rstest::rstest;
    use serde_json::json;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn host(consumed: bool, released: Option<Released>) -> Host {
        let consumer = consumed.then(|| json!({"kind": "Metal3Machine", "namespace": "metal3", "name": "x"}));
        let annotations = released.map(|r| json!({api::keys::RELEASED: serde_json::to_string(&r).expect("JSON")}));
        let object = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
            "metadata": {"name": "n1", "namespace": "metal3", "annotations": annotations},
            "spec": {"consumerRef": consumer},
        });
        Host::from(serde_json::from_value::<BareMetalHost>(object).expect("a host"))
    }

    fn released(second: Option<i64>, forced: bool) -> Released {
        let role = "Worker".to_owned();
        Released { namespace: "t".into(), cluster: "edge".into(), role, at: second.map(at), forced }
    }

    fn site() -> Site {
        let mut site = Site::new(Settings { quarantine: 60, ..Settings::default() });
        site.put_cluster(Want::from(&api::SIPCluster::new("edge", api::SIPClusterSpec::default())).of("t"));
        site
    }

    #[test]
    fn a_quarantine_ends_after_its_time_and_not_before() {
        let host = host(false, Some(released(Some(100), false)));
        assert_eq!(turn(&host, &site(), at(159)), Turn::Until(at(160)));
        assert_eq!(turn(&host, &site(), at(160)), Turn::End);
    }

    #[test]
    fn a_consumer_that_writes_late_brings_the_labels_back() {
        let host = host(true, Some(released(Some(100), false)));
        let back = Turn::Return { cluster: Key::new("t", "edge"), role: "Worker".into() };
        assert_eq!(turn(&host, &site(), at(120)), back);
        assert_eq!(turn(&host, &Site::default(), at(500)), Turn::Rest, "a cluster that is gone gets nothing back");
    }

    fn of_tenant(host: Host, namespace: &str, cluster: Option<&str>) -> Host {
        let tenancy = Tenancy { namespace: namespace.to_owned(), cluster: cluster.map(str::to_owned) };
        Host { tenancy: Some(tenancy), ..host }
    }

    #[rstest]
    #[case::of_the_cluster_of_its_name("metal3", Some("edge"), true)]
    #[case::of_another_tenant_with_hosts_there("metal3", Some("other"), false)]
    #[case::from_elsewhere("o", Some("edge"), false)]
    #[case::from_elsewhere_without_a_name("o", None, false)]
    fn only_the_tenant_that_a_host_had_brings_its_labels_back(
        #[case] namespace: &str,
        #[case] cluster: Option<&str>,
        #[case] back: bool,
    ) {
        let host = of_tenant(host(true, Some(released(Some(100), false))), namespace, cluster);
        let stranger = Turn::Stranger { cluster: Key::new("t", "edge") };
        let expected = Turn::Return { cluster: Key::new("t", "edge"), role: "Worker".into() };
        assert_eq!(turn(&host, &site(), at(120)), if back { expected } else { stranger });
    }

    #[test]
    fn who_was_seen_on_hosts_of_the_cluster_is_known_again() {
        let mut site = site();
        let late = |cluster| of_tenant(host(true, Some(released(Some(100), false))), "m", cluster);
        let claim = Claim::By { cluster: Key::new("t", "edge"), role: "Worker".into() };
        site.put_host(Host { claim, released: None, ..late(Some("capi")) });
        site.put_host(host(false, Some(released(Some(100), false))));
        assert!(matches!(turn(&late(Some("capi")), &site, at(120)), Turn::Return { .. }));
        assert!(matches!(turn(&late(Some("other")), &site, at(120)), Turn::Stranger { .. }));
        assert!(matches!(turn(&late(None), &site, at(120)), Turn::Stranger { .. }));
    }

    #[test]
    fn only_a_host_that_nobody_uses_is_given_up_by_a_cluster_that_is_gone() {
        let claimed = |consumed| {
            let claim = Claim::By { cluster: Key::new("t", "edge"), role: "Worker".into() };
            Host { claim, ..host(consumed, None) }
        };
        assert_eq!(abandoned(&claimed(false), at(100)), Some(Turn::Abandon(released(Some(100), false))));
        assert_eq!(abandoned(&claimed(true), at(100)), None);
        assert_eq!(abandoned(&host(false, None), at(100)), None, "it is nobody's");
    }

    #[test]
    fn a_forced_release_waits_for_its_user_and_then_serves_its_quarantine() {
        let used = host(true, Some(released(None, true)));
        assert_eq!(turn(&used, &site(), at(100)), Turn::Rest);
        let idle = host(false, Some(released(None, true)));
        assert_eq!(turn(&idle, &site(), at(100)), Turn::Begin(released(Some(100), true)));
        let again = host(true, Some(released(Some(100), true)));
        assert_eq!(turn(&again, &site(), at(120)), Turn::Begin(released(None, true)));
    }

    #[test]
    fn an_annotation_that_people_broke_begins_a_whole_quarantine() {
        let mut broken = host(false, Some(released(None, false)));
        assert!(matches!(turn(&broken, &site(), at(100)), Turn::Begin(Released { at: Some(t), .. }) if t == at(100)));
        broken.released = Some(released(Some(900), false));
        assert_eq!(
            turn(&broken, &site(), at(100)),
            Turn::Begin(released(Some(100), false)),
            "nor does one from the future hold for ever"
        );
    }
}
