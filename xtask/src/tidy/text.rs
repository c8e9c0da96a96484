//! Rules for any file of ours: how it opens, how long and wide it is, that it is finished.

use super::Problem;
use super::source::Source;
use super::tree::{File, Tree};

/// Where a reader starts to lose the thread; a note, so that splitting is planned, not rushed.
const FILE_LINES_NOTED: usize = 400;
const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

/// Folders that exist only on the machine someone wrote on. In pieces, so as not to find itself.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

const UNFINISHED: &[&str] = &["todo", "unimplemented", "dbg"];
const UNFINISHED_NOTE: &str = concat!("FIX", "ME");

pub(super) fn check(file: &File, source: &Source, problems: &mut Vec<Problem>) {
    let path = &file.path;
    if !file.text.starts_with("//!") {
        problems.push(Problem::new(path, 1, "opening", "the first line says why the file is"));
    }
    let lines = production_lines(file, source);
    if lines > FILE_LINES_MAX {
        let why = format!("{lines} production lines, at most {FILE_LINES_MAX}");
        problems.push(Problem::new(path, 1, "file-lines", why));
    }
    for function in source.functions() {
        if function.length > FUNCTION_LINES_MAX {
            let why = format!("{} lines, at most {FUNCTION_LINES_MAX}", function.length);
            let problem = Problem::new(path, function.line, "function-lines", why);
            problems.push(Problem { about: Some(function.name), ..problem });
        }
    }
    for (number, line) in file.text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > COLUMNS_MAX {
            let why = format!("{columns} columns, at most {COLUMNS_MAX}");
            problems.push(Problem::new(path, number + 1, "line-width", why));
        }
        if line.contains(UNFINISHED_NOTE) {
            let why = format!("{UNFINISHED_NOTE}: do it, or write down why not");
            problems.push(Problem::new(path, number + 1, "unfinished", why));
        }
    }
    for word in UNFINISHED {
        for at in source.find(&[word, "!"]) {
            let why = format!("`{word}!` is for work in progress");
            problems.push(Problem::new(path, source.tokens[at].line, "unfinished", why));
        }
    }
}

/// In every file, not only in source: a lock file or a script gives a machine away just as well.
pub(super) fn machine_paths(file: &File, problems: &mut Vec<Problem>) {
    for (number, line) in file.text.lines().enumerate() {
        if let Some(found) = MACHINE_PATHS.iter().find(|folder| names_folder(line, folder)) {
            let why = format!("`{found}` is a folder of one machine");
            problems.push(Problem::new(&file.path, number + 1, "machine-path", why));
        }
    }
}

/// As the start of a path: the same word further down a path or a web address is harmless.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|sign| sign.is_alphanumeric() || "._-~})]>".contains(sign))
    })
}

pub(super) fn long_files(tree: &Tree) -> Vec<String> {
    let long = tree.rust().filter_map(|file| {
        let lines = production_lines(file, &Source::new(&file.text));
        let noted = lines > FILE_LINES_NOTED && lines <= FILE_LINES_MAX;
        noted.then(|| format!("{}: {lines} production lines, aim for 400", file.path))
    });
    long.collect()
}

fn production_lines(file: &File, source: &Source) -> usize {
    if file.is_production() { source.production_lines() } else { 0 }
}
