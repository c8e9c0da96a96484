//! The tools that read: `read`, `ls`, `glob` and `grep`, in one folder and nowhere else. They
//! change nothing, so they may run again after a crash, and while a write is under way.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use locum_kernel::{Class, Errand, Output, ToolSpec};
use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

use crate::live::Live;
use crate::provider::Task;
use crate::tool::Toolbox;

/// More of one file is not read into a conversation.
const READ_BYTES_MAX: usize = 64 << 10;
/// Files looked at by one search, and lines or names it gives back.
const FILES_MAX: usize = 20_000;
const ROWS_MAX: usize = 200;
/// A file above this is not searched.
const SEARCH_BYTES_MAX: u64 = 4 << 20;
/// A line above this is cut.
const LINE_CHARS_MAX: usize = 200;

#[derive(Debug)]
pub struct Files {
    root: Arc<PathBuf>,
}

impl Files {
    /// Everything below `root` can be read, and nothing else.
    pub fn new(root: &Path) -> io::Result<Files> {
        Ok(Files { root: Arc::new(root.canonicalize()?) })
    }
}

type Run = fn(&Path, &Value) -> Result<String, String>;

const TOOLS: [(&str, Run); 4] = [("read", read), ("ls", ls), ("glob", glob), ("grep", grep)];

impl Toolbox for Files {
    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |(name, _): &(&str, Run)| ToolSpec {
            name: (*name).into(),
            class: Class::Read,
            idempotent: true,
            subject: Some("path".into()),
            timeout_ms: Some(60_000),
        };
        TOOLS.iter().map(spec).collect()
    }

    fn run(&self, errand: Errand, _live: Live) -> Task<Output> {
        let root = Arc::clone(&self.root);
        let found = TOOLS.iter().find(|(name, _)| *name == errand.tool).map(|(_, run)| *run);
        Box::pin(async move {
            let Some(run) = found else {
                return Output::error(format!("Tool not found: {}", errand.tool));
            };
            // A slow disk must not hold up anybody else.
            let work = tokio::task::spawn_blocking(move || run(&root, &errand.arguments));
            match work.await {
                Ok(Ok(text)) => Output::ok(text),
                Ok(Err(why)) => Output::error(why),
                Err(error) => Output::error(format!("reading failed: {error}")),
            }
        })
    }
}

fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

fn number(arguments: &Value, name: &str) -> Option<usize> {
    arguments.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok())
}

/// The real path of what is named, if it is below the root.
fn below(root: &Path, named: &str) -> Result<PathBuf, String> {
    let path = root.join(named);
    let real = path.canonicalize().map_err(|error| format!("{named}: {error}"))?;
    if !real.starts_with(root) {
        return Err(format!("{named} is outside the workspace"));
    }
    Ok(real)
}

fn read(root: &Path, arguments: &Value) -> Result<String, String> {
    let named = text(arguments, "path").ok_or("read needs a `path`")?;
    let path = below(root, named)?;
    let failed = |error: io::Error| format!("{named}: {error}");
    let data = fs::metadata(&path).map_err(failed)?;
    // A pipe or a device could keep us waiting for ever.
    if !data.is_file() {
        return Err(format!("{named} is not a file; ls shows a folder"));
    }
    let mut lines = BufReader::new(File::open(&path).map_err(failed)?);
    if lines.fill_buf().map_err(failed)?.contains(&0) {
        return Err(format!("{named} is not text ({} bytes)", data.len()));
    }
    for _ in 1..number(arguments, "offset").unwrap_or(1) {
        if lines.skip_until(b'\n').map_err(failed)? == 0 {
            break;
        }
    }
    let limit = number(arguments, "limit").unwrap_or(usize::MAX);
    let shown = first_lines(lines, limit).map_err(failed)?;
    Ok(String::from_utf8_lossy(&shown).into_owned())
}

/// As many lines as may be shown. No more than that is ever in memory, however long the file is.
fn first_lines(mut lines: impl BufRead, limit: usize) -> io::Result<Vec<u8>> {
    let mut shown = Vec::new();
    for _ in 0..limit {
        let whole = shown.len();
        let room = (READ_BYTES_MAX - whole) as u64 + 1;
        if lines.by_ref().take(room).read_until(b'\n', &mut shown)? == 0 {
            break;
        }
        if shown.len() > READ_BYTES_MAX {
            shown.truncate(whole);
            shown.extend("[… the rest is not shown: use offset and limit …]\n".bytes());
            break;
        }
    }
    Ok(shown)
}

fn ls(root: &Path, arguments: &Value) -> Result<String, String> {
    let named = text(arguments, "path").unwrap_or(".");
    let path = below(root, named)?;
    let failed = |error: io::Error| format!("{named}: {error}");
    let mut entries = Vec::new();
    for entry in fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        entries.push(if is_folder { format!("{name}/") } else { name });
    }
    entries.sort_unstable();
    Ok(rows(entries, limit(arguments)))
}

fn glob(root: &Path, arguments: &Value) -> Result<String, String> {
    let pattern = text(arguments, "pattern").ok_or("glob needs a `pattern`")?;
    let top = below(root, text(arguments, "path").unwrap_or("."))?;
    let matcher = wildcard(pattern)?;
    let mut names: Vec<String> = Vec::new();
    walk(&top, &mut |path| {
        let name = relative(root, path);
        // `*.rs` means at any depth, as everybody expects.
        let short = path.file_name().unwrap_or_default().to_string_lossy();
        if matcher.is_match(&name) || (!pattern.contains('/') && matcher.is_match(&short)) {
            names.push(name);
        }
        true
    });
    names.sort_unstable();
    Ok(rows(names, limit(arguments)))
}

fn grep(root: &Path, arguments: &Value) -> Result<String, String> {
    let pattern = text(arguments, "pattern").ok_or("grep needs a `pattern`")?;
    let top = below(root, text(arguments, "path").unwrap_or("."))?;
    let regex = RegexBuilder::new(pattern).size_limit(1 << 20).build();
    let regex = regex.map_err(|error| format!("pattern: {error}"))?;
    let only = text(arguments, "glob").map(wildcard).transpose()?;
    let limit = limit(arguments);
    let mut found = Vec::new();
    walk(&top, &mut |path| {
        let name = relative(root, path);
        let short = path.file_name().unwrap_or_default().to_string_lossy();
        let wanted = |only: &Regex| only.is_match(&name) || only.is_match(&short);
        if only.as_ref().is_none_or(wanted) {
            search(path, &name, &regex, limit, &mut found);
        }
        found.len() < limit
    });
    if found.is_empty() {
        return Ok(format!("nothing matches {pattern}"));
    }
    Ok(rows(found, limit))
}

fn search(path: &Path, name: &str, regex: &Regex, limit: usize, found: &mut Vec<String>) {
    let small = fs::metadata(path).is_ok_and(|data| data.len() <= SEARCH_BYTES_MAX);
    // What is not text, or has gone meanwhile, has no lines to find.
    let Some(text) = small.then(|| fs::read_to_string(path).ok()).flatten() else { return };
    for (line, number) in text.lines().zip(1..) {
        if found.len() < limit && regex.is_match(line) {
            let cut: String = line.trim().chars().take(LINE_CHARS_MAX).collect();
            found.push(format!("{name}:{number}: {cut}"));
        }
    }
}

/// Every file below, in order of names, without hidden folders and what builds leave behind;
/// links are not followed. Stops when `visit` says so.
fn walk(top: &Path, visit: &mut dyn FnMut(&Path) -> bool) {
    let mut ahead = vec![top.to_owned()];
    let mut seen = 0;
    while let Some(path) = ahead.pop() {
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        if data.is_file() {
            seen += 1;
            if seen > FILES_MAX || !visit(&path) {
                return;
            }
        } else if data.is_dir() && (path == top || !is_skipped(&path)) {
            let Ok(entries) = fs::read_dir(&path) else { continue };
            let mut below: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            below.sort_unstable_by(|a, b| b.cmp(a));
            ahead.append(&mut below);
        }
    }
}

fn is_skipped(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name == "target" || name == "node_modules"
}

fn relative(root: &Path, path: &Path) -> String {
    let parts = path.strip_prefix(root).unwrap_or(path).components();
    let names = parts.filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    });
    names.collect::<Vec<_>>().join("/")
}

/// `*` is anything in one name, `**` over folders too, `?` one character.
fn wildcard(pattern: &str) -> Result<Regex, String> {
    let mut regex = String::from("^");
    let mut rest = pattern;
    while let Some(letter) = rest.chars().next() {
        let (part, taken) = match letter {
            '*' if rest.starts_with("**/") => ("(.*/)?".to_owned(), 3),
            '*' if rest.starts_with("**") => (".*".to_owned(), 2),
            '*' => ("[^/]*".to_owned(), 1),
            '?' => ("[^/]".to_owned(), 1),
            letter => (regex_lite::escape(&letter.to_string()), letter.len_utf8()),
        };
        regex.push_str(&part);
        rest = &rest[taken..];
    }
    regex.push('$');
    Regex::new(&regex).map_err(|error| format!("{pattern}: {error}"))
}

fn limit(arguments: &Value) -> usize {
    number(arguments, "limit").unwrap_or(ROWS_MAX).min(ROWS_MAX)
}

fn rows(mut rows: Vec<String>, limit: usize) -> String {
    let more = rows.len().saturating_sub(limit);
    rows.truncate(limit);
    if more > 0 {
        rows.push(format!("… and {more} more"));
    }
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn try_on_a_folder(tool: &str, arguments: &Value) -> Result<String, String> {
        let name = format!("locum-files-{}-{:?}", std::process::id(), std::thread::current().id());
        let top = std::env::temp_dir().join(name);
        let root = top.join("root");
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(top.join("secret"), "no").unwrap();
        fs::write(root.join("a.txt"), "one\ntwo TODO\nthree\n").unwrap();
        fs::write(root.join("src/b.rs"), "// TODO: more\nfn b() {}\n").unwrap();
        fs::write(root.join("src/deep/c.rs"), "fn c() {}\n").unwrap();
        fs::write(root.join(".git/config"), "TODO").unwrap();
        fs::write(root.join("long"), "1\n".repeat(READ_BYTES_MAX)).unwrap();
        fs::write(root.join("binary"), [0, 159, 146, 150]).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(top.join("secret"), root.join("link")).unwrap();
        let root = root.canonicalize().unwrap();
        let run = TOOLS.iter().find(|(name, _)| *name == tool).unwrap().1;
        let result = run(&root, arguments);
        fs::remove_dir_all(&top).unwrap();
        result
    }

    #[test]
    fn what_they_find() {
        let cases = [
            ("read", json!({"path": "a.txt"}), Ok("one\ntwo TODO\nthree\n")),
            ("read", json!({"path": "a.txt", "offset": 2, "limit": 1}), Ok("two TODO\n")),
            ("read", json!({"path": "a.txt", "offset": 9}), Ok("")),
            ("read", json!({"path": "long", "offset": 3, "limit": 2}), Ok("1\n1\n")),
            ("read", json!({"path": "src"}), Err("src is not a file; ls shows a folder")),
            ("read", json!({"path": "binary"}), Err("binary is not text (4 bytes)")),
            ("read", json!({}), Err("read needs a `path`")),
            ("read", json!({"path": "../secret"}), Err("../secret is outside the workspace")),
            ("read", json!({"path": "link"}), Err("link is outside the workspace")),
            ("ls", json!({}), Ok(".git/\na.txt\nbinary\nlink\nlong\nsrc/")),
            ("ls", json!({"limit": 1}), Ok(".git/\n… and 5 more")),
            ("glob", json!({"pattern": "*.rs"}), Ok("src/b.rs\nsrc/deep/c.rs")),
            ("glob", json!({"pattern": "src/*.rs"}), Ok("src/b.rs")),
            (
                "grep",
                json!({"pattern": "TODO"}),
                Ok("a.txt:2: two TODO\nsrc/b.rs:1: // TODO: more"),
            ),
            ("grep", json!({"pattern": "TODO", "glob": "*.rs"}), Ok("src/b.rs:1: // TODO: more")),
            ("grep", json!({"pattern": "nowhere"}), Ok("nothing matches nowhere")),
        ];
        for (tool, arguments, expected) in cases {
            let found = try_on_a_folder(tool, &arguments);
            let found = found.as_ref().map(String::as_str).map_err(String::as_str);
            assert_eq!(found, expected, "{tool} {arguments}");
        }
    }

    #[test]
    fn of_a_long_file_no_more_is_read_than_is_shown() {
        let endless = BufReader::new(io::repeat(b'\n'));
        let shown = first_lines(endless, usize::MAX).unwrap();
        assert!(shown.starts_with(b"\n\n") && shown.ends_with("…]\n".as_bytes()));
        assert!(shown.len() < READ_BYTES_MAX + 100);
        let one_line = first_lines(BufReader::new(io::repeat(b'x')), usize::MAX).unwrap();
        assert!(one_line.starts_with("[…".as_bytes()));
    }
}
