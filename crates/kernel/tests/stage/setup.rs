//! Lines that say what the world is like: agents, tools, limits, rules.

use super::Stage;
use super::words::{duration_ms, json, micro_usd, word};
use locum_kernel::{
    Audience, Check, Class, Config, Definition, Kind, ModelSpec, Offer, Only, PolicyMode, Program,
    ProgramInput, Proof, Rights, Rule, RuleKind, Sub, Subjects, ToolSpec, TreeLimits,
};

pub(crate) fn definition(name: &str, kind: Kind) -> Definition {
    Definition {
        about: format!("about {name}"),
        instructions: format!("You are {name}."),
        ..Definition::new(name, kind)
    }
}

fn tool(name: &str, class: Class, subject: &str) -> ToolSpec {
    let idempotent = class == Class::Read;
    ToolSpec {
        brought: false,
        caution: None,
        identity: None,
        name: name.into(),
        class,
        idempotent,
        subject: Some(subject.into()),
        timeout_ms: None,
    }
}

pub(crate) fn config() -> Config {
    Config {
        offers: Vec::new(),
        session: "test".into(),
        workspace: String::new(),
        main: definition("main", Kind::Main),
        model: "test/model".into(),
        audience: Audience::Present,
        mode: PolicyMode::Ask,
        rules: Vec::new(),
        limits: TreeLimits::default(),
        tools: vec![
            tool("read", Class::Read, "path"),
            tool("grep", Class::Read, "pattern"),
            tool("write", Class::Write, "path"),
            tool("exec", Class::Exec, "command"),
            tool("web_fetch", Class::Network, "url"),
        ],
        definitions: Vec::new(),
        models: std::collections::BTreeMap::new(),
    }
}

pub(crate) fn class(word: &str) -> Result<Class, String> {
    let found = Class::ALL.into_iter().find(|class| class.word() == word);
    found.ok_or_else(|| format!("{word:?} is no effect class"))
}

pub(crate) fn rights(list: &str) -> Result<Rights, String> {
    let classes: Result<Vec<Class>, String> =
        list.split(',').filter(|word| !word.is_empty()).map(class).collect();
    Ok(Rights::only(&classes?))
}

impl Stage {
    /// True if the line was a setup line.
    pub(super) fn setup_line(&mut self, line: &str) -> Result<bool, String> {
        let (first, rest) = word(line);
        match first {
            "agent" | "skill" | "recipe" => {
                let (name, options) = word(rest);
                let kind = match first {
                    "skill" => Kind::Skill,
                    "recipe" => Kind::Recipe,
                    _ => Kind::Agent,
                };
                let mut made = definition(name, kind);
                define(&mut made, options)?;
                self.config.definitions.retain(|old| old.name != made.name);
                self.config.definitions.push(made);
            }
            "shelf" => self.shelve(rest)?,
            "unshelf" => {
                self.shelf.remove(rest);
                self.config.offers.retain(|offer| offer.name != rest);
            }
            "forget" => self.config.definitions.retain(|old| old.name != rest),
            "main" => define(&mut self.config.main, rest)?,
            "tool" => self.declare(rest)?,
            "untool" => self.config.tools.retain(|tool| tool.name != rest),
            "set" => rest.split_whitespace().try_for_each(|option| self.set(option))?,
            "rule" => self.rule(rest)?,
            "norules" => self.config.rules.clear(),
            "model" => self.model(rest)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `shelf recipe NAME opts needs=key`: not configured, but there to be brought.
    fn shelve(&mut self, rest: &str) -> Result<(), String> {
        let (kind, rest) = word(rest);
        let kind = match kind {
            "skill" => Kind::Skill,
            "recipe" => Kind::Recipe,
            "agent" => Kind::Agent,
            other => return Err(format!("{other:?} is no kind")),
        };
        let (name, options) = word(rest);
        let is_need = |option: &&str| option.starts_with("needs=");
        let (needs, options): (Vec<&str>, Vec<&str>) =
            options.split_whitespace().partition(is_need);
        let mut made = definition(name, kind);
        define(&mut made, &options.join(" "))?;
        self.config.offers.retain(|offer| offer.name != name);
        let about = made.about.clone();
        self.config.offers.push(Offer { name: name.into(), kind, about });
        let needs = needs.iter().map(|need| need["needs=".len()..].to_string()).collect();
        self.shelf.insert(name.into(), (made, needs));
        Ok(())
    }

    fn declare(&mut self, rest: &str) -> Result<(), String> {
        let (name, rest) = word(rest);
        let (class_word, options) = word(rest);
        let mut made = tool(name, class(class_word)?, "path");
        made.idempotent = options.contains("idempotent");
        self.config.tools.retain(|old| old.name != made.name);
        self.config.tools.push(made);
        Ok(())
    }

    fn set(&mut self, option: &str) -> Result<(), String> {
        let (key, value) = option.split_once('=').ok_or("set wants key=value")?;
        let number = || value.parse::<u32>().map_err(|_| format!("{value:?} is no number"));
        let limits = &mut self.config.limits;
        match key {
            "workspace" => self.config.workspace = value.into(),
            "slots" => limits.slots = number()?,
            "depth" => limits.depth_max = number()?,
            "width" => limits.width_max = number()?,
            "spawns" => limits.spawns_max = number()?,
            "turns" => limits.turns_max = number()?,
            "tokens" => limits.tokens_max = Some(number()?.into()),
            "usd" => limits.micro_usd_max = Some(micro_usd(value)?),
            "time" => limits.active_ms_max = Some(duration_ms(value)?),
            "audience" => {
                self.config.audience =
                    if value == "absent" { Audience::Absent } else { Audience::Present };
            }
            "mode" => {
                self.config.mode = match value {
                    "ask" => PolicyMode::Ask,
                    "edits" => PolicyMode::Edits,
                    "plan" => PolicyMode::Plan,
                    "auto" => PolicyMode::Auto,
                    other => return Err(format!("{other:?} is no mode")),
                }
            }
            "session" => self.config.session = value.into(),
            other => return Err(format!("nothing is called {other:?}")),
        }
        Ok(())
    }

    /// `rule deny exec "rm *" agent=builder`
    fn rule(&mut self, rest: &str) -> Result<(), String> {
        self.config.rules.push(rule(rest)?);
        Ok(())
    }

    /// `model test/model window=1000 max_out=100 in=3.00 out=15.00`
    fn model(&mut self, rest: &str) -> Result<(), String> {
        let (name, options) = word(rest);
        let mut spec = ModelSpec::default();
        for option in options.split_whitespace() {
            let (key, value) = option.split_once('=').ok_or("model wants key=value")?;
            match key {
                "window" => spec.window_tokens = value.parse().map_err(|_| "window")?,
                "max_out" => spec.output_tokens_max = value.parse().map_err(|_| "max_out")?,
                "in" => spec.input_price = Some(micro_usd(value)?),
                "out" => spec.output_price = Some(micro_usd(value)?),
                other => return Err(format!("nothing is called {other:?}")),
            }
        }
        self.config.models.insert(name.into(), spec);
        Ok(())
    }
}

fn define(made: &mut Definition, options: &str) -> Result<(), String> {
    for option in options.split_whitespace() {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        match key {
            "turns" => made.limits.turns_max = Some(value.parse().map_err(|_| "turns")?),
            "tokens" => made.limits.tokens_max = Some(value.parse().map_err(|_| "tokens")?),
            "usd" => made.limits.micro_usd_max = Some(micro_usd(value)?),
            "time" => made.limits.active_ms_max = Some(duration_ms(value)?),
            "uses" => made.uses = rights(value)?,
            "ceiling" => made.ceiling = rights(value)?,
            "tools" => made.uses = Rights::all().with_tools(value.split(',')),
            "hands_on" => made.ceiling = Rights::all().with_tools(value.split(',')),
            "model" => made.model = Some(value.into()),
            "parallel" => made.parallel_reads = true,
            "setup" => made.setup = true,
            "opening" => made.opening = Some(spaced(value)),
            "mode" => {
                let wish = serde_json::from_value(value.into());
                made.mode = Some(wish.map_err(|_| format!("{value:?} is no mode"))?);
            }
            "slots" => made.limits.slots = Some(value.parse().map_err(|_| "slots")?),
            "unasked" => made.unasked = true,
            "stands_in" => made.stands_in = true,
            "deny" | "asks" | "allow" => made.rules.push(own_rule(key, value)),
            "only" => {
                let (tool, pattern) = value.split_once(':').ok_or("only wants tool:pattern")?;
                made.only.push(Only { tool: tool.into(), pattern: spaced(pattern) });
            }
            "check" => proof(made).checks.push(check(value)),
            "tries" => proof(made).tries_max = value.parse().map_err(|_| "tries")?,
            "on_failure" => proof(made).on_failure = Some(check(value)),
            "program" => {
                let command = value.split(',').map(String::from).collect();
                made.program = Some(Program { command, input: ProgramInput::Stdin });
            }
            "sub" | "sub_in_turn" => made.subs.push(Sub {
                offer: Offer { name: value.into(), kind: Kind::Recipe, about: "below it".into() },
                file: format!("{value}.yaml"),
                values: std::collections::BTreeMap::new(),
                in_turn: key == "sub_in_turn",
            }),
            "caution" => made.caution = Some(spaced(value)),
            "worktree" => made.kit.worktree = true,
            "env" => drop(made.kit.env.insert(value.into())),
            "writes" => made.kit.writes.push(value.into()),
            "says" => made.instructions = value.into(),
            other => return Err(format!("nothing is called {other:?}")),
        }
    }
    Ok(())
}

fn spaced(value: &str) -> String {
    value.replace('_', " ")
}

fn check(value: &str) -> Check {
    let command = spaced(value);
    Check { subjects: Some(Subjects::Parts(vec![command.clone()])), command }
}

fn proof(made: &mut Definition) -> &mut Proof {
    made.proof.get_or_insert(Proof {
        checks: Vec::new(),
        on_failure: None,
        check_timeout_s: 300,
        on_failure_timeout_s: 600,
        tries_max: 1,
    })
}

/// `deny=exec:rm_*`: a rule of the definition's own.
fn own_rule(kind: &str, value: &str) -> Rule {
    let kind = match kind {
        "deny" => RuleKind::Deny,
        "allow" => RuleKind::Allow,
        _ => RuleKind::Ask,
    };
    let (tool, pattern) = value.split_once(':').unwrap_or((value, ""));
    let pattern = (!pattern.is_empty()).then(|| spaced(pattern));
    Rule { kind, tool: tool.into(), pattern, agent: None }
}

/// `deny exec "rm *" agent=NAME`
pub(super) fn rule(rest: &str) -> Result<Rule, String> {
    let (kind, rest) = word(rest);
    let kind = match kind {
        "allow" => RuleKind::Allow,
        "ask" => RuleKind::Ask,
        "deny" => RuleKind::Deny,
        other => return Err(format!("{other:?} is no rule")),
    };
    let (tool, mut rest) = word(rest);
    let mut pattern = None;
    if rest.starts_with('"') {
        let (value, after) = json(rest)?;
        pattern = value.as_str().map(String::from);
        rest = after;
    }
    let agent = rest.strip_prefix("agent=").map(String::from);
    Ok(Rule { kind, tool: tool.into(), pattern, agent })
}
