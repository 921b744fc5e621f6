//! A Redfish client for one computer system: read it, reset it.

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use reqwest::{Certificate, Client, Method, Response, StatusCode, Url, redirect::Policy};
use serde_json::{Value, json};

use crate::{
    address::{Unusable, parse},
    hosts::Host,
};

/// How BMCs are reached.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Certificates that sign those of BMCs, beside the system's own; used if the file exists.
    pub ca: PathBuf,
    /// Whether to use the proxy of the environment.
    pub proxy: bool,
}

/// A failed conversation. Every variant names the host.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file has no login for the host.
    #[error("{0}: this jump host has no BMC login for it (SIPCluster field services.jumpHost[].bmc.expose)")]
    NoLogin(String),
    /// The address is no Redfish address.
    #[error("{host}")]
    Address {
        /// The host.
        host: String,
        /// The cause.
        source: Unusable,
    },
    /// The extra certificates cannot be used.
    #[error("{path} holds no usable certificate: {what}")]
    Ca {
        /// The file.
        path: String,
        /// Why.
        what: String,
    },
    /// No answer.
    #[error("{host}: {url} does not answer")]
    Unreachable {
        /// The host.
        host: String,
        /// What was asked.
        url: String,
        /// The cause.
        source: reqwest::Error,
    },
    /// An answer that says no.
    #[error("{host}: {url} answers {status}{message}")]
    Refused {
        /// The host.
        host: String,
        /// What was asked.
        url: String,
        /// The HTTP status.
        status: StatusCode,
        /// The extended information, with a leading colon, or nothing.
        message: String,
    },
    /// An answer that is not what Redfish prescribes.
    #[error("{host}: {url}: {what}")]
    Odd {
        /// The host.
        host: String,
        /// What was asked.
        url: String,
        /// What is wrong.
        what: String,
    },
}

/// A computer system that was read.
#[derive(Debug)]
pub struct System {
    session: Session,
    url: Url,
    body: Value,
}

/// One BMC and its login.
struct Session {
    host: String,
    client: Client,
    service: Url,
    username: String,
    password: String,
}

/// Never prints the login.
impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("host", &self.host).field("service", &self.service).finish_non_exhaustive()
    }
}

impl System {
    /// Finds and reads the system of `host`.
    pub async fn open(host: &Host, connection: &Connection) -> Result<Self, Error> {
        let address = parse(host.bmc.address()).map_err(|source| Error::Address { host: host.name.clone(), source })?;
        let (Some(username), Some(password)) = (host.bmc.username.clone(), host.bmc.password.clone()) else {
            return Err(Error::NoLogin(host.name.clone()));
        };
        let client = client(connection, !host.bmc.disable_certificate_verification)?;
        let session = Session { host: host.name.clone(), client, service: address.service, username, password };
        let path = match address.system {
            Some(path) => path,
            None => session.only_system().await?,
        };
        let url = session.url(&path)?;
        let body = session.get(&url).await?;
        Ok(System { session, url, body })
    }

    /// Where it is.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// `On`, `Off`, `PoweringOn`, ... (DSP0268, PowerState).
    pub fn power(&self) -> &str {
        self.body["PowerState"].as_str().unwrap_or("Unknown")
    }

    /// `OK`, `Warning`, `Critical` (DSP0268, Health).
    pub fn health(&self) -> &str {
        self.body["Status"]["Health"].as_str().unwrap_or("Unknown")
    }

    /// What the BMC says it accepts as `ResetType`; empty when it does not say.
    pub async fn reset_types(&self) -> Result<BTreeSet<String>, Error> {
        let action = self.action();
        if let Some(values) = strings(&action["ResetType@Redfish.AllowableValues"]) {
            return Ok(values);
        }
        let Some(info) = action["@Redfish.ActionInfo"].as_str() else { return Ok(BTreeSet::new()) };
        let info = self.session.get(&self.session.url(info)?).await?;
        let parameters = info["Parameters"].as_array();
        let reset = parameters.into_iter().flatten().find(|parameter| parameter["Name"] == "ResetType");
        Ok(reset.and_then(|reset| strings(&reset["AllowableValues"])).unwrap_or_default())
    }

    /// Sends one reset.
    pub async fn reset(&self, kind: &str) -> Result<(), Error> {
        let Some(target) = self.action()["target"].as_str() else {
            return Err(self.session.odd(&self.url, "the system has no action ComputerSystem.Reset"));
        };
        let url = self.session.url(target)?;
        self.session.send(Method::POST, &url, Some(json!({ "ResetType": kind }))).await.map(drop)
    }

    fn action(&self) -> &Value {
        &self.body["Actions"]["#ComputerSystem.Reset"]
    }
}

impl Session {
    /// The member of `/redfish/v1/Systems`, if there is one only.
    async fn only_system(&self) -> Result<String, Error> {
        let url = self.url("/redfish/v1/Systems")?;
        let systems = self.get(&url).await?;
        let members = systems["Members"].as_array();
        let members: Vec<&str> = members.into_iter().flatten().filter_map(|one| one["@odata.id"].as_str()).collect();
        match members[..] {
            [system] => Ok(system.to_owned()),
            [] => Err(self.odd(&url, "there is no system")),
            _ => Err(self.odd(&url, format!("the BMC address must name one of {}", members.join(", ")))),
        }
    }

    /// A path or URL that the BMC gave. The login goes to this BMC alone, so another place is refused.
    fn url(&self, reference: &str) -> Result<Url, Error> {
        let url = self.service.join(reference).map_err(|_| self.odd(&self.service, format!("bad link {reference}")))?;
        if url.origin() == self.service.origin() {
            Ok(url)
        } else {
            Err(self.odd(&self.service, format!("it refers to another place, {url}")))
        }
    }

    async fn get(&self, url: &Url) -> Result<Value, Error> {
        let response = self.send(Method::GET, url, None).await?;
        response.json().await.map_err(|_| self.odd(url, "the answer is not JSON"))
    }

    async fn send(&self, method: Method, url: &Url, body: Option<Value>) -> Result<Response, Error> {
        let mut request = self.client.request(method, url.clone()).basic_auth(&self.username, Some(&self.password));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let unreachable = |source: reqwest::Error| Error::Unreachable {
            host: self.host.clone(),
            url: url.to_string(),
            source: source.without_url(),
        };
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let said = response.json().await.map(|body: Value| message(&body)).unwrap_or_default();
        let message = if said.is_empty() { said } else { format!(": {said}") };
        Err(Error::Refused { host: self.host.clone(), url: url.to_string(), status, message })
    }

    fn odd(&self, url: &Url, what: impl Into<String>) -> Error {
        Error::Odd { host: self.host.clone(), url: url.to_string(), what: what.into() }
    }
}

fn client(connection: &Connection, verify: bool) -> Result<Client, Error> {
    let Connection { ca, proxy } = connection;
    let bad = |what: String| Error::Ca { path: ca.display().to_string(), what };
    let mut builder = Client::builder()
        .connect_timeout(Duration::from_secs(10))
        .timeout(Duration::from_mins(1))
        // A redirect may lead to another spelling of the same place, never with the login to another one.
        .redirect(Policy::custom(|attempt| {
            let same = attempt.previous().last().is_some_and(|last| last.origin() == attempt.url().origin());
            if same && attempt.previous().len() <= 5 { attempt.follow() } else { attempt.stop() }
        }));
    if !proxy {
        builder = builder.no_proxy();
    }
    if !verify {
        builder = builder.tls_danger_accept_invalid_certs(true);
    } else if ca.exists() {
        let pem = std::fs::read(ca).map_err(|error| bad(error.to_string()))?;
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| bad(error.to_string()))?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(|error| bad(error.to_string()))
}

fn strings(value: &Value) -> Option<BTreeSet<String>> {
    Some(value.as_array()?.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

/// What the extended information says (DSP0266, "Error responses"), else the plain message.
fn message(body: &Value) -> String {
    let error = &body["error"];
    let extended = error["@Message.ExtendedInfo"].as_array();
    let texts: Vec<&str> = extended.into_iter().flatten().filter_map(|info| info["Message"].as_str()).collect();
    if texts.is_empty() { error["message"].as_str().unwrap_or_default().to_owned() } else { texts.join(" ") }
}
