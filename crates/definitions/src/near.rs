//! Names near a name that was not found: how many letters apart, case and dashes aside.

use locum_kernel::distance;

/// The nearest, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    near(wanted, known).into_iter().next()
}

/// At most three, nearest first.
pub(crate) fn near<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const SHOWN: usize = 3;
    let plain = plain(wanted);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for name in known {
        let other = self::plain(name);
        let apart = distance(&plain, &other);
        // A third of the letters may differ, and a whole name inside the other is near.
        let bound = plain.len().max(other.len()) / 3;
        let inside = plain.len() > 2 && (other.contains(&*plain) || plain.contains(&*other));
        if (apart <= bound || (inside && other.len() > 2)) && found.iter().all(|f| f.1 != name) {
            found.push((apart, name));
        }
    }
    found.sort_unstable();
    found.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}

fn plain(name: &str) -> String {
    const COMPARED: usize = 64;
    let letters = name.chars().filter(|sign| !matches!(sign, '-' | '_' | ' ' | '.'));
    letters.flat_map(char::to_lowercase).take(COMPARED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let known = ["instructions", "prompt", "max_turns", "code-review", "review"];
        let cases = [
            ("instruction", "instructions"),
            ("Prompt", "prompt"),
            ("promt", "prompt"),
            ("maxTurns", "max_turns"),
            ("code_review", "code-review"),
            ("zzz", ""),
            ("", ""),
        ];
        for (wanted, expected) in cases {
            assert_eq!(nearest(wanted, known).unwrap_or(""), expected, "{wanted}");
        }
        assert_eq!(near("code_review", known), ["code-review", "review"]);
    }
}
