//! What a file says, whichever format it was written in: one type for recipes, skills and agents.
//! Everything here is honoured by somebody; what nobody honours is told as a problem instead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use locum_kernel::{Class, Mode};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::parameter::Parameter;
use crate::problem::Place;
use crate::server::Server;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Recipe,
    Skill,
    Agent,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Recipe, Kind::Skill, Kind::Agent];

    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Recipe => "recipe",
            Kind::Skill => "skill",
            Kind::Agent => "agent",
        }
    }

    /// What a file is by its name and folder; `None` is nothing we read.
    #[must_use]
    pub fn of(path: &Path) -> Option<Kind> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        match name.rsplit_once('.')?.1 {
            "yaml" | "yml" | "json" => Some(Kind::Recipe),
            "md" if name == "skill.md" || folder == Some("skills") => Some(Kind::Skill),
            "md" => Some(Kind::Agent),
            _ => None,
        }
    }
}

/// Who put a definition there, and so how far it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Came with the project: may narrow what its agents do, never widen it.
    Workspace,
    /// A folder the person named for recipes.
    RecipePath,
    /// The person's own.
    User,
    /// Ours, inside the program.
    Builtin,
}

impl Scope {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Scope::Workspace => "workspace",
            Scope::RecipePath => "recipe path",
            Scope::User => "user",
            Scope::Builtin => "built-in",
        }
    }
}

/// Where a definition is from. Nothing outside `root` is read on its behalf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    pub file: PathBuf,
    pub root: PathBuf,
    pub scope: Scope,
}

impl Origin {
    #[must_use]
    pub fn is_builtin(&self) -> bool {
        self.scope == Scope::Builtin
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        // A bare name has a parent, which is nothing at all.
        let parent = self.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.unwrap_or(&self.root)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    pub name: String,
    pub kind: Kind,
    pub origin: Origin,
    /// How people call it, when that is more than its name.
    pub title: Option<String>,
    /// One line to choose it by.
    pub about: String,
    /// The system text.
    pub instructions: String,
    /// The first message of a person who says nothing.
    pub prompt: Option<String>,
    pub activities: Vec<String>,
    pub parameters: Vec<Parameter>,
    pub servers: Vec<Server>,
    pub settings: Settings,
    pub sub_recipes: Vec<SubRecipe>,
    /// The final output must be JSON of this shape.
    pub response: Option<Json>,
    pub retry: Option<Retry>,
    pub tools: Tools,
    pub permission: Option<Permission>,
    /// Skills it starts with.
    pub skills: Vec<String>,
    /// Where each of them stands in the file.
    #[serde(skip)]
    pub skills_at: Vec<Place>,
    /// Works beside its parent unless told otherwise.
    pub background: bool,
    pub isolation: Option<Isolation>,
    pub memory: Option<Memory>,
    pub skill: SkillOnly,
    pub own: Own,
    pub author: Option<String>,
    pub version: Option<String>,
    /// The text that values are put into, for recipes.
    #[serde(skip)]
    pub(crate) template: Option<String>,
}

impl Definition {
    pub(crate) fn new(name: String, kind: Kind, origin: Origin) -> Definition {
        Definition {
            name,
            kind,
            origin,
            title: None,
            about: String::new(),
            instructions: String::new(),
            prompt: None,
            activities: Vec::new(),
            parameters: Vec::new(),
            servers: Vec::new(),
            settings: Settings::default(),
            sub_recipes: Vec::new(),
            response: None,
            retry: None,
            tools: Tools::default(),
            permission: None,
            skills: Vec::new(),
            skills_at: Vec::new(),
            background: false,
            isolation: None,
            memory: None,
            skill: SkillOnly::default(),
            own: Own::default(),
            author: None,
            version: None,
            template: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    pub provider: Option<String>,
    /// `None`, or `inherit` in the file: whatever the parent uses.
    pub model: Option<String>,
    pub temperature: Option<f64>,
    /// Model calls.
    pub turns_max: Option<u32>,
    /// How hard a model is asked to think, in the words of its provider.
    pub effort: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubRecipe {
    pub name: String,
    /// As written; beneath the recipe's folder unless absolute.
    pub path: String,
    /// Whoever calls it may set others on top of these.
    pub values: BTreeMap<String, String>,
    /// Two calls of it do not run at the same time.
    pub sequential_when_repeated: bool,
    pub about: Option<String>,
    pub place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    pub tries_max: u32,
    /// Shell lines that must all end with 0.
    pub checks: Vec<String>,
    /// A shell line run before another try.
    pub on_failure: Option<String>,
    pub check_timeout_s: u64,
    pub on_failure_timeout_s: u64,
}

/// One entry of a list of tools: `Bash(git add:*)` is our `exec` for lines that match `git add:*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolUse {
    /// Our name for it. `*` stands for any ending.
    pub name: String,
    /// Which calls of it, if not all.
    pub pattern: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tools {
    /// `None` is every tool; an empty list is none.
    pub allow: Option<Vec<ToolUse>>,
    pub deny: Vec<ToolUse>,
    /// A person sees every call of these, whatever else is allowed.
    #[serde(default)]
    pub ask: Vec<ToolUse>,
}

/// How far an agent goes before it asks, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Looks, changes nothing.
    Plan,
    /// What would have to be asked is denied.
    Deny,
    /// Asks even where the run's mode would not.
    Ask,
    /// As the run it is in.
    Default,
    Edits,
    Auto,
}

impl Permission {
    /// More than an agent has of itself.
    #[must_use]
    pub fn widens(self) -> bool {
        self > Permission::Default
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// A copy of the repository of its own.
    Worktree,
}

/// What is remembered for it from one life to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    User,
    Project,
    Local,
}

/// What only skills have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SkillOnly {
    /// Names of variables its commands need.
    pub env: Vec<String>,
    /// Programs its commands need.
    pub packages: Vec<String>,
    pub input_schema: Option<Json>,
    /// Kinds of chat it may be used in; empty is all.
    pub chat_types: BTreeSet<String>,
    pub capabilities: Vec<String>,
    pub triggers: Vec<String>,
    /// Off until the person turns it on.
    pub opt_in: bool,
    pub sensitive: bool,
    pub started_by: StartedBy,
    pub aliases: Vec<String>,
    pub argument_hint: Option<String>,
}

/// Who may start a skill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartedBy {
    #[default]
    Anybody,
    /// Only people, by its name.
    People,
    /// Only models; people do not see it.
    Models,
    /// Neither, so only another definition that lists it.
    Nobody,
}

/// Our own keys, under `locum:` in any format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Own {
    pub mode: Option<Mode>,
    pub slots: Option<u32>,
    pub budget_micro_usd: Option<u64>,
    /// The most it may do or hand on.
    pub ceiling: Option<BTreeSet<Class>>,
    /// Files are kept before it changes them.
    pub checkpoint: Option<bool>,
    pub passthrough: Option<Passthrough>,
}

/// Another program that is the agent for a whole turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passthrough {
    pub command: Vec<String>,
    pub input: PassInput,
    /// Names of the person's variables that it sees: keys, addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Folders it may write to besides the workspace, as a rule where it keeps what it knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    /// Where each of them stands in the file.
    #[serde(skip)]
    pub writes_at: Vec<Place>,
    pub place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassInput {
    Stdin,
    /// The message is the last argument.
    Arg,
}
