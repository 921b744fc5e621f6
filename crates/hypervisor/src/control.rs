//! What a BMC switches: power, boot device, firmware, media.
//!
//! ```text
//!                On, PushPowerButton, ForceRestart*, GracefulRestart*
//!        ┌─────────────────────────────────────────────────────────┐
//!        │                                                         ▼
//!      Off ◄──────────────────────── ForceOff ──────────────────── On ──┐ ForceRestart, GracefulRestart, Nmi
//!        ▲                                                         │ ▲──┘
//!        └─── the guest obeys (or never does) ◄── ShuttingDown ◄───┘
//!                                                  GracefulShutdown, PushPowerButton
//! ```
//! `*` A machine that is off stays off: what needs a running guest does nothing then, and says so
//! ([`Effect::Nothing`]). What is asked for and already so does nothing either. A crashed or held machine counts as on
//! until it is forced off. Sources: DSP0268 "ResetType", DSP2046 "ComputerSystem"; where they leave it open, sushy-tools.

use std::fmt;

/// What can be done to the power of a machine: `ResetType` of DSP0268.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PowerAction {
    /// Switch on.
    On,
    /// Switch off at once.
    ForceOff,
    /// Ask the guest to shut down.
    GracefulShutdown,
    /// Restart at once.
    ForceRestart,
    /// Ask the guest to restart.
    GracefulRestart,
    /// Interrupt that a guest cannot mask: most write a dump.
    Nmi,
    /// Press the button: a machine that is off goes on, the guest of one that is on is asked to shut down.
    PushPowerButton,
}

impl PowerAction {
    /// All of them.
    pub const ALL: [PowerAction; 7] = [
        PowerAction::On,
        PowerAction::ForceOff,
        PowerAction::GracefulShutdown,
        PowerAction::ForceRestart,
        PowerAction::GracefulRestart,
        PowerAction::Nmi,
        PowerAction::PushPowerButton,
    ];

    /// What it comes down to for a machine in this state.
    pub fn on(self, state: PowerState) -> Act {
        use PowerAction::{ForceOff, ForceRestart, GracefulRestart, GracefulShutdown, Nmi, On, PushPowerButton};
        let off = state == PowerState::Off;
        match self {
            On | PushPowerButton if off => Act::Start,
            // Crashed: there is a domain, but nothing runs in it, and nothing will until it is started anew.
            On if state == PowerState::Crashed => Act::Restart,
            _ if off => Act::Nothing,
            On => Act::Nothing,
            ForceOff => Act::Stop,
            GracefulShutdown | PushPowerButton => Act::AskShutdown,
            ForceRestart => Act::Restart,
            GracefulRestart => Act::AskRestart,
            Nmi => Act::Interrupt,
        }
    }
}

impl fmt::Display for PowerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a hypervisor has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing.
    Nothing,
    /// Start it, with what is defined.
    Start,
    /// Take its power away.
    Stop,
    /// Take its power away and start it with what is defined.
    Restart,
    /// Press its ACPI power button.
    AskShutdown,
    /// Ask the guest to restart.
    AskRestart,
    /// Interrupt it.
    Interrupt,
}

/// What a call changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was carried out; whether a guest that was asked obeys is another matter.
    Done,
    /// There was nothing to do.
    Nothing,
}

/// In what state a machine is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PowerState {
    /// Its guest runs.
    On,
    /// It is off.
    #[default]
    Off,
    /// Its guest runs and was asked to shut down.
    ShuttingDown,
    /// Its guest is held: by somebody, by a disk that is full, by a migration.
    Paused,
    /// Its guest fell over.
    Crashed,
}

impl PowerState {
    /// Whether there is a running guest, if only a held one: what is defined takes effect only after it stops.
    pub fn has_guest(self) -> bool {
        self != PowerState::Off
    }
}

impl fmt::Display for PowerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PowerState::On => "running",
            PowerState::Off => "off",
            PowerState::ShuttingDown => "shutting down",
            PowerState::Paused => "paused",
            PowerState::Crashed => "crashed",
        })
    }
}

/// From what a machine boots before its own order: `BootSourceOverrideTarget` of DSP0268.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BootTarget {
    /// Its own order: root disk, then boot interface.
    #[default]
    None,
    /// The boot interface, by PXE.
    Pxe,
    /// The root disk.
    Hdd,
    /// The inserted medium.
    Cd,
    /// The boot interface, by HTTP as UEFI does.
    UefiHttp,
}

impl BootTarget {
    /// All of them.
    pub const ALL: [BootTarget; 5] =
        [BootTarget::None, BootTarget::Pxe, BootTarget::Hdd, BootTarget::Cd, BootTarget::UefiHttp];

    /// Its name in Redfish.
    pub fn name(self) -> &'static str {
        match self {
            BootTarget::None => "None",
            BootTarget::Pxe => "Pxe",
            BootTarget::Hdd => "Hdd",
            BootTarget::Cd => "Cd",
            BootTarget::UefiHttp => "UefiHttp",
        }
    }

    /// The target of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name() == name)
    }
}

/// How long a boot override holds: `BootSourceOverrideEnabled` of DSP0268.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hold {
    /// Not at all.
    #[default]
    Disabled,
    /// For the next start.
    Once,
    /// Until it is changed.
    Continuous,
}

impl Hold {
    /// All of them.
    pub const ALL: [Hold; 3] = [Hold::Disabled, Hold::Once, Hold::Continuous];

    /// Its name in Redfish.
    pub fn name(self) -> &'static str {
        match self {
            Hold::Disabled => "Disabled",
            Hold::Once => "Once",
            Hold::Continuous => "Continuous",
        }
    }

    /// The hold of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hold| hold.name() == name)
    }
}

/// A boot override.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boot {
    /// From what.
    pub target: BootTarget,
    /// For how long.
    pub hold: Hold,
}

impl Boot {
    /// What the next start boots from first.
    pub fn effective(self) -> BootTarget {
        if self.hold == Hold::Disabled { BootTarget::None } else { self.target }
    }

    /// What is left of it after a start.
    #[must_use]
    pub fn after_start(self) -> Self {
        if self.hold == Hold::Once { Boot::default() } else { self }
    }
}

/// What starts a machine: `BootSourceOverrideMode` of DSP0268.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Firmware {
    /// The firmware of PCs before UEFI: `Legacy`.
    #[default]
    Bios,
    /// UEFI.
    Uefi,
}

impl Firmware {
    /// Its name in Redfish.
    pub fn name(self) -> &'static str {
        match self {
            Firmware::Bios => "Legacy",
            Firmware::Uefi => "UEFI",
        }
    }

    /// The firmware of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Firmware::Bios, Firmware::Uefi].into_iter().find(|firmware| firmware.name() == name)
    }
}

/// A medium in the drive of a machine. It is never written to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Media {
    /// File with its content on the machine that runs the guests; several guests may have the same.
    pub file: String,
    /// Where it came from, as the BMC was told.
    pub url: String,
}

/// What a machine was last known to be, so that it is so again after a power cut of its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastPower {
    /// Whether it ran.
    pub on: bool,
    /// [`crate::Host::boot_id`] of its host at that time.
    pub boot_id: String,
}

/// What a BMC has set. It belongs to the machine, not to who defines it: defining it anew keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Boot override.
    pub boot: Boot,
    /// Firmware, where it differs from the one it is defined with.
    pub firmware: Option<Firmware>,
    /// The medium in its drive.
    pub media: Option<Media>,
    /// What it was last known to be; None: never seen.
    pub last_power: Option<LastPower>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(PowerAction::On, Act::Start, Act::Nothing)]
    #[case(PowerAction::ForceOff, Act::Nothing, Act::Stop)]
    #[case(PowerAction::GracefulShutdown, Act::Nothing, Act::AskShutdown)]
    #[case(PowerAction::ForceRestart, Act::Nothing, Act::Restart)]
    #[case(PowerAction::GracefulRestart, Act::Nothing, Act::AskRestart)]
    #[case(PowerAction::Nmi, Act::Nothing, Act::Interrupt)]
    #[case(PowerAction::PushPowerButton, Act::Start, Act::AskShutdown)]
    fn what_each_action_does_to_a_machine_that_is_off_and_to_one_that_is_on(
        #[case] action: PowerAction,
        #[case] off: Act,
        #[case] on: Act,
    ) {
        assert_eq!(action.on(PowerState::Off), off);
        assert_eq!(action.on(PowerState::On), on);
    }

    #[test]
    fn a_crashed_machine_starts_anew_when_switched_on() {
        assert_eq!(PowerAction::On.on(PowerState::Crashed), Act::Restart);
    }

    #[test]
    fn what_holds_once_is_over_after_a_start() {
        let boot = |hold| Boot { target: BootTarget::Cd, hold };
        assert_eq!(boot(Hold::Once).after_start(), Boot::default());
        assert_eq!(boot(Hold::Continuous).after_start(), boot(Hold::Continuous));
        assert_eq!(boot(Hold::Disabled).effective(), BootTarget::None);
    }

    #[test]
    fn names_of_redfish_are_read_back() {
        assert!(BootTarget::ALL.into_iter().all(|target| BootTarget::named(target.name()) == Some(target)));
        assert!(Hold::ALL.into_iter().all(|hold| Hold::named(hold.name()) == Some(hold)));
        assert_eq!(Firmware::named("Legacy"), Some(Firmware::Bios));
        assert_eq!(Firmware::named("UEFI"), Some(Firmware::Uefi));
        assert_eq!(BootTarget::named("cd"), None);
    }
}
