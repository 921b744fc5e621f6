//! Whether the OIDC providers answer as they were published: what to ask, and what the answers say.

use std::{collections::BTreeMap, net::IpAddr};

use api::sipcluster::{OidcStatus, SIPClusterSpec};
use base::Key;

use super::{ANSWERING, NOT_ASKED, Reading};
use crate::services::{
    Facts, Kind, Owned,
    auth::{PORT, certificate},
    names,
};

/// There is no certificate yet.
pub(super) const NO_CERTIFICATE: &str = "CertificateMissing";
/// The issuer is not published yet.
pub(super) const NOT_PUBLISHED: &str = "NotPublished";
/// The Deployment is not available.
pub(super) const NOT_AVAILABLE: &str = "DexNotAvailable";
/// The discovery document cannot be had.
pub(super) const NO_ANSWER: &str = "NoAnswer";
/// The discovery document names another issuer.
pub(super) const WRONG_ISSUER: &str = "WrongIssuer";

/// One provider: what is there, and what was heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// How people find the entry: `auth[staff]`.
    pub entry: String,
    /// What it still lacks before it can be asked, as reason and for people.
    pub lacks: Option<(&'static str, String)>,
    /// What to ask it, once it lacks nothing.
    pub question: Option<Question>,
    /// The issuer that its discovery document names, or why it cannot be had; none where nobody asked.
    pub answer: Option<Result<String, String>>,
}

/// How a provider's discovery document is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Address of its Service.
    pub address: IpAddr,
    /// Port of its Service.
    pub port: u16,
    /// The issuer's URL as published. The certificate has to hold for its host, which is what the tenant's machines
    /// will check.
    pub issuer: String,
    /// The CA that has to have signed the certificate, in PEM.
    pub ca: Vec<u8>,
}

/// The providers of a spec, with what to ask them; `objects` are the SIPCluster's, `oidc` what its status publishes.
pub fn providers(
    owner: &Key,
    spec: &SIPClusterSpec,
    objects: &BTreeMap<(Kind, String), Owned>,
    oidc: &[OidcStatus],
) -> Vec<Provider> {
    let provider = |(index, auth): (usize, &api::sipcluster::Auth)| {
        let instance = names::auth(&owner.name, auth.common.name.as_deref());
        let entry = names::entry("auth", index);
        let question = question(&instance, objects, oidc);
        let (lacks, question) = match question {
            Ok(question) => (None, Some(question)),
            Err(lacks) => (Some(lacks), None),
        };
        Provider { entry, lacks, question, answer: None }
    };
    spec.services.auth.iter().enumerate().map(provider).collect()
}

fn question(
    instance: &str,
    objects: &BTreeMap<(Kind, String), Owned>,
    oidc: &[OidcStatus],
) -> Result<Question, (&'static str, String)> {
    let facts = |kind, name: String| objects.get(&(kind, name)).map(|owned| &owned.facts);
    let tls = format!("{instance}-tls");
    let ca = match facts(Kind::Secret, tls.clone()) {
        Some(Facts::Secret { data }) if data.contains_key(certificate::CERTIFICATE) => data.get(certificate::CA),
        _ => None,
    };
    let ca = ca.ok_or_else(|| (NO_CERTIFICATE, format!("Secret {tls} has no certificate yet")))?;
    let config_map = format!("{instance}-oidc");
    let published = oidc.iter().find(|status| status.config_map == config_map);
    let published = published.ok_or_else(|| (NOT_PUBLISHED, "the issuer is not published yet".to_owned()))?;
    match facts(Kind::Deployment, instance.to_owned()) {
        Some(Facts::Deployment { available: true, .. }) => {}
        _ => return Err((NOT_AVAILABLE, format!("Deployment {instance} is not available"))),
    }
    let address = match facts(Kind::Service, instance.to_owned()) {
        Some(Facts::Service { cluster_ip, .. }) => cluster_ip.parse().ok(),
        _ => None,
    };
    let address = address.ok_or_else(|| (NOT_AVAILABLE, format!("Service {instance} has no address")))?;
    Ok(Question { address, port: PORT, issuer: published.issuer_url.clone(), ca: ca.to_vec() })
}

/// Reads what became of the providers. The first that is not as it shall be gives the reason.
pub fn oidc(providers: &[Provider]) -> Reading {
    let (mut said, mut marks) = (Vec::new(), Vec::new());
    let (mut holds, mut reason) = (Some(true), ANSWERING);
    for provider in providers {
        let Provider { entry, lacks, question, answer } = provider;
        let issuer = question.as_ref().map(|q| q.issuer.as_str()).unwrap_or_default();
        let (one, why, text) = match (lacks, answer) {
            (Some((why, text)), _) => (Some(false), *why, text.clone()),
            (None, None) => (None, NOT_ASKED, "its discovery document was not asked for".to_owned()),
            (None, Some(Err(text))) => (Some(false), NO_ANSWER, format!("no discovery document of {issuer}: {text}")),
            (None, Some(Ok(found))) if found != issuer => {
                (Some(false), WRONG_ISSUER, format!("the discovery document names issuer {found}, not {issuer}"))
            }
            (None, Some(Ok(_))) => (Some(true), ANSWERING, format!("{issuer} answers")),
        };
        if one != Some(true) && holds == Some(true) {
            (holds, reason) = (one, why);
        }
        marks.push(format!("{entry} {why} {issuer}"));
        said.push(format!("{entry}: {text}"));
    }
    Reading { holds, reason, mark: Some(marks.join(";")), message: said.join("; ") }
}
