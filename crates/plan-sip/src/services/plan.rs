//! What has to change, and what cannot be reached.

use std::{collections::BTreeSet, fmt};

use api::sipcluster::{Endpoints, OidcStatus};
use base::Key;

use super::{Kind, Object};

/// One change. Nothing is left to decide when it is carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Create this object.
    Create(Object),
    /// Make the object with this uid, as it was at this resourceVersion, look like this.
    Update {
        /// As it shall be.
        object: Object,
        /// Precondition.
        uid: String,
        /// Precondition.
        resource_version: String,
        /// Whether nothing of what it was may stay (a PUT): an object of the original operator is taken over, or
        /// somebody added to a list, or to a map that must hold what we say and no more, such as a node selector.
        /// Otherwise what others added stays (server-side apply).
        whole: bool,
    },
    /// Delete the object.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// Precondition.
        uid: String,
        /// Precondition.
        resource_version: String,
    },
    /// Make ssh host keys and create a Secret with them.
    MakeHostKeys {
        /// The Secret as it shall be, but for its data.
        object: Object,
    },
    /// Make a certificate for these names and create, or renew, a Secret with it.
    MakeCertificate {
        /// The Secret as it shall be, but for its data.
        object: Object,
        /// uid and resourceVersion of the one that is renewed.
        replaces: Option<(String, String)>,
        /// DNS names and addresses it holds for.
        names: BTreeSet<String>,
        /// Name of the Secret with the CA that signs it; `None`: it gets a CA of its own, kept in the same Secret.
        ca_secret: Option<String>,
    },
    /// Write onto a pod which configuration it shall serve, so that kubelet refreshes its volume at once.
    AnnotatePod {
        /// The pod.
        name: String,
        /// Precondition.
        uid: String,
        /// Precondition.
        resource_version: String,
        /// The checksum: of `meta.json` in the pod's Secret, so that it changes with everything the pod has to know.
        wanted: String,
    },
    /// Delete a pod that does not take its configuration.
    DeletePod {
        /// The pod.
        name: String,
        /// Precondition.
        uid: String,
        /// Precondition.
        resource_version: String,
    },
}

/// What keeps a service from being as asked. Each names the entry or object and the field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Whether waiting may cure it: an image still being pulled, an address still to come.
    pub waiting: bool,
    /// Which entry: `spec.services.jumpHost[0]`.
    pub entry: String,
    /// For people. One about a field begins with the path of the field instead of relying on `entry`.
    pub message: String,
}

impl Problem {
    /// Whether the message itself says where.
    fn names_its_place(&self) -> bool {
        self.message.starts_with("spec.")
    }

    /// Several in one text: entries of which the same is to be said are named together, in their order.
    pub fn text_of<'a>(problems: impl IntoIterator<Item = &'a Self>) -> String {
        let mut said: Vec<(&Self, Vec<&str>)> = Vec::new();
        for problem in problems {
            match said.iter_mut().find(|(first, _)| first.message == problem.message) {
                Some((first, entries)) => {
                    if !first.names_its_place() && !entries.contains(&problem.entry.as_str()) {
                        entries.push(&problem.entry);
                    }
                }
                None => said.push((problem, vec![&problem.entry])),
            }
        }
        let text = |(problem, entries): (&Self, Vec<&str>)| match entries.as_slice() {
            [first @ .., last] if !first.is_empty() => {
                format!("{} and {last}: {}", first.join(", "), problem.message)
            }
            _ => problem.to_string(),
        };
        said.into_iter().map(text).collect::<Vec<_>>().join("; ")
    }
}

/// A change that is not in all pods of a service yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// Whether something keeps the new pods from running.
    pub failing: bool,
    /// Where, and what.
    pub problem: Problem,
}

/// What has to change, and what cannot be reached.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Changes in the order they are carried out.
    pub steps: Vec<Step>,
    /// Objects that were compared with their live form and hold.
    pub verified: BTreeSet<(Kind, String)>,
    /// Where the services are reached.
    pub endpoints: Endpoints,
    /// What the tenant's API server is told of its OIDC providers.
    pub oidc: Vec<OidcStatus>,
    /// What is not as asked.
    pub problems: Vec<Problem>,
    /// Changes that are still on their way into pods. Where those of before serve, the services are ready all the same.
    pub rollouts: Vec<Rollout>,
    /// What is as asked, and may still surprise.
    pub warnings: Vec<Problem>,
    /// Leaving hosts whose departure every pod that counts has confirmed.
    pub confirmed: BTreeSet<Key>,
    /// Whether everything that shall exist exists and is available.
    pub ready: bool,
    /// Seconds until time alone, or a pod's report, which nobody announces, may change the plan; `None`: never.
    pub again_in: Option<u64>,
}

impl fmt::Display for Plan {
    /// One line for each step (`+` comes, `~` changes, `-` goes, `>` pods) and each problem (`!`) or warning (`?`).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            steps,
            verified: _,
            endpoints: _,
            oidc: _,
            problems,
            rollouts,
            warnings,
            confirmed,
            ready: _,
            again_in: _,
        } = self;
        for step in steps {
            writeln!(f, "{step}")?;
        }
        for host in confirmed {
            writeln!(f, "= host {host} is out of every load balancer")?;
        }
        for problem in problems {
            writeln!(f, "! {problem}")?;
        }
        for rollout in rollouts {
            writeln!(f, "? {}", rollout.problem)?;
        }
        for warning in warnings {
            writeln!(f, "? {warning}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(Object { kind, name, body: _ }) => write!(f, "+ {kind} {name}"),
            Self::Update { object: Object { kind, name, body: _ }, .. } => write!(f, "~ {kind} {name}"),
            Self::Delete { kind, name, .. } => write!(f, "- {kind} {name}"),
            Self::MakeHostKeys { object } => write!(f, "+ {} {} with new ssh host keys", object.kind, object.name),
            Self::MakeCertificate { object, replaces, names, ca_secret: _ } => {
                let sign = if replaces.is_some() { '~' } else { '+' };
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                write!(f, "{sign} {} {} with a certificate for {}", object.kind, object.name, names.join(", "))
            }
            Self::AnnotatePod { name, .. } => write!(f, "> Pod {name} reads its configuration"),
            Self::DeletePod { name, .. } => write!(f, "> Pod {name} is replaced: it does not take its configuration"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { waiting: _, entry, message } = self;
        if self.names_its_place() { f.write_str(message) } else { write!(f, "{entry}: {message}") }
    }
}
