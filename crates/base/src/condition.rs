//! How a controller states conditions, and how they join those already there.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// A condition as a controller states it; [`merge`] adds the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Says {
    /// Condition type, such as `Ready`.
    pub kind: &'static str,
    /// `None` means Unknown.
    pub holds: Option<bool>,
    /// CamelCase, from a closed set.
    pub reason: &'static str,
    /// For people. Cut at the API's limit of 32768 bytes.
    pub message: String,
}

impl Says {
    /// `kind` holds.
    pub fn yes(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, holds: Some(true), reason, message: message.into() }
    }

    /// `kind` does not hold.
    pub fn no(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, holds: Some(false), reason, message: message.into() }
    }

    /// Nobody can tell whether `kind` holds.
    pub fn unknown(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, holds: None, reason, message: message.into() }
    }
}

/// Longest message the API server takes (`metav1.Condition`).
const MESSAGE_MAX: usize = 32_768;

/// The conditions that result when a controller says `new` and `old` were there.
///
/// The transition time moves only when the truth moved. A type nobody states any more is dropped.
pub fn merge(old: &[Condition], new: Vec<Says>, generation: Option<i64>, now: Timestamp) -> Vec<Condition> {
    new.into_iter()
        .map(|Says { kind, holds, reason, mut message }| {
            let status = match holds {
                Some(true) => "True",
                Some(false) => "False",
                None => "Unknown",
            };
            message.truncate(message.floor_char_boundary(MESSAGE_MAX));
            let kept = old.iter().find(|c| c.type_ == kind && c.status == status);
            Condition {
                type_: kind.into(),
                status: status.into(),
                reason: reason.into(),
                message,
                observed_generation: generation,
                last_transition_time: kept.map_or_else(|| Time(now), |c| c.last_transition_time.clone()),
            }
        })
        .collect()
}

/// The condition of this type, if it is there.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    #[test]
    fn the_transition_time_moves_only_with_the_truth() {
        let first = merge(&[], vec![Says::no("Ready", "A", "")], Some(1), at(10));
        let second = merge(&first, vec![Says::no("Ready", "B", "text")], Some(2), at(20));
        assert_eq!(second[0].last_transition_time, Time(at(10)));
        assert_eq!((second[0].reason.as_str(), second[0].observed_generation), ("B", Some(2)));
        let third = merge(&second, vec![Says::yes("Ready", "C", "")], Some(2), at(30));
        assert_eq!(third[0].last_transition_time, Time(at(30)));
    }

    #[test]
    fn a_message_of_any_length_fits_the_api() {
        let says = vec![Says::no("Ready", "A", "\u{fc}".repeat(20_000) + "x")];
        assert!(merge(&[], says, None, at(0))[0].message.len() <= MESSAGE_MAX);
    }
}
