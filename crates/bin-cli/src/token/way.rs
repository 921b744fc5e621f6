//! Which way of logging in fits the machine: a browser here, one elsewhere, or none, which is said at once.

use std::io::IsTerminal as _;

use super::browser;

/// What the machine has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Here {
    /// A browser that can be started.
    pub browser: bool,
    /// Somebody who reads what is printed.
    pub terminal: bool,
}

/// A way of logging in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By device code, as asked.
    Device,
    /// By device code, because there is no browser here.
    DeviceForLack,
    /// In a browser that is started.
    Browser,
    /// In whatever browser opens the printed address, as asked.
    Print,
    /// The same, because there is no browser here, and the provider offers no device code.
    PrintForLack,
    /// Nobody could log in: waiting would be for nothing.
    Nobody,
}

impl Here {
    /// Looks around.
    pub fn look() -> Self {
        Self { browser: browser::is_there(), terminal: std::io::stderr().is_terminal() }
    }
}

impl Way {
    /// The way that was asked for (`--device`, `--no-browser`) as far as the provider can, else one that works here.
    pub fn of(device: bool, no_browser: bool, offers_device: bool, here: Here) -> Self {
        let Here { browser, terminal } = here;
        match () {
            () if device && offers_device => Self::Device,
            () if no_browser => Self::Print,
            () if browser => Self::Browser,
            () if !terminal && !device => Self::Nobody,
            () if offers_device => Self::DeviceForLack,
            () => Self::PrintForLack,
        }
    }

    /// Why it is another way than people may expect.
    pub fn sentence(self) -> Option<&'static str> {
        match self {
            Self::DeviceForLack => {
                Some("This machine has no browser to start (BROWSER, DISPLAY, WAYLAND_DISPLAY): log in on another.")
            }
            Self::PrintForLack => Some(
                "This machine has no browser to start (BROWSER, DISPLAY, WAYLAND_DISPLAY): open the address yourself.",
            ),
            Self::Device | Self::Browser | Self::Print | Self::Nobody => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_goes_before_what_the_machine_has() {
        let anywhere = [(true, true), (true, false), (false, true), (false, false)];
        for (browser, terminal) in anywhere {
            let here = Here { browser, terminal };
            assert_eq!(Way::of(true, false, true, here), Way::Device);
            assert_eq!(Way::of(false, true, true, here), Way::Print);
        }
        let nothing = Here { browser: false, terminal: false };
        assert_eq!(Way::of(true, false, false, nothing), Way::PrintForLack, "asked for, so it is worth a try");
    }

    #[test]
    fn without_a_browser_another_way_is_taken_or_none_at_once() {
        let way = |browser, terminal, offers| Way::of(false, false, offers, Here { browser, terminal });
        assert_eq!(way(true, false, true), Way::Browser);
        assert_eq!(way(false, true, true), Way::DeviceForLack);
        assert_eq!(way(false, true, false), Way::PrintForLack);
        assert_eq!((way(false, false, true), way(false, false, false)), (Way::Nobody, Way::Nobody));
        assert!(Way::PrintForLack.sentence().is_some_and(|s| s.contains("has no browser")));
    }
}
