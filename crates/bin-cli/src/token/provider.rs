//! The OIDC provider over HTTP: what it offers, and its token endpoint.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use reqwest::{Certificate, Client, StatusCode, Url, redirect::Policy};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};

use super::Tokens;

/// A provider that has not been asked yet.
#[derive(Debug)]
pub struct Provider {
    http: Client,
    issuer: String,
    client_id: String,
}

/// A provider and what it offers.
#[derive(Debug)]
pub struct Discovered {
    provider: Provider,
    offers: Offers,
}

/// OpenID Connect Discovery 1.0, section 3, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Offers {
    issuer: String,
    #[serde(deserialize_with = "https")]
    authorization_endpoint: Url,
    #[serde(deserialize_with = "https")]
    token_endpoint: Url,
    #[serde(default, deserialize_with = "optional_https")]
    device_authorization_endpoint: Option<Url>,
    #[serde(default)]
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    scopes_supported: Option<Vec<String>>,
}

/// An address that is safe to hand to a browser.
fn https<'de, D: Deserializer<'de>>(from: D) -> Result<Url, D::Error> {
    let text = String::deserialize(from)?;
    match Url::parse(&text) {
        Ok(url) if url.scheme() == "https" => Ok(url),
        _ => Err(D::Error::custom(format!("{text:?} is no https URL"))),
    }
}

fn optional_https<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Url>, D::Error> {
    https(from).map(Some)
}

/// What is asked for: who the user is, and a way to ask again without a login.
const SCOPES: [&str; 5] = ["openid", "email", "groups", "profile", "offline_access"];

/// What a token endpoint answers when it gives no token (RFC 6749, section 5.2).
#[derive(Debug, Deserialize)]
pub struct Refusal {
    /// A code, such as `invalid_grant` or `authorization_pending`.
    pub error: String,
    /// For people.
    #[serde(default)]
    pub error_description: String,
}

impl Provider {
    /// The provider at `issuer`, whose certificate is of the CA `ca` (PEM) or of one that this machine trusts.
    pub fn new(issuer: &str, client_id: &str, ca: Option<&str>) -> anyhow::Result<Self> {
        let url = Url::parse(issuer).with_context(|| format!("--issuer {issuer:?} is no URL"))?;
        ensure!(url.scheme() == "https", "--issuer {issuer:?}: an OIDC provider is reached by https");
        let mut http = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .timeout(Duration::from_secs(30))
            .https_only(true);
        if let Some(ca) = ca {
            let certificates = Certificate::from_pem_bundle(ca.as_bytes()).context("the CA of the provider")?;
            ensure!(!certificates.is_empty(), "the CA of the provider has no certificate in it");
            http = http.tls_certs_only(certificates);
        }
        let http = http.build().context("cannot set up TLS")?;
        Ok(Self { http, issuer: issuer.to_owned(), client_id: client_id.to_owned() })
    }

    /// Its URL.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The client we are.
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// Asks what it offers.
    pub async fn discover(self) -> anyhow::Result<Discovered> {
        let at = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let answer =
            self.http.get(&at).send().await.with_context(|| format!("cannot reach the OIDC provider at {at}"))?;
        ensure!(answer.status().is_success(), "{at} answers {}: is this the issuer's URL?", answer.status());
        let offers: Offers =
            answer.json().await.with_context(|| format!("{at} is no description of an OIDC provider"))?;
        ensure!(offers.issuer == self.issuer, "the provider at {:?} calls itself {:?}", self.issuer, offers.issuer);
        Ok(Discovered { provider: self, offers })
    }
}

impl Discovered {
    /// The client we are.
    pub fn client_id(&self) -> &str {
        &self.provider.client_id
    }

    /// Its URL.
    pub fn issuer(&self) -> &str {
        &self.provider.issuer
    }

    /// Where a browser logs in.
    pub fn authorization_endpoint(&self) -> &Url {
        &self.offers.authorization_endpoint
    }

    /// Where a login on another device begins, if it offers that.
    pub fn device_endpoint(&self) -> Option<&Url> {
        self.offers.device_authorization_endpoint.as_ref()
    }

    /// Whether to send a PKCE challenge: unless it says that it takes other methods only. Servers that know nothing of
    /// it must ignore it (RFC 6749, section 3.1).
    pub fn challenge(&self) -> bool {
        let methods = self.offers.code_challenge_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "S256"))
    }

    /// The scopes to ask for, of those it has.
    pub fn scopes(&self) -> String {
        let has = |scope: &&str| {
            let supported = self.offers.scopes_supported.as_ref();
            *scope == "openid" || supported.is_none_or(|supported| supported.iter().any(|one| one == scope))
        };
        SCOPES.into_iter().filter(|scope| has(scope)).collect::<Vec<_>>().join(" ")
    }

    /// A new token for a refresh token; `None` where it is refused, and a login is needed.
    pub async fn refresh(&self, refresh_token: &str) -> anyhow::Result<Option<Tokens>> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        match self.grant(&form).await? {
            Ok(mut tokens) => {
                // Without a new refresh token the old one goes on holding.
                tokens.refresh_token.get_or_insert_with(|| refresh_token.to_owned());
                Ok(Some(tokens))
            }
            Err(_) => Ok(None),
        }
    }

    /// Asks the token endpoint.
    pub async fn grant(&self, form: &[(&str, &str)]) -> anyhow::Result<Result<Tokens, Refusal>> {
        self.post(&self.offers.token_endpoint, form).await
    }

    /// Sends a form, with our client's name in it, and reads what comes back.
    pub async fn post<T: DeserializeOwned>(
        &self,
        to: &Url,
        form: &[(&str, &str)],
    ) -> anyhow::Result<Result<T, Refusal>> {
        let mut fields = vec![("client_id", self.client_id())];
        fields.extend_from_slice(form);
        let answer = self.provider.http.post(to.clone()).form(&fields).send().await;
        let answer = answer.with_context(|| format!("cannot reach the OIDC provider at {to}"))?;
        let status = answer.status();
        let body = answer.bytes().await.with_context(|| format!("{to} broke off"))?;
        if status.is_success() {
            // The body holds tokens: nothing of it may be shown.
            return match serde_json::from_slice(&body) {
                Ok(found) => Ok(Ok(found)),
                Err(_) => bail!("{to} gave an answer without the fields that were asked for"),
            };
        }
        match serde_json::from_slice::<Refusal>(&body) {
            Ok(refusal) if status != StatusCode::INTERNAL_SERVER_ERROR => Ok(Err(refusal)),
            _ => bail!("{to} answers {status}"),
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.error_description.as_str() {
            "" => f.write_str(&self.error),
            description => write!(f, "{} ({description})", self.error),
        }
    }
}
