//! Which Redfish reset an action is, given the host's power and what its BMC allows. Pure.

use std::collections::BTreeSet;

/// What a person asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Power on.
    On,
    /// Shut down.
    Off,
    /// Restart.
    Reboot,
}

/// Why there is no reset to send.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    /// A host that is off cannot be restarted.
    #[error("the host is off: switch it on with `host on`")]
    IsOff,
    /// The BMC allows none of the resets that would do.
    #[error("the BMC allows none of {} (it allows {allowed}){hint}", wanted.join(", "))]
    NotAllowed {
        /// What would do.
        wanted: Vec<&'static str>,
        /// What it allows.
        allowed: String,
        /// What may help.
        hint: &'static str,
    },
}

/// The `ResetType` to send; none when the host is already as asked. `allowed` is empty when the BMC does not say what it
/// allows. ResetType values: DMTF DSP0268, Resource.ResetType.
pub fn choose(
    action: Action,
    force: bool,
    power: &str,
    allowed: &BTreeSet<String>,
) -> Result<Option<&'static str>, Impossible> {
    let wanted: &[&'static str] = match (action, force) {
        (Action::On, _) if power == "On" => return Ok(None),
        (Action::Off, _) if power == "Off" => return Ok(None),
        (Action::Reboot, _) if power == "Off" => return Err(Impossible::IsOff),
        (Action::On, _) => &["On", "ForceOn"],
        (Action::Off, true) => &["ForceOff"],
        // Cutting the power is not a way of shutting down: it must be asked for.
        (Action::Off, false) => &["GracefulShutdown"],
        (Action::Reboot, true) => &["ForceRestart"],
        (Action::Reboot, false) => &["GracefulRestart", "ForceRestart"],
    };
    let first_allowed = wanted.iter().find(|kind| allowed.is_empty() || allowed.contains(**kind));
    first_allowed.map(|kind| Some(*kind)).ok_or_else(|| Impossible::NotAllowed {
        wanted: wanted.to_vec(),
        allowed: allowed.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        hint: if action == Action::Off && !force { "; `--force` cuts its power" } else { "" },
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Action::Reboot, false, "On", "", Ok(Some("GracefulRestart")))]
    #[case(Action::Reboot, false, "On", "GracefulRestart ForceRestart", Ok(Some("GracefulRestart")))]
    #[case(Action::Reboot, false, "On", "On ForceRestart", Ok(Some("ForceRestart")))]
    #[case(Action::Reboot, true, "On", "GracefulRestart ForceRestart", Ok(Some("ForceRestart")))]
    #[case(Action::Reboot, false, "Off", "", Err(Impossible::IsOff))]
    #[case(Action::On, false, "Off", "On", Ok(Some("On")))]
    #[case(Action::On, false, "On", "On", Ok(None))]
    #[case(Action::Off, false, "On", "GracefulShutdown ForceOff", Ok(Some("GracefulShutdown")))]
    #[case(Action::Off, true, "On", "GracefulShutdown ForceOff", Ok(Some("ForceOff")))]
    #[case(Action::Off, false, "Off", "", Ok(None))]
    #[case(Action::Off, false, "On", "ForceOff", Err(Impossible::NotAllowed {
        wanted: vec!["GracefulShutdown"], allowed: "ForceOff".to_owned(), hint: "; `--force` cuts its power",
    }))]
    fn an_action_becomes_one_reset_or_none(
        #[case] action: Action,
        #[case] force: bool,
        #[case] power: &str,
        #[case] allowed: &str,
        #[case] chosen: Result<Option<&'static str>, Impossible>,
    ) {
        let allowed = allowed.split_whitespace().map(str::to_owned).collect();
        assert_eq!(choose(action, force, power, &allowed), chosen);
    }
}
