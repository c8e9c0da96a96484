//! What a script answers, told as conversations: what is said, what comes back.

use std::path::Path;
use std::sync::Arc;

use locum_kernel::{AgentId, Bootstrap, CallId, Output, Request, Seq};

use super::*;
use crate::clock::System;
use crate::line::AgentRef;
use crate::live::{Feed, PieceKind, Told};

/// One agent talking with its script.
struct Talk {
    script: Script,
    definition: &'static str,
    label: &'static str,
    lines: Vec<Arc<Line>>,
    replies: u32,
    failures: u32,
}

impl Talk {
    fn new(yaml: &str) -> Talk {
        let script = Script::parse(Path::new("test.yaml"), yaml).unwrap();
        let (definition, label) = ("main", "main");
        Talk { script, definition, label, lines: Vec::new(), replies: 0, failures: 0 }
    }

    fn push(&mut self, body: Body) {
        let seq = Seq(self.lines.len() as u64);
        self.lines.push(Arc::new(Line { seq, body }));
    }

    fn person(&mut self, text: &str) {
        let source = Source::Person { channel: "test".into(), sender: "me".into() };
        let note = Note::new(source, text.into());
        self.push(Body::Told(vec![note]));
    }

    fn tool(&mut self, text: &str) {
        let call = CallId { turn: Seq(0), index: 0 };
        self.push(Body::Results(vec![(call, Output::ok(text))]));
    }

    fn asked(&self) -> Asked {
        let request = Request {
            tuning: locum_kernel::Tuning::default(),
            output: None,
            agent: AgentId::MAIN,
            model: "script:test.yaml".into(),
            purpose: Purpose::Answer,
            bootstrap: Bootstrap::Full,
            instructions: String::new(),
            catalogue: Vec::new(),
            tools: Vec::new(),
            lines: self.lines.iter().cloned().collect(),
            now: None,
        };
        Asked {
            definition: self.definition.to_owned(),
            label: self.label.to_owned(),
            replies: self.replies,
            failures: self.failures,
            tries: 0,
            request,
        }
    }

    fn ask(&self) -> Answer {
        self.script.answer(&self.asked())
    }

    fn outcome(&self) -> Result<Reply, Failure> {
        self.script.outcome(&self.ask().act)
    }

    /// The next answer as text, counted as the journal would.
    fn hear(&mut self) -> String {
        match self.outcome() {
            Ok(reply) => {
                let calls =
                    reply.calls.iter().map(|call| format!("{}{}", call.name, call.arguments));
                let text = [reply.text.clone()].into_iter().chain(calls).collect::<Vec<_>>();
                self.replies += 1;
                self.push(Body::Replied(reply));
                text.join(" ").trim().to_owned()
            }
            Err(failure) => {
                self.failures += 1;
                failure.to_string()
            }
        }
    }
}

#[test]
fn conditions_are_tried_in_order_and_the_last_step_may_repeat() {
    let yaml = r#"
agents:
  main:
    - say: "Which version?"
    - when: "3\\.13"
      calls: [{complete: {result: "found 3 APIs"}}]
    - calls: [{complete: {result: "none"}}]
      repeat: true
"#;
    let mut talk = Talk::new(yaml);
    talk.person("find APIs");
    assert_eq!(talk.hear(), "Which version?");
    talk.person("3.12");
    assert_eq!(talk.hear(), r#"complete{"result":"none"}"#);
    talk.person("3.13");
    assert_eq!(talk.hear(), r#"complete{"result":"none"}"#, "a step passed over is behind");

    let mut talk = Talk::new(yaml);
    talk.person("find APIs");
    talk.hear();
    talk.person("python 3.13");
    assert_eq!(talk.hear(), r#"complete{"result":"found 3 APIs"}"#);
    talk.tool("x");
    assert_eq!(talk.hear(), r#"complete{"result":"none"}"#);
}

#[test]
fn faults_happen_as_often_as_they_say_and_then_it_goes_on() {
    let yaml = r#"
agents:
  main:
    - error: {status: 429, retry_after_s: 1.5, times: 2}
    - say: "first"
    - say: "a long text that is cut"
      cut_after_chunks: 1
    - hang_ms: 50
    - error: {status: 529}
      say: "second"
    - say: "third"
      hang_ms: 70
"#;
    let mut talk = Talk::new(yaml);
    talk.person("go");
    let failed = talk.outcome().unwrap_err();
    assert_eq!((failed.kind, failed.retry_after_ms), (FailureKind::RateLimited, Some(1_500)));
    assert_eq!(talk.hear(), "rate limit (429): scripted");
    assert_eq!(talk.hear(), "rate limit (429): scripted");
    assert_eq!(talk.hear(), "first");
    talk.person("more");
    assert_eq!(talk.hear(), r#"stream cut: scripted, after 1 chunks: "a long text ""#);
    assert_eq!(talk.ask().after_ms, 50);
    assert_eq!(talk.hear(), "no answer in time: scripted");
    assert_eq!(talk.hear(), "provider overloaded (529): scripted");
    assert_eq!(talk.hear(), "second");
    assert_eq!(talk.ask().after_ms, 70);
    assert_eq!(talk.hear(), "third");
    assert_eq!(talk.hear(), ENDED);
}

#[test]
fn asking_twice_without_a_record_gives_the_same_answer() {
    let mut talk = Talk::new("agents: {main: [{say: one}, {say: two}]}");
    talk.person("go");
    assert_eq!(talk.ask(), talk.ask());
    talk.hear();
    assert_eq!(talk.outcome().unwrap().text, "two");
}

#[test]
fn words_are_filled_in_everywhere_once() {
    let yaml = r#"
agents:
  main:
    - say: "{{user}}, {{ last }}, {{other}}, {{"
      calls: [{use_agent: {agent: x, message: "do {{last}}", list: ["{{user}}"], n: 1}}]
    - malformed_call: '{"path": "a'
"#;
    let mut talk = Talk::new(yaml);
    talk.person("hello {{last}}");
    talk.tool("42");
    let calls = r#"use_agent{"agent":"x","list":["hello {{last}}"],"message":"do 42","n":1}"#;
    assert_eq!(talk.hear(), format!("hello {{{{last}}}}, 42, {{{{other}}}}, {{{{ {calls}"));
    assert_eq!(talk.hear(), r#"read"{\"path\": \"a""#);
}

#[test]
fn an_agent_is_found_by_definition_then_label_then_anybody() {
    let yaml = "agents: {writer: [{say: w}], tests: [{say: t}], '*': [{say: any}]}";
    let cases = [
        ("writer", "tests", "w"),
        ("builder", "tests", "t"),
        ("builder", "writer", "w"),
        ("builder", "other", "any"),
    ];
    for (definition, label, text) in cases {
        let mut talk = Talk { definition, label, ..Talk::new(yaml) };
        talk.person("go");
        assert_eq!(talk.hear(), text, "{definition} {label}");
    }
}

#[tokio::test]
async fn reasoning_is_heard_first_and_kept_with_the_reply() {
    let yaml =
        "{defaults: {chunk: 4}, agents: {main: [{reasoning: hm well, say: 'yes, {{last}}'}]}}";
    let mut talk = Talk::new(yaml);
    talk.person("go");
    let feed = Feed::default();
    let mut reader = feed.subscribe();
    let live = feed.live(Seq(0), AgentRef::nobody());
    let provider = Scripted::new(talk.script.clone(), Arc::new(System));
    let reply = provider.answer(talk.asked(), live).await.unwrap();
    assert_eq!((reply.reasoning, &*reply.text), (Some(json!({"text": "hm well"})), "yes, go"));
    let mut heard = Vec::new();
    while !reader.is_idle() {
        let Some(Told::Piece { piece, .. }) = reader.next().await else { continue };
        heard.push((piece.kind, piece.text.clone()));
    }
    let expected = [
        (PieceKind::Thinking, "hm w"),
        (PieceKind::Thinking, "ell"),
        (PieceKind::Text, "yes,"),
        (PieceKind::Text, " go"),
    ];
    assert_eq!(heard, expected.map(|(kind, text)| (kind, text.to_owned())));
}

#[test]
fn replies_out_of_sight_still_count() {
    let mut talk = Talk::new("agents: {main: [{say: one}, {say: two}, {say: three}]}");
    talk.push(Body::Summary("so far".into()));
    talk.replies = 2;
    assert_eq!(talk.hear(), "three");
}

#[test]
fn somebody_elses_conversation_knows_only_its_newest_failures() {
    let yaml = r#"
defaults: {chunk: 4}
agents:
  main:
    - error: {status: 429, times: 2}
    - reasoning: "about {{last}}"
      say: "first"
    - reasoning: "12345678"
      say: "half of {{last}}"
      cut_after_chunks: 3
    - error: {status: 500}
      repeat: true
      when: "never"
    - say: "again {{user}}"
      repeat: true
"#;
    let script = Script::parse(Path::new("test.yaml"), yaml).unwrap();
    let play =
        |turns: &[Turn<'_>], failures| script.play(&["main"], turns, Failed::Here(failures)).act;
    let says = |act: Act| script.outcome(&act).map_or_else(|it| it.to_string(), |it| it.text);
    let begun = [Turn::User("go")];
    assert_eq!(says(play(&begun, 1)), "rate limit (429): scripted");
    let Act::Speak(words) = play(&begun, 2) else { panic!("two failures are all there are") };
    assert_eq!((&*words.reasoning, &*words.say), ("about go", "first"));
    let more = [Turn::User("go"), Turn::Replied, Turn::Heard("x"), Turn::Heard("result")];
    assert_eq!(says(play(&more, 0)), r#"stream cut: scripted, after 3 chunks: "half""#);
    assert_eq!(says(play(&more, 1)), "again go");
    let end = [&more[..], &[Turn::Replied, Turn::User("on")]].concat();
    assert_eq!(says(play(&end, 0)), "again on");
}

#[test]
fn mistakes_are_named_with_their_line() {
    let cases = [
        ("agents:\n  main:\n    - say: [1\n", "test.yaml:3: "),
        ("agents:\n  main:\n    - sya: hi\n", "test.yaml:3: unknown field `sya`"),
        ("agents:\n  main:\n    - say: hi\n    - {}\n", "test.yaml:4: a step needs"),
        ("agents:\n  main:\n    - when: '('\n      say: hi\n", "test.yaml:3: `when` is no regex"),
        ("agents:\n  main:\n    - calls:\n        - {a: {}, b: {}}\n", "test.yaml:4: a call is"),
        ("agents:\n  main:\n    - repeat: yes\n      say: x\n", "test.yaml:3: "),
        ("agents:\n  main:\n    - error: {status: 1, times: 0}\n", "test.yaml:3: an error that"),
        ("agents:\n  main:\n    - error: {status: 1, retry_after_s: -1}\n", "test.yaml:3: `retry"),
        ("agents:\n  main: []\n  main: []\n", "test.yaml:3: "),
        ("tools:\n  x: {}\n  exec: {says: a}\nagents: {}\n", "test.yaml:3: exec is a tool of"),
        ("tools: {write: {class: read}}\nagents: {}\n", "test.yaml:1: write is a tool of"),
        ("", "test.yaml:1: "),
        ("defaults: {chunk: 3}\n", "test.yaml:1: missing field `agents`"),
    ];
    for (yaml, start) in cases {
        let error = Script::parse(Path::new("test.yaml"), yaml).unwrap_err().to_string();
        assert!(error.starts_with(start), "{yaml:?} gave {error:?}, not {start:?}");
    }
}

/// Steps of every kind, many times over: conditions, faults with and without words.
fn twisted() -> String {
    let steps = r#"
    - say: "one {{last}} of {{user}}"
    - error: {status: 429, times: 2}
    - when: "a"
      say: "a, for {{user}}"
    - error: {status: 500, times: 3}
      say: "after three"
    - when: "b"
      error: {status: 529}
    - when: "b"
      say: "b, {{last}}"
    - say: "cut {{last}}"
      cut_after_chunks: 1
    - when: "c"
      say: "c at last""#;
    let numbered = |number: u32| steps.replace("say: \"", &format!("say: \"{number}: "));
    format!("agents:\n  main:{}\n", (0..400).map(numbered).collect::<String>())
}

/// Follows a long conversation with its bookmark, and holds each answer against a whole walk.
/// Things happen to it that no script foresaw: failures from elsewhere, replies that were not in
/// the script, compactions, another session's agent of the same number.
#[test]
fn a_bookmark_leads_where_a_whole_walk_leads() {
    for seed in 1..=12_u64 {
        let mut dice = seed;
        let mut roll = |sides: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
            (dice >> 33) % sides
        };
        let mut talk = Talk::new(&twisted());
        let provider = Scripted::new(talk.script.clone(), Arc::new(System));
        let mut stranger = Talk::new(&twisted());
        (0..100).for_each(|_| stranger.person("b"));
        for turn in 0..300 {
            match roll(200) {
                0..10 => talk.failures += 1,
                10 => {
                    let summary =
                        Arc::new(Line { seq: Seq(turn), body: Body::Summary("a".into()) });
                    talk.lines = vec![summary];
                }
                11..15 => drop(provider.next(&stranger.asked())),
                15 => talk.replies += 1,
                _ => {}
            }
            let word = match roll(4) {
                0 => "a",
                1 => "b",
                2 => "c",
                _ => "d",
            };
            if roll(5) == 0 {
                talk.person(word);
            } else {
                talk.tool(word);
            }
            let asked = talk.asked();
            assert_eq!(provider.next(&asked), talk.script.answer(&asked), "{seed}, turn {turn}");
            talk.hear();
        }
    }
}

#[test]
fn a_long_conversation_is_walked_on_from_where_it_was() {
    let mut talk = Talk::new(&twisted());
    let provider = Scripted::new(talk.script.clone(), Arc::new(System));
    talk.person("go");
    for turn in 0..500 {
        talk.tool(["a", "d"][turn % 2]);
        let asked = talk.asked();
        let ahead = provider.bookmarks.ahead(&asked);
        assert!(turn < 100 || ahead <= 2, "{ahead} lines of {} are walked", talk.lines.len());
        drop(provider.next(&asked));
        talk.hear();
    }
    // A failure that the script knows of does not send it back to the beginning either.
    talk.failures += 1;
    talk.tool("d");
    assert!(provider.bookmarks.ahead(&talk.asked()) <= 2);
}
