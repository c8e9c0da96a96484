//! Choosing what happens next, from a seed and from what the world looks like.

use super::world::{Act, World};
use locum_kernel::{
    AgentId, Allow, AskKind, Audience, Class, Command, Effect, Failure, FailureKind, Found,
    Message, Output, PolicyMode, Reply, Rights, Scope, To, Urgency, Usage, Use, Verdict,
};
use serde_json::{Value, json};

/// Splitmix64: small, seeded, the same everywhere.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.draw() % n.max(1)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[usize::try_from(self.draw() % items.len() as u64).unwrap_or(0)]
    }

    fn index(&mut self, n: u64) -> usize {
        usize::try_from(self.below(n)).unwrap_or(0)
    }
}

pub(crate) struct Chooser {
    rng: Rng,
    said: u64,
}

impl Chooser {
    pub(crate) fn new(seed: u64) -> Chooser {
        Chooser { rng: Rng(seed), said: 0 }
    }

    pub(crate) fn next(&mut self, world: &World) -> Act {
        let due: Vec<&Effect> = world.effects().filter(|effect| world.is_due(effect)).collect();
        match self.rng.below(100) {
            0..=9 => Act::Say(self.message(world)),
            10..=59 if !due.is_empty() => {
                let effect = (*self.rng.pick(&due)).clone();
                self.answer_effect(world, &effect)
            }
            60..=74 => self.answer(world),
            75..=80 => Act::Command(self.command(world)),
            81 => Act::DropInput(self.rng.index(4)),
            82 => Act::EditInput(self.rng.index(4)),
            83..=85 => Act::Echo(self.rng.index(64)),
            86 if self.rng.below(3) == 0 => Act::Leave,
            86..=88 => Act::Crash { lost: self.rng.below(2) == 0 },
            89 => {
                let audience = *self.rng.pick(&[Audience::Present, Audience::Absent]);
                let modes =
                    [PolicyMode::Ask, PolicyMode::Edits, PolicyMode::Plan, PolicyMode::Auto];
                let slots = u32::try_from(self.rng.below(3)).unwrap_or(0) + 1;
                Act::Configure(audience, *self.rng.pick(&modes), slots)
            }
            90 if self.rng.below(3) == 0 => Act::Retool(self.rng.below(3)),
            _ => Act::Pass(*self.rng.pick(&[1, 500, 3_000, 20_000, 70_000])),
        }
    }

    fn message(&mut self, world: &World) -> Message {
        self.said += 1;
        let repeat = self.rng.below(6) == 0;
        let id = if repeat { self.rng.below(self.said) + 1 } else { self.said };
        let someone = self.rng.pick(world.session.agents()).id();
        Message {
            pictures: Vec::new(),
            channel: "chat".into(),
            sender: (*self.rng.pick(&["ann", "bob"])).into(),
            external_id: (self.rng.below(4) > 0).then(|| id.to_string()),
            text: format!("message {}", self.said),
            urgency: match self.rng.below(8) {
                0 => Urgency::Steer,
                1 => Urgency::Interrupt,
                _ => Urgency::Queue,
            },
            to: match self.rng.below(10) {
                0 => To::Main,
                1 => To::Agent(someone),
                2 | 3 => {
                    let names = ["alpha", "beta", "somebody", "nobody"];
                    To::Name((*self.rng.pick(&names)).into())
                }
                _ => To::Floor,
            },
            reply_to: (self.rng.below(3) == 0).then(|| "chat/ann".to_string()),
        }
    }

    fn answer_effect(&mut self, world: &World, effect: &Effect) -> Act {
        match effect {
            Effect::CallModel { agent, .. } if self.rng.below(8) == 0 => {
                Act::Fail(*agent, self.failure())
            }
            Effect::CallModel { agent, .. } => Act::Reply(*agent, self.reply(world, *agent)),
            Effect::RunTool { agent, .. } if self.rng.below(4) == 0 => {
                Act::Wonder(*agent, self.rng.index(3), self.rng.below(100))
            }
            Effect::Relay { agent, .. } => Act::Relayed(*agent),
            Effect::Summon { .. } => Act::Summoned(match self.rng.below(4) {
                0 => Found::Nothing,
                1 => Found::Not("it is broken".into()),
                _ => Found::Made(Box::new(world.somebody())),
            }),
            Effect::RunTool { agent, .. } => {
                let output = if self.rng.below(4) == 0 {
                    Output::error("it broke")
                } else {
                    Output::ok("fine")
                };
                Act::Ran(*agent, self.rng.index(3), output)
            }
            Effect::Prepare { agent, .. } => {
                let broken = self.rng.below(5) == 0;
                Act::Prepared(*agent, broken.then(|| "no disk".to_string()))
            }
            Effect::Deliver { .. } => {
                let broken = self.rng.below(3) == 0;
                Act::Delivered(broken.then(|| "offline".to_string()))
            }
        }
    }

    fn failure(&mut self) -> Failure {
        let kinds = [
            FailureKind::RateLimited,
            FailureKind::RateLimited,
            FailureKind::Overloaded,
            FailureKind::Server,
            FailureKind::Cut,
            FailureKind::Timeout,
            FailureKind::ContextTooLong,
            FailureKind::Auth,
            FailureKind::Other,
        ];
        let kind = *self.rng.pick(&kinds);
        let after = (self.rng.below(3) == 0).then_some(7_000);
        Failure { kind, status: None, retry_after_ms: after, message: String::new() }
    }

    fn reply(&mut self, world: &World, agent: AgentId) -> Reply {
        let many = *self.rng.pick(&[0, 1, 1, 1, 2, 2, 3, 4]);
        let calls = (0..many).map(|_| self.call(world, agent)).collect();
        let usage = Usage { input: self.rng.below(900), output: 20, ..Usage::default() };
        let micro_usd = (self.rng.below(3) > 0).then_some(2_000);
        Reply { text: "so".into(), calls, usage, micro_usd, ..Reply::default() }
    }

    fn call(&mut self, world: &World, agent: AgentId) -> Use {
        let someone = self.rng.pick(world.session.agents()).id().to_string();
        let names = ["alpha", "beta", "gamma", "alpha", "beta", "gamma", "reader", "nobody"];
        let definition = (*self.rng.pick(&names)).to_string();
        let path = format!("f{}", self.rng.below(2));
        match self.rng.below(28) {
            0..=2 => call("read", json!({ "path": path })),
            3..=5 => call("write", json!({ "path": path })),
            6 | 7 => call("exec", json!({ "path": path })),
            8 => call("fetch", json!({ "path": path })),
            9 | 10 => call("use_agent", json!({ "agent": definition, "message": "go" })),
            11 => call("use_skill", json!({ "skill": definition, "message": "go" })),
            12..=15 => {
                let after = if self.rng.below(4) == 0 { json!([someone]) } else { json!([]) };
                let brief = json!({ "agent": definition, "message": "go", "after": after });
                call("spawn_agent", brief)
            }
            16 => call("call_recipe", json!({ "recipe": definition, "message": "go" })),
            17 => {
                let mode = *self.rng.pick(&["any", "all"]);
                call("wait", json!({ "mode": mode, "timeout_s": 30 }))
            }
            18 => call("ask_user", json!({ "question": "which?" })),
            19 => call("ask_parent", json!({ "question": "which?" })),
            20 => {
                let go_on = self.rng.below(2) == 0;
                call(
                    "agent_eval",
                    json!({ "agent_id": someone, "message": "hm", "continue": go_on }),
                )
            }
            21 => call("agent_close", json!({ "agent_id": someone })),
            22 => call("complete", json!({ "result": format!("result of {agent}") })),
            23 => call("wait", json!({ "mode": "all", "timeout_s": 60 })),
            24..=26 => call("spawn_agent", json!({ "agent": definition, "message": "go" })),
            _ => (*self.rng.pick(&[
                call("no_such_tool", json!({})),
                call("read", Value::String("{\"path".into())),
                call("list_agents", json!({})),
                call("complete", json!({})),
            ]))
            .clone(),
        }
    }

    /// Mostly a verdict that fits; sometimes one that does not.
    fn answer(&mut self, world: &World) -> Act {
        let asks: Vec<_> = world.session.asks().collect();
        let nth = self.rng.index(8);
        let kind = asks.get(nth % asks.len().max(1)).map(|ask| &ask.kind);
        let fits = match kind {
            Some(AskKind::Approval(_)) => self.rng.below(6),
            Some(AskKind::Question { .. }) => 6,
            Some(AskKind::Continue { .. }) => 8,
            Some(AskKind::Budget { .. }) => 9,
            None => self.rng.below(10),
        };
        let choice = if self.rng.below(5) == 0 { self.rng.below(10) } else { fits };
        Act::Answer(nth, self.verdict(choice), self.rng.below(4) == 0)
    }

    fn verdict(&mut self, choice: u64) -> Verdict {
        match choice {
            0..=4 => Verdict::Allow(Allow {
                subjects: None,
                scope: *self.rng.pick(&[Scope::Once, Scope::Agent, Scope::Fanout, Scope::Project]),
                arguments: (self.rng.below(5) == 0).then(|| json!({ "path": "edited" })),
                pattern: (self.rng.below(6) == 0).then(|| "f*".to_string()),
                expires: None,
            }),
            5 => Verdict::Deny { message: Some("no".into()) },
            6 | 7 => Verdict::Answer { text: "this".into() },
            8 => Verdict::Continue { text: None },
            _ => Verdict::TopUp { micro_usd: 100_000 },
        }
    }

    fn command(&mut self, world: &World) -> Command {
        // Those who live are more interesting than those who have ended.
        let live: Vec<_> = world.session.agents().iter().filter(|it| !it.has_ended()).collect();
        let agent = self.rng.pick(&live).id();
        match self.rng.below(9) {
            0 => Command::Back,
            1 => Command::Done { text: "enough".into() },
            2 | 3 => Command::Foreground { agent },
            4 => Command::Background,
            5 => Command::Cancel { agent, why: String::new() },
            6 => Command::Continue { agent, text: None },
            7 => Command::Narrow { agent, to: Rights::only(&[Class::Read, Class::Delegate]) },
            _ => Command::Compact { agent },
        }
    }
}

fn call(name: &str, arguments: Value) -> Use {
    Use::new(name, arguments)
}

fn last_words(agent: AgentId) -> Reply {
    let calls = if agent == AgentId::MAIN {
        Vec::new()
    } else {
        vec![call("complete", json!({ "result": "done" }))]
    };
    let usage = Usage { input: 50, output: 5, ..Usage::default() };
    Reply { text: "fine".into(), calls, usage, ..Reply::default() }
}

/// People answer everything, models finish, tools return; whoever is left is sent home. `None`
/// when the world has come to rest.
pub(crate) fn wind_down(world: &World) -> Option<Act> {
    let session = &world.session;
    if let Some(effect) = world.effects().find(|effect| world.is_due(effect)) {
        return Some(match effect {
            Effect::CallModel { agent, .. } => Act::Reply(*agent, last_words(*agent)),
            Effect::RunTool { agent, .. } => Act::Ran(*agent, 0, Output::ok("fine")),
            Effect::Relay { agent, .. } => Act::Relayed(*agent),
            Effect::Summon { .. } => Act::Summoned(Found::Nothing),
            Effect::Prepare { agent, .. } => Act::Prepared(*agent, None),
            Effect::Deliver { .. } => Act::Delivered(None),
        });
    }
    if let Some(effect) = world.effects().next() {
        let wait = match effect {
            Effect::CallModel { not_before, .. } | Effect::Deliver { not_before, .. } => {
                not_before.since(world.now)
            }
            Effect::RunTool { .. }
            | Effect::Prepare { .. }
            | Effect::Relay { .. }
            | Effect::Summon { .. } => 0,
        };
        return Some(Act::Pass(wait.max(1)));
    }
    if session.asks().next().is_some() {
        let deny = Verdict::Deny { message: None };
        return Some(Act::Answer(0, deny, false));
    }
    if let Some(at) = locum_kernel::deadline(&world.session) {
        return Some(Act::Pass(at.since(world.now).max(1)));
    }
    if session.stack().len() > 1 {
        return Some(Act::Command(Command::Back));
    }
    let left = session.agents().iter().skip(1).find(|agent| !agent.has_ended());
    left.map(|agent| Act::Command(Command::Cancel { agent: agent.id(), why: "home".into() }))
}
