//! Real shells run what the reader calls plain, and nothing may happen that it did not name.
//!
//! Lines are made up from a grammar and then disturbed. The programs in them are stubs that only
//! write down how they were called. Whatever a shell then starts or creates must be a part.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use locum_shell::{Reading, UNKNOWN, read};

const STUBS: [&str; 4] = ["aa", "bb", "cc", "rm"];
/// Wrappers that are real, so that what they start is really started.
const REAL: [&str; 10] =
    ["sh", "bash", "env", "timeout", "nice", "xargs", "nohup", "cat", "true", "find"];
const LINES: usize = 300;
/// `LINES=20000 SEED=7 cargo test -p locum-shell --test shells` looks longer and elsewhere.
fn told(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).expect("small")
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Tokens of a line that mostly makes sense.
fn line(dice: &mut Dice, depth: usize, out: &mut Vec<String>) {
    let put = |out: &mut Vec<String>, text: &str| out.push(text.to_owned());
    match dice.below(if depth > 3 { 3 } else { 16 }) {
        0..=4 => simple(dice, depth, out),
        5 | 6 => {
            line(dice, depth + 1, out);
            put(out, dice.pick(&[" ; ", " && ", " || ", " | ", "\n", ";", "&&", "|", " & "]));
            line(dice, depth + 1, out);
        }
        7 => enclosed(dice, depth, out, "( ", " )"),
        8 => enclosed(dice, depth, out, "{ ", "; }"),
        9 => enclosed(dice, depth, out, "if ", " ; then aa; fi"),
        10 => enclosed(dice, depth, out, "if true; then ", " ; else cc; fi"),
        11 => enclosed(dice, depth, out, "for i in 1 2; do ", " ; done"),
        12 => enclosed(dice, depth, out, "case x in x) ", " ;; esac"),
        13 => enclosed(dice, depth, out, "sh -c '", "'"),
        14 => enclosed(dice, depth, out, "eval \"", "\""),
        _ => {
            let wrapper = ["env ", "timeout 5 ", "nice -n 1 ", "nohup ", "time ", "! ", "exec "];
            put(out, dice.pick(&wrapper));
            simple(dice, depth, out);
        }
    }
}

fn enclosed(dice: &mut Dice, depth: usize, out: &mut Vec<String>, open: &str, close: &str) {
    out.push(open.to_owned());
    line(dice, depth + 1, out);
    out.push(close.to_owned());
}

fn simple(dice: &mut Dice, depth: usize, out: &mut Vec<String>) {
    let names = ["aa", "bb", "cc", "rm", "\\aa", "'bb'", "c\"c\"", "r''m", "a\\a", "xargs rm"];
    out.push(dice.pick(&names).to_owned());
    for _ in 0..dice.below(4) {
        out.push(" ".into());
        let words = [
            "x",
            "'a b'",
            "\"q $X\"",
            "$X",
            "$Y",
            "*",
            "{p,q}",
            "\\;",
            "'$(rm 1)'",
            "#no",
            "a#b",
            "\"\\$(rm 2)\"",
            "${X}",
            "${#X}",
            "$((1+2))",
            "~",
            "-n",
            "--",
            "=",
            "a=b",
            "!",
            "> f1",
            ">f2",
            "2>&1",
            "< /dev/null",
            "2> /dev/null",
            "<<< w",
            "&> f3",
            "\\\n y",
            "<<E\n$X\nE\n",
            "<<'E'\n$(rm 3)\nE\n",
            "\"a\nb\"",
            "[",
            "]",
            "[x]",
        ];
        if dice.below(5) == 0 && depth < 4 {
            let (open, close) =
                [("$(", ")"), ("\"$(", ")\""), ("`", "`"), ("<(", ")")][dice.below(4)];
            enclosed(dice, depth, out, open, close);
        } else {
            out.push(dice.pick(&words).to_owned());
        }
    }
}

fn disturb(dice: &mut Dice, tokens: &mut Vec<String>) {
    for _ in 0..dice.below(4) {
        let at = dice.below(tokens.len().max(1));
        let noise = [
            "'", "\"", "\\", "`", "$(", ")", "(", "}", "{", ";", "&", "|", "\n", " ", "#", "<",
            ">", " rm y ", ";;", "$", "!", "done", "fi", "<<E\n", "E\n", "\\\n", "*", "then ",
        ];
        match dice.below(4) {
            0 if at < tokens.len() => drop(tokens.remove(at)),
            1 if at < tokens.len() => tokens.insert(at, tokens[at].clone()),
            _ => tokens.insert(at.min(tokens.len()), dice.pick(&noise).to_owned()),
        }
    }
}

/// A folder with stubs, links to real wrappers and an empty place to work in.
fn stage(name: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("locum-shells-{name}-{}", std::process::id()));
    let bin = root.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    for stub in STUBS {
        let mut text = String::from("#!/bin/sh\n");
        // One write, so that two at once do not mix.
        let _ = writeln!(text, "l={stub}; for w; do l=\"$l\u{1f}$w\"; done");
        let _ = writeln!(text, "printf '%s\\036' \"$l\" >> \"$LOG\"");
        let path = bin.join(stub);
        fs::write(&path, text).expect("a stub");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("rights");
    }
    for real in REAL {
        let found = ["/bin", "/usr/bin"].map(|at| Path::new(at).join(real));
        if let Some(found) = found.iter().find(|path| path.exists()) {
            std::os::unix::fs::symlink(found, bin.join(real)).expect("a link");
        }
    }
    root
}

/// What a shell started and created.
fn happened(shell: &str, line: &str, root: &Path, nth: usize) -> Vec<String> {
    // What is still running from before writes elsewhere.
    let (work, log) = (root.join(format!("work{nth}")), root.join(format!("log{nth}")));
    fs::create_dir_all(&work).expect("a folder");
    let mut child = Command::new("/usr/bin/timeout");
    let output = child
        .args(["-k", "1", "5", shell, "-c", line])
        .current_dir(&work)
        .env_clear()
        .env("PATH", root.join("bin"))
        // A part keeps the sign for home.
        .env("HOME", "~")
        .env("X", "bb  y")
        .stdin(Stdio::null())
        .env("LOG", &log)
        // Read to its end, which waits for whoever runs in the background.
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .output();
    output.expect("a shell");
    let mut all: Vec<String> = fs::read_to_string(&log)
        .unwrap_or_default()
        .split_terminator('\u{1e}')
        .map(|call| call.replace('\u{1f}', " "))
        .collect();
    for entry in fs::read_dir(&work).expect("a folder").flatten() {
        all.push(format!("> {}", entry.file_name().to_string_lossy()));
    }
    all
}

/// Quotes and blanks apart, is it this part?
fn is_part(part: &str, happened: &str) -> bool {
    let flat = |text: &str| -> String { text.chars().filter(|c| !"' \n\\".contains(*c)).collect() };
    let (part, happened) = (flat(part), flat(happened));
    let mut pieces = part.split(UNKNOWN);
    let Some(first) = pieces.next() else { return false };
    let Some(mut rest) = happened.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

fn shells_do_only_what_was_read(shell: &str, seed: u64) {
    if !Path::new(shell).exists() {
        eprintln!("SKIPPED: there is no {shell} here");
        return;
    }
    let name = shell.rsplit('/').next().expect("a name");
    let root = stage(name);
    let mut dice = Dice(seed + told("SEED").unwrap_or(0) as u64);
    let lines = told("LINES").unwrap_or(LINES);
    let (mut ran, mut did) = (0, 0);
    while ran < lines {
        let mut tokens = Vec::new();
        line(&mut dice, 0, &mut tokens);
        disturb(&mut dice, &mut tokens);
        let line = tokens.concat();
        let Reading::Plain(parts) = read(&line) else { continue };
        ran += 1;
        for it in happened(shell, &line, &root, ran) {
            did += 1;
            let named = parts.iter().any(|part| is_part(part, &it));
            assert!(named, "{shell} -c {line:?}\n  did {it:?}\n  read as {parts:?}");
        }
    }
    // Nothing is shown by lines that do nothing.
    assert!(did > lines / 2, "only {did} things happened");
    fs::remove_dir_all(root).expect("removed");
}

#[test]
fn bash_does_only_what_was_read() {
    shells_do_only_what_was_read("/bin/bash", 0x5eed_0001);
}

#[test]
fn dash_does_only_what_was_read() {
    shells_do_only_what_was_read("/bin/dash", 0x5eed_0002);
}

#[test]
fn zsh_does_only_what_was_read() {
    shells_do_only_what_was_read("/bin/zsh", 0x5eed_0003);
}
