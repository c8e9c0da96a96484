//! How long one decision takes. Every case is measured in every round, so that whatever else the
//! machine does meets all of them alike, and only ratios within one run are judged.

use crate::world::{World, key_for, reads, returns};
use locum_kernel::{AgentId, Input, Key, Seq, Session, Time, step};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Rounds, and reply-and-result pairs measured in each: medians of 3,000 samples.
const ROUNDS: usize = 60;
const PAIRS: usize = 50;

/// A session, and the workers whose decisions are measured in it.
pub(crate) struct Case {
    session: Session,
    now: Time,
    workers: Vec<(AgentId, Key)>,
    replies: Vec<Duration>,
    results: Vec<Duration>,
}

/// Medians: a reply with one read call arrives; a tool result arrives and the next model call is
/// owed.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) reply: Duration,
    pub(crate) result: Duration,
}

impl Case {
    /// Measures one worker while the others are as they are.
    pub(crate) fn one(world: &World) -> Case {
        let workers = world.thinking().into_iter().take(1).collect();
        Case::of(world, workers)
    }

    /// Measures the workers in turn, so that each finds its state out of the cache.
    pub(crate) fn in_turn(world: &World) -> Case {
        Case::of(world, world.thinking())
    }

    fn of(world: &World, workers: Vec<(AgentId, Key)>) -> Case {
        assert!(!workers.is_empty(), "somebody must be at work");
        let (replies, results) = (Vec::new(), Vec::new());
        Case { session: world.session.clone(), now: world.now, workers, replies, results }
    }

    /// One round on a copy that is made before and dropped after the timed parts.
    fn round(&mut self, round: usize) {
        let mut session = self.session.clone();
        let mut keys = self.workers.clone();
        let many = keys.len();
        for pair in 0..PAIRS {
            let (agent, key) = keys[(round * PAIRS + pair) % many];
            let (took, key) = timed(&mut session, self.now, agent, reads(key, 1_000));
            self.replies.push(took);
            let (took, key) = timed(&mut session, self.now, agent, returns(key));
            self.results.push(took);
            keys[(round * PAIRS + pair) % many] = (agent, key);
        }
    }
}

/// The cost of each case, in the order given.
pub(crate) fn measure(cases: &mut [Case]) -> Vec<Cost> {
    for round in 0..ROUNDS {
        for case in &mut *cases {
            case.round(round);
        }
    }
    let cost = |case: &mut Case| Cost {
        reply: median(&mut case.replies),
        result: median(&mut case.results),
    };
    cases.iter_mut().map(cost).collect()
}

fn timed(session: &mut Session, now: Time, agent: AgentId, input: Input) -> (Duration, Key) {
    let first = Seq(session.seq().0 + 1);
    let start = clock();
    let outcome = step(session, now, black_box(input));
    let took = start.elapsed();
    let events = black_box(outcome).expect("an input that is taken");
    (took, key_for(first, &events, agent).expect("the next obligation"))
}

pub(crate) fn median(samples: &mut [Duration]) -> Duration {
    samples.sort_unstable();
    samples[samples.len() / 2]
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is about real time")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}
