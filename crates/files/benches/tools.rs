//! What the tools cost, as ratios to a floor measured in the same run: `rg` for searching, plain
//! reads and writes for files. `cargo bench -p locum-files`. Floor and ours take turns, because a
//! machine is never quiet, and what is said is the median.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a program to be read once")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod unix {
    use std::fs::{self, File};
    use std::hint::black_box;
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::Instant;

    use locum_files::{Access, Desk, Roots, Stop};
    use serde_json::{Value, json};

    pub(super) fn main() {
        let scratch =
            std::env::temp_dir().join(format!("locum-files-bench-{}", std::process::id()));
        fs::create_dir_all(&scratch).unwrap();
        let tree = scratch.join("tree");
        grow(&tree);
        search(&tree);
        // Or a tree of the reader's own.
        if let Some(own) = std::env::args().skip(1).find(|word| Path::new(word).is_dir()) {
            search(&PathBuf::from(own));
        }
        files(&scratch.join("files"));
        fs::remove_dir_all(&scratch).unwrap();
    }

    /// Source-like: 4,000 files in 200 folders, some 40 MB, a tenth of it ignored.
    fn grow(top: &Path) {
        for folder in 0..200 {
            let path = top.join(format!("part{}/mod{folder}", folder % 10));
            fs::create_dir_all(&path).unwrap();
            for file in 0..20 {
                let name = if file < 2 { "skip.log" } else { "code.rs" };
                let mut text = String::new();
                for line in 0..250 {
                    let word = (folder * 7919 + file * 104_729 + line * 31) % 10_007;
                    text += "    let value = compute(self.";
                    text += &word.to_string();
                    text += "); // plain words\n";
                }
                fs::write(path.join(format!("{file}-{name}")), text).unwrap();
            }
        }
        fs::write(top.join(".gitignore"), "*.log\n").unwrap();
    }

    fn median(mut times: Vec<f64>) -> f64 {
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    }

    /// Median milliseconds of each, and the ratio.
    fn turns(name: &str, rounds: usize, mut floor: impl FnMut(), mut ours: impl FnMut()) {
        let (mut floors, mut our) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let start = Instant::now();
            floor();
            floors.push(start.elapsed().as_secs_f64() * 1e3);
            let start = Instant::now();
            ours();
            our.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let (floor, our) = (median(floors), median(our));
        println!("{name:44} floor {floor:8.2} ms   ours {our:8.2} ms   {:.2}×", our / floor);
    }

    fn search(tree: &Path) {
        if Command::new("rg").arg("--version").output().is_err() {
            println!("NOT MEASURED: rg is not installed, so searching has no floor");
            return;
        }
        let roots = Roots::new(tree, Access::ReadOnly).unwrap();
        let desk = Desk::new(roots);
        let run = |tool: &str, arguments: &Value| {
            black_box(desk.run("me", tool, arguments, &Stop::new()).unwrap());
        };
        let rg = |words: &[&str]| {
            let output = Command::new("rg").args(words).current_dir(tree).output().unwrap();
            black_box(output);
        };
        let hidden = ["--hidden", "--no-require-git", "-g!.git", "-n"];
        for (name, pattern) in [
            ("grep, a word that is nowhere", "nowhere_at_all"),
            ("grep, a pattern that is nowhere", r"comp\w+\(selfish\.\d+"),
            ("grep, a rare pattern (under 200 lines)", r"self\.100[01]\d\b.*nothing|self\.10006\)"),
        ] {
            let words = [&hidden[..], &["--sort=path", "-e", pattern]].concat();
            turns(
                &format!("{name}, rg sorted"),
                15,
                || rg(&words),
                || {
                    run("grep", &json!({"pattern": pattern}));
                },
            );
            let words = [&hidden[..], &["-e", pattern]].concat();
            turns(
                &format!("{name}, rg as it is"),
                15,
                || rg(&words),
                || {
                    run("grep", &json!({"pattern": pattern}));
                },
            );
        }
        let words = [&hidden[..3], &["--files", "-g*1-code.rs"]].concat();
        turns(
            "glob *1-code.rs, rg --files",
            15,
            || rg(&words),
            || {
                run("glob", &json!({"pattern": "*1-code.rs"}));
            },
        );
    }

    fn files(top: &Path) {
        fs::create_dir_all(top).unwrap();
        let lines: Vec<String> = (0..20_000)
            .map(|line| format!("line {line:06} of some more text, the end of it\n"))
            .collect();
        let lines = lines.concat();
        let path = top.join("f");
        fs::write(&path, &lines).unwrap();
        let desk = Desk::new(Roots::new(top, Access::Writable).unwrap());
        let run = |tool: &str, arguments: &Value| {
            black_box(desk.run("me", tool, arguments, &Stop::new()).unwrap());
        };
        println!("a file of {} bytes", lines.len());
        turns(
            "read, first page",
            101,
            || drop(black_box(fs::read(&path))),
            || {
                run("read", &json!({"path": "f"}));
            },
        );
        turns(
            "read, last page",
            101,
            || drop(black_box(fs::read(&path))),
            || {
                run("read", &json!({"path": "f", "offset": 19_900}));
            },
        );
        let mut number = 0;
        let plain = top.join("plain");
        let synced = || {
            let text = fs::read_to_string(&path).unwrap().replacen("of some", "of much", 1);
            let mut file = File::create(&plain).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.sync_all().unwrap();
            fs::rename(&plain, top.join("g")).unwrap();
            File::open(top).unwrap().sync_all().unwrap();
        };
        turns("edit of one line, plain read+write+sync", 41, synced, || {
            let (old, new) = (format!("line 010000{}", "!".repeat(number % 2)), number + 1);
            let new = format!("line 010000{}", "!".repeat(new % 2));
            let old = if number % 2 == 0 { format!("{old} of") } else { old };
            let new = if number % 2 == 0 { format!("{new} of") } else { new };
            number += 1;
            run("edit", &json!({"path": "f", "edits": [{"old": old, "new": new}]}));
        });
    }
}
