//! Asks an OIDC provider for its discovery document, over TLS with the one CA that may have signed its certificate.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use plan_sip::outlook::Question;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};

use crate::reports::{body, fetch};

/// How long a provider may take to answer.
const DEADLINE: Duration = Duration::from_secs(5);

/// As much as is read of the document (OpenID Connect Discovery 1.0, section 3).
#[derive(Deserialize)]
struct Document {
    issuer: String,
}

/// The issuer that the document names, or why it cannot be had.
pub(crate) async fn issuer(question: &Question) -> Result<String, String> {
    match tokio::time::timeout(DEADLINE, ask(question)).await {
        Ok(found) => found,
        Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
    }
}

async fn ask(Question { address, port, issuer, ca }: &Question) -> Result<String, String> {
    // `https://host:port/path`, as we published it; an IPv6 address is in brackets.
    let rest = issuer.strip_prefix("https://").ok_or("the issuer is no https URL")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|_| "the issuer's host is no server name".to_owned())?;

    let stream = TcpStream::connect(SocketAddr::new(*address, *port)).await.map_err(|e| e.to_string())?;
    let tls = TlsConnector::from(Arc::new(config(ca)?));
    let stream = tls.connect(name, stream).await.map_err(|e| e.to_string())?;
    let path = format!("{path}/.well-known/openid-configuration");
    let answer = fetch(stream, authority, &path).await.map_err(|e| e.to_string())?;
    let document: Document =
        serde_json::from_str(body(&answer)?).map_err(|e| format!("not a discovery document: {e}"))?;
    Ok(document.issuer)
}

fn config(ca: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        let certificate = certificate.map_err(|e| format!("ca.crt: {e}"))?;
        roots.add(certificate).map_err(|e| format!("ca.crt: {e}"))?;
    }
    // Named, not taken from the process: a test needs none to be installed.
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
