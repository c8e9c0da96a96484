//! How often each place of a conversation has failed. All that the server remembers, and little.

use std::collections::{BTreeMap, VecDeque};

/// Places under way at once. Beyond it the oldest is forgotten and fails anew.
const PLACES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Memory {
    failures: BTreeMap<String, u32>,
    /// Oldest first; some may be forgotten already.
    order: VecDeque<String>,
}

impl Memory {
    pub(super) fn failures(&self, place: &str) -> u32 {
        self.failures.get(place).copied().unwrap_or(0)
    }

    pub(super) fn failed(&mut self, place: &str) {
        if let Some(count) = self.failures.get_mut(place) {
            *count = count.saturating_add(1);
            return;
        }
        self.failures.insert(place.to_owned(), 1);
        self.order.push_back(place.to_owned());
        while self.order.len() > PLACES_MAX {
            let oldest = self.order.pop_front().unwrap_or_default();
            self.failures.remove(&oldest);
        }
    }

    /// The place has answered: whoever comes there again meets the same failures again.
    pub(super) fn answered(&mut self, place: &str) {
        if self.failures.remove(place).is_some() {
            self.order.retain(|other| other != place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_places_are_remembered() {
        let mut memory = Memory::default();
        for place in 0..=PLACES_MAX {
            memory.failed(&place.to_string());
            memory.failed(&place.to_string());
        }
        assert_eq!(memory.failures("0"), 0);
        assert_eq!(memory.failures("1"), 2);
        assert_eq!((memory.failures.len(), memory.order.len()), (PLACES_MAX, PLACES_MAX));
        memory.answered("1");
        assert_eq!(memory.failures("1"), 0);
        assert_eq!((memory.failures.len(), memory.order.len()), (PLACES_MAX - 1, PLACES_MAX - 1));
    }
}
