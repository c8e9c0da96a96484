//! The whole engine against the bare loop: the harness beside the checkout starts both against
//! one mock server and measures them from outside. It runs in a copy, with our own table of
//! clients, so that nothing is written where it was found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};

use super::{idle, table};
use crate::run;

/// Ours: the program, and the engine with a tool that must wait for the disk.
const CLIENTS: &str = include_str!("clients.toml");

pub(super) fn main(root: &Path) -> Result<ExitCode> {
    build(root, &["-p", "locum"])?;
    build(root, &["-p", "locum-runtime", "--example", "turn"])?;
    let target = root.join("target");
    let locum = target.join("release/locum");
    match harness(root) {
        Some(from) => {
            let here = prepare(root, &from)?;
            fs::copy(target.join("release/examples/turn"), here.join("turn"))?;
            drive(&here, &locum)?;
            print!("{}", table::read(&here.join("results"))?);
        }
        None => {
            println!("no floor: the harness (shared/bench) does not stand beside this checkout");
        }
    }
    print!("{}", idle::measure(&locum)?);
    Ok(ExitCode::SUCCESS)
}

fn build(root: &Path, what: &[&str]) -> Result<()> {
    let status = run::cargo(root).args(["build", "--release"]).args(what).status()?;
    ensure!(status.success(), "cannot build {what:?}");
    Ok(())
}

fn harness(root: &Path) -> Option<PathBuf> {
    let beside = root.parent()?.join("shared/bench");
    let named = std::env::var_os("LOCUM_BENCH").map(PathBuf::from);
    named.or(Some(beside)).filter(|folder| folder.join("drive.py").exists())
}

/// A copy of the harness with its programs built.
fn prepare(root: &Path, from: &Path) -> Result<PathBuf> {
    let here = root.join("target/bench");
    fs::create_dir_all(&here)?;
    let _ = fs::remove_dir_all(here.join("results"));
    fs::copy(from.join("drive.py"), here.join("drive.py"))?;
    let theirs = fs::read_to_string(from.join("clients.toml"))?;
    let theirs = theirs.split("\n[locum]").next().unwrap_or_default();
    fs::write(here.join("clients.toml"), format!("{theirs}\n{CLIENTS}"))?;
    for program in ["server", "floor"] {
        let status = run::cargo(root)
            .args(["build", "--release", "--manifest-path"])
            .arg(from.join(program).join("Cargo.toml"))
            .arg("--target-dir")
            .arg(here.join("target"))
            .status()?;
        ensure!(status.success(), "cannot build {program}");
    }
    Ok(here)
}

fn drive(here: &Path, locum: &Path) -> Result<()> {
    let status = Command::new("python3")
        .arg(here.join("drive.py"))
        .args(["floor", "floor-cached", "floor-wal-full", "locum", "locum-write"])
        .env("BENCH_BIN", here.join("target/release"))
        .env("BENCH_LOCUM", locum)
        .env("BENCH_TMP", here.join("work"))
        .status()
        .context("cannot start python3")?;
    ensure!(status.success(), "the harness failed (it needs to be root, for a network of its own)");
    Ok(())
}
