//! What holds for every tenant, whatever its hosts are called and wherever they say they are.

use api::sipcluster::{Common, ServiceType};
use proptest::prelude::*;

use super::*;

fn common() -> impl Strategy<Value = Common> {
    let service_type = prop_oneof![
        3 => Just(None),
        1 => Just(Some(ServiceType::ClusterIP)),
        1 => Just(Some(ServiceType::NodePort)),
    ];
    let network = prop_oneof![4 => Just(Some("oam".to_owned())), 1 => Just(None), 1 => Just(Some("pxe".to_owned()))];
    let image = prop_oneof![4 => Just("haproxy:1".to_owned()), 1 => Just(String::new())];
    (service_type, network, image, proptest::option::of(1..4)).prop_map(|(service_type, network, image, replicas)| {
        Common { service_type, node_interface_id: network, image, replicas, ..Common::default() }
    })
}

fn named<T>(entries: Vec<(Common, T)>) -> Vec<(Common, T)> {
    let name = |(n, (common, rest))| (Common { name: (n > 0).then(|| format!("e{n}")), ..common }, rest);
    entries.into_iter().enumerate().map(name).collect()
}

fn host() -> impl Strategy<Value = Backend> {
    let name = prop_oneof![3 => "node0[1-4]", 1 => ".{0,12}", 1 => "a\n  server [a-c] 192.0.2.9:1"];
    let role = prop_oneof![Just(CONTROL_PLANE), Just(WORKER), Just("Storage")];
    let address = prop_oneof![
        3 => (1u8..20).prop_map(|n| format!("192.0.2.{n}")),
        1 => (1u8..20).prop_map(|n| format!("2001:db8::{n:x}/64")),
        1 => ".{0,20}",
        1 => Just("192.0.2.3\n  server evil 203.0.113.66".to_owned()),
    ];
    (prop_oneof![Just("metal"), Just("other")], name, role, address, any::<bool>()).prop_map(
        |(namespace, name, role, address, leaving)| Backend {
            host: Key::new(namespace, name),
            role: role.to_owned(),
            addresses: BTreeMap::from([("oam".to_owned(), address)]),
            bmc_address: String::new(),
            bmc_insecure: false,
            leaving,
        },
    )
}

fn tenant() -> impl Strategy<Value = Tenant> {
    let control_plane = proptest::collection::vec((common(), Just(())), 0..3);
    let worker = proptest::collection::vec((common(), 1..4i32), 0..3);
    (control_plane, worker, proptest::collection::vec(host(), 0..8)).prop_map(|(control_plane, worker, hosts)| {
        let mut tenant = Tenant::new();
        let services = &mut tenant.spec.services;
        services.load_balancer_control_plane = named(control_plane)
            .into_iter()
            .zip(30_000..)
            .map(|((common, ()), node_port)| LoadBalancerControlPlane { common, node_port })
            .collect();
        services.load_balancer_worker = named(worker)
            .into_iter()
            .zip((30_100..).step_by(10))
            .map(|((common, ports), start)| LoadBalancerWorker {
                common,
                node_port_range: NodePortRange { start, end: start + ports },
                node_port: None,
            })
            .collect();
        tenant.backends = hosts;
        tenant
    })
}

fn text() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(prop_oneof![
        Just("# {{len .Servers}}\n".to_owned()),
        Just("{{range .Servers}}server {{.Name}} {{.IP}}\n{{end}}".to_owned()),
        Just("{{(index .Servers 1).Name}}\n".to_owned()),
        Just("{{ if }}".to_owned()),
        ".{0,40}",
    ])
}

fn pods() -> impl Strategy<Value = Vec<Pod>> {
    let one = (any::<bool>(), 0i64..200, 0usize..3, any::<bool>());
    proptest::collection::vec(one, 0..4).prop_map(|pods| {
        let pod = |(n, (ready, age, instance, reports)): (usize, (bool, i64, usize, bool))| Pod {
            ready,
            ready_since: NOW - age,
            instance: [CONTROL_PLANE_INSTANCE, WORKER_INSTANCE, "loadbalancer-worker-blue-old"][instance].to_owned(),
            report: reports.then(Report::default),
            ..pod(&format!("pod-{n}"))
        };
        pods.into_iter().enumerate().map(pod).collect()
    })
}

/// What is there after an earlier spec of the same SIPCluster, with a template and pods.
fn seen() -> impl Strategy<Value = Seen> {
    (proptest::option::of(tenant()), text(), text(), pods()).prop_map(|(earlier, first, then, pods)| {
        let mut seen = before();
        let give = |seen: &mut Seen, text: Option<String>| {
            seen.templates =
                text.map(|text| ("loadBalancerControlPlane.cfg".to_owned(), template(&text))).into_iter().collect();
        };
        give(&mut seen, first);
        if let Some(earlier) = earlier {
            let plan = earlier.plan(&seen);
            seen = after(seen, &plan);
        }
        give(&mut seen, then);
        seen.pods = pods;
        seen
    })
}

/// Every configuration that is there.
fn configurations(seen: &Seen) -> Vec<String> {
    let secrets = seen.objects.keys().filter(|(kind, _)| *kind == Kind::Secret);
    secrets.flat_map(|(_, name)| ["haproxy.cfg", "candidate.cfg"].map(|key| value(seen, name, key))).flatten().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_carried_out_plan_leaves_nothing_to_do(tenant in tenant(), seen in seen()) {
        let done = after(seen.clone(), &tenant.plan(&seen));
        let rest = tenant.plan(&Seen { published: seen.published, ..done });
        prop_assert!(rest.steps.is_empty(), "{rest}");
    }

    #[test]
    fn what_is_published_brings_one_more_change_at_most(tenant in tenant(), seen in seen()) {
        let made = after(seen.clone(), &tenant.plan(&seen));
        let published = after(made.clone(), &tenant.plan(&made));
        let pinned = after(published.clone(), &tenant.plan(&published));
        let rest = tenant.plan(&pinned);
        prop_assert!(rest.steps.is_empty(), "{rest}");
        prop_assert_eq!(Some(rest.endpoints), pinned.published);
    }

    #[test]
    fn a_plan_is_a_function_of_the_hosts_and_not_of_their_order(tenant in tenant(), seen in seen()) {
        let mut turned = tenant.clone();
        turned.backends.reverse();
        let twins = turned.backends.iter().any(|a| turned.backends.iter().filter(|b| b.host == a.host).count() > 1);
        prop_assume!(!twins);
        prop_assert_eq!(tenant.plan(&seen), turned.plan(&seen));
    }

    #[test]
    fn configurations_name_hosts_that_stay_and_no_others(tenant in tenant(), seen in seen()) {
        let done = after(seen.clone(), &tenant.plan(&seen));
        let stays = |address: &str| tenant.backends.iter().any(|backend| {
            let bare = backend.addresses["oam"].split('/').next().unwrap_or_default().trim().parse::<std::net::IpAddr>();
            !backend.leaving && bare.is_ok_and(|bare| bare.to_string() == address)
        });
        for text in configurations(&done) {
            for line in text.lines().filter(|line| line.starts_with("  server ")) {
                let words: Vec<&str> = line.split_whitespace().collect();
                prop_assert_eq!(words.len(), 3, "{}", line);
                let (address, _port) = words[2].rsplit_once(':').expect("a port");
                prop_assert!(stays(address.trim_matches(['[', ']'])), "{}", text);
            }
        }
    }

    #[test]
    fn servers_of_one_configuration_have_names_of_their_own(tenant in tenant()) {
        let done = after(before(), &tenant.plan(&before()));
        for text in configurations(&done) {
            let (backend, _) = text.split_once("\nfrontend ").map_or((text.as_str(), ""), |(_, rest)| {
                rest.split_once("\nfrontend ").unwrap_or((rest, ""))
            });
            let mut names: Vec<&str> =
                backend.lines().filter(|line| line.starts_with("  server ")).map(|line| line.split(' ').nth(3).unwrap_or_default()).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            prop_assert_eq!(names.len(), all, "{}", text);
        }
    }

    #[test]
    fn a_host_that_leaves_is_confirmed_only_if_no_pod_that_counts_may_have_it(tenant in tenant(), seen in seen()) {
        let plan = tenant.plan(&seen);
        prop_assert!(plan.confirmed.iter().all(|host| tenant.backends.iter().any(|b| b.leaving && b.host == *host)));
        // These pods report nothing of use, so one that counts holds every leaving host that it may have had.
        let holds = |pod: &Pod| (pod.ready || NOW - pod.ready_since < 60) && pod.instance == WORKER_INSTANCE;
        let entry = tenant.spec.services.load_balancer_worker.first();
        let on_network = entry.is_none_or(|entry| entry.common.node_interface_id.as_deref() != Some("pxe"));
        if seen.pods.iter().any(holds) && on_network {
            let twins = |host: &Key| tenant.backends.iter().filter(|b| b.host == *host).count() > 1;
            for host in &plan.confirmed {
                let worker = tenant.backends.iter().find(|b| b.host == *host && b.role == WORKER);
                let usable = worker.is_some_and(|b| {
                    b.addresses["oam"].split('/').next().unwrap_or_default().trim().parse::<std::net::IpAddr>().is_ok()
                });
                prop_assert!(!usable || twins(host), "{host} is held by a pod");
            }
        }
    }

    #[test]
    fn at_the_end_nothing_is_left(tenant in tenant(), seen in seen()) {
        let gone = Tenant { gone: true, ..tenant };
        let done = after(seen.clone(), &gone.plan(&seen));
        prop_assert!(done.objects.is_empty());
        prop_assert!(gone.plan(&done).steps.is_empty());
    }
}
