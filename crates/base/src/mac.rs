//! Ethernet addresses.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A 48-bit Ethernet address (IEEE 802, EUI-48). Ordered as the number it is.
///
/// Its text form is six lower-case pairs with colons; pairs with hyphens and capitals are read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mac([u8; 6]);

/// A text that is no Ethernet address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MAC address {0:?} is invalid: six pairs of hexadecimal digits are asked for, such as 52:54:00:06:00:01")]
pub struct NotAMac(pub String);

/// How many addresses share their first three bytes.
const BLOCK: u64 = 1 << 24;

impl Mac {
    /// The address with these bytes, as they go over the wire.
    pub const fn new(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// The bytes, as they go over the wire.
    pub const fn bytes(self) -> [u8; 6] {
        self.0
    }

    /// The address as a number below 2^48.
    pub fn number(self) -> u64 {
        self.0.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// The address that is this number, if it is below 2^48.
    pub fn from_number(number: u64) -> Option<Self> {
        let [0, 0, bytes @ ..] = number.to_be_bytes() else { return None };
        Some(Self(bytes))
    }

    /// The address `step` further on; none past the last.
    pub fn checked_add(self, step: u64) -> Option<Self> {
        Self::from_number(self.number().checked_add(step)?)
    }

    /// Every address that may be dealt where `self` is the first one and `next` the one to begin with: up to the end of
    /// the block that shares its first three bytes, and then again from `self` on. So a sequence never runs into that of
    /// another manufacturer's, or among group addresses.
    pub fn sequence(self, next: Self) -> impl Iterator<Item = Self> {
        let end = self.number() | (BLOCK - 1);
        let next = if (self.number()..=end).contains(&next.number()) { next.number() } else { self.number() };
        (next..=end).chain(self.number()..next).filter_map(Self::from_number)
    }

    /// The one that follows `self` in the sequence that begins with `first`.
    #[must_use]
    pub fn after(self, first: Self) -> Self {
        if self.number() % BLOCK == BLOCK - 1 { first } else { self.checked_add(1).unwrap_or(first) }
    }

    /// Whether one interface may have it: multicast and the zero address are nobody's own.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self.number() != 0
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if at == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl FromStr for Mac {
    type Err = NotAMac;

    fn from_str(text: &str) -> Result<Self, NotAMac> {
        let bad = || NotAMac(text.chars().take(64).collect());
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut bytes = [0; 6];
        let mut pairs = text.split(separator);
        for byte in &mut bytes {
            let pair = pairs.next().ok_or_else(bad)?;
            if pair.len() != 2 || !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(bad());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
        }
        if pairs.next().is_some() { Err(bad()) } else { Ok(Self(bytes)) }
    }
}

impl TryFrom<String> for Mac {
    type Error = NotAMac;

    fn try_from(text: String) -> Result<Self, NotAMac> {
        text.parse()
    }
}

impl From<Mac> for String {
    fn from(mac: Mac) -> Self {
        mac.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes in any::<[u8; 6]>()) {
            let mac = Mac::new(bytes);
            prop_assert_eq!(mac.to_string().parse::<Mac>(), Ok(mac));
            prop_assert_eq!(mac.to_string().to_uppercase().replace(':', "-").parse::<Mac>(), Ok(mac));
            prop_assert_eq!(Mac::from_number(mac.number()), Some(mac));
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in
            ["", "52:54:00:06:00", "52:54:00:06:00:01:02", "52:54:00:06:00:0g", "525400060001", "+2:54:00:06:00:01"]
        {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_address_has_no_next() {
        assert_eq!(Mac::new([0xff; 6]).checked_add(1), None);
        assert_eq!(Mac::new([2, 0, 0, 0, 0, 0xff]).checked_add(1), Some(Mac::new([2, 0, 0, 0, 1, 0])));
    }

    #[test]
    fn a_sequence_ends_with_its_block_and_begins_anew() {
        let mac = |text: &str| text.parse::<Mac>().expect("an address");
        let (first, next) = (mac("02:00:00:ff:ff:fd"), mac("02:00:00:ff:ff:fe"));
        let all: Vec<String> = first.sequence(next).map(|mac| mac.to_string()).collect();
        assert_eq!(all, ["02:00:00:ff:ff:fe", "02:00:00:ff:ff:ff", "02:00:00:ff:ff:fd"]);
        assert_eq!((mac("02:00:00:ff:ff:ff").after(first), first.after(first)), (first, next));
        let alone = mac("02:00:00:ff:ff:ff");
        assert_eq!(
            alone.sequence(mac("06:00:00:00:00:00")).collect::<Vec<_>>(),
            [alone],
            "a next one of another block"
        );
    }

    #[test]
    fn groups_and_nobody_are_not_unicast() {
        assert!(Mac::new([2, 0, 0, 0, 0, 0]).is_unicast());
        assert!(!Mac::new([1, 0, 0x5e, 0, 0, 1]).is_unicast());
        assert!(!Mac::new([0; 6]).is_unicast());
    }
}
