//! The real program, the real script server, and a bad line between them, in three wire formats.
//! Whatever the line does, the answer is right in the end or the failure is told as one; no tool
//! runs twice or from a call that was cut; the journal keeps no half message.
#![cfg(debug_assertions)] // Time hurries only there.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

#[path = "proxy/line.rs"]
mod line;
#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use line::{Fault, Framed, Line, Stays};
use serde_json::{Value, json};
use support::{Folder, lines, of_type, output_of, stderr};

const SCRIPT: &str = r#"
defaults: {chunk: 5}
tools: {mend: {class: write, says: mended, log: effects.log}}
agents:
  main:
    - say: "Mending. Grüße 👋"
      reasoning: "Two things are broken."
      calls: [{mend: {path: "a/ü.txt", why: "it is broken"}}, {mend: {path: b.txt}}]
    - {say: "Again.", calls: [{mend: {path: c.txt}}]}
    - say: "All mended. 👋"
"#;

/// The model, and what the key and the address are called.
const WIRES: [(&str, &str); 3] =
    [("anthropic/x", "ANTHROPIC"), ("openai-chat/x", "OPENAI"), ("openai-responses/x", "OPENAI")];

/// The script over HTTP, ended with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(folder: &Folder, script: &str) -> Server {
        let script = folder.write("script.yaml", script);
        let mut command = Command::new(env!("CARGO_BIN_EXE_locum"));
        command.arg("script-server").arg(&script).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("listening on http://").unwrap().to_owned();
        Server { child, address }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What comes of it.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The right answer, after each fault was tried again for this cause.
    Answered(&'static str),
    /// The right answer, and nobody noticed.
    Unnoticed,
    /// After so many tries it is told, with this cause.
    Told(u32, &'static str),
}

use End::{Answered, Told, Unnoticed};

struct Case {
    name: String,
    faults: Vec<Fault>,
    stays: Stays,
    end: End,
}

fn case(name: &str, faults: Vec<Fault>, end: End) -> Case {
    let stays = if matches!(end, Told(..)) { Stays::Yes } else { Stays::No };
    Case { name: name.to_owned(), faults, stays, end }
}

fn instead(head: &str, body: &[u8]) -> Fault {
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    Fault::Instead([head.as_bytes(), body].concat())
}

fn raw(bytes: &[u8]) -> Fault {
    Fault::Instead(bytes.to_vec())
}

const STREAM: &str = "200 OK\r\ncontent-type: text/event-stream";

/// The answer with a byte in it that no text has, in the middle of a letter.
fn broken_text(mut body: Vec<u8>) -> Vec<u8> {
    let at = body.windows(2).position(|two| two == "ü".as_bytes()).unwrap();
    body[at + 1] = 0xFF;
    body
}

/// Both calls under one id. Ids are made from what the conversation is, and end in their number.
fn one_id(body: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8(body).unwrap();
    let ids: Vec<&str> = text.split('"').filter(|it| is_call_id(it)).collect();
    let (first, last) = (ids[0], *ids.last().unwrap());
    assert_ne!(first, last, "{text}");
    text.replace(last, first).into_bytes()
}

fn is_call_id(word: &str) -> bool {
    ["toolu_", "call_"].iter().any(|start| word.starts_with(start))
}

/// A date the client reads on a clock that hurries: any date is past by then, and is no garbage.
const LONG_AGO: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

fn cases() -> Vec<Case> {
    let busy = |after: &str| instead(&format!("429 Too Many Requests\r\n{after}"), b"{}");
    let overloaded = instead("529 Overloaded", b"");
    let gzip =
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xec\xc1\x01\x0d\x00\x00\x00\xc2".repeat(99);
    let long = [b"data: {\"a\": \"".as_slice(), &vec![b'x'; 65 << 20]].concat();
    let garbage = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\nZZ;\r\ndata: {}\r\n\r\n";
    let page = b"<!doctype html><title>Sign in</title><p>The hotel asks for your room number.";
    let html = instead("200 OK\r\ncontent-type: text/html; charset=utf-8", page);
    vec![
        case("nothing", vec![], Unnoticed),
        case("a length", vec![Fault::Framed(Framed::Length(0)); 3], Unnoticed),
        case("no length", vec![Fault::Framed(Framed::Close); 3], Unnoticed),
        case("dribbled", vec![Fault::Dribble; 3], Unnoticed),
        case("delayed", vec![Fault::Delay(Duration::from_millis(150)); 3], Unnoticed),
        case("one id twice", vec![Fault::Changed(one_id)], Unnoticed),
        case("reset at once", vec![Fault::Reset(0); 2], Answered("")),
        case("reset inside", vec![Fault::Reset(700), Fault::Reset(1_500)], Answered("")),
        case("closed at once", vec![Fault::Closed; 3], Answered("provider error")),
        case("half a head", vec![raw(b"HTTP/1.1 200 OK\r\ncontent-ty")], Answered("")),
        case("no HTTP", vec![raw(b"SSH-2.0-OpenSSH_9.2\r\n")], Answered("provider error")),
        // All was said before the connection broke.
        case("more promised", vec![Fault::Framed(Framed::Length(999))], Unnoticed),
        case("less promised", vec![Fault::Framed(Framed::Length(-900))], Answered("stream cut")),
        case("bad chunks", vec![raw(garbage)], Answered("stream cut")),
        case("no chunk", vec![instead(STREAM, b"")], Answered("stream cut")),
        case("a page", vec![html.clone(), instead(STREAM, page)], Answered("unreadable answer")),
        case(
            "gzip",
            vec![instead(&format!("{STREAM}\r\ncontent-encoding: gzip"), &gzip)],
            Answered("unreadable answer"),
        ),
        case("a long line", vec![instead(STREAM, &long)], Answered("unreadable answer")),
        case("bad text", vec![Fault::Changed(broken_text)], Answered("unreadable answer")),
        case(
            "busy",
            vec![busy("retry-after: 1"), busy(&format!("retry-after: {LONG_AGO}"))],
            Answered("rate limit"),
        ),
        case("overloaded", vec![overloaded.clone(); 4], Answered("provider overloaded")),
        case(
            "down",
            vec![instead("500 Oops", b"<html>"), instead("502 Bad", b"")],
            Answered("provider error"),
        ),
        case("busy for good", vec![busy("retry-after: 2")], Told(8, "rate limit (429)")),
        case("busy for long", vec![busy("retry-after: 3600")], Told(1, "rate limit (429)")),
        case("overloaded for good", vec![overloaded], Told(8, "provider overloaded (529)")),
        case("down for good", vec![instead("503 Down", b"")], Told(8, "provider error (503)")),
        case("a page for good", vec![html], Told(8, "unreadable answer")),
        case("a key refused", vec![instead("401 No", b"{}")], Told(1, "key refused (401)")),
        case("cut for good", vec![Fault::Cut(900, Framed::Close)], Told(8, "stream cut")),
    ]
}

/// Tries a turn has, but one: so many cuts are borne by one run.
const CUTS: usize = 7;

/// The first answer, which calls two tools, cut at many places, each known to the client by other
/// means; then the answer after the tools have run.
fn cuts() -> Vec<Case> {
    let framed = [Framed::Close, Framed::Chunks, Framed::Length(0)];
    let runs = (0..6).map(|run| {
        let places = (0..CUTS).map(|nth| (run * CUTS + nth) * 41);
        let faults = places.map(|at| Fault::Cut(at, framed[(run + at) % 3])).collect();
        case(&format!("cut {run}"), faults, Answered(""))
    });
    // Between two events nothing looks torn: only what was said tells that something is missing.
    let between = (0..3).map(|run| {
        let faults = (0..CUTS).map(|nth| Fault::CutAfter(run * CUTS + nth)).collect();
        case(&format!("cut between {run}"), faults, Answered("stream cut"))
    });
    let later = [150, 300, 450, 600, 750].map(|at| Fault::Cut(at, Framed::Close));
    let later = [Fault::None].into_iter().chain(later).collect();
    runs.chain(between).chain([case("cut later", later, Answered(""))]).collect()
}

/// What one run came to.
struct Run {
    folder: Folder,
    output: Output,
    told: Vec<Value>,
    /// The texts main said.
    said: Vec<Value>,
    /// What was asked on the way.
    asked: Vec<String>,
}

fn run(wire: (&str, &str), server: &Server, it: &Case) -> Run {
    let folder = Folder::new(&format!("proxy-{}-{}", &wire.0[..9], it.name.replace(' ', "-")));
    let props = folder.write("props.yaml", SCRIPT);
    let line = Line::to(&server.address, it.faults.clone(), it.stays);
    let mut command = folder.locum(&["run", "go", "-m", wire.0, "-s", "s", "--json"]);
    command.args(["--allow", "mend"]).env("LOCUM_HURRY", "1000").env("LOCUM_PROPS", props);
    command.env(format!("{}_API_KEY", wire.1), "sk-very-secret");
    command.env(format!("{}_BASE_URL", wire.1), &line.base);
    let output = output_of(command);
    let told = lines(&output);
    let (said, asked) = (said(&told), line.asked.lock().unwrap().clone());
    Run { folder, output, told, said, asked }
}

fn said(lines: &[Value]) -> Vec<Value> {
    let said = of_type(lines, "message").into_iter().filter(|it| it["role"] == "assistant");
    said.map(|it| it["text"].clone()).collect()
}

/// Why it is not as it should be.
fn wrong(wire: (&str, &str), server: &Server, it: &Case) -> Option<String> {
    let run = run(wire, server, it);
    let noticed = it.faults.iter().filter(|fault| !matches!(fault, Fault::None)).count();
    let (retries, exit, why) = match it.end {
        Unnoticed => (0, 0, ""),
        Answered(why) => (noticed, 0, why),
        Told(tries, why) => (tries as usize - 1, 6, why),
    };
    let mut found = run.tries(retries, why);
    found.extend(if exit == 0 { run.answered() } else { run.failed(why) });
    found.extend(run.always());
    if run.output.status.code() != Some(exit) {
        found.push(format!("{:?} {}", run.output.status, stderr(&run.output)));
    }
    (!found.is_empty()).then(|| format!("{} {}: {}", wire.0, it.name, found.join("; ")))
}

/// What is wrong, of everything that should hold.
fn broken<const N: usize>(laws: [(bool, String); N]) -> Vec<String> {
    laws.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect()
}

impl Run {
    fn tries(&self, expected: usize, why: &str) -> Vec<String> {
        let retries = of_type(&self.told, "retry");
        let attempts: Vec<_> = retries.iter().map(|it| it["attempt"].as_u64().unwrap()).collect();
        let named = retries.iter().all(|it| it["cause"].as_str().unwrap().contains(why));
        broken([
            (attempts.iter().copied().eq(2..2 + expected as u64), format!("{attempts:?}")),
            (named, format!("not {why:?}: {retries:?}")),
        ])
    }

    /// Which tools really ran, in order.
    fn effects(&self) -> Vec<Value> {
        let log = self.folder.read("effects.log");
        let effects = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        effects.map(|effect| effect["arguments"]["path"].clone()).collect()
    }

    fn answered(&self) -> Vec<String> {
        let (said, effects) = (&self.said, self.effects());
        broken([
            (*said == ["Mending. Grüße 👋", "Again.", "All mended. 👋"], format!("{said:?}")),
            (effects == ["a/ü.txt", "b.txt", "c.txt"], format!("ran {effects:?}")),
        ])
    }

    fn failed(&self, why: &str) -> Vec<String> {
        let (said, effects, complaint) = (&self.said, self.effects(), stderr(&self.output));
        let told = complaint.starts_with("error[E160] ") && complaint.contains("\ndo: ");
        let apology = said.len() == 1 && said[0].as_str().is_some_and(|it| it.contains(why));
        broken([
            (effects.is_empty(), format!("ran {effects:?}")),
            (told && complaint.contains(why), format!("complaint {complaint}")),
            (apology, format!("{said:?}")),
        ])
    }

    fn always(&self) -> Vec<String> {
        let kept = self.folder.text(&["sessions", "export", "s"]);
        let kept: Vec<Value> = kept.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
        let kept = said(&kept);
        let asks_for = |what: &str| self.asked.iter().any(|it| it.to_lowercase().contains(what));
        let result = self.told.last().unwrap_or(&Value::Null);
        broken([
            (kept == self.said, format!("kept {kept:?}, said {:?}", self.said)),
            (result["type"] == "run.result", format!("{result}")),
            (self.said.last() == Some(&result["text"]), format!("{result}")),
            (!asks_for("accept-encoding"), "it asks for what it cannot read".into()),
            (!stderr(&self.output).contains("sk-very-secret"), "the key is told".into()),
        ])
    }
}

fn play(wire: (&str, &str)) {
    let folder = Folder::new(&format!("proxy-server-{}", wire.0.replace('/', "-")));
    let server = Server::start(&folder, SCRIPT);
    let cases = cases().into_iter().chain(cuts());
    let wrong: Vec<_> = cases.filter_map(|case| wrong(wire, &server, &case)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_bad_line_to_anthropic() {
    play(WIRES[0]);
}

#[test]
fn a_bad_line_to_openai_chat() {
    play(WIRES[1]);
}

#[test]
fn a_bad_line_to_openai_responses() {
    play(WIRES[2]);
}

/// With the name people use, in the order of a bad day.
#[test]
fn busy_twice_then_cut_then_answered() {
    let folder = Folder::new("proxy-bad-day");
    let script = "agents: {main: [{say: \"All is well. Grüße 👋\"}, {say: \"Once too often.\"}]}";
    let server = Server::start(&folder, script);
    let busy = instead("429 Too Many Requests\r\nretry-after: 1", b"{}");
    let faults = vec![busy.clone(), busy, Fault::Cut(300, Framed::Chunks)];
    let line = Line::to(&server.address, faults, Stays::No);
    let mut command = folder.locum(&["run", "go", "-m", "openai/x", "-s", "s", "--json"]);
    command.env("LOCUM_HURRY", "1000").env("OPENAI_API_KEY", "sk-very-secret");
    command.env("OPENAI_BASE_URL", &line.base);
    let output = output_of(command);
    assert!(output.status.success(), "{}", stderr(&output));
    let told = lines(&output);
    assert_eq!(told.last().unwrap()["text"], "All is well. Grüße 👋");
    let retries = of_type(&told, "retry").into_iter();
    let retries = retries.map(|it| json!([it["attempt"], it["max"], it["status"], it["cause"]]));
    let retries: Vec<_> = retries.collect();
    assert_eq!(retries[0], json!([2, 8, 429, "rate limit (429): {}"]));
    assert_eq!(retries[1], json!([3, 8, 429, "rate limit (429): {}"]));
    assert!(retries[2].to_string().starts_with("[4,8,null,\"stream cut: "), "{retries:?}");
    assert_eq!((retries.len(), line.asked.lock().unwrap().len()), (3, 4));
    let kept = folder.text(&["sessions", "export", "s"]);
    let kept: Vec<Value> = kept.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let replies: Vec<_> = of_type(&kept, "turn.finished");
    let said = of_type(&kept, "message").into_iter().filter(|it| it["role"] == "assistant");
    assert_eq!((replies.len(), said.count()), (1, 1), "{kept:#?}");
}
