//! What several tests need: a folder that goes away, a watch, and time taken.

#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses its own part")]

pub(crate) mod shake;
pub(crate) mod spoil;

use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use locum_definitions::{InputType, Kind, Loaded, Origin, Parameter, Scope, parse};

/// A folder of one test, gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

static COUNT: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub(crate) fn new() -> Folder {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("locum-definitions-{}-{number}", process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(fs::canonicalize(path).unwrap())
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The result, unless it takes ten seconds: then the test fails instead of hanging.
pub(crate) fn watched<T: Send + 'static>(
    what: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> T {
    let (tell, hear) = mpsc::channel();
    thread::spawn(move || tell.send(run()));
    hear.recv_timeout(Duration::from_secs(10)).unwrap_or_else(|_| panic!("{what} hangs or died"))
}

/// The promise is a tenth of a second; code that nobody optimised gets four.
pub(crate) const QUICK: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 400 } else { 100 });

/// The shortest of a few runs, each without the time in which this thread could have run and other
/// programs did: what is left is what an idle machine takes, waiting included.
#[expect(clippy::disallowed_methods, reason = "a promise about time is measured in time")]
pub(crate) fn shortest(most: Duration, mut run: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let (began, waited) = (Instant::now(), waited());
        run();
        let others = self::waited().saturating_sub(waited);
        best = best.min(began.elapsed().saturating_sub(others));
        if best < most {
            break;
        }
    }
    best
}

/// How long this thread was ready to run and had no processor; nothing where no system says so.
pub(crate) fn waited() -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = told.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// The public files beside the checkout, or a loud line.
pub(crate) fn corpus() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let corpus = root.parent()?.join("shared/corpus");
    if corpus.is_dir() {
        return Some(corpus);
    }
    eprintln!("SKIPPED: no public files at {}: nothing is proved here", corpus.display());
    None
}

pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// A file as it stands in one line of a table: `⏎` ends a line of it, `<TAB>` and `<ESC>` are what
/// they say, `<U+202E>` is a character that nobody would see.
pub(crate) fn spelled_out(line: &str) -> String {
    let text = line.replace('⏎', "\n").replace("<TAB>", "\t").replace("<ESC>", "\\");
    let mut parts = text.split("<U+");
    let mut whole = parts.next().unwrap().to_owned();
    for part in parts {
        let (code, rest) = part.split_once('>').unwrap();
        whole.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        whole.push_str(rest);
    }
    whole
}

/// A value that fits a parameter; `text` is what texts are.
pub(crate) fn sample(parameter: &Parameter, file: &Path, text: &str) -> String {
    match parameter.input {
        InputType::Number => "7".to_owned(),
        InputType::Boolean => "true".to_owned(),
        InputType::Date => "2026-01-31".to_owned(),
        InputType::Select => parameter.options.first().cloned().unwrap_or_default(),
        InputType::File => file.display().to_string(),
        InputType::String => text.to_owned(),
    }
}

/// A text as it would be read from a file of the person, where such files are.
pub(crate) fn read(kind: Kind, text: &str) -> Loaded {
    let root = PathBuf::from("/nowhere");
    let name = match kind {
        Kind::Recipe => "x.yaml",
        Kind::Skill => "skills/x/SKILL.md",
        Kind::Agent => "agents/x.md",
    };
    parse(text, kind, &Origin { file: root.join(name), root, scope: Scope::User })
}
