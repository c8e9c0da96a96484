//! The usual rules against lines that try to get past them, and against lines nobody should be
//! asked about. The judge is the kernel's own; only the reading of the line is this crate's.

use std::fmt::Write as _;

use locum_kernel::{
    Class, Explanation, PolicyMode, Question, Rule, RuleKind, Subjects, ToolSpec, UNKNOWN, WITHIN,
    explain,
};
use locum_shell::{Reading, read};
use serde_json::json;

const ALLOWED: &[&str] = &[
    "[ *",
    "awk *",
    "basename *",
    "cargo *",
    "cat *",
    "cat",
    "cd *",
    "command -v *",
    "cut *",
    "date",
    "date *",
    "df *",
    "diff *",
    "dirname *",
    "du *",
    "echo *",
    "fd *",
    "file *",
    "find *",
    "git add *",
    "git branch*",
    "git diff*",
    "git log*",
    "git show*",
    "git status*",
    "go test*",
    "grep *",
    "head",
    "head *",
    "jq *",
    "ls",
    "ls *",
    "make",
    "make *",
    "mkdir *",
    "node --version",
    "npm run lint:*",
    "npm test:*",
    "printf *",
    "pwd",
    "pytest:*",
    "python3 -m pytest:*",
    "rg *",
    "sed *",
    "seq *",
    "sleep *",
    "sort",
    "sort *",
    "stat *",
    "tail *",
    "test *",
    "tr *",
    "tree:*",
    "uniq *",
    "wc *",
    "which *",
];

fn rule(kind: RuleKind, pattern: &str) -> Rule {
    Rule { kind, tool: "exec".into(), pattern: Some(pattern.into()), agent: None }
}

fn judged(line: &str, rules: &[Rule], mode: PolicyMode) -> Explanation {
    let subjects = match read(line) {
        Reading::Plain(parts) => Subjects::Parts(parts),
        Reading::Opaque { why, seen } => Subjects::Opaque { opaque: why.to_string(), seen },
    };
    let tool = ToolSpec {
        brought: false,
        caution: None,
        identity: None,
        name: "exec".into(),
        class: Class::Exec,
        idempotent: false,
        subject: Some("command".into()),
        timeout_ms: None,
    };
    let arguments = json!({ "command": line });
    let (tool, arguments, subjects) = (&tool, &arguments, Some(&subjects));
    explain(&Question { rules, mode, agent: "main", definition: None, tool, arguments, subjects })
}

/// The lines of a file of cases, with their signs replaced.
fn lines(text: &str) -> Vec<String> {
    let cases = text.lines().filter(|line| !line.starts_with("# ") && !line.is_empty());
    // A comment of the shell is written behind its sign, so that it is not one of this file.
    cases.map(signs).collect()
}

fn signs(line: &str) -> String {
    let line = line.replace('␊', "\n").replace('␍', "\r").replace('␀', "\0").replace('␉', "\t");
    let mut out = String::new();
    let mut rest = line.as_str();
    while let Some((before, after)) = rest.split_once('⟨') {
        let (code, behind) = after.split_once('⟩').expect("a closed sign");
        let code = u32::from_str_radix(code, 16).expect("hexadecimal digits");
        out.push_str(before);
        out.push(char::from_u32(code).expect("a character"));
        rest = behind;
    }
    out + rest
}

fn told(failures: &[(String, Explanation)]) -> String {
    let mut text = format!("{} lines:\n", failures.len());
    for (line, explained) in failures {
        let _ =
            writeln!(text, "  {line:?}\n    {}: {}", explained.verdict.word(), explained.because);
        for part in &explained.parts {
            let _ = writeln!(text, "      {:?} {:?}", part.part, part.rule);
        }
    }
    text
}

#[test]
fn nothing_gets_past_the_usual_rules() {
    let rules: Vec<Rule> = ALLOWED.iter().map(|it| rule(RuleKind::Allow, it)).collect();
    let lines = lines(include_str!("bypass.txt"));
    assert!(lines.len() >= 500, "only {} lines", lines.len());
    let judged = lines.into_iter().map(|line| {
        let explained = judged(&line, &rules, PolicyMode::Ask);
        (line, explained)
    });
    let passed: Vec<_> = judged.filter(|(_, it)| it.verdict == RuleKind::Allow).collect();
    assert!(passed.is_empty(), "allowed: {}", told(&passed));
}

#[test]
fn nobody_is_asked_about_harmless_lines() {
    let rules: Vec<Rule> = ALLOWED.iter().map(|it| rule(RuleKind::Allow, it)).collect();
    let lines = lines(include_str!("harmless.txt"));
    assert!(lines.len() >= 150, "only {} lines", lines.len());
    let judged = lines.into_iter().map(|line| {
        let explained = judged(&line, &rules, PolicyMode::Ask);
        (line, explained)
    });
    let asked: Vec<_> = judged.filter(|(_, it)| it.verdict != RuleKind::Allow).collect();
    assert!(asked.is_empty(), "asked: {}", told(&asked));
}

#[test]
fn a_deny_holds_however_the_command_is_dressed() {
    // An allow for everything must make no difference.
    let rules = [rule(RuleKind::Deny, "rm *"), rule(RuleKind::Allow, "*")];
    let lines = lines(include_str!("denied.txt"));
    for mode in [PolicyMode::Ask, PolicyMode::Auto] {
        let judged = lines.iter().map(|line| (line.clone(), judged(line, &rules, mode)));
        let passed: Vec<_> = judged.filter(|(_, it)| it.verdict != RuleKind::Deny).collect();
        assert!(passed.is_empty(), "not denied: {}", told(&passed));
    }
}

/// One star for everything says nothing about what cannot be told from the words.
#[test]
fn no_star_allows_what_cannot_be_told() {
    let rules = [rule(RuleKind::Allow, "*")];
    let lines = lines(include_str!("opaque.txt"));
    let judged = lines.into_iter().map(|line| {
        let explained = judged(&line, &rules, PolicyMode::Ask);
        (line, explained)
    });
    let passed: Vec<_> = judged.filter(|(_, it)| it.verdict != RuleKind::Ask).collect();
    assert!(passed.is_empty(), "not asked: {}", told(&passed));
}

#[test]
fn lines_that_say_all_they_run_are_plain() {
    let deny = rule(RuleKind::Deny, "rm *");
    let lines = lines(include_str!("plain.txt"));
    let judged = lines.into_iter().map(|line| {
        // The line itself must do for a runner: nobody allows `tsc` apart from `npx tsc`.
        let own = line.split_whitespace().next().map(|name| format!("{name}*"));
        let own = rule(RuleKind::Allow, &own.unwrap_or_default());
        let is_heavy = HEAVY.iter().any(|heavy| line.starts_with(heavy));
        let all = if is_heavy { rule(RuleKind::Allow, "*") } else { own };
        let explained = judged(&line, &[deny.clone(), all], PolicyMode::Ask);
        (line, explained)
    });
    let asked: Vec<_> = judged.filter(|(_, it)| it.verdict != RuleKind::Allow).collect();
    assert!(asked.is_empty(), "not allowed: {}", told(&asked));
}

/// What these start must be allowed for itself.
const HEAVY: &[&str] = &[
    "bash -ec", "chrt", "find", "gosu", "ionice", "nohup", "setsid", "sudo", "taskset", "timeout",
    "tini",
];

/// A deny or an ask holds through options in front of a program's own command; an allow does only
/// where they make no difference.
#[test]
fn a_command_is_known_behind_its_options() {
    use RuleKind::{Allow, Ask, Deny};
    let cases = [
        (Deny, "git push *", "git push origin", Deny),
        (Deny, "git push *", "git --no-pager push origin", Deny),
        (Deny, "git push *", "git -C . push origin", Deny),
        (Deny, "git push*", "git --bare push", Deny),
        (Deny, "git push:*", "git --namespace a push", Deny),
        (Deny, "git push*", "git -c a.b='c d' push", Deny),
        (Deny, "git push*", "git -P -C a -c b=c push -f", Deny),
        (Deny, "git push*", "/usr/bin/git -C . push", Deny),
        (Deny, "git push*", "sudo git -C . push", Deny),
        (Deny, "git push*", "sh -c 'git -C . push'", Deny),
        (Deny, "git push*", "uv run git -C . push", Deny),
        (Deny, "git push*", "ls | xargs git -C . push", Deny),
        (Deny, "git push*", "find . -exec git -C {} push \\;", Deny),
        (Deny, "git push*", "git --git-dir=x push", Deny),
        (Deny, "git push*", "git --git-dir x --work-tree y push", Deny),
        (Deny, "git push*", "git --config-env a=B push", Deny),
        (Deny, "git push*", "git --exec-path=x push", Deny),
        (Deny, "git push*", "git --super-prefix x push", Deny),
        (Deny, "git push*", "git --attr-source x push", Deny),
        (Deny, "git push*", "git --unheard-of x push", Ask),
        (Deny, "git push*", "git -C \"$X\" push", Deny),
        (Ask, "git push*", "git -C . push", Ask),
        (Deny, "cargo publish*", "cargo +nightly publish", Deny),
        (Deny, "cargo publish*", "cargo -q --locked publish", Deny),
        (Deny, "npm publish*", "npm --silent publish", Deny),
        (Deny, "npm publish*", "npm -w a publish", Deny),
        (Deny, "kubectl delete *", "kubectl -n prod delete pod x", Deny),
        (Deny, "kubectl delete *", "kubectl --context=a delete pod x", Deny),
        (Deny, "docker rm *", "docker --context a rm x", Deny),
        (Deny, "docker run *", "docker -H tcp://x run y", Deny),
        (Deny, "make deploy*", "make -C sub deploy", Deny),
        (Deny, "systemctl stop *", "systemctl --user stop x", Deny),
        (Deny, "terraform apply*", "terraform -chdir=x apply", Deny),
        (Deny, "gh pr merge*", "gh -R a/b pr merge 1", Deny),
        (Deny, "thing drop *", "thing --now drop x", Ask),
        // And what is no push stays what it is.
        (Deny, "git push*", "git stash push", Allow),
        (Deny, "git push*", "git --no-pager stash push", Allow),
        (Deny, "git push*", "git -C push status", Allow),
        (Deny, "git push*", "git log -n 5 push", Allow),
        (Deny, "git push*", "git -C . commit -m 'git push'", Allow),
    ];
    for (kind, pattern, line, expected) in cases {
        let rules = [rule(kind, pattern), rule(Allow, "*")];
        let explained = judged(line, &rules, PolicyMode::Auto);
        assert_eq!(explained.verdict, expected, "{pattern} {line}: {explained:?}");
    }
    let cases: [(&[&str], &str, RuleKind); 12] = [
        (&["git status*"], "git --no-pager status", Allow),
        (&["git status*"], "git -C sub status", Ask),
        (&["git status*", "cd *"], "git -C sub status", Allow),
        (&["git status*", "cd sub"], "git -C sub status", Allow),
        (&["git status*", "cd sub"], "git -C other status", Ask),
        (&["git status*", "cd *"], "git -C /tmp status", Ask),
        (&["git -C /tmp status"], "git -C /tmp status", Allow),
        (&["git -C *"], "git -C /tmp status", Allow),
        (&["git *"], "git -C /tmp status", Allow),
        (&["git log*"], "git --bare log", Ask),
        (&["uv run *"], "uv run pytest", Allow),
        (&["pytest*"], "uv run pytest", Ask),
    ];
    for (patterns, line, expected) in cases {
        let rules: Vec<Rule> = patterns.iter().map(|it| rule(Allow, it)).collect();
        let explained = judged(line, &rules, PolicyMode::Ask);
        assert_eq!(explained.verdict, expected, "{patterns:?} {line}: {explained:?}");
    }
}

/// Whoever can be told to push must not push through words that only the shell knows.
#[test]
fn a_deny_that_cannot_be_sure_asks_even_in_auto() {
    let rules = [rule(RuleKind::Deny, "git push*"), rule(RuleKind::Allow, "git *")];
    let cases = [
        ("git push", RuleKind::Deny),
        ("git 'push' --force", RuleKind::Deny),
        ("git $X", RuleKind::Ask),
        ("git pu$X", RuleKind::Ask),
        ("git pu{sh,ll}", RuleKind::Ask),
        ("git p?sh", RuleKind::Ask),
        ("git $(echo push)", RuleKind::Ask),
        ("X=push; git $X", RuleKind::Ask),
        ("$GIT push", RuleKind::Ask),
        ("git status", RuleKind::Allow),
        ("git stash", RuleKind::Allow),
    ];
    for (line, expected) in cases {
        let explained = judged(line, &rules, PolicyMode::Auto);
        assert_eq!(explained.verdict, expected, "{line}: {explained:?}");
    }
}

#[test]
fn both_rooms_mean_the_same_by_their_signs() {
    assert_eq!(UNKNOWN, locum_shell::UNKNOWN);
    assert_eq!(WITHIN, locum_shell::WITHIN);
}
