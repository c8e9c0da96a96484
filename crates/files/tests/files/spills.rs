//! Long results: cut, kept, read again in pages, and never believed when damaged.

use std::fs;
use std::sync::Arc;
use std::thread;

use crate::support::{Scratch, say};
use locum_files::{Desk, Handle, Spills};
use serde_json::json;

fn read_all(desk: &Desk, handle: &Handle) -> String {
    let mut whole = String::new();
    let mut offset = 1;
    loop {
        let path = handle.to_string();
        let page = say(desk, "read", &json!({"path": path, "offset": offset})).unwrap();
        let Some((text, note)) = page.rsplit_once("[lines ") else {
            return whole + &page;
        };
        whole.push_str(text);
        let next = note.rsplit_once("\"offset\": ").unwrap().1;
        offset = next.split('}').next().unwrap().parse().unwrap();
    }
}

#[test]
fn what_is_cut_can_be_read_to_its_end() {
    let scratch = Scratch::new();
    let folder = scratch.0.join("data/spills");
    let desk = Desk::new(scratch.roots()).with_spills(Spills::open_in(&folder).unwrap());
    let spills = Spills::open_in(&folder).unwrap();
    let short = "x".repeat(32 << 10);
    assert_eq!(spills.cut(&short).unwrap().text, short);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    let lines: Vec<String> = (0..50_000).map(|line| format!("line {line}\n")).collect();
    let lines = lines.concat();
    let one = format!("[{}]", "\"äß\", ".repeat(30_000));
    // Nothing ends these but a letter of two, three or four bytes.
    let ends = ["ä", "…", "😀"].map(|end| format!("{lines}{end}"));
    let count = ends.len() + 2;
    for text in [lines, one].into_iter().chain(ends) {
        let cut = spills.cut(&text).unwrap();
        let handle = cut.handle.unwrap();
        assert!(cut.text.len() <= 32 << 10, "{}", cut.text.len());
        let end = &text[text.ceil_char_boundary(text.len() - 100)..];
        assert!(cut.text.starts_with(&text[..1000]) && cut.text.ends_with(end));
        let (head, rest) = cut.text.split_once("[… ").unwrap();
        let call = rest.split_once("read ").unwrap().1.split_once(" …]").unwrap().0;
        let next = say(&desk, "read", &serde_json::from_str(call).unwrap()).unwrap();
        // What the cut says to read next is exactly what follows.
        let (head, next) = (head.replace('\n', ""), next.replace('\n', ""));
        let plain = text.replace('\n', "");
        assert!(plain.starts_with(&head) && plain[head.len()..].starts_with(&next[..5000]));
        let whole = read_all(&desk, &handle);
        assert_eq!(whole.replace('\n', ""), plain);
        assert_eq!(spills.keep(&text).unwrap(), handle);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), count);
}

#[test]
fn handles_that_lead_nowhere() {
    let scratch = Scratch::new();
    scratch.put("data/0123456789abcdef", "secret");
    let spills = Spills::open_in(&scratch.0.join("data/spills")).unwrap();
    let desk = Desk::new(scratch.roots()).with_spills(spills);
    let cases = ["", "x", "0123456789abcdee", "../0123456789abcdef", "0123456789ABCDEF", "."];
    for digits in cases {
        let path = format!("spill:{digits}");
        let expected =
            format!("{path} is not kept here; handles are given when a result is too long to show");
        assert_eq!(say(&desk, "read", &json!({"path": path})), Err(expected.clone()));
        assert_eq!(say(&desk, "grep", &json!({"pattern": "s", "path": path})), Err(expected));
    }
    let desk = Desk::new(scratch.roots());
    assert!(say(&desk, "read", &json!({"path": "spill:0123456789abcdef"})).is_err());
}

#[test]
fn damage_is_seen_and_mended_by_keeping_again() {
    let scratch = Scratch::new();
    let folder = scratch.0.join("spills");
    let spills = Spills::open_in(&folder).unwrap();
    let desk = Desk::new(scratch.roots()).with_spills(Spills::open_in(&folder).unwrap());
    let handle = spills.keep("hello there\n").unwrap().to_string();
    let file = folder.join(handle.strip_prefix("spill:").unwrap());
    let read = || say(&desk, "read", &json!({"path": handle}));
    assert_eq!(read(), Ok("hello there\n".to_owned()));
    assert_eq!(
        say(&desk, "grep", &json!({"pattern": "th", "path": handle})),
        Ok(format!("{handle}:1:hello there"))
    );
    for damage in ["hellO there\n", "", "hello there\n\n"] {
        fs::write(&file, damage).unwrap();
        let why = format!("{handle} is damaged: what is on disk is not what was kept");
        assert_eq!(read(), Err(why));
        assert_eq!(spills.keep("hello there\n").unwrap().to_string(), handle);
        assert_eq!(read(), Ok("hello there\n".to_owned()));
    }
}

#[test]
fn many_keep_the_same_at_once() {
    let scratch = Scratch::new();
    let spills = Arc::new(Spills::open_in(&scratch.0.join("spills")).unwrap());
    let keep = |spills: Arc<Spills>| move || spills.keep(&"x".repeat(100_000)).unwrap();
    let threads: Vec<_> = (0..8).map(|_| thread::spawn(keep(Arc::clone(&spills)))).collect();
    let mut handles: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    handles.dedup();
    assert_eq!(handles.len(), 1);
    assert_eq!(fs::read_dir(scratch.0.join("spills")).unwrap().count(), 1);
}
