//! What the kernel costs, against the limits it was given. `cargo bench -p locum-kernel` first
//! prints one table of everything that has a limit, then what is only good to know. It fails if a
//! ratio or the size of an agent is beyond its limit; the fold rate depends on the machine and is
//! only reported.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

mod memory;
mod steps;
mod world;

use divan::{Bencher, black_box};
use locum_kernel::{Agent, AgentId, Entry, Session, fold, owed, prompt, view};
use std::process::ExitCode;
use std::time::Duration;
use steps::{Case, Cost, clock, measure, median};
use world::{ENDLESS, WINDOW, World};

const AGENTS_RATIO_MAX: f64 = 3.0;
const HISTORY_RATIO_MAX: f64 = 1.5;
const IDLE_BYTES_MAX: usize = 4 * 1024;
const FOLD_RATE_WANTED: f64 = 500_000.0;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, kind] = words.as_slice()
        && word == memory::WORD
    {
        let (_, bytes) = memory::KINDS[kind.parse::<usize>().expect("a kind")];
        println!("{}", bytes());
        return ExitCode::SUCCESS;
    }
    // `cargo bench` says so; a test run only makes sure that this compiles and starts.
    if !words.iter().any(|word| word == "--bench") {
        return ExitCode::SUCCESS;
    }
    let mut table = Table { well: true };
    table.agents();
    table.history();
    Table::fold();
    table.memory();
    println!();
    divan::main();
    if table.well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints row by row, and remembers whether a limit was broken.
struct Table {
    well: bool,
}

impl Table {
    fn head(title: &str) {
        println!("\n{title:<44}{:>10}{:>10}{:>7}{:>7}  limit", "reply", "result", "ratio", "ratio");
    }

    fn row(&mut self, name: &str, cost: Cost, to: Cost, limit: Option<f64>) {
        let ratios = [ratio(cost.reply, to.reply), ratio(cost.result, to.result)];
        let said = limit.map_or_else(String::new, |max| {
            let well = ratios.iter().all(|ratio| *ratio <= max);
            self.well &= well;
            format!("{max:.1} {}", word(well))
        });
        let [reply, result] = ratios;
        let (a, b) = (micros(cost.reply), micros(cost.result));
        println!("  {name:<42}{a:>10}{b:>10}{reply:>7.2}{result:>7.2}  {said}");
    }

    fn agents(&mut self) {
        let crowd = |agents, slots| World::crowd(agents, slots, "worker", false);
        let (one, hundred, thousand) = (crowd(1, 1_000), crowd(100, 1_000), crowd(1_000, 1_000));
        let (eight, line) = (crowd(8, 8), crowd(1_008, 8));
        let mut cases = [
            Case::one(&one),
            Case::one(&hundred),
            Case::one(&thousand),
            Case::in_turn(&hundred),
            Case::in_turn(&thousand),
            Case::one(&eight),
            Case::one(&line),
        ];
        let costs = measure(&mut cases);
        let max = Some(AGENTS_RATIO_MAX);
        Table::head("one step, by live agents");
        self.row("1 thinking", costs[0], costs[0], None);
        self.row("100 thinking, one of them measured", costs[1], costs[0], max);
        self.row("1,000 thinking, one of them measured", costs[2], costs[0], max);
        self.row("100 thinking, each in turn", costs[3], costs[0], max);
        self.row("1,000 thinking, each in turn", costs[4], costs[0], max);
        self.row("8 thinking", costs[5], costs[5], None);
        self.row("8 thinking, 1,000 in line", costs[6], costs[5], max);
    }

    fn history(&mut self) {
        let sizes = [1_000, 100_000].map(|events| World::history(events, ENDLESS));
        let usual = [1_000, 100_000].map(|events| World::history(events, WINDOW));
        let mut cases: Vec<Case> = sizes.iter().chain(&usual).map(Case::one).collect();
        let costs = measure(&mut cases);
        let max = Some(HISTORY_RATIO_MAX);
        Table::head("one step, by journaled events");
        self.row("1k, never compacted", costs[0], costs[0], None);
        self.row("100k, never compacted", costs[1], costs[0], max);
        self.row("1k, window of 200k tokens", costs[2], costs[2], None);
        self.row("100k, window of 200k tokens", costs[3], costs[2], max);
    }

    fn fold() {
        let entries = World::journal(100_000);
        let texts: Vec<String> =
            entries.iter().map(|entry| serde_json::to_string(entry).expect("JSON")).collect();
        let events = entries.iter().map(|entry| entry.events.len()).sum();
        let bytes: usize = texts.iter().map(String::len).sum();
        println!("\nfold of 100,000 entries, {events} events, {} MB of JSON", bytes / 1_000_000);
        rate("from entries", events, || folded(&entries));
        rate("from JSON text", events, || {
            let mut session = Session::new();
            for text in &texts {
                let entry = Entry::read(text).expect("an entry");
                fold(&mut session, &entry).expect("an entry that follows");
            }
            session
        });
        rate("JSON text only read", events, || {
            texts
                .iter()
                .map(|text| Entry::read(text).expect("an entry").events.len())
                .sum::<usize>()
        });
    }

    fn memory(&mut self) {
        println!("\nbytes per idle agent, of {}, beside transcript and brief", memory::AGENTS);
        for (kind, (name, _)) in memory::KINDS.into_iter().enumerate() {
            let bytes = memory::measure(kind);
            let well = bytes <= IDLE_BYTES_MAX;
            self.well &= well;
            println!("  {name:<42}{bytes:>8} B{:>26}{IDLE_BYTES_MAX} {}", "", word(well));
        }
        println!("  {:<42}{:>8} B", "the bare struct", size_of::<Agent>());
    }
}

fn word(well: bool) -> &'static str {
    if well { "ok" } else { "OVER" }
}

/// The median of a few runs; what a run makes is dropped after the clock was read.
fn rate<T>(name: &str, events: usize, run: impl Fn() -> T) {
    let mut samples: Vec<Duration> = (0..5)
        .map(|_| {
            let start = clock();
            let made = black_box(run());
            let took = start.elapsed();
            drop(made);
            took
        })
        .collect();
    let events = f64::from(u32::try_from(events).expect("not that many"));
    let rate = events / median(&mut samples).as_secs_f64();
    let wanted = if rate >= FOLD_RATE_WANTED { "ok" } else { "below" };
    println!("  {name:<42}{:>8.0}k events/s{:>17}500k {wanted} (reported)", rate / 1_000.0, "");
}

fn folded(entries: &[Entry]) -> Session {
    let mut session = Session::new();
    for entry in entries {
        fold(&mut session, entry).expect("an entry that follows");
    }
    session
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

fn micros(time: Duration) -> String {
    format!("{:.2} µs", time.as_secs_f64() * 1e6)
}

#[divan::bench(args = [1, 100, 1_000])]
fn owed_by_live_agents(bencher: Bencher, agents: usize) {
    let world = World::crowd(agents, 1_000, "worker", false);
    bencher.bench_local(|| owed(black_box(&world.session)));
}

#[divan::bench(args = [1_000, 100_000])]
fn owed_by_events(bencher: Bencher, events: u64) {
    let world = World::history(events, ENDLESS);
    bencher.bench_local(|| owed(black_box(&world.session)));
}

#[divan::bench(args = [1, 100, 1_000])]
fn prompt_of_main_by_live_agents(bencher: Bencher, agents: usize) {
    let world = World::crowd(agents, 1_000, "worker", false);
    bencher.bench_local(|| prompt(black_box(&world.session), AgentId::MAIN, world.now));
}

#[divan::bench(args = [1_000, 100_000])]
fn prompt_by_events_never_compacted(bencher: Bencher, events: u64) {
    let world = World::history(events, ENDLESS);
    bencher.bench_local(|| prompt(black_box(&world.session), AgentId(1), world.now));
}

#[divan::bench(args = [1_000, 100_000])]
fn prompt_by_events_window_200k(bencher: Bencher, events: u64) {
    let world = World::history(events, WINDOW);
    bencher.bench_local(|| prompt(black_box(&world.session), AgentId(1), world.now));
}

#[divan::bench(args = [1, 100, 1_000])]
fn view_by_live_agents(bencher: Bencher, agents: usize) {
    let world = World::crowd(agents, 1_000, "worker", false);
    bencher.bench_local(|| view(black_box(&world.session), world.now));
}

#[divan::bench(args = [1_000])]
fn view_with_agents_in_line(bencher: Bencher, agents: usize) {
    let world = World::crowd(agents, 8, "worker", false);
    bencher.bench_local(|| view(black_box(&world.session), world.now));
}
