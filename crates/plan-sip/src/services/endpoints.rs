//! Where a service is reached, and the Service object that makes it so.
//!
//! | type | host | port |
//! |---|---|---|
//! | NodePort | the entry's `clusterIP` (a virtual address of the base cluster), else the first Ready node | the node port |
//! | LoadBalancer | what the load-balancer controller gave; nothing until then | the Service's |
//! | ClusterIP | the Service's own address; internal | the Service's |
//!
//! `externalHost` comes before all of them. A source never stands in for another. What has been published stays, because
//! it is in certificates and in the tenant's machines: only an edit of the entry (type, port, `externalHost`,
//! `clusterIP`) changes it, and taking one of these away is an edit too, for which the endpoint says where its host comes
//! from. To keep the promise when a Service is lost, the published port, or internal address, is
//! asked for again.

use std::net::IpAddr;

use api::sipcluster::{Common, Endpoint, EndpointSource, ServiceType};
use serde_json::{Value, json};

use super::{Facts, Kind, Object, Problem, Seen, Want, object::Instance};

/// One port of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "they are the words of Kubernetes")]
pub(crate) struct Port {
    /// Name in Service and containers.
    pub name: String,
    /// Port of the Service.
    pub port: i32,
    /// Port of the container, where it differs.
    pub target: Option<i32>,
    /// Node port that the entry asks for; 0: one is allocated.
    pub node_port: i32,
}

/// One entry's way to the outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exposed<'a> {
    /// The service.
    pub instance: &'a Instance,
    /// How people find the entry.
    pub entry: &'a str,
    /// What every entry has.
    pub common: &'a Common,
    /// Its ports, ascending, at least one.
    pub ports: &'a [Port],
    /// What was published for entries of this list.
    pub published: &'a [Endpoint],
}

/// Where a service is reached, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// The endpoint to publish.
    pub endpoint: Option<Endpoint>,
    /// What it waits for.
    pub problem: Option<Problem>,
    /// What may surprise.
    pub warning: Option<Problem>,
}

impl Exposed<'_> {
    fn service_type(&self) -> ServiceType {
        self.common.service_type.unwrap_or_default()
    }

    /// What was published, if it was for the type that the entry has now.
    fn published(&self) -> Option<&Endpoint> {
        let mut of_type = self.published.iter().filter(|endpoint| endpoint.service == self.instance.name);
        of_type.find(|endpoint| endpoint.service_type.unwrap_or_default() == self.service_type())
    }

    /// The node port to ask for: the entry's, else the one already published.
    fn node_port(&self, port: &Port) -> Option<i32> {
        let kept = || match self.ports {
            [_] => self.published().map(|endpoint| endpoint.port),
            _ => None,
        };
        match self.service_type() {
            ServiceType::NodePort if port.node_port == 0 => kept(),
            ServiceType::NodePort | ServiceType::LoadBalancer => Some(port.node_port).filter(|port| *port != 0),
            ServiceType::ClusterIP => None,
        }
    }

    /// The published host, if it was found in this way, rather than named by the entry as it was then. Endpoints of
    /// earlier versions do not say how they were found: there an address counts, and a name only where it can be nothing
    /// else than what a load-balancer controller gave.
    fn kept(&self, source: EndpointSource) -> Option<String> {
        let Endpoint { host, service_type, source: found, .. } = self.published()?;
        let old = || host.parse::<IpAddr>().is_ok() || *service_type == Some(ServiceType::LoadBalancer);
        let same = found.map_or_else(old, |found| found == source);
        Some(host.clone()).filter(|host| same && !host.is_empty())
    }

    /// The address that a Service inside the base cluster asks for: the entry's, else the one it had.
    fn cluster_ip(&self) -> Option<String> {
        if self.service_type() != ServiceType::ClusterIP {
            return None;
        }
        let kept = || self.kept(EndpointSource::Service).filter(|host| host.parse::<IpAddr>().is_ok());
        asked(self.common.cluster_ip.as_deref()).map(str::to_owned).or_else(kept)
    }

    /// The Service object.
    pub fn service(&self, want: &Want<'_>) -> Object {
        let ports: Vec<Value> = self
            .ports
            .iter()
            .map(|port| {
                let mut body = json!({
                    "name": port.name,
                    "protocol": "TCP",
                    "port": port.port,
                    "targetPort": port.target.unwrap_or(port.port),
                });
                if let Some(node_port) = self.node_port(port) {
                    body["nodePort"] = node_port.into();
                }
                body
            })
            .collect();
        let mut spec = json!({
            "type": type_name(self.service_type()),
            "ipFamilyPolicy": "PreferDualStack",
            "selector": self.instance.selector(),
            "ports": ports,
        });
        if let Some(address) = self.cluster_ip() {
            spec["clusterIP"] = address.into();
        }
        self.instance.object(want, Kind::Service, &self.instance.name, json!({ "spec": spec }))
    }

    /// What was published, whatever the entry asks for now: true as long as no edit is carried out.
    fn before(&self) -> Option<Endpoint> {
        self.published.iter().find(|endpoint| endpoint.service == self.instance.name).cloned()
    }

    /// Where the service is reached.
    pub fn reached(&self, seen: &Seen) -> Reached {
        let service = &self.instance.name;
        let live = seen.objects.get(&(Kind::Service, service.clone())).map(|owned| &owned.facts);
        // While an edit is not carried out yet, or is refused, what was published is still true.
        let before = self.before();
        let Some(Facts::Service { cluster_ip, node_ports, ingress }) = live else {
            return Reached { endpoint: before, ..Reached::default() };
        };
        let port = match self.port(node_ports) {
            Ok(port) => port,
            Err(problem) => return Reached { endpoint: before, problem: Some(problem), warning: None },
        };
        let (host, source, warning) = match self.host(seen, cluster_ip, ingress.as_deref()) {
            Ok(found) => found,
            Err(problem) => return Reached { endpoint: before, problem: Some(problem), warning: None },
        };
        let last_port = match self.ports {
            [_, .., last] => Some(last.port),
            _ => None,
        };
        let endpoint = Endpoint {
            service: service.clone(),
            host,
            port,
            last_port,
            internal: self.service_type() == ServiceType::ClusterIP,
            service_type: Some(self.service_type()),
            source: Some(source),
        };
        Reached { endpoint: Some(endpoint), problem: None, warning }
    }

    fn port(&self, node_ports: &[i32]) -> Result<i32, Problem> {
        let first = &self.ports[0];
        match self.service_type() {
            ServiceType::LoadBalancer | ServiceType::ClusterIP => Ok(first.port),
            ServiceType::NodePort => {
                let allocated = node_ports.first().copied().filter(|port| *port != 0);
                match (allocated, self.node_port(first)) {
                    (Some(port), None) => Ok(port),
                    (Some(port), Some(asked)) if port == asked => Ok(port),
                    (_, Some(asked)) => {
                        Err(self.waits(format!("Service {} has no node port {asked} yet", self.instance.name)))
                    }
                    (None, None) => Err(self.waits(format!("Service {} has no node port yet", self.instance.name))),
                }
            }
        }
    }

    fn host(
        &self,
        seen: &Seen,
        cluster_ip: &str,
        ingress: Option<&str>,
    ) -> Result<(String, EndpointSource, Option<Problem>), Problem> {
        if let Some(host) = asked(self.common.external_host.as_deref()) {
            return Ok((host.to_owned(), EndpointSource::ExternalHost, None));
        }
        match self.service_type() {
            ServiceType::NodePort => {
                if let Some(address) = asked(self.common.cluster_ip.as_deref()) {
                    return Ok((address.to_owned(), EndpointSource::ClusterIP, None));
                }
                let host =
                    self.kept(EndpointSource::Node).or_else(|| seen.node_ips.first().cloned()).ok_or_else(|| {
                        self.waits(
                        "no node of the base cluster is Ready, and the entry has neither clusterIP nor externalHost"
                            .to_owned(),
                    )
                    })?;
                let warning = Problem {
                    waiting: false,
                    entry: self.entry.to_owned(),
                    message: format!(
                        "published under {host}, one node of the base cluster, which is then a single point of failure: \
                         set clusterIP to a virtual address of the base cluster, or externalHost"
                    ),
                };
                Ok((host, EndpointSource::Node, Some(warning)))
            }
            ServiceType::LoadBalancer => {
                let host = self.kept(EndpointSource::Service).or_else(|| asked(ingress).map(str::to_owned));
                let waits = || {
                    self.waits(format!(
                        "no load-balancer controller has given Service {} an address yet",
                        self.instance.name
                    ))
                };
                Ok((host.ok_or_else(waits)?, EndpointSource::Service, None))
            }
            ServiceType::ClusterIP => {
                let address = self.cluster_ip().or_else(|| asked(Some(cluster_ip)).map(str::to_owned));
                let waits = || self.waits(format!("Service {} has no address yet", self.instance.name));
                Ok((address.ok_or_else(waits)?, EndpointSource::Service, None))
            }
        }
    }

    fn waits(&self, message: String) -> Problem {
        Problem { waiting: true, entry: self.entry.to_owned(), message }
    }
}

fn asked(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty() && *text != "None")
}

fn type_name(service_type: ServiceType) -> &'static str {
    match service_type {
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
        ServiceType::ClusterIP => "ClusterIP",
    }
}
