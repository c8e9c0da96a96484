//! The tools that make agents: one request type behind every name that means "let somebody else
//! do this", and the checks that stand before a birth.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde_json::{Map, Value, json};

use super::request::{Request, request};
use super::{Step, load};
use crate::limits::{AGENTS_CEILING, INPUT_BYTES_MAX, LABEL_BYTES_MAX, WORKER_ROWS_MAX};
use crate::{
    Agent, AgentId, AgentLimits, CallId, Definition, Event, InputId, Kind, Made, Make, Message,
    Mode, Note, Output, Source, Spawn, Tool, Use, clip, headline,
};

/// The definition a call names, for whoever can bring it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub name: String,
    /// It is named as a skill.
    pub skill: bool,
    pub parameters: Option<Value>,
    pub message: String,
}

/// What a call wants to be brought. `None` if it names nobody.
#[must_use]
pub fn wanted(call: &Use) -> Option<Wanted> {
    let arguments = call.arguments.as_object()?;
    let tool = Tool::named(&call.name)?;
    if tool == Tool::Load {
        return load::wanted(arguments);
    }
    let Tool::Make(make) = tool else { return None };
    let Request { name, brief: message, parameters, .. } = request(make, arguments).ok()?;
    Some(Wanted { name, skill: make == Make::UseSkill, parameters, message })
}

/// A brief, after what the definition says first.
fn opened(definition: &Definition, brief: &str) -> String {
    let text = match (definition.opening.as_deref().unwrap_or_default().trim(), brief.trim()) {
        ("", "") => "Begin.".into(),
        ("", _) => brief.into(),
        (opening, "") => opening.into(),
        (opening, brief) => format!("{opening}\n\n{brief}"),
    };
    clip(text, INPUT_BYTES_MAX)
}

impl Step<'_> {
    /// Answers one of the kernel's own tools, at once or later.
    pub(super) fn use_tool(&mut self, id: AgentId, call: CallId, tool: Tool) {
        let Some(found) = self.session[id].call(call) else { return };
        let arguments = found.arguments.clone();
        let none = Map::new();
        let arguments = arguments.as_object().unwrap_or(&none);
        let answer = match tool {
            Tool::Make(make) => {
                request(make, arguments).and_then(|request| self.spawn(id, call, make, request))
            }
            Tool::Wait => self.wait(id, call, arguments),
            Tool::ListAgents => Ok(Some(self.list_agents(id))),
            Tool::GetAgent => self.get_agent(id, arguments).map(Some),
            Tool::Load => return self.give(id, call, self.load(id, call, arguments)),
            Tool::AgentEval => self.agent_eval(id, arguments).map(Some),
            Tool::AgentClose => self.agent_close(id, call, arguments),
            Tool::Complete => self.try_complete(id, call, arguments),
            Tool::AskUser => self.ask_user(id, call, arguments),
            Tool::AskParent => self.ask_parent(id, call, arguments),
        };
        match answer {
            Ok(Some(value)) => self.give(id, call, Output::ok(value.to_string())),
            Ok(None) => {}
            Err(why) => self.give(id, call, Output::error(why)),
        }
    }

    fn spawn(
        &mut self,
        id: AgentId,
        call: CallId,
        make: Make,
        request: Request,
    ) -> Result<Option<Value>, String> {
        let parent = &self.session[id];
        let brought = parent.call(call).and_then(|call| call.made.clone());
        let is_built = brought.is_some();
        let digest = match brought {
            Some(Made::Of(digest)) => digest,
            Some(Made::Not(why)) => return Err(why),
            None => self.find_definition(&request.name)?,
        };
        let definition = self.session.world.definitions.get(&digest).ok_or("no such definition")?;
        let definition = Arc::clone(definition);
        self.may_be_born(parent, make, &definition)?;
        let mode = match (make, definition.mode) {
            (Make::UseAgent | Make::UseSkill | Make::Delegate, Some(wish)) => wish,
            (
                Make::SpawnAgent
                | Make::CallRecipe
                | Make::SessionsSpawn
                | Make::SpawnInteractive
                | Make::UseAgent
                | Make::UseSkill
                | Make::Delegate,
                _,
            ) => request.mode,
        };
        // Whoever waits for a child cannot help those the child would come after.
        if mode != Mode::Worker && !request.after.is_empty() {
            return Err("only spawn_agent takes \"after\": wait for them first".into());
        }
        if mode != Mode::Worker {
            self.must_be_free(parent, &definition.name)?;
        }
        let after =
            request.after.iter().map(|of| self.descendant(id, of)).collect::<Result<_, _>>()?;
        // Only somebody the person can hear may hand the floor on; for others it is a call.
        let on_stack = self.session.stack.contains(&id);
        let mode = if mode == Mode::Floor && !on_stack { Mode::Call } else { mode };
        let mut request = Request { mode, ..request };
        if let Some(parameters) = request.parameters.take().filter(|_| !is_built) {
            request.brief = format!("{}\n\nParameters: {parameters}", request.brief);
        }
        let note = Note::new(Source::Brief, opened(&definition, &request.brief));
        let child = self.bear(id, Some(call), &definition, request, after)?;
        let waits = !self.session[child].after.is_empty();
        self.emit(Event::Heard { agent: child, note });
        if mode == Mode::Worker {
            return Ok(Some(self.announce(id, child, waits)));
        }
        self.ready.push_back(child);
        Ok(None)
    }

    /// Somebody a person named takes the floor from whoever has it. They work for main, which never
    /// ends: whoever had the floor may, and must not take along what a person asked for. Returns
    /// why nobody does.
    pub(super) fn start_on_floor(
        &mut self,
        definition: &Definition,
        message: &Message,
        input: InputId,
    ) -> Result<(), String> {
        let main = AgentId::MAIN;
        self.may_be_born(&self.session[main], Make::UseAgent, definition)?;
        let Message { channel, sender, text, pictures, .. } = message.clone();
        let source = Source::Person { channel, sender };
        let input = Some(input);
        let note = Note { input, pictures, ..Note::new(source, opened(definition, &text)) };
        self.bring(Vec::from([definition.clone()]));
        let request = Request {
            name: definition.name.clone(),
            brief: String::new(),
            label: None,
            mode: Mode::Floor,
            model: None,
            talk_turns_max: None,
            micro_usd_max: None,
            after: Vec::new(),
            parameters: None,
        };
        let child = self.bear(main, None, definition, request, Vec::new())?;
        self.emit(Event::Heard { agent: child, note });
        self.ready.push_back(child);
        Ok(())
    }

    /// A birth: the child and its link to the parent in one fact.
    fn bear(
        &mut self,
        id: AgentId,
        call: Option<CallId>,
        definition: &Definition,
        request: Request,
        mut after: Vec<AgentId>,
    ) -> Result<AgentId, String> {
        let parent = &self.session[id];
        let child =
            AgentId(u32::try_from(self.session.agents.len()).map_err(|_| "too many agents")?);
        if request.mode == Mode::Worker {
            after.extend(self.in_the_way(parent, &definition.name));
        }
        let ceiling = parent.ceiling.meet(&definition.ceiling);
        let own = &definition.limits;
        let spawn = Spawn {
            agent: child,
            parent: Some(id),
            call,
            label: label_for(parent, request.label.as_deref(), &definition.name),
            model: request
                .model
                .or_else(|| definition.model.clone())
                .unwrap_or_else(|| parent.model.clone()),
            mode: request.mode,
            uses: definition.uses.meet(&ceiling),
            ceiling,
            limits: AgentLimits {
                talk_turns_max: least(request.talk_turns_max, own.talk_turns_max),
                micro_usd_max: least(request.micro_usd_max, own.micro_usd_max),
                ..own.clone()
            },
            definition: definition.digest(),
            after,
        };
        self.emit(Event::Spawned(Box::new(spawn)));
        Ok(child)
    }

    /// A new worker joins the line, and the parent is told where it stands.
    fn announce(&mut self, parent: AgentId, child: AgentId, waits: bool) -> Value {
        let keeps_one = self.session[parent].mode != Mode::Floor;
        let taken = self.session.slots.taken + u32::from(keeps_one);
        let free = self.session.world.limits.slots.saturating_sub(taken) as usize;
        let ahead = self.session.line_length();
        if !waits {
            self.line_up(child);
        }
        let position = (ahead + 1).saturating_sub(free);
        let label = &self.session[child].label;
        let mut row = json!({ "agent_id": child.to_string(), "label": label });
        row["state"] = json!(if position == 0 && !waits { "starting" } else { "queued" });
        if waits {
            row["waits_for"] = json!("the agents it comes after");
        } else if position > 0 {
            row["position"] = json!(position);
        }
        row
    }

    /// Everything that forbids a birth, in words the model can act on.
    fn may_be_born(&self, parent: &Agent, make: Make, child: &Definition) -> Result<(), String> {
        let limits = &self.session.world.limits;
        let skill = make == Make::UseSkill || child.kind == Kind::Skill;
        if parent.kind == Kind::Skill && skill {
            return Err("a skill cannot call use_skill: do the work or complete".into());
        }
        let name = &child.name;
        if parent.name == *name {
            return Err(format!(
                "{name} cannot invoke itself: do the work or choose another agent"
            ));
        }
        if parent.depth >= limits.depth_max {
            let max = limits.depth_max;
            return Err(format!("depth limit {max} reached: do this yourself"));
        }
        if parent.live.len() >= limits.width_max as usize {
            let max = limits.width_max;
            return Err(format!("{max} agents work for you already: wait for one to end"));
        }
        if self.session.tree.spawns >= limits.spawns_max {
            return Err(spawn_limit(limits.spawns_max));
        }
        if self.session.agents.len() >= AGENTS_CEILING {
            return Err("this session has too many agents: start a new one".into());
        }
        Ok(())
    }

    /// A definition by name, or by the file name of one.
    pub(super) fn find_definition(&self, name: &str) -> Result<crate::digest::Digest, String> {
        let catalogue = &self.session.world.catalogue;
        let stem = name.rsplit('/').next().unwrap_or(name);
        let stem = [".yaml", ".yml", ".json", ".md"].iter().find_map(|ext| stem.strip_suffix(ext));
        let main = Some(self.session[AgentId::MAIN].name.as_str());
        let mut names = [Some(name), stem].into_iter().flatten().filter(|name| Some(*name) != main);
        let found = names.find_map(|name| catalogue.get(name));
        found.cloned().ok_or_else(|| {
            let known: BTreeSet<&str> = catalogue
                .keys()
                .chain(self.session.world.offers.keys())
                .map(String::as_str)
                .filter(|name| Some(*name) != main)
                .collect();
            let known: Vec<&str> = known.into_iter().take(WORKER_ROWS_MAX).collect();
            format!("no agent is named {name:?}. Known: {}", known.join(", "))
        })
    }
}

/// A label no other child of this parent ever had, and that nobody takes for an id.
fn label_for(parent: &Agent, wanted: Option<&str>, name: &str) -> String {
    let wanted = headline(wanted.unwrap_or(name), LABEL_BYTES_MAX).replace('/', "-");
    let is_id = wanted.strip_prefix('a').unwrap_or(&wanted).parse::<u32>().is_ok();
    let wanted = if wanted.is_empty() || is_id { String::from(name) } else { wanted };
    let times = parent.labels.get(&wanted).copied().unwrap_or(0);
    let numbered = (times + 1..).map(|n| format!("{wanted}-{n}"));
    let mut labels = (times == 0).then(|| wanted.clone()).into_iter().chain(numbered);
    labels.find(|label| !parent.labels.contains_key(label)).unwrap_or_default()
}

fn least<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    [a, b].into_iter().flatten().min()
}

/// What whoever wants one agent too many is told.
#[must_use]
pub fn spawn_limit(max: u32) -> String {
    format!("spawn limit {max} for this request reached: use what you have")
}
