//! One command to its parts: wrappers are taken off, shells within the line are read again, and
//! what changes the meaning of later words is doubted.

use crate::grammar::HARMLESS;
use crate::word::{Word, shown};
use crate::wrapper::{self, Starts, Takes, Weight, Wrapper, options};
use crate::{DEPTH_MAX, Found, UNKNOWN, Why, guard, runner};

impl Found {
    pub(crate) fn command(&mut self, words: &[Word], depth: u32) {
        let Some(program) = words.first() else { return };
        if depth > DEPTH_MAX {
            return self.doubt(Why::TooDeep);
        }
        if program.text.starts_with('-') && !program.unknown {
            // Options of a word that shells do not agree on: `time -f %e ls`.
            return self.tangled(words, &program.text, depth);
        }
        if !is_program(program) {
            self.part(shown(words));
            return self.hides("the name of a program is not plain");
        }
        let name = basename(&program.text).to_ascii_lowercase();
        let name = name.as_str();
        if let Some(known) = wrapper::named(name) {
            match known.starts(words) {
                Starts::Nothing => {}
                Starts::At(at) => return self.wrapped(words, known, at, depth),
                Starts::Unclear if name == "command" && is_question(words) => {
                    return self.part(shown(words));
                }
                Starts::Unclear => return self.tangled(words, name, depth),
            }
        }
        match name {
            _ if is_shell(name) => self.shell(words, depth),
            "eval" => self.eval(words, depth),
            "xargs" | "gxargs" => self.xargs(words, depth),
            "find" | "gfind" => self.find(words, depth),
            "set" if words[1..].iter().all(|word| STRICTER.contains(&word.text.as_str())) => {}
            _ if IDLE.contains(&program.text.as_str()) => self.idle.push(shown(words)),
            _ if CHANGES.contains(&name) => {
                self.part(shown(words));
                self.hides(format!("{name} can change what later words mean"));
            }
            _ if runner::is_tangled(name, words) => self.tangled(words, name, depth),
            _ => {
                self.part(shown(words));
                self.guarded(name, words, depth);
                self.module(name, words, depth);
            }
        }
    }

    fn wrapped(&mut self, words: &[Word], known: &Wrapper, mut at: usize, depth: u32) {
        let name = known.name;
        if ["env", "sudo", "doas"].contains(&name) {
            while let Some(set) = words.get(at).and_then(Word::assigns) {
                if !HARMLESS.contains(&set) {
                    self.hides(format!("it sets {set}"));
                }
                at += 1;
            }
        }
        let at = at.min(words.len());
        // In quotes it stays one word, which is enough where the line itself is what is allowed.
        let is_one = |word: &Word| known.weight == Weight::Told && word.quoted;
        if words[1..at].iter().any(|word| word.unknown && !is_one(word)) {
            self.hides(format!("the options of {name} are only known when it runs"));
        }
        let command = &words[at..];
        match known.weight {
            Weight::Light if !command.is_empty() => self.command(command, depth + 1),
            Weight::Light | Weight::Heavy => {
                self.part(shown(words));
                self.command(command, depth + 1);
            }
            Weight::Told => {
                self.part(shown(words));
                self.guarded(name, &words[..at], depth);
                self.within += 1;
                // The other machine's shell reads the words again.
                if name == "ssh" {
                    self.line(command, depth);
                } else {
                    self.command(command, depth + 1);
                }
                self.within -= 1;
            }
        }
    }

    /// `python3 -m uv run x` is `uv run x`.
    fn module(&mut self, name: &str, words: &[Word], depth: u32) {
        let Some((module, rest)) = guard::module(name, words) else { return };
        if wrapper::named(module).is_some() {
            let rest = words.get(rest..).unwrap_or_default().iter().cloned();
            let command: Vec<Word> = [Word::literal(module)].into_iter().chain(rest).collect();
            self.within += 1;
            self.command(&command, depth + 1);
            self.within -= 1;
        }
    }

    /// `sh -c '…'` is what the dots are.
    fn shell(&mut self, words: &[Word], depth: u32) {
        let Some(own) = shell_options(words) else {
            return self.tangled(words, &words[0].text, depth);
        };
        if let Some(why) = own.why {
            self.hides(why);
        }
        let Some(script) = words.get(own.end).filter(|word| word.text != "-") else {
            self.part(shown(words));
            return self.hides("a shell that reads commands from elsewhere");
        };
        if !own.line {
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
        if words.iter().any(|word| word.unknown) {
            self.part(shown(words));
            self.hides("eval of something only known when it runs");
        }
        self.line(&words[1..], depth);
    }

    /// Words that a shell puts together and reads again.
    fn line(&mut self, words: &[Word], depth: u32) {
        let line: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        if !line.is_empty() {
            self.read(&line.join(" ").replace(UNKNOWN, "$_"), depth + 1);
        }
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
            return self.tangled(words, "xargs", depth);
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

/// The options of a shell itself.
struct Own {
    /// The first word that is none of them.
    end: usize,
    /// That word is a line.
    line: bool,
    why: Option<String>,
}

/// They are switched on by `-` and off by `+`, and some shells know more of them than others.
fn shell_options(words: &[Word]) -> Option<Own> {
    let mut own = Own { end: 1, line: false, why: None };
    while let Some(word) = words.get(own.end) {
        let text = word.text.as_str();
        let is_option = text.starts_with(['-', '+']) && text.len() > 1;
        if word.may_be_flag() {
            return None;
        }
        if !is_option {
            break;
        }
        own.end += 1;
        if text == "--" {
            break;
        }
        if text.starts_with("--") {
            if !CALM_LONG.contains(&text) {
                return None;
            }
            continue;
        }
        own.line |= text.starts_with('-') && text.contains('c');
        let calm = |c: char| "ceuxlvfCo".contains(c);
        if text.starts_with('+') || !text[1..].chars().all(calm) {
            own.why.get_or_insert(format!("a shell that is told {text}"));
        }
        // The names of options follow, in some shells at once.
        if let Some(named) = text.find(['o', 'O']) {
            let name = words.get(own.end).map_or("", |word| word.text.as_str());
            if named + 1 != text.len() {
                return None;
            }
            if !CALM_NAMED.contains(&name) {
                own.why.get_or_insert(format!("a shell that is told {text} {name}"));
            }
            own.end += 1;
        }
    }
    Some(own)
}

const CALM_LONG: &[&str] = &["--login", "--noprofile", "--norc", "--posix"];
const CALM_NAMED: &[&str] = &["errexit", "noglob", "nounset", "pipefail", "posix", "xtrace"];

/// `command -v ls` only asks where it is.
fn is_question(words: &[Word]) -> bool {
    words.get(1).is_some_and(|word| word.text == "-v")
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
pub(crate) fn is_program(word: &Word) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+@:,-[".contains(c);
    let starts = |c: char| c.is_ascii_alphanumeric() || "_./[:".contains(c);
    let bracket = !word.text.contains('[') || word.text == "[";
    !word.unknown && bracket && word.text.starts_with(starts) && word.text.chars().all(plain)
}

/// Programs are known by their last name, in small letters: some disks do not tell them apart.
fn basename(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Also with a version behind its name.
fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c)))
}

const SHELLS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ash",
    "mksh",
    "yash",
    "rbash",
    "csh",
    "tcsh",
    "fish",
    "pwsh",
    "nu",
    "elvish",
    "xonsh",
    "osh",
    "ysh",
    "posh",
    "lksh",
    "sash",
    "bash-static",
    "zsh-static",
    "powershell",
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
