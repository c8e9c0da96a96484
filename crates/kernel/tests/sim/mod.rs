//! Running one seed: choose an act, perform it, check, until everything is tired and settled.

mod choose;
mod laws;
mod world;

use choose::{Chooser, wind_down};
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{Act, World};

/// Why a seed failed, and what had been done by then.
pub(crate) struct Failure {
    pub(crate) why: String,
    acts: Vec<Act>,
    world: u64,
}

/// Acts in which anything may happen, then as many again in which all wind down.
const LIVELY: usize = 90;
const TIRED: usize = 600;

pub(crate) fn run(seed: u64) -> Result<(), Failure> {
    let mut chooser = Chooser::new(seed);
    let mut acts = Vec::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(seed)?;
        live(&mut world, &mut chooser, &mut acts)
    }));
    let why = match outcome {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(why)) => why,
        Err(panic) => words(panic.as_ref()),
    };
    Err(Failure { why, acts, world: seed })
}

/// The names of the facts a seed's journal holds.
pub(crate) fn events_of(seed: u64) -> Vec<String> {
    let mut world = World::new(seed).expect("a world");
    let mut chooser = Chooser::new(seed);
    live(&mut world, &mut chooser, &mut Vec::new()).expect("a seed that settles");
    let events = world.journal().iter().flat_map(|entry| &entry.events);
    events
        .map(|event| match serde_json::to_value(event).expect("plain data") {
            serde_json::Value::String(name) => name,
            other => other.as_object().and_then(|map| map.keys().next().cloned()).expect("a name"),
        })
        .collect()
}

fn live(world: &mut World, chooser: &mut Chooser, acts: &mut Vec<Act>) -> Result<(), String> {
    for _ in 0..LIVELY {
        let act = chooser.next(world);
        acts.push(act.clone());
        world.perform(&act)?;
    }
    settle(world)
}

/// Whatever has happened, it must come to rest.
fn settle(world: &mut World) -> Result<(), String> {
    if world.away {
        world.perform(&Act::Crash { lost: false })?;
    }
    for _ in 0..TIRED {
        world.is_stuck()?;
        let Some(act) = wind_down(world) else { break };
        world.perform(&act)?;
    }
    world.has_settled()
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("?"))
}

/// Plays a list of acts; the error is the first broken invariant.
fn replay(world: u64, acts: &[Act]) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(world)?;
        acts.iter().try_for_each(|act| world.perform(act))?;
        settle(&mut world)
    }));
    outcome.unwrap_or_else(|panic| Err(words(panic.as_ref())))
}

/// Leaves out ever smaller runs of acts for as long as what remains still fails.
pub(crate) fn shrink(_seed: u64, failure: &Failure) -> (Vec<String>, String) {
    let mut acts = failure.acts.clone();
    let mut why = failure.why.clone();
    let mut size = acts.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at + size <= acts.len() {
            let fewer: Vec<Act> = [&acts[..at], &acts[at + size..]].concat();
            match replay(failure.world, &fewer) {
                Err(still) => (acts, why) = (fewer, still),
                Ok(()) => at += size,
            }
        }
        size /= 2;
    }
    (show(&acts), why)
}

fn show(acts: &[Act]) -> Vec<String> {
    acts.iter().map(|act| format!("  {act:?}")).collect()
}
