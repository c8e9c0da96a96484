//! What is shown of running tools, held against what they print.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use locum_kernel::{Mode, Outcome};
use locum_runtime::line::{AgentFinished, AgentRef, ReceiptLine, UsageLine};
use locum_runtime::provider::Task;
use serde_json::json;

use super::*;

#[test]
fn only_what_is_new_is_taken() {
    let cases = [
        ("", "a\n", 2, "a\n"),
        ("a\n", "a\nb\n", 2, "b\n"),
        // The window has moved on.
        ("a\nb\n", "b\nc\n", 2, "c\n"),
        // The same again and again.
        ("a\na\n", "a\na\n", 2, "a\n"),
        ("a\na\n", "a\na\n", 4, "a\na\n"),
        // Bytes that are not seen were counted too.
        ("a\n", "a\nb\n", 9, "b\n"),
        ("ab", "abü", 2, "ü"),
        // Nothing of it is known.
        ("a\n", "x\ny\n", 4_000, "x\ny\n"),
    ];
    for (before, tail, more, expected) in cases {
        assert_eq!(fresh(before, tail, more), expected, "{before:?} {tail:?} {more}");
    }
}

#[test]
fn a_line_is_as_it_would_be_seen() {
    let cases = [
        ("10%\r20%\r30%\r\n", "30%"),
        ("  in\u{1b}[31mdented\u{1b}[0m \n", "  indented"),
        ("\n", ""),
    ];
    for (line, expected) in cases {
        assert_eq!(as_seen(line), expected, "{line:?}");
    }
    assert_eq!(newest("one\ntwo\n\n").as_deref(), Some("two"));
    assert_eq!(newest(""), None);
    assert_eq!(as_seen(&"x".repeat(1_000)).chars().count(), CHARACTERS_MAX + 1);
}

#[test]
fn what_never_ends_is_held_in_little_room() {
    let mut heard = Heard::new("main", String::new(), Time(0));
    for _ in 0..100 {
        heard.add(&"ü".repeat(1_000));
    }
    assert!(heard.unfinished.len() <= UNFINISHED_BYTES_MAX, "{}", heard.unfinished.len());
    for _ in 0..1_000 {
        heard.add("a line\n");
    }
    assert_eq!(heard.waiting.len(), WAITING_MAX);
    assert_eq!(heard.left_out.lines, 1_000 - WAITING_MAX as u64);
    assert!(heard.left_out.bytes > 190_000, "{:?}", heard.left_out);
}

/// A clock that is set.
#[derive(Debug, Default)]
struct Set(AtomicU64);

impl Clock for Set {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, _: Time) -> Task<()> {
        Box::pin(std::future::ready(()))
    }
}

fn line(path: &str, body: Body) -> Line {
    let (id, path, label) = ("a0".to_owned(), path.to_owned(), path.to_owned());
    let agent = AgentRef { id, path, label, parent: None, mode: Mode::Floor, depth: 0 };
    let (ts, session) = (String::new(), "s".to_owned());
    Line { v: 1, seq: 1, ts, session, agent, body }
}

fn began(path: &str, call: &str) -> Line {
    let (name, input) = ("exec".to_owned(), json!({ "command": "make" }));
    line(path, Body::ToolStarted { call: call.to_owned(), name, input, class: None })
}

fn printed(path: &str, call: &str, text: &str) -> Line {
    let (call, bytes, tail) = (call.to_owned(), text.len() as u64, text.to_owned());
    line(path, Body::ToolOutput { call, bytes, tail })
}

fn finished(path: &str, call: &str, output: &str) -> Line {
    line(
        path,
        Body::ToolFinished(Box::new(ToolFinished {
            call: call.to_owned(),
            name: "exec".to_owned(),
            ok: true,
            output: output.to_owned(),
            truncated: false,
            handle: None,
            ms: 2_000,
            exit: Some(0),
        })),
    )
}

#[test]
fn it_is_shown_after_a_moment_and_never_after_the_result() {
    let clock = Arc::new(Set::default());
    let mut overheard = Overheard::new(Arc::clone(&clock) as Arc<dyn Clock>);
    assert!(overheard.follow(&began("main", "1")).is_empty());
    assert!(overheard.follow(&printed("main", "1", "a\n")).is_empty());
    assert!(overheard.tick().is_empty());
    clock.0.store(1_000, Ordering::Relaxed);
    assert_eq!(overheard.tick(), ["main: (exec: make)", "main | a"]);
    assert!(overheard.tick().is_empty());
    assert!(overheard.follow(&printed("main", "1", "a\nb")).is_empty());
    // What no piece told is at the end of the result.
    let shown = overheard.follow(&finished("main", "1", "a\nbc\nd\n"));
    assert_eq!(shown, ["main | bc", "main | d", "main: (exec ended after 2.0s, exit 0)"]);
    assert!(overheard.follow(&printed("main", "1", "a\nbc\nd\ne\n")).is_empty());
    clock.0.store(9_000, Ordering::Relaxed);
    assert!(overheard.tick().is_empty());
}

#[test]
fn so_many_lines_a_second_and_the_newest_of_them() {
    let clock = Arc::new(Set::default());
    let mut overheard = Overheard::new(Arc::clone(&clock) as Arc<dyn Clock>);
    overheard.follow(&began("main", "1"));
    let numbers: Vec<String> = (0..100).map(|at: u32| at.to_string()).collect();
    let text = numbers.join("\n") + "\n";
    overheard.follow(&printed("main", "1", &text));
    clock.0.store(1_000, Ordering::Relaxed);
    let shown = overheard.tick();
    assert_eq!(shown[..3], ["main: (exec: make)", "main | [60 lines not shown]", "main | 60"]);
    assert_eq!(shown.len(), LINES_PER_SECOND + 2);
    assert!(overheard.tick().is_empty(), "the second is not over");
    clock.0.store(2_000, Ordering::Relaxed);
    assert_eq!(overheard.tick().last().map(String::as_str), Some("main | 99"));
    assert!(overheard.tick().is_empty());
}

fn printed_so_far(path: &str, call: &str, text: &str) -> Line {
    let tail = &text[text.len().saturating_sub(2_048)..];
    let (call, bytes, tail) = (call.to_owned(), text.len() as u64, tail.to_owned());
    line(path, Body::ToolOutput { call, bytes, tail })
}

/// Every byte is in a line that is shown, in one that is counted, or counted itself.
#[test]
fn what_is_not_shown_is_counted() {
    let clock = Arc::new(Set::default());
    let mut overheard = Overheard::new(Arc::clone(&clock) as Arc<dyn Clock>);
    overheard.follow(&began("main", "1"));
    let (mut text, mut shown) = (String::new(), Vec::new());
    for burst in 1..=5 {
        for number in 0..2_000 {
            let _ = writeln!(text, "{burst} {number:06}");
        }
        clock.0.store(burst * 1_500, Ordering::Relaxed);
        shown.extend(overheard.follow(&printed_so_far("main", "1", &text)));
        clock.0.store(burst * 1_500 + 500, Ordering::Relaxed);
        shown.extend(overheard.tick());
    }
    let result = finished("main", "1", &format!("[…]{}", &text[text.len() - 4_096..]));
    shown.extend(overheard.follow(&result));
    let (mut bytes, mut notices) = (0, 0);
    for line in shown.iter().filter_map(|line| line.strip_prefix("main | ")) {
        let Some(words) = line.strip_prefix('[') else {
            bytes += line.len() as u64 + 1;
            continue;
        };
        notices += 1;
        let words: Vec<&str> = words.split(' ').collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<u64>() else { continue };
            bytes += if pair[1].starts_with("line") { count * 9 } else { count };
        }
    }
    assert!(notices >= 5, "{shown:?}");
    // A line that a gap cuts is counted whole or not at all.
    let total = text.len() as u64;
    assert!(bytes.abs_diff(total) <= 9 * notices, "{bytes} of {total}: {shown:?}");
}

#[test]
fn whoever_prints_at_the_same_time_has_a_share() {
    let clock = Arc::new(Set::default());
    let mut overheard = Overheard::new(Arc::clone(&clock) as Arc<dyn Clock>);
    for (path, call) in [("main/a", "1"), ("main/b", "2")] {
        overheard.follow(&began(path, call));
    }
    let (mut text, mut seconds) = (String::new(), Vec::new());
    for second in 1..=4 {
        for number in 0..50 {
            let _ = writeln!(text, "{second} {number}");
        }
        clock.0.store(second * 1_000, Ordering::Relaxed);
        // Always the same one first.
        let mut shown = overheard.follow(&printed_so_far("main/a", "1", &text));
        shown.extend(overheard.follow(&printed_so_far("main/b", "2", &text)));
        clock.0.store(second * 1_000 + 500, Ordering::Relaxed);
        shown.extend(overheard.tick());
        let of = |path: &str| shown.iter().filter(|line| line.starts_with(path)).count();
        seconds.push((of("main/a | "), of("main/b | ")));
    }
    // The first second is the first one's: nobody knew of another.
    for (a, b) in &seconds[1..] {
        assert!((9..=11).contains(a) && (9..=11).contains(b), "{seconds:?}");
    }
}

#[test]
fn whoever_was_stopped_is_not_heard_any_more() {
    let clock = Arc::new(Set::default());
    let mut overheard = Overheard::new(Arc::clone(&clock) as Arc<dyn Clock>);
    overheard.follow(&began("main/a", "1"));
    overheard.follow(&printed("main/a", "1", "a\n"));
    let end = AgentFinished {
        outcome: Outcome::Cancelled,
        result: String::new(),
        is_error: true,
        reason: String::new(),
        by: "ann".to_owned(),
        receipt: ReceiptLine {
            calls: 1,
            commands: Vec::new(),
            files: Vec::new(),
            children_pending: 0,
            usage: UsageLine::default(),
            cost_usd: None,
            turns: 1,
            ms: 1,
            copy: None,
        },
    };
    overheard.follow(&line("main/a", Body::AgentFinished(Box::new(end))));
    clock.0.store(5_000, Ordering::Relaxed);
    assert!(overheard.tick().is_empty());
    assert!(overheard.follow(&printed("main/a", "1", "a\nb\n")).is_empty());
    assert!(overheard.tick().is_empty());
}
