//! What a session is told of the world: from the flags, the model and the tools there are.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use locum_kernel::limits::TURNS_DEFAULT;
use locum_kernel::{
    AgentId, Audience, Config, Definition, Kind, ModelSpec, Offer, PolicyMode, Rule, Session,
    TreeLimits,
};
use locum_runtime::rules;
use locum_runtime::script::Script;
use locum_runtime::tool::Toolbox;
use serde_json::Value;

use crate::config::Limits;
use crate::flags::{Approvals, Bounds};
use crate::kept::Kept;

pub(crate) const MAIN: &str = "main";

/// Everything the configuration is made from.
pub(crate) struct Setup<'a> {
    pub(crate) session: &'a str,
    pub(crate) model: &'a str,
    /// Who is at the root, if not main: a name that a script plays, or a whole definition.
    pub(crate) agent: Option<&'a str>,
    pub(crate) root: Option<Definition>,
    /// What can be brought when it is named.
    pub(crate) offers: Vec<Offer>,
    /// The session as it was left; what no flag says stays as it was.
    pub(crate) before: Option<&'a Session>,
    pub(crate) workspace: &'a Path,
    pub(crate) approvals: Approvals,
    pub(crate) bounds: &'a Bounds,
    /// What the configuration says where the flags say nothing.
    pub(crate) limits: Limits,
    /// What the configuration allows and forbids.
    pub(crate) rules: &'a [Rule],
    /// What is kept for this folder.
    pub(crate) kept: &'a Kept,
    /// What is known of the models.
    pub(crate) specs: BTreeMap<String, ModelSpec>,
    /// What the root's final words must be.
    pub(crate) schema: Option<Arc<Value>>,
    pub(crate) script: Option<&'a Script>,
    /// Whether a name is that of a definition, whose rights a script does not change.
    pub(crate) is_defined: &'a dyn Fn(&str) -> bool,
    pub(crate) tools: &'a dyn Toolbox,
}

impl Setup<'_> {
    pub(crate) fn config(&self) -> Config {
        let main = self.main();
        let named = self.script.into_iter().flat_map(|script| {
            let named = script.names().filter(|name| *name != main.name && *name != MAIN);
            let own = named.filter(|name| !(self.is_defined)(name));
            own.map(|name| self.below(narrowed(script, name)))
        });
        let definitions = named.collect();
        Config {
            session: self.session.to_owned(),
            workspace: self.workspace.display().to_string(),
            main,
            model: self.model.to_owned(),
            audience: audience(self.approvals),
            mode: self.mode(),
            rules: self.rules(),
            limits: self.limits(),
            tools: self.tools.specs(),
            definitions,
            offers: self.offers.clone(),
            models: self.models(),
        }
    }

    fn main(&self) -> Definition {
        let named = || definition(self.agent.unwrap_or(MAIN), Kind::Main);
        let main = self.root.clone().unwrap_or_else(named);
        let output = self.output().or_else(|| main.output.clone());
        Definition { output, ..main }
    }

    /// What is known of the model; of a script, what it says of itself.
    fn models(&self) -> BTreeMap<String, ModelSpec> {
        let mut models = self.specs.clone();
        let window = self.script.and_then(Script::window_tokens);
        let spec = |window_tokens| ModelSpec { window_tokens, ..ModelSpec::default() };
        models.extend(window.map(|window| (self.model.to_owned(), spec(window))));
        models
    }

    fn output(&self) -> Option<Arc<Value>> {
        let before = || self.before?.form(AgentId::MAIN).cloned().map(Arc::new);
        self.schema.clone().or_else(before)
    }

    /// Not as it was before: nobody is let do more because somebody was, in another run.
    fn mode(&self) -> PolicyMode {
        self.bounds.mode.map(Into::into).unwrap_or_default()
    }

    /// Those of this run: what the configuration says now, what is kept for the folder, what is
    /// given. One that was given to an earlier run is over with it.
    fn rules(&self) -> Vec<Rule> {
        let tools = self.tools.specs();
        let kept = self.kept.in_force(Some(&tools));
        let kept = kept.into_iter().map(|(rule, _)| rule.clone());
        let own = built_in().chain(self.rules.iter().cloned());
        let mut rules: Vec<Rule> = Vec::new();
        for rule in own.chain(kept).chain(self.bounds.rules()) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        rules
    }

    fn limits(&self) -> TreeLimits {
        let bounds = self.bounds;
        let fresh = TreeLimits {
            slots: self.limits.slots.unwrap_or(SLOTS),
            width_max: AGENTS,
            spawns_max: AGENTS,
            turns_max: self.limits.max_turns.unwrap_or(MAIN_TURNS),
            micro_usd_max: self.limits.max_cost,
            ..TreeLimits::default()
        };
        let mut limits = self.before.map_or(fresh, |before| before.limits().clone());
        limits.turns_max = bounds.max_turns.unwrap_or(limits.turns_max);
        limits.slots = bounds.slots.unwrap_or(limits.slots);
        if let Some(agents) = bounds.max_agents {
            limits.spawns_max = agents;
            limits.width_max = limits.width_max.max(agents);
        }
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        limits.active_ms_max = bounds.timeout.map(ms).or(limits.active_ms_max);
        limits.micro_usd_max = bounds.max_cost.or(limits.micro_usd_max);
        limits
    }

    /// Those below main have the usual limit of their own, unless somebody sets one for everybody.
    fn below(&self, mut definition: Definition) -> Definition {
        definition.limits.turns_max = turns_usual(self.bounds, self.limits);
        definition
    }
}

pub(crate) fn turns_usual(bounds: &Bounds, limits: Limits) -> Option<u32> {
    bounds.max_turns.or(limits.max_turns).is_none().then_some(TURNS_DEFAULT)
}

/// What an agent may always do with commands it was allowed to start.
const HARMLESS: [&str; 4] = [
    "allow process \"list\"",
    "allow process \"log\"",
    "allow process \"wait\"",
    "allow process \"kill\"",
];

/// Rules that every session has.
pub(crate) fn built_in() -> impl Iterator<Item = Rule> {
    HARMLESS.iter().filter_map(|text| rules::parse(text).ok())
}

/// Model calls main may make in one exchange when no flag says otherwise. Far more than an agent
/// below it: nobody may be there to say "go on", and whoever is watches main.
const MAIN_TURNS: u32 = 1_000;

/// Agents off the floor that may be active at once, and that one request may lead to.
const SLOTS: u32 = 16;
const AGENTS: u32 = 64;

fn audience(approvals: Approvals) -> Audience {
    match approvals {
        Approvals::Deny => Audience::Absent,
        Approvals::Stdio | Approvals::Park | Approvals::Ask | Approvals::Itself => {
            Audience::Present
        }
    }
}

/// Somebody of a script, who may do what the script says.
fn narrowed(script: &Script, name: &str) -> Definition {
    let mut made = definition(name, Kind::Agent);
    if let Some(classes) = script.may(name) {
        made.uses.classes.clone_from(classes);
        made.ceiling.classes.clone_from(classes);
    }
    made
}

fn definition(name: &str, kind: Kind) -> Definition {
    Definition { about: "from the script".into(), ..Definition::new(name, kind) }
}
