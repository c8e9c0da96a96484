//! Patterns of rules and grants. `*` is any run of characters, `?` is one, and `:*` at the end of
//! a command's pattern is the end of a word: `cargo test:*` is `cargo test` with or without more
//! words, and not `cargo testament`.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

/// Stands in a part of a shell line for what only the running shell knows.
pub const UNKNOWN: char = '…';

/// How surely a pattern holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    No,
    /// It depends on what only the running shell knows.
    Maybe,
    Yes,
}

/// `*` is any run of characters, `?` is one; everything else is itself.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            Some(_) | None => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                t = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The same for one command of a shell line. Only a `*` can stand for the unknown for certain.
pub(crate) fn fits(pattern: &str, part: &str) -> Fit {
    match pattern.strip_suffix(":*") {
        Some(prefix) => run(prefix, part).max(run(&format!("{prefix} *"), part)),
        None => run(pattern, part),
    }
}

/// Goes over the part once, with every place of the pattern that may have been reached.
fn run(pattern: &str, part: &str) -> Fit {
    if !part.contains(UNKNOWN) {
        return if matches(pattern, part) { Fit::Yes } else { Fit::No };
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let end = pattern.len();
    let mut sure = vec![false; end + 1];
    sure[0] = true;
    let mut maybe = sure.clone();
    pass_stars(&pattern, &mut sure);
    pass_stars(&pattern, &mut maybe);
    for c in part.chars() {
        let Some(first) = maybe.iter().position(|at| *at) else { return Fit::No };
        advance(&pattern, &mut sure, c);
        if c == UNKNOWN {
            // It can be whatever the pattern wants next, for as long as it wants.
            maybe[first..].fill(true);
        } else {
            advance(&pattern, &mut maybe, c);
        }
    }
    match (sure[end], maybe[end]) {
        (true, _) => Fit::Yes,
        (false, true) => Fit::Maybe,
        (false, false) => Fit::No,
    }
}

/// One character further, from the end backwards so that no place is moved twice.
fn advance(pattern: &[char], at: &mut [bool], c: char) {
    at[pattern.len()] = false;
    for (place, wanted) in pattern.iter().enumerate().rev().filter(|(_, wanted)| **wanted != '*') {
        let moves = at[place] && c != UNKNOWN && (*wanted == '?' || *wanted == c);
        at[place] = false;
        at[place + 1] |= moves;
    }
    pass_stars(pattern, at);
}

/// A star may stand for nothing.
fn pass_stars(pattern: &[char], at: &mut [bool]) {
    for (place, c) in pattern.iter().enumerate() {
        if *c == '*' && at[place] {
            at[place + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let cases = [
            ("cargo test*", "cargo test --all", true),
            ("cargo test*", "cargo testament", true),
            ("cargo test", "cargo test --all", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("src/?.rs", "src/a.rs", true),
            ("src/?.rs", "src/ab.rs", false),
            ("", "", true),
            ("", "a", false),
            ("**", "anything", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern:?} against {text:?}");
            // Without anything unknown both ways of matching are one.
            assert_eq!(fits(pattern, text) == Fit::Yes, expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn only_a_star_stands_for_the_unknown() {
        let cases = [
            ("ls *", "ls …", Fit::Yes),
            ("ls *", "ls ….rs", Fit::Yes),
            ("ls ?", "ls …", Fit::Maybe),
            ("ls", "ls …", Fit::No),
            ("git push*", "git …", Fit::Maybe),
            ("git push*", "git pu…", Fit::Maybe),
            ("git push*", "git pu…h", Fit::Maybe),
            ("git push*", "git sta…", Fit::No),
            ("git push*", "git push …", Fit::Yes),
            ("rm * -f*", "rm …", Fit::Maybe),
            ("cargo test:*", "cargo test", Fit::Yes),
            ("cargo test:*", "cargo test --all", Fit::Yes),
            ("cargo test:*", "cargo testament", Fit::No),
            ("cargo test:*", "cargo test…", Fit::Maybe),
            ("cargo:*", "cargo", Fit::Yes),
            ("cargo:*", "cargo-evil", Fit::No),
            ("…", "…", Fit::Maybe),
        ];
        for (pattern, part, expected) in cases {
            assert_eq!(fits(pattern, part), expected, "{pattern:?} against {part:?}");
        }
    }
}
