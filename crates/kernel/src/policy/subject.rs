//! What rules are matched against: the parts that the edge's parser found, or the subject argument
//! taken carefully.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde_json::Value;

use super::pattern::{Fit, fits, matches};
use super::{canon, domain};
use crate::{Class, Subjects};

/// A call as rules see it.
pub(crate) struct Heard {
    class: Class,
    /// The subject argument as it was written.
    pub(super) whole: String,
    /// Other arguments change what the line comes to: where it runs, with what around it. Then
    /// whoever knows the line alone does not know the call.
    beside: bool,
    pub(super) parts: Vec<String>,
    /// The text can hold more than it seems to: a pattern says nothing certain about it.
    pub(super) opaque: Option<String>,
}

impl Heard {
    /// `key` is the argument that is the subject; without one all arguments are.
    pub(super) fn new(
        class: Class,
        key: Option<&str>,
        arguments: &Value,
        found: Option<&Subjects>,
    ) -> Heard {
        let named = key.and_then(|key| arguments.get(key)).and_then(Value::as_str);
        let whole = named.map_or_else(|| format!("{arguments}"), String::from);
        let (parts, opaque) = match found {
            // A parser that found nothing has said nothing: no part would match every allow.
            Some(Subjects::Parts(parts)) if !parts.is_empty() => (parts.clone(), None),
            Some(Subjects::Opaque { opaque, seen }) => (seen.clone(), Some(opaque.clone())),
            Some(Subjects::Parts(_)) | None => {
                let hides = hides_something(&whole, class);
                let why = hides.then(|| String::from("it can hold more than it seems to"));
                (Vec::from([whole.clone()]), why)
            }
        };
        let parts = parts.iter().map(|part| plain(part, class)).collect();
        let beside = class == Class::Exec && key.is_some_and(|key| says_more(arguments, key));
        Heard { class, whole, beside, parts, opaque }
    }

    /// For a deny or an ask: any part, in any spelling. Where it cannot be sure it is `Maybe`.
    pub(super) fn meets(&self, pattern: &str) -> Fit {
        let fit = self.parts.iter().map(|part| self.part_meets(pattern, part)).max();
        let fit = fit.unwrap_or(Fit::No);
        if self.opaque.is_none() {
            return fit;
        }
        fit.max(self.part_meets(pattern, &plain(&self.whole, self.class))).max(Fit::Maybe)
    }

    pub(super) fn part_meets(&self, pattern: &str, part: &str) -> Fit {
        if let Some(name) = self.domain(pattern) {
            return domain::meets(&name, part);
        }
        if self.class != Class::Exec {
            return if matches(pattern, part) { Fit::Yes } else { Fit::No };
        }
        let part = part.strip_prefix(WITHIN).unwrap_or(part);
        let named = by_last_name(part);
        // Where home is only the shell knows.
        let away = named.replace(" ~", " …");
        let fit = [part, &named, &away].into_iter().map(|text| fits(pattern, text)).max();
        let bare = unquoted(pattern);
        let fit = fit.unwrap_or(Fit::No).max(fits(&bare, &unquoted(&named)));
        let forms = canon::forms(&named).into_iter();
        let beneath = forms
            .map(|(form, sure)| fits(pattern, &form).max(fits(&bare, &unquoted(&form))).min(sure));
        beneath.max().unwrap_or(Fit::No).max(fit)
    }

    /// For an allow: every part, each by some pattern. Exactly what somebody wrote is theirs.
    pub(super) fn is_admitted(&self, patterns: &[&str]) -> bool {
        // A star of the shell is not the star of a rule.
        let exactly = |pattern: &&str| *pattern == self.whole && !pattern.contains(['*', '?']);
        if !self.beside && patterns.iter().any(exactly) {
            return true;
        }
        let admitted = |part: &String| {
            patterns.iter().any(|it| self.admits(it, part)) || self.admits_calm(patterns, part)
        };
        let mut judged = self.parts.iter().filter(|part| !self.is_within(part)).peekable();
        self.opaque.is_none() && judged.peek().is_some() && judged.all(admitted)
    }

    /// The same command without options that make no difference, which goes to a folder that must
    /// be allowed as well.
    pub(super) fn admits_calm(&self, patterns: &[&str], part: &str) -> bool {
        let Some((folder, form)) = self.calm(part) else { return false };
        let by_some = |part: &str| patterns.iter().any(|it| self.admits(it, part));
        by_some(&form) && folder.is_none_or(|folder| by_some(&folder))
    }

    pub(super) fn calm(&self, part: &str) -> Option<(Option<String>, String)> {
        canon::calm(of_the_system(part)).filter(|_| self.class == Class::Exec)
    }

    pub(super) fn is_within(&self, part: &str) -> bool {
        self.class == Class::Exec && part.starts_with(WITHIN)
    }

    fn domain(&self, pattern: &str) -> Option<String> {
        domain::named(pattern).filter(|_| self.class == Class::Network)
    }

    /// An allow pattern must not be stretched by what a wildcard can swallow.
    pub(super) fn admits(&self, pattern: &str, part: &str) -> bool {
        if let Some(name) = self.domain(pattern) {
            return domain::admits(&name, part);
        }
        match self.class {
            Class::Exec => {
                fits(pattern, part) == Fit::Yes || fits(pattern, of_the_system(part)) == Fit::Yes
            }
            Class::Read | Class::Write | Class::Network | Class::Delegate => {
                !hides_something(part, self.class) && matches(pattern, part)
            }
        }
    }
}

/// Stands before what another part runs and says so itself: `npx tsc` runs `tsc`. Only who denies
/// looks at it.
pub const WITHIN: &str = "+run ";

/// How long a command may take and whether it is waited for changes nothing about what it does;
/// a folder, an environment, a shell, the network do.
fn says_more(arguments: &Value, key: &str) -> bool {
    let more = |(name, value): (&String, &Value)| match value {
        Value::Null | Value::Number(_) | Value::Bool(false) => false,
        Value::Bool(true) => name != "background",
        Value::String(text) => name != key && !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    };
    arguments.as_object().is_some_and(|map| map.iter().any(more))
}

fn plain(text: &str, class: Class) -> String {
    match class {
        Class::Read | Class::Write => plain_path(text),
        Class::Exec => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Class::Network | Class::Delegate => text.into(),
    }
}

/// A shell line with more than one command or value in it, a path that climbs, a NUL.
fn hides_something(text: &str, class: Class) -> bool {
    let hides = match class {
        Class::Exec => text.contains(SHELL_MARKS),
        Class::Read | Class::Write => text.split(['/', '\\']).any(|step| step == ".."),
        Class::Network | Class::Delegate => false,
    };
    hides || text.contains('\0')
}

/// Characters with which a shell line can hold more than one command or value.
const SHELL_MARKS: &[char] = &[
    ';', '&', '|', '$', '`', '<', '>', '(', ')', '{', '}', '[', ']', '\n', '\r', '\\', '#', '"',
    '\'', '=', '~', '*', '?', '!',
];

/// `/opt/x/RM -rf x` is `rm -rf x` to whoever denies.
fn by_last_name(part: &str) -> String {
    let (program, rest) = part.split_once(' ').unwrap_or((part, ""));
    let name = program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase();
    if rest.is_empty() { name } else { format!("{name} {rest}") }
}

/// `/bin/ls -l` is `ls -l` to whoever allows; `./ls` and `/tmp/ls` are somebody else's.
fn of_the_system(part: &str) -> &str {
    let folders = ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"];
    let rest = folders.iter().find_map(|folder| part.strip_prefix(folder));
    rest.filter(|rest| !rest.split(' ').next().unwrap_or(rest).contains('/')).unwrap_or(part)
}

fn unquoted(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect()
}

/// `./a//b` is `a/b`, so that a rule for one holds for the other.
fn plain_path(path: &str) -> String {
    let root = if path.starts_with('/') { "/" } else { "" };
    let steps = path.split('/').filter(|step| !step.is_empty() && *step != ".");
    format!("{root}{}", steps.collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn heard(class: Class, text: &str, found: Option<&Subjects>) -> Heard {
        Heard::new(class, Some("it"), &json!({ "it": text }), found)
    }

    #[test]
    fn a_parser_that_found_nothing_opens_no_door() {
        let nothing = Subjects::Parts(Vec::new());
        let heard = heard(Class::Exec, "rm -rf / *", Some(&nothing));
        assert!(!heard.parts.is_empty() && heard.opaque.is_some());
    }

    #[test]
    fn an_allow_pattern_swallows_no_second_command_and_no_way_out() {
        let cases = [
            ("cargo test*", "cargo test --all", Class::Exec, true),
            ("cargo test*", "/usr/bin/cargo test --all", Class::Exec, true),
            ("cargo test*", "/tmp/cargo test --all", Class::Exec, false),
            ("cargo test*", "/usr/bin/../../tmp/cargo test", Class::Exec, false),
            ("cargo test*", "./cargo test --all", Class::Exec, false),
            ("cargo test*", "cargo test; rm -rf /", Class::Exec, false),
            ("cargo test*", "cargo test && curl x", Class::Exec, false),
            ("cargo test*", "cargo test $(id)", Class::Exec, false),
            ("cargo test*", "cargo test `id`", Class::Exec, false),
            ("cargo test*", "cargo test > /etc/passwd", Class::Exec, false),
            ("cargo test > log", "cargo test > log", Class::Exec, true),
            ("cargo test*", "cargo test\nid", Class::Exec, false),
            ("src/*", "src/lib.rs", Class::Write, true),
            ("src/*", "src/../../etc/passwd", Class::Write, false),
            ("src/*", "src/a\0b", Class::Write, false),
        ];
        assert_eq!(by_last_name("/bin/RM -rf x"), "rm -rf x");
        assert_eq!(plain_path("./a//./b"), "a/b");
        assert_eq!(plain_path("/a/b/"), "/a/b");
        for (pattern, text, class, expected) in cases {
            let admitted = heard(class, text, None).is_admitted(&[pattern]);
            assert_eq!(admitted, expected, "{pattern:?} {text:?}");
        }
    }

    /// What another part runs can be denied; it takes no rule of its own to be allowed.
    #[test]
    fn what_a_part_runs_is_only_for_denials() {
        let parts = |list: &[&str]| list.iter().map(|part| String::from(*part)).collect();
        let both = Subjects::Parts(parts(&["npx tsc -p a", "+run tsc -p a"]));
        let heard_both = heard(Class::Exec, "x", Some(&both));
        assert!(heard_both.is_admitted(&["npx *"]));
        assert!(!heard_both.is_admitted(&["tsc *"]));
        assert_eq!(heard_both.meets("tsc *"), Fit::Yes);
        assert_eq!(heard_both.meets("rm *"), Fit::No);
        // Alone it is nothing to allow, and elsewhere it is a name like any other.
        let alone = Subjects::Parts(parts(&["+run tsc"]));
        assert!(!heard(Class::Exec, "x", Some(&alone)).is_admitted(&["*"]));
        let linked = Subjects::Parts(parts(&["+run a", "src/a"]));
        assert!(!heard(Class::Write, "x", Some(&linked)).is_admitted(&["src/*"]));
    }

    /// The words of a line allow the line, not whatever else is asked for beside it.
    #[test]
    fn the_line_word_for_word_allows_nothing_beside_it() {
        let parts = |list: &[&str]| list.iter().map(|part| String::from(*part)).collect();
        let cases = [
            (json!({ "it": "make" }), Subjects::Parts(parts(&["make"])), true),
            (
                json!({ "it": "make", "timeout_s": 9, "background": true, "network": false }),
                Subjects::Parts(parts(&["make"])),
                true,
            ),
            (
                json!({ "it": "make", "network": true }),
                Subjects::Parts(parts(&["make", "+network"])),
                false,
            ),
            (
                json!({ "it": "make", "cwd": "/elsewhere" }),
                Subjects::Parts(parts(&["cd /elsewhere", "make"])),
                false,
            ),
            (
                json!({ "it": "make", "env": { "PATH": "." } }),
                Subjects::Opaque { opaque: "env".into(), seen: parts(&["make"]) },
                false,
            ),
        ];
        for (arguments, found, expected) in cases {
            let heard = Heard::new(Class::Exec, Some("it"), &arguments, Some(&found));
            assert_eq!(heard.is_admitted(&["make"]), expected, "{arguments}");
        }
    }

    #[test]
    fn parts_are_admitted_by_different_patterns_and_opaque_lines_by_none() {
        let parts = |list: &[&str]| list.iter().map(|part| String::from(*part)).collect();
        let both = Subjects::Parts(parts(&["cargo test", "git status"]));
        let patterns = ["cargo *", "git status*"];
        assert!(heard(Class::Exec, "x", Some(&both)).is_admitted(&patterns));
        assert!(!heard(Class::Exec, "x", Some(&both)).is_admitted(&["cargo *"]));
        let opaque = Subjects::Opaque { opaque: "why".into(), seen: parts(&["cargo test"]) };
        let heard = heard(Class::Exec, "cargo test", Some(&opaque));
        assert!(!heard.is_admitted(&["cargo *", "*"]));
        assert!(heard.is_admitted(&["cargo test"]), "the whole line, word for word");
        assert_eq!(heard.meets("rm *"), Fit::Maybe);
        assert_eq!(heard.meets("cargo *"), Fit::Yes);
        let home = Subjects::Parts(parts(&["cat ~/.ssh/id"]));
        let heard = self::heard(Class::Exec, "x", Some(&home));
        assert_eq!(heard.meets("cat /var/*"), Fit::Maybe);
        assert_eq!(heard.meets("cat ~/.ssh/*"), Fit::Yes);
    }
}
