//! The protocol's own suite for clients, run against `examples/probe.rs`. It takes minutes and a
//! newer node than most machines have, so only on demand:
//! `LOCUM_MCP_CONFORMANCE=1 cargo test -p locum-mcp --test conformance -- --nocapture`.

#[expect(dead_code, reason = "shared with tests that need other parts of it")]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PACKAGES: [&str; 2] = ["@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@22"];
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        let why = String::from_utf8_lossy(&output.stderr);
        panic!("{command:?}: {}\n{said}\n{why}", output.status);
    }
    output
}

#[test]
fn the_suite_for_clients() {
    if std::env::var_os("LOCUM_MCP_CONFORMANCE").is_none() {
        eprintln!("SKIPPED, NOTHING WAS TESTED: set LOCUM_MCP_CONFORMANCE=1 to run the suite");
        return;
    }
    assert!(support::have("npm"), "the suite comes from npm");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| root.join("target"));
    let folder = target.join("mcp-servers/conformance");
    let modules = folder.join("node_modules");
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    let node = modules.join("node/bin/node");
    if !suite.exists() || !node.exists() {
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut install = Command::new("npm");
        install.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]);
        run(install.arg(&folder).args(PACKAGES));
    }
    let build = ["build", "--package", "locum-mcp", "--example", "probe"];
    run(Command::new(env!("CARGO")).current_dir(&root).args(build));
    let probe = target.join("debug/examples/probe").canonicalize().expect("the probe is built");
    for revision in REVISIONS {
        let mut command = Command::new(&node);
        command
            .arg(&suite)
            .args(["client", "--timeout", "120000", "--requirements", revision, "--command"])
            .arg(&probe);
        // It ends with success only if every scenario that counts passes.
        let output = run(&mut command);
        let text = String::from_utf8_lossy(&output.stdout);
        let summary = text.find("=== SUITE SUMMARY").map_or("", |at| &text[at..]);
        eprintln!("{revision}\n{summary}");
        assert!(summary.contains("passed"), "{text}");
    }
}
