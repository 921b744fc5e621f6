//! The OIDC providers of a tenant: Dex, its certificate, and what the tenant's API server is told of it.
//!
//! ```text
//!  Service ──► host and port ──► published ──► certificate ──► configuration, volume, Dex ──► ConfigMap for the tenant
//! ```
//!
//! Each step waits for the one before: the issuer's URL is in the certificate, in every token and in the tenant's
//! machines, so it is not used before it is on record. Where a later step cannot be taken, what it made before stays.
//!
//! | object | content |
//! |---|---|
//! | Service `<instance>` | port 5556, https |
//! | Secret `<instance>-tls` | the certificate ([`certificate`]); made and renewed by a step; the pod sees `tls.crt` and `tls.key` |
//! | Secret `<instance>-config` | `config.yaml` of Dex ([`config`]) |
//! | PersistentVolumeClaim `<instance>-data` | signing keys and refresh tokens (SQLite), so that tokens survive a restart |
//! | ServiceAccount `<instance>`, RoleBinding `slipway-dex`, PodDisruptionBudget | instead of the claim, where keys are Kubernetes objects ([`storage`]) |
//! | Deployment `<instance>` | Dex, uid 1001, `dex` from the image's PATH |
//! | ConfigMap `<instance>-oidc` | how the tenant's API server trusts it ([`tenant`]) |
//!
//! The claim asks for 64 MiB of the default storage class. A base cluster without one needs a PersistentVolume made by
//! hand for each provider: no class, ReadWriteOnce, 64 MiB or more, of type `local`, which gets the pod's group (a
//! `hostPath` does not, and must be writable for uid 1001).
//!
//! Dex reads its files only when it starts, so a change of configuration or certificate replaces the pods: on a volume
//! some seconds without logins; tokens go on holding.

pub mod certificate;
mod config;
mod deployment;
mod passwords;
mod storage;
mod tenant;

use std::{net::IpAddr, sync::Arc};

use api::sipcluster::{Auth, Endpoint, OidcStatus};
use serde_json::{Value, json};

use self::certificate::{CA, CERTIFICATE, CertificateMeta, META, PRIVATE_KEY, Verdict};
pub(crate) use self::config::PORT;
use self::storage::{Binding, Storage};
use super::{
    Facts, Kind, Part, Problem, Seen, Step, Want,
    endpoints::{Exposed, Port},
    names,
    object::Instance,
    part::sooner,
    secret,
    seen::READ_AGAIN,
};

/// What the OIDC providers of the spec need.
pub(crate) fn desired(want: &Want<'_>, seen: &Seen) -> Part {
    let mut part = Part::default();
    for (index, spec) in want.spec.services.auth.iter().enumerate() {
        let provider = Provider {
            want,
            seen,
            spec,
            entry: names::entry("auth", index),
            field: format!("spec.services.auth[{index}]"),
            first: index == 0,
            instance: Instance {
                name: names::auth(&want.owner.name, spec.common.name.as_deref()),
                program: "dex",
                component: "auth",
            },
        };
        part.add(provider.part());
    }
    part
}

/// One entry, with all that its objects are made from.
struct Provider<'a> {
    want: &'a Want<'a>,
    seen: &'a Seen,
    spec: &'a Auth,
    /// How people find the entry.
    entry: String,
    /// Where its fields are: `spec.services.auth[0]`.
    field: String,
    /// Whether it is the first of its SIPCluster.
    first: bool,
    instance: Instance,
}

/// A certificate that serves.
struct Certificate {
    chain: Arc<[u8]>,
    private_key: Arc<[u8]>,
    /// PEM.
    ca: String,
}

impl Provider<'_> {
    fn part(&self) -> Part {
        // Whatever step is the last that can be taken, nothing that is there already goes.
        let keep = [
            (Kind::Secret, self.named("tls")),
            (Kind::Secret, self.named("config")),
            (Kind::PersistentVolumeClaim, self.named("data")),
            (Kind::ConfigMap, self.named("oidc")),
            (Kind::ServiceAccount, self.instance.name.clone()),
            (Kind::PodDisruptionBudget, self.instance.name.clone()),
            (Kind::Deployment, self.instance.name.clone()),
        ];
        let mut part = Part { keep: keep.into(), ..Part::default() };
        if self.binding() == Binding::Ours {
            part.keep.insert((Kind::RoleBinding, names::DEX_BINDING.to_owned()));
        }
        part.unfinished = self.steps(&mut part).is_none();
        part
    }

    /// Takes one step after the other; `None` where the next one has to wait.
    fn steps(&self, part: &mut Part) -> Option<()> {
        let endpoint = self.service(part)?;
        let issuer = self.issuer(&endpoint, part)?;
        self.trusted(&issuer, part);
        if !self.published().contains(&endpoint) {
            part.again_in = Some(1);
            return None;
        }
        let certificate = self.certificate(&endpoint.host, part)?;
        self.trust(&issuer, &certificate, part);
        self.dex(&issuer, &certificate, part)
    }

    fn service(&self, part: &mut Part) -> Option<Endpoint> {
        let port = i32::from(config::PORT);
        let exposed = Exposed {
            instance: &self.instance,
            entry: &self.entry,
            common: &self.spec.common,
            ports: &[Port { name: "https".to_owned(), port, target: None, node_port: self.spec.node_port }],
            published: self.published(),
        };
        part.objects.push(exposed.service(self.want));
        let reached = exposed.reached(self.seen);
        part.problems.extend(reached.problem);
        part.warnings.extend(reached.warning);
        part.endpoints.extend(reached.endpoint.clone());
        reached.endpoint
    }

    /// The issuer's URL. A host that is neither name nor address would end up in certificates, flags and YAML.
    fn issuer(&self, Endpoint { host, port, .. }: &Endpoint, part: &mut Part) -> Option<String> {
        let is_name =
            |host: &str| host.len() <= 253 && host.to_ascii_lowercase().split('.').all(base::names::is_dns_label);
        match host.parse() {
            Ok(IpAddr::V6(address)) => Some(format!("https://[{address}]:{port}/dex")),
            Ok(IpAddr::V4(address)) => Some(format!("https://{address}:{port}/dex")),
            Err(_) if is_name(host) => Some(format!("https://{host}:{port}/dex")),
            Err(_) => {
                part.problems
                    .push(self.problem(format!("{}: {host:?} is neither a DNS name nor an address", self.field)));
                None
            }
        }
    }

    /// What status says of the provider, from the moment that the tenant has something to read.
    fn trusted(&self, issuer: &str, part: &mut Part) {
        if self.seen.objects.contains_key(&(Kind::ConfigMap, self.named("oidc"))) {
            part.oidc.push(OidcStatus {
                issuer_url: issuer.to_owned(),
                client_id: config::CLIENT.to_owned(),
                config_map: self.named("oidc"),
                storage: self.storage().map(|storage| storage.name().to_owned()),
            });
        }
    }

    /// The certificate, if there is one that serves; the step that makes or renews it, if one is due.
    fn certificate(&self, host: &str, part: &mut Part) -> Option<Certificate> {
        let name = self.named("tls");
        let names = certificate::names(host, &self.instance.name, &self.want.owner.namespace);
        let object = |content: Value| self.instance.object(self.want, Kind::Secret, &name, content);
        let ca = self.ca(part);
        let make = |replaces| Step::MakeCertificate {
            object: object(json!({})),
            replaces,
            names: names.clone(),
            ca_secret: self.spec.ca_secret.clone(),
        };
        let Some(owned) = self.seen.objects.get(&(Kind::Secret, name.clone())) else {
            part.steps.extend(ca.is_ok().then(|| make(None)));
            return None;
        };
        let Facts::Secret { data } = &owned.facts else { return None };
        let again = || make(Some((owned.uid.clone(), owned.resource_version.clone())));
        let has = |key: &str| data.get(key).filter(|bytes| !bytes.is_empty()).cloned();
        let meta =
            has(META).and_then(|bytes| serde_json::from_slice::<CertificateMeta>(&bytes).ok()).unwrap_or_default();
        let whole = (has(CERTIFICATE), has(PRIVATE_KEY), has(CA));
        let of_this_ca = match &ca {
            Ok(Some(ca)) => whole.2.as_ref() == Some(ca),
            Ok(None) | Err(()) => true,
        };
        let verdict = meta.verdict(&names, self.spec.ca_secret.as_deref(), self.seen.now);
        let serving = match (whole, verdict) {
            ((Some(chain), Some(private_key), Some(ca)), Verdict::Serves(_) | Verdict::Due) if of_this_ca => {
                Certificate { chain, private_key, ca: certificate::certificates(&ca) }
            }
            _ => {
                part.steps.extend(ca.is_ok().then(again));
                return None;
            }
        };
        match verdict {
            Verdict::Serves(left) => {
                part.again_in = sooner(part.again_in, Some(left));
                secret::keep(self.want, self.seen, &name, |data| object(json!({ "data": data })), part);
            }
            Verdict::Due | Verdict::Wrong => part.steps.extend(ca.is_ok().then(again)),
        }
        Some(serving)
    }

    /// The certificate of the CA that the entry names; `None` where we have our own.
    fn ca(&self, part: &mut Part) -> Result<Option<Arc<[u8]>>, ()> {
        let Some(name) = &self.spec.ca_secret else { return Ok(None) };
        let secret = format!("{}.caSecret: Secret {}/{name}", self.field, self.want.owner.namespace);
        let bad = |why: &str| self.problem(format!("{secret} {why}"));
        if let Some(why) = self.seen.unread.referred.get(name) {
            part.problems.push(Problem { waiting: true, ..self.problem(format!("{}.caSecret: {why}", self.field)) });
            part.again_in = sooner(part.again_in, Some(READ_AGAIN));
            return Err(());
        }
        let Some(referred) = self.seen.referred.get(name) else {
            part.problems.push(Problem { waiting: true, ..bad("is missing") });
            return Err(());
        };
        let has = |key: &str| referred.data.get(key).filter(|bytes| !bytes.is_empty());
        let (Some(certificate), Some(_)) = (has("tls.crt"), has("tls.key")) else {
            part.problems.push(bad("needs tls.crt and tls.key of a CA"));
            return Err(());
        };
        if certificate::certificates(certificate).is_empty() {
            part.problems.push(bad("has no certificate in tls.crt"));
            return Err(());
        }
        Ok(Some(certificate.clone()))
    }

    /// What the tenant's API server is told.
    fn trust(&self, issuer: &str, certificate: &Certificate, part: &mut Part) {
        let (Some(username_prefix), Some(groups_prefix)) = (
            self.prefix("usernamePrefix", self.spec.username_prefix.as_deref(), part),
            self.prefix("groupsPrefix", self.spec.groups_prefix.as_deref(), part),
        ) else {
            return;
        };
        let data = tenant::Trust { issuer, ca: &certificate.ca, username_prefix, groups_prefix }.data();
        let name = self.named("oidc");
        part.objects.push(self.instance.object(self.want, Kind::ConfigMap, &name, json!({ "data": data })));
    }

    /// A prefix that fits on a command line. `-` means none, as it does to the API server's flags.
    fn prefix<'a>(&self, field: &str, prefix: Option<&'a str>, part: &mut Part) -> Option<&'a str> {
        let prefix = prefix.filter(|prefix| *prefix != "-").unwrap_or_default();
        if prefix.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '\'' | '"' | '\\' | '`' | '$')) {
            return Some(prefix);
        }
        let message = format!(
            "{}.{field} may hold ASCII letters, digits and signs, but no blank, quote, backslash or dollar",
            self.field
        );
        part.problems.push(self.problem(message));
        None
    }

    fn dex(&self, issuer: &str, certificate: &Certificate, part: &mut Part) -> Option<()> {
        if let Some(why) = self.seen.unread.dex_definitions.as_ref().filter(|_| self.storage().is_none()) {
            part.problems.push(Problem { waiting: true, ..self.problem(format!("{}: {why}", self.field)) });
            part.again_in = sooner(part.again_in, Some(READ_AGAIN));
            return None;
        }
        let binding = self.binding();
        let storage = self.storage().unwrap_or_else(|| Storage::choose(self.first, binding, self.seen));
        match storage {
            Storage::Volume => {
                if self.spec.common.replicas.is_some_and(|replicas| replicas > 1) {
                    let message = format!("{}.replicas: a Dex that keeps its keys on a volume is one pod", self.field);
                    part.problems.push(self.problem(message));
                }
                part.objects.push(deployment::claim(self.want, &self.instance));
            }
            Storage::Kubernetes => {
                if binding == Binding::Anothers {
                    let message = format!(
                        "RoleBinding {}/{} has become another provider's: delete one of the two",
                        self.want.owner.namespace,
                        names::DEX_BINDING
                    );
                    part.problems.push(self.problem(message));
                    return None;
                }
                part.objects.extend(storage::rights(self.want, &self.instance));
                // Nothing is written by which the choice would be known before the binding is ours.
                if binding == Binding::Free {
                    return None;
                }
                let replicas = storage.replicas(self.spec);
                part.objects.extend(storage::disruption_budget(self.want, &self.instance, replicas));
                if replicas == 1 {
                    part.keep.remove(&(Kind::PodDisruptionBudget, self.instance.name.clone()));
                }
            }
        }
        let unread = |name: &String| self.seen.unread.referred.get(name);
        let users: Vec<&String> = names::users(self.spec).filter_map(unread).collect();
        if !users.is_empty() {
            // Dex goes on with the users it has, rather than without those that cannot be read.
            let problem = |why: &&String| Problem { waiting: true, ..self.problem(format!("{}: {why}", self.field)) };
            part.problems.extend(users.iter().map(problem));
            part.again_in = sooner(part.again_in, Some(READ_AGAIN));
            return None;
        }
        let rendered = self.config(issuer, storage);
        part.problems.extend(rendered.problems.into_iter().map(|message| self.problem(message)));
        let data = secret::data([("config.yaml", &rendered.text)]);
        let name = self.named("config");
        part.objects.push(self.instance.object(self.want, Kind::Secret, &name, json!({ "data": data })));
        let image = self.image(part)?;
        let files = deployment::digest(&rendered.text, &certificate.chain, &certificate.private_key);
        part.objects.push(deployment::of(self.want, &self.instance, self.spec, storage, image, &files));
        Some(())
    }

    /// The configuration in service.
    fn before(&self) -> Option<Value> {
        match self.seen.objects.get(&(Kind::Secret, self.named("config"))).map(|owned| &owned.facts) {
            Some(Facts::Secret { data }) => data.get("config.yaml").and_then(|text| serde_json::from_slice(text).ok()),
            _ => None,
        }
    }

    fn binding(&self) -> Binding {
        storage::binding(self.want, self.seen, &self.instance.name)
    }

    /// Where keys are kept, if that was chosen already.
    fn storage(&self) -> Option<Storage> {
        Storage::chosen(self.before().as_ref(), self.binding(), self.seen, &self.named("data"))
    }

    fn config(&self, issuer: &str, storage: Storage) -> config::Rendered {
        let source = config::Source {
            issuer,
            title: self.want.owner.to_string(),
            spec: self.spec,
            field: &self.field,
            namespace: &self.want.owner.namespace,
            referred: &self.seen.referred,
            storage,
            before: self.before(),
        };
        source.render()
    }

    fn image(&self, part: &mut Part) -> Option<&str> {
        let images = [&self.spec.common.image, &self.want.installation.dex_image];
        let image = images.into_iter().find(|image| !image.is_empty());
        if image.is_none() {
            let message = format!(
                "{}.image is empty, and the installation names no default (SLIPWAY_DEX_IMAGE of the manager)",
                self.field
            );
            part.problems.push(self.problem(message));
        }
        image.map(String::as_str)
    }

    fn published(&self) -> &[Endpoint] {
        self.seen.published.as_ref().map(|endpoints| endpoints.auth.as_slice()).unwrap_or_default()
    }

    fn named(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.instance.name)
    }

    fn problem(&self, message: String) -> Problem {
        Problem { waiting: false, entry: self.entry.clone(), message }
    }
}

#[cfg(test)]
mod tests;
