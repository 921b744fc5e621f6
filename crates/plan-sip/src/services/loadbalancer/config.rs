//! The configuration of one load balancer: which template is in service, which is being tried, what the Secret holds.
//!
//! ```text
//!                    renders the same, or a pod serves it
//!            ┌───────────────────────────────────────────────┐
//!            ▼                                                │
//!       accepted ──► template changed ──► candidate ──────────┤
//!            ▲                                                │ no pod serves it
//!            └─────────────── stays in service ◄──────────────┘
//! ```
//!
//! Both are rendered anew whenever the hosts change. A new image needs no candidate: its pods start beside the old ones,
//! which go only once the new ones are Ready.

use std::{collections::BTreeMap, sync::Arc};

use gotemplate::{Limits, Template};
use k8s_openapi::ByteString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Role, servers::Servers};
use crate::services::{CustomTemplate, Facts, Kind, Pod, Problem, Seen, endpoints::Port, object::sha256};

/// Secret key of the accepted configuration (the original's).
pub(super) const ACCEPTED: &str = "haproxy.cfg";
/// Secret key of the candidate.
pub(super) const CANDIDATE: &str = "candidate.cfg";
/// Secret key of [`Meta`].
pub(super) const META: &str = "meta.json";
/// Secret key of the template that the accepted configuration is rendered from.
const ACCEPTED_TEMPLATE: &str = "accepted.tmpl";
/// Secret key of the template that the candidate is rendered from.
const CANDIDATE_TEMPLATE: &str = "candidate.tmpl";

/// Most bytes that the values of a Secret may have together (Kubernetes: `MaxSecretSize`).
const SECRET_MAX: usize = 1 << 20;

/// What `meta.json` says to the sidecar, which ignores what it does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    /// SHA-256 of the accepted configuration.
    pub accepted: String,
    /// SHA-256 of the candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<String>,
    /// Servers of which no session may be left.
    #[serde(default)]
    pub leaving: Vec<Leaving>,
    /// For ourselves: since when, in seconds since the epoch, pods have had to do what this says.
    #[serde(default)]
    pub since: i64,
}

/// A server of which no session may be left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Leaving {
    /// Its name in configurations.
    pub name: String,
    /// Its address, unless a server that stays has it too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A template and what it renders to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rendered {
    template: Arc<str>,
    pub text: String,
}

/// What the Secret shall hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub accepted: Rendered,
    pub candidate: Option<Rendered>,
    pub meta: Meta,
}

impl Config {
    /// `meta.json`.
    fn meta_json(&self) -> String {
        serde_json::to_string(&self.meta).expect("texts and numbers are JSON")
    }

    /// Checksum of what the pods have to know.
    pub fn wanted(&self) -> String {
        sha256(&self.meta_json())
    }

    fn values(&self) -> BTreeMap<&'static str, Vec<u8>> {
        let Self { accepted, candidate, meta: _ } = self;
        let mut values = BTreeMap::from([
            (META, self.meta_json().into_bytes()),
            (ACCEPTED, accepted.text.clone().into_bytes()),
            (ACCEPTED_TEMPLATE, accepted.template.as_bytes().to_vec()),
        ]);
        if let Some(Rendered { template, text }) = candidate {
            values.insert(CANDIDATE, text.clone().into_bytes());
            values.insert(CANDIDATE_TEMPLATE, template.as_bytes().to_vec());
        }
        values
    }

    /// `type` and `data` of the Secret.
    pub fn secret(&self) -> Value {
        let data: BTreeMap<_, _> = self.values().into_iter().map(|(key, value)| (key, ByteString(value))).collect();
        json!({ "type": "Opaque", "data": data })
    }
}

/// What the Secret holds already.
struct State {
    accepted: Rendered,
    candidate: Option<Rendered>,
    meta: Meta,
}

impl State {
    fn read(seen: &Seen, secret: &str) -> Option<Self> {
        let owned = seen.objects.get(&(Kind::Secret, secret.to_owned()))?;
        let Facts::Secret { data } = &owned.facts else { return None };
        let text = |key| data.get(key).and_then(|value| std::str::from_utf8(value).ok());
        let rendered =
            |template, config| Some(Rendered { template: text(template)?.into(), text: text(config)?.to_owned() });
        Some(Self {
            accepted: rendered(ACCEPTED_TEMPLATE, ACCEPTED)?,
            candidate: rendered(CANDIDATE_TEMPLATE, CANDIDATE),
            meta: serde_json::from_str(text(META)?).ok()?,
        })
    }
}

/// What a configuration is made from.
pub(super) struct Source<'a> {
    pub role: &'a Role,
    /// How people find the entry.
    pub entry: &'a str,
    pub ports: &'a [Port],
    pub servers: &'a Servers,
    /// Name of the Secret.
    pub secret: &'a str,
    /// The pods of this load balancer.
    pub pods: &'a [&'a Pod],
}

impl Source<'_> {
    /// The configuration, and what is not as asked; no configuration if none can be made that fits a Secret.
    pub fn config(&self, seen: &Seen) -> (Option<Config>, Vec<Problem>) {
        let mut problems = Vec::new();
        let builtin: Arc<str> = self.role.template.into();
        let custom = seen.templates.get(self.role.template_key);
        let goal = custom.map_or_else(|| builtin.clone(), |custom| custom.text.clone());
        let state = State::read(seen, self.secret);

        let mut template = state.as_ref().map_or_else(|| builtin.clone(), |state| state.accepted.template.clone());
        if state.as_ref().is_some_and(|state| self.is_served(state, &goal)) {
            template = goal.clone();
        }
        let mut accepted =
            match self.render(&template) {
                Ok(accepted) => accepted,
                // A stale configuration could keep a host that is somebody else's by now, so it is no way out.
                Err(why) if template != builtin => {
                    problems.push(self.problem(false, format!(
                    "the template in service can no longer be rendered, and the built-in one takes its place: {why}"
                )));
                    match self.render(&builtin) {
                        Ok(accepted) => accepted,
                        Err(why) => {
                            problems.push(self.problem(false, format!("the built-in template: {why}")));
                            return (None, problems);
                        }
                    }
                }
                Err(why) => {
                    problems.push(self.problem(false, format!("the built-in template: {why}")));
                    return (None, problems);
                }
            };
        let mut candidate = None;
        if accepted.template != goal {
            let name = self.template_name(custom);
            match self.render(&goal) {
                Ok(rendered) if rendered.text == accepted.text => accepted = rendered,
                Ok(rendered) => {
                    problems.push(self.trial(&name, &rendered));
                    candidate = Some(rendered);
                }
                Err(why) => problems.push(self.problem(false, format!("{name}{why}"))),
            }
        }
        problems.extend(self.refused(&accepted));

        let mut config = Config { meta: self.meta(&accepted, candidate.as_ref()), accepted, candidate };
        config.meta.since = match &state {
            Some(state) if state.meta == (Meta { since: state.meta.since, ..config.meta.clone() }) => state.meta.since,
            _ => seen.now,
        };
        let size: usize = config.values().values().map(Vec::len).sum();
        if size > SECRET_MAX {
            problems.push(self.problem(
                false,
                format!(
                    "the configuration of {} ports to {} hosts takes {size} bytes, and a Secret holds {SECRET_MAX}: \
                 ask for fewer ports, or give a template that is shorter for each port",
                    self.ports.len(),
                    self.servers.staying.len(),
                ),
            ));
            return (None, problems);
        }
        (Some(config), problems)
    }

    /// Whether a pod serves what the Secret holds as candidate, and the candidate is still what is asked for.
    fn is_served(&self, state: &State, goal: &Arc<str>) -> bool {
        let Some(candidate) = state.candidate.as_ref().filter(|candidate| candidate.template == *goal) else {
            return false;
        };
        let sha = sha256(&candidate.text);
        self.pods.iter().filter_map(|pod| pod.report.as_ref()).any(|report| report.serving == sha)
    }

    fn meta(&self, accepted: &Rendered, candidate: Option<&Rendered>) -> Meta {
        let leaving = self.servers.leaving.iter().map(|server| Leaving {
            name: server.name.clone(),
            address: self.servers.own_address(server).map(|address| address.to_string()),
        });
        Meta {
            accepted: sha256(&accepted.text),
            candidate: candidate.map(|candidate| sha256(&candidate.text)),
            leaving: leaving.collect(),
            since: 0,
        }
    }

    fn render(&self, template: &Arc<str>) -> Result<Rendered, String> {
        let ports: Vec<Value> = self
            .ports
            .iter()
            .map(|port| {
                let container_port = port.target.unwrap_or(port.port);
                json!({ "Name": port.name, "ContainerPort": container_port, "Protocol": "TCP", "HostPort": 0, "HostIP": "" })
            })
            .collect();
        let servers: Vec<Value> =
            self.servers.staying.iter().map(|server| json!({ "Name": server.name, "IP": server.ip() })).collect();
        let data = json!({ "ContainerPorts": ports, "Servers": servers });
        let fault =
            |error: gotemplate::Error| format!("line {} column {}: {}", error.line, error.column, error.message);
        let parsed = Template::parse(self.role.template_key, template).map_err(fault)?;
        let limits = Limits { steps: STEPS, ..Limits::default() };
        let text = parsed.render(&data, limits).map_err(fault)?;
        Ok(Rendered { template: template.clone(), text })
    }

    fn template_name(&self, custom: Option<&CustomTemplate>) -> String {
        match custom {
            Some(CustomTemplate { config_map, text: _ }) => {
                format!("ConfigMap {config_map}, key {}, ", self.role.template_key)
            }
            None => "the built-in template, ".to_owned(),
        }
    }

    /// What became of the candidate so far.
    fn trial(&self, name: &str, candidate: &Rendered) -> Problem {
        match self.refusal(&candidate.text) {
            Some((_, said)) => self.problem(
                false,
                format!("{name}renders a configuration that HAProxy refuses; the one before stays in service: {said}"),
            ),
            None => self.problem(true, format!("{name}is being tried: no pod serves it yet")),
        }
    }

    /// A configuration that one HAProxy took and another (of another image, say) does not.
    fn refused(&self, accepted: &Rendered) -> Option<Problem> {
        let (pod, said) = self.refusal(&accepted.text)?;
        Some(self.problem(false, format!("HAProxy of pod {} refuses the configuration in service: {said}", pod.name)))
    }

    fn refusal(&self, text: &str) -> Option<(&Pod, &str)> {
        let checksum = sha256(text);
        self.pods.iter().find_map(|pod| match &pod.report.as_ref()?.refused {
            Some((sha, said)) if *sha == checksum => Some((*pod, said.as_str())),
            _ => None,
        })
    }

    fn problem(&self, waiting: bool, message: String) -> Problem {
        Problem { waiting, entry: self.entry.to_owned(), message }
    }
}

/// Enough for every configuration that fits a Secret.
const STEPS: u64 = 4_000_000;
