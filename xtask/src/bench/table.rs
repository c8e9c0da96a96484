//! What the harness found, as ratios to the floor of the same run, beside what we aim for.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// What is measured of whom, against what of whom, and the most it should be. A rate is compared
/// with a bound of its own.
const ROWS: &[(&str, Figure, Figure, f64)] = &[
    ("read turn / bare loop", ("locum", "/loop/median_us"), ("floor", "/loop/median_us"), 2.0),
    (
        "write turn / loop with one synced commit",
        ("locum-write", "/loop/median_us"),
        ("floor-wal-full", "/loop/median_us"),
        1.5,
    ),
    ("start to first request", ("locum", "/start/warm_ms"), ("floor", "/start/warm_ms"), 2.0),
    (
        "growth with history / floor that keeps it encoded",
        ("locum", "/grow/us_per_kb"),
        ("floor-cached", "/grow/us_per_kb"),
        2.0,
    ),
];

type Figure = (&'static str, &'static str);

pub(super) fn read(results: &Path) -> Result<String> {
    let mut found: BTreeMap<&str, Value> = BTreeMap::new();
    for name in ["floor", "floor-cached", "floor-wal-full", "locum", "locum-write"] {
        let file = results.join(format!("{name}.json"));
        let text = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
        found.insert(name, serde_json::from_str(&text)?);
    }
    let figure = |(client, path): Figure| {
        found.get(client).and_then(|value| value.pointer(path)).and_then(Value::as_f64)
    };
    let mut out = String::from("\n| what | locum | floor | ratio | aim |\n|---|---|---|---|---|\n");
    for (name, ours, floor, most) in ROWS {
        let (ours, floor) = (figure(*ours), figure(*floor));
        let ratio = ours.zip(floor).map(|(ours, floor)| ours / floor);
        let verdict = match ratio {
            Some(ratio) if ratio <= *most => "met",
            Some(_) => "missed",
            None => "not measured",
        };
        let shown = |number: Option<f64>| number.map_or("-".into(), |it| format!("{it:.2}"));
        writeln!(
            out,
            "| {name} | {} | {} | {} | ≤ {most} {verdict} |",
            shown(ours),
            shown(floor),
            shown(ratio)
        )?;
    }
    let most = |path: &str, unit: &str, bound: &str| {
        let number = figure(("locum", "/loop/rss_mb")).filter(|_| path.is_empty());
        let number = number.or_else(|| found["locum"].pointer(path).and_then(Value::as_f64));
        let number = number.map_or("-".into(), |number| format!("{number:.1}"));
        format!("| {unit} | {number} | | | {bound} |\n")
    };
    out += &most("/stream/100000/deltas_per_s", "deltas per second, streamed", "≥ 200000");
    out += &most("/loop/rss_mb", "memory at most in the read loop, MB", "≤ 25");
    out += &most("/spawn/16/last_ms", "first request of the 16th child after, ms", "≤ 20");
    Ok(out)
}
