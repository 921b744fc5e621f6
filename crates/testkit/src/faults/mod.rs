//! Faults: what goes wrong, with which request or event, how often. Deterministic: counted, never by chance.

mod injector;

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::sync::watch;

use crate::{
    api::Api,
    log::Verb,
    server::{Call, Refused, Server},
};
use injector::{Action, Gate};
pub(crate) use injector::{After, Before, Injector, OnEvent};

/// Which requests, or watch events, a fault is about.
#[derive(Clone, Debug, Default)]
pub struct Match {
    writes: Option<bool>,
    verb: Option<Verb>,
    kind: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    client: Option<String>,
    status: Option<bool>,
}

impl Match {
    /// All requests.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests that may change something.
    pub fn writes() -> Self {
        Match { writes: Some(true), ..Self::default() }
    }

    /// Requests that change nothing.
    pub fn reads() -> Self {
        Match { writes: Some(false), ..Self::default() }
    }

    /// Only of this verb.
    #[must_use]
    pub fn verb(self, verb: Verb) -> Self {
        Match { verb: Some(verb), ..self }
    }

    /// Only about this kind.
    #[must_use]
    pub fn kind(self, kind: &str) -> Self {
        Match { kind: Some(kind.into()), ..self }
    }

    /// Only about this object: `namespace/name`, or a name.
    #[must_use]
    pub fn object(self, key: &str) -> Self {
        match key.split_once('/') {
            Some((namespace, name)) => Match { namespace: Some(namespace.into()), name: Some(name.into()), ..self },
            None => Match { name: Some(key.into()), ..self },
        }
    }

    /// Only from this client.
    #[must_use]
    pub fn client(self, client: &str) -> Self {
        Match { client: Some(client.into()), ..self }
    }

    /// Only about the status, or (false) about everything else.
    #[must_use]
    pub fn status(self, status: bool) -> Self {
        Match { status: Some(status), ..self }
    }

    fn takes(&self, call: &Call, object: &Value) -> bool {
        fn is<T: PartialEq + ?Sized>(wanted: Option<&T>, have: &T) -> bool {
            wanted.is_none_or(|wanted| wanted == have)
        }
        let metadata = |field: &str| object["metadata"][field].as_str();
        let name = metadata("name").or(call.name.as_deref()).unwrap_or_default();
        let namespace = metadata("namespace").or(call.namespace.as_deref()).unwrap_or_default();
        is(self.writes.as_ref(), &call.verb.writes())
            && is(self.verb.as_ref(), &call.verb)
            && is(self.kind.as_deref(), call.kind.kind.as_str())
            && is(self.client.as_deref(), call.client.as_str())
            && is(self.status.as_ref(), &call.is_status())
            && is(self.namespace.as_deref(), namespace)
            && is(self.name.as_deref(), name)
    }
}

/// How a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// 409: the object has been modified.
    Conflict,
    /// 403, with this message.
    Forbidden(String),
    /// 422, with this message.
    Invalid(String),
    /// 404.
    NotFound,
    /// 500.
    Internal,
    /// 503.
    Unavailable,
    /// 429.
    TooMany,
    /// 504.
    Timeout,
}

impl Refusal {
    fn refused(&self) -> Refused {
        match self {
            Refusal::Conflict => Refused::any(
                409,
                "Conflict",
                "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again",
            ),
            Refusal::Forbidden(message) => Refused::any(403, "Forbidden", message),
            Refusal::Invalid(message) => Refused::any(422, "Invalid", message),
            Refusal::NotFound => Refused::any(404, "NotFound", "not found"),
            Refusal::Internal => {
                Refused::any(500, "InternalError", "Internal error occurred: etcdserver: leader changed")
            }
            Refusal::Unavailable => Refused::any(503, "ServiceUnavailable", "apiserver not ready"),
            Refusal::TooMany => Refused::any(429, "TooManyRequests", "Too many requests, please try again later."),
            Refusal::Timeout => {
                Refused::any(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
            }
        }
    }
}

/// Where faults are arranged.
#[derive(Clone)]
pub struct Faults {
    server: Arc<Server>,
}

impl Faults {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Faults { server }
    }

    /// A fault for requests: to be completed by saying which of them and what happens.
    pub fn when(&self, matches: Match) -> When {
        When { server: self.server.clone(), matches, first: 1, times: 1 }
    }

    /// A fault for watch events: to be completed by saying which of them and what happens.
    pub fn event(&self, matches: Match) -> WhenEvent {
        WhenEvent { server: self.server.clone(), matches, first: 1, times: 1 }
    }

    /// From now on no request of this client is carried out and it hears of nothing, until [`Faults::resume`]: then
    /// what it sent meanwhile is carried out, late.
    pub fn pause(&self, client: &str) {
        self.server.injector.set(client, Gate::Paused);
    }

    /// Ends a pause.
    pub fn resume(&self, client: &str) {
        self.server.injector.set(client, Gate::Open);
    }

    /// From now on no request of this client arrives, and it hears of nothing, until [`Faults::heal`]: then requests
    /// under way fail as a broken connection does.
    pub fn partition(&self, client: &str) {
        self.server.injector.set(client, Gate::Partitioned);
    }

    /// Ends a partition.
    pub fn heal(&self, client: &str) {
        self.server.injector.set(client, Gate::Open);
    }

    /// From now on this client is dead: nothing it sends arrives, nothing is answered.
    pub fn crash(&self, client: &str) {
        self.server.injector.set(client, Gate::Crashed);
    }

    /// The client's `nth` write from now (1 is the next) takes effect, and then the client is dead, as after a crash.
    /// Writes that change nothing do not count.
    pub fn crash_after_write(&self, client: &str, nth: usize) -> Milestone {
        self.arrange(Match::writes().client(client), nth, 1, Action::CrashAfter)
    }

    /// The client is dead right before its `nth` write from now.
    pub fn crash_before_write(&self, client: &str, nth: usize) -> Milestone {
        self.arrange(Match::writes().client(client), nth, 1, Action::CrashBefore)
    }

    /// The client is paused right before its `nth` write from now; that write is carried out when it is resumed, even if
    /// the client has given up waiting by then.
    pub fn pause_before_write(&self, client: &str, nth: usize) -> Milestone {
        self.arrange(Match::writes().client(client), nth, 1, Action::PauseBefore)
    }

    /// Every watch that is open ends; clients resume where they were.
    pub fn close_watches(&self) {
        self.server.injector.cut();
    }

    /// History is forgotten: watches end, resuming gets 410 and everything has to be listed anew.
    pub fn forget_history(&self) {
        {
            let mut state = self.server.state();
            // A version of its own, so that nobody can already be there.
            state.version += 1;
            state.oldest = state.version;
        }
        self.close_watches();
    }

    /// All arranged faults are taken back; pauses, partitions and crashes stay.
    pub fn clear(&self) {
        self.server.injector.clear();
    }

    fn arrange(&self, matches: Match, first: usize, times: usize, action: Action) -> Milestone {
        self.server.injector.arrange(matches, first, times, action)
    }
}

/// A fault for requests, not yet complete. By default it happens once, to the next one.
#[must_use]
pub struct When {
    server: Arc<Server>,
    matches: Match,
    first: usize,
    times: usize,
}

impl When {
    /// To the `nth` matching request from now; 1 is the next.
    pub fn nth(self, nth: usize) -> Self {
        When { first: nth, ..self }
    }

    /// So many times in a row.
    pub fn times(self, times: usize) -> Self {
        When { times, ..self }
    }

    /// To every one, until the rule is cancelled.
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Not carried out, refused.
    pub fn refuse(self, refusal: Refusal) -> Rule {
        self.rule(Action::Refuse(refusal))
    }

    /// Not carried out, and never answered.
    pub fn hang(self) -> Rule {
        self.rule(Action::Hang)
    }

    /// Not carried out; the connection breaks.
    pub fn disconnect(self) -> Rule {
        self.rule(Action::Disconnect)
    }

    /// Carried out so much later.
    pub fn delay(self, pause: Duration) -> Rule {
        self.rule(Action::Delay(pause))
    }

    /// Carried out after `hook` has changed the world.
    pub fn first_do(self, hook: impl Fn(&Api) + Send + Sync + 'static) -> Rule {
        self.rule(Action::Run(Arc::new(hook)))
    }

    /// Carried out; the connection breaks before the answer. Requests that change nothing do not count.
    pub fn lose_answer(self) -> Rule {
        self.rule(Action::LoseAnswer)
    }

    /// Carried out, and reported as refused. Requests that change nothing do not count.
    pub fn fail_after(self, refusal: Refusal) -> Rule {
        self.rule(Action::FailAfter(refusal))
    }

    /// Carried out, and never answered. Requests that change nothing do not count.
    pub fn hang_after(self) -> Rule {
        self.rule(Action::HangAfter)
    }

    fn rule(self, action: Action) -> Rule {
        Rule(self.server.injector.arrange(self.matches, self.first, self.times, action))
    }
}

/// A fault for watch events, not yet complete. By default it happens once, to the next one.
#[must_use]
pub struct WhenEvent {
    server: Arc<Server>,
    matches: Match,
    first: usize,
    times: usize,
}

impl WhenEvent {
    /// To the `nth` matching event from now; 1 is the next. Every watch counts for itself only in so far as `client`
    /// tells them apart.
    pub fn nth(self, nth: usize) -> Self {
        WhenEvent { first: nth, ..self }
    }

    /// So many times in a row.
    pub fn times(self, times: usize) -> Self {
        WhenEvent { times, ..self }
    }

    /// To every one, until the rule is cancelled.
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Never delivered. (No real server does this; a net below the watch must cope.)
    pub fn skip(self) -> Rule {
        self.rule(Action::EventSkip)
    }

    /// Delivered twice.
    pub fn repeat(self) -> Rule {
        self.rule(Action::EventRepeat)
    }

    /// Delivered after the event that follows it.
    pub fn swap(self) -> Rule {
        self.rule(Action::EventSwap)
    }

    /// Delivered so much later, and everything behind it too.
    pub fn delay(self, pause: Duration) -> Rule {
        self.rule(Action::EventDelay(pause))
    }

    /// Delivered, with everything behind it, when the rule is cancelled.
    pub fn hold(self) -> Rule {
        self.rule(Action::EventHold)
    }

    /// The watch ends in its place; it comes when the client resumes.
    pub fn close(self) -> Rule {
        self.rule(Action::EventClose)
    }

    /// The watch ends in its place, with 410.
    pub fn expire(self) -> Rule {
        self.rule(Action::EventExpire)
    }

    fn rule(self, action: Action) -> Rule {
        Rule(self.server.injector.arrange(self.matches, self.first, self.times, action))
    }
}

/// An arranged fault.
pub struct Rule(Milestone);

impl Rule {
    /// How often it has happened.
    pub fn fired(&self) -> usize {
        *self.0.fired.borrow()
    }

    /// Returns once it has happened.
    pub async fn happened(&self) {
        self.0.reached().await;
    }

    /// Takes it back; held events go out.
    pub fn cancel(&self) {
        self.0.cancelled.send_replace(true);
    }
}

/// An instant that a test waits for.
#[derive(Clone)]
pub struct Milestone {
    fired: watch::Receiver<usize>,
    cancelled: Arc<watch::Sender<bool>>,
}

impl Milestone {
    /// Returns once it is reached.
    pub async fn reached(&self) {
        let mut fired = self.fired.clone();
        // The sender lives as long as the server.
        let _ = fired.wait_for(|fired| *fired > 0).await;
    }

    /// Whether it is reached.
    pub fn is_reached(&self) -> bool {
        *self.fired.borrow() > 0
    }
}
