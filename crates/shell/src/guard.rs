//! Flags with which a harmless program runs another, writes a file or loads code. Whoever allowed
//! `sort *` did not mean `sort --compress-program=…`.

use crate::word::Word;
use crate::{client, git, script};

/// A program, the letters and the words that make it more than it seems.
pub(crate) struct Guard(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static [&'static str],
);

/// Long words also count when shortened (`--outp`), and in front of `=`.
const GUARDS: &[Guard] = &[
    Guard("cargo", "", &["--config", "--artifact-dir", "--target-dir", "--root"]),
    Guard(
        "curl",
        "KoOTFdQ",
        &["--config", "--output", "--remote-name", "--upload-file", "--form", "--data", "--quote"],
    ),
    Guard("apt", "co", &["--option", "--config-file"]),
    Guard("bazel", "", &["--run_under", "--bazelrc"]),
    Guard("cmake", "CP", &["--toolchain"]),
    Guard("date", "s", &["--set"]),
    Guard("dc", "ef", &["--expression", "--file"]),
    Guard("dd", "", &["of="]),
    Guard("diff", "", &["--to-file", "--output"]),
    Guard("emacs", "", &["--eval", "--load", "--execute", "-f", "-l"]),
    Guard("fd", "xX", &["--exec", "--exec-batch"]),
    Guard("fdfind", "xX", &["--exec", "--exec-batch"]),
    Guard("gcc", "BT", &["-wrapper", "-fplugin", "-specs", "--specs"]),
    Guard(
        "go",
        "",
        &[
            "-exec",
            "-toolexec",
            "-vettool",
            "-modfile",
            "-overlay",
            "-ldflags",
            "--exec",
            "--toolexec",
            "--vettool",
            "--modfile",
            "--overlay",
            "--ldflags",
        ],
    ),
    Guard("gnuplot", "ce", &[]),
    Guard("gradle", "Ibpgc", &["--init-script", "--build-file", "--project-dir"]),
    Guard("hg", "", &["--config", "--debugger"]),
    Guard("iconv", "o", &["--output"]),
    Guard("install", "", &["--strip-program"]),
    Guard("jq", "fL", &["--from-file"]),
    Guard(
        "less",
        "oOpkt",
        &["+", "--log-file", "--LOG-FILE", "--lesskey", "--pattern", "--cmd", "--tag"],
    ),
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
    Guard("nmap", "", &["--script", "--datadir", "--servicedb"]),
    Guard("openssl", "", &["-engine", "-provider", "-config", "-out"]),
    Guard("pip", "", &["--python", "--config-settings", "--log"]),
    Guard("pytest", "pco", &["--pastebin", "--basetemp", "--rootdir", "--override-ini"]),
    Guard("rg", "", &["--pre", "--hostname-bin"]),
    Guard("rpm", "ED", &["--eval", "--define", "--pipe", "--macros", "--load", "--rcfile"]),
    Guard("rsync", "eM", &["--rsh", "--rsync-path", "--remove-source-files", "--remote-option"]),
    Guard("scp", "SoF", &[]),
    Guard("shuf", "o", &["--output"]),
    Guard("sort", "oT", &["--output", "--compress-program", "--temporary-directory"]),
    Guard("split", "", &["--filter"]),
    Guard("ssh", "oFEIS", &[]),
    Guard("ssh-keygen", "D", &[]),
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
    Guard("tcpdump", "zw", &["--postrotate-command"]),
    Guard("tree", "o", &["--output"]),
    Guard("vim", "cSsuUwWiEl", &["+", "--cmd", "--startuptime", "--servername", "--remote"]),
    Guard(
        "wget",
        "OPe",
        &["--use-askpass", "--output-document", "--post-file", "--config", "--execute"],
    ),
    Guard("yarn", "", &["--cwd", "--use-yarnrc", "--script-shell"]),
    Guard("zip", "T", &["--unzip-command", "-TT"]),
];

/// Programs that read commands from elsewhere, or whose words are commands of their own.
const ALWAYS: &[(&str, &str)] = &[
    ("ed", "ed runs commands that it reads elsewhere"),
    ("ex", "ex runs commands that it reads elsewhere"),
    ("red", "red writes what it reads elsewhere"),
    ("sftp", "sftp runs commands that it reads elsewhere"),
];

/// Why a command may do more than its words say.
#[derive(Debug, Default)]
pub(crate) struct Doubt {
    pub(crate) why: String,
    /// Words that, or behind which, a command may stand.
    pub(crate) at: Vec<usize>,
}

impl Doubt {
    pub(crate) fn new(why: impl Into<String>, at: impl IntoIterator<Item = usize>) -> Doubt {
        Doubt { why: why.into(), at: at.into_iter().collect() }
    }

    /// The first reason is the one that is told.
    pub(crate) fn because(&mut self, why: String) {
        if self.why.is_empty() {
            self.why = why;
        }
    }

    pub(crate) fn merge(&mut self, other: Option<Doubt>) {
        let Some(other) = other else { return };
        self.because(other.why);
        self.at.extend(other.at);
    }

    pub(crate) fn found(mut self) -> Option<Doubt> {
        self.at.sort_unstable();
        self.at.dedup();
        (!self.why.is_empty()).then_some(self)
    }
}

pub(crate) fn doubt(name: &str, words: &[Word]) -> Option<Doubt> {
    let name = family(name);
    let arguments = &words[1..];
    let all = 1..words.len();
    if let Some((_, why)) = ALWAYS.iter().find(|(program, _)| *program == name) {
        return Some(Doubt::new(*why, all));
    }
    if let Some(client) = client::named(name) {
        return client.doubt(words);
    }
    match name {
        _ if name == "git" || name.starts_with("git-") => git::doubt(name, words),
        "awk" => script::awk(arguments).map(|why| Doubt::new(why, all)),
        "sed" => script::sed(arguments).map(|why| Doubt::new(why, all)),
        "printf" if arguments.first().is_some_and(|w| w.may_be_flag() || w.text == "-v") => {
            Some(Doubt::new("printf -v sets a variable", []))
        }
        "test" | "[" => brackets(arguments).map(|why| Doubt::new(why, [])),
        "python" => python(words),
        "uniq" if arguments.iter().filter(|w| !is_flag(w)).count() > 1 => {
            Some(Doubt::new("uniq writes its second file", []))
        }
        "make" if arguments.iter().any(|w| w.text.contains('=')) => {
            Some(Doubt::new("make is told a variable, which can be a command", all))
        }
        // Its oldest way: letters first, then their values in turn.
        "tar" if arguments.first().is_some_and(|w| !is_flag(w) && w.text.contains(['I', 'F'])) => {
            Some(Doubt::new("tar runs another program", 1..words.len().min(6)))
        }
        name => flagged(GUARDS.iter().find(|guard| guard.0 == name)?, words, 1),
    }
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
        "apt-get" | "aptitude" => "apt",
        "cross" => "cargo",
        "gshuf" => "shuf",
        "vi" | "nvim" | "gvim" | "view" | "rvim" | "rview" | "vimdiff" | "nvimdiff" | "evim" => {
            "vim"
        }
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

pub(crate) fn flagged(guard: &Guard, words: &[Word], from: usize) -> Option<Doubt> {
    let Guard(name, letters, long_words) = guard;
    let mut doubt = Doubt::default();
    for (at, word) in words.iter().enumerate().skip(from) {
        // Behind it nothing is a flag any more, except to those who hand it on.
        if word.text == "--" && *name != "npm" {
            break;
        }
        if word.may_be_flag() {
            doubt.because(format!("the options of {name} are only known when it runs"));
            continue;
        }
        let text = word.text.as_str();
        let flag = text.split('=').next().unwrap_or(text);
        // Most let a long option be shortened; this one is whole.
        let whole = *name == "cargo" && flag == "--target";
        let shortens = !whole && flag.len() > 3 && flag.starts_with("--");
        let long =
            long_words.iter().any(|bad| text.starts_with(bad) || shortens && bad.starts_with(flag));
        let short = text.starts_with('-')
            && !text.starts_with("--")
            && text[1..].contains(|c| letters.contains(c));
        if long || short {
            doubt.because(format!("{name} {flag} does more than it seems"));
            doubt.at.push(at);
        }
    }
    doubt.found()
}

/// `-m pytest` is pytest; anything else that python is told is in its words.
fn python(words: &[Word]) -> Option<Doubt> {
    let (module, rest) = module("python", words)?;
    let guard = GUARDS.iter().find(|guard| guard.0 == module)?;
    flagged(guard, words, rest)
}

/// The module that python runs, also among letters (`-Im pytest`, `-mpytest`), and where its own
/// words begin.
pub(crate) fn module<'a>(name: &str, words: &'a [Word]) -> Option<(&'a str, usize)> {
    let mut at = if family(name) == "python" { 1 } else { return None };
    while let Some(word) = words.get(at) {
        at += 1;
        let letters = word.text.strip_prefix('-').filter(|it| !it.starts_with('-'));
        let Some(letters) = letters else {
            // A long option is none that takes the next word, but for one nobody uses.
            if word.text.starts_with("--") {
                continue;
            }
            return None;
        };
        let Some(place) = letters.find(['m', 'c', 'W', 'X']) else { continue };
        let value = &letters[place + 1..];
        match &letters[place..=place] {
            "m" if value.is_empty() => return Some((&words.get(at)?.text, at + 1)),
            "m" => return Some((value, at)),
            "c" => return None,
            _ => at += usize::from(value.is_empty()),
        }
    }
    None
}

/// In bash a subscript is arithmetic, and arithmetic can run commands.
fn brackets(arguments: &[Word]) -> Option<String> {
    let subscript = |word: &Word| word.text.contains('[') || word.text == "-v";
    let runs = arguments.iter().any(|word| subscript(word) || word.may_be_flag());
    runs.then(|| "a test of something only known when it runs".into())
}
