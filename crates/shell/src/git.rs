//! What makes git run another program: options before its command, some of its commands, and some
//! options behind them.

use crate::guard::{Doubt, Guard, flagged};
use crate::word::Word;

/// Options in front of the command whose value is the next word.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--exec-path",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];
/// Options in front of the command that change how it talks or where it looks, not what it runs.
const CALM: &[&str] = &[
    "-C",
    "-P",
    "-h",
    "-v",
    "--attr-source",
    "--bare",
    "--glob-pathspecs",
    "--help",
    "--html-path",
    "--icase-pathspecs",
    "--info-path",
    "--literal-pathspecs",
    "--man-path",
    "--namespace",
    "--no-advice",
    "--no-lazy-fetch",
    "--no-optional-locks",
    "--no-pager",
    "--no-replace-objects",
    "--noglob-pathspecs",
    "--version",
];

/// Commands that run what they are given, or what they are told elsewhere.
const RUNS: &[&str] = &[
    "bisect",
    "citool",
    "config",
    "credential",
    "cvsserver",
    "daemon",
    "difftool",
    "filter-branch",
    "filter-repo",
    "for-each-repo",
    "gui",
    "hook",
    "http-backend",
    "instaweb",
    "maintenance",
    "merge-index",
    "mergetool",
    "p4",
    "receive-pack",
    "remote-ext",
    "send-email",
    "shell",
    "submodule",
    "svn",
    "upload-archive",
    "upload-pack",
    "web--browse",
];

/// Commands of git's own that run nothing else by themselves. Any other may be an alias, which is
/// whatever a configuration says.
const OWN: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "blame",
    "branch",
    "bugreport",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "count-objects",
    "describe",
    "diagnose",
    "diff",
    "diff-files",
    "diff-index",
    "diff-pairs",
    "diff-tree",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "fmt-merge-msg",
    "for-each-ref",
    "format-patch",
    "fsck",
    "fsmonitor--daemon",
    "gc",
    "get-tar-commit-id",
    "grep",
    "hash-object",
    "help",
    "index-pack",
    "init",
    "init-db",
    "interpret-trailers",
    "last-modified",
    "lfs",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "merge",
    "merge-base",
    "merge-file",
    "merge-recursive",
    "merge-resolve",
    "merge-tree",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-redundant",
    "pack-refs",
    "patch-id",
    "prune",
    "prune-packed",
    "pull",
    "push",
    "quiltimport",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "refs",
    "remote",
    "repack",
    "replace",
    "replay",
    "repo",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "scalar",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stage",
    "stash",
    "status",
    "stripspace",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-file",
    "unpack-objects",
    "update-index",
    "update-ref",
    "update-server-info",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];

/// A command, its letters that run something, and its letters behind which a value is stuck.
const LETTERS: &[(&str, &str, &str)] = &[
    ("clone", "uc", "obj"),
    ("fetch-pack", "u", ""),
    ("grep", "O", "efABCm"),
    ("ls-remote", "u", "o"),
    ("rebase", "x", "XsCS"),
];

/// Words that run or write something behind any command.
const BEHIND: Guard = Guard(
    "git",
    "",
    &[
        "--exec",
        "--ext-diff",
        "--textconv",
        "--output",
        "--output-directory",
        "--open-files-in-pager",
        "--upload-pack",
        "--receive-pack",
        "--extcmd",
        "--to-cmd",
        "--cc-cmd",
        "--sendmail-cmd",
        "--tool",
        "--template",
        "--edit-description",
        "--upload-archive",
        "--config",
    ],
);

/// `program` is git, or one of its commands by the name of a file of its own: `git-rebase`.
pub(crate) fn doubt(program: &str, words: &[Word]) -> Option<Doubt> {
    let mut doubt = Doubt::default();
    let (command, name) = if let Some(name) = program.strip_prefix("git-") {
        (0, name)
    } else {
        let command = globals(words, &mut doubt);
        (command, words.get(command).map_or("", |word| word.text.as_str()))
    };
    let talks = name.starts_with("remote-") || name.starts_with("credential-");
    if talks || RUNS.contains(&name) {
        doubt.because(format!("git {name} can run another program"));
        doubt.at.extend(command..words.len());
    }
    let is_known = name.is_empty() || name.starts_with('-') || OWN.contains(&name);
    if !is_known && !talks && !RUNS.contains(&name) {
        doubt.because(format!("git {name} is none of git's own commands and may be an alias"));
        doubt.at.extend(command..words.len());
    }
    let letters = LETTERS.iter().find(|(command, ..)| *command == name);
    let (runs, valued) = letters.map_or(("", ""), |(_, runs, valued)| (*runs, *valued));
    let behind = words.iter().enumerate().skip(command + 1);
    for (at, word) in behind.clone().take_while(|(_, word)| word.text != "--") {
        let text = word.text.as_str();
        let configures = text.starts_with("-c") && text.contains('=');
        if configures || text.starts_with("-O") || has_letter(text, runs, valued) {
            doubt.because(format!("git {name} {text} can run another program"));
            doubt.at.push(at);
        }
    }
    for (at, word) in behind {
        let text = word.text.as_str();
        if text.contains("ext::") || text.contains("::") && text.contains(' ') {
            doubt.because("git is told to talk through another program".into());
            doubt.at.push(at);
        }
    }
    doubt.merge(flagged(&BEHIND, words, command));
    doubt.found()
}

/// Goes over the options in front of the command; where it is.
fn globals(words: &[Word], doubt: &mut Doubt) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.text.as_str();
        if word.may_be_flag() {
            doubt.because("the options of git are only known when it runs".into());
            doubt.at.push(at);
        }
        if !text.starts_with('-') {
            break;
        }
        let name = text.split('=').next().unwrap_or(text);
        if !CALM.contains(&name) {
            doubt.because(format!("git {name} can run another program"));
            doubt.at.push(at);
        }
        // `--exec-path` alone only asks.
        let takes = VALUED.contains(&text) && text != "--exec-path";
        if takes && words.get(at + 1).is_some_and(|value| value.unknown) {
            doubt.because("the options of git are only known when it runs".into());
        }
        at += 1 + usize::from(takes);
    }
    at
}

/// Among letters that are written together.
fn has_letter(text: &str, runs: &str, valued: &str) -> bool {
    if !text.starts_with('-') || text.starts_with("--") {
        return false;
    }
    let own = text[1..].chars().take_while(|c| !valued.contains(*c));
    own.into_iter().any(|c| runs.contains(c))
}
