//! A command without the options in front of it: `git -C . push` is a push. Programs have commands
//! of their own, and whoever denies one means it wherever it stands.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::pattern::{Fit, UNKNOWN};

/// A program with commands, and its options in front of them.
struct Program {
    name: &'static str,
    /// Those that take the next word.
    valued: &'static [&'static str],
    /// Those that stand alone.
    alone: &'static [&'static str],
    /// Those that stand alone and make no difference to whoever allows a command.
    calm: &'static [&'static str],
}

/// An option that is not listed may take the next word or not: both are looked at.
const PROGRAMS: &[Program] = &[
    Program {
        name: "git",
        valued: &[
            "-C",
            "-c",
            "--attr-source",
            "--config-env",
            "--git-dir",
            "--namespace",
            "--super-prefix",
            "--work-tree",
        ],
        alone: &["-p", "--paginate", "--bare", "--exec-path", "--no-lazy-fetch", "--no-advice"],
        calm: &[
            "-P",
            "--no-pager",
            "--no-optional-locks",
            "--no-replace-objects",
            "--literal-pathspecs",
            "--glob-pathspecs",
            "--noglob-pathspecs",
            "--icase-pathspecs",
        ],
    },
    Program {
        name: "cargo",
        valued: &["-C", "-Z", "--color", "--config", "--manifest-path"],
        alone: &[],
        calm: &["-q", "-v", "-vv", "--quiet", "--verbose", "--locked", "--offline", "--frozen"],
    },
    Program {
        name: "npm",
        valued: &["-C", "-w", "--prefix", "--workspace", "--registry", "--loglevel"],
        alone: &["-g", "--global", "--workspaces", "-ws"],
        calm: &["-s", "-q", "--silent", "--quiet"],
    },
    Program {
        name: "pnpm",
        valued: &["-C", "-F", "--dir", "--filter"],
        alone: &["-r", "-w", "--recursive", "--workspace-root"],
        calm: &["--silent"],
    },
    Program { name: "yarn", valued: &["--cwd"], alone: &["-s"], calm: &["--silent"] },
    Program {
        name: "docker",
        valued: &["-c", "-H", "-l", "--config", "--context", "--host", "--log-level"],
        alone: &["-D", "--debug", "--tls", "--tlsverify"],
        calm: &[],
    },
    Program {
        name: "kubectl",
        valued: &[
            "-n",
            "-s",
            "-v",
            "--as",
            "--cluster",
            "--context",
            "--kubeconfig",
            "--namespace",
            "--server",
            "--token",
            "--user",
        ],
        alone: &["--insecure-skip-tls-verify", "--match-server-version"],
        calm: &[],
    },
    Program {
        name: "helm",
        valued: &["-n", "--kube-context", "--kubeconfig", "--namespace"],
        alone: &["--debug"],
        calm: &[],
    },
    Program { name: "gh", valued: &["-R", "--repo", "--hostname"], alone: &[], calm: &[] },
    Program {
        name: "systemctl",
        valued: &["-H", "-M", "-n", "-o", "-p", "-s", "-t"],
        alone: &["-q", "--user", "--system", "--now", "--no-pager", "--force", "-f", "--quiet"],
        calm: &[],
    },
    Program {
        name: "make",
        valued: &["-C", "-f", "-I", "-o", "-W", "--directory", "--file", "--makefile"],
        alone: &["-B", "-i", "-k", "-n", "-s", "-w", "--silent", "--keep-going"],
        calm: &[],
    },
    Program {
        name: "apt-get",
        valued: &["-o", "-c", "-t", "--option", "--target-release"],
        alone: &["-y", "-q", "-qq", "-d", "-f", "-s", "-u", "--yes", "--assume-yes"],
        calm: &[],
    },
    Program {
        name: "aws",
        valued: &["--endpoint-url", "--output", "--profile", "--query", "--region"],
        alone: &["--debug", "--no-paginate", "--no-sign-request", "--no-cli-pager"],
        calm: &[],
    },
    Program { name: "terraform", valued: &[], alone: &["-help", "-version"], calm: &[] },
];

/// Words that are looked at before a command: nobody writes more options in front of one.
const WORDS_MAX: usize = 32;

fn program(name: &str) -> Option<&'static Program> {
    let name = match name {
        "podman" | "nerdctl" => "docker",
        "gmake" => "make",
        "apt" => "apt-get",
        "cross" => "cargo",
        name => name,
    };
    PROGRAMS.iter().find(|program| program.name == name)
}

/// The part without options in front of its command, in every way it can be read, and how surely
/// each is the right one. `part` begins with the last name of its program.
pub(super) fn forms(part: &str) -> Vec<(String, Fit)> {
    let words = words(part);
    let Some(name) = words.first().copied() else { return Vec::new() };
    let known = program(name);
    let mut places = BTreeMap::from([(1_usize, Fit::Yes)]);
    let mut forms = Vec::new();
    // A command of git is also a file of its own.
    if name.starts_with("git-") {
        forms.push((part.replacen("git-", "git ", 1), Fit::Yes));
    }
    while let Some((at, sure)) = places.pop_first() {
        let Some(word) = words.get(at).filter(|_| at <= WORDS_MAX) else { continue };
        if !is_option(word) {
            if at > 1 {
                forms.push((format!("{name} {}", words[at..].join(" ")), sure));
            }
            continue;
        }
        let mut reach = |at, fit: Fit| {
            let place = places.entry(at).or_insert(Fit::No);
            *place = fit.min(sure).max(*place);
        };
        match known {
            Some(known) if known.valued.contains(word) => reach(at + 2, Fit::Yes),
            Some(known) if known.alone.contains(word) || known.calm.contains(word) => {
                reach(at + 1, Fit::Yes);
            }
            Some(_) => {
                reach(at + 1, Fit::Yes);
                if !word.contains('=') && !word.starts_with('+') {
                    reach(at + 2, Fit::Maybe);
                }
            }
            None => {
                reach(at + 1, Fit::Maybe);
                reach(at + 2, Fit::Maybe);
            }
        }
    }
    forms
}

/// What an allow for the plain command may let through: the command without options that make no
/// difference, and the folder it goes to first, which must be allowed like any other `cd`.
pub(super) fn calm(part: &str) -> Option<(Option<String>, String)> {
    let words = words(part);
    let name = words.first()?;
    let known = program(name)?;
    let mut folder = None;
    let mut at = 1;
    loop {
        let word = words.get(at).filter(|_| at <= WORDS_MAX)?;
        if *word == "-C" && known.name == "git" && folder.is_none() {
            folder = Some(words.get(at + 1).filter(|folder| is_below(folder))?);
            at += 2;
        } else if known.calm.contains(word) {
            at += 1;
        } else {
            break;
        }
    }
    let plain = at > 1 && !is_option(words[at]) && !words[at].starts_with(UNKNOWN);
    let form = format!("{name} {}", words.get(at..)?.join(" "));
    plain.then(|| (folder.map(|folder| format!("cd {folder}")), form))
}

/// A folder that can be nowhere but below.
fn is_below(folder: &str) -> bool {
    let outside = folder.starts_with(['/', '~', '-', '\'']) || folder.contains(UNKNOWN);
    !outside && folder.split('/').all(|step| step != "..")
}

fn is_option(word: &str) -> bool {
    let word = word.strip_prefix('\'').unwrap_or(word);
    word.starts_with(['-', '+'])
}

/// The words of a part, as they stand there: blanks within quotes part nothing.
fn words(part: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut from, mut quoted, mut escaped) = (0, false, false);
    for (at, c) in part.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if !quoted => escaped = true,
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                words.push(&part[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    words.push(&part[from..]);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_front_of_a_command_are_taken_off() {
        let cases = [
            ("git push origin", ""),
            ("git -C . push origin", "git push origin"),
            ("git --no-pager push", "git push"),
            ("git --namespace a push", "git push"),
            ("git --namespace=a push", "git push"),
            ("git -c a='b push' -C x push -f", "git push -f"),
            ("git -c 'a=b c' push", "git push"),
            ("git --new x push", "git x push|?git push"),
            ("git --no-pager stash push", "git stash push"),
            ("git -C", ""),
            ("git -C push", ""),
            ("git-push -f", "git push -f"),
            ("cargo +nightly publish", "cargo publish"),
            ("kubectl -n prod delete x", "kubectl delete x"),
            ("kubectl --context=a delete x", "kubectl delete x"),
            ("other -a b c", "?other b c|?other c"),
            ("ls -la", ""),
            ("", ""),
        ];
        for (part, expected) in cases {
            let shown: Vec<String> = forms(part)
                .into_iter()
                .map(|(form, sure)| if sure == Fit::Yes { form } else { format!("?{form}") })
                .collect();
            assert_eq!(shown.join("|"), expected, "{part}");
        }
    }

    #[test]
    fn an_allow_sees_through_options_that_make_no_difference() {
        let cases = [
            ("git --no-pager log -5", "git log -5"),
            ("git -C sub status", "cd sub&git status"),
            ("git -P -C a/b log", "cd a/b&git log"),
            ("git -C a -C b log", ""),
            ("git -C ../a status", ""),
            ("git -C /tmp status", ""),
            ("git -C ~/a status", ""),
            ("git -C … status", ""),
            ("git -C 'a b' status", ""),
            ("git -c a=b status", ""),
            ("git --bare status", ""),
            ("git --git-dir=x status", ""),
            ("git --no-pager …", ""),
            ("git --no-pager", ""),
            ("git status", ""),
            ("cargo -q test", "cargo test"),
            ("cargo +nightly test", ""),
            ("ls -l a", ""),
        ];
        for (part, expected) in cases {
            let shown = calm(part).map_or(String::new(), |(folder, form)| match folder {
                Some(folder) => format!("{folder}&{form}"),
                None => form,
            });
            assert_eq!(shown, expected, "{part}");
        }
    }
}
