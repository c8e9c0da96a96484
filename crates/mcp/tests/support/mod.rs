//! What tests of this crate share: servers to talk with, and a watch over whatever might hang.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use locum_mcp::{Launch, Sampling, ServerSpec, Servers, Settings, Transport};

/// Prints why and says whether to go on: a test that needs what is not here proves nothing.
pub(crate) fn have(program: &str) -> bool {
    let found = std::process::Command::new(program).arg("--version").output();
    let there = found.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("SKIPPED, NOTHING WAS TESTED: `{program}` is not installed");
    }
    there
}

pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars().collect()
}

pub(crate) fn stdio(name: &str, command: &str, args: &[&str]) -> ServerSpec {
    let args = args.iter().map(|&arg| arg.to_owned()).collect();
    let transport =
        Transport::Stdio { command: command.to_owned(), args, env: BTreeMap::new(), cwd: None };
    ServerSpec::new(name, transport)
}

pub(crate) fn http(name: &str, url: &str) -> ServerSpec {
    let transport = Transport::Http { url: url.to_owned(), headers: BTreeMap::new() };
    ServerSpec::new(name, transport)
}

/// A misbehaving server; `option` goes with the mode.
pub(crate) fn rogue(name: &str, mode: &str, option: &str) -> ServerSpec {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rogue.py");
    let script = script.to_string_lossy();
    let mut spec = stdio(name, "python3", &["-u", &script, mode, option]);
    if let Transport::Stdio { env, .. } = &mut spec.transport {
        let notes = notes(name, mode).to_string_lossy().into_owned();
        env.insert("ROGUE_NOTES".to_owned(), notes);
    }
    spec.timeout = Duration::from_secs(20);
    spec.start_timeout = Duration::from_secs(20);
    spec
}

/// Where a rogue writes what it saw.
pub(crate) fn notes(name: &str, mode: &str) -> PathBuf {
    let file = format!("locum-rogue-{}-{name}-{mode}", std::process::id());
    std::env::temp_dir().join(file)
}

pub(crate) fn settings() -> Settings {
    Settings {
        client_name: "locum-test".to_owned(),
        client_version: "0".to_owned(),
        roots: vec![PathBuf::from("/work space")],
        wrap: Arc::new(|spec| Ok(Launch::plain(spec, &environment()))),
        sampling: Sampling::Offered,
        credentials: None,
    }
}

pub(crate) fn servers(specs: Vec<ServerSpec>) -> Servers {
    Servers::new(specs, settings())
}

/// Polls until it holds; `what` is said when it never does.
pub(crate) async fn eventually(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(limit, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(waited.await.is_ok(), "never happened: {what}");
}

/// Memory of this process, in bytes.
pub(crate) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kib = line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok());
    kib.unwrap_or(0) * 1024
}

/// A caller beside the test, which the test waits for.
#[expect(
    clippy::disallowed_methods,
    reason = "a test is nobody's turn; it waits for what it starts"
)]
pub(crate) fn beside<F>(work: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(work)
}
