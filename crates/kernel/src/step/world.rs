//! Configuration and restart: what the session is told about the world, and what a new process
//! makes of calls that were cut.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Step;
use crate::digest::Digest;
use crate::{
    Agent, AgentId, CallId, CallState, Change, Class, Config, Definition, Event, Key, Kind, Mode,
    Offer, Output, Owed, Refusal, Rights, Session, Spawn, clip,
};

/// The name `sessions_spawn` uses: a silent reader.
pub(super) const READER: &str = "reader";

/// Read-only research: no writing, no commands, no network, nobody below it.
fn reader() -> Definition {
    Definition {
        about: "reads and searches, changes nothing, answers once".into(),
        instructions: "Find what is asked for with your read-only tools and answer with it.".into(),
        ceiling: Rights::only(&[Class::Read]),
        uses: Rights::only(&[Class::Read]),
        parallel_reads: true,
        ..Definition::new(READER, Kind::Agent)
    }
}

/// Whether a definition is our own, which no list shows: models get it through other names, and
/// people never ask for it.
pub(crate) fn is_internal(digest: &Digest) -> bool {
    *digest == reader().digest()
}

impl Step<'_> {
    pub(super) fn configured(&mut self, config: &Config) -> Result<(), Refusal> {
        let fresh = self.session.agents.is_empty();
        if !fresh {
            self.is_this_session(config)?;
        }
        if fresh {
            self.emit(Event::Opened { session: config.session.clone() });
        }
        let changes = differences(self.session, config, fresh);
        if !changes.is_empty() {
            self.emit(Event::Configured { changes });
            self.ask_again();
        }
        if fresh {
            self.emit(Event::Spawned(Box::new(Spawn {
                agent: AgentId::MAIN,
                parent: None,
                call: None,
                definition: config.main.digest(),
                label: config.main.name.clone(),
                model: config.main.model.clone().unwrap_or_else(|| config.model.clone()),
                mode: Mode::Floor,
                ceiling: config.main.ceiling.clone(),
                uses: config.main.uses.meet(&config.main.ceiling),
                limits: config.main.limits.clone(),
                after: Vec::new(),
            })));
        }
        Ok(())
    }

    pub(super) fn offered(&mut self, offers: Vec<Offer>) {
        let mut offers = offers;
        offers.sort_by(|a, b| a.name.cmp(&b.name));
        if !offers.iter().eq(self.session.world.offers.values()) {
            self.emit(Event::Configured { changes: Vec::from([Change::Offers(offers)]) });
        }
    }

    /// Makes definitions known by their content, without a name that means them.
    pub(super) fn bring(&mut self, definitions: Vec<Definition>) {
        let known = &self.session.world.definitions;
        let brought = definitions.into_iter().filter_map(|definition| {
            let digest = definition.digest();
            let definition = Box::new(definition);
            (!known.contains_key(&digest)).then_some(Change::Brought { digest, definition })
        });
        let changes: Vec<Change> = brought.collect();
        if !changes.is_empty() {
            self.emit(Event::Configured { changes });
        }
    }

    /// Told once: whoever writes after the first who found nobody there finds the same.
    pub(super) fn left(&mut self) {
        if self.session.left.is_none() {
            self.emit(Event::Left);
            self.forget_wonders();
        }
    }

    /// A cut model call is simply owed again. A cut tool is owed again only if running it twice
    /// is harmless, as declared then and now; otherwise nobody knows what it did, and the model
    /// is told exactly that. What was started when nobody was there to run it has not been cut.
    pub(super) fn restarted(
        &mut self,
        config: &Config,
        captured: &[(Key, String)],
    ) -> Result<(), Refusal> {
        self.is_this_session(config)?;
        let left = self.session.left;
        self.forget_wonders();
        self.emit(Event::Restarted);
        let cut: Vec<(Key, AgentId, CallId)> = self
            .session
            .owed
            .iter()
            .filter_map(|(key, owed)| match owed {
                Owed::Tool(..) if left.is_some_and(|left| *key > left) => None,
                Owed::Tool(agent, call) => {
                    let harmless = may_run_again(&self.session[*agent], *call, config);
                    (!harmless).then_some((*key, *agent, *call))
                }
                Owed::Model(_) | Owed::Setup(_) | Owed::Delivery(_) | Owed::Relay(_) => None,
            })
            .collect();
        for (key, agent, call) in cut {
            let seen = captured.iter().find(|(of, _)| *of == key).map(|(_, text)| text);
            let text = match seen {
                None => String::from("interrupted: outcome unknown"),
                Some(text) => format!(
                    "interrupted: outcome unknown. It had printed:\n{}",
                    clip(text.clone(), crate::limits::RESULT_BYTES_MAX)
                ),
            };
            self.give(agent, call, Output::error(text));
            self.ready.push_back(agent);
        }
        self.configured(config)
    }

    fn is_this_session(&self, config: &Config) -> Result<(), Refusal> {
        let (open, given) = (self.session.key.clone(), config.session.clone());
        if open == given { Ok(()) } else { Err(Refusal::OtherSession { open, given }) }
    }
}

fn may_run_again(agent: &Agent, call: CallId, config: &Config) -> bool {
    let Some(call) = agent.call(call) else { return false };
    let then = matches!(call.state, CallState::Running { idempotent: true, .. });
    then && config.tools.iter().any(|tool| tool.name == call.name && tool.idempotent)
}

/// What the configuration says that the session does not know yet.
fn differences(session: &Session, config: &Config, fresh: bool) -> Vec<Change> {
    let world = &session.world;
    let mut changes = Vec::new();
    let limits = config.limits.clone().clamped();
    if fresh || world.audience != config.audience {
        changes.push(Change::Audience(config.audience));
    }
    if fresh || world.mode != config.mode {
        changes.push(Change::Mode(config.mode));
    }
    if world.rules != config.rules {
        changes.push(Change::Rules(config.rules.clone()));
    }
    if fresh || world.limits != limits {
        changes.push(Change::Limits(limits));
    }
    if world.model != config.model {
        changes.push(Change::Model(config.model.clone()));
    }
    if world.workspace != config.workspace {
        changes.push(Change::Workspace(config.workspace.clone()));
    }
    for (name, spec) in &config.models {
        if world.models.get(name) != Some(spec) {
            changes.push(Change::ModelSpec { name: name.clone(), spec: spec.clone() });
        }
    }
    for tool in &config.tools {
        if world.tools.get(&tool.name) != Some(tool) {
            changes.push(Change::Tool(tool.clone()));
        }
    }
    // Those brought for an agent stay for as long as it lives; the edge starts them again.
    for (name, _) in world.tools.iter().filter(|(_, tool)| !tool.brought) {
        if !config.tools.iter().any(|tool| tool.name == *name) {
            changes.push(Change::ToolGone(name.clone()));
        }
    }
    if !config.offers.iter().eq(world.offers.values()) {
        let mut offers = config.offers.clone();
        offers.sort_by(|a, b| a.name.cmp(&b.name));
        if !offers.iter().eq(world.offers.values()) {
            changes.push(Change::Offers(offers));
        }
    }
    let reader = reader();
    let builtin = (!config.definitions.iter().any(|def| def.name == READER)).then_some(&reader);
    let wanted = || config.definitions.iter().chain([&config.main]).chain(builtin);
    for definition in wanted() {
        let digest = definition.digest();
        if world.catalogue.get(&definition.name) != Some(&digest) {
            let definition = Box::new(definition.clone());
            changes.push(Change::Definition { digest, definition });
        }
    }
    for name in world.catalogue.keys() {
        if !wanted().any(|definition| definition.name == *name) {
            changes.push(Change::DefinitionGone(name.clone()));
        }
    }
    changes
}
