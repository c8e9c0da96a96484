//! Flags with which a harmless program runs another, writes a file or loads code. Whoever allowed
//! `sort *` did not mean `sort --compress-program=…`.

use crate::script;
use crate::word::Word;

/// A program, the letters and the words that make it more than it seems.
struct Guard(&'static str, &'static str, &'static [&'static str]);

/// Long words also count when shortened (`--outp`), and in front of `=`.
const GUARDS: &[Guard] = &[
    Guard("cargo", "", &["--config", "--artifact-dir", "--target-dir", "--root"]),
    Guard(
        "curl",
        "KoOTFdQ",
        &["--config", "--output", "--remote-name", "--upload-file", "--form", "--data", "--quote"],
    ),
    Guard("date", "s", &["--set"]),
    Guard("dd", "", &["of="]),
    Guard("diff", "", &["--to-file", "--output"]),
    Guard("emacs", "", &["--eval", "--load", "--execute", "-f", "-l"]),
    Guard("fd", "xX", &["--exec", "--exec-batch"]),
    Guard("fdfind", "xX", &["--exec", "--exec-batch"]),
    Guard("gcc", "BT", &["-wrapper", "-fplugin", "-specs", "--specs"]),
    Guard("go", "", &["-exec", "-toolexec", "-vettool", "-modfile", "-overlay", "-ldflags"]),
    Guard("hg", "", &["--config", "--debugger"]),
    Guard("jq", "fL", &["--from-file"]),
    Guard("less", "oO", &["--log-file", "--LOG-FILE", "--lesskey-file", "--lesskey-src"]),
    Guard("make", "CfIE", &["--directory", "--file", "--makefile", "--include-dir", "--eval"]),
    Guard("man", "PHC", &["--pager", "--html", "--config-file"]),
    Guard("node", "erpi", &["--eval", "--require", "--print", "--import", "--loader"]),
    Guard(
        "npm",
        "C",
        &[
            "--script-shell",
            "--prefix",
            "--node-options",
            "--userconfig",
            "--globalconfig",
            "--shell",
            "--editor",
            "--viewer",
            "--git",
            "--init-module",
        ],
    ),
    Guard("pip", "", &["--python", "--config-settings", "--log"]),
    Guard("pytest", "pco", &["--pastebin", "--basetemp", "--rootdir", "--override-ini"]),
    Guard("rg", "", &["--pre", "--hostname-bin"]),
    Guard("rsync", "e", &["--rsh", "--rsync-path", "--remove-source-files"]),
    Guard("scp", "SoF", &[]),
    Guard("sort", "oT", &["--output", "--compress-program", "--temporary-directory"]),
    Guard("split", "", &["--filter"]),
    Guard("ssh", "oFE", &[]),
    Guard("tail", "", &["--pid"]),
    Guard(
        "tar",
        "IF",
        &[
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
        ],
    ),
    Guard("tree", "o", &["--output"]),
    Guard("wget", "OP", &["--use-askpass", "--output-document", "--post-file", "--config"]),
    Guard("yarn", "", &["--cwd", "--use-yarnrc", "--script-shell"]),
    Guard("zip", "T", &["--unzip-command", "-TT"]),
];

/// What git can be told anywhere in the line, and its commands that run what they are given.
const GIT: Guard = Guard(
    "git",
    "",
    &[
        "--config-env",
        "--exec-path",
        "--exec",
        "--ext-diff",
        "--textconv",
        "--output",
        "--output-directory",
        "--open-files-in-pager",
        "--upload-pack",
        "--receive-pack",
        "--git-dir",
        "--work-tree",
        "--extcmd",
        "--to-cmd",
        "--cc-cmd",
        "--sendmail-cmd",
        "--tool",
        "--template",
        "--super-prefix",
        "--paginate",
        "--edit-description",
        "--upload-archive",
    ],
);
const GIT_RUNS: &[&str] = &[
    "config",
    "difftool",
    "mergetool",
    "filter-branch",
    "bisect",
    "submodule",
    "send-email",
    "instaweb",
    "daemon",
    "hook",
    "maintenance",
    "credential",
    "remote-ext",
    "shell",
    "p4",
    "svn",
];

/// Why a command may do more than its words say.
pub(crate) fn doubt(name: &str, words: &[Word]) -> Option<String> {
    let name = family(name);
    let arguments = &words[1..];
    let uniq_writes = name == "uniq" && arguments.iter().filter(|w| !is_flag(w)).count() > 1;
    if uniq_writes {
        return Some("uniq writes its second file".into());
    }
    match name {
        "git" => return git(arguments),
        "awk" => return script::awk(arguments),
        "sed" => return script::sed(arguments),
        "printf" if arguments.first().is_some_and(|w| w.may_be_flag() || w.text == "-v") => {
            return Some("printf -v sets a variable".into());
        }
        "test" | "[" => return brackets(arguments),
        "python" => return python(arguments),
        _ => {}
    }
    let guard = GUARDS.iter().find(|guard| guard.0 == name)?;
    let sets = name == "make" && arguments.iter().any(|w| w.text.contains('='));
    if sets {
        return Some("make is told a variable, which can be a command".into());
    }
    flagged(guard, arguments)
}

/// Different names of the same thing.
fn family(name: &str) -> &str {
    match name {
        "gmake" | "bmake" => "make",
        "gawk" | "mawk" | "nawk" | "original-awk" => "awk",
        "gsed" => "sed",
        "gsort" => "sort",
        "gtar" | "bsdtar" => "tar",
        "cc" | "g++" | "clang" | "clang++" | "c++" => "gcc",
        "py.test" => "pytest",
        "nodejs" => "node",
        "pnpm" => "npm",
        "pip3" => "pip",
        _ if name.strip_prefix("python").is_some_and(is_version) => "python",
        _ => name,
    }
}

fn is_version(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == '.')
}

fn is_flag(word: &Word) -> bool {
    word.text.starts_with('-')
}

fn flagged(guard: &Guard, arguments: &[Word]) -> Option<String> {
    let Guard(name, letters, words) = guard;
    for word in arguments {
        // Behind it nothing is a flag any more, except to those who hand it on.
        if word.text == "--" && *name != "npm" {
            return None;
        }
        if word.may_be_flag() {
            return Some(format!("the options of {name} are only known when it runs"));
        }
        let text = word.text.as_str();
        let flag = text.split('=').next().unwrap_or(text);
        let long = words.iter().any(|bad| {
            text.starts_with(bad)
                || (flag.len() > 3 && flag.starts_with("--") && bad.starts_with(flag))
        });
        let short = text.starts_with('-')
            && !text.starts_with("--")
            && text[1..].contains(|c| letters.contains(c));
        if long || short {
            return Some(format!("{name} {flag} does more than it seems"));
        }
    }
    None
}

fn git(arguments: &[Word]) -> Option<String> {
    for word in arguments {
        let text = word.text.as_str();
        if text == "--" {
            break;
        }
        if text.contains("ext::") || text.contains("::") && text.contains(' ') {
            return Some("git is told to talk through another program".into());
        }
        // `-c name=value` sets anything, also stuck together; `-O` opens a pager, `-x` runs.
        let mut before = arguments.iter().take_while(|word| is_flag(word));
        let global = before.any(|own| own == word);
        let configures = text.starts_with("-c") && (global || text.contains('='));
        let opens = text.starts_with("-O") || text == "-x";
        let pages = global && ["-p", "-u"].contains(&text);
        if configures || opens || pages {
            return Some(format!("git {text} can run another program"));
        }
    }
    let command = arguments.iter().find(|word| !is_flag(word));
    if let Some(command) = command.filter(|it| GIT_RUNS.contains(&it.text.as_str())) {
        return Some(format!("git {} can run another program", command.text));
    }
    flagged(&GIT, arguments)
}

/// `-m pytest` is pytest; anything else that python is told is in its words.
fn python(arguments: &[Word]) -> Option<String> {
    let at = arguments.iter().position(|word| word.text == "-m")?;
    let module = arguments.get(at + 1)?;
    let guard = GUARDS.iter().find(|guard| guard.0 == module.text)?;
    flagged(guard, &arguments[at + 2..])
}

/// In bash a subscript is arithmetic, and arithmetic can run commands.
fn brackets(arguments: &[Word]) -> Option<String> {
    let subscript = |word: &Word| word.text.contains('[') || word.text == "-v";
    let runs = arguments.iter().any(|word| subscript(word) || word.may_be_flag());
    runs.then(|| "a test of something only known when it runs".into())
}
