//! `cargo xtask fuzz`: the decoders fed with bytes that nobody sends, led by what each has seen.
//! Begins with streams of our own server and with recordings, if they stand beside the checkout.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::run;

/// A file of `fuzz/fuzz_targets` each.
const TARGETS: &[&str] =
    &["anthropic", "openai_chat", "openai_responses", "gemini", "ollama", "sse"];

/// Streams to begin with. Each target gets all of them: another wire's words are bad ones.
const STREAMS: &[&str] = &[
    "crates/locum/tests/script_server/anthropic.sse",
    "crates/locum/tests/script_server/chat.sse",
    "crates/locum/tests/script_server/responses.sse",
    "crates/runtime/tests/decoders/gemini.sse",
    "crates/runtime/tests/decoders/ollama.jsonl",
];

/// Longer ones say nothing that these do not, only slower.
const STREAM_BYTES_MAX: usize = 32 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Flags {
    seconds: u64,
    targets: Vec<&'static str>,
}

/// None: the flags are not ours, and the caller shows the usage.
pub(crate) fn parse(flags: &[&str]) -> Option<Flags> {
    let (seconds, rest) = match flags {
        ["--seconds", seconds, rest @ ..] => (seconds.parse().ok().filter(|it| *it > 0)?, rest),
        rest => (600, rest),
    };
    let targets = match rest {
        [] => TARGETS.to_vec(),
        [name] => vec![*TARGETS.iter().find(|target| *target == name)?],
        _ => return None,
    };
    Some(Flags { seconds, targets })
}

pub(crate) fn main(flags: &Flags) -> Result<ExitCode> {
    let root = run::root()?;
    let there = cargo_fuzz(&root).arg("--version").output();
    if !there.is_ok_and(|output| output.status.success()) {
        bail!(
            "cargo-fuzz and a nightly compiler are needed\n\
             do: rustup toolchain install nightly && cargo install --locked cargo-fuzz"
        );
    }
    for target in &flags.targets {
        let corpus = root.join("target/fuzz/corpus").join(target);
        let count = sow(&root, &corpus)?;
        println!("{target}: {} s, {count} streams to begin with", flags.seconds);
        let mut command = cargo_fuzz(&root);
        command.args(["run", "-s", "none", "--fuzz-dir", "fuzz", "--target-dir"]);
        command.arg(root.join("target/fuzz")).arg(target).arg(&corpus).arg("--");
        command.arg(format!("-max_total_time={}", flags.seconds));
        // A decoder that needs more for so little keeps what it should not.
        command.args(["-max_len=16384", "-rss_limit_mb=512", "-timeout=60"]);
        command.args(["-print_final_stats=1", "-verbosity=0"]);
        let status = command.status().context("cannot start cargo fuzz")?;
        if !status.success() {
            println!("{target}: found something; the bytes are in fuzz/artifacts/{target}");
            return Ok(run::code(status));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Another compiler than the one that built this, which names itself in the environment.
fn cargo_fuzz(root: &Path) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz"]).current_dir(root);
    for name in ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "CARGO_MANIFEST_DIR"] {
        command.env_remove(name);
    }
    command
}

/// Puts the streams where the fuzzer looks for them; recordings are never kept elsewhere.
fn sow(root: &Path, corpus: &Path) -> Result<usize> {
    fs::create_dir_all(corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
    let mut streams = Vec::new();
    for name in STREAMS {
        streams.push(fs::read_to_string(root.join(name)).with_context(|| format!("no {name}"))?);
    }
    let named = std::env::var_os("LOCUM_CORPUS").map(PathBuf::from);
    let recordings = named.unwrap_or_else(|| root.join("../shared/corpus")).join("sse");
    if recordings.is_dir() {
        collect(&recordings, &mut streams)?;
    } else {
        println!("skipped: no recordings stand beside this checkout (LOCUM_CORPUS names them)");
    }
    streams.retain(|stream| stream.len() <= STREAM_BYTES_MAX);
    for (at, stream) in streams.iter().enumerate() {
        fs::write(corpus.join(format!("begin-{at}")), stream)?;
    }
    Ok(streams.len())
}

fn collect(folder: &Path, streams: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, streams)?;
        } else if let Ok(text) = fs::read_to_string(&path) {
            match serde_json::from_str(&text) {
                Ok(recording) => inside(&recording, streams),
                Err(_) => streams.push(text),
            }
        }
    }
    Ok(())
}

/// The streams inside a recording, wherever it keeps them.
fn inside(value: &Value, streams: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains("data:") => streams.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| inside(value, streams)),
        Value::Object(fields) => fields.values().for_each(|value| inside(value, streams)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags() {
        let of =
            |seconds, targets: &[&'static str]| Some(Flags { seconds, targets: targets.to_vec() });
        let cases: &[(&[&str], Option<Flags>)] = &[
            (&[], of(600, TARGETS)),
            (&["sse"], of(600, &["sse"])),
            (&["--seconds", "5", "gemini"], of(5, &["gemini"])),
            (&["--seconds", "0"], None),
            (&["--seconds"], None),
            (&["nobody"], None),
            (&["sse", "gemini"], None),
        ];
        for (flags, expected) in cases {
            assert_eq!(parse(flags), *expected, "{flags:?}");
        }
    }

    #[test]
    fn every_target_is_a_file_and_every_stream_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for target in TARGETS {
            assert!(root.join(format!("fuzz/fuzz_targets/{target}.rs")).is_file(), "{target}");
        }
        assert!(STREAMS.iter().all(|stream| root.join(stream).is_file()));
    }
}
