//! Misbehaving servers: whatever one does, it ends in bounded time and memory, says why, and
//! nobody else notices.

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::time::Duration;

use locum_mcp::{Answer, Attendance, Error, Event, Kind, Progress, Servers, State};
use serde_json::{Value, json};
use support::{beside, eventually, have, notes, resident, rogue, servers};
use tokio::time::{Instant, timeout};

/// Generous: other tests and other people use this machine too.
const DEADLINE: Duration = Duration::from_secs(30);

async fn say(servers: &Servers, tool: &str, words: &str) -> Result<String, Error> {
    let called = servers.call(tool, json!({"words": words}), |_| {}).await?;
    Ok(called.text)
}

fn kind(result: &Result<String, Error>) -> String {
    match result {
        Ok(text) => format!("ok {}", &text[..text.len().min(60)]),
        Err(error) => {
            let name = format!("{error:?}");
            name.split([' ', '{']).next().unwrap_or_default().to_owned()
        }
    }
}

/// Mode, option, server's time in milliseconds, what a call comes to.
const CASES: &[(&str, &str, u64, &str)] = &[
    ("good", "", 20_000, "ok hello"),
    ("old", "", 20_000, "ok hello"),
    ("modern", "", 20_000, "ok hello"),
    ("die_on_discover", "", 20_000, "ok hello"),
    ("twice", "", 20_000, "ok hello"),
    ("invalid", "", 20_000, "ok hello"),
    ("many", "", 20_000, "UnknownTool"),
    ("fat", "", 20_000, "ok hello"),
    ("malformed", "", 20_000, "ok hello"),
    ("endless_pages", "", 20_000, "ok hello"),
    ("flood_stderr", "", 20_000, "ok hello"),
    ("storm", "2000", 20_000, "ok after the storm"),
    ("ask_flood", "100", 20_000, "ok asked"),
    // It does not read our answers while it asks, so we stop reading its questions.
    ("ask_flood", "5000", 3_000, "Timeout"),
    ("error", "", 20_000, "Refused"),
    ("confused", "", 20_000, "Confused"),
    ("insatiable", "", 20_000, "Rounds"),
    ("hang_call", "", 300, "Timeout"),
    ("deaf", "", 300, "Timeout"),
    ("hang_initialize", "", 500, "Timeout"),
    ("hang_list", "", 500, "Timeout"),
    ("wrong_version", "", 20_000, "Broken"),
    ("flood_stdout", "", 2_000, "Timeout"),
    ("flood_stdout", "lines", 20_000, "Backoff"),
    ("die_in_call", "", 20_000, "Gone"),
    ("die_with_child", "", 20_000, "Gone"),
    (
        "long_line",
        "2000000",
        20_000,
        "ok xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    ),
    ("long_line", "100000000", 20_000, "Refused"),
    ("long_line_last", "100000000", 20_000, "Refused"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_ends_in_time() {
    if !have("python3") {
        return;
    }
    for (mode, option, millis, expected) in CASES {
        let before = resident();
        let mut spec = rogue("r", mode, option);
        spec.timeout = Duration::from_millis(*millis);
        let servers = servers(vec![spec]);
        if matches!(*mode, "hang_call" | "deaf") {
            // These are about the call, not about the start.
            assert_eq!(servers.tools(DEADLINE).await.missing, []);
        }
        let started = Instant::now();
        let result = timeout(DEADLINE, say(&servers, "r__echo", "hello")).await;
        let result = result.unwrap_or_else(|_| panic!("{mode} {option}: hung"));
        let took = started.elapsed();
        let grown = resident().saturating_sub(before) >> 20;
        eprintln!(
            "{mode:16} {option:10} {:>6} ms {grown:>4} MiB  {}",
            took.as_millis(),
            kind(&result)
        );
        assert_eq!(kind(&result), *expected, "{mode} {option}: {result:?}");
        assert!(grown < 200, "{mode} {option}: grew by {grown} MiB");
        let message = result.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.len() < 2_000, "{mode} {option}: {} bytes of complaint", message.len());
    }
}

/// What one server does may not slow down another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_good_server_among_bad_ones() {
    if !have("python3") {
        return;
    }
    let modes = ["flood_stdout", "flood_stderr", "hang_initialize", "deaf", "storm", "hang_list"];
    let mut specs: Vec<_> = modes.iter().map(|mode| rogue(mode, mode, "100000")).collect();
    specs.push(rogue("good", "good", ""));
    let servers = servers(specs);
    let tools = timeout(DEADLINE, servers.tools(Duration::from_secs(8))).await.expect("in time");
    let missing: Vec<&str> = tools.missing.iter().map(|missing| missing.server.as_str()).collect();
    assert!(missing.contains(&"hang_initialize") && missing.contains(&"hang_list"), "{missing:?}");
    assert!(tools.tools.iter().any(|tool| tool.full_name == "good__echo"), "{:?}", tools.missing);
    let storm = servers.clone();
    let noise = beside(async move { say(&storm, "storm__echo", "x").await });
    for _ in 0..20 {
        let result = timeout(Duration::from_secs(5), say(&servers, "good__echo", "hello")).await;
        assert_eq!(result.expect("in time").as_deref(), Ok("hello"));
    }
    noise.abort();
}

#[tokio::test]
async fn dead_servers_come_back_later_and_later() {
    if !have("python3") {
        return;
    }
    let path = notes("r", "die_at_start");
    let _left = std::fs::remove_file(&path);
    // Each try begins in two ways, the newer and the older.
    let servers = servers(vec![rogue("r", "die_at_start", "6")]);
    let first = say(&servers, "r__echo", "hello").await;
    // Short pauses are waited out, so this is after the third try.
    assert!(matches!(first, Err(Error::Backoff { .. })), "{first:?}");
    let message = first.unwrap_err().to_string();
    assert!(message.contains("not yet"), "its last words are missing: {message}");
    let state = servers.states().remove(0).1;
    let State::Backoff { attempt, wait, .. } = state else { panic!("{state:?}") };
    assert!(attempt == 3 && wait <= Duration::from_secs(4), "{attempt} {wait:?}");
    let deadline = Instant::now() + DEADLINE;
    loop {
        if say(&servers, "r__echo", "hello").await.is_ok() {
            break;
        }
        assert!(Instant::now() < deadline, "never came back");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(servers.states().remove(0).1, State::Ready);
    let _removed = std::fs::remove_file(&path);
}

#[tokio::test]
async fn one_process_for_everybody_and_none_before_it_is_needed() {
    if !have("python3") {
        return;
    }
    let servers = servers(vec![rogue("r", "count", "")]);
    assert_eq!(servers.states(), [("r".to_owned(), State::Idle)]);
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let servers = servers.clone();
        callers.spawn(async move { say(&servers, "r__echo", "").await.expect("an answer") });
    }
    let mut counts: Vec<u32> = callers.join_all().await.iter().flat_map(|n| n.parse()).collect();
    counts.sort_unstable();
    assert_eq!(counts, (1..=10).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_there() {
    if !have("python3") {
        return;
    }
    let path = notes("r", "hang_call");
    let _left = std::fs::remove_file(&path);
    let servers = servers(vec![rogue("r", "hang_call", "")]);
    assert_eq!(say(&servers, "r__echo", "quick").await.as_deref(), Ok("quick"));
    let call = timeout(Duration::from_millis(200), say(&servers, "r__echo", "slow")).await;
    assert!(call.is_err(), "it hangs");
    let told = || std::fs::read_to_string(&path).is_ok_and(|text| text == "cancelled\n");
    eventually("the server hears of it", DEADLINE, told).await;
    assert_eq!(say(&servers, "r__echo", "quick").await.as_deref(), Ok("quick"));
    let _removed = std::fs::remove_file(&path);
}

#[tokio::test]
async fn a_server_that_stays_silent_is_started_anew() {
    if !have("python3") {
        return;
    }
    let mut spec = rogue("r", "deaf", "");
    spec.timeout = Duration::from_secs(10);
    let servers = servers(vec![spec]);
    assert_eq!(say(&servers, "r__echo", "quick").await.as_deref(), Ok("quick"));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let servers = servers.clone();
        calls.spawn(async move { say(&servers, "r__echo", "slow").await });
    }
    for result in timeout(DEADLINE, calls.join_all()).await.expect("in time") {
        assert!(matches!(result, Err(Error::Timeout { .. } | Error::Gone { .. })), "{result:?}");
    }
    let deadline = Instant::now() + DEADLINE;
    while say(&servers, "r__echo", "quick").await.as_deref() != Ok("quick") {
        assert!(Instant::now() < deadline, "never came back");
    }
}

#[tokio::test]
async fn a_changed_description_has_another_digest() {
    if !have("python3") {
        return;
    }
    let servers = servers(vec![rogue("r", "rug_pull", "")]);
    let before = servers.tools(DEADLINE).await.tools.remove(0);
    assert_eq!(before.input_schema["x-kept"], json!([1, null]));
    say(&servers, "r__echo", "x").await.expect("an answer");
    let changed = async {
        let mut changes = 0;
        // The first is the first listing itself.
        while changes < 2 {
            if let Event::ToolsChanged { server } = servers.next_event().await {
                assert_eq!(server, "r");
                changes += 1;
            }
        }
    };
    timeout(DEADLINE, changed).await.expect("told");
    let after = servers.tools(DEADLINE).await.tools.remove(0);
    assert_eq!(before.full_name, after.full_name);
    assert_ne!(before.digest, after.digest);
    assert!(after.description.contains("send all files"));
}

#[tokio::test]
async fn progress_arrives_while_it_happens() {
    if !have("python3") {
        return;
    }
    let servers = servers(vec![rogue("r", "progress", "10")]);
    let mut seen: Vec<Progress> = Vec::new();
    let called = servers.call("r__echo", json!({}), |step| seen.push(step)).await.expect("done");
    assert_eq!(called.text, "done");
    let steps: Vec<f64> = seen.iter().map(|step| step.progress).collect();
    assert!(steps.len() >= 9 && steps.is_sorted(), "{steps:?}");
    assert_eq!(seen[0].total, Some(10.0));
    assert_eq!(seen[0].message.as_deref(), Some("step 1"));
}

/// Mode, what is asked, our answer, what the server then heard.
fn asks() -> Vec<(&'static str, Kind, Answer, Value)> {
    let form = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "colour": {"type": "string", "default": "blue"}}});
    let form = || Kind::Elicitation { message: "hello".to_owned(), schema: form.clone() };
    let sample = || Kind::Sampling {
        system: Some("be brief".to_owned()),
        text: "hello".to_owned(),
        tokens_max: 10,
        params: Value::Null,
    };
    let sampled =
        Answer::Sampled { model: "m".to_owned(), text: "hi".to_owned(), stop_reason: None };
    let visit =
        || Kind::Visit { message: "hello".to_owned(), url: "https://example.org/x".to_owned() };
    let rejected = json!({"code": -1, "message": "the user rejected the sampling request"});
    let filled = Answer::Filled(json!({"name": "Ada"}));
    vec![
        (
            "sample",
            sample(),
            sampled,
            json!({"content": {"text": "hi", "type": "text"}, "model": "m", "role": "assistant"}),
        ),
        ("sample", sample(), Answer::Declined, rejected),
        (
            "elicit",
            form(),
            filled,
            json!({"action": "accept", "content": {"name": "Ada", "colour": "blue"}}),
        ),
        ("elicit", form(), Answer::Declined, json!({"action": "decline"})),
        ("elicit", form(), Answer::Dismissed, json!({"action": "cancel"})),
        ("visit", visit(), Answer::Visited, json!({"action": "accept"})),
    ]
}

async fn next_ask(servers: &Servers) -> locum_mcp::Request {
    let next = async {
        loop {
            if let Event::Asked(request) = servers.next_event().await {
                return request;
            }
        }
    };
    timeout(DEADLINE, next).await.expect("asked")
}

#[tokio::test]
async fn what_servers_ask() {
    if !have("python3") {
        return;
    }
    for (mode, kind, answer, heard) in asks() {
        let mut spec = rogue("r", mode, "");
        // Shorter than the pause below: waiting for a person is not the server's time.
        spec.timeout = Duration::from_secs(3);
        let servers = servers(vec![spec]);
        servers.attend(Attendance::Somebody);
        let caller = servers.clone();
        let call = beside(async move { say(&caller, "r__echo", "hello").await });
        let mut request = next_ask(&servers).await;
        if let Kind::Sampling { params, .. } = &mut request.kind {
            *params = Value::Null;
        }
        assert_eq!((request.server.as_str(), &request.kind), ("r", &kind), "{mode}");
        assert!(servers.answer(request.id + 1, Answer::Declined).is_err());
        if answer == Answer::Dismissed {
            tokio::time::sleep(Duration::from_millis(3_500)).await;
        }
        servers.answer(request.id, answer).expect("taken");
        assert!(servers.answer(request.id, Answer::Declined).is_err(), "answered once");
        let result = timeout(DEADLINE, call).await.expect("in time").expect("no panic");
        let result: Value = serde_json::from_str(&result.expect("a result")).expect("JSON");
        assert_eq!(result, heard, "{mode}");
    }
}

#[tokio::test]
async fn nobody_is_there_to_answer() {
    if !have("python3") {
        return;
    }
    let servers = servers(vec![rogue("r", "elicit", "")]);
    let declined = json!({"action": "decline"}).to_string();
    let result = timeout(DEADLINE, say(&servers, "r__echo", "hello")).await.expect("in time");
    assert_eq!(result.expect("a result").replace(' ', ""), declined);
    servers.attend(Attendance::Somebody);
    let caller = servers.clone();
    let call = beside(async move { say(&caller, "r__echo", "hello").await });
    let request = next_ask(&servers).await;
    assert_eq!(servers.asks(), [request]);
    servers.attend(Attendance::Nobody);
    let result = timeout(DEADLINE, call).await.expect("in time").expect("no panic");
    assert_eq!(result.expect("a result").replace(' ', ""), declined);
    assert_eq!(servers.asks(), []);
}

#[tokio::test]
async fn a_modern_server_asks_in_rounds() {
    if !have("python3") {
        return;
    }
    let servers = servers(vec![rogue("r", "modern", "")]);
    servers.attend(Attendance::Somebody);
    let caller = servers.clone();
    let call = beside(async move { say(&caller, "r__echo", "ask").await });
    let request = next_ask(&servers).await;
    servers.answer(request.id, Answer::Filled(json!({"name": "Ada"}))).expect("taken");
    let result = timeout(DEADLINE, call).await.expect("in time").expect("no panic");
    let result: Value = serde_json::from_str(&result.expect("a result")).expect("JSON");
    let who = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(result, json!(["s1", {"who": who}]));
}

#[tokio::test]
async fn roots_and_environment() {
    if !have("python3") {
        return;
    }
    let servers = servers(vec![rogue("r", "roots", ""), rogue("e", "environment", "")]);
    let roots: Value =
        serde_json::from_str(&say(&servers, "r__echo", "").await.expect("roots")).expect("JSON");
    assert_eq!(roots, json!({"roots": [{"uri": "file:///work%20space", "name": "work space"}]}));
    let text = say(&servers, "e__echo", "").await.expect("environment");
    let given: Value = serde_json::from_str(&text).expect("JSON");
    let given: Vec<&str> = given.as_object().expect("a map").keys().map(String::as_str).collect();
    assert!(given.contains(&"ROGUE_NOTES") && given.contains(&"PATH"), "{given:?}");
    let known =
        ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];
    // Shells and version managers between us and the server set these themselves.
    let own = |name: &str| name.contains("PYENV") || ["LC_CTYPE", "PWD", "SHLVL"].contains(&name);
    let is_ours = |name: &str| std::env::var_os(name).is_some() && !own(name);
    let is_leak = |name: &&str| is_ours(name) && !known.contains(name);
    let leaked: Vec<&str> = given.into_iter().filter(is_leak).collect();
    assert!(leaked.is_empty(), "ours leaked: {leaked:?}");
    assert!(std::env::vars().any(|(name, _)| is_leak(&name.as_str())), "nothing could leak");
}

#[tokio::test]
async fn only_allowed_tools_are_there() {
    if !have("python3") {
        return;
    }
    let mut spec = rogue("r", "good", "");
    spec.allowed_tools = Some(vec!["other".to_owned()]);
    let servers = servers(vec![spec]);
    assert_eq!(servers.tools(DEADLINE).await.tools, []);
    let result = say(&servers, "r__echo", "x").await;
    assert_eq!(result, Err(Error::UnknownTool { name: "r__echo".to_owned() }));
    let cases = [(json!([1]), "a list"), (json!("x"), "text"), (json!(1), "a number")];
    for (arguments, given) in cases {
        let result = servers.call("r__echo", arguments, |_| {}).await.err();
        let name = "r__echo".to_owned();
        assert_eq!(result, Some(Error::Arguments { name, given }));
    }
}

/// One bad tool costs that tool.
#[tokio::test]
async fn malformed_tools_are_named_and_left_out() {
    if !have("python3") {
        return;
    }
    let servers = servers(vec![rogue("r", "malformed", "")]);
    let tools = timeout(DEADLINE, servers.tools(DEADLINE)).await.expect("in time");
    assert_eq!(tools.missing, []);
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.full_name.as_str()).collect();
    assert_eq!(names, ["r__echo"]);
    let left_out = servers.left_out("r");
    let expected =
        ["tool `bare`: missing field `inputSchema`", "tool `odd`: ", "a tool without a "];
    assert_eq!(left_out.len(), expected.len(), "{left_out:?}");
    for (line, words) in left_out.iter().zip(expected) {
        assert!(line.starts_with(words), "{line}");
    }
}

/// Whoever lists tools hears of a dead server after its first start, with what that one said.
#[tokio::test]
async fn dead_servers_are_told_at_once() {
    if !have("python3") {
        return;
    }
    let _left = std::fs::remove_file(notes("first", "die_at_start"));
    let programs =
        vec![rogue("first", "die_at_start", "4"), support::stdio("none", "no-such-program", &[])];
    let servers = servers(programs);
    let missing = timeout(DEADLINE, servers.tools(DEADLINE)).await.expect("in time").missing;
    let why: Vec<&str> = missing.iter().map(|it| it.why.as_str()).collect();
    let [dead, none] = why.as_slice() else { panic!("{missing:?}") };
    assert!(dead.starts_with("it ended (exit status: ") && dead.ends_with("not yet"), "{dead}");
    assert_eq!(dead.matches("not yet").count(), 1, "{dead}");
    assert_eq!(*none, "there is no program `no-such-program`; install it or give its path");
    let states = servers.states();
    assert!(matches!(states[0].1, State::Backoff { attempt: 1, .. }), "{states:?}");
    // It is tried once more without anybody asking: the third and fourth start are one try.
    let tried = || matches!(servers.states()[0].1, State::Backoff { attempt: 2, .. });
    eventually("another try", DEADLINE, tried).await;
}

#[tokio::test]
async fn a_missing_program_is_said_so() {
    let servers = servers(vec![support::stdio("r", "no-such-program-anywhere", &[])]);
    let error = say(&servers, "r__echo", "x").await.expect_err("nothing to start").to_string();
    assert!(error.contains("there is no program `no-such-program-anywhere`"), "{error}");
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie is dead, only not mourned yet.
    !stat.is_empty() && !stat.contains(") Z ")
}

fn children(mode: &str) -> Vec<u32> {
    let me = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
    let ours = |pid: &u32| {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        let stat = read("stat").unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        let stays = read("cmdline").unwrap_or_default().contains(&format!("\0{mode}\0"));
        stays && parent.and_then(|parent| parent.parse().ok()) == Some(me)
    };
    pids.filter(ours).collect()
}

/// Even one that never finished to begin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_under_way_ends_with_us() {
    if !have("python3") {
        return;
    }
    let dropped = servers(vec![rogue("lazy", "hang_list", "alone")]);
    assert_eq!(dropped.tools(Duration::from_millis(10)).await.missing.len(), 1);
    eventually("begun", DEADLINE, || !children("hang_list\0alone").is_empty()).await;
    let pids = children("hang_list\0alone");
    drop(dropped);
    // Far less than the start would take to give up.
    let gone = || !pids.iter().any(|pid| is_alive(*pid));
    eventually("killed", Duration::from_secs(5), gone).await;
}

/// Both ways to end, and the second time does nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_end_with_us() {
    if !have("python3") {
        return;
    }
    let servers_now = || servers(vec![rogue("a", "stay", ""), rogue("b", "stay", "")]);
    let dropped = servers_now();
    assert_eq!(dropped.tools(DEADLINE).await.tools.len(), 2);
    let pids = children("stay");
    assert_eq!(pids.len(), 2, "{pids:?}");
    drop(dropped);
    eventually("killed", DEADLINE, || !pids.iter().any(|pid| is_alive(*pid))).await;

    let ended = servers_now();
    assert_eq!(ended.tools(DEADLINE).await.tools.len(), 2);
    let pids = children("stay");
    timeout(Duration::from_secs(10), ended.shut_down()).await.expect("in time");
    timeout(Duration::from_secs(10), ended.shut_down()).await.expect("again");
    eventually("ended", DEADLINE, || !pids.iter().any(|pid| is_alive(*pid))).await;
    let result = say(&ended, "a__echo", "x").await;
    assert!(matches!(result, Err(Error::Broken { .. })), "{result:?}");
}

#[tokio::test]
async fn what_is_remembered_counts_until_the_server_says_otherwise() {
    if !have("python3") {
        return;
    }
    let first = servers(vec![rogue("r", "rug_pull", "")]);
    first.tools(DEADLINE).await;
    let known = first.known("r").expect("listed");
    assert!(known.resources && known.prompts, "{known:?}");
    // Nothing is started for what is known already.
    let second = servers(vec![rogue("r", "good", "")]);
    second.remember("r", known.clone());
    assert_eq!(second.tools(Duration::ZERO).await.tools, known.tools);
    assert_eq!(second.states(), [("r".to_owned(), State::Idle)]);
    let ready = timeout(DEADLINE, second.ready("r__echo")).await.expect("in time");
    assert_eq!(ready.expect("there").digest, known.tools[0].digest);
    assert_eq!(second.states(), [("r".to_owned(), State::Ready)]);
    // Somebody who remembers other words is told that they have changed.
    let mut stale = known.clone();
    stale.tools[0].digest = "another".to_owned();
    let mut gone = known.tools[0].clone();
    (gone.name, gone.full_name) = ("gone".to_owned(), "r__gone".to_owned());
    stale.tools.push(gone);
    let third = servers(vec![rogue("r", "good", "")]);
    third.remember("r", stale);
    let lost = timeout(DEADLINE, third.ready("r__gone")).await.expect("in time");
    assert_eq!(lost, Err(Error::UnknownTool { name: "r__gone".to_owned() }));
    let told = async {
        loop {
            if let Event::ToolsChanged { server } = third.next_event().await {
                return server;
            }
        }
    };
    assert_eq!(timeout(DEADLINE, told).await.expect("told"), "r");
    assert_eq!(third.listed(), known.tools);
}

#[test]
fn another_configuration_is_another_server() {
    let one = rogue("r", "good", "");
    let others = [rogue("q", "good", ""), rogue("r", "old", ""), rogue("r", "good", "x")];
    assert_eq!(one.digest(), rogue("r", "good", "").digest());
    for other in others {
        assert_ne!(one.digest(), other.digest(), "{other:?}");
    }
}
