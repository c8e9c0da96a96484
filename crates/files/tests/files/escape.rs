//! Paths that want out: prefixes × ways out × endings, through every tool, both ways of opening.
//! Outside lies a canary: its words must never be in an answer, and nothing out there may change.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;

use locum_files::{Access, Bar, Desk, Roots, Stop, Way};
use rustix::fs::{CWD, FileType, Mode, mkfifoat, mknodat};
use serde_json::{Value, json};

use crate::support::{Scratch, tree, within};

const CANARY: &str = "CANARY-7f3a";

const PREFIXES: &[&str] = &["", "./", "src/../", "src/deep/../../", "in/../../", "{root}/", "//"];

const ENDINGS: &[&str] = &["", "/", "/.", "/../outside/secret"];

const LINKS: &[(&str, &str)] = &[
    ("to-file", "../outside/secret"),
    ("to-file-abs", "{top}/outside/secret"),
    ("to-dir", "../outside"),
    ("to-dir-abs", "{top}/outside"),
    ("to-slash", "/"),
    ("up", ".."),
    ("src/up2", "../.."),
    ("loop-a", "loop-b"),
    ("loop-b", "loop-a"),
    ("self", "self"),
    ("self-in", "self-in/x"),
    ("dangling-out", "../outside/new.txt"),
    ("dangling-abs", "{top}/outside/new.txt"),
    ("dangling-dir", "../outside/none/new.txt"),
    ("chain1", "chain2"),
    ("chain2", "src/chain3"),
    ("src/chain3", "../../outside"),
    ("winding", "src/../../outside/secret"),
    ("out-and-in", "../root/../outside/secret"),
    ("round", "{root}/../outside/secret"),
    ("double", "//{top}/outside/secret"),
    ("proc-root", "/proc/self/root"),
    ("proc-cwd", "/proc/self/cwd"),
    ("proc-fd", "/proc/self/fd"),
    ("proc-environ", "/proc/self/environ"),
    ("evil", "../root-evil"),
    ("data-link", "{top}/data"),
    ("data-in", "own"),
    ("git-link", ".git"),
    ("hooks-link", ".git/hooks"),
    ("in", "src/deep"),
];

const WAYS_OUT: &[&str] = &[
    "..",
    "../outside/secret",
    "../outside",
    "../outside/new.txt",
    "../../../../../../../../../../../../etc/passwd",
    "/etc/passwd",
    "{top}/outside/secret",
    "{top}/outside/new.txt",
    "{root}/../outside/secret",
    "{root}-evil/secret",
    "../root-evil/secret",
    "../root/../outside/secret",
    "/proc/self/root{top}/outside/secret",
    "/proc/self/cwd/../secret",
    "/proc/self/fd/3",
    "/proc/thread-self/root{top}/outside/secret",
    "/dev/stdin",
    "/dev/fd/0",
    "to-file",
    "to-file-abs",
    "to-dir",
    "to-dir/secret",
    "to-dir/dir/CANARY-7f3a.txt",
    "to-dir/new.txt",
    "to-dir-abs/secret",
    "to-slash{top}/outside/secret",
    "up/outside/secret",
    "up/outside/new/file",
    "src/up2/outside/secret",
    "loop-a",
    "loop-a/x",
    "self",
    "self/self/self",
    "self-in",
    "dangling-out",
    "dangling-abs",
    "dangling-dir",
    "chain1/secret",
    "chain1/new.txt",
    "winding",
    "out-and-in",
    "round",
    "double",
    "proc-root{top}/outside/secret",
    "proc-cwd/Cargo.toml",
    "proc-fd/0",
    "proc-environ",
    "evil/secret",
    "data-link/keys",
    "data-link/new",
    "data-in/keys",
    "own",
    "own/keys",
    "OWN/keys",
    "own/new",
    "own/absent/deep/new",
    "git-link/config",
    "git-link/hooks/new",
    "hooks-link/pre-commit",
    "hooks-link/new",
    ".git/config",
    ".git/hooks/new",
    ".GIT/hooks/new",
    ".git./hooks/new",
    ".g\u{200c}it/config",
    "src/.git/hooks/new",
    "new/.git",
    "hard",
    "hard-keys",
    "pipe",
    "pipe/x",
    "sock",
    "null",
    "src/pipe",
    "a.txt/../../outside/secret",
    "none/../../outside/secret",
    "..%2foutside%2fsecret",
    "%2e%2e/outside/secret",
    "..\\outside\\secret",
    "\u{ff0e}\u{ff0e}/outside/secret",
    "\u{2025}/outside/secret",
    "\u{202e}../outside/secret",
    ".. /outside/secret",
    "..\u{a0}/outside/secret",
    "...//...//outside/secret",
    "....//outside/secret",
    "..//..//outside///secret",
    "./.././outside/./secret",
    "a\0/../../outside/secret",
    "../outside/secret\0.txt",
    "../outside/secret\n",
    "a\nb/../../outside/secret",
    "~/outside/secret",
    "~root/.profile",
    "$HOME/.profile",
    "file://{top}/outside/secret",
    "file:../outside/secret",
    "C:\\outside\\secret",
    "\\\\?\\outside",
    "spill:../../outside/secret",
    "{long}/../../outside/secret",
    "{ups}outside/secret",
    "{deep}",
];

struct World {
    scratch: Scratch,
    desk: Desk,
}

impl World {
    fn new(way: Way) -> World {
        let scratch = Scratch::quick();
        scratch.put("outside/secret", CANARY);
        scratch.put("outside/dir/CANARY-7f3a.txt", CANARY);
        scratch.put("root-evil/secret", CANARY);
        scratch.put("data/keys", CANARY);
        // What a hard link shares is in the workspace by somebody's will; it may be read there.
        scratch.put("outside/shared", "shared words\n");
        scratch.put("root/own/keys", CANARY);
        scratch.put("root/a.txt", "inside words\n");
        scratch.put("root/src/deep/c.rs", "inside words\n");
        scratch.put("root/src/.git/config", "inside words\n");
        scratch.put("root/.git/config", "inside words\n");
        scratch.put("root/.git/hooks/pre-commit", "inside words\n");
        let root = scratch.root();
        for (name, target) in LINKS {
            scratch.link(&format!("root/{name}"), expand(target, &scratch));
        }
        fs::hard_link(scratch.0.join("outside/shared"), root.join("hard")).unwrap();
        fs::hard_link(scratch.0.join("data/keys"), root.join("hard-keys")).unwrap();
        for pipe in ["pipe", "src/pipe"] {
            mkfifoat(CWD, root.join(pipe), Mode::from_raw_mode(0o666)).unwrap();
        }
        drop(UnixListener::bind(root.join("sock")).unwrap());
        let device = rustix::fs::makedev(1, 3);
        let mode = Mode::from_raw_mode(0o666);
        // Only root can make devices; elsewhere the name is simply not there.
        let _ = mknodat(CWD, root.join("null"), FileType::CharacterDevice, mode, device);
        let roots = Roots::new(&root, Access::Writable).unwrap().by(way);
        let roots = roots.protect(&scratch.0.join("data"), Bar::Everything);
        let roots = roots.protect(&root.join("own"), Bar::Everything);
        let desk = Desk::new(roots);
        World { scratch, desk }
    }

    /// All that nobody may touch.
    fn untouchable(&self) -> Vec<(std::path::PathBuf, String)> {
        let mut all = tree(&self.scratch.0, &["root"]);
        for inside in ["root/.git", "root/src/.git", "root/own"] {
            all.extend(tree(&self.scratch.0.join(inside), &[]));
        }
        let etc = Path::new("/etc/passwd");
        all.insert(etc.to_owned(), fs::read_to_string(etc).unwrap_or_default());
        all.into_iter().collect()
    }
}

fn expand(path: &str, scratch: &Scratch) -> String {
    let top = scratch.0.to_string_lossy();
    let root = format!("{top}/root");
    path.replace("{top}", &top)
        .replace("{root}", &root)
        .replace("{long}", &"n".repeat(300))
        .replace("{ups}", &"../".repeat(500))
        .replace("{deep}", &"d/".repeat(300))
}

fn calls(path: &str) -> [(&'static str, Value); 12] {
    [
        ("read", json!({"path": path})),
        ("write", json!({"path": path, "content": "OVERWRITTEN"})),
        ("edit", json!({"path": path, "edits": [{"old": CANARY, "new": "x"}]})),
        ("edit", json!({"path": path, "edits": [{"old": "words", "new": "x"}]})),
        ("ls", json!({"path": path})),
        ("glob", json!({"pattern": "**", "path": path})),
        ("glob", json!({"pattern": path})),
        ("glob", json!({"pattern": format!("{path}/*")})),
        ("grep", json!({"pattern": CANARY_PATTERN, "path": path})),
        ("grep", json!({"pattern": CANARY_PATTERN, "glob": path})),
        ("write", json!({"path": format!("{path}/new.txt"), "content": "OVERWRITTEN"})),
        ("read", json!({"path": path, "offset": 1, "limit": 5})),
    ]
}

/// Finds the canary without being it.
const CANARY_PATTERN: &str = "CANARY.7f3.|root:x.0";

/// Every way out with every prefix, and with every ending.
fn paths(scratch: &Scratch) -> Vec<Vec<String>> {
    let with = |out: &&str| {
        let begun = PREFIXES.iter().map(|prefix| format!("{prefix}{out}"));
        let ended = ENDINGS.iter().skip(1).map(|ending| format!("{out}{ending}"));
        begun.chain(ended).map(|path| expand(&path, scratch)).collect()
    };
    WAYS_OUT.iter().map(with).collect()
}

fn try_all(way: Way) -> (usize, usize) {
    let world = World::new(way);
    let before = world.untouchable();
    let (mut count, mut tried) = (0, 0);
    for paths in paths(&world.scratch) {
        for path in &paths {
            count += 1;
            for (tool, arguments) in calls(path) {
                tried += 1;
                let answer = world.desk.run("me", tool, &arguments, &Stop::new());
                let said = match answer {
                    Ok(answer) => {
                        assert!(answer.image.is_none());
                        answer.text
                    }
                    Err(error) => error.to_string(),
                };
                // The path itself may name it; what it holds may not be there.
                let said = said.replace(path, "").replace("dir/CANARY-7f3a.txt", "");
                assert!(!said.contains(CANARY), "{way:?} {tool} {arguments}\n{said}");
                assert!(!said.contains("root:x:0"), "{way:?} {tool} {arguments}\n{said}");
            }
        }
        assert_eq!(before, world.untouchable(), "{way:?} one of {paths:?} changed something");
    }
    (count, tried)
}

#[test]
fn no_path_leads_out() {
    within(600, || {
        for way in [Way::Quick, Way::Stepwise] {
            let (paths, tried) = try_all(way);
            assert!(paths >= 300, "{paths}");
            eprintln!("{way:?}: {paths} paths, {tried} calls, nothing came out");
        }
    });
}

/// The first refusal of each kind, so that the big table cannot pass by refusing everything.
#[test]
fn what_is_said_to_those_who_try() {
    let cases = [
        ("read", "to-file", "to-file is outside the workspace"),
        ("read", "to-dir/secret", "to-dir/secret is outside the workspace"),
        ("read", "chain1/secret", "chain1/secret is outside the workspace"),
        ("read", "loop-a", "loop-a goes through too many links, perhaps in a circle"),
        ("read", "pipe", "pipe is a pipe, and only files can be read or written"),
        ("write", "pipe", "pipe is a pipe, and only files can be read or written"),
        ("read", "sock", "sock is a socket, and only files can be read or written"),
        ("write", "dangling-out", "dangling-out is outside the workspace"),
        ("write", "src", "src is not a file; ls shows a folder"),
        ("write", "git-link/hooks/x", "git-link/hooks/x is protected: these tools do not write it"),
        ("read", "data-in/keys", "data-in/keys is protected: these tools do not read it"),
        (
            "read",
            "hard-keys",
            "hard-keys has 2 names (hard links), and another one is kept from agents: these tools \
             do not read it",
        ),
        ("read", "a\0b", "a\\u{0}b cannot be a path: it contains a NUL"),
        ("read", "", " cannot be a path: it is empty"),
        (
            "write",
            "hard",
            "hard has 2 names (hard links) and the others may be outside the workspace; it is not \
             written. Remove it and write it anew if this one is meant alone",
        ),
    ];
    within(60, move || {
        for way in [Way::Quick, Way::Stepwise] {
            let world = World::new(way);
            for (tool, path, expected) in cases {
                let arguments = json!({"path": path, "content": "x"});
                let answer = world.desk.run("me", tool, &arguments, &Stop::new());
                assert_eq!(answer.unwrap_err().to_string(), expected, "{way:?} {tool} {path}");
            }
            let read = |path| world.desk.run("me", "read", &json!({"path": path}), &Stop::new());
            assert_eq!(read("in/c.rs").unwrap().text, "inside words\n");
            assert_eq!(read("hard").unwrap().text, "shared words\n");
            assert_eq!(read("git-link/config").unwrap().text, "inside words\n");
        }
    });
}

/// A root is the folder that was opened, whatever is put in its place.
#[test]
fn a_root_that_is_replaced() {
    for way in [Way::Quick, Way::Stepwise] {
        let world = World::new(way);
        let (root, away) = (world.scratch.root(), world.scratch.0.join("away"));
        fs::rename(&root, &away).unwrap();
        std::os::unix::fs::symlink(world.scratch.0.join("outside"), &root).unwrap();
        let run = |tool, arguments| world.desk.run("me", tool, &arguments, &Stop::new());
        assert_eq!(run("read", json!({"path": "a.txt"})).unwrap().text, "inside words\n");
        assert!(run("read", json!({"path": "secret"})).is_err());
        let absolute = root.join("secret").to_string_lossy().into_owned();
        assert!(run("read", json!({"path": absolute})).is_err());
        run("write", json!({"path": "new.txt", "content": "x"})).unwrap();
        assert!(away.join("new.txt").exists());
        assert!(!world.scratch.0.join("outside/new.txt").exists());
        fs::remove_file(&root).unwrap();
    }
}
