//! What one turn costs at the beginning and at the end of a long session: a scripted model calls
//! a tool that only reads, so many times, in one conversation that is never compacted.
//!
//!     turns TURNS [JOURNAL]
//!
//! Without a file the journal is in memory. A turn that costs more at the end than at the
//! beginning looks at what was said before.
#![expect(clippy::print_stdout, reason = "a program")]

#[path = "../tests/plain/mod.rs"]
mod plain;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use locum_journal::{Journal, Memory, Sqlite};
use locum_kernel::{
    Audience, Class, Config, Errand, Input, Output, PolicyMode, ToolSpec, TreeLimits,
};
use locum_runtime::clock::{Clock, System};
use locum_runtime::driver::{Driver, Hands, Until, World};
use locum_runtime::live::Live;
use locum_runtime::provider::Task;
use locum_runtime::script::{Script, Scripted};
use locum_runtime::tool::Toolbox;
use tokio::time::Instant;

/// Turns whose median stands for the beginning and for the end.
const SAMPLE: usize = 500;
/// The first turns warm up.
const WARM: usize = 100;

/// Goes on for as long as it finds something, each time something else.
const SCRIPT: &str = r#"
agents:
  main:
    - when: "^(go|found [0-9]+)$"
      repeat: true
      calls: [{look: {after: "{{last}}"}}]
    - say: "done"
"#;

/// A tool that finds something so many times, and remembers when.
#[derive(Debug)]
struct Look {
    turns: usize,
    moments: Mutex<Vec<Instant>>,
}

impl Toolbox for Look {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = ToolSpec {
            brought: false,
            caution: None,
            identity: None,
            name: "look".into(),
            class: Class::Read,
            idempotent: true,
            subject: None,
            timeout_ms: None,
        };
        vec![spec]
    }

    fn run(&self, _: Errand, _: Live) -> Task<Output> {
        let mut moments = self.moments.lock().unwrap_or_else(PoisonError::into_inner);
        moments.push(Instant::now());
        let more = moments.len() < self.turns;
        let said = if more { format!("found {}", moments.len()) } else { "nothing".into() };
        Box::pin(async { Output::ok(said) })
    }
}

fn config(key: &str, tools: Vec<ToolSpec>) -> Config {
    let limits = TreeLimits { turns_max: u32::MAX, ..TreeLimits::default() };
    let (audience, mode) = (Audience::Absent, PolicyMode::Auto);
    Config { audience, mode, limits, tools, ..plain::config(key) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let turns: usize = words.next().ok_or("turns TURNS [JOURNAL]")?.parse()?;
    let journal: Arc<dyn Journal> = match words.next() {
        Some(file) => Arc::new(Sqlite::open(Path::new(&file))?),
        None => Arc::new(Memory::default()),
    };
    let clock: Arc<dyn Clock> = Arc::new(System);
    let script = Script::parse(Path::new("turns.yaml"), SCRIPT)?.hurried();
    let key = format!("turns_{}", clock.now().0);
    let mut driver = Driver::open(&key, World { journal, clock: Arc::clone(&clock) })?;
    let look = Arc::new(Look { turns, moments: Mutex::default() });
    driver.take(Input::Configured(Box::new(config(&key, look.specs()))))?;
    driver.take(Input::Said(plain::message("go")))?;
    let provider = Arc::new(Scripted::new(script, clock));
    let hands = Hands { provider, tools: Arc::clone(&look) as Arc<dyn Toolbox> };
    driver.run(&hands, Until::Rest).await?;
    let moments = look.moments.lock().unwrap_or_else(PoisonError::into_inner);
    let times: Vec<Duration> =
        moments.windows(2).map(|pair| pair[1].duration_since(pair[0])).collect();
    if times.len() < WARM + 2 * SAMPLE.min(turns / 4) {
        return Err(format!("{} turns are too few", times.len()).into());
    }
    let sample = SAMPLE.min(turns / 4);
    let first = median(times[WARM..WARM + sample].to_vec());
    let last = median(times[times.len() - sample..].to_vec());
    let all: Duration = times.iter().sum();
    let ratio = last.as_secs_f64() / first.as_secs_f64();
    println!(
        "{turns} turns: {first:?} a turn at the beginning, {last:?} at the end, ratio {ratio:.2}; \
         {:?} on average",
        all / u32::try_from(times.len())?
    );
    Ok(())
}
