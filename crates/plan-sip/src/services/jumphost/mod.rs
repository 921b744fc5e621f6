//! The jump hosts of a tenant: where its administrators log in by ssh, and reach its machines and their BMCs.
//!
//! What the pod expects of its image, and the image of the pod (`dev/images` has ours):
//!
//! | path | content | from |
//! |---|---|---|
//! | `/etc/opt/sip/hosts` | JSON array: `name`, `bmc` {`ip`, `address`, `disableCertificateVerification`, perhaps `username`, `password`} | Secret `<instance>` |
//! | `/etc/opt/sip/ssh_config` | keys and aliases, for ssh(1) | Secret `<instance>` |
//! | `/etc/opt/sip/environment` | `export` lines for a shell: the proxies towards BMCs | Secret `<instance>` |
//! | `/etc/opt/sip/authorized-keys/authorized_keys` | who may log in | ConfigMap `<instance>` |
//! | `/etc/opt/sip/host-keys/ssh_host_*_key` | sshd's own keys | Secret `<instance>-host-keys` |
//! | `/etc/opt/sip/ssh-private-keys/*` | keys to the tenant's machines | the Secret that the entry names |
//! | `/etc/opt/sip/kubeconfig/config` | kubeconfig of the tenant, once there is one | Secret `<instance>-kubeconfig` |
//! | `/opt/sip/bin/host` | wrapper around `/usr/local/bin/host` of the image | ConfigMap `<instance>` |
//!
//! sshd listens on port 2222 and runs, as everything else, as uid 1000, which reads the files by its group. Every volume
//! is mounted as a directory, never by `subPath`, so that kubelet refreshes it in a running pod: keys, hosts and
//! kubeconfig change without a restart. sshd reads `authorized_keys` anew for each login.
//!
//! Names of hosts resolve twice. `ssh_config` names addresses, and is live. `hostAliases`, which the original has and
//! which serves `ping` and `curl`, is part of the pod: when a host joins or leaves, the pod is replaced. That cuts nobody
//! off: the new pod is ready before the old one goes, the old one waits up to [`PATIENCE`] seconds for its sessions to
//! end, and host keys are those of the Secret. Frozen aliases would spare the replacement, and point at machines that
//! meanwhile belong to another tenant.

mod authorized_keys;
mod deployment;
mod hosts;
mod script;

use std::collections::BTreeMap;

use api::sipcluster::JumpHost;
use serde_json::{Value, json};

use super::{
    Facts, Kind, Part, Problem, Seen, Step, Want,
    endpoints::{Exposed, Port},
    names,
    object::Instance,
    secret,
    seen::READ_AGAIN,
};

/// Port of sshd in the pod: one that needs no privilege.
const SSH: u16 = 2222;
/// Directory of the private keys to the tenant's machines.
const PRIVATE_KEYS: &str = "/etc/opt/sip/ssh-private-keys";
/// Seconds that a pod which is being replaced waits for its sessions to end.
const PATIENCE: u32 = 3600;
/// The key of a Secret of host keys without which it is made anew. sshd also takes `ssh_host_ecdsa_key` and
/// `ssh_host_rsa_key` from there.
pub(crate) const HOST_KEY: &str = "ssh_host_ed25519_key";

/// What the jump hosts of the spec need.
pub(crate) fn desired(want: &Want<'_>, seen: &Seen) -> Part {
    let mut part = Part::default();
    for (index, entry) in want.spec.services.jump_host.iter().enumerate() {
        part.add(Desk::new(want, seen, index, entry).part());
    }
    part
}

/// One entry, with all that its objects are made from.
struct Desk<'a> {
    want: &'a Want<'a>,
    seen: &'a Seen,
    spec: &'a JumpHost,
    /// How people find the entry.
    entry: String,
    /// Where its fields are: `spec.services.jumpHost[0]`.
    field: String,
    instance: Instance,
}

impl<'a> Desk<'a> {
    fn new(want: &'a Want<'a>, seen: &'a Seen, index: usize, spec: &'a JumpHost) -> Self {
        Self {
            want,
            seen,
            spec,
            entry: names::entry("jumpHost", index),
            field: format!("spec.services.jumpHost[{index}]"),
            instance: Instance {
                name: names::jump_host(&want.owner.name, spec.common.name.as_deref()),
                program: "jumphost",
                component: "jumphost",
            },
        }
    }

    fn part(&self) -> Part {
        let mut part = Part::default();
        self.service(&mut part);
        self.files(&mut part);
        self.authorized_keys(&mut part);
        self.host_keys(&mut part);
        self.deployment(&mut part);
        part
    }

    fn service(&self, part: &mut Part) {
        let ssh =
            Port { name: "ssh".to_owned(), port: 22, target: Some(i32::from(SSH)), node_port: self.spec.node_port };
        let exposed = Exposed {
            instance: &self.instance,
            entry: &self.entry,
            common: &self.spec.common,
            ports: &[ssh],
            published: self.seen.published.as_ref().map(|endpoints| endpoints.jump_host.as_slice()).unwrap_or_default(),
        };
        let reached = exposed.reached(self.seen);
        part.objects.push(exposed.service(self.want));
        part.unfinished |= reached.endpoint.is_none();
        part.endpoints.extend(reached.endpoint);
        part.problems.extend(reached.problem);
        part.warnings.extend(reached.warning);
    }

    /// The Secrets: hosts, aliases, proxies, and the tenant's kubeconfig.
    fn files(&self, part: &mut Part) {
        let Self { want, seen, spec, instance, field, .. } = self;
        let private_keys = seen.referred.get(&spec.node_ssh_private_keys);
        let unread = seen.unread.referred.get(&spec.node_ssh_private_keys);
        if let Some(why) = unread {
            part.problems.push(self.problem(true, format!("{field}.nodeSSHPrivateKeys: {why}")));
            part.stays(Kind::Secret, &instance.name);
            part.again_in = Some(READ_AGAIN);
        } else if private_keys.is_none() {
            let (namespace, name) = (&want.owner.namespace, &spec.node_ssh_private_keys);
            part.problems.push(self.problem(
                true,
                format!("{field}.nodeSSHPrivateKeys: Secret {namespace}/{name} is missing, without it no key opens the machines"),
            ));
        }
        let hosts = hosts::of(&want.backends, spec);
        let nothing = BTreeMap::new();
        let exposed = spec.bmc.and_then(|bmc| bmc.expose).unwrap_or(false);
        let file = hosts::file(&hosts, if exposed { &seen.credentials } else { &nothing });
        let keys = private_keys.into_iter().flat_map(|secret| secret.data.keys().map(String::as_str));
        let ssh_config = hosts::ssh_config(&hosts, keys);
        let environment = script::environment(&self.proxies());
        let data = secret::data([("hosts", &file), ("ssh_config", &ssh_config), ("environment", &environment)]);
        if unread.is_none() {
            part.objects.push(instance.object(want, Kind::Secret, &instance.name, json!({ "data": data })));
        }
        for (host, why) in seen.unread.credentials.iter().filter(|_| exposed) {
            part.problems.push(self.problem(true, format!("{field}.bmc.expose: credentials of host {host}: {why}")));
            part.again_in = Some(READ_AGAIN);
        }
        let name = format!("{}-kubeconfig", instance.name);
        if let Some(why) = &seen.unread.tenant_kubeconfig {
            // Nothing waits for the tenant: the jump host serves on with what it has.
            part.warnings.push(self.problem(true, format!("the tenant's kubeconfig: {why}")));
            part.keep.insert((Kind::Secret, name));
            part.again_in = Some(READ_AGAIN);
        } else if let Some(kubeconfig) = &seen.tenant_kubeconfig {
            let data = secret::data([("config", &**kubeconfig)]);
            part.objects.push(instance.object(want, Kind::Secret, &name, json!({ "data": data })));
        }
    }

    /// What the host utility is told of proxies: the installation's, or that there is none.
    fn proxies(&self) -> BTreeMap<String, String> {
        if self.spec.bmc.and_then(|bmc| bmc.proxy).unwrap_or(false) {
            // `host` uses proxies towards BMCs only where it is told to.
            let asked = [("SIP_BMC_PROXY".to_owned(), "true".to_owned())];
            return self.want.installation.proxy.clone().into_iter().chain(asked).collect();
        }
        ["NO_PROXY", "no_proxy"].map(|name| (name.to_owned(), "*".to_owned())).into()
    }

    /// The ConfigMap: who may log in, and the host utility.
    fn authorized_keys(&self, part: &mut Part) {
        let Self { want, spec, instance, field, .. } = self;
        let mut accepted = String::new();
        for (line, text) in spec.ssh_authorized_keys.iter().enumerate() {
            match authorized_keys::line(text) {
                Ok(key) => accepted.extend([key.as_str(), "\n"]),
                Err(why) => {
                    let message = format!("{field}.sshAuthorizedKeys[{line}] {why}; the other keys are in use");
                    part.problems.push(self.problem(false, message));
                }
            }
        }
        let data = json!({ "authorized-keys": accepted, "host": script::HOST });
        part.objects.push(instance.object(want, Kind::ConfigMap, &instance.name, json!({ "data": data })));
    }

    /// sshd's own keys: made once, and kept for as long as they are whole.
    fn host_keys(&self, part: &mut Part) {
        let Self { want, seen, instance, .. } = self;
        let name = format!("{}-host-keys", instance.name);
        let object = |content: Value| instance.object(want, Kind::Secret, &name, content);
        match seen.objects.get(&(Kind::Secret, name.clone())).map(|owned| &owned.facts) {
            None => part.steps.push(Step::MakeHostKeys { object: object(json!({})) }),
            // It is neither wanted nor kept, so it goes, and the next plan makes another.
            Some(Facts::Secret { data }) if !data.contains_key(HOST_KEY) => part.unfinished = true,
            Some(_) => secret::keep(want, seen, &name, |data| object(json!({ "data": data })), part),
        }
    }

    fn deployment(&self, part: &mut Part) {
        let Self { want, spec, instance, field, .. } = self;
        let given = |image: &'a str| Some(image).filter(|image| !image.is_empty());
        if let Some(image) = given(&spec.common.image).or(given(&want.installation.jump_host_image)) {
            let hosts = hosts::of(&want.backends, spec);
            part.objects.push(deployment::of(want, instance, spec, image, &hosts));
        } else {
            let message = format!(
                "{field}.image is empty, and the installation names no default (SLIPWAY_JUMP_HOST_IMAGE of the manager)"
            );
            part.problems.push(self.problem(false, message));
            part.keep.insert((Kind::Deployment, instance.name.clone()));
            part.unfinished = true;
        }
    }

    fn problem(&self, waiting: bool, message: String) -> Problem {
        Problem { waiting, entry: self.entry.clone(), message }
    }
}

#[cfg(test)]
mod tests;
