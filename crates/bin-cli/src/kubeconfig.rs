//! `slipway kubeconfig`: a kubeconfig for a tenant cluster whose user is `slipway token`, so it holds no secret.

use anyhow::{Context as _, bail};
use api::{
    SIPCluster,
    sipcluster::{Endpoint, OidcStatus, SecretKey},
};
use base::Key;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::live;

/// Arguments of `slipway kubeconfig`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The SIPCluster of the tenant.
    #[arg(value_name = "NAMESPACE/NAME")]
    pub cluster: Key,
    /// Which of the control-plane load balancers: the name of its Service. Default: the first that is reached from
    /// outside the base cluster.
    #[arg(long, value_name = "SERVICE")]
    pub endpoint: Option<String>,
    /// Which of the OIDC providers: its issuer. Default: the first.
    #[arg(long, value_name = "URL")]
    pub issuer: Option<String>,
    /// Log in by device code instead of a browser.
    #[arg(long)]
    pub device: bool,
    /// Context of the base cluster in the present kubeconfig. Default: the current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// Reads what the base cluster knows of the tenant, and prints the kubeconfig.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let client = live::client(args.context.as_deref()).await?;
    let tenant = tenant(&client, &args).await?;
    print!("{}", serde_saphyr::to_string(&tenant.kubeconfig(&args))?);
    Ok(())
}

/// What a kubeconfig is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tenant {
    /// Where its API is.
    endpoint: Endpoint,
    /// CA of its API server, PEM.
    ca: Vec<u8>,
    /// Its OIDC provider.
    oidc: OidcStatus,
    /// CA of the provider's certificate, PEM.
    oidc_ca: String,
}

async fn tenant(client: &Client, args: &Args) -> anyhow::Result<Tenant> {
    let Key { namespace, name } = &args.cluster;
    let sip: SIPCluster = Api::namespaced(client.clone(), namespace)
        .get_opt(name)
        .await
        .map_err(live::said)
        .with_context(|| format!("cannot read SIPCluster {namespace}/{name}"))?
        .with_context(|| format!("SIPCluster {namespace}/{name} does not exist"))?;
    let endpoint = endpoint(&sip, args)?;
    let oidc = provider(&sip, args)?;
    let (at, SecretKey { name: secret, key }) = ca_secret(&sip, &args.cluster);
    let found: Secret = Api::namespaced(client.clone(), &at).get(&secret).await.map_err(live::said).with_context(|| {
        format!("cannot read the CA of the tenant's API server, Secret {at}/{secret}: set spec.tenantCA or spec.clusterRef of SIPCluster {namespace}/{name}")
    })?;
    let ca = found
        .data
        .and_then(|mut data| data.remove(&key))
        .with_context(|| format!("Secret {at}/{secret} has no key {key}"))?;
    let map: ConfigMap = Api::namespaced(client.clone(), namespace)
        .get(&oidc.config_map)
        .await
        .map_err(live::said)
        .with_context(|| format!("cannot read ConfigMap {namespace}/{} of the OIDC provider", oidc.config_map))?;
    let oidc_ca = map.data.and_then(|mut data| data.remove("ca.crt"));
    let oidc_ca = oidc_ca.with_context(|| format!("ConfigMap {namespace}/{} has no key ca.crt", oidc.config_map))?;
    Ok(Tenant { endpoint, ca: ca.0, oidc, oidc_ca })
}

fn endpoint(sip: &SIPCluster, args: &Args) -> anyhow::Result<Endpoint> {
    let status = sip.status.as_ref();
    let all =
        status.and_then(|status| status.endpoints.as_ref()).map(|e| e.control_plane.as_slice()).unwrap_or_default();
    let chosen = match &args.endpoint {
        Some(service) => all.iter().find(|endpoint| endpoint.service == *service),
        None => all.iter().find(|endpoint| !endpoint.internal).or(all.first()),
    };
    match (chosen, &args.endpoint) {
        (Some(endpoint), _) => Ok(endpoint.clone()),
        (None, Some(service)) => {
            let names: Vec<&str> = all.iter().map(|endpoint| endpoint.service.as_str()).collect();
            bail!(
                "SIPCluster {} publishes no endpoint of Service {service}; it has: {}",
                args.cluster,
                names.join(", ")
            )
        }
        (None, None) => {
            bail!(
                "SIPCluster {} has published no endpoint of its API yet (status.endpoints.controlPlane)",
                args.cluster
            )
        }
    }
}

fn provider(sip: &SIPCluster, args: &Args) -> anyhow::Result<OidcStatus> {
    let all = sip.status.as_ref().map(|status| status.oidc.as_slice()).unwrap_or_default();
    let chosen = all.iter().find(|oidc| args.issuer.as_ref().is_none_or(|issuer| oidc.issuer_url == *issuer));
    match (chosen, &args.issuer) {
        (Some(oidc), _) => Ok(oidc.clone()),
        (None, Some(issuer)) => {
            let issuers: Vec<&str> = all.iter().map(|oidc| oidc.issuer_url.as_str()).collect();
            bail!("SIPCluster {} has no OIDC provider {issuer}; it has: {}", args.cluster, issuers.join(", "))
        }
        (None, None) => bail!(
            "SIPCluster {} has no OIDC provider (spec.services.auth), or it is not ready yet: there is nothing to log in at",
            args.cluster
        ),
    }
}

/// Where the CA of the tenant's API server is: named in the spec, else the Secret that Cluster API keeps for a Cluster.
fn ca_secret(sip: &SIPCluster, key: &Key) -> (String, SecretKey) {
    match (&sip.spec.tenant_ca, &sip.spec.cluster_ref) {
        (Some(ca), _) => (key.namespace.clone(), ca.clone()),
        (None, cluster) => {
            let namespace = cluster.as_ref().and_then(|cluster| cluster.namespace.clone());
            let name = cluster.as_ref().map_or(&key.name, |cluster| &cluster.name);
            let ca = SecretKey { name: format!("{name}-ca"), key: "tls.crt".to_owned() };
            (namespace.unwrap_or_else(|| key.namespace.clone()), ca)
        }
    }
}

impl Tenant {
    fn kubeconfig(&self, args: &Args) -> Value {
        let Self { endpoint: Endpoint { host, port, .. }, ca, oidc, oidc_ca } = self;
        let name = args.cluster.to_string();
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let mut login = vec![
            "token".to_owned(),
            format!("--issuer={}", oidc.issuer_url),
            format!("--client-id={}", oidc.client_id),
            format!("--ca-data={}", STANDARD.encode(oidc_ca)),
        ];
        if args.device {
            login.push("--device".to_owned());
        }
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{
                "name": name,
                "cluster": {
                    "server": format!("https://{host}:{port}"),
                    "certificate-authority-data": STANDARD.encode(ca),
                },
            }],
            "users": [{
                "name": name,
                "user": { "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "slipway",
                    "args": login,
                    "interactiveMode": "Never",
                    "installHint": "This cluster is logged in to with `slipway token`: install the program slipway.",
                } },
            }],
            "contexts": [{ "name": name, "context": { "cluster": name, "user": name } }],
            "current-context": name,
        })
    }
}

#[cfg(test)]
mod tests {
    use api::sipcluster::{ClusterRef, Endpoints, SIPClusterStatus};

    use super::*;

    fn args() -> Args {
        Args { cluster: Key::new("tenants", "blue"), endpoint: None, issuer: None, device: false, context: None }
    }

    fn at(service: &str, host: &str, internal: bool) -> Endpoint {
        Endpoint { service: service.to_owned(), host: host.to_owned(), port: 30002, internal, ..Endpoint::default() }
    }

    fn oidc(issuer: &str) -> OidcStatus {
        OidcStatus {
            issuer_url: issuer.to_owned(),
            client_id: "kubernetes".to_owned(),
            config_map: "auth-blue-oidc".to_owned(),
            storage: None,
        }
    }

    fn sip(endpoints: Vec<Endpoint>, oidc: Vec<OidcStatus>) -> SIPCluster {
        let endpoints = Some(Endpoints { control_plane: endpoints, ..Endpoints::default() });
        SIPCluster {
            status: Some(SIPClusterStatus { endpoints, oidc, ..SIPClusterStatus::default() }),
            ..SIPCluster::default()
        }
    }

    #[test]
    fn the_kubeconfig_holds_the_way_to_log_in_and_no_secret() {
        let tenant = Tenant {
            endpoint: at("lb", "fd00::9", false),
            ca: b"CA".to_vec(),
            oidc: oidc("https://login.example:30556/dex"),
            oidc_ca: "PEM".to_owned(),
        };
        let config = tenant.kubeconfig(&Args { device: true, ..args() });
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://[fd00::9]:30002");
        assert_eq!(config["clusters"][0]["cluster"]["certificate-authority-data"], "Q0E=");
        assert_eq!(
            config["users"][0]["user"]["exec"]["args"],
            json!([
                "token",
                "--issuer=https://login.example:30556/dex",
                "--client-id=kubernetes",
                "--ca-data=UEVN",
                "--device"
            ])
        );
        let text = serde_saphyr::to_string(&config).unwrap();
        let read: kube::config::Kubeconfig = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("tenants/blue"));
        assert_eq!(
            read.auth_infos[0].auth_info.as_ref().unwrap().exec.as_ref().unwrap().command.as_deref(),
            Some("slipway")
        );
    }

    #[test]
    fn the_endpoint_is_the_one_asked_for_else_one_from_outside() {
        let sip = sip(vec![at("in", "10.96.0.1", true), at("out", "10.9.0.1", false)], vec![]);
        assert_eq!(endpoint(&sip, &args()).unwrap().service, "out");
        let asked = |service: &str| endpoint(&sip, &Args { endpoint: Some(service.to_owned()), ..args() });
        assert_eq!(asked("in").unwrap().service, "in");
        assert_eq!(
            asked("x").unwrap_err().to_string(),
            "SIPCluster tenants/blue publishes no endpoint of Service x; it has: in, out"
        );
        let none = endpoint(&SIPCluster::default(), &args()).unwrap_err().to_string();
        assert!(none.contains("status.endpoints.controlPlane"), "{none}");
    }

    #[test]
    fn the_provider_is_the_one_asked_for_else_the_first() {
        let sip = sip(vec![], vec![oidc("https://a"), oidc("https://b")]);
        assert_eq!(provider(&sip, &args()).unwrap().issuer_url, "https://a");
        let asked = |issuer: &str| provider(&sip, &Args { issuer: Some(issuer.to_owned()), ..args() });
        assert_eq!(asked("https://b").unwrap().issuer_url, "https://b");
        assert!(asked("https://c").unwrap_err().to_string().ends_with("it has: https://a, https://b"));
        assert!(provider(&SIPCluster::default(), &args()).unwrap_err().to_string().contains("spec.services.auth"));
    }

    #[test]
    fn the_ca_is_the_one_of_the_spec_else_that_of_the_cluster() {
        let mut sip = SIPCluster::default();
        let key = args().cluster;
        let of = |sip: &SIPCluster| ca_secret(sip, &key);
        let cluster_api = |name: &str| SecretKey { name: name.to_owned(), key: "tls.crt".to_owned() };
        assert_eq!(of(&sip), ("tenants".to_owned(), cluster_api("blue-ca")));
        sip.spec.cluster_ref = Some(ClusterRef { namespace: Some("metal".to_owned()), name: "green".to_owned() });
        assert_eq!(of(&sip), ("metal".to_owned(), cluster_api("green-ca")));
        sip.spec.tenant_ca = Some(SecretKey { name: "ca".to_owned(), key: "pem".to_owned() });
        assert_eq!(of(&sip), ("tenants".to_owned(), SecretKey { name: "ca".to_owned(), key: "pem".to_owned() }));
    }
}
