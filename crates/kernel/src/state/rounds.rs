//! Calls that take turns: one and another, again and again, and nothing comes of it. What counts is
//! the same call with the same result; a result that is another is progress, and the count begins
//! anew. How long something took, and when, is no progress.

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::digest::mix;
use crate::limits::{REPEATS_LIFTED, ROUND_CALLS_MAX, ROUNDS_MAX};
use crate::state::timings;
use crate::{Digest, Output, Scope};

/// How the last calls of an agent are the same as those before them. Its size is bounded, and so
/// is the work for a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rounds {
    /// What came back last, the newest at the end.
    last: Vec<Done>,
    /// The first: how many calls in a row were the same as the one before; the second: as the one
    /// before that; and so on.
    same: [u32; ROUND_CALLS_MAX],
    /// Somebody has said that it may go on.
    lifted: bool,
}

/// Numbers in the place of texts: that two are one by chance costs a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    call: u64,
    result: u64,
}

/// So many calls take turns, and this would be the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    pub(crate) calls: usize,
    pub(crate) number: u32,
}

impl Rounds {
    /// True: the very same call came back just before, with something else.
    pub(crate) fn came_back(&mut self, call: &Digest, output: &Output) -> bool {
        let done = Done { call: short(call), result: number_of(output) };
        let before =
            |back: usize| self.last.len().checked_sub(back).and_then(|at| self.last.get(at));
        let moved = before(1).is_some_and(|it| it.call == done.call && it.result != done.result);
        let is_same: [bool; ROUND_CALLS_MAX] =
            core::array::from_fn(|index| before(index + 1) == Some(&done));
        for (count, is_same) in self.same.iter_mut().zip(is_same) {
            *count = if is_same { count.saturating_add(1) } else { 0 };
        }
        if self.last.len() == ROUND_CALLS_MAX {
            self.lifted &= self.same.iter().any(|count| *count > 0);
            self.last.remove(0);
        }
        self.last.push(done);
        moved
    }

    /// The round that this call would be part of, if there were `bound` of them.
    pub(crate) fn reached(&self, bound: u32, call: impl Fn() -> Digest) -> Option<Round> {
        let bound = if self.lifted { bound.saturating_mul(REPEATS_LIFTED) } else { bound };
        (2..=self.last.len()).find_map(|calls| {
            let round = self.round(calls).filter(|round| round.number >= bound)?;
            let before = self.last.get(self.last.len() - calls)?;
            (before.call == short(&call())).then_some(round)
        })
    }

    /// One call that repeats is counted elsewhere.
    fn round(&self, calls: usize) -> Option<Round> {
        let length = u32::try_from(calls).ok()?;
        let same = self.same.get(calls - 1).copied().filter(|same| *same > 0)?;
        let alone = self.same[0] + 1 >= length;
        (!alone).then_some(Round { calls, number: same / length + 2 })
    }

    /// Whoever allows a call has seen it: the count begins anew, and a wider allow of what was
    /// asked for its rounds lets it go on for longer.
    pub(crate) fn go_on(&mut self, scope: Scope) {
        let rounds = (2..=self.last.len()).filter_map(|calls| self.round(calls));
        let asked = rounds.map(|round| round.number).max().is_some_and(|it| it >= ROUNDS_MAX);
        self.lifted |= asked && scope != Scope::Once;
        *self = Rounds { lifted: self.lifted, ..Rounds::default() };
    }
}

fn short(digest: &Digest) -> u64 {
    digest.as_str().get(..16).and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(0)
}

fn number_of(output: &Output) -> u64 {
    timings::without(&output.text).chunks(8).fold(u64::from(output.is_error), |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(sum, u64::from_le_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that happened, and the question asked of it in the plainest way.
    fn looked_through(all: &[(u8, u8)], next: u8, bound: u32) -> bool {
        (2..=ROUND_CALLS_MAX).any(|length| {
            let needed = length * (bound as usize - 1);
            let Some(start) = all.len().checked_sub(needed) else { return false };
            let tail = &all[start..];
            let turns = tail.iter().zip(&tail[length..]).all(|(one, other)| one == other);
            let alone = tail.iter().all(|it| *it == tail[0]);
            turns && !alone && tail[0].0 == next
        })
    }

    fn digest(call: u8) -> Digest {
        Digest::of_bytes(&[call])
    }

    /// Few calls and few results, so that rounds come about; sometimes a whole round again.
    #[test]
    fn it_counts_as_looking_through_everything_would() {
        let (mut asked, mut bounds) = (0, 0);
        for seed in 0..400 {
            let (mut rounds, mut all) = (Rounds::default(), Vec::new());
            let mut state = seed;
            let mut draw = |below: u64| {
                state = mix(state, 7);
                u8::try_from(state % below).unwrap_or(0)
            };
            for _ in 0..80 {
                let back = usize::from(draw(4)) + 1;
                let again = all.len().checked_sub(back).map(|at| all[at]);
                let (call, result) = match again.filter(|_| draw(12) > 0) {
                    Some(before) => before,
                    None => (draw(3), draw(2)),
                };
                for bound in [3, ROUNDS_MAX] {
                    let found = rounds.reached(bound, || digest(call)).is_some();
                    assert_eq!(found, looked_through(&all, call, bound), "{all:?} {call} {bound}");
                    asked += u32::from(found);
                    bounds += 1;
                }
                let output = Output::ok(alloc::format!("{result}"));
                rounds.came_back(&digest(call), &output);
                all.push((call, result));
                assert!(rounds.last.len() <= ROUND_CALLS_MAX);
            }
        }
        assert!(asked > 500 && asked < bounds, "{asked} of {bounds}");
    }

    /// What happens between two is progress: none of these is ever asked, for as long as it goes.
    #[test]
    fn progress_is_never_a_loop() {
        let legitimate: [fn(u32) -> (u8, u32); 4] = [
            // An edit, a test that says something new.
            |at| if at % 2 == 0 { (0, 0) } else { (1, at) },
            // To look until it is there.
            |at| (0, at),
            // A wait, and a look that shows more.
            |at| if at % 2 == 0 { (0, 0) } else { (1, at / 2) },
            // Several files, twice over, and then others.
            |at| (u8::try_from(at % 5 + 5 * (at / 10)).unwrap_or(0), 0),
        ];
        for (which, next) in legitimate.iter().enumerate() {
            let mut rounds = Rounds::default();
            for at in 0..200 {
                let (call, result) = next(at);
                assert_eq!(rounds.reached(ROUNDS_MAX, || digest(call)), None, "{which} at {at}");
                rounds.came_back(&digest(call), &Output::ok(alloc::format!("{result}")));
            }
        }
    }
}
