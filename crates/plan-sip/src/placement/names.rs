//! Label texts stored once: ten thousand hosts share most of theirs.

use std::{collections::BTreeMap, sync::Arc};

/// Texts by number. A text lives as long as somebody uses it; its number is then given to another.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    numbers: BTreeMap<Arc<str>, u32>,
    slots: Vec<(Arc<str>, u32)>,
    vacant: Vec<u32>,
}

impl Names {
    /// The number of `text`, used once more.
    pub(super) fn acquire(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            self.slots[number as usize].1 += 1;
            return number;
        }
        let shared: Arc<str> = text.into();
        let number = if let Some(number) = self.vacant.pop() {
            self.slots[number as usize] = (shared.clone(), 1);
            number
        } else {
            self.slots.push((shared.clone(), 1));
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 label texts fit into memory")
        };
        self.numbers.insert(shared, number);
        number
    }

    /// One use of `number` less.
    pub(super) fn release(&mut self, number: u32) {
        let (text, uses) = &mut self.slots[number as usize];
        *uses -= 1;
        if *uses == 0 {
            self.numbers.remove(&**text);
            *text = Arc::from("");
            self.vacant.push(number);
        }
    }

    /// The text of a number in use.
    pub(super) fn text(&self, number: u32) -> &str {
        &self.slots[number as usize].0
    }

    /// The number of `text`, if anybody uses it.
    pub(super) fn find(&self, text: &str) -> Option<u32> {
        self.numbers.get(text).copied()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_kept_once_and_goes_with_its_last_user() {
        let mut names = Names::default();
        let (a, b, again) = (names.acquire("a"), names.acquire("b"), names.acquire("a"));
        assert_eq!((a, names.len()), (again, 2));
        names.release(a);
        assert_eq!(names.find("a"), Some(a));
        names.release(a);
        assert_eq!((names.find("a"), names.find("b")), (None, Some(b)));
        assert_eq!(names.acquire("c"), a, "its number is used again");
        assert_eq!(names.text(a), "c");
    }
}
