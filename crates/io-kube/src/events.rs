//! Events (`events.k8s.io/v1`) about an object: one for each transition of a condition, none at rest.

use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event},
    apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};

use crate::{
    error::{Cause, Error, Target, Verb},
    lease::Now,
};

/// Most bytes of a note that the API accepts.
const NOTE: usize = 1024;

/// Whether something went as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It did.
    Normal,
    /// Somebody may have to act.
    Warning,
}

/// Something worth telling once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether somebody may have to act.
    pub tone: Tone,
    /// CamelCase, from a closed set.
    pub reason: String,
    /// What was being done, such as `Place`; CamelCase.
    pub action: &'static str,
    /// For people. Cut at 1 KiB.
    pub note: String,
}

/// Events that the change from `old` to `new` conditions is worth: one per condition whose status or reason changed.
/// `good` says which status of a condition is the one without worries.
pub fn transitions(
    old: &[Condition],
    new: &[Condition],
    action: &'static str,
    good: impl Fn(&Condition) -> bool,
) -> Vec<Told> {
    let same = |a: &Condition, b: &Condition| a.type_ == b.type_ && a.status == b.status && a.reason == b.reason;
    new.iter()
        .filter(|condition| !old.iter().any(|before| same(before, condition)))
        .map(|condition| Told {
            tone: if good(condition) { Tone::Normal } else { Tone::Warning },
            reason: condition.reason.clone(),
            action,
            note: condition.message.clone(),
        })
        .collect()
}

/// Writes events in the name of one controller.
#[derive(Clone)]
pub struct Recorder {
    client: Client,
    controller: &'static str,
    instance: String,
    now: Now,
}

impl Recorder {
    /// `controller` is a qualified name such as `slipway.airshipit.org/sip`, `instance` the pod's name.
    pub fn new(client: Client, controller: &'static str, instance: impl Into<String>, now: Now) -> Self {
        Recorder { client, controller, instance: instance.into(), now }
    }

    /// Writes one event about an object. A failure is for the log: nothing depends on an event.
    pub async fn tell(&self, about: &ObjectReference, told: &Told) -> Result<(), Error> {
        // Events about cluster-wide objects go where kubectl looks for them.
        let namespace = about.namespace.clone().unwrap_or_else(|| "default".into());
        let event = self.event(about, &namespace, told);
        let name = event.metadata.name.clone().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        api.create(&PostParams::default(), &event).await.map(|_| ()).map_err(|error| Error {
            verb: Verb::Create,
            target: Target { kind: "Event".into(), namespace: Some(namespace), name },
            cause: Cause::of(&error),
        })
    }

    fn event(&self, about: &ObjectReference, namespace: &str, told: &Told) -> Event {
        let subject = about.name.as_deref().unwrap_or(self.controller);
        // Time alone is not unique: two events of one turn may fall into the same microsecond.
        // Names of objects are ASCII.
        let subject = subject.get(..230).unwrap_or(subject);
        let name = format!("{subject}.{:016x}", rand::random::<u64>());
        Event {
            metadata: ObjectMeta { name: Some(name), namespace: Some(namespace.into()), ..ObjectMeta::default() },
            event_time: Some(MicroTime((self.now)())),
            type_: Some(if told.tone == Tone::Normal { "Normal" } else { "Warning" }.into()),
            reason: Some(told.reason.clone()),
            action: Some(told.action.into()),
            note: Some(cut(&told.note)),
            regarding: Some(about.clone()),
            reporting_controller: Some(self.controller.into()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        }
    }
}

/// The beginning of a text, whole characters only.
fn cut(text: &str) -> String {
    if text.len() <= NOTE {
        return text.to_owned();
    }
    let end = (0..=NOTE - '…'.len_utf8()).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Condition {
        Condition {
            type_: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
            last_transition_time: Time(jiff::Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn only_a_condition_that_turned_is_told() {
        let old = [condition("Ready", "False", "Waiting", "3 hosts"), condition("Stalled", "False", "Fine", "")];
        let new =
            [condition("Ready", "False", "Waiting", "2 hosts"), condition("Stalled", "True", "BadSpec", "no role")];
        let told = transitions(&old, &new, "Place", |condition| condition.status == "False");
        let expected = Told { tone: Tone::Warning, reason: "BadSpec".into(), action: "Place", note: "no role".into() };
        assert_eq!(told, [expected]);
        assert_eq!(transitions(&new, &new, "Place", |_| true), []);
    }

    #[test]
    fn a_long_note_is_cut_between_characters() {
        let cut = cut(&"ü".repeat(600));
        assert!(cut.len() <= NOTE && cut.ends_with("ü…"));
        assert_eq!(super::cut("short"), "short");
    }
}
