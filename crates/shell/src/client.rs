//! Clients of databases: a statement on the command line is known, one that is read elsewhere is
//! not, and some statements run commands.

use crate::guard::Doubt;
use crate::word::Word;

pub(crate) struct Client {
    name: &'static str,
    /// Options that give a statement. Without any it is the second operand.
    gives: &'static [&'static str],
    /// Options that read statements or write files elsewhere.
    reads: &'static [&'static str],
    /// What in a statement runs a command, loads code or writes a file, in small letters.
    runs: &'static [&'static str],
}

const MYSQL_READS: &[&str] = &["--pager", "--tee", "--init-command", "--defaults", "--plugin-dir"];
const MYSQL_RUNS: &[&str] =
    &["\\!", "\\.", "\\t", "\\p", "system ", "source ", "pager", "tee ", "outfile", "dumpfile"];
const CLIENTS: &[Client] = &[
    Client { name: "mariadb", gives: &["-e", "--execute"], reads: MYSQL_READS, runs: MYSQL_RUNS },
    Client { name: "mysql", gives: &["-e", "--execute"], reads: MYSQL_READS, runs: MYSQL_RUNS },
    Client {
        name: "psql",
        gives: &["-c", "--command", "-l", "--list"],
        reads: &["-f", "--file", "-o", "--output", "-L", "--log-file"],
        runs: &[
            "\\!",
            "\\copy",
            "\\e",
            "\\g",
            "\\i",
            "\\o",
            "\\s",
            "\\w",
            "`",
            "program",
            "lo_export",
        ],
    },
    Client {
        name: "sqlite3",
        gives: &[],
        reads: &["-init", "--init", "-A", "-unsafe"],
        runs: &["load_extension", "edit(", "writefile", "fts3_tokenizer"],
    },
];

/// Commands of sqlite's own that only show something, if nothing stands behind them.
const SHOWS: [&str; 6] = ["databases", "dump", "indexes", "schema", "show", "tables"];

pub(crate) fn named(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().find(|client| client.name == name)
}

impl Client {
    pub(crate) fn doubt(&self, words: &[Word]) -> Option<Doubt> {
        let arguments = &words[1..];
        let any = |flags: &[&str]| {
            arguments.iter().any(|word| flags.iter().any(|flag| word.text.starts_with(flag)))
        };
        if arguments.len() == 1 && any(&["--version", "--help", "-version", "-help", "-V"]) {
            return None;
        }
        let runs: Vec<usize> = (1..words.len()).filter(|at| self.runs(&words[*at])).collect();
        if !runs.is_empty() || arguments.iter().any(|word| word.unknown) {
            let why = format!("a statement of {} that can run commands", self.name);
            return Some(Doubt::new(why, runs));
        }
        let operands = arguments.iter().filter(|word| !word.text.starts_with('-')).count();
        let has_statement = if self.gives.is_empty() { operands > 1 } else { any(self.gives) };
        let why = || format!("{} runs statements that it reads elsewhere", self.name);
        (!has_statement || any(self.reads)).then(|| Doubt::new(why(), 1..words.len()))
    }

    fn runs(&self, word: &Word) -> bool {
        let text = word.text.to_ascii_lowercase();
        // A dot begins a command of sqlite's own; `./a.db` is a file.
        let is_command = |line: &str| {
            let name = line.trim_start().strip_prefix('.');
            let begins =
                name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
            begins && !name.is_some_and(|name| SHOWS.contains(&name.trim_end()))
        };
        let commands = self.name == "sqlite3" && text.lines().any(is_command);
        commands || self.runs.iter().any(|bad| text.contains(bad))
    }
}
