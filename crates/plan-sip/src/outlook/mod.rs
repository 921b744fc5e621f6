//! What answers a tenant's users: conditions beside `Ready`, and when they are worth a write.
//!
//! ```text
//!  reading as told ─────────────────────────────► nothing
//!  another reading ──► departed ──► for the whole hold ──► told: one write; the next hold is twice as long
//!                          │ a reading as told                  │ half an hour without another
//!                          └──────────► nothing                 └──► the hold is short again
//! ```
//!
//! What answers is the tenant's affair and may come and go many times a minute. So a reading is told only once it has been
//! something else than what was told for some time without a break, and every change makes that time longer: a load
//! balancer whose backends flap costs a few writes, and then one in ten minutes at most.

mod oidc;
mod tenant;

use base::{Says, condition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

pub use self::{
    oidc::{Provider, Question, oidc, providers},
    tenant::{PodHealth, ServerHealth, tenant},
};

/// Condition type: whether the tenant's API servers answer behind the control-plane load balancers.
pub const TENANT_REACHABLE: &str = "TenantReachable";
/// Condition type: whether the OIDC providers answer as published.
pub const OIDC_READY: &str = "OIDCReady";

/// Reason while nobody could be asked.
pub const NOT_ASKED: &str = "NotAsked";
/// Reason while everything answers.
pub const ANSWERING: &str = "Answering";

/// Every reason of these conditions.
const REASONS: [&str; 12] = [
    NOT_ASKED,
    ANSWERING,
    tenant::SOME_DOWN,
    tenant::NONE_ANSWERS,
    tenant::CUT_OFF,
    tenant::NO_HOSTS,
    tenant::NOT_CHECKED,
    oidc::NO_CERTIFICATE,
    oidc::NOT_PUBLISHED,
    oidc::NOT_AVAILABLE,
    oidc::NO_ANSWER,
    oidc::WRONG_ISSUER,
];

/// Seconds for which a reading has to have departed from what was told, at first and at most.
const HOLD: (i64, i64) = (20, 600);
/// Seconds without a change after which the hold is short again.
const QUIET: i64 = 1800;
/// Seconds between two looks: while a change is being watched, while something does not answer, the same after
/// [`PATIENCE`], and while all is well.
const LOOKS: [u64; 4] = [5, 10, 30, 60];
/// Seconds after which something that does not answer is looked at less often.
const PATIENCE: i64 = 600;

/// What one look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// As in [`Says`].
    pub holds: Option<bool>,
    /// As in [`Says`].
    pub reason: &'static str,
    /// Whom it concerns, and how many: readings with the same status, reason and mark are the same, however their words
    /// differ. None: only the words tell.
    pub mark: Option<String>,
    /// For people.
    pub message: String,
}

/// One condition, as told and as it may have to be told next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    kind: &'static str,
    told: Reading,
    told_at: i64,
    /// Since when the readings have been something else.
    departed_at: Option<i64>,
    /// Changes without half an hour of quiet between them.
    changes: u32,
}

impl Outlook {
    /// Goes on from what the conditions say, whoever wrote them.
    pub fn resume(kind: &'static str, conditions: &[Condition], now: i64) -> Self {
        let told = condition::find(conditions, kind).and_then(known).unwrap_or_else(|| Reading {
            holds: None,
            reason: NOT_ASKED,
            mark: None,
            message: String::new(),
        });
        Self { kind, told, told_at: now, departed_at: None, changes: 0 }
    }

    /// What to tell.
    pub fn says(&self) -> Says {
        let Reading { holds, reason, mark: _, message } = self.told.clone();
        Says { kind: self.kind, holds, reason, message }
    }

    /// Takes in what a look at second `now` found. Whether there is something else to tell than before.
    pub fn hear(&mut self, reading: Reading, now: i64) -> bool {
        if self.told.same(&reading) {
            self.told.mark = reading.mark;
            self.departed_at = None;
            return false;
        }
        if now.saturating_sub(self.told_at) >= QUIET {
            self.changes = 0;
        }
        let departed = *self.departed_at.get_or_insert(now);
        if now.saturating_sub(departed) < self.hold() {
            return false;
        }
        self.changes += 1;
        (self.told, self.told_at, self.departed_at) = (reading, now, None);
        true
    }

    /// Nothing good is at stake at the beginning, so the first change is told at once.
    fn hold(&self) -> i64 {
        if self.changes == 0 && self.told.holds != Some(true) {
            return 0;
        }
        HOLD.0.saturating_mul(1 << self.changes.min(8)).min(HOLD.1)
    }

    /// Seconds until the next look.
    pub fn look_in(&self, now: i64) -> u64 {
        let [departed, soon, later, well] = LOOKS;
        match (self.departed_at, self.told.holds) {
            (Some(_), _) => departed,
            (None, Some(true)) => well,
            (None, _) if now.saturating_sub(self.told_at) < PATIENCE => soon,
            (None, _) => later,
        }
    }
}

impl Reading {
    fn same(&self, other: &Self) -> bool {
        let marked = match (&self.mark, &other.mark) {
            (Some(one), Some(other)) => one == other,
            _ => self.message == other.message,
        };
        (self.holds, self.reason) == (other.holds, other.reason) && marked
    }
}

/// A condition that we wrote.
fn known(condition: &Condition) -> Option<Reading> {
    let reason = REASONS.into_iter().find(|reason| *reason == condition.reason)?;
    let holds = match condition.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    Some(Reading { holds, reason, mark: None, message: condition.message.clone() })
}

/// The first few of many, for people.
fn few(all: &[String]) -> String {
    const MOST: usize = 10;
    let shown = all.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join("; ");
    if all.len() > MOST { format!("{shown}; and {} more", all.len() - MOST) } else { shown }
}

#[cfg(test)]
mod tests;
