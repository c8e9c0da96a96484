//! What the screen can show, decided once from flags and environment before anything is shown:
//! our signs or their twins in ASCII, colour or none, how much detail. Only what is ours has
//! twins; what agents and people wrote stays as they wrote it. Colour only repeats what a word
//! says.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use locum_kernel::State;

use crate::flags::{Face, When};

static SCREEN: OnceLock<Screen> = OnceLock::new();

#[derive(Clone, Copy, Debug, Default)]
struct Screen {
    ascii: bool,
    /// Whether standard output and standard error take colour.
    out: bool,
    err: bool,
    plain: Option<Plainly>,
    details: u8,
}

/// Why there is no live tree. A screen reader cannot be detected, so whoever uses one must be able
/// to see what was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plainly {
    Flag,
    Variable(&'static str),
    /// `TERM=dumb`.
    Dumb,
    /// Details go to where the tree would be.
    Details,
}

impl Plainly {
    pub(crate) fn told(self) -> String {
        let how = match self {
            Plainly::Flag => "flag",
            Plainly::Variable(name) => name,
            Plainly::Dumb => "TERM=dumb",
            Plainly::Details => "-v",
        };
        format!("[plain mode: on via {how}]")
    }
}

/// What a colour repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Good,
    Bad,
    Warn,
    Busy,
    Faint,
    /// What to do next.
    Next,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Ink::Good => "32",
            Ink::Bad => "1;31",
            Ink::Warn => "33",
            Ink::Busy => "36",
            Ink::Faint => "2",
            Ink::Next => "1",
        }
    }
}

/// A variable that is there and not empty, as `NO_COLOR` wants it.
fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// The same for those that `0` turns off.
fn is_on(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Before anything is shown; what was decided first holds.
pub(crate) fn set(face: &Face) {
    let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
    let plain = if face.plain {
        Some(Plainly::Flag)
    } else if let Some(name) = ["LOCUM_PLAIN", "ACCESSIBLE"].into_iter().find(|name| is_on(name)) {
        Some(Plainly::Variable(name))
    } else if is_dumb {
        Some(Plainly::Dumb)
    } else {
        (face.verbose > 0).then_some(Plainly::Details)
    };
    let _ = SCREEN.set(Screen {
        ascii: face.ascii || is_on("LOCUM_ASCII"),
        out: is_coloured(face.color, plain, &io::stdout()),
        err: is_coloured(face.color, plain, &io::stderr()),
        plain,
        details: face.verbose,
    });
}

/// A flag is said for this once, a variable for always: the flag wins. `NO_COLOR` wins over
/// `CLICOLOR_FORCE`: too little colour hides nothing.
fn is_coloured(when: Option<When>, plain: Option<Plainly>, to: &impl IsTerminal) -> bool {
    match when.unwrap_or(When::Auto) {
        When::Always => true,
        When::Never => false,
        When::Auto if is_set("NO_COLOR") => false,
        When::Auto => match plain {
            Some(Plainly::Flag | Plainly::Variable(_) | Plainly::Dumb) => false,
            Some(Plainly::Details) | None => {
                is_on("CLICOLOR_FORCE") || (to.is_terminal() && is_set("TERM"))
            }
        },
    }
}

fn screen() -> Screen {
    SCREEN.get().copied().unwrap_or_default()
}

pub(crate) fn plainly() -> Option<Plainly> {
    screen().plain
}

/// How much more than usual is told.
pub(crate) fn details() -> u8 {
    screen().details
}

/// A word for standard output.
pub(crate) fn out(ink: Ink, word: &str) -> String {
    if screen().out { painted(ink, word) } else { word.to_owned() }
}

/// A word for standard error.
pub(crate) fn err(ink: Ink, word: &str) -> String {
    if screen().err { painted(ink, word) } else { word.to_owned() }
}

fn painted(ink: Ink, word: &str) -> String {
    format!("\x1b[{}m{word}\x1b[0m", ink.code())
}

pub(crate) fn of_state(state: State) -> Ink {
    match state {
        State::Approve | State::Input | State::Paused => Ink::Warn,
        State::Starting | State::Model | State::Tool | State::Child => Ink::Busy,
        State::Queued | State::Cancelled => Ink::Faint,
        State::Done => Ink::Good,
        State::Failed => Ink::Bad,
    }
}

/// A text of ours, as this screen shows it.
pub(crate) fn ours(text: &str) -> Cow<'_, str> {
    if screen().ascii { in_ascii(text) } else { Cow::Borrowed(text) }
}

/// A text that we may have cut, and somebody else wrote.
pub(crate) fn cut_end(text: &str) -> Cow<'_, str> {
    match text.strip_suffix('…') {
        Some(text) if screen().ascii => Cow::Owned(format!("{text}{}", cut())),
        Some(_) | None => Cow::Borrowed(text),
    }
}

/// What somebody wrote, with the marks of ours that they took over from a tool's result.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    if screen().ascii && text.contains("[…") {
        return Cow::Owned(text.replace("[…", "[..."));
    }
    Cow::Borrowed(text)
}

/// Where something was left out.
pub(crate) fn cut() -> &'static str {
    if screen().ascii { "..." } else { "…" }
}

/// Between things in one line.
pub(crate) fn between() -> &'static str {
    if screen().ascii { " | " } else { " · " }
}

pub(crate) fn spinner(frame: usize) -> &'static str {
    const TURNS: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠇"];
    const IN_ASCII: [&str; 4] = ["|", "/", "-", "\\"];
    if screen().ascii { IN_ASCII[frame % IN_ASCII.len()] } else { TURNS[frame % TURNS.len()] }
}

/// The twins of the signs we use. Whatever else is there was written by somebody.
fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '…' => out.push_str("..."),
            '·' => out.push('|'),
            '‹' => out.push('<'),
            '›' => out.push('>'),
            '–' | '—' => out.push('-'),
            '→' => out.push_str("->"),
            '␀' => out.push_str("\\0"),
            sign => out.push(sign),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_of_ours_has_a_twin() {
        let cases = [
            ("export KEY=…, then", "export KEY=..., then"),
            ("y · n [why]", "y | n [why]"),
            ("‹U+202E› – →", "<U+202E> - ->"),
            ("Zürich 漢字", "Zürich 漢字"),
        ];
        for (text, expected) in cases {
            assert_eq!(in_ascii(text), expected);
        }
    }
}
