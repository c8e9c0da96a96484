//! What all faces of a run share: lines come in, and are shown each in its own way.

use std::time::Duration;

use locum_runtime::line::Line;

use crate::screen::{between, ours};

/// How lines look.
pub(crate) trait Face {
    fn line(&mut self, line: &Line);

    /// Nothing more is waiting to be shown just now.
    fn pause(&mut self) {}

    /// Time passes although nothing happens.
    fn tick(&mut self) {}

    /// How often, if at all.
    fn tick_every(&self) -> Option<Duration> {
        None
    }
}

/// How to answer, in one line under the ask of an agent at this depth.
pub(crate) fn hint(kind: &str, options: &[String], depth: u32) -> String {
    match kind {
        // Main has no siblings.
        "approval" if depth == 0 => ours("y once · a this agent · p always · n [why]").into_owned(),
        "approval" => {
            ours("y once · a this agent · f its siblings too · p always · n [why]").into_owned()
        }
        "question" if options.is_empty() => "type the answer".into(),
        "question" => {
            let numbered = options.iter().zip(1..).map(|(option, at)| format!("{at} {option}"));
            numbered.collect::<Vec<_>>().join(between())
        }
        "continue" => ours("y goes on · words go on with them · n ends it").into_owned(),
        _ => ours("y · n [why]").into_owned(),
    }
}
