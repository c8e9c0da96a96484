//! Programs that start another one: which of their words are their own options.

use crate::runner;
use crate::word::Word;

/// How much a wrapper itself matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// The command it starts is all there is to judge.
    Light,
    /// It gives the command other rights or another life, so it is a part of its own as well.
    Heavy,
    /// It is known by its own line, as `npx tsc` is: who allows that allows what it starts. Only
    /// who denies looks inside.
    Told,
}

pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    pub(crate) weight: Weight,
    /// Its own commands that start others (`run` of `uv run`). Without any it always does.
    pub(crate) commands: &'static [&'static str],
    /// Letters that stand alone, and letters that take a value.
    pub(crate) flags: &'static str,
    pub(crate) valued: &'static str,
    pub(crate) long_flags: &'static [&'static str],
    pub(crate) long_valued: &'static [&'static str],
    /// Words of its own before the command.
    pub(crate) operands: Operands,
}

/// What stands between the options of a wrapper and the command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operands {
    None,
    /// A folder, a file, a name.
    Word,
    /// A time, a mask, a priority: some do without it, and then the command is here already.
    Number,
    /// Anything up to `--`.
    Dashes,
}

use Operands::{Dashes, Number};
use Weight::{Heavy, Light};

pub(crate) const fn wrapper(name: &'static str, weight: Weight) -> Wrapper {
    Wrapper {
        name,
        weight,
        commands: &[],
        flags: "",
        valued: "",
        long_flags: &[],
        long_valued: &[],
        operands: Operands::None,
    }
}

/// `time -o` writes a file and `env -S` splits a string: what is not here is not understood.
const WRAPPERS: &[Wrapper] = &[
    Wrapper { flags: "p", ..wrapper("command", Light) },
    wrapper("builtin", Light),
    Wrapper { flags: "cl", valued: "a", ..wrapper("exec", Light) },
    Wrapper { flags: "pv", long_flags: &["--portability", "--verbose"], ..wrapper("time", Light) },
    Wrapper {
        flags: "v",
        valued: "sk",
        long_flags: &["--foreground", "--preserve-status", "--verbose"],
        long_valued: &["--signal", "--kill-after"],
        operands: Number,
        ..wrapper("timeout", Light)
    },
    Wrapper { valued: "n", long_valued: &["--adjustment"], ..wrapper("nice", Light) },
    Wrapper {
        flags: "t",
        valued: "cn",
        long_flags: &["--ignore"],
        long_valued: &["--class", "--classdata"],
        ..wrapper("ionice", Light)
    },
    Wrapper {
        flags: "abdfioRrv",
        valued: "DPT",
        long_flags: &["--batch", "--fifo", "--idle", "--other", "--rr", "--reset-on-fork"],
        operands: Number,
        ..wrapper("chrt", Light)
    },
    Wrapper {
        valued: "ioe",
        long_valued: &["--input", "--output", "--error"],
        ..wrapper("stdbuf", Light)
    },
    Wrapper {
        flags: "iv0",
        valued: "uC",
        long_flags: &["--ignore-environment", "--debug", "--null"],
        long_valued: &["--unset", "--chdir"],
        ..wrapper("env", Light)
    },
    wrapper("chronic", Light),
    wrapper("noglob", Light),
    wrapper("nocorrect", Light),
    wrapper("nohup", Heavy),
    Wrapper {
        flags: "cfw",
        long_flags: &["--ctty", "--fork", "--wait"],
        ..wrapper("setsid", Heavy)
    },
    Wrapper {
        flags: "AbEHiKknPSs",
        valued: "CDghpRrTtUu",
        long_flags: &["--askpass", "--background", "--set-home", "--login", "--non-interactive"],
        long_valued: &["--chdir", "--group", "--host", "--prompt", "--role", "--user"],
        ..wrapper("sudo", Heavy)
    },
    Wrapper { flags: "Lns", valued: "Cu", ..wrapper("doas", Heavy) },
    wrapper("pkexec", Heavy),
    wrapper("busybox", Heavy),
    wrapper("toybox", Heavy),
    wrapper("fakeroot", Heavy),
    wrapper("unbuffer", Heavy),
    wrapper("catchsegv", Heavy),
    Wrapper { flags: "fqvCi", valued: "opeEsIO", ..wrapper("strace", Heavy) },
    Wrapper { flags: "fSC", valued: "oepn", ..wrapper("ltrace", Heavy) },
    Wrapper {
        flags: "ac",
        long_flags: &["--all-tasks", "--cpu-list"],
        operands: Number,
        ..wrapper("taskset", Heavy)
    },
    Wrapper { operands: Operands::Word, ..wrapper("chroot", Heavy) },
    Wrapper {
        flags: "ensuxo",
        valued: "wE",
        long_flags: &["--nonblock", "--shared", "--exclusive"],
        long_valued: &["--timeout", "--wait"],
        operands: Operands::Word,
        ..wrapper("flock", Heavy)
    },
    Wrapper { flags: "imnpruUCT", long_flags: &["--map-root-user"], ..wrapper("unshare", Heavy) },
    wrapper("torsocks", Heavy),
    wrapper("caffeinate", Heavy),
    wrapper("rlwrap", Heavy),
    wrapper("eatmydata", Heavy),
    wrapper("proxychains", Heavy),
    wrapper("dbus-run-session", Heavy),
    Wrapper { flags: "gsvw", valued: "ep", ..wrapper("tini", Heavy) },
    Wrapper {
        flags: "cv",
        valued: "r",
        long_flags: &["--single-child", "--verbose"],
        long_valued: &["--rewrite"],
        ..wrapper("dumb-init", Heavy)
    },
    Wrapper { operands: Operands::Word, ..wrapper("gosu", Heavy) },
    Wrapper { operands: Operands::Word, ..wrapper("su-exec", Heavy) },
    Wrapper { operands: Operands::Word, ..wrapper("setuidgid", Heavy) },
    Wrapper { operands: Operands::Word, ..wrapper("envdir", Heavy) },
];

pub(crate) fn named(name: &str) -> Option<&'static Wrapper> {
    // On some systems the usual ones carry a letter in front.
    let name = PREFIXED.iter().find(|it| **it == name).map_or(name, |it| &it[1..]);
    WRAPPERS.iter().chain(runner::RUNNERS).find(|wrapper| wrapper.name == name)
}

const PREFIXED: &[&str] = &["gchroot", "genv", "gnice", "gnohup", "gstdbuf", "gtime", "gtimeout"];

/// Words in front of a command that starts others: `docker compose exec`, `uv tool run`.
const GROUPS: &[&str] = &["alpha", "beta", "compose", "compute", "container", "tool"];

/// Where a wrapper's command is.
pub(crate) enum Starts {
    /// It is another of its commands, which starts nothing.
    Nothing,
    /// The words from here on.
    At(usize),
    /// It starts something, and its options are not known well enough to say what.
    Unclear,
}

impl Wrapper {
    pub(crate) fn starts(&self, words: &[Word]) -> Starts {
        let mut from = 1;
        if !self.commands.is_empty() {
            match own_command(self.commands, words) {
                Own::None => return Starts::Nothing,
                Own::Unknown => return Starts::Unclear,
                Own::At(at) => from = at + 1,
            }
        }
        if self.operands == Dashes {
            let dashes = words.iter().position(|word| word.text == "--");
            return dashes.map_or(Starts::Unclear, |at| Starts::At(at + 1));
        }
        let letter = |letter: char| self.letter(letter);
        let Some(at) = options(words, from, letter, |long| self.long(long)) else {
            return Starts::Unclear;
        };
        let at = match self.operands {
            Operands::None | Dashes => at,
            Operands::Word => at + 1,
            Number => {
                let is_number = |word: &Word| {
                    word.unknown || word.text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
                };
                if words.get(at).is_some_and(|word| !is_number(word)) {
                    return Starts::Unclear;
                }
                at + 1
            }
        };
        // Some take options behind their operands as well: `flock file -c line`.
        let more = words.get(at).is_some_and(|word| word.text.starts_with('-'));
        if more && words[at - 1].text != "--" { Starts::Unclear } else { Starts::At(at) }
    }

    fn letter(&self, letter: char) -> Option<Takes> {
        if self.flags.contains(letter) {
            Some(Takes::Nothing)
        } else if self.valued.contains(letter) {
            Some(Takes::Value)
        } else if self.name == "nice" && letter.is_ascii_digit() {
            Some(Takes::Nothing)
        } else {
            None
        }
    }

    fn long(&self, name: &str) -> Option<Takes> {
        if self.long_flags.contains(&name) {
            Some(Takes::Nothing)
        } else {
            self.long_valued.contains(&name).then_some(Takes::Value)
        }
    }
}

/// A program's own command.
pub(crate) enum Own {
    /// It is another one.
    None,
    /// Only known when it runs.
    Unknown,
    At(usize),
}

/// Which of these commands it is, behind any options.
pub(crate) fn own_command(commands: &[&str], words: &[Word]) -> Own {
    let is_option = |word: &Word| word.text.starts_with(['-', '+']);
    let mut at = 1;
    while let Some(word) = words.get(at) {
        if commands.contains(&word.text.as_str()) {
            return Own::At(at);
        }
        let is_value = is_option(&words[at - 1]);
        // Without quotes it can become several words.
        if word.unknown && !(is_value && word.quoted) {
            return Own::Unknown;
        }
        let is_group = GROUPS.contains(&word.text.as_str());
        if !is_option(word) && !is_value && !is_group {
            return Own::None;
        }
        at += 1;
    }
    Own::None
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Value,
}

/// Goes over options as most programs do; the place of the first word that is none.
pub(crate) fn options(
    words: &[Word],
    mut at: usize,
    letter: impl Fn(char) -> Option<Takes>,
    long: impl Fn(&str) -> Option<Takes>,
) -> Option<usize> {
    while let Some(word) = words.get(at) {
        if word.may_be_flag() {
            return None;
        }
        let text = word.text.as_str();
        if text == "--" {
            return Some(at + 1);
        }
        if text.starts_with("--") {
            let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
            let takes = long(name)?;
            at += usize::from(takes == Takes::Value && value.is_none());
        } else if text.starts_with('-') && text.len() > 1 {
            let letters: Vec<char> = text.chars().skip(1).collect();
            for (place, one) in letters.iter().enumerate() {
                if letter(*one)? == Takes::Value {
                    at += usize::from(place + 1 == letters.len());
                    break;
                }
            }
        } else {
            break;
        }
        at += 1;
    }
    Some(at)
}
