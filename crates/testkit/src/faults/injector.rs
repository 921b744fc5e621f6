//! Decides, request by request and event by event, what goes wrong.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::sync::watch;

use super::{Match, Milestone, Refusal};
use crate::{
    api::Api,
    log::Effect,
    server::{Call, Refused},
};

/// What shall go wrong.
#[derive(Clone)]
pub(super) enum Action {
    Refuse(Refusal),
    Hang,
    Disconnect,
    Delay(Duration),
    Run(Arc<dyn Fn(&Api) + Send + Sync>),
    CrashBefore,
    PauseBefore,
    LoseAnswer,
    FailAfter(Refusal),
    HangAfter,
    CrashAfter,
    EventSkip,
    EventRepeat,
    EventSwap,
    EventDelay(Duration),
    EventHold,
    EventClose,
    EventExpire,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    After,
    Event,
}

impl Action {
    fn stage(&self) -> Stage {
        match self {
            Action::Refuse(_)
            | Action::Hang
            | Action::Disconnect
            | Action::Delay(_)
            | Action::Run(_)
            | Action::CrashBefore
            | Action::PauseBefore => Stage::Before,
            Action::LoseAnswer | Action::FailAfter(_) | Action::HangAfter | Action::CrashAfter => Stage::After,
            _ => Stage::Event,
        }
    }
}

struct Arranged {
    matches: Match,
    first: usize,
    times: usize,
    seen: usize,
    action: Action,
    fired: watch::Sender<usize>,
    cancelled: Arc<watch::Sender<bool>>,
}

/// Whether a client is connected, and how not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    Paused,
    Partitioned,
    Crashed,
}

/// What happens to a request before it is carried out.
pub(crate) enum Before {
    Refuse(Refused),
    Hang,
    Disconnect,
    Delay(Duration),
    Run(Arc<dyn Fn(&Api) + Send + Sync>),
}

/// What happens to an answer.
pub(crate) enum After {
    LoseAnswer,
    Fail(Refused),
    Hang,
}

/// What happens to a watch event.
pub(crate) enum OnEvent {
    Skip,
    Repeat,
    Swap,
    Delay(Duration),
    Hold(watch::Receiver<bool>),
    Close,
    Expire,
}

/// Decides what goes wrong.
pub(crate) struct Injector {
    rules: Mutex<Vec<Arranged>>,
    gates: Mutex<BTreeMap<String, watch::Sender<Gate>>>,
    cut: watch::Sender<u64>,
}

impl Default for Injector {
    fn default() -> Self {
        Injector { rules: Mutex::default(), gates: Mutex::default(), cut: watch::Sender::new(0) }
    }
}

impl Injector {
    fn rules(&self) -> MutexGuard<'_, Vec<Arranged>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn arrange(&self, matches: Match, first: usize, times: usize, action: Action) -> Milestone {
        let (fired, cancelled) = (watch::Sender::new(0), Arc::new(watch::Sender::new(false)));
        let milestone = Milestone { fired: fired.subscribe(), cancelled: cancelled.clone() };
        self.rules().push(Arranged { matches, first, times, seen: 0, action, fired, cancelled });
        milestone
    }

    /// Counts a request or event against all rules of a stage; the first that is due happens.
    fn due(&self, stage: Stage, call: &Call, object: &Value) -> Option<(Action, watch::Receiver<bool>)> {
        let mut due = None;
        for rule in self.rules().iter_mut() {
            if rule.action.stage() != stage || *rule.cancelled.borrow() || !rule.matches.takes(call, object) {
                continue;
            }
            rule.seen += 1;
            let fires = rule.seen >= rule.first && rule.seen - rule.first < rule.times;
            if fires && due.is_none() {
                rule.fired.send_modify(|fired| *fired += 1);
                due = Some((rule.action.clone(), rule.cancelled.subscribe()));
            }
        }
        due
    }

    pub fn before(&self, call: &Call) -> Option<Before> {
        match self.due(Stage::Before, call, &call.body)?.0 {
            Action::Refuse(refusal) => Some(Before::Refuse(refusal.refused())),
            Action::Hang => Some(Before::Hang),
            Action::Disconnect => Some(Before::Disconnect),
            Action::Delay(pause) => Some(Before::Delay(pause)),
            Action::Run(hook) => Some(Before::Run(hook)),
            Action::CrashBefore => {
                self.set(&call.client, Gate::Crashed);
                None
            }
            Action::PauseBefore => {
                self.set(&call.client, Gate::Paused);
                None
            }
            _ => None,
        }
    }

    pub fn after(&self, call: &Call, effect: &Effect) -> Option<After> {
        if !matches!(effect, Effect::Wrote | Effect::Read) {
            return None;
        }
        match self.due(Stage::After, call, &call.body)?.0 {
            Action::LoseAnswer => Some(After::LoseAnswer),
            Action::FailAfter(refusal) => Some(After::Fail(refusal.refused())),
            Action::HangAfter => Some(After::Hang),
            Action::CrashAfter => {
                self.set(&call.client, Gate::Crashed);
                Some(After::Hang)
            }
            _ => None,
        }
    }

    pub fn event(&self, call: &Call, object: &Value) -> Option<OnEvent> {
        let (action, cancelled) = self.due(Stage::Event, call, object)?;
        Some(match action {
            Action::EventSkip => OnEvent::Skip,
            Action::EventRepeat => OnEvent::Repeat,
            Action::EventSwap => OnEvent::Swap,
            Action::EventDelay(pause) => OnEvent::Delay(pause),
            Action::EventHold => OnEvent::Hold(cancelled),
            Action::EventClose => OnEvent::Close,
            _ => OnEvent::Expire,
        })
    }

    pub(super) fn set(&self, client: &str, gate: Gate) {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(client.to_owned()).or_insert_with(|| watch::Sender::new(Gate::Open)).send_replace(gate);
    }

    fn gate(&self, client: &str) -> watch::Receiver<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        gates.entry(client.to_owned()).or_insert_with(|| watch::Sender::new(Gate::Open)).subscribe()
    }

    pub fn is_open(&self, client: &str) -> bool {
        *self.gate(client).borrow() == Gate::Open
    }

    /// Waits until a request of this client arrives; the error is how it got lost.
    pub async fn opened(&self, client: &str) -> Result<(), &'static str> {
        let mut gate = self.gate(client);
        let mut lost = false;
        loop {
            let now = *gate.borrow_and_update();
            match now {
                Gate::Open if lost => return Err("connection reset by peer"),
                Gate::Open => return Ok(()),
                Gate::Crashed => return std::future::pending().await,
                Gate::Partitioned => lost = true,
                Gate::Paused => {}
            }
            if gate.changed().await.is_err() {
                return Err("the server is gone");
            }
        }
    }

    /// Waits until this client hears again.
    pub async fn running(&self, client: &str) {
        let mut gate = self.gate(client);
        // The sender lives as long as the server.
        let _ = gate.wait_for(|gate| *gate == Gate::Open).await;
    }

    /// Ends every watch.
    pub(super) fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    pub(super) fn clear(&self) {
        self.rules().clear();
    }

    pub fn cuts(&self) -> watch::Receiver<u64> {
        self.cut.subscribe()
    }
}
