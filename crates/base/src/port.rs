//! Ranges of TCP ports.

use std::fmt;

/// An inclusive range of ports, never empty, never with port 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortRange {
    start: u16,
    end: u16,
}

/// Why two numbers are no port range.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRange {
    /// A bound is not a port.
    #[error("{0} is not a port (1 to 65535)")]
    NotAPort(i64),
    /// The bounds are the wrong way round.
    #[error("start {start} is above end {end}")]
    Reversed {
        /// Lower bound as given.
        start: u16,
        /// Upper bound as given.
        end: u16,
    },
}

impl PortRange {
    /// The range from `start` to `end`, both included.
    pub fn new(start: i64, end: i64) -> Result<Self, BadRange> {
        let port = |n: i64| u16::try_from(n).ok().filter(|p| *p > 0).ok_or(BadRange::NotAPort(n));
        let (start, end) = (port(start)?, port(end)?);
        if start > end { Err(BadRange::Reversed { start, end }) } else { Ok(Self { start, end }) }
    }

    /// Every port, ascending.
    pub fn ports(self) -> impl Iterator<Item = u16> {
        self.start..=self.end
    }

    /// Whether the two have a port in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_overlap_exactly_when_they_share_a_port(a in 1i64..60, b in 1i64..60, c in 1i64..60, d in 1i64..60) {
            if let (Ok(one), Ok(two)) = (PortRange::new(a, b), PortRange::new(c, d)) {
                prop_assert_eq!(one.overlaps(two), one.ports().any(|p| two.ports().any(|q| p == q)));
            }
        }
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(PortRange::new(0, 5), Err(BadRange::NotAPort(0)));
        assert_eq!(PortRange::new(1, 65536), Err(BadRange::NotAPort(65536)));
        assert_eq!(PortRange::new(7, 6), Err(BadRange::Reversed { start: 7, end: 6 }));
    }
}
