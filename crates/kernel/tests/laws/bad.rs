//! Inputs that nobody should send: about things that are not there, with keys that are not owed,
//! of the wrong kind, empty, huge, nested beyond reason, with numbers at their ends.

use locum_kernel::{
    AgentId, Allow, AskId, Class, Command, Config, Definition, Digest, Effect, Failure,
    FailureKind, Found, Input, InputId, Key, Kind, Message, Output, Ready, Reply, Rights, Scope,
    Seq, Session, Time, To, TreeLimits, Urgency, Usage, Use, Verdict, Who, Wonder, owed,
};
use serde_json::{Value, json};

/// An input, and what is bad about it.
pub(crate) type Bad = (&'static str, Input);

const NOBODY: AgentId = AgentId(4_000_000_000);
/// As deep as a JSON parser goes, so that any edge may hand it over.
const NESTED: usize = 126;
const MEGABYTE: usize = 1 << 20;

fn person() -> Who {
    Who::Person("user".into())
}

pub(crate) fn message(text: &str) -> Message {
    Message {
        pictures: Vec::new(),
        channel: "terminal".into(),
        sender: String::new(),
        external_id: None,
        text: text.into(),
        urgency: Urgency::Queue,
        to: To::Floor,
        reply_to: None,
    }
}

/// An object in a list in a list, and so on.
fn deep(levels: usize) -> Value {
    let list = (2..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]));
    Value::Object(serde_json::Map::from_iter([("path".to_string(), list)]))
}

/// Everything that is cheap enough to be tried in every state.
pub(crate) fn small(session: &Session) -> Vec<Bad> {
    let mut all = said(session);
    all.extend(queue(session));
    all.extend(asks(session));
    all.extend(commands(session));
    all.extend(keys(session));
    all.extend(replies(session));
    all.extend(configs(session));
    all.push(("nothing is due", Input::Ticked));
    let captured = vec![(Seq(0), "x".into()), (Seq(u64::MAX), String::new())];
    let config = Box::new(crate::stage::setup::config());
    all.push(("a restart with keys of nobody", Input::Restarted { config, captured }));
    all
}

fn said(session: &Session) -> Vec<Bad> {
    let mut all = vec![
        ("empty", Input::Said(message(""))),
        ("blank", Input::Said(message(" \n\t"))),
        ("to no name", Input::Said(Message { to: To::Name(" ".into()), ..message("x") })),
        ("to a name", Input::Said(Message { to: To::Name("zed".into()), ..message("") })),
        ("to nobody", Input::Said(Message { to: To::Agent(NOBODY), ..message("x") })),
    ];
    for agent in session.agents() {
        for urgency in [Urgency::Queue, Urgency::Steer, Urgency::Interrupt] {
            let to = To::Agent(agent.id());
            all.push(("aside", Input::Said(Message { to, urgency, ..message("x") })));
        }
    }
    all
}

fn queue(session: &Session) -> Vec<Bad> {
    let none = InputId(u64::MAX);
    let mut all = vec![
        ("edit of none", Input::Edited { input: none, text: "x".into() }),
        ("drop of none", Input::Dropped { input: none, by: person() }),
        ("move of none", Input::Moved { input: none, before: None }),
    ];
    for input in session.waiting() {
        all.push(("emptied", Input::Edited { input, text: String::new() }));
        all.push(("before none", Input::Moved { input, before: Some(none) }));
        all.push(("before itself", Input::Moved { input, before: Some(input) }));
    }
    all
}

fn verdicts() -> Vec<Verdict> {
    let allow = |allow| Verdict::Allow(allow);
    let list = |arguments| allow(Allow { arguments: Some(arguments), ..Allow::default() });
    vec![
        allow(Allow { scope: Scope::Project, ..Allow::default() }),
        allow(Allow { scope: Scope::Fanout, expires: Some(Time(0)), ..Allow::default() }),
        allow(Allow { scope: Scope::Agent, pattern: Some(String::new()), ..Allow::default() }),
        list(json!([])),
        list(json!({})),
        list(deep(NESTED)),
        Verdict::Deny { message: Some(String::new()) },
        Verdict::Answer { text: String::new() },
        Verdict::Continue { text: Some(String::new()) },
        Verdict::TopUp { micro_usd: 0 },
        Verdict::TopUp { micro_usd: u64::MAX },
        Verdict::Withdrawn { why: "not yours to say".into() },
    ]
}

/// Every verdict for every open ask, one for asks long closed or never opened, and one on a digest
/// of something else.
fn asks(session: &Session) -> Vec<Bad> {
    let answered = |ask, verdict, digest| Input::Answered { ask, verdict, by: person(), digest };
    let mut all = Vec::new();
    for ask in session.asks().map(|ask| ask.id) {
        let verdicts = verdicts().into_iter();
        all.extend(verdicts.map(|verdict| ("a verdict", answered(ask, verdict, None))));
        let seen = Some(Digest::of_bytes(b"another"));
        let allow = Verdict::Allow(Allow::default());
        all.push(("a verdict on something else", answered(ask, allow, seen)));
    }
    for ask in (0..=session.seq().0).step_by(5).chain([u64::MAX]).map(AskId) {
        all.push(("a late verdict", answered(ask, Verdict::Deny { message: None }, None)));
    }
    all
}

fn commands(session: &Session) -> Vec<Bad> {
    let mut commands =
        vec![Command::Back, Command::Background, Command::Done { text: String::new() }];
    for agent in session.agents().iter().map(locum_kernel::Agent::id).chain([NOBODY]) {
        commands.extend([
            Command::Foreground { agent },
            Command::Cancel { agent, why: String::new() },
            Command::Continue { agent, text: Some(String::new()) },
            Command::Continue { agent, text: None },
            Command::Narrow { agent, to: Rights::all() },
            Command::Narrow { agent, to: Rights::only(&[Class::Read]).with_tools([]) },
            Command::Compact { agent },
        ]);
    }
    commands.into_iter().map(|it| ("a command", commanded(it))).collect()
}

pub(crate) fn cancel(agent: AgentId) -> Input {
    commanded(Command::Cancel { agent, why: String::new() })
}

fn commanded(command: Command) -> Input {
    Input::Commanded { by: person(), command }
}

fn wonder(text: String) -> Wonder {
    Wonder { id: u64::MAX, from: text.clone(), question: text.clone(), options: vec![text; 99] }
}

fn failed(key: Key, kind: FailureKind, retry_after_ms: Option<u64>) -> Input {
    let failure = Failure { kind, status: Some(0), retry_after_ms, message: String::new() };
    Input::Failed { key, failure }
}

/// Keys that are not owed, and keys that are owed, answered with every kind of answer.
fn keys(session: &Session) -> Vec<Bad> {
    let owed = owed(session).into_iter().map(|effect| effect.key());
    let mut all = Vec::new();
    for key in owed.chain([Seq(0), Seq(u64::MAX)]) {
        all.extend([
            ("an empty reply", Input::Replied { key, reply: Reply::default() }),
            ("a failure", failed(key, FailureKind::Other, None)),
            ("too long", failed(key, FailureKind::ContextTooLong, None)),
            ("retry much later", failed(key, FailureKind::RateLimited, Some(u64::MAX))),
            ("an empty result", Input::Ran { key, output: Output::default() }),
            ("wondered", Input::Wondered { key, wonder: wonder(String::new()) }),
            ("relayed", Input::Relayed { key }),
            ("summoned", Input::Summoned { key, found: Found::Nothing }),
            ("prepared", Input::Prepared { key, error: None, ready: Ready::default() }),
            (
                "not prepared",
                Input::Prepared { key, error: Some(String::new()), ready: Ready::default() },
            ),
            ("delivered", Input::Delivered { key, error: None }),
            ("not delivered", Input::Delivered { key, error: Some(String::new()) }),
        ]);
    }
    all
}

fn call(name: &str, arguments: Value) -> Use {
    Use::new(name, arguments)
}

/// Each of the kernel's own tools with arguments of the wrong type, and tools that are not there.
fn nonsense() -> Reply {
    let tools = "use_agent use_skill spawn_agent call_recipe wait list_agents get_agent \
        agent_eval agent_close ask_user ask_parent sessions_spawn delegate load interrupt \
        platform__spawn_interactive_subagent complete read exec nothing";
    let arguments = [
        json!(null),
        json!([1, 2]),
        json!("{"),
        json!({ "agent": 7, "agent_id": -1, "question": [], "agents": [0, "a0", {}], "result": 1 }),
        json!({ "agent": "", "agent_id": "a4000000000", "after": ["", 3], "budget_usd": "-1" }),
        json!({ "agent": "reader", "label": "///", "max_turns": -5, "budget_usd": 1e300 }),
    ];
    let names = tools.split_whitespace().chain([""]);
    let calls = names.flat_map(|name| arguments.iter().map(|it| call(name, it.clone())));
    Reply { text: "\0\u{202e}".into(), calls: calls.collect(), ..Reply::default() }
}

/// Replies that cost all there is, and such as are nested deep.
fn replies(session: &Session) -> Vec<Bad> {
    let most = u64::MAX;
    let usage = Usage { input: most, output: most, cached: most, cache_write: 0, reasoning: most };
    let of =
        |calls| Reply { text: "x".into(), calls, usage, micro_usd: Some(most), ..Reply::default() };
    let mut all = Vec::new();
    for effect in owed(session) {
        if let Effect::CallModel { key, .. } = effect {
            all.push(("it cost everything", Input::Replied { key, reply: of(Vec::new()) }));
            let calls = vec![call("read", json!({})), call("nothing", json!({}))];
            all.push(("it cost everything and calls", Input::Replied { key, reply: of(calls) }));
            all.push(("a reply of nonsense", Input::Replied { key, reply: nonsense() }));
            let nested = Reply { reasoning: Some(deep(NESTED)), ..Reply::default() };
            all.push(("nested reasoning", Input::Replied { key, reply: nested }));
            let calls = vec![call("read", deep(NESTED))];
            let nested = Reply { calls, ..Reply::default() };
            all.push(("nested arguments", Input::Replied { key, reply: nested }));
        }
    }
    all
}

/// What is too big to be tried everywhere: for the first obligation of each kind.
pub(crate) fn huge(session: &Session) -> Vec<Bad> {
    let long = "x".repeat(MEGABYTE);
    let mut all = vec![
        ("a long message", Input::Said(message(&long))),
        ("a long sender", Input::Said(Message { sender: long.clone(), ..message("x") })),
        ("a long name", Input::Said(Message { to: To::Name(long.clone()), ..message("x") })),
        ("a long id", Input::Said(Message { external_id: Some(long.clone()), ..message("x") })),
        ("a long reason", commanded(Command::Cancel { agent: AgentId::MAIN, why: long.clone() })),
        ("a long result", commanded(Command::Done { text: long.clone() })),
        ("a long name", Input::Commanded { by: Who::Person(long.clone()), command: Command::Back }),
    ];
    if let Some(input) = session.waiting().next() {
        all.push(("a long edit", Input::Edited { input, text: long.clone() }));
    }
    for ask in session.asks().map(|ask| ask.id) {
        let arguments = Some(json!({ "path": long, "command": long }));
        let allow = Verdict::Allow(Allow { arguments, ..Allow::default() });
        let nested = Verdict::Allow(Allow { arguments: Some(deep(10_000)), ..Allow::default() });
        let deny = Verdict::Deny { message: Some(long.clone()) };
        for verdict in [allow, nested, deny, Verdict::Answer { text: long.clone() }] {
            all.push((
                "a long verdict",
                Input::Answered { ask, verdict, by: person(), digest: None },
            ));
        }
    }
    for effect in owed(session) {
        match effect {
            Effect::CallModel { key, .. } => all.extend(huge_replies(key, &long)),
            Effect::RunTool { key, .. } => {
                let output = Output { handle: Some(long.clone()), ..Output::ok(long.clone()) };
                all.push(("a long output", Input::Ran { key, output }));
                let wonder = wonder(long.clone());
                all.push(("a long question", Input::Wondered { key, wonder }));
            }
            Effect::Prepare { key, .. } => {
                all.push((
                    "a long cause",
                    Input::Prepared { key, error: Some(long.clone()), ready: Ready::default() },
                ));
            }
            Effect::Deliver { key, .. } => {
                all.push(("a long cause", Input::Delivered { key, error: Some(long.clone()) }));
            }
            Effect::Summon { key } => {
                let found = Found::Not(long.clone());
                all.push(("a long cause", Input::Summoned { key, found }));
            }
            Effect::Relay { .. } => {}
        }
    }
    all
}

fn huge_replies(key: Key, long: &str) -> Vec<Bad> {
    let calls = |calls| Input::Replied { key, reply: Reply { calls, ..Reply::default() } };
    let many = (0..10_000).map(|_| call("read", json!({}))).collect();
    let failure = Failure {
        kind: FailureKind::Server,
        status: None,
        retry_after_ms: None,
        message: long.into(),
    };
    let spawn = json!({ "agent": "reader", "label": long, "message": long, "model": long });
    vec![
        ("10,000 calls", calls(many)),
        ("arguments 10,000 deep", calls(vec![call("read", deep(10_000))])),
        ("a name of a megabyte", calls(vec![call(long, json!({}))])),
        ("arguments of a megabyte", calls(vec![call("read", json!({ "path": long }))])),
        ("a label of a megabyte", calls(vec![call("spawn_agent", spawn)])),
        (
            "an unknown agent of a megabyte",
            calls(vec![call("use_agent", json!({ "agent": long }))]),
        ),
        ("a failure of a megabyte", Input::Failed { key, failure }),
    ]
}

/// A reply of fifty megabytes, for the first model call owed.
pub(crate) fn fifty_megabytes(session: &Session) -> Option<Bad> {
    owed(session).into_iter().find_map(|effect| match effect {
        Effect::CallModel { key, .. } => {
            let reply = Reply { text: "x".repeat(50 * MEGABYTE), ..Reply::default() };
            Some(("a reply of 50 MB", Input::Replied { key, reply }))
        }
        Effect::RunTool { .. }
        | Effect::Prepare { .. }
        | Effect::Deliver { .. }
        | Effect::Relay { .. }
        | Effect::Summon { .. } => None,
    })
}

/// Worlds that are none: of another session, without anything, with everything at its end.
fn configs(session: &Session) -> Vec<Bad> {
    let config = |key: &str, limits: TreeLimits| Config {
        offers: Vec::new(),
        session: key.into(),
        workspace: String::new(),
        main: Definition { name: String::new(), ..definition() },
        model: String::new(),
        audience: locum_kernel::Audience::default(),
        mode: locum_kernel::PolicyMode::Plan,
        rules: Vec::new(),
        limits,
        tools: Vec::new(),
        definitions: vec![definition(), definition()],
        models: std::collections::BTreeMap::new(),
    };
    let nothing = TreeLimits {
        slots: 0,
        depth_max: 0,
        width_max: 0,
        spawns_max: 0,
        turns_max: 0,
        tokens_max: Some(0),
        micro_usd_max: Some(0),
        active_ms_max: Some(0),
    };
    let most = TreeLimits {
        slots: u32::MAX,
        depth_max: u32::MAX,
        turns_max: u32::MAX,
        tokens_max: Some(u64::MAX),
        micro_usd_max: Some(u64::MAX),
        active_ms_max: Some(u64::MAX),
        ..nothing.clone()
    };
    let make = |key: &str, limits| Input::Configured(Box::new(config(key, limits)));
    vec![
        ("another session", make("another", nothing.clone())),
        ("a world without anything", make(session.key(), nothing)),
        ("a world without end", make(session.key(), most)),
    ]
}

fn definition() -> Definition {
    Definition {
        output: None,
        name: "twice".into(),
        kind: Kind::Agent,
        about: String::new(),
        instructions: String::new(),
        model: Some(String::new()),
        ceiling: Rights::only(&[]),
        uses: Rights::all(),
        limits: locum_kernel::AgentLimits::default(),
        parallel_reads: true,
        setup: true,
        ..Definition::new("", Kind::Agent)
    }
}
