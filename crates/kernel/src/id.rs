//! Names of things: typed ids, sequence numbers, moments. One type per kind of thing, so that
//! an agent can never be passed where an ask is meant.

use core::fmt;
use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

number! {
    /// The number of an event in its session's journal: 1, 2, 3 … without gaps.
    Seq(u64), "#"
}
number! {
    /// An agent of a session, in order of birth. Main is `a0`.
    AgentId(u32), "a"
}
number! {
    /// An ask: the number of the event that opened it.
    AskId(u64), "q"
}
number! {
    /// A message in the input queue: the number of the event that admitted it.
    InputId(u64), "i"
}
number! {
    /// A moment, in milliseconds since the Unix epoch. The kernel never reads a clock: every
    /// moment is told to it.
    Time(u64), "t"
}

/// The number of the event that created an obligation. Whoever performs an effect quotes its
/// key; an answer whose key is no longer owed is stale and changes nothing.
pub type Key = Seq;

impl AgentId {
    /// The root of every session.
    pub const MAIN: AgentId = AgentId(0);

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Time {
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Time {
        Time(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this moment; a clock that jumped back counts as zero.
    #[must_use]
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// One tool use of one reply. The number is ours (the reply's event and the place in it), so a
/// provider that repeats its own ids cannot confuse two calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallId {
    pub turn: Seq,
    pub index: u16,
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}_{}", self.turn.0, self.index)
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
