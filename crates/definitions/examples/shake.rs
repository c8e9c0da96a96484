//! `cargo run --release --example shake -- SEED ROUNDS PATH…`: every definition in these folders,
//! spoilt in ROUNDS ways each and loaded. Says how long that took, and keeps those that were
//! slower than all before in `locum-shake-slowest` among the temporary files.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use locum_definitions::{Given, Kind, Origin, Scope, build, load_from};

#[path = "../tests/support/shake.rs"]
mod shake;

use shake::{Dice, shaken};

fn main() -> io::Result<()> {
    let mut words = std::env::args().skip(1);
    let number = |word: Option<String>| word.and_then(|word| word.parse().ok()).unwrap_or(1);
    let (seed, rounds): (u64, u64) = (number(words.next()), number(words.next()));
    let mut files = Vec::new();
    for word in words {
        walk(Path::new(&word), &mut files)?;
    }
    files.sort();
    let folder = std::env::temp_dir().join(format!("locum-shake-{}", std::process::id()));
    let mut times: Vec<(Duration, String)> = Vec::new();
    let (mut good, mut bad) = (0, 0);
    let mut slowest = Duration::ZERO;
    let (mut late, mut missed) = (0, 0);
    let kept = std::env::temp_dir().join("locum-shake-slowest");
    std::fs::create_dir_all(&kept)?;
    for (number, file) in files.iter().enumerate() {
        let whole = std::fs::read(file)?;
        let inside = file.parent().and_then(Path::file_name).unwrap_or_default();
        let path = folder.join(inside).join(file.file_name().unwrap_or_default());
        std::fs::create_dir_all(path.parent().unwrap_or(&folder))?;
        for round in 0..rounds {
            let mut dice = Dice::new(seed + rounds * u64::try_from(number).unwrap_or(0) + round);
            let (bytes, way) = shaken(&whole, &mut dice);
            std::fs::write(&path, bytes)?;
            let origin =
                Origin { file: path.clone(), root: folder.clone(), scope: Scope::Workspace };
            let (first, loaded) = timed(&origin);
            if loaded {
                good += 1;
            } else {
                bad += 1;
            }
            // Other programs only ever make it longer: the shortest of a few is the file's own.
            let again = if first > CLOSE { 4 } else { 0 };
            let took = (0..again).map(|_| timed(&origin).0).fold(first, Duration::min);
            late += usize::from(first > LIMIT);
            missed += usize::from(took > LIMIT);
            if took > slowest {
                slowest = took;
                std::fs::copy(&path, kept.join(path.file_name().unwrap_or_default()))?;
            }
            times.push((took, format!("{way} round {round} {}", file.display())));
        }
    }
    std::fs::remove_dir_all(&folder)?;
    times.sort();
    let mut out = io::stdout().lock();
    writeln!(out, "{} files, {good} loaded, {bad} refused", times.len())?;
    writeln!(out, "over {LIMIT:?}: {late} at first, {missed} also in the best of five")?;
    for part in [50, 90, 99, 100] {
        if let Some((took, name)) = times.get((times.len().max(1) - 1) * part / 100) {
            writeln!(out, "p{part:<4}{took:?}  {name}")?;
        }
    }
    for (took, name) in times.iter().rev().take(10) {
        writeln!(out, "slow {took:?}  {name}")?;
    }
    Ok(())
}

const LIMIT: Duration = Duration::from_millis(100);
const CLOSE: Duration = Duration::from_millis(30);

/// Loads and builds once: how long, and whether it loaded.
fn timed(origin: &Origin) -> (Duration, bool) {
    // Measuring is the point here, and nothing is replayed.
    #[expect(clippy::disallowed_methods, reason = "an example measures real time")]
    let began = std::time::Instant::now();
    let loaded = load_from(origin);
    if let Some(definition) = &loaded.definition {
        drop(build(definition, &Given::default()));
    }
    (began.elapsed(), loaded.definition.is_some())
}

fn walk(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            walk(&entry?.path(), files)?;
        }
    } else if Kind::of(path).is_some() {
        files.push(path.to_owned());
    }
    Ok(())
}
