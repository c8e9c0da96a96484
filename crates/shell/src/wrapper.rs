//! Programs that start another one: which of their words are their own options.

use crate::word::Word;

/// How much a wrapper itself matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// The command it starts is all there is to judge.
    Light,
    /// It gives the command other rights or another life, so it is a part of its own as well.
    Heavy,
}

pub(crate) struct Wrapper {
    pub(crate) name: &'static str,
    pub(crate) weight: Weight,
    /// Letters that stand alone, and letters that take a value.
    flags: &'static str,
    valued: &'static str,
    long_flags: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// Words of its own before the command.
    operands: usize,
}

use Weight::{Heavy, Light};

const fn wrapper(name: &'static str, weight: Weight) -> Wrapper {
    Wrapper { name, weight, flags: "", valued: "", long_flags: &[], long_valued: &[], operands: 0 }
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
        operands: 1,
        ..wrapper("timeout", Light)
    },
    Wrapper { valued: "n", long_valued: &["--adjustment"], ..wrapper("nice", Light) },
    Wrapper { flags: "t", valued: "cn", ..wrapper("ionice", Light) },
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
    Wrapper { valued: "cp", operands: 1, ..wrapper("taskset", Heavy) },
    Wrapper { valued: "m", ..wrapper("setarch", Heavy) },
    Wrapper { operands: 1, ..wrapper("chroot", Heavy) },
    Wrapper {
        flags: "ensuxo",
        valued: "wE",
        long_flags: &["--nonblock", "--shared", "--exclusive"],
        long_valued: &["--timeout", "--wait"],
        operands: 1,
        ..wrapper("flock", Heavy)
    },
    Wrapper { flags: "imnpruUCT", long_flags: &["--map-root-user"], ..wrapper("unshare", Heavy) },
    Wrapper { operands: 1, ..wrapper("torsocks", Heavy) },
    wrapper("caffeinate", Heavy),
    wrapper("rlwrap", Heavy),
    wrapper("eatmydata", Heavy),
    wrapper("proxychains", Heavy),
    wrapper("dbus-run-session", Heavy),
];

/// Programs that start what they are told in ways that are not taken apart.
pub(crate) const TANGLED: &[&str] = &[
    "at",
    "batch",
    "bwrap",
    "entr",
    "expect",
    "firejail",
    "gdb",
    "lldb",
    "nsenter",
    "parallel",
    "perf",
    "proot",
    "runuser",
    "script",
    "start-stop-daemon",
    "su",
    "systemd-run",
    "tclsh",
    "valgrind",
    "watch",
    "xvfb-run",
    "machinectl",
    "screen",
    "tmux",
    "crontab",
    "inotifywait",
    "runcon",
    "sg",
    "newgrp",
    "setpriv",
    "capsh",
    "cgexec",
    "prlimit",
    "choom",
    "numactl",
];

pub(crate) fn named(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}

impl Wrapper {
    /// Where the command begins; `None` if an option is not known.
    pub(crate) fn command(&self, words: &[Word]) -> Option<usize> {
        let at = options(words, 1, |letter| self.letter(letter), |long| self.long(long))?;
        // `nice -10 cmd` is older than its letters.
        Some(at + self.operands)
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
