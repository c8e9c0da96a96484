//! What commands are kept from, as a session has it and not only as the sandbox could.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::str;

use crate::Test;
use crate::stage::{Played, Stage, allow};

pub(crate) const TESTS: &[Test] = &[
    ("what_agents_are_made_of_is_kept", what_agents_are_made_of_is_kept),
    ("nothing_on_the_way_there_is_kept_too", nothing_on_the_way_there_is_kept_too),
    ("file_tools_make_none_of_it_either", file_tools_make_none_of_it_either),
    ("what_a_home_is_made_of_is_kept", what_a_home_is_made_of_is_kept),
    ("file_tools_keep_a_home_too", file_tools_keep_a_home_too),
    ("repositories_below_are_kept", repositories_below_are_kept),
    ("what_was_left_standing_goes_at_the_start", what_was_left_standing_goes_at_the_start),
    ("walls_that_are_gone_are_noticed", walls_that_are_gone_are_noticed),
    ("what_the_machine_keeps_is_hidden", what_the_machine_keeps_is_hidden),
    ("other_names_of_what_is_kept_are_kept", other_names_of_what_is_kept_are_kept),
    ("who_waits_hears_what_is_said", who_waits_hears_what_is_said),
    ("what_process_does_not_know_is_told", what_process_does_not_know_is_told),
];

/// One command.
fn ran(stage: &Stage, command: &str) -> Played {
    let command = serde_json::to_string(command).unwrap();
    let yaml = format!(
        "agents:\n  main:\n    - calls: [{{exec: {{command: {command}}}}}]\n    - say: done\n"
    );
    stage.play(&yaml, |config| config.rules.push(allow("exec", None)))
}

fn git(stage: &Stage, words: &[&str]) -> String {
    let mut command = Command::new("git");
    let done = command.args(words).current_dir(&stage.place.workspace).output().unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// There or not: who could write here would write agents. Nothing is left behind, and a repository
/// looks as clean to the command as it is.
fn what_agents_are_made_of_is_kept() {
    #[rustfmt::skip]
    let absent = [
        ".locum", ".claude", ".agents", ".goose", ".opencode", ".codex", ".gemini", ".mcp.json",
        ".github/agents", ".github/skills",
    ];
    let there = [".claude", ".github/agents"];
    for (name, made) in absent.map(|it| (it, false)).into_iter().chain(there.map(|it| (it, true))) {
        let stage = Stage::new();
        git(&stage, &["init", "-q"]);
        fs::create_dir_all(stage.work(".github/workflows")).unwrap();
        if made {
            fs::create_dir_all(stage.work(name)).unwrap();
        }
        let writes = format!(
            "git status --short; (echo bad > {name} || mkdir -p {name}/agents && \
             echo bad > {name}/agents/a.md || mv {name} away) 2>/dev/null || echo kept; touch fine"
        );
        let played = ran(&stage, &writes);
        assert_eq!(played.results("main"), ["kept\n"], "{name} {made}");
        assert_eq!(stage.work(name).exists(), made, "{name}");
        assert!(!stage.work(name).join("agents").exists());
        assert_eq!(git(&stage, &["status", "--short"]), "?? fine\n", "{name}");
        // A workflow is nothing that agents are made of.
        ran(&stage, "echo 1 > .github/workflows/a.yml");
        assert_eq!(stage.read(".github/workflows/a.yml"), "1\n");
    }
}

/// Where not even the folder is that they would be in, commands may make that folder and all else
/// in it, and nothing of ours stays there.
fn nothing_on_the_way_there_is_kept_too() {
    let bad = "mkdir -p .github/X && echo bad > .github/X/a.md || \
               { rm -rf .github; mkdir -p .github/X && echo bad > .github/X/a.md; } || \
               { mv .github y; mkdir -p .github/X && echo bad > .github/X/a.md; } || \
               { mkdir -p z/X; echo bad > z/X/a.md; mv -T z .github || ln -sT z .github; }";
    let fine = "mkdir -p .github/workflows; echo 1 > .github/workflows/a.yml";
    for (name, before, after) in [("agents", "", ""), ("skills", fine, ""), ("agents", "", fine)] {
        let stage = Stage::new();
        git(&stage, &["init", "-q"]);
        let bad = bad.replace('X', name);
        let line = format!("{before}\n({bad}) 2>/dev/null || echo kept\n{after}");
        let played = ran(&stage, &line);
        assert_eq!(played.results("main"), ["kept\n"], "{line}");
        assert_eq!(stage.work(".github").exists(), !after.is_empty(), "{line}");
        assert!(!stage.work(".github").join(name).exists(), "{line}");
        if !after.is_empty() {
            assert_eq!(stage.read(".github/workflows/a.yml"), "1\n");
        }
    }
}

/// There or not, and by whatever name.
fn file_tools_make_none_of_it_either() {
    let barred = [
        ".github/agents/a.md",
        ".GitHub/Agents/a.md",
        ".github/skills/s/SKILL.md",
        ".github/agents",
        ".github",
        "link/agents/a.md",
        "deep/../.github/agents/a.md",
        ".claude/agents/a.md",
        ".goose/recipes/a.yaml",
        ".agents/skills/s/SKILL.md",
        ".mcp.json",
        ".mcp.json/x",
    ];
    for (path, made) in barred.iter().flat_map(|path| [(path, false), (path, true)]) {
        let stage = Stage::new();
        if made {
            fs::create_dir_all(stage.work(".github/workflows")).unwrap();
        }
        fs::create_dir_all(stage.work("deep")).unwrap();
        std::os::unix::fs::symlink(".github", stage.work("link")).unwrap();
        let calls = format!(
            "{{write: {{path: {path}, content: bad}}}}, \
             {{write: {{path: .github/workflows/a.yml, content: fine}}}}"
        );
        let yaml = format!("agents: {{main: [{{calls: [{calls}]}}, {{say: done}}]}}");
        let played = stage.play(&yaml, |config| config.rules.push(allow("write", None)));
        let told = &played.results("main")[0];
        let why = ["is protected", "is a link", "No such file", "not a folder", "leads"];
        assert!(why.iter().any(|why| told.contains(why)), "{path} {made}: {told}");
        let found = stage.work(path).is_file() || stage.work(".github/agents").exists();
        assert!(!found, "{path} {made}");
        assert_eq!(stage.read(".github/workflows/a.yml"), "fine", "{path} {made}");
    }
}

/// What is the person's own in a home, and what starts there by itself.
const AT_HOME: [&str; 22] = [
    ".agents/skills/e/SKILL.md",
    ".ash/skills/e/SKILL.md",
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".claude/agents/e.md",
    ".codex/skills/e/SKILL.md",
    ".config/agents/skills/e/SKILL.md",
    ".config/fish/config.fish",
    ".config/git/config",
    ".config/goose/recipes/e.yaml",
    ".config/locum/config.toml",
    ".config/opencode/agents/e.md",
    ".config/systemd/user/e.service",
    ".gemini/agents/e.md",
    ".gitconfig",
    ".goose/recipes/e.yaml",
    ".local/share/locum/trust.json",
    ".locum/agents/e.md",
    ".mcp.json",
    ".ssh/authorized_keys",
    ".zshrc",
];

/// The workspace is a home, or holds one, which has nothing in it or all of this.
fn homes() -> impl Iterator<Item = (Stage, &'static str, bool)> {
    let all = ["", "me/"].into_iter().flat_map(|at| [(at, false), (at, true)]);
    all.map(|(at, made)| {
        let mut stage = Stage::new();
        let home = stage.work(at);
        fs::create_dir_all(&home).unwrap();
        for name in AT_HOME.iter().filter(|_| made) {
            fs::create_dir_all(home.join(name).parent().unwrap()).unwrap();
            fs::write(home.join(name), "own").unwrap();
        }
        stage.place.home = Some(home);
        (stage, at, made)
    })
}

fn everything(folder: &Path) -> Vec<String> {
    let found = Command::new("find")
        .arg(folder)
        .args(["-mindepth", "1", "-not", "-path", "*/.cache*"])
        .output()
        .unwrap();
    let mut found: Vec<String> =
        str::from_utf8(&found.stdout).unwrap().lines().map(str::to_owned).collect();
    found.sort();
    found
}

/// There or not, and nothing stays behind. The rest of a home is like any folder.
fn what_a_home_is_made_of_is_kept() {
    for (stage, at, made) in homes() {
        let before = everything(&stage.place.workspace);
        let each = AT_HOME.map(|name| {
            let (path, top) =
                (format!("{at}{name}"), format!("{at}{}", name.split('/').next().unwrap()));
            format!(
                "(mkdir -p $(dirname {path}); echo bad > {path} || \
                 {{ rm -rf {top}; mkdir -p $(dirname {path}); echo bad > {path}; }} || \
                 {{ mv {top} gone; mkdir -p $(dirname {path}); echo bad > {path}; }}) 2>/dev/null \
                 && echo {path}"
            )
        });
        let line = format!("{}\nrm -rf gone", each.join("\n"));
        let played = ran(&stage, &line);
        assert_eq!(played.results("main"), [""], "{at} {made}");
        assert_eq!(everything(&stage.place.workspace), before, "{at} {made}");
        for name in AT_HOME.iter().filter(|_| made) {
            assert_eq!(stage.read(&format!("{at}{name}")), "own", "{at}");
        }
        ran(&stage, &format!("mkdir -p {at}.config/other && echo 1 > {at}.config/other/a"));
        assert_eq!(stage.read(&format!("{at}.config/other/a")), "1\n", "{at} {made}");
    }
}

fn file_tools_keep_a_home_too() {
    for (stage, at, made) in homes() {
        let before = everything(&stage.place.workspace);
        let calls = AT_HOME.map(|name| format!("{{write: {{path: {at}{name}, content: bad}}}}"));
        let (fine, calls) = (format!("{at}.config/other/a"), calls.join(", "));
        let fine_call = format!("{{write: {{path: {fine}, content: fine}}}}");
        let yaml = format!(
            "agents: {{main: [{{calls: [{calls}]}}, {{calls: [{fine_call}]}}, {{say: done}}]}}"
        );
        let played = stage.play(&yaml, |config| config.rules.push(allow("write", None)));
        let told = played.results("main");
        for (name, told) in AT_HOME.iter().zip(told) {
            assert!(told.contains("is protected"), "{at}{name} {made}: {told}");
        }
        assert_eq!(stage.read(&fine), "fine");
        fs::remove_dir_all(stage.work(&fine).parent().unwrap()).unwrap();
        if !made {
            let _ = fs::remove_dir(stage.work(&format!("{at}.config")));
        }
        assert_eq!(everything(&stage.place.workspace), before, "{at} {made}");
    }
}

/// In a folder of clones each is somebody's, and commits in it are ordinary work.
fn repositories_below_are_kept() {
    let stage = Stage::new();
    fs::create_dir_all(stage.work("p1/.claude/agents")).unwrap();
    fs::write(stage.work("p1/.mcp.json"), "{}").unwrap();
    for words in ["init -q p1", "-C p1 config user.name t", "-C p1 config user.email t@t"] {
        git(&stage, &words.split(' ').collect::<Vec<_>>());
    }
    let config = stage.read("p1/.git/config");
    let line = "(echo bad > p1/.git/hooks/pre-commit) 2>/dev/null && echo hooks
        git -C p1 config core.fsmonitor evil 2>/dev/null && echo config
        (echo bad > p1/.claude/agents/e.md) 2>/dev/null && echo agents
        (echo bad > p1/.mcp.json) 2>/dev/null && echo servers
        mv p1 p2 2>/dev/null && echo moved
        cd p1 && echo 1 > fine && git add fine && git commit -qm fine && echo committed";
    for _ in 0..4 {
        let played = ran(&stage, &line.replace("echo 1", "date +%N"));
        assert_eq!(played.results("main"), ["committed\n"]);
    }
    assert_eq!(stage.read("p1/.git/config"), config);
    assert_eq!(stage.read("p1/.mcp.json"), "{}");
    assert!(!stage.work("p1/.git/commondir").exists(), "what stood in for it is gone");
}

/// As a run that was killed leaves it. What is somebody's own has another date, or is not empty.
fn what_was_left_standing_goes_at_the_start() {
    let stage = Stage::new();
    let left = [".agents", ".claude", ".git", ".github/agents", ".github/skills", ".mcp.json"];
    for name in left.iter().chain(&[".goose", ".locum/agents"]) {
        fs::create_dir_all(stage.work(name)).unwrap();
    }
    let dated = |name: &str| {
        let done = Command::new("touch").args(["-d", "@1"]).arg(stage.work(name)).status();
        assert!(done.unwrap().success());
    };
    for name in left.iter().chain(&[".github", ".locum"]) {
        dated(name);
    }
    locum_tools::tidy(&stage.place);
    let names: Vec<String> = everything(&stage.place.workspace);
    let own =
        [".goose", ".locum", ".locum/agents"].map(|name| stage.work(name).display().to_string());
    assert_eq!(names, own);
}

/// The program that lets its walls fall.
pub(crate) const FALL: &str = "__fall";
/// How many of what walls are made of somebody may have.
const MOUNTS: &str = "/proc/sys/user/max_mnt_namespaces";

/// Namespaces are switched off while a session goes on: in a world of its own, where that is
/// allowed.
fn walls_that_are_gone_are_noticed() {
    let stage = Stage::new();
    let own = std::env::current_exe().unwrap();
    let alone = format!("test -w {MOUNTS} && exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", &alone]).arg(own).arg(FALL).arg(&stage.root);
    let done = command.env_remove("XDG_CACHE_HOME").output();
    let said = done.map(|it| String::from_utf8_lossy(&it.stdout).into_owned()).unwrap_or_default();
    if !said.contains("began") {
        println!("SKIPPED: no world of its own here in which walls can fall: {said}");
        return;
    }
    assert!(said.contains("first: fine") && said.contains("second: not run: "), "{said}");
    assert!(said.contains("then every command asks you") && said.contains("ok: false"), "{said}");
    assert!(said.contains("note: false"), "{said}");
    assert!(!stage.work("ran").exists());
}

/// The inside of that. Only root of its own world may do this, and it holds only there.
pub(crate) fn fall(args: &[OsString]) -> ExitCode {
    let [root] = args else { return ExitCode::FAILURE };
    let stage = Stage::at(Path::new(root));
    let note = stage.root.join("data/walls");
    let played = ran(&stage, "echo fine");
    if !note.exists() {
        return ExitCode::FAILURE;
    }
    println!("began\nfirst: {}", played.results("main")[0]);
    fs::write(MOUNTS, "0").unwrap();
    let played = ran(&stage, "touch ran");
    let line = played.of("tool.finished", "main")[0].clone();
    let (said, ok) = (line["output"].as_str().unwrap(), &line["ok"]);
    println!("second: {said}\nok: {ok}\nnote: {}", note.exists());
    ExitCode::SUCCESS
}

/// Only root could read them at all, so only root can tell.
fn what_the_machine_keeps_is_hidden() {
    let readable = |path: &&&str| fs::read(path).is_ok_and(|text| !text.is_empty());
    for path in ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"].iter().filter(readable) {
        let played = ran(&Stage::new(), &format!("head -c 1 {path} 2>/dev/null | wc -c"));
        assert_eq!(played.results("main"), ["0\n"], "{path}");
    }
}

/// Hard links that were in the workspace before: to our own files and to keys, which nobody reads,
/// and to what a shell runs, which nobody writes. Those of a package store are none of them.
fn other_names_of_what_is_kept_are_kept() {
    let mut stage = Stage::new();
    let home = stage.root.join("home");
    let put = |path: &std::path::Path| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "secret\n").unwrap();
    };
    let data = stage.place.data.clone();
    stage.place.home = Some(home.clone());
    stage.place.config = Some(stage.root.join("config/config.toml"));
    let kept = [
        (data.join("journal.db"), "a", "-"),
        (data.join("deep/er/b"), "in/deep/b", "-"),
        (home.join(".ssh/id"), "c.txt", "-"),
        (home.join(".netrc"), ".git/d", "-"),
        (stage.root.join("config/keys"), "node_modules/.e", "-"),
        (home.join(".bashrc"), "dotfiles/bashrc", "r"),
        (stage.root.join("store/package.js"), "node_modules/package.js", "rw"),
        (data.join("worktrees/test/a1/lib.js"), "node_modules/lib.js", "rw"),
    ];
    for (path, name, _) in &kept {
        put(path);
        fs::create_dir_all(stage.work(name).parent().unwrap()).unwrap();
        fs::hard_link(path, stage.work(name)).unwrap();
    }
    let names: Vec<&str> = kept.iter().map(|(_, name, _)| *name).collect();
    let line = format!(
        "mv in out 2>/dev/null && echo moved; for f in {}; do \
         grep -qs secret $f && printf r; (echo bad >> $f) 2>/dev/null && printf w; echo; done",
        names.join(" ")
    );
    let played = ran(&stage, &line);
    let expected: Vec<&str> = kept.iter().map(|(_, _, may)| may.trim_matches('-')).collect();
    let expected = format!("{}\n", expected.join("\n"));
    assert_eq!(played.results("main"), [expected]);
    for (path, name, may) in &kept {
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text == "secret\n", *may != "rw", "{name}: {text}");
    }
}

/// As with a command that is waited for from its start.
fn who_waits_hears_what_is_said() {
    let stage = Stage::new();
    let command = "until [ -e go ]; do sleep 0.01; done; echo first; sleep 0.4; echo last";
    let go = "{write: {path: go, content: x}}";
    let yaml = format!(
        "agents: {{main: [{{calls: [{{exec: {{background: true, command: \"{command}\"}}}}, {go}, \
         {{process: {{action: wait, id: p1}}}}]}}, {{say: done}}]}}"
    );
    let played = stage.play(&yaml, |config| {
        config.rules.extend(["exec", "write", "process"].map(|tool| allow(tool, None)));
    });
    let told = played.results("main");
    assert_eq!(told.last(), Some(&"first\nlast\n"), "{told:?}");
    assert_eq!(played.printed.first().map(String::as_str), Some("first\n"), "{told:?}");
}

fn what_process_does_not_know_is_told() {
    let calls = "{process: {action: bogus}}, {process: {action: log}}";
    let yaml = format!("agents: {{main: [{{calls: [{calls}]}}, {{say: done}}]}}");
    let played = Stage::new().play(&yaml, |config| config.rules.push(allow("process", None)));
    let told = [
        "process does not know \"bogus\": `action` is list, log, write, wait or kill",
        "which one? `id` is missing; process list",
    ];
    assert_eq!(played.results("main"), told);
}
