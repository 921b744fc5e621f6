//! Where the services are reached: the type decides, and what is published stays.

use api::sipcluster::{Endpoint, EndpointSource, Endpoints, ServiceType};
use rstest::rstest;

use super::*;

fn endpoint(host: &str, port: i32, service_type: ServiceType) -> Endpoint {
    Endpoint {
        service: CONTROL_PLANE_INSTANCE.to_owned(),
        host: host.to_owned(),
        port,
        last_port: None,
        internal: service_type == ServiceType::ClusterIP,
        service_type: Some(service_type),
        source: Some(match service_type {
            ServiceType::NodePort => EndpointSource::Node,
            ServiceType::LoadBalancer | ServiceType::ClusterIP => EndpointSource::Service,
        }),
    }
}

fn from(source: EndpointSource, endpoint: Endpoint) -> Endpoint {
    Endpoint { source: Some(source), ..endpoint }
}

/// As versions published that did not say where a host came from.
fn of_old(endpoint: Endpoint) -> Endpoint {
    Endpoint { source: None, ..endpoint }
}

struct Case {
    service_type: ServiceType,
    cluster_ip: Option<&'static str>,
    external_host: Option<&'static str>,
    node_port: i32,
    /// Node port and ingress of the live Service; no Service if `None`.
    live: Option<(i32, Option<&'static str>)>,
    published: Option<Endpoint>,
}

fn case(service_type: ServiceType) -> Case {
    Case {
        service_type,
        cluster_ip: None,
        external_host: None,
        node_port: 30_000,
        live: Some((30_000, None)),
        published: None,
    }
}

fn plan_of(case: Case) -> Plan {
    let mut tenant = Tenant::new();
    tenant.spec.services.load_balancer_worker.clear();
    let Case { service_type, cluster_ip, external_host, node_port, live, published } = case;
    let entry = &mut tenant.spec.services.load_balancer_control_plane[0];
    entry.node_port = node_port;
    entry.common.service_type = Some(service_type);
    entry.common.cluster_ip = cluster_ip.map(str::to_owned);
    entry.common.external_host = external_host.map(str::to_owned);
    let mut seen = before();
    if let Some((node_port, ingress)) = live {
        let facts = Facts::Service {
            cluster_ip: "10.96.0.9".to_owned(),
            node_ports: vec![node_port],
            ingress: ingress.map(str::to_owned),
        };
        let key = (Kind::Service, CONTROL_PLANE_INSTANCE.to_owned());
        seen.objects.insert(key, Owned { uid: "uid".to_owned(), facts, ..Owned::default() });
    }
    seen.published = published.map(|endpoint| Endpoints { control_plane: vec![endpoint], ..Endpoints::default() });
    tenant.plan(&seen)
}

use ServiceType::{ClusterIP, LoadBalancer, NodePort};

#[rstest]
#[case::a_node_stands_in_for_a_virtual_address(case(NodePort), endpoint("10.9.0.1", 30_000, NodePort))]
#[case::virtual_address(
    Case { cluster_ip: Some("10.9.0.100"), ..case(NodePort) },
    from(EndpointSource::ClusterIP, endpoint("10.9.0.100", 30_000, NodePort))
)]
#[case::external_host(
    Case { external_host: Some("api.example.org"), cluster_ip: Some("10.9.0.100"), ..case(NodePort) },
    from(EndpointSource::ExternalHost, endpoint("api.example.org", 30_000, NodePort))
)]
#[case::allocated_port(
    Case { node_port: 0, live: Some((31_234, None)), ..case(NodePort) },
    endpoint("10.9.0.1", 31_234, NodePort)
)]
#[case::what_is_published_outlives_the_node(
    Case { published: Some(endpoint("10.9.0.55", 30_000, NodePort)), ..case(NodePort) },
    endpoint("10.9.0.55", 30_000, NodePort)
)]
#[case::what_is_published_outlives_the_service(
    Case { node_port: 0, live: None, published: Some(endpoint("10.9.0.1", 31_234, NodePort)), ..case(NodePort) },
    endpoint("10.9.0.1", 31_234, NodePort)
)]
#[case::another_port_is_published_once_it_is_there(
    Case { live: Some((30_007, None)), published: Some(endpoint("10.9.0.1", 30_007, NodePort)), ..case(NodePort) },
    endpoint("10.9.0.1", 30_007, NodePort)
)]
#[case::an_edited_port(
    Case { published: Some(endpoint("10.9.0.55", 30_007, NodePort)), ..case(NodePort) },
    endpoint("10.9.0.55", 30_000, NodePort)
)]
#[case::an_external_host_that_is_taken_away(
    Case { published: Some(of_old(endpoint("api.example.org", 30_000, NodePort))), ..case(NodePort) },
    endpoint("10.9.0.1", 30_000, NodePort)
)]
#[case::an_external_address_that_is_taken_away(
    Case {
        published: Some(from(EndpointSource::ExternalHost, endpoint("203.0.113.5", 30_000, NodePort))),
        ..case(NodePort)
    },
    endpoint("10.9.0.1", 30_000, NodePort)
)]
#[case::a_virtual_address_that_is_taken_away(
    Case {
        published: Some(from(EndpointSource::ClusterIP, endpoint("10.9.0.100", 30_000, NodePort))),
        ..case(NodePort)
    },
    endpoint("10.9.0.1", 30_000, NodePort)
)]
#[case::an_external_address_before_an_ingress(
    Case {
        live: Some((30_000, Some("198.51.100.7"))),
        published: Some(from(EndpointSource::ExternalHost, endpoint("203.0.113.5", 6443, LoadBalancer))),
        ..case(LoadBalancer)
    },
    endpoint("198.51.100.7", 6443, LoadBalancer)
)]
#[case::an_external_address_before_one_inside(
    Case {
        published: Some(from(EndpointSource::ExternalHost, endpoint("203.0.113.5", 6443, ClusterIP))),
        ..case(ClusterIP)
    },
    endpoint("10.96.0.9", 6443, ClusterIP)
)]
#[case::what_an_earlier_version_published(
    Case { published: Some(of_old(endpoint("10.9.0.55", 30_000, NodePort))), ..case(NodePort) },
    endpoint("10.9.0.55", 30_000, NodePort)
)]
#[case::ingress(
    Case { live: Some((30_000, Some("198.51.100.7"))), ..case(LoadBalancer) },
    endpoint("198.51.100.7", 6443, LoadBalancer)
)]
#[case::an_ingress_that_changed(
    Case {
        live: Some((30_000, Some("198.51.100.8"))),
        published: Some(endpoint("198.51.100.7", 6443, LoadBalancer)),
        ..case(LoadBalancer)
    },
    endpoint("198.51.100.7", 6443, LoadBalancer)
)]
#[case::a_type_that_changed(
    Case {
        live: Some((30_000, Some("198.51.100.7"))),
        published: Some(endpoint("10.9.0.1", 30_000, NodePort)),
        ..case(LoadBalancer)
    },
    endpoint("198.51.100.7", 6443, LoadBalancer)
)]
#[case::inside(case(ClusterIP), endpoint("10.96.0.9", 6443, ClusterIP))]
fn endpoints(#[case] case: Case, #[case] expected: Endpoint) {
    assert_eq!(plan_of(case).endpoints.control_plane, [expected]);
}

#[rstest]
#[case::no_ingress(
    case(LoadBalancer),
    "no load-balancer controller has given Service loadbalancer-controlplane-blue an address yet"
)]
#[case::no_port(
    Case { node_port: 0, live: Some((0, None)), ..case(NodePort) },
    "Service loadbalancer-controlplane-blue has no node port yet"
)]
#[case::not_the_port_that_is_asked_for(
    Case { live: Some((30_007, None)), ..case(NodePort) },
    "Service loadbalancer-controlplane-blue has no node port 30000 yet"
)]
fn what_is_waited_for(#[case] case: Case, #[case] message: &str) {
    let plan = plan_of(case);
    assert_eq!(plan.endpoints, Endpoints::default());
    assert!(!plan.ready);
    let found = plan.problems.iter().find(|problem| problem.message == message);
    assert!(found.is_some_and(|problem| problem.waiting), "{plan}");
}

#[test]
fn a_single_node_as_address_is_warned_of_and_nothing_else() {
    let warned = |case| plan_of(case).warnings.len();
    assert_eq!(warned(case(NodePort)), 1);
    assert_eq!(warned(Case { cluster_ip: Some("10.9.0.100"), ..case(NodePort) }), 0);
    assert_eq!(warned(Case { live: Some((30_000, Some("198.51.100.7"))), ..case(LoadBalancer) }), 0);
}

#[test]
fn no_ready_node_is_a_reason_to_wait() {
    let tenant = Tenant::new();
    let seen = Seen { node_ips: Vec::new(), published: None, ..tenant.settled() };
    let plan = tenant.plan(&seen);
    assert_eq!(plan.endpoints, Endpoints::default());
    assert!(!plan.ready);
    assert!(plan.problems[0].message.starts_with("no node of the base cluster is Ready"), "{plan}");
}

#[test]
fn a_range_is_published_with_both_ends() {
    let endpoints = Tenant::new().settled().published.expect("published");
    let [worker] = &endpoints.worker[..] else { panic!("{endpoints:?}") };
    assert_eq!((worker.port, worker.last_port), (30_001, Some(30_003)));
}

#[test]
fn an_allocated_port_is_asked_for_again_when_the_service_is_lost() {
    let mut tenant = Tenant::new();
    tenant.spec.services.load_balancer_control_plane[0].node_port = 0;
    let mut seen = tenant.settled();
    seen = after(seen.clone(), &tenant.plan(&seen));
    assert_eq!(tenant.plan(&seen).steps, []);
    let published = seen.published.clone();
    seen.objects.remove(&(Kind::Service, CONTROL_PLANE_INSTANCE.to_owned()));
    let plan = tenant.plan(&seen);
    let Step::Create(service) = &plan.steps[0] else { panic!("{plan}") };
    assert_eq!(service.body["spec"]["ports"][0]["nodePort"], carried_out::ALLOCATED);
    assert_eq!(Some(plan.endpoints), published);
}

#[test]
fn an_internal_address_that_is_edited_costs_the_service() {
    let mut tenant = Tenant::new();
    tenant.spec.services.load_balancer_worker.clear();
    let common = &mut tenant.spec.services.load_balancer_control_plane[0].common;
    common.service_type = Some(ClusterIP);
    common.cluster_ip = Some("10.96.0.40".to_owned());
    let mut seen = tenant.settled();
    tenant.spec.services.load_balancer_control_plane[0].common.cluster_ip = Some("10.96.0.41".to_owned());
    let plan = tenant.plan(&seen);
    assert_eq!(plan.to_string().lines().next(), Some("- Service loadbalancer-controlplane-blue"));
    seen = after(seen, &plan);
    seen = after(seen.clone(), &tenant.plan(&seen));
    assert_eq!(tenant.plan(&seen).endpoints.control_plane[0].host, "10.96.0.41");
}

#[test]
fn an_address_that_only_the_outside_knows_is_never_asked_for_as_the_services_own() {
    let mut tenant = Tenant::new();
    tenant.spec.services.load_balancer_worker.clear();
    let common = &mut tenant.spec.services.load_balancer_control_plane[0].common;
    common.service_type = Some(ClusterIP);
    common.external_host = Some("203.0.113.5".to_owned());
    let seen = tenant.settled();
    assert_eq!(seen.published.as_ref().expect("published").control_plane[0].host, "203.0.113.5");
    let plan = tenant.plan(&seen);
    assert_eq!(plan.steps, [], "{plan}");
}

#[test]
fn an_entry_that_loses_its_image_is_reached_as_before() {
    let mut tenant = Tenant::new();
    let seen = tenant.settled();
    tenant.installation.haproxy_image.clear();
    let plan = tenant.plan(&seen);
    assert_eq!(Some(plan.endpoints), seen.published);
    assert!(!plan.ready);
}
