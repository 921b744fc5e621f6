//! Dex's configuration: one file, rendered from the entry and the Secrets it names.
//!
//! It is written as JSON in ASCII, which every YAML reader takes, so that no text in it can become structure. A piece
//! whose Secret is missing or bad is taken from the configuration in service, so that one lost Secret ends no login.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use api::sipcluster::{Auth, AuthClient, AuthConnector, SecretKey};
use serde_json::{Map, Value, json};

use super::{super::Referred, passwords, storage::Storage};

/// Client of `slipway token` and kubectl.
pub(super) const CLIENT: &str = "kubernetes";
/// Port on which Dex listens.
pub(crate) const PORT: u16 = 5556;
/// Where the pod has its certificate.
pub(super) const TLS: &str = "/etc/dex/tls";
/// Where the pod keeps keys and refresh tokens.
pub(super) const DATA: &str = "/var/dex";
/// Dex replaces `$NAME` in a connector's configuration by the environment. This variable holds a dollar sign, by which
/// a dollar sign in a password stays one.
pub(super) const DOLLAR: &str = "SLIPWAY_DOLLAR";

/// Connector types of Dex. It does not start with one it does not know, so an unknown one is not passed on.
const CONNECTOR_TYPES: [&str; 17] = [
    "atlassian-crowd",
    "authproxy",
    "bitbucket-cloud",
    "gitea",
    "github",
    "gitlab",
    "google",
    "keystone",
    "ldap",
    "linkedin",
    "microsoft",
    "mockCallback",
    "mockPassword",
    "oauth",
    "oidc",
    "openshift",
    "saml",
];
/// Those that send no browser to another site, and so have no address to come back to.
const WITHOUT_REDIRECT: [&str; 5] = ["atlassian-crowd", "keystone", "ldap", "mockCallback", "mockPassword"];

/// What a configuration is rendered from.
pub(super) struct Source<'a> {
    /// The issuer's URL.
    pub issuer: &'a str,
    /// Shown to people at login: the SIPCluster.
    pub title: String,
    /// The entry.
    pub spec: &'a Auth,
    /// Where the entry is: `spec.services.auth[0]`.
    pub field: &'a str,
    /// Namespace of the Secrets.
    pub namespace: &'a str,
    /// Secrets that the spec names.
    pub referred: &'a BTreeMap<String, Referred>,
    /// Where keys are kept.
    pub storage: Storage,
    /// The configuration in service.
    pub before: Option<Value>,
}

/// A configuration, and what is wrong with its sources.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Rendered {
    /// The file.
    pub text: String,
    /// Each names the field, and the Secret where it is at fault.
    pub problems: Vec<String>,
}

impl Source<'_> {
    /// Renders the configuration.
    pub fn render(&self) -> Rendered {
        let mut problems = Vec::new();
        let connectors = self.connectors(&mut problems);
        let passwords = self.passwords(&mut problems);
        if connectors.is_empty() && passwords.is_empty() {
            problems
                .push(format!("{}: nobody can log in, neither connectors nor passwordsSecret give a user", self.field));
        }
        let mut config = json!({
            "issuer": self.issuer,
            "storage": self.storage.config(),
            "web": { "https": format!(":{PORT}"), "tlsCert": format!("{TLS}/tls.crt"), "tlsKey": format!("{TLS}/tls.key") },
            "frontend": { "issuer": self.title },
            "oauth2": { "skipApprovalScreen": true },
            "expiry": {
                "signingKeys": "6h",
                "idTokens": "1h",
                "deviceRequests": "10m",
                "refreshTokens": { "reuseInterval": "10s", "validIfNotUsedFor": "720h" },
            },
            "staticClients": self.clients(&mut problems),
        });
        // Dex takes passwords only with its password database, and refuses to start without any source of users.
        if !passwords.is_empty() || connectors.is_empty() {
            config["enablePasswordDB"] = true.into();
        }
        if !passwords.is_empty() {
            config["staticPasswords"] = passwords.into();
        }
        if !connectors.is_empty() {
            config["connectors"] = connectors.into();
        }
        let text = serde_json::to_string_pretty(&config).expect("texts and numbers are always JSON");
        Rendered { text: ascii(&text) + "\n", problems }
    }

    fn connectors(&self, problems: &mut Vec<String>) -> Vec<Value> {
        let mut ids = BTreeSet::new();
        let mut found = Vec::new();
        for (index, connector) in self.spec.connectors.iter().enumerate() {
            let field = format!("{}.connectors[{index}]", self.field);
            let AuthConnector { kind, id, name, config_secret } = connector;
            if !ids.insert(id) {
                problems.push(format!("{field}.id {id:?} is there already"));
                continue;
            }
            if !CONNECTOR_TYPES.contains(&kind.as_str()) {
                problems.push(format!("{field}.type {kind:?} is none of Dex's: {}", CONNECTOR_TYPES.join(", ")));
                continue;
            }
            let config = match self.connector(kind, config_secret) {
                Ok(config) => Some(config),
                Err(why) => {
                    problems.push(format!("{field}.configSecret: {why}"));
                    let same = |c: &&Value| c["id"] == id.as_str() && c["type"] == kind.as_str();
                    self.before_list("connectors").iter().find(same).map(|c| c["config"].clone())
                }
            };
            found.extend(config.map(|config| json!({ "type": kind, "id": id, "name": name, "config": config })));
        }
        found
    }

    fn connector(&self, kind: &str, at: &SecretKey) -> Result<Value, String> {
        let text = self.secret(at)?;
        let mut config: Map<String, Value> = serde_saphyr::from_str(&text)
            .map_err(|_| format!("key {} of Secret {}/{} is no YAML map", at.key, self.namespace, at.name))?;
        for value in config.values_mut() {
            keep_dollars(value);
        }
        if !WITHOUT_REDIRECT.contains(&kind) {
            config.entry("redirectURI").or_insert_with(|| format!("{}/callback", self.issuer).into());
        }
        Ok(config.into())
    }

    fn passwords(&self, problems: &mut Vec<String>) -> Vec<Value> {
        let Some(name) = &self.spec.passwords_secret else { return Vec::new() };
        let field = format!("{}.passwordsSecret", self.field);
        let secret = format!("Secret {}/{name}", self.namespace);
        let Some(referred) = self.referred.get(name) else {
            problems.push(format!("{field}: {secret} is missing"));
            return self.before_list("staticPasswords").to_vec();
        };
        let passwords::Passwords { users, bad } = passwords::read(&referred.data);
        problems.extend(bad.into_iter().map(|why| format!("{field}: {secret}: {why}")));
        users
    }

    fn clients(&self, problems: &mut Vec<String>) -> Vec<Value> {
        // No list of redirect URIs: Dex then lets a public client use any port of the loopback, and the device flow.
        let mut found = vec![json!({ "id": CLIENT, "name": "Kubernetes", "public": true })];
        let mut ids = BTreeSet::from([CLIENT]);
        for (index, client) in self.spec.clients.iter().enumerate() {
            let field = format!("{}.clients[{index}]", self.field);
            let AuthClient { id, secret, redirect_uris } = client;
            if !ids.insert(id) {
                problems.push(format!("{field}.id {id:?} is there already"));
                continue;
            }
            let mut body = json!({ "id": id, "name": id, "redirectURIs": redirect_uris });
            match secret.as_ref().map(|at| self.secret(at)) {
                None => body["public"] = true.into(),
                Some(Ok(secret)) => body["secret"] = secret.trim_end_matches(['\r', '\n']).into(),
                Some(Err(why)) => {
                    problems.push(format!("{field}.secret: {why}"));
                    let before = self.before_list("staticClients").iter().find(|c| c["id"] == id.as_str());
                    let Some(secret) = before.and_then(|c| c.get("secret")) else { continue };
                    body["secret"] = secret.clone();
                }
            }
            found.push(body);
        }
        found
    }

    fn secret(&self, SecretKey { name, key }: &SecretKey) -> Result<String, String> {
        let secret = format!("Secret {}/{name}", self.namespace);
        let referred = self.referred.get(name).ok_or_else(|| format!("{secret} is missing"))?;
        let bytes = referred.data.get(key).ok_or_else(|| format!("{secret} has no key {key}"))?;
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.trim().is_empty() => Ok(text.to_owned()),
            Ok(_) => Err(format!("key {key} of {secret} is empty")),
            Err(_) => Err(format!("key {key} of {secret} is not text")),
        }
    }

    fn before_list(&self, key: &str) -> &[Value] {
        self.before.as_ref().and_then(|before| before[key].as_array()).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Makes every dollar sign in a connector's texts one that Dex leaves alone.
fn keep_dollars(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace('$', &format!("${{{DOLLAR}}}")),
        Value::Array(items) => items.iter_mut().for_each(keep_dollars),
        Value::Object(map) => map.values_mut().for_each(keep_dollars),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// JSON whose texts any YAML reader takes for the same: what YAML forbids or folds in a line is escaped.
pub(super) fn ascii(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut text, c| {
        match u32::from(c) {
            // Beyond the first plane YAML takes characters as they are, and has another escape than JSON.
            code @ (0x7F..=0xFFFF) => write!(text, "\\u{code:04x}").expect("a String takes everything"),
            _ => text.push(c),
        }
        text
    })
}

/// A text as a scalar of YAML, on one line.
pub(super) fn quoted(text: &str) -> String {
    ascii(&serde_json::to_string(text).expect("a text is always JSON"))
}
