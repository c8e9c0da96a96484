//! One command to its parts: wrappers are taken off, shells within the line are read again, and
//! what changes the meaning of later words is doubted.

use crate::grammar::HARMLESS;
use crate::word::{Word, shown};
use crate::wrapper::{self, TANGLED, Takes, Weight, options};
use crate::{DEPTH_MAX, Found, UNKNOWN, Why, guard};

impl Found {
    pub(crate) fn command(&mut self, words: &[Word], depth: u32) {
        let Some(program) = words.first() else { return };
        if depth > DEPTH_MAX {
            return self.doubt(Why::TooDeep);
        }
        if !is_program(program) {
            self.part(shown(words));
            return self.hides("the name of a program is not plain");
        }
        let name = basename(&program.text);
        if let Some(known) = wrapper::named(name) {
            return self.wrapped(words, known, depth);
        }
        match name {
            _ if SHELLS.contains(&name) => self.shell(words, depth),
            "eval" => self.eval(words, depth),
            "xargs" | "gxargs" => self.xargs(words, depth),
            "find" | "gfind" => self.find(words, depth),
            "set" if words[1..].iter().all(|word| STRICTER.contains(&word.text.as_str())) => {}
            _ if IDLE.contains(&program.text.as_str()) => self.idle.push(shown(words)),
            _ if CHANGES.contains(&name) => {
                self.part(shown(words));
                self.hides(format!("{name} can change what later words mean"));
            }
            _ if TANGLED.contains(&name) => self.tangled(words, name),
            _ => {
                self.part(shown(words));
                if let Some(why) = guard::doubt(name, words) {
                    self.hides(why);
                }
            }
        }
    }

    fn wrapped(&mut self, words: &[Word], known: &wrapper::Wrapper, depth: u32) {
        let name = known.name;
        let asks = name == "command" && words.get(1).is_some_and(|w| w.text == "-v");
        let Some(mut at) = known.command(words).filter(|_| !asks) else {
            if asks {
                return self.part(shown(words));
            }
            return self.tangled(words, name);
        };
        if ["env", "sudo", "doas"].contains(&name) {
            while let Some(set) = words.get(at).and_then(Word::assigns) {
                if !HARMLESS.contains(&set) {
                    self.hides(format!("it sets {set}"));
                }
                at += 1;
            }
        }
        if words.get(1..at).is_some_and(|own| own.iter().any(|word| word.unknown)) {
            self.hides(format!("the options of {name} are only known when it runs"));
        }
        let command = words.get(at..).unwrap_or_default();
        if known.weight == Weight::Heavy || command.is_empty() {
            self.part(shown(words));
        }
        self.command(command, depth + 1);
    }

    /// A program that starts others in a way that is not understood: whatever it may start is
    /// seen, so that a deny still holds.
    fn tangled(&mut self, words: &[Word], name: &str) {
        self.part(shown(words));
        self.hides(format!("{name} starts other programs"));
        for at in 1..words.len().min(TAILS_MAX) {
            self.part(shown(&words[at..]));
            // `su -c 'rm x'` and the like.
            if words[at].text.contains(' ') {
                self.part(words[at].text.clone());
            }
        }
    }

    /// `sh -c '…'` is what the dots are.
    fn shell(&mut self, words: &[Word], depth: u32) {
        let letter = |letter: char| match letter {
            'c' | 'e' | 'u' | 'x' | 'l' => Some(Takes::Nothing),
            'o' => Some(Takes::Value),
            _ => None,
        };
        let Some(at) = options(words, 1, letter, |_| None) else {
            return self.tangled(words, &words[0].text);
        };
        let own = &words[1..at.min(words.len())];
        let is_command = |word: &Word| {
            word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c')
        };
        let line = own.iter().any(is_command);
        let Some(script) = words.get(at) else {
            self.part(shown(words));
            return self.hides("a shell that reads commands from elsewhere");
        };
        if !line {
            self.part(shown(words));
            return;
        }
        if !STANDARD.contains(&words[0].text.as_str()) {
            self.part(shown(words));
        }
        if script.unknown {
            self.part(shown(words));
            self.hides("a shell that is told something only known when it runs");
        }
        self.read(&script.text.replace(UNKNOWN, "$_"), depth + 1);
    }

    fn eval(&mut self, words: &[Word], depth: u32) {
        let line: Vec<&str> = words[1..].iter().map(|word| word.text.as_str()).collect();
        if words.iter().any(|word| word.unknown) {
            self.part(shown(words));
            self.hides("eval of something only known when it runs");
        }
        self.read(&line.join(" ").replace(UNKNOWN, "$_"), depth + 1);
    }

    fn xargs(&mut self, words: &[Word], depth: u32) {
        let letter = |letter: char| match letter {
            '0' | 'r' | 't' | 'x' | 'i' => Some(Takes::Nothing),
            'I' | 'n' | 'P' | 'L' | 'd' | 'a' | 'E' | 's' => Some(Takes::Value),
            _ => None,
        };
        let long = |name: &str| match name {
            "--null" | "--no-run-if-empty" | "--verbose" | "--exit" => Some(Takes::Nothing),
            "--max-args" | "--max-procs" | "--max-lines" | "--delimiter" => Some(Takes::Value),
            _ => None,
        };
        let Some(at) = options(words, 1, letter, long) else {
            return self.tangled(words, "xargs");
        };
        let at = at.min(words.len());
        let own = &words[1..at];
        let replaces = own.iter().any(|word| word.text.starts_with("-I"));
        let usual = own.iter().any(|word| word.text == "{}" || word.text == "-I{}");
        if (replaces && !usual) || own.iter().any(|word| word.unknown) {
            self.hides("what xargs replaces is not plain");
        }
        let mut command = braces_unknown(&words[at..]);
        if command.is_empty() {
            command.push(Word::literal("echo"));
        }
        if !replaces {
            command.push(Word::anything());
        }
        self.command(&command, depth + 1);
    }

    /// `-exec` starts a command, `-delete` is `rm`, `-fprint` writes.
    fn find(&mut self, words: &[Word], depth: u32) {
        self.part(shown(words));
        let mut at = 1;
        while let Some(word) = words.get(at) {
            at += 1;
            if word.may_be_flag() {
                self.hides("find could be told to run something");
            }
            match word.text.as_str() {
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let rest = &words[at..];
                    let end = rest.iter().position(|word| word.text == ";" || word.text == "+");
                    let end = end.unwrap_or(rest.len());
                    if end == 0 {
                        self.hides("find is told to run nothing");
                    }
                    self.command(&braces_unknown(&rest[..end]), depth + 1);
                    at += end;
                }
                "-delete" => self.part(format!("rm {UNKNOWN}")),
                "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                    let file = words.get(at).map(Word::shown).unwrap_or_default();
                    self.part(format!("> {file}"));
                }
                "-files0-from" | "--files0-from" => self.hides("find -files0-from"),
                _ => {}
            }
        }
    }
}

/// What `{}` becomes is only known when it runs.
fn braces_unknown(words: &[Word]) -> Vec<Word> {
    let replaced = words.iter().map(|word| {
        let unknown = word.unknown || word.text.contains("{}");
        let text = word.text.replace("{}", &UNKNOWN.to_string());
        Word { text, quoted: word.quoted, unknown }
    });
    replaced.collect()
}

/// A name that is the same to every shell and every eye.
fn is_program(word: &Word) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+@:,-[".contains(c);
    let starts = |c: char| c.is_ascii_alphanumeric() || "_./[:".contains(c);
    let bracket = !word.text.contains('[') || word.text == "[";
    !word.unknown && bracket && word.text.starts_with(starts) && word.text.chars().all(plain)
}

/// Programs are known by their last name, in small letters: some disks do not tell them apart.
fn basename(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "yash", "rbash", "csh", "tcsh", "fish",
    "pwsh", "nu", "elvish", "xonsh",
];
/// Shells that can be taken for the one that runs the line.
const STANDARD: &[&str] =
    &["sh", "bash", "dash", "zsh", "/bin/sh", "/bin/bash", "/usr/bin/bash", "/bin/zsh"];
/// Without any effect beyond the line.
const IDLE: &[&str] = &["true", "false", ":", "exit", "break", "continue", "return", "wait"];
/// `set -e` and the like only make the line stop earlier.
const STRICTER: &[&str] =
    &["-e", "-u", "-x", "-eu", "-ex", "-eux", "-o", "pipefail", "-euo", "-eo", "-euxo"];
const CHANGES: &[&str] = &[
    ".",
    "source",
    "alias",
    "unalias",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "set",
    "shopt",
    "setopt",
    "trap",
    "enable",
    "hash",
    "bind",
    "complete",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "let",
    "history",
    "fc",
    "autoload",
    "zmodload",
    "emulate",
    "rehash",
    "shift",
    "umask",
    "ulimit",
    "pushd",
    "popd",
];
/// Tails of a tangled command that are looked at.
const TAILS_MAX: usize = 24;
