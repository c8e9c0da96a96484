//! What agents and tools are made of before they run: definitions, tool declarations, rights,
//! policy and limits. All of it is told to the kernel in one [`Config`]; the kernel reads no file.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Digest;
use crate::craft::{Kit, Offer, Program, Proof, Sub};
use crate::limits::{DEPTH_CEILING, TURNS_DEFAULT};

/// How an agent takes part. One thing, three modes, switchable while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Talks with the person; on the stack.
    Floor,
    /// Works in the background; its result enters the parent's inbox.
    Worker,
    /// Silent; its result is the tool result of the parent's call.
    Call,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Main,
    Agent,
    Skill,
    Recipe,
}

/// What an agent is made from: a recipe, skill or agent file, or a built-in.
#[expect(clippy::struct_excessive_bools, reason = "each is a word people write in files")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    pub name: String,
    pub kind: Kind,
    /// One line for the catalogue that models choose from.
    #[serde(default)]
    pub about: String,
    /// The system text, or a handle to it when it is long.
    #[serde(default)]
    pub instructions: String,
    #[serde(default)]
    pub model: Option<String>,
    /// The most it may do *or hand on*.
    #[serde(default)]
    pub ceiling: Rights,
    /// What it may do itself; a delegate-only agent uses less than it may hand on.
    #[serde(default)]
    pub uses: Rights,
    #[serde(default)]
    pub limits: AgentLimits,
    /// Its read-only calls may run together; results still go back in call order.
    #[serde(default)]
    pub parallel_reads: bool,
    /// What its final words must be: a JSON schema. The edge compares, the kernel judges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<Value>>,
    /// Something must be prepared (a worktree, a host) before its first turn.
    #[serde(default)]
    pub setup: bool,
    /// What it is told first, before whatever its brief says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opening: Option<String>,
    /// How it takes part where the call leaves that open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Rules of its own. Denials and asks hold for everyone below it too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The only calls of these tools it is meant for; others are denied, to those below it too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<Only>,
    /// It asks as in this mode where the session's would let it go further, and so does everyone
    /// below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<PolicyMode>,
    /// What would have to be asked for it is denied.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub unasked: bool,
    /// It hides another of its name that is believed more: what rules allow to agents of that name
    /// they do not allow to those made from it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stands_in: bool,
    /// Why a person must agree before anybody is made from it: it starts a program of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// Kinds of chat it may be started in; none named is all. For whoever brings a channel.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub chats: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subs: Vec<Sub>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
    #[serde(default, skip_serializing_if = "Kit::is_empty")]
    pub kit: Kit,
}

impl Definition {
    /// One that may do everything and says nothing, to be narrowed and filled in.
    #[must_use]
    pub fn new(name: &str, kind: Kind) -> Definition {
        Definition {
            name: name.into(),
            kind,
            about: String::new(),
            instructions: String::new(),
            model: None,
            ceiling: Rights::all(),
            uses: Rights::all(),
            limits: AgentLimits::default(),
            parallel_reads: false,
            output: None,
            setup: false,
            opening: None,
            mode: None,
            rules: Vec::new(),
            only: Vec::new(),
            cap: None,
            unasked: false,
            stands_in: false,
            caution: None,
            chats: BTreeSet::new(),
            subs: Vec::new(),
            proof: None,
            program: None,
            kit: Kit::default(),
        }
    }

    /// A definition's identity is its content.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(&serde_json::to_vec(self).unwrap_or_default())
    }
}

/// What a call can do to the world. Order is by harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    Read,
    Write,
    Exec,
    Network,
    Delegate,
}

impl Class {
    pub const ALL: [Class; 5] =
        [Class::Read, Class::Write, Class::Exec, Class::Network, Class::Delegate];

    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Class::Read => "read",
            Class::Write => "write",
            Class::Exec => "exec",
            Class::Network => "network",
            Class::Delegate => "delegate",
        }
    }
}

/// A tool the edge can run. Declared, not discovered: the kernel judges calls by this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub class: Class,
    /// Running it twice is the same as running it once, so a cut call may be run again.
    #[serde(default)]
    pub idempotent: bool,
    /// The argument that rules are matched against (`command`, `path`, `url`).
    #[serde(default)]
    pub subject: Option<String>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Why a person must agree to every call, whatever rules and modes say: there are no walls
    /// around it, or it is not what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caution: Option<String>,
    /// What it says of itself, as a digest. When that changes, what was granted before is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// It was brought for one agent: only those who were given it may use it.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub brought: bool,
}

impl ToolSpec {
    /// It may be called again without doing more than once would.
    pub(crate) fn is_harmless(&self) -> bool {
        self.idempotent || self.class == Class::Read
    }

    /// One whose calls are known by the argument `subject`.
    #[must_use]
    pub fn new(name: &str, class: Class, subject: Option<&str>) -> ToolSpec {
        ToolSpec {
            name: name.into(),
            class,
            idempotent: class == Class::Read,
            subject: subject.map(String::from),
            timeout_ms: None,
            caution: None,
            identity: None,
            brought: false,
        }
    }
}

/// A set of effect classes and, optionally, of tool names. Both must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    pub classes: BTreeSet<Class>,
    /// `None` is every tool of the classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Arc<BTreeSet<String>>>,
}

impl Default for Rights {
    fn default() -> Rights {
        Rights::all()
    }
}

impl Rights {
    #[must_use]
    pub fn all() -> Rights {
        Rights { classes: BTreeSet::from(Class::ALL), tools: None }
    }

    #[must_use]
    pub fn only(classes: &[Class]) -> Rights {
        Rights { classes: classes.iter().copied().collect(), tools: None }
    }

    #[must_use]
    pub fn with_tools<'a>(mut self, tools: impl IntoIterator<Item = &'a str>) -> Rights {
        self.tools = Some(Arc::new(tools.into_iter().map(String::from).collect()));
        self
    }

    #[must_use]
    pub fn allow(&self, tool: &str, class: Class) -> bool {
        self.classes.contains(&class) && self.tools.as_ref().is_none_or(|set| set.contains(tool))
    }

    #[must_use]
    pub fn meet(&self, other: &Rights) -> Rights {
        let tools = match (&self.tools, &other.tools) {
            (None, None) => None,
            (Some(set), None) | (None, Some(set)) => Some(Arc::clone(set)),
            (Some(a), Some(b)) if a == b => Some(Arc::clone(a)),
            (Some(a), Some(b)) => Some(Arc::new(a.intersection(b).cloned().collect())),
        };
        Rights { classes: self.classes.intersection(&other.classes).copied().collect(), tools }
    }

    /// True if everything allowed here is allowed there.
    #[must_use]
    pub fn within(&self, other: &Rights) -> bool {
        let tools = match (&self.tools, &other.tools) {
            (_, None) => true,
            (None, Some(_)) => self.classes.is_empty(),
            (Some(a), Some(b)) => a.is_subset(b),
        };
        tools && self.classes.is_subset(&other.classes)
    }
}

/// Bounds of one agent. `None` is no bound of its own; the tree's still hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLimits {
    /// Model calls: per exchange on the floor, per life otherwise.
    #[serde(default)]
    pub turns_max: Option<u32>,
    #[serde(default)]
    pub tokens_max: Option<u64>,
    #[serde(default)]
    pub micro_usd_max: Option<u64>,
    /// Active time; the clock of a waiting agent stands still.
    #[serde(default)]
    pub active_ms_max: Option<u64>,
    /// Those below it that may be active off the floor at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Model calls over a whole conversation, whatever people say in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talk_turns_max: Option<u32>,
}

/// Bounds of the tree, counted from the root input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLimits {
    /// Agents off the floor that may think or run a tool at one time.
    pub slots: u32,
    pub depth_max: u32,
    /// Live children of one parent.
    pub width_max: u32,
    pub spawns_max: u32,
    /// Model calls of an agent whose definition says nothing.
    pub turns_max: u32,
    #[serde(default)]
    pub tokens_max: Option<u64>,
    #[serde(default)]
    pub micro_usd_max: Option<u64>,
    #[serde(default)]
    pub active_ms_max: Option<u64>,
}

impl Default for TreeLimits {
    fn default() -> TreeLimits {
        TreeLimits {
            slots: 8,
            depth_max: 8,
            width_max: 32,
            spawns_max: 32,
            turns_max: TURNS_DEFAULT,
            tokens_max: None,
            micro_usd_max: None,
            active_ms_max: None,
        }
    }
}

impl TreeLimits {
    /// No configuration lifts the hard ceilings, and no session is left without a slot.
    #[must_use]
    pub fn clamped(mut self) -> TreeLimits {
        self.slots = self.slots.max(1);
        self.depth_max = self.depth_max.min(DEPTH_CEILING);
        self.turns_max = self.turns_max.max(1);
        self
    }
}

/// What a model can hold and costs. An unknown price stays unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSpec {
    pub window_tokens: u64,
    pub output_tokens_max: u64,
    /// Micro-dollars per million tokens.
    #[serde(default)]
    pub input_price: Option<u64>,
    #[serde(default)]
    pub output_price: Option<u64>,
}

impl Default for ModelSpec {
    fn default() -> ModelSpec {
        ModelSpec {
            window_tokens: 200_000,
            output_tokens_max: 8_000,
            input_price: None,
            output_price: None,
        }
    }
}

/// Whether anybody can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    /// Asks wait for an answer, however long.
    Present,
    /// Nobody will answer: an ask is an explicit denial, never a hang.
    #[default]
    Absent,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyMode {
    /// Reads and delegation are free; everything else asks.
    #[default]
    Ask,
    /// As `Ask`, but writes are free.
    Edits,
    /// No effects at all.
    Plan,
    /// Everything the rules and ceilings do not forbid is free.
    Auto,
}

impl PolicyMode {
    /// The narrower of two.
    #[must_use]
    pub fn meet(self, other: PolicyMode) -> PolicyMode {
        match (self, other) {
            (PolicyMode::Plan, _) | (_, PolicyMode::Plan) => PolicyMode::Plan,
            (PolicyMode::Ask, _) | (_, PolicyMode::Ask) => PolicyMode::Ask,
            (PolicyMode::Edits, _) | (_, PolicyMode::Edits) => PolicyMode::Edits,
            (PolicyMode::Auto, PolicyMode::Auto) => PolicyMode::Auto,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    Allow,
    Ask,
    Deny,
}

/// `deny exec "rm *" agent=builder`: deny beats ask beats allow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub kind: RuleKind,
    /// A tool name or a pattern of one.
    pub tool: String,
    /// Matched against the call's subjects; `None` is any.
    #[serde(default)]
    pub pattern: Option<String>,
    /// Definition name of the agents it holds for; `None` is all.
    #[serde(default)]
    pub agent: Option<String>,
}

/// `exec "git status:*"`: of this tool, calls that an allow rule with this pattern would admit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Only {
    /// A tool name or a pattern of one.
    pub tool: String,
    /// Matched against the call's subjects, or the name of the definition it would start.
    pub pattern: String,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.tool)?;
        if let Some(pattern) = &self.pattern {
            write!(f, " {pattern:?}")?;
        }
        match &self.agent {
            Some(agent) => write!(f, " agent={agent}"),
            None => Ok(()),
        }
    }
}

impl RuleKind {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RuleKind::Allow => "allow",
            RuleKind::Ask => "ask",
            RuleKind::Deny => "deny",
        }
    }
}

/// Everything a session is told about the world it runs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    pub session: String,
    /// The folder its agents work in, for whoever opens it next; the kernel does not look there.
    #[serde(default)]
    pub workspace: String,
    pub main: Definition,
    pub model: String,
    pub audience: Audience,
    pub mode: PolicyMode,
    #[serde(default)]
    pub rules: Vec<Rule>,
    #[serde(default)]
    pub limits: TreeLimits,
    #[serde(default)]
    pub tools: Vec<ToolSpec>,
    #[serde(default)]
    pub definitions: Vec<Definition>,
    /// What else the edge can bring when it is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Offer>,
    #[serde(default)]
    pub models: BTreeMap<String, ModelSpec>,
}
