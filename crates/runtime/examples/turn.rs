//! The engine as a library: one session, one real wire, one tool that waits for the disk because
//! it is declared to change something (it only reads). `cargo xtask bench` measures its turns.
//!
//!     turn BASE_URL PROMPT JOURNAL
#![expect(clippy::print_stdout, reason = "a program")]

#[path = "../tests/plain/mod.rs"]
mod plain;

use std::path::Path;
use std::sync::Arc;

use locum_journal::Sqlite;
use locum_kernel::{
    Audience, Class, Config, Errand, Input, Output, PolicyMode, ToolSpec, TreeLimits,
};
use locum_runtime::clock::{Clock, System};
use locum_runtime::driver::{Driver, Hands, Until, World};
use locum_runtime::line::Body;
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::tool::Toolbox;
use locum_runtime::wire::{self, Key, Settings, WireName};

#[derive(Debug)]
struct Write;

impl Toolbox for Write {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = ToolSpec {
            brought: false,
            caution: None,
            identity: None,
            name: "write".into(),
            class: Class::Write,
            idempotent: false,
            subject: Some("path".into()),
            timeout_ms: None,
        };
        vec![spec]
    }

    fn run(&self, errand: Errand, _live: Live) -> Task<Output> {
        let path = errand.arguments["path"].as_str().unwrap_or_default().to_owned();
        Box::pin(async move {
            match std::fs::read_to_string(&path) {
                Ok(text) => Output::ok(text),
                Err(error) => Output::error(error.to_string()),
            }
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(base), Some(prompt), Some(file)) = (words.next(), words.next(), words.next()) else {
        return Err("turn BASE_URL PROMPT JOURNAL".into());
    };
    let clock: Arc<dyn Clock> = Arc::new(System);
    let world =
        World { journal: Arc::new(Sqlite::open(Path::new(&file))?), clock: Arc::clone(&clock) };
    let key = format!("turn_{}", clock.now().0);
    let mut driver = Driver::open(&key, world)?;
    driver.take(Input::Configured(Box::new(Config {
        model: "anthropic/mock".into(),
        audience: Audience::Absent,
        mode: PolicyMode::Auto,
        limits: TreeLimits { turns_max: 100_000, ..TreeLimits::default() },
        tools: Write.specs(),
        ..plain::config(&key)
    })))?;
    driver.take(Input::Said(plain::message(&prompt)))?;
    let provider =
        wire::provider(WireName::Anthropic, &Settings::new(&base, Key::new("x")), clock)?;
    let hands = Hands { provider, tools: Arc::new(Write) };
    let last = driver.run(&hands, Until::Rest).await?;
    if let Body::RunResult(result) = &last.body {
        println!("{}", result.text);
    }
    Ok(())
}
