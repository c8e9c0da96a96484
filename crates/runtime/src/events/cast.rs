//! Who is on stage: what the lines must know of each agent that the kernel keeps to itself.

use locum_kernel::{AgentId, CallId, Spawn, State, Time};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Teller;
use crate::line::AgentRef;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) name: AgentRef,
    pub(super) definition: String,
    pub(super) model: String,
    pub(super) parent_call: Option<CallId>,
    /// As last told; `None` before the first time.
    pub(super) state: Option<State>,
    /// It was last told to wait for a person.
    pub(super) waits: bool,
    /// Model turns so far; the last one is under way if `thinks`.
    pub(super) turns: u32,
    pub(super) thinks: bool,
    /// Calls of its last reply that have no result yet.
    pub(super) calls: Vec<Doing>,
    pub(super) replies: u32,
    pub(super) failures: u32,
    /// Tries of the turn under way that came to nothing.
    #[serde(default)]
    pub(super) tries: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Doing {
    pub(super) id: CallId,
    pub(super) name: String,
    pub(super) arguments: Value,
    /// When its `tool.started` was told.
    pub(super) since: Option<Time>,
}

/// How far an agent has come with its model, over its whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    pub definition: &'a str,
    pub name: &'a AgentRef,
    pub replies: u32,
    pub failures: u32,
    /// Of the turn under way.
    pub tries: u32,
}

impl AgentRef {
    /// For a line before anybody is there; the kernel makes none.
    pub(crate) fn nobody() -> AgentRef {
        AgentRef {
            id: String::new(),
            path: String::new(),
            label: String::new(),
            parent: None,
            mode: locum_kernel::Mode::Floor,
            depth: 0,
        }
    }
}

impl Teller {
    #[must_use]
    pub fn progress(&self, id: AgentId) -> Option<Progress<'_>> {
        self.part(id).map(|part| Progress {
            definition: &part.definition,
            name: &part.name,
            replies: part.replies,
            failures: part.failures,
            tries: part.tries,
        })
    }

    pub(super) fn part(&self, id: AgentId) -> Option<&Part> {
        self.cast.get(id.0 as usize)
    }

    pub(super) fn part_mut(&mut self, id: AgentId) -> Option<&mut Part> {
        self.cast.get_mut(id.0 as usize)
    }

    /// The paths of those who hold or have lent the floor.
    pub(super) fn stack_paths(&self) -> Vec<String> {
        let parts = self.stack.iter().filter_map(|id| self.part(*id));
        parts.map(|part| part.name.path.clone()).collect()
    }

    pub(super) fn enter(&mut self, spawn: &Spawn, definition: String) {
        let parent = spawn.parent.and_then(|id| self.part(id));
        let path = parent.map_or_else(
            || spawn.label.clone(),
            |parent| format!("{}/{}", parent.name.path, spawn.label),
        );
        let depth = parent.map_or(0, |parent| parent.name.depth + 1);
        let name = AgentRef {
            id: spawn.agent.to_string(),
            path,
            label: spawn.label.clone(),
            parent: spawn.parent.map(|id| id.to_string()),
            mode: spawn.mode,
            depth,
        };
        self.cast.push(Part {
            name,
            definition,
            model: spawn.model.clone(),
            parent_call: spawn.call,
            // That main waits for its first message is nothing to tell.
            state: spawn.parent.is_none().then_some(State::Done),
            waits: false,
            turns: 0,
            thinks: false,
            calls: Vec::new(),
            replies: 0,
            failures: 0,
            tries: 0,
        });
        self.crowd.comes(spawn.parent.is_none().then_some(State::Done));
        self.live.push(spawn.agent);
    }
}
