//! Lines in which something happens: people speak and decide, models reply and fail, tools
//! return, time passes, the process dies.

use super::words::{duration_ms, json, micro_usd, text, word};
use super::{Outcome, Stage};
use locum_kernel::{
    AgentId, Allow, AskId, Class, Command, Copied, Deed, Digest, Effect, Failure, FailureKind,
    Found, Input, InputId, Key, Known, Made, Message, Output, Ready, Reply, Scope, Time, To,
    ToolSpec, Urgency, Usage, Use, Verdict, Who, Wonder, deadline, meant, owed, summons, wanted,
};

impl Stage {
    /// The outer error is a broken line, the inner one a refusal.
    pub(super) fn act(&mut self, line: &str) -> Result<Outcome, String> {
        if let Some(command) = line.strip_prefix('/') {
            return self.command(command);
        }
        let (first, rest) = word(line);
        match first {
            "tick" => {
                self.now = self.now.plus_ms(duration_ms(rest)?);
                let due = deadline(&self.session).is_some_and(|at| at <= self.now);
                return Ok(if due { self.input(Input::Ticked) } else { Ok(()) });
            }
            "back" => {
                self.now = Time(self.now.0 - duration_ms(rest)?);
                return Ok(Ok(()));
            }
            "crash" => {
                let captured = rest.strip_prefix("captured ").map(text).transpose()?;
                return Ok(self.crash(captured.as_deref()));
            }
            "leave" => return Ok(self.input(Input::Left)),
            "offered" => {
                let offers = self.config.offers.clone();
                return Ok(self.input(Input::Offered { offers }));
            }
            "sent" => {
                let error = rest.strip_prefix("error ").map(text).transpose()?;
                let key = self.owed_key(|effect| matches!(effect, Effect::Deliver { .. }))?;
                return Ok(self.input(Input::Delivered { key, error }));
            }
            "relayed" => {
                let key = self.owed_key(|effect| matches!(effect, Effect::Relay { .. }))?;
                return Ok(self.input(Input::Relayed { key }));
            }
            "summon" => return self.summon(rest),
            "retool" => return self.retool(rest),
            "allow" | "deny" | "answer" | "continue" | "topup" => return self.verdict(first, rest),
            "edit" | "drop" | "move" => return self.queue_act(first, rest),
            _ => {}
        }
        self.actor(line)
    }

    /// `name> reply`, `name< result`, `name! failure`, `name~ setup`, `name: words`.
    fn actor(&mut self, line: &str) -> Result<Outcome, String> {
        let (stale, line) = match line.strip_prefix("stale ") {
            Some(line) => (true, line),
            None => (false, line),
        };
        let at =
            line.find(['>', '<', '!', '~', ':', '?']).ok_or("this line does nothing I know")?;
        let (name, rest) = (line[..at].trim(), line[at + 1..].trim());
        let mark = &line[at..=at];
        if mark == ":" {
            let message = message(name, rest, self)?;
            return Ok(self.say(message));
        }
        let agent = self.agent(name)?;
        Ok(match mark {
            ">" => {
                let key = self.key_of(agent, stale, true)?;
                let reply = self.bring(reply(rest)?);
                self.input(Input::Replied { key, reply })
            }
            "!" => {
                let key = self.key_of(agent, stale, true)?;
                self.input(Input::Failed { key, failure: failure(rest)? })
            }
            "?" => {
                let (key, rest) = self.tool_key(agent, stale, rest)?;
                self.input(Input::Wondered { key, wonder: wonder(rest)? })
            }
            "<" => {
                let (key, rest) = self.tool_key(agent, stale, rest)?;
                self.input(Input::Ran { key, output: output(rest)? })
            }
            _ => {
                let key = self.owed_key(
                    |effect| matches!(effect, Effect::Prepare { agent: of, .. } if *of == agent),
                )?;
                let error = rest.strip_prefix("error ").map(text).transpose()?;
                let (brings, told) = rest.split_once(" told ").unwrap_or((rest, ""));
                let told = if told.is_empty() { None } else { Some(text(told)?) };
                let (brings, copy) = brings.split_once(" copy ").unwrap_or((brings, ""));
                let copy = copy
                    .split_once(" on ")
                    .map(|(path, branch)| Copied { path: path.into(), branch: branch.into() });
                let tools = brings.strip_prefix("ready with ").map(brought).transpose()?;
                let ready = Ready { tools: tools.unwrap_or_default(), told, copy };
                self.input(Input::Prepared { key, error, ready })
            }
        })
    }

    /// What the edge does with a message: whom it names is looked up before it is taken.
    fn say(&mut self, message: Message) -> Outcome {
        let known = &self.shelf;
        let defined = |name: &str| match known.get(name) {
            Some((_, needs)) if needs.is_empty() => Known::Yes,
            Some((_, needs)) => Known::Not(format!("{name} needs {}", needs.join(", "))),
            None => {
                let near = |it: &&String| locum_kernel::distance(it, name) <= 2;
                Known::No(known.keys().filter(near).cloned().collect())
            }
        };
        match meant(&self.session, message, self.now, defined) {
            Ok(message) => self.input(Input::Said(message)),
            Err(why) => {
                self.seen.refusal(&why);
                Err(why.to_string())
            }
        }
    }

    /// The first name that waits is looked up on the shelf.
    fn summon(&mut self, rest: &str) -> Result<Outcome, String> {
        let key = self.owed_key(|effect| matches!(effect, Effect::Summon { .. }))?;
        let name = summons(&self.session, key).ok_or("it names nobody")?;
        let found = match (rest.strip_prefix("error "), self.shelf.get(name)) {
            (Some(why), _) => Found::Not(text(why)?),
            (None, Some((definition, _))) => Found::Made(Box::new(definition.clone())),
            (None, None) => Found::Nothing,
        };
        Ok(self.input(Input::Summoned { key, found }))
    }

    /// What the edge does with a reply: definitions that its calls name are brought along.
    fn bring(&self, mut reply: Reply) -> Reply {
        for call in &mut reply.calls {
            let Some(wanted) = wanted(call) else { continue };
            let Some((made, needs)) = self.shelf.get(&wanted.name) else { continue };
            let given =
                |key: &String| wanted.parameters.as_ref().is_some_and(|it| it.get(key).is_some());
            if let Some(missing) = needs.iter().find(|key| !given(key)) {
                call.made = Some(Made::Not(format!("{missing:?} has no value")));
                continue;
            }
            let mut made = made.clone();
            made.opening = made.opening.map(|text| match &wanted.parameters {
                Some(values) => format!("{text} with {values}"),
                None => text,
            });
            call.made = Some(Made::Of(made.digest()));
            reply.brings.push(made);
        }
        reply
    }

    fn owed_key(&self, wanted: impl Fn(&Effect) -> bool) -> Result<Key, String> {
        let found = owed(&self.session).into_iter().find(wanted);
        found.map(|effect| effect.key()).ok_or_else(|| "nothing of the kind is owed".into())
    }

    fn key_of(&self, agent: AgentId, stale: bool, model: bool) -> Result<Key, String> {
        if stale {
            let keys = if model { &self.model_keys } else { &self.tool_keys };
            return keys.get(&agent).copied().ok_or_else(|| "it never owed anything".into());
        }
        self.owed_key(|effect| match effect {
            Effect::CallModel { agent: of, .. } => model && *of == agent,
            Effect::RunTool { agent: of, .. } => !model && *of == agent,
            Effect::Prepare { .. }
            | Effect::Deliver { .. }
            | Effect::Relay { .. }
            | Effect::Summon { .. } => false,
        })
    }

    /// `name< #2 ok …` is the second of several running calls.
    fn tool_key<'a>(
        &self,
        agent: AgentId,
        stale: bool,
        rest: &'a str,
    ) -> Result<(Key, &'a str), String> {
        let Some(rest) = rest.strip_prefix('#') else {
            return Ok((self.key_of(agent, stale, false)?, rest));
        };
        let (number, rest) = word(rest);
        let number: usize = number.parse().map_err(|_| "which call?")?;
        let running = owed(&self.session)
            .into_iter()
            .filter(|effect| matches!(effect, Effect::RunTool { agent: of, .. } if *of == agent));
        let key = running.map(|effect| effect.key()).nth(number - 1);
        Ok((key.ok_or("it does not run that many")?, rest))
    }

    fn command(&mut self, line: &str) -> Result<Outcome, String> {
        let (name, rest) = word(line);
        let (target, words) = word(rest);
        let some = |words: &str| (!words.is_empty()).then(|| words.to_string());
        let command = match name {
            "back" => Command::Back,
            "done" => Command::Done { text: rest.into() },
            "bg" => Command::Background,
            "fg" => Command::Foreground { agent: self.agent(target)? },
            "cancel" => Command::Cancel { agent: self.agent(target)?, why: words.into() },
            "continue" => Command::Continue { agent: self.agent(target)?, text: some(words) },
            "compact" => Command::Compact { agent: self.agent(target)? },
            "narrow" => {
                Command::Narrow { agent: self.agent(target)?, to: super::setup::rights(words)? }
            }
            "revoke" => Command::Revoke { rule: super::setup::rule(rest)? },
            other => return Err(format!("there is no command /{other}")),
        };
        Ok(self.input(Input::Commanded { by: Who::Person("user".into()), command }))
    }

    /// `exec "says this"`, `gone exec`: what a tool says of itself, or that it is gone.
    /// `s__b "says this" beside s__a` is of a server that was brought, `… to gh` of one that took
    /// its time.
    fn retool(&mut self, rest: &str) -> Result<Outcome, String> {
        let (name, rest) = word(rest);
        if name == "gone" {
            let (tools, gone, beside) = (Vec::new(), vec![rest.to_owned()], Vec::new());
            return Ok(self.input(Input::Retooled { tools, gone, beside, to: None }));
        }
        let (rest, to) = match rest.split_once(" to ") {
            Some((rest, to)) => (rest, Some(self.agent(to)?)),
            None => (rest, None),
        };
        let (rest, beside) = rest.split_once(" beside ").unwrap_or((rest, ""));
        let beside: Vec<String> = beside.split_whitespace().map(str::to_owned).collect();
        let known = self.session.tool(name).cloned();
        let tool = known.unwrap_or_else(|| ToolSpec::new(name, Class::Exec, None));
        let brought = tool.brought || !beside.is_empty() || to.is_some();
        let tools = vec![ToolSpec { identity: Some(text(rest)?), brought, ..tool }];
        Ok(self.input(Input::Retooled { tools, gone: Vec::new(), beside, to }))
    }

    fn queue_act(&mut self, verb: &str, rest: &str) -> Result<Outcome, String> {
        let id = |text: &str| {
            let number = text.strip_prefix('i').and_then(|number| number.parse().ok());
            number.map(InputId).ok_or_else(|| format!("{text:?} is no input"))
        };
        let (input, rest) = word(rest);
        let input = id(input)?;
        Ok(self.input(match verb {
            "edit" => Input::Edited { input, text: text(rest)? },
            "drop" => Input::Dropped { input, by: Who::Person("user".into()) },
            _ => {
                let before = rest.strip_prefix("before ").map(id).transpose()?;
                Input::Moved { input, before }
            }
        }))
    }

    /// `allow builder fanout`, `allow builder edit {…} by web`, `deny builder "why"` …
    fn verdict(&mut self, verb: &str, rest: &str) -> Result<Outcome, String> {
        let (name, mut rest) = word(rest);
        let ask = if let Some(id) = name.strip_prefix('q').and_then(|id| id.parse().ok()) {
            AskId(id)
        } else {
            let agent = self.agent(name)?;
            *self.ask_ids.get(&agent).ok_or("it never asked")?
        };
        let (mut by, mut seen) = (Who::Person("user".into()), None);
        let (mut scope, mut arguments, mut pattern, mut expires) = (Scope::Once, None, None, None);
        let mut words = None;
        while !rest.is_empty() {
            if rest.starts_with('"') {
                let (value, after) = json(rest)?;
                words = value.as_str().map(String::from);
                rest = after;
                continue;
            }
            let (option, after) = word(rest);
            rest = after;
            match option {
                "once" => scope = Scope::Once,
                "agent" => scope = Scope::Agent,
                "fanout" => scope = Scope::Fanout,
                "project" => scope = Scope::Project,
                "changed" => seen = Some(Digest::of_bytes(b"something else")),
                "edit" => {
                    let (value, after) = json(rest)?;
                    (arguments, rest) = (Some(value), after);
                }
                "pattern" => {
                    let (value, after) = json(rest)?;
                    (pattern, rest) = (value.as_str().map(String::from), after);
                }
                "for" => {
                    let (time, after) = word(rest);
                    (expires, rest) = (Some(self.now.plus_ms(duration_ms(time)?)), after);
                }
                "by" => {
                    let (who, after) = word(rest);
                    (by, rest) = (Who::Person(who.into()), after);
                }
                other => words = Some(other.to_string()),
            }
        }
        let verdict = match verb {
            "allow" => Verdict::Allow(Allow { scope, arguments, pattern, expires, subjects: None }),
            "deny" => Verdict::Deny { message: words },
            "answer" => Verdict::Answer { text: words.unwrap_or_default() },
            "continue" => Verdict::Continue { text: words },
            _ => Verdict::TopUp { micro_usd: micro_usd(&words.unwrap_or_default())? },
        };
        Ok(self.input(Input::Answered { ask, verdict, by, digest: seen }))
    }
}

/// `3 "which?" yes no`: its number, what it asks, and between what.
fn wonder(rest: &str) -> Result<Wonder, String> {
    let (number, rest) = word(rest);
    let id = number.parse().map_err(|_| "which wonder?")?;
    let (question, options) = json(rest)?;
    let question = question.as_str().ok_or("what does it ask?")?.to_owned();
    let options = options.split_whitespace().map(String::from).collect();
    Ok(Wonder { id, from: "server".into(), question, options })
}

/// `user: hi`, `user steer: hi`, `user @worker: hi`, `telegram/ann#42: hi`.
fn message(name: &str, rest: &str, stage: &Stage) -> Result<Message, String> {
    let (who, how) = word(name);
    let (who, external_id) = match who.split_once('#') {
        Some((who, id)) => (who, Some(id.to_string())),
        None => (who, None),
    };
    let (channel, sender) = who.split_once('/').unwrap_or(("terminal", who));
    let mut message = Message {
        pictures: Vec::new(),
        channel: channel.into(),
        sender: if sender == "user" { String::new() } else { sender.into() },
        external_id,
        text: text(rest)?,
        urgency: Urgency::Queue,
        to: To::Floor,
        reply_to: (channel != "terminal").then(|| who.to_string()),
    };
    for word in how.split_whitespace() {
        match word {
            "steer" => message.urgency = Urgency::Steer,
            "interrupt" => message.urgency = Urgency::Interrupt,
            "main" => message.to = To::Main,
            name => match name.strip_prefix('@') {
                Some(name) => {
                    let found = stage.agent(name);
                    message.to = found.map_or_else(|_| To::Name(name.into()), To::Agent);
                }
                None => return Err(format!("who is {name:?}?")),
            },
        }
    }
    Ok(message)
}

/// `"words" tool{…} tool{…} (in=100 out=20 usd=0.01 flaw=no_total)`
fn reply(mut rest: &str) -> Result<Reply, String> {
    let mut reply = Reply::default();
    if rest.starts_with('"') {
        let (_, after) = json(rest)?;
        reply.text = text(rest[..rest.len() - after.len()].trim())?;
        rest = after;
    }
    while !rest.is_empty() {
        if let Some(usage) = rest.strip_prefix('(') {
            let usage = usage.strip_suffix(')').ok_or("( without )")?;
            for option in usage.split_whitespace() {
                let (key, value) = option.split_once('=').ok_or("usage wants key=value")?;
                let number = || value.parse::<u64>().map_err(|_| format!("{value:?}?"));
                match key {
                    "in" => reply.usage.input = number()?,
                    "out" => reply.usage.output = number()?,
                    "usd" => reply.micro_usd = Some(micro_usd(value)?),
                    "flaw" => reply.flaw = Some(value.replace('_', " ")),
                    other => return Err(format!("no usage is called {other:?}")),
                }
            }
            break;
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "_-".contains(c)));
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        if name.is_empty() {
            return Err(format!("what is {rest:?}?"));
        }
        let after = after.trim_start();
        let (arguments, after) =
            if after.starts_with(['{', '[', '"']) { json(after)? } else { (empty(), after) };
        let arguments = match arguments.get("_bytes").and_then(serde_json::Value::as_u64) {
            Some(bytes) => big(bytes),
            None => arguments,
        };
        reply.calls.push(Use::new(name, arguments));
        rest = after;
    }
    if reply.usage == Usage::default() {
        reply.usage = Usage { input: 100, output: 20, ..Usage::default() };
    }
    Ok(reply)
}

/// `gh__list:read,gh__post:network`: the tools a setup brought.
fn brought(rest: &str) -> Result<Vec<ToolSpec>, String> {
    let tool = |word: &str| {
        let (name, class) = word.split_once(':').ok_or("a tool wants name:class")?;
        Ok(ToolSpec::new(name, super::setup::class(class)?, None))
    };
    rest.split(',').map(tool).collect()
}

fn empty() -> serde_json::Value {
    serde_json::Value::Object(serde_json::Map::new())
}

/// `{"_bytes": 50000000}`: a result of that many bytes.
fn big(bytes: u64) -> serde_json::Value {
    serde_json::json!({ "result": "x".repeat(usize::try_from(bytes).unwrap_or_default()) })
}

/// `ok "text"`, `error "text"`, `exit 1 "text"`, `wrote path "text"`.
fn output(rest: &str) -> Result<Output, String> {
    let (how, rest) = word(rest);
    Ok(match how {
        "ok" => Output::ok(text(rest)?),
        "error" => Output::error(text(rest)?),
        "exit" => {
            let (code, rest) = word(rest);
            let exit = code.parse().map_err(|_| "which exit code?")?;
            let deeds = vec![Deed::Ran { argv: "sh".into(), exit }];
            Output { text: text(rest)?, is_error: exit != 0, deeds, ..Output::default() }
        }
        "wrote" => {
            let (path, rest) = word(rest);
            let change = "changed".to_string();
            let deeds = vec![Deed::Changed { path: path.into(), sha256: "0".into(), change }];
            Output { text: text(rest)?, deeds, ..Output::default() }
        }
        other => return Err(format!("{other:?} is no way to return")),
    })
}

fn failure(rest: &str) -> Result<Failure, String> {
    let (how, rest) = word(rest);
    let (kind, status) = match how {
        "429" => (FailureKind::RateLimited, Some(429)),
        "529" => (FailureKind::Overloaded, Some(529)),
        "500" => (FailureKind::Server, Some(500)),
        "timeout" => (FailureKind::Timeout, None),
        "cut" => (FailureKind::Cut, None),
        "malformed" => (FailureKind::Malformed, None),
        "context" => (FailureKind::ContextTooLong, None),
        "auth" => (FailureKind::Auth, Some(401)),
        "quota" => (FailureKind::Quota, None),
        "unknown" => (FailureKind::UnknownModel, Some(404)),
        "absent" => (FailureKind::Absent, None),
        "filtered" => (FailureKind::Filtered, None),
        "other" => (FailureKind::Other, None),
        other => return Err(format!("{other:?} is no failure")),
    };
    let after = rest.strip_prefix("after=").map(duration_ms).transpose()?;
    Ok(Failure { kind, status, retry_after_ms: after, message: String::new() })
}
