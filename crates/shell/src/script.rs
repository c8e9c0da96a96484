//! Small languages inside a command: awk and sed can run commands and write files.

use crate::word::Word;

pub(crate) fn awk(arguments: &[Word]) -> Option<String> {
    let unknown = arguments.iter().any(Word::may_be_flag);
    let loads = |word: &Word| {
        let text = word.text.as_str();
        ["-f", "-i", "-l", "-E", "-o", "-p", "-d", "-D", "--"]
            .iter()
            .any(|flag| text.starts_with(flag) && text.len() > 1)
    };
    let acts = |word: &Word| {
        ["system", "|", ">", "getline", "@", "close", "ENVIRON"]
            .iter()
            .any(|mark| word.text.contains(mark))
            || word.unknown && word.text.contains(['{', '('])
    };
    let bad = unknown || arguments.iter().any(|word| loads(word) || acts(word));
    bad.then(|| "an awk program that can run commands or write files".into())
}

/// Only printing, deleting, quitting and substituting are let through.
pub(crate) fn sed(arguments: &[Word]) -> Option<String> {
    let mut given = false;
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        at += 1;
        let text = word.text.as_str();
        if word.may_be_flag() {
            return Some("the options of sed are only known when it runs".into());
        }
        match text {
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "--quiet" => {}
            "-e" | "-ne" => {
                given = true;
                let script = arguments.get(at);
                at += 1;
                if !script.is_some_and(harmless) {
                    return Some(SED.into());
                }
            }
            _ if text.starts_with('-') && text.len() > 1 => {
                return Some(format!("sed {text} can change files or run commands"));
            }
            _ if !given => {
                given = true;
                if !harmless(word) {
                    return Some(SED.into());
                }
            }
            _ => {}
        }
    }
    None
}

const SED: &str = "a sed script that can run commands or write files";

fn harmless(script: &Word) -> bool {
    if script.unknown {
        return false;
    }
    let mut rest: &str = &script.text;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        if rest.is_empty() {
            return true;
        }
        let Some(after) = one(rest) else { return false };
        rest = after;
        if !rest.is_empty() && !rest.starts_with([';', '\n', ' ']) {
            return false;
        }
    }
}

/// One command of a script; what is behind it, if it is one of the harmless.
fn one(script: &str) -> Option<&str> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || ",$!+~ ".contains(c));
        match rest.strip_prefix('/') {
            Some(pattern) => rest = delimited(pattern, '/')?,
            None => break,
        }
    }
    let command = rest.chars().next()?;
    let after = &rest[command.len_utf8()..];
    match command {
        'p' | 'd' | 'q' | '=' => Some(after),
        's' => {
            let mark = after.chars().next().filter(|c| !c.is_alphanumeric() && *c != '\\')?;
            let both = delimited(&after[mark.len_utf8()..], mark)?;
            let flags = delimited(both, mark)?;
            Some(flags.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiI".contains(c)))
        }
        _ => None,
    }
}

/// What comes after the closing mark.
fn delimited(text: &str, mark: char) -> Option<&str> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' => return None,
            c if c == mark => return Some(&text[at + c.len_utf8()..]),
            _ => {}
        }
    }
    None
}
