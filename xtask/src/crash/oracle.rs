//! What must be true of a story that was played to its end, whoever died on the way. Each check
//! says what is wrong in one sentence; none of them knows how the program works inside.

use std::collections::BTreeMap;

use anyhow::Result;
use locum_kernel::{AgentId, CallId, Event, Mode, Seq, Source, Spawn};
use serde_json::Value;

use super::play::{Played, Record};
use super::story::Story;
use super::tale::{Tale, events, uses};

/// Everything that is wrong with it, given a play in which nobody died.
pub(crate) fn problems(story: &Story, played: &Played, sound: &Played) -> Result<Vec<String>> {
    let none = Tale::none();
    let tale = Tale::of(&played.record, &story.people, &none)?;
    let expected = Tale::of(&sound.record, &story.people, &tale)?;
    let mut problems: Vec<String> = played.problems.clone();
    problems.extend(played.record.problems.clone());
    problems.extend(inputs(played, sound));
    problems.extend(effects(played, sound, &tale));
    problems.extend(results(played));
    problems.extend(lines(played));
    problems.extend(ends(played, sound));
    problems.extend(tale.differs(&expected).map(|how| format!("another story: {how}")));
    Ok(problems)
}

/// How many tools were cut whose outcome is unknown now.
pub(crate) fn cut(story: &Story, played: &Played) -> Result<usize> {
    Ok(Tale::of(&played.record, &story.people, &Tale::none())?.cut.len())
}

/// Whatever was acknowledged is there, and everything is there once.
fn inputs(played: &Played, sound: &Played) -> Vec<String> {
    let texts = |played: &Played| {
        let mut texts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, event) in events(&played.record) {
            if let Event::Enqueued { message } | Event::Merged { message, .. } = event {
                *texts.entry(message.text.clone()).or_default() += 1;
            }
        }
        texts
    };
    let (is, was) = (texts(played), texts(sound));
    let mut problems = Vec::new();
    for line in played.runs.iter().flat_map(|run| &run.told) {
        let text = line["text"].as_str().unwrap_or_default();
        if line["type"] == "input.queued" && is.get(text) != Some(&1) {
            let times = is.get(text).unwrap_or(&0);
            problems.push(format!("{text:?} was acknowledged and is there {times} times"));
        }
    }
    if is != was {
        problems.push(format!("inputs are {is:?}, were {was:?}"));
    }
    problems
}

/// No tool that changes anything ran twice, and none is missing but one that was cut.
fn effects(played: &Played, sound: &Played, tale: &Tale) -> Vec<String> {
    let count = |lines: &[String], line: &str| lines.iter().filter(|other| *other == line).count();
    let cut = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        let is =
            |(tool, args): &&(String, Value)| line["tool"] == **tool && line["arguments"] == *args;
        tale.cut.values().filter(is).count()
    };
    let mut problems = Vec::new();
    for line in &played.effects {
        let (times, should) = (count(&played.effects, line), count(&sound.effects, line));
        if times > should {
            problems.push(format!("ran {times} times, not {should}: {line}"));
        }
    }
    for line in &sound.effects {
        let (times, should) = (count(&played.effects, line), count(&sound.effects, line));
        if times + cut(line) < should {
            problems.push(format!("ran {times} times, not {should}, unsaid: {line}"));
        }
    }
    problems.sort();
    problems.dedup();
    problems
}

/// Who gave what to whom, as far as the journal says.
#[derive(Default)]
struct Ledger<'r> {
    returned: BTreeMap<CallId, Vec<&'r str>>,
    /// By child: who was told of its end, and what.
    noted: BTreeMap<AgentId, Vec<(AgentId, &'r str)>>,
    ended: BTreeMap<AgentId, Vec<(Seq, &'r str)>>,
    born: Vec<&'r Spawn>,
    /// How often each note was read.
    read: BTreeMap<Seq, usize>,
}

impl<'r> Ledger<'r> {
    fn of(record: &'r Record) -> Ledger<'r> {
        let mut ledger = Ledger::default();
        for (seq, event) in events(record) {
            if let Event::Returned { call, output, reads, .. } = event {
                ledger.returned.entry(*call).or_default().push(&output.text);
                ledger.reads(reads);
            } else if let Event::TurnBegan(turn) = event {
                ledger.reads(&turn.reads);
            } else if let Event::Heard { agent, note } = event
                && let (Source::Child(child), true) = (&note.source, note.receipt.is_some())
            {
                ledger.noted.entry(*child).or_default().push((*agent, &note.text));
            } else if let Event::Ended { agent, result, .. } = event {
                ledger.ended.entry(*agent).or_default().push((seq, result));
            } else if let Event::Spawned(spawn) = event {
                ledger.born.push(spawn);
            }
        }
        ledger
    }

    fn reads(&mut self, notes: &[Seq]) {
        for note in notes {
            *self.read.entry(*note).or_default() += 1;
        }
    }

    /// Whether a child's result is where it belongs, once, and nowhere else.
    fn has_arrived(&self, spawn: &Spawn, parent: AgentId, call: CallId, result: &str) -> bool {
        let noted = self.noted.get(&spawn.agent).map(Vec::as_slice).unwrap_or_default();
        match spawn.mode {
            Mode::Worker => noted == [(parent, result)],
            Mode::Floor | Mode::Call => {
                let returned = self.returned.get(&call).map(Vec::as_slice).unwrap_or_default();
                returned == [result] && noted.is_empty()
            }
        }
    }
}

/// Every call has one result, every child's result reached its parent once, every note is read
/// at most once.
fn results(played: &Played) -> Vec<String> {
    let ledger = Ledger::of(&played.record);
    let mut problems = Vec::new();
    for call in uses(&played.record).keys() {
        let times = ledger.returned.get(call).map_or(0, Vec::len);
        if times != 1 {
            problems.push(format!("{call} has {times} results"));
        }
    }
    for (note, times) in ledger.read.iter().filter(|(_, times)| **times > 1) {
        problems.push(format!("the note {note} was read {times} times"));
    }
    let entry_of = |seq: Seq| played.record.entries.partition_point(|entry| entry.seq <= seq);
    for spawn in &ledger.born {
        let (Some(parent), Some(call)) = (spawn.parent, spawn.call) else { continue };
        let child = spawn.agent;
        let [(at, result)] = ledger.ended.get(&child).map(Vec::as_slice).unwrap_or_default() else {
            problems.push(format!("{child} has not ended once"));
            continue;
        };
        // Who is stopped takes everyone below along, and hears nothing of it any more.
        let mut above = ledger.ended.get(&parent).into_iter().flatten();
        if above.any(|(above, _)| entry_of(*above) == entry_of(*at)) {
            continue;
        }
        if !ledger.has_arrived(spawn, parent, call, result) {
            problems.push(format!("the result of {child} did not reach {parent} once"));
        }
    }
    problems
}

/// Whatever any process told is what the journal tells, under the same number.
fn lines(played: &Played) -> Vec<String> {
    let number = |line: &Value| line["seq"].as_u64().unwrap_or_default();
    let told: BTreeMap<u64, &Value> =
        played.record.lines.iter().map(|line| (number(line), line)).collect();
    let mut problems = Vec::new();
    let mut last = 0;
    for run in &played.runs {
        for (at, line) in run.told.iter().enumerate() {
            let seq = number(line);
            let follows = if at == 0 { seq > last } else { seq == last + 1 };
            if !follows {
                problems.push(format!("line {seq} comes after line {last}"));
            }
            last = seq;
            if line["type"] == "run.result" {
                continue;
            }
            let mut kept = told.get(&seq).map_or(Value::Null, |line| (*line).clone());
            if kept["type"] == "run.started" {
                kept["cwd"] = line["cwd"].clone();
            }
            if kept != *line {
                problems.push(format!("told, and not kept:\n  told {line}\n  kept {kept}"));
            }
        }
    }
    problems
}

/// The last words of each act are what they would have been.
fn ends(played: &Played, sound: &Played) -> Vec<String> {
    let ends = |played: &Played| {
        let whole = played.runs.iter().filter(|run| run.exit.is_some());
        let result = |run: &super::process::Run| {
            let last = run.told.last().cloned().unwrap_or_default();
            let word = |name: &str| last[name].to_string();
            (run.exit, word("type"), word("status"), word("text"), word("denials"))
        };
        whole.map(result).collect::<Vec<_>>()
    };
    let (is, was) = (ends(played), ends(sound));
    if is == was { Vec::new() } else { vec![format!("ends are {is:?}, were {was:?}")] }
}

/// Acts that end in another way than the story says.
pub(crate) fn unintended(story: &Story, played: &Played) -> Vec<String> {
    let acts = story.people.acts.iter().zip(&played.runs);
    let other = acts.filter_map(|(act, run)| {
        let text = run.told.last().and_then(|line| line["text"].as_str()).unwrap_or_default();
        let same = run.exit == Some(act.exit) && text == act.text;
        (!same).then(|| format!("it ends with {:?} and {text:?}", run.exit))
    });
    other.collect()
}
