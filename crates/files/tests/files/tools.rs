//! What each tool says, one line per case: arguments, then the answer or the error.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use crate::support::{Scratch, say};
use locum_files::{Access, Bar, ChangeKind, Desk, Roots, Stop, Way, Write};
use serde_json::{Value, json};

fn world() -> Scratch {
    let scratch = Scratch::new();
    scratch.put("secret", "no");
    scratch.put("root/a.txt", "one\ntwo TODO\nthree\n");
    scratch.put("root/src/b.rs", "// TODO: more\nfn b() {}\n");
    scratch.put("root/src/deep/c.rs", "fn c() {}\n");
    scratch.put("root/.git/config", "TODO");
    scratch.put("root/.gitignore", "/out\n*.log\n!keep.log\n");
    scratch.put("root/out/d.rs", "TODO\n");
    scratch.put("root/x.log", "TODO\n");
    scratch.put("root/keep.log", "kept TODO\r\n");
    scratch.put("root/long", "1\n".repeat(64 << 10));
    scratch.put("root/wide", format!("{}\nnext\n", "x".repeat(5000)));
    scratch.put("root/binary", [0, 159, 146, 150]);
    scratch.put("root/doc.pdf", "%PDF-1.7\nTODO\n");
    scratch.put("root/pic.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x40\0\0\0\xf0\x08\x06");
    scratch.put("root/empty", "");
    scratch.put("root/win.txt", "a\r\nb\r\n");
    scratch.put("root/latin.txt", b"caf\xe9\n");
    scratch.link("root/link", "../secret");
    scratch.link("root/inside", "src/deep");
    scratch.link("root/absolute", scratch.root().join("src/b.rs"));
    scratch
}

fn check(cases: &[(&str, Value, Result<&str, &str>)]) {
    for way in [Way::Quick, Way::Stepwise] {
        for (tool, arguments, expected) in cases {
            let scratch = world();
            let desk = Desk::new(scratch.roots().by(way));
            let top = scratch.root().to_string_lossy().into_owned();
            let found = say(&desk, tool, arguments).map(|text| text.replace(&top, "{root}"));
            let found = found.as_ref().map(String::as_str).map_err(String::as_str);
            assert_eq!(found, *expected, "{tool} {arguments} {way:?}");
        }
    }
}

#[test]
fn read() {
    let more =
        "1\n1\n[lines 3 to 4 of long; more follow: read {\"path\": \"long\", \"offset\": 5}]\n";
    let wide = format!("{} [… 1001 more bytes in this line]\nnext\n", "x".repeat(4000));
    check(&[
        ("read", json!({"path": "a.txt"}), Ok("one\ntwo TODO\nthree\n")),
        ("read", json!({"path": "./src/../a.txt"}), Ok("one\ntwo TODO\nthree\n")),
        ("read", json!({"path": "inside/../b.rs"}), Ok("// TODO: more\nfn b() {}\n")),
        ("read", json!({"path": "inside/c.rs"}), Ok("fn c() {}\n")),
        ("read", json!({"path": "absolute"}), Ok("// TODO: more\nfn b() {}\n")),
        (
            "read",
            json!({"path": "a.txt", "offset": 2, "limit": 1}),
            Ok("two TODO\n[lines 2 to 2 of a.txt; more follow: \
                read {\"path\": \"a.txt\", \"offset\": 3}]\n"),
        ),
        (
            "read",
            json!({"path": "a.txt", "offset": 0, "limit": null}),
            Ok("one\ntwo TODO\nthree\n"),
        ),
        (
            "read",
            json!({"path": "a.txt", "offset": 9}),
            Ok("[a.txt has 3 lines; 9 is past its end]\n"),
        ),
        ("read", json!({"path": "long", "offset": 3, "limit": 2}), Ok(more)),
        ("read", json!({"path": "wide"}), Ok(&wide)),
        ("read", json!({"path": "empty"}), Ok("[empty is empty]")),
        ("read", json!({"path": "win.txt"}), Ok("a\nb\n[lines end in CR LF; edit keeps it so]\n")),
        ("read", json!({"path": "latin.txt"}), Ok("café\n[Latin-1; edit keeps it so]\n")),
        ("read", json!({"path": "binary"}), Ok("[binary is not text (4 bytes): binary data]")),
        ("read", json!({"path": "doc.pdf"}), Ok("[doc.pdf is not text (14 bytes): PDF document]")),
        ("read", json!({"path": "pic.png"}), Ok("[pic.png: image/png, 320×240, 26 bytes]")),
    ]);
}

#[test]
fn what_cannot_be_read() {
    check(&[
        ("read", json!({"path": "src"}), Err("src is not a file; ls shows a folder")),
        ("read", json!({"path": "src/b.rs/x"}), Err("src/b.rs/x is not a folder")),
        ("read", json!({"path": "a.txt/"}), Err("a.txt/ is not a folder")),
        ("read", json!({}), Err("read needs a `path`")),
        ("read", json!({"path": "../secret"}), Err("../secret is outside the workspace")),
        ("read", json!({"path": "link"}), Err("link is outside the workspace")),
        (
            "read",
            json!({"path": "src/c.rs"}),
            Err("src/c.rs does not exist; did you mean src/b.rs?"),
        ),
        ("read", json!({"path": "q/z"}), Err("q/z does not exist")),
        (
            "read",
            json!({"path": "~/x"}),
            Err("~/x: `~` is not expanded; name the path from the workspace, or an absolute one"),
        ),
        ("fly", json!({}), Err("Tool not found: fly")),
        (
            "read",
            json!({"path": 3}),
            Err("read cannot take these arguments: invalid type: integer `3`, expected a string"),
        ),
    ]);
}

#[test]
fn listing() {
    check(&[
        (
            "ls",
            json!({}),
            Ok(".git/\n.gitignore  21 bytes\na.txt  19 bytes\nabsolute -> {root}/src/b.rs\n\
                binary  4 bytes\ndoc.pdf  14 bytes\nempty  0 bytes\ninside -> src/deep\n\
                keep.log  11 bytes\nlatin.txt  5 bytes\nlink -> ../secret\nlong  131072 bytes\n\
                out/\npic.png  26 bytes\nsrc/\nwide  5006 bytes\nwin.txt  6 bytes\nx.log  5 bytes"),
        ),
        ("ls", json!({"limit": 1}), Ok(".git/\n[… and 17 more: the next are at \"offset\": 1]")),
        ("ls", json!({"offset": 18}), Ok("[18 entries are in .; offset is past them]")),
        ("ls", json!({"path": "inside"}), Ok("c.rs  10 bytes")),
        ("ls", json!({"path": "a.txt"}), Ok("a.txt  19 bytes")),
        ("ls", json!({"path": ".."}), Err(".. is outside the workspace")),
    ]);
}

#[test]
fn globbing() {
    check(&[
        ("glob", json!({"pattern": "*.rs"}), Ok("src/b.rs\nsrc/deep/c.rs")),
        ("glob", json!({"pattern": "src/*.rs"}), Ok("src/b.rs")),
        (
            "glob",
            json!({"pattern": "**/*.{rs,txt}"}),
            Ok("a.txt\nlatin.txt\nsrc/b.rs\nsrc/deep/c.rs\nwin.txt"),
        ),
        ("glob", json!({"pattern": "deep/*", "path": "src"}), Ok("src/deep/c.rs")),
        ("glob", json!({"pattern": "*.rs", "path": "out"}), Ok("out/d.rs")),
        ("glob", json!({"pattern": "*.log"}), Ok("keep.log")),
        (
            "glob",
            json!({"pattern": "*.rs", "limit": 1}),
            Ok("src/b.rs\n[… and 1 more: the next are at \"offset\": 1]"),
        ),
        ("glob", json!({"pattern": "*.rs", "limit": 1, "offset": 1}), Ok("src/deep/c.rs")),
        ("glob", json!({"pattern": "*.zig"}), Ok("nothing matches *.zig")),
        ("glob", json!({"pattern": "../*"}), Err("../* is outside the workspace")),
        ("glob", json!({"pattern": "/etc/*"}), Err("/etc/* is outside the workspace")),
        (
            "glob",
            json!({"pattern": "[z"}),
            Err("pattern: [z: unclosed character class; missing ']'"),
        ),
    ]);
}

#[test]
fn grepping() {
    let unclosed = "pattern: regex parse error:\n    (?:TODO()\n    ^\nerror: unclosed group\n\
                    for plain text set \"literal\": true";
    check(&[
        (
            "grep",
            json!({"pattern": "TODO"}),
            Ok("a.txt:2:two TODO\ndoc.pdf:2:TODO\nkeep.log:1:kept TODO\nsrc/b.rs:1:// TODO: more"),
        ),
        ("grep", json!({"pattern": "TODO", "glob": "*.rs"}), Ok("src/b.rs:1:// TODO: more")),
        ("grep", json!({"pattern": "TODO", "glob": "src/**"}), Ok("src/b.rs:1:// TODO: more")),
        ("grep", json!({"pattern": "TODO", "path": "out"}), Ok("out/d.rs:1:TODO")),
        ("grep", json!({"pattern": "TODO", "path": "x.log"}), Ok("x.log:1:TODO")),
        ("grep", json!({"pattern": "TODO$", "path": "keep.log"}), Ok("keep.log:1:kept TODO")),
        (
            "grep",
            json!({"pattern": "todo", "path": "a.txt", "ignore_case": true}),
            Ok("a.txt:2:two TODO"),
        ),
        (
            "grep",
            json!({"pattern": "TODO", "path": "a.txt", "context": 1}),
            Ok("a.txt-1-one\na.txt:2:two TODO\na.txt-3-three"),
        ),
        (
            "grep",
            json!({"pattern": "TODO", "limit": 2, "offset": 1}),
            Ok("doc.pdf:2:TODO\nkeep.log:1:kept TODO\n[more match: the next are at \"offset\": 3]"),
        ),
        ("grep", json!({"pattern": "TODO", "offset": 3}), Ok("src/b.rs:1:// TODO: more")),
        (
            "grep",
            json!({"pattern": "TODO", "offset": 4}),
            Ok("[4 lines match; offset is past them]"),
        ),
        ("grep", json!({"pattern": "fn c()", "literal": true}), Ok("src/deep/c.rs:1:fn c() {}")),
        ("grep", json!({"pattern": "nowhere"}), Ok("nothing matches nowhere")),
        ("grep", json!({"pattern": "TODO("}), Err(unclosed)),
        ("grep", json!({"pattern": "x", "path": "none"}), Err("none does not exist")),
    ]);
}

/// Calls one after another on the same desk; the file `f` in the end.
type Story<'a> = (&'a [u8], &'a [(&'a str, Value, Result<&'a str, &'a str>)], &'a [u8]);

fn play(stories: &[Story<'_>]) {
    for (before, calls, after) in stories {
        let scratch = Scratch::new();
        scratch.put("root/f", before);
        let desk = Desk::new(scratch.roots());
        for (tool, arguments, expected) in *calls {
            let found = say(&desk, tool, arguments);
            let found = found.as_ref().map(String::as_str).map_err(String::as_str);
            assert_eq!(found, *expected, "{tool} {arguments}");
        }
        let found = scratch.get("root/f");
        assert_eq!(found, *after, "{calls:?} left {:?}", String::from_utf8_lossy(&found));
    }
}

fn swap(old: &str, new: &str) -> Value {
    json!({"path": "f", "edits": [{"old": old, "new": new}]})
}

fn refused(before: &'static str, edits: &Value, why: &str) {
    let why = format!("f: {why}. Nothing was changed");
    play(&[(
        before.as_bytes(),
        &[
            (
                "edit",
                json!({"path": "f", "edits": edits}),
                Err("f exists and you have not read it; read it first"),
            ),
            ("read", json!({"path": "f"}), Ok(before)),
            ("edit", json!({"path": "f", "edits": edits}), Err(&why)),
        ],
        before.as_bytes(),
    )]);
}

#[test]
fn edits_that_are_refused() {
    let cases = [
        ("a b\n", json!([]), "`edits` is empty"),
        ("a b\n", json!([{"old": "", "new": "x"}]), "`old` is empty; write makes a whole file"),
        ("a b\n", json!([{"old": "a", "new": "a"}]), "`old` and `new` are the same"),
        (
            "a\na\n",
            json!([{"old": "a", "new": "b"}]),
            "`old` occurs 2 times (lines 1, 2); add lines around it until it is the only one, or \
             set `all`",
        ),
        (
            "let x = compute(1);\n",
            json!([{"old": "let x = compte(1);", "new": "y"}]),
            "`old` is not in the file; the nearest to its first line is line 1: \
             \"let x = compute(1);\"",
        ),
        (
            "a\n    b(c)\n",
            json!([{"old": "\tb(c)", "new": "d"}]),
            "`old` is not in the file; line 2 differs from it only in white space: \"    b(c)\"",
        ),
        (
            "x\nnew\n",
            json!([{"old": "old", "new": "new"}]),
            "`old` is not in the file, but `new` is (line 2): it may have been applied already",
        ),
        (
            "abc\n",
            json!([{"old": "zzz", "new": "y"}]),
            "`old` is not in the file, nor anything like it; read it again",
        ),
        (
            "a b\n",
            json!([{"old": "a", "new": "c"}, {"old": "q", "new": "r"}]),
            "edit 2 of 2: `old` is not in the file, nor anything like it; read it again",
        ),
        (
            "a b\n",
            json!([{"old": "a", "new": "c"}, {"old": "c", "new": "a"}]),
            "the edits undo each other",
        ),
    ];
    for (before, edits, why) in cases {
        refused(before, &edits, why);
    }
}

#[test]
fn edits_keep_what_a_text_is() {
    let read = || json!({"path": "f"});
    let crlf = "a\nb\n[lines end in CR LF; edit keeps it so]\n";
    play(&[
        (
            b"a\r\nb\r\n",
            &[("read", read(), Ok(crlf)), ("edit", swap("a\nb", "c\nb"), Ok(&diff("a", "c")))],
            b"c\r\nb\r\n",
        ),
        (
            b"a\r\nb\n",
            &[
                (
                    "read",
                    read(),
                    Ok("a\r\nb\n[some lines end in CR LF, others in LF; edit keeps it so]\n"),
                ),
                (
                    "edit",
                    swap("a\nb", "c\nb"),
                    Ok("f edited\n--- f\n+++ f\n@@ -1,2 +1,2 @@\n-a\r\n+c\r\n b\n"),
                ),
            ],
            b"c\r\nb\n",
        ),
        (
            b"caf\xe9\nb\n",
            &[
                ("read", read(), Ok("café\nb\n[Latin-1; edit keeps it so]\n")),
                (
                    "edit",
                    swap("café", "木"),
                    Err("f is Latin-1 text, which has no '木'; write saves it as UTF-8 instead"),
                ),
                ("edit", swap("café", "thé"), Ok(&diff("café", "thé"))),
                (
                    "edit",
                    swap("thé", "t\0"),
                    Err("f: the result would not be read as the same text. Nothing was changed"),
                ),
                ("edit", swap("thé", "tea"), Ok(&diff("thé", "tea"))),
            ],
            b"tea\nb\n",
        ),
    ]);
}

fn diff(old: &str, new: &str) -> String {
    format!("f edited\n--- f\n+++ f\n@@ -1,2 +1,2 @@\n-{old}\n+{new}\n b\n")
}

#[test]
fn writes_and_edits() {
    let read = || json!({"path": "f"});
    let two = json!([
        {"old_string": "c", "new_string": "d"},
        {"old": "d", "new": "e", "all": true},
    ]);
    play(&[
        (
            b"a\nb\n",
            &[
                (
                    "write",
                    json!({"path": "f", "content": "x"}),
                    Err("f exists and you have not read it; read it first"),
                ),
                ("read", read(), Ok("a\nb\n")),
                (
                    "write",
                    json!({"path": "f", "content": "a\nb\n"}),
                    Ok("f is already so; nothing was written"),
                ),
                (
                    "write",
                    json!({"path": "f", "content": "c\nb\n"}),
                    Ok(&diff("a", "c").replace("edited", "written, 4 bytes")),
                ),
                ("edit", json!({"path": "f", "edits": two}), Ok(&diff("c", "e"))),
            ],
            b"e\nb\n",
        ),
        (
            b"a a\nb\n",
            &[
                ("read", read(), Ok("a a\nb\n")),
                (
                    "edit",
                    json!({"path": "f", "edits": [{"old": "a", "new": "c", "all": true}]}),
                    Ok(&diff("a a", "c c")),
                ),
            ],
            b"c c\nb\n",
        ),
    ]);
}

#[test]
fn a_file_that_changed_is_read_again_first() {
    let scratch = Scratch::new();
    scratch.put("root/f", "a\n");
    let desk = Desk::new(scratch.roots());
    say(&desk, "read", &json!({"path": "f"})).unwrap();
    scratch.put("root/f", "b\n");
    let stale = Err("f changed since you read it; read it again".to_owned());
    assert_eq!(say(&desk, "edit", &swap("b", "c")), stale);
    assert_eq!(say(&desk, "write", &json!({"path": "f", "content": "c"})), stale);
    say(&desk, "read", &json!({"path": "f"})).unwrap();
    say(&desk, "edit", &swap("b", "c")).unwrap();
    // Another agent has not seen what this one did.
    let other = Write { path: "f".to_owned(), content: "d".to_owned() };
    let unread = desk.write("other", &other).unwrap_err().to_string();
    assert_eq!(unread, "f exists and you have not read it; read it first");
    assert_eq!(scratch.get("root/f"), b"c\n");
    desk.forget("me");
    assert!(say(&desk, "edit", &swap("c", "d")).is_err());
}

#[test]
fn what_a_new_file_and_a_replaced_one_are_like() {
    let scratch = Scratch::new();
    let desk = Desk::new(scratch.roots());
    let args = Write { path: "x/y/z.sh".to_owned(), content: "a\n".to_owned() };
    let answer = desk.write("me", &args).unwrap();
    assert_eq!(answer.text, "x/y/z.sh created, 2 bytes");
    let change = answer.change.unwrap();
    assert_eq!((change.kind, change.before), (ChangeKind::Created, None));
    let digest = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7";
    assert_eq!(change.after, digest);
    let path = scratch.root().join("x/y/z.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4751)).unwrap();
    let args = Write { content: "b\n".to_owned(), ..args };
    let change = desk.write("me", &args).unwrap().change.unwrap();
    assert_eq!((change.kind, change.before.as_deref()), (ChangeKind::Changed, Some(digest)));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    let left: Vec<_> = fs::read_dir(scratch.root().join("x/y")).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(fs::read(path).unwrap(), b"b\n");
}

/// Copies of agents lie in a hidden folder, and a build in one has more files than anybody would
/// look through; what a package manager links into it is no secret for that.
#[test]
fn a_folder_of_no_secrets_in_a_hidden_one_hides_no_other_name() {
    let scratch = world();
    scratch.put("root/store/a.js", "shared\n");
    scratch.put("data/copies/n.txt", "");
    let link = |to: &str| fs::hard_link(scratch.root().join("store/a.js"), scratch.0.join(to));
    link("data/copies/a.js").unwrap();
    let data = scratch.0.join("data");
    let read = |roots| say(&Desk::new(roots), "read", &json!({"path": "store/a.js"}));
    let hidden = || scratch.roots().protect(&data, Bar::Everything);
    assert_eq!(read(hidden().known_beside(&data.join("copies"))), Ok("shared\n".to_owned()));
    assert!(read(hidden()).is_err());
    link("data/a.js").unwrap();
    assert!(read(hidden().known_beside(&data.join("copies"))).is_err());
}

#[test]
fn roots_that_may_only_be_read_and_paths_that_are_protected() {
    let scratch = world();
    scratch.put("extra/e.txt", "extra TODO\n");
    scratch.put("root/data/keys", "TODO key\n");
    fs::hard_link(scratch.0.join("root/data/keys"), scratch.0.join("root/innocent")).unwrap();
    let top = scratch.root();
    let roots = scratch.roots().and(&scratch.0.join("extra"), Access::ReadOnly).unwrap();
    let roots = roots.protect(&top.join("data"), Bar::Everything);
    let desk = Desk::new(roots.protect(&top.join("later/config"), Bar::Writing));
    let extra = scratch.0.join("extra/e.txt").to_string_lossy().into_owned();
    let write = |path: &str| say(&desk, "write", &json!({"path": path, "content": "x"}));
    let read = |path: &str| say(&desk, "read", &json!({"path": path}));
    assert_eq!(read(&extra), Ok("extra TODO\n".to_owned()));
    assert_eq!(
        write(&extra),
        Err(format!("{extra} is in a folder that may be read but not written"))
    );
    let protected =
        |path: &str, deed: &str| Err(format!("{path} is protected: these tools do not {deed} it"));
    for path in ["data/keys", "data", "src/../data/keys", "DATA/keys"] {
        assert_eq!(read(path), protected(path, "read"));
        assert_eq!(write(path), protected(path, "write"));
    }
    let alias = "innocent has 2 names (hard links), and another one is kept from agents: these \
                 tools do not read it";
    assert_eq!(read("innocent"), Err(alias.to_owned()));
    let paths = [
        ".git/config",
        ".git/new",
        "src/.git/hooks/x",
        ".GIT/x",
        ".git",
        "later",
        "later/config/x",
    ];
    for path in paths {
        assert_eq!(write(path), protected(path, "write"));
    }
    assert!(write("later/other").is_ok());
    let found = say(&desk, "grep", &json!({"pattern": "TODO", "path": "."})).unwrap();
    assert!(!found.contains("key"), "{found}");
    let found = say(&desk, "glob", &json!({"pattern": "**/k*"})).unwrap();
    assert_eq!(found, "keep.log");
    let roots = Roots::new(&top, Access::ReadOnly).unwrap();
    let found = say(&Desk::new(roots), "write", &json!({"path": "n", "content": ""}));
    assert_eq!(found, Err("n is in a folder that may be read but not written".to_owned()));
}

#[test]
fn a_search_that_is_told_to_stop() {
    let scratch = world();
    let desk = Desk::new(scratch.roots());
    let stop = Stop::new();
    stop.set();
    let answer = desk.run("me", "grep", &json!({"pattern": "TODO"}), &stop).unwrap();
    assert_eq!(
        answer.text,
        "nothing matches TODO\n[not everything was searched: it was told to stop]"
    );
}

/// The pages of a search, put together, are the search.
#[test]
fn pages_fit_together() {
    let scratch = Scratch::new();
    for file in 0..300 {
        let lines = (0..file % 7).map(|line| format!("hit {file} {line}\nmiss\n"));
        scratch.put(&format!("root/{}/{file}.txt", file % 13), lines.collect::<String>());
    }
    let desk = Desk::new(scratch.roots());
    let all = say(&desk, "grep", &json!({"pattern": "hit", "limit": 1000})).unwrap();
    assert_eq!(all.lines().count(), (0..300).map(|file| file % 7).sum::<usize>());
    let mut pages = Vec::new();
    for offset in (0..1000).step_by(37) {
        let page = say(&desk, "grep", &json!({"pattern": "hit", "limit": 37, "offset": offset}));
        let page = page.unwrap();
        pages.extend(page.lines().filter(|row| !row.starts_with('[')).map(str::to_owned));
    }
    assert_eq!(pages.join("\n"), all);
    let mut sorted: Vec<&str> = all.lines().map(|row| row.split(':').next().unwrap()).collect();
    let found = sorted.clone();
    sorted.sort_unstable();
    assert_eq!(found, sorted);
}

/// Every entry is on a page, and every path can be read by the name it is listed under.
#[test]
fn long_folders_have_pages_and_long_paths_are_whole() {
    let scratch = Scratch::new();
    for nth in 0..1203 {
        scratch.put(&format!("root/many/{nth:04}"), "");
    }
    let deep = format!("{}/leaf.txt", ["d".repeat(200), "e".repeat(200)].join("/"));
    scratch.put(&format!("root/{deep}"), "found\n");
    let desk = Desk::new(scratch.roots());
    let (mut seen, mut offset) = (Vec::new(), 0);
    loop {
        let page = say(&desk, "ls", &json!({"path": "many", "offset": offset})).unwrap();
        let (rows, note) = page.split_once("\n[… and ").unwrap_or((&page, ""));
        seen.extend(rows.lines().map(|row| row.split(' ').next().unwrap().to_owned()));
        let Some((_, next)) = note.split_once("\"offset\": ") else { break };
        offset = next.trim_end_matches(']').parse::<usize>().unwrap();
    }
    let expected: Vec<String> = (0..1203).map(|nth| format!("{nth:04}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(say(&desk, "glob", &json!({"pattern": "leaf.txt"})), Ok(deep.clone()));
    let found = say(&desk, "grep", &json!({"pattern": "found"})).unwrap();
    assert!(found.contains(&deep), "{found}");
}
