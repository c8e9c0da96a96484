//! The tools the kernel itself answers: one table of names, aliases of other systems included.

/// A tool about agents. Making one is an effect, judged by ceilings and rules; talking about
/// them is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    Make(Make),
    Wait,
    ListAgents,
    GetAgent,
    Load,
    AgentEval,
    AgentClose,
    Complete,
    AskUser,
    AskParent,
}

/// The ways to let somebody else do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Make {
    UseAgent,
    UseSkill,
    SpawnAgent,
    CallRecipe,
    SessionsSpawn,
    SpawnInteractive,
    Delegate,
}

/// A tool's own name comes before its aliases.
const NAMES: [(&str, Tool); 20] = [
    ("use_agent", Tool::Make(Make::UseAgent)),
    ("use_skill", Tool::Make(Make::UseSkill)),
    ("spawn_agent", Tool::Make(Make::SpawnAgent)),
    ("call_recipe", Tool::Make(Make::CallRecipe)),
    ("wait", Tool::Wait),
    ("list_agents", Tool::ListAgents),
    ("get_agent", Tool::GetAgent),
    ("agent_eval", Tool::AgentEval),
    ("agent_close", Tool::AgentClose),
    ("complete", Tool::Complete),
    ("ask_user", Tool::AskUser),
    ("ask_parent", Tool::AskParent),
    // Accepted but not offered.
    ("sessions_spawn", Tool::Make(Make::SessionsSpawn)),
    ("platform__spawn_interactive_subagent", Tool::Make(Make::SpawnInteractive)),
    ("delegate", Tool::Make(Make::Delegate)),
    ("platform__call_recipe", Tool::Make(Make::CallRecipe)),
    ("mcp_list_agents", Tool::ListAgents),
    ("mcp_get_agent", Tool::GetAgent),
    ("load", Tool::Load),
    ("interrupt", Tool::AskUser),
];

/// How many of the names models are told.
const OFFERED: usize = 12;

impl Tool {
    pub(crate) fn offered() -> impl Iterator<Item = Tool> {
        NAMES.into_iter().take(OFFERED).map(|(_, tool)| tool)
    }

    pub(crate) fn named(name: &str) -> Option<Tool> {
        NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, tool)| tool)
    }

    pub(crate) fn name(self) -> &'static str {
        NAMES.into_iter().find(|(_, tool)| *tool == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn is_judged(self) -> bool {
        matches!(self, Tool::Make(_))
    }

    /// Everything a tool goes by, and the plain tool that another system's stands for: a rule
    /// or a right for any of the names holds, so an alias opens no side door.
    pub(crate) fn names(self, background: bool) -> impl Iterator<Item = &'static str> {
        let kin = if let Tool::Make(make) = self { make.plain(background) } else { None };
        let mine = move |tool: Tool| tool == self || Some(tool) == kin.map(Tool::Make);
        NAMES.into_iter().filter(move |(_, tool)| mine(*tool)).map(|(name, _)| name)
    }
}

impl Make {
    /// The plain way that another system's stands for.
    fn plain(self, background: bool) -> Option<Make> {
        match self {
            Make::SpawnInteractive => Some(Make::UseAgent),
            Make::Delegate if background => Some(Make::SpawnAgent),
            Make::SessionsSpawn | Make::Delegate => Some(Make::CallRecipe),
            Make::UseAgent | Make::UseSkill | Make::SpawnAgent | Make::CallRecipe => None,
        }
    }
}
