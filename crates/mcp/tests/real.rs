//! Servers that other people wrote, from npm and `PyPI`, as their users start them.

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use locum_mcp::{Answer, Attendance, Error, Event, Kind, ServerSpec, Servers, Speaker};
use serde_json::{Value, json};
use support::{beside, have, http, servers, stdio};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_mins(1);
const EVERYTHING: &str = "@modelcontextprotocol/server-everything@2026.8.31";
const CLOCK: &str = "mcp-server-time==2026.10.19";

/// Where packages are kept between runs.
fn cache() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    target.unwrap_or_else(beside).join("mcp-servers")
}

fn quietly(command: &mut Command) -> bool {
    let output = command.stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            eprintln!("SKIPPED, NOTHING WAS TESTED: {command:?} failed: {why}");
            false
        }
        Err(error) => {
            eprintln!("SKIPPED, NOTHING WAS TESTED: {command:?} failed: {error}");
            false
        }
    }
}

/// The script to run with node, installed once.
fn everything() -> Option<String> {
    if !have("npm") || !have("node") {
        return None;
    }
    let folder = cache().join("npm");
    let package = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let script = folder.join(package);
    // Two tests at once may both find it missing.
    let _one_at_a_time = LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !script.exists() {
        std::fs::create_dir_all(&folder).ok()?;
        let mut install = Command::new("npm");
        install.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]);
        quietly(install.arg(&folder).arg(EVERYTHING)).then_some(())?;
    }
    Some(script.to_string_lossy().into_owned())
}

static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn everything_stdio() -> Option<ServerSpec> {
    Some(stdio("every", "node", &[&everything()?, "stdio"]))
}

/// Kills what it holds.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

async fn everything_http() -> Option<(ServerSpec, Running)> {
    let script = everything()?;
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).ok()?.port();
    let mut command = Command::new("node");
    command.args([&script, "streamableHttp"]).env("PORT", port.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(command.spawn().ok()?);
    support::eventually("the server listens", DEADLINE, || {
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    })
    .await;
    Some((http("every", &format!("http://127.0.0.1:{port}/mcp")), running))
}

async fn text(servers: &Servers, tool: &str, arguments: Value) -> String {
    let called = timeout(DEADLINE, servers.call(tool, arguments, |_| {})).await.expect("in time");
    called.unwrap_or_else(|error| panic!("{tool}: {error}")).text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_over_stdio() {
    let Some(spec) = everything_stdio() else { return };
    all_of_everything(servers(vec![spec])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_over_http() {
    let Some((spec, _running)) = everything_http().await else { return };
    all_of_everything(servers(vec![spec])).await;
}

async fn all_of_everything(servers: Servers) {
    servers.attend(Attendance::Somebody);
    let tools = servers.tools(DEADLINE).await;
    assert_eq!(tools.missing, []);
    let names: Vec<&str> = tools.tools.iter().map(|tool| tool.full_name.as_str()).collect();
    for name in ["echo", "get-sum", "get-tiny-image", "get-resource-links"] {
        assert!(names.contains(&format!("every__{name}").as_str()), "{name}: {names:?}");
    }
    assert_eq!(text(&servers, "every__echo", json!({"message": "hi"})).await, "Echo: hi");
    let sum = text(&servers, "every__get-sum", json!({"a": 2, "b": 3})).await;
    assert!(sum.contains('5'), "{sum}");
    contents(&servers).await;
    resources(&servers).await;
    prompts(&servers).await;
    progress_and_cancellation(&servers).await;
    questions(&servers, &names).await;
    let bad = servers.call("every__get-sum", json!({"a": "x"}), |_| {}).await;
    let refused = match &bad {
        Ok(called) => called.is_error,
        Err(error) => matches!(error, Error::Refused { .. }),
    };
    assert!(refused, "{bad:?}");
    timeout(DEADLINE, servers.shut_down()).await.expect("in time");
}

async fn contents(servers: &Servers) {
    let image = servers.call("every__get-tiny-image", json!({}), |_| {}).await.expect("an image");
    assert_eq!(image.images.len(), 1);
    assert_eq!(image.images[0].media_type, "image/png");
    assert!(image.images[0].bytes.starts_with(b"\x89PNG"));
    let links = servers.call("every__get-resource-links", json!({"count": 3}), |_| {}).await;
    assert_eq!(links.expect("links").resource_links.len(), 3);
    let city = json!({"location": "New York"});
    let structured = servers.call("every__get-structured-content", city, |_| {}).await;
    let structured = structured.expect("structured").structured.expect("structured content");
    assert!(structured.get("temperature").is_some(), "{structured}");
}

async fn resources(servers: &Servers) {
    let listed = servers.resources("every").await.expect("resources");
    let first = listed.first().expect("at least one");
    let read = servers.read_resource("every", &first.uri).await.expect("readable");
    assert!(!read.text.is_empty() || !read.images.is_empty());
    let templates = servers.resource_templates("every").await.expect("templates");
    assert!(templates.iter().any(|template| template.uri.contains('{')), "{templates:?}");
    let refused = servers.read_resource("every", "nothing://at/all").await;
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    servers.subscribe("every", &first.uri).await.expect("subscribed");
    servers.unsubscribe("every", &first.uri).await.expect("unsubscribed");
}

async fn prompts(servers: &Servers) {
    let listed = servers.prompts("every").await.expect("prompts");
    assert!(listed.len() >= 3, "{listed:?}");
    let said = servers.prompt("every", "simple-prompt", Value::Null).await.expect("a prompt");
    assert_eq!(said.messages[0].by, Speaker::User);
    assert!(!said.messages[0].content.text.is_empty());
    let with = servers.prompt("every", "args-prompt", json!({"city": "Turin"})).await;
    assert!(with.expect("a prompt").messages[0].content.text.contains("Turin"));
}

async fn progress_and_cancellation(servers: &Servers) {
    let mut steps = Vec::new();
    let slow = json!({"duration": 1, "steps": 4});
    let name = "every__trigger-long-running-operation";
    let called = servers.call(name, slow, |step| steps.push(step.progress)).await;
    assert!(called.expect("done").text.contains("completed"));
    assert!(steps.len() >= 3 && steps.is_sorted(), "{steps:?}");
    let endless = servers.call(name, json!({"duration": 1000, "steps": 2}), |_| {});
    assert!(timeout(Duration::from_millis(300), endless).await.is_err());
    assert_eq!(text(servers, "every__echo", json!({"message": "x"})).await, "Echo: x");
}

async fn questions(servers: &Servers, names: &[&str]) {
    let answering = servers.clone();
    let seen = beside(async move {
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let Event::Asked(request) = answering.next_event().await else { continue };
            let (kind, answer) = match request.kind {
                Kind::Sampling { text, .. } => {
                    let text = format!("heard {text}");
                    let model = "m".to_owned();
                    ("sampling", Answer::Sampled { model, text, stop_reason: None })
                }
                Kind::Elicitation { .. } => {
                    let fields = json!({"name": "Ada", "check": true, "email": "a@example.org"});
                    ("form", Answer::Filled(fields))
                }
                Kind::Visit { .. } => ("visit", Answer::Declined),
            };
            answering.answer(request.id, answer).expect("still asked");
            seen.push(kind);
        }
        seen
    });
    let sampling =
        names.iter().find(|name| name.contains("sampling")).expect("a tool that samples");
    let sampled = text(servers, sampling, json!({"prompt": "2+2?", "maxTokens": 5})).await;
    assert!(sampled.contains("heard") && sampled.contains("2+2?"), "{sampled}");
    let asking = names.iter().find(|name| name.ends_with("elicitation-request"));
    let asked = text(servers, asking.expect("a tool that asks"), json!({})).await;
    assert!(asked.contains("Ada"), "{asked}");
    assert_eq!(
        timeout(DEADLINE, seen).await.expect("in time").expect("both"),
        ["sampling", "form"]
    );
}

#[tokio::test]
async fn a_clock_from_pypi() {
    if !have("python3") {
        return;
    }
    let folder = cache().join("python");
    let program = folder.join("bin/mcp-server-time");
    if !program.exists() {
        let venv = quietly(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let mut install = Command::new(folder.join("bin/pip"));
        if !venv || !quietly(install.args(["install", "--quiet", CLOCK])) {
            return;
        }
    }
    let spec = stdio("clock", &program.to_string_lossy(), &["--local-timezone", "Europe/Rome"]);
    let servers = servers(vec![spec]);
    let tools = servers.tools(DEADLINE).await;
    assert_eq!(tools.missing, []);
    let question =
        json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let told = text(&servers, "clock__convert_time", question).await;
    assert!(told.contains("21:00"), "{told}");
    let wrong =
        servers.call("clock__get_current_time", json!({"timezone": "Nowhere"}), |_| {}).await;
    assert!(wrong.as_ref().is_ok_and(|called| called.is_error) || wrong.is_err(), "{wrong:?}");
    servers.shut_down().await;
}
