//! Lines that say what the world is like: agents, tools, limits, rules.

use super::Stage;
use super::words::{duration_ms, json, micro_usd, word};
use locum_kernel::{
    Audience, Class, Config, Definition, Kind, ModelSpec, PolicyMode, Rights, Rule, RuleKind,
    ToolSpec, TreeLimits,
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
        self.config.rules.push(Rule { kind, tool: tool.into(), pattern, agent });
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
            "model" => made.model = Some(value.into()),
            "parallel" => made.parallel_reads = true,
            "setup" => made.setup = true,
            "says" => made.instructions = value.into(),
            other => return Err(format!("nothing is called {other:?}")),
        }
    }
    Ok(())
}
