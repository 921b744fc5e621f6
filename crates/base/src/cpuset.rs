//! Sets of logical processors, as Linux and libvirt write them.

use std::{collections::BTreeSet, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Numbers of logical processors.
///
/// Its text form is the list format of Linux (`cpuset(7)`), ascending and with ranges closed: `0-3,8,10-11`; nothing is the empty
/// set. When read, ranges may be reversed (the original of ViNO allowed it), overlap, and `^n` takes one out again (libvirt's form).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet(BTreeSet<u32>);

/// Above the largest number a processor can have: Linux is built for at most 8192.
pub const CPU_LIMIT: u32 = 8192;

/// A text that is no list of processors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no list of CPUs: {part:?} is neither a number below {CPU_LIMIT} nor a range of them, such as 0-3,8"
)]
pub struct NotACpuSet {
    /// What was given, cut after 64 characters.
    pub text: String,
    /// The part that cannot be read.
    pub part: String,
}

impl CpuSet {
    /// Nothing.
    pub const fn new() -> Self {
        Self(BTreeSet::new())
    }

    /// The processors, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is among them.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Adds one; false if it was there.
    pub fn insert(&mut self, cpu: u32) -> bool {
        self.0.insert(cpu)
    }

    /// Those of either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.0.union(&other.0).copied().collect()
    }

    /// Those of both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.0.intersection(&other.0).copied().collect()
    }

    /// Those that `other` has not.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.0.difference(&other.0).copied().collect()
    }

    /// Whether the two have none in common.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        self.0.is_disjoint(&other.0)
    }

    /// Whether all are in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        self.0.extend(cpus);
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if(|next| *next == last + 1) {
                last = next;
            }
            write!(f, "{comma}{first}")?;
            if last > first {
                write!(f, "-{last}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for CpuSet {
    type Err = NotACpuSet;

    fn from_str(text: &str) -> Result<Self, NotACpuSet> {
        let mut cpus = BTreeSet::new();
        if text.trim().is_empty() {
            return Ok(Self(cpus));
        }
        for part in text.split(',') {
            let part = part.trim();
            let bad = || NotACpuSet { text: text.chars().take(64).collect(), part: part.chars().take(64).collect() };
            let number = |digits: &str| {
                let digits = digits.trim();
                let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
                digits.parse::<u32>().ok().filter(|cpu| plain && *cpu < CPU_LIMIT).ok_or_else(bad)
            };
            if let Some(out) = part.strip_prefix('^') {
                cpus.remove(&number(out)?);
            } else if let Some((from, to)) = part.split_once('-') {
                let (from, to) = (number(from)?, number(to)?);
                cpus.extend(from.min(to)..=from.max(to));
            } else {
                cpus.insert(number(part)?);
            }
        }
        Ok(Self(cpus))
    }
}

impl TryFrom<String> for CpuSet {
    type Error = NotACpuSet;

    fn try_from(text: String) -> Result<Self, NotACpuSet> {
        text.parse()
    }
}

impl From<CpuSet> for String {
    fn from(cpus: CpuSet) -> Self {
        cpus.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(cpus in proptest::collection::btree_set(0..CPU_LIMIT, 0..80)) {
            let cpus: CpuSet = cpus.into_iter().collect();
            prop_assert_eq!(cpus.to_string().parse::<CpuSet>(), Ok(cpus));
        }

        #[test]
        fn no_text_makes_it_fall_over(text in ".{0,40}") {
            if let Ok(cpus) = text.parse::<CpuSet>() {
                prop_assert!(cpus.iter().all(|cpu| cpu < CPU_LIMIT));
            }
        }
    }

    #[rstest]
    #[case("", "")]
    #[case("0-4,54-60", "0-4,54-60")]
    #[case("3,1,2", "1-3")]
    #[case("4-0", "0-4")]
    #[case(" 1 , 3 ", "1,3")]
    #[case("0-7,^3", "0-2,4-7")]
    fn lists(#[case] text: &str, #[case] canonical: &str) {
        assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), canonical);
    }

    #[rstest]
    #[case("0-4294967295", "0-4294967295")]
    #[case("1,,2", "")]
    #[case("1;reboot", "1;reboot")]
    #[case("+1", "+1")]
    #[case("8192", "8192")]
    fn what_is_no_list_is_named(#[case] text: &str, #[case] part: &str) {
        assert_eq!(text.parse::<CpuSet>(), Err(NotACpuSet { text: text.into(), part: part.into() }));
    }
}
