//! Agents with copies of the repository of their own.

use std::fs;
use std::path::Path;
use std::process::Command;

use locum_kernel::{AgentId, Class, Config, Definition, Kind, Kit, Program, ProgramInput};
use locum_runtime::tool::Toolbox;
use locum_tools::{kept, leftovers, sweep};

use crate::Test;
use crate::stage::{Played, Stage, allow, one};

pub(crate) const TESTS: &[Test] = &[
    ("two_copies_never_mix", two_copies_never_mix),
    ("what_was_not_touched_goes", what_was_not_touched_goes),
    ("submodules_are_told", submodules_are_told),
    ("nobody_gets_out_of_a_copy", nobody_gets_out_of_a_copy),
    ("commits_work_and_hooks_do_not", commits_work_and_hooks_do_not),
    ("who_may_only_read_reads_its_copy", who_may_only_read_reads_its_copy),
    ("those_below_work_in_the_same_copy", those_below_work_in_the_same_copy),
    ("what_was_read_elsewhere_does_not_count", what_was_read_elsewhere_does_not_count),
    ("a_program_says_where_its_work_is", a_program_says_where_its_work_is),
    ("a_copy_needs_a_repository", a_copy_needs_a_repository),
    ("a_copy_is_of_the_last_commit", a_copy_is_of_the_last_commit),
    ("a_copy_is_made_once", a_copy_is_made_once),
    ("what_sessions_left_is_swept_or_told", what_sessions_left_is_swept_or_told),
    ("a_folder_of_a_repository_is_found_in_its_copy", a_folder_of_a_repository),
];

pub(crate) fn git(folder: &Path, line: &str) -> String {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("git {line}")).current_dir(folder);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "me").env(format!("GIT_{who}_EMAIL"), "me@here");
    }
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&said).trim_end().to_owned()
}

/// A repository with one file in one commit.
pub(crate) fn repository() -> Stage {
    let stage = Stage::new();
    let work = &stage.place.workspace;
    fs::write(work.join("a.txt"), "as it was\n").unwrap();
    let made = git(work, "init -q -b main . && git add . && git commit -qm first");
    assert_eq!(made, "");
    stage
}

fn with_copies(config: &mut Config, names: &[&str]) {
    config.rules.extend(["exec", "write", "edit"].map(|tool| allow(tool, None)));
    for name in names {
        config.definitions.retain(|it| it.name != *name);
        let kit = Kit { worktree: true, ..Kit::default() };
        let setup = kit.needs_setup();
        config.definitions.push(Definition { kit, setup, ..Definition::new(name, Kind::Agent) });
    }
}

fn worktrees(stage: &Stage) -> usize {
    git(&stage.place.workspace, "worktree list").lines().count() - 1
}

fn branches(stage: &Stage) -> String {
    git(&stage.place.workspace, "branch --list 'locum/*' --format '%(refname:short)'")
}

fn play(stage: &Stage, calls: &str) -> Played {
    stage.play(&one(calls), |config| with_copies(config, &["worker"]))
}

fn two_copies_never_mix() {
    let stage = repository();
    let yaml = r#"
agents:
  main:
    - calls:
        - spawn_agent: {agent: left, message: go, label: left}
        - spawn_agent: {agent: right, message: go, label: right}
    - calls: [{wait: {mode: all, timeout_s: 60}}]
    - calls: [{read: {path: a.txt}}, {exec: {command: "cat a.txt; pwd; ls"}}]
    - {say: done}
  left:
    - calls: [{read: {path: a.txt}}, {edit: {path: a.txt, edits: [{old: was, new: left}]}}]
    - calls:
        - exec:
            command: "cat a.txt; until [ -e ../a2/new.txt ]; do sleep 0.05; done"
            timeout_s: 5
    - calls:
        - write: {path: new.txt, content: left}
        - glob: {pattern: "*.txt"}
        - grep: {pattern: as}
    - {say: left}
  right:
    - calls: [{read: {path: a.txt}}, {edit: {path: a.txt, edits: [{old: was, new: right}]}}]
    - calls: [{write: {path: new.txt, content: right}}, {exec: {command: "cat a.txt new.txt"}}]
    - calls:
        - write: {path: other.txt, content: right}
        - glob: {pattern: "*.txt"}
        - grep: {pattern: as}
    - {say: right}
"#;
    let played = stage.play(yaml, |config| with_copies(config, &["left", "right"]));
    let own = stage.place.data.join("worktrees/test");
    let read = |name: &str| fs::read_to_string(own.join(name)).unwrap();
    assert_eq!(read("a1/a.txt"), "as it left\n", "{:#?}", played.lines);
    assert_eq!(read("a2/a.txt"), "as it right\n");
    assert_eq!([read("a1/new.txt"), read("a2/new.txt")], ["left", "right"]);
    let left = played.results("main/left");
    // What is not its own it cannot even see.
    assert!(left[2].starts_with("as it left\n") && left[2].contains("timed out"), "{left:?}");
    assert!(left[4].contains("new.txt") && !left[4].contains("other.txt"), "{left:?}");
    assert!(left[5].contains("as it left") && !left[5].contains("right"), "{left:?}");
    let right = played.results("main/right");
    assert!(right[3].starts_with("as it right\nright"), "{right:?}");
    assert!(right[5].contains("other.txt") && right[6].contains("as it right"), "{right:?}");
    // The workspace is as it was, for whoever works there too.
    assert_eq!(stage.read("a.txt"), "as it was\n");
    let main = played.results("main");
    assert!(main.iter().any(|it| it.contains("as it was\n")), "{main:?}");
    assert_eq!(git(&stage.place.workspace, "status --porcelain"), "");
    // Both are kept, and everybody can find them.
    assert_eq!(branches(&stage), "locum/test/a1\nlocum/test/a2");
    for (number, path) in [(1, "main/left"), (2, "main/right")] {
        let agent = format!("a{number}");
        let top = own.join(&agent).display().to_string();
        let told =
            |note: &&String| note.contains(&top) && note.contains(&format!("locum/test/{agent}"));
        assert_eq!(played.notes.iter().filter(told).count(), 1, "{:?}", played.notes);
        let files = &played.end(path)["receipt"]["files"];
        assert_eq!(files[0]["path"], format!("{top}/a.txt"), "{files}");
        let found = kept(&stage.place.data, "test", AgentId(number)).unwrap();
        assert_eq!((found.folder, found.branch), (own.join(&agent), format!("locum/test/{agent}")));
    }
}

fn what_was_not_touched_goes() {
    let cases = [
        ("read: {path: a.txt}", 0),
        ("exec: {command: \"cat a.txt; git status; git log\"}", 0),
        ("exec: {command: \"echo x > a.txt; git checkout a.txt\"}", 0),
        ("exec: {command: \"touch new\"}", 1),
        ("exec: {command: \"git -c user.name=a -c user.email=b commit --allow-empty -qm x\"}", 1),
        // What git does not see, and what it was told not to look at.
        ("exec: {command: \"touch deep.log\"}", 1),
        ("write: {path: out/deep.txt, content: x}", 1),
        ("write: {path: sub/deep.txt, content: x}", 1),
        ("exec: {command: \"git update-index --assume-unchanged a.txt; echo x > a.txt\"}", 1),
        ("exec: {command: \"git update-index --skip-worktree a.txt; echo x > a.txt\"}", 1),
        ("exec: {command: \"mkdir out; mkdir empty; ls sub\"}", 0),
        // On its branch, although it has left it.
        (
            "exec: {command: \"git -c user.name=a -c user.email=b commit --allow-empty -qm x; \
             git checkout -q --detach main\"}",
            1,
        ),
    ];
    for (call, left) in cases {
        let stage = with_hidden_places();
        let played = play(&stage, &format!("{{{call}}}"));
        assert_eq!(worktrees(&stage), left, "{call}: {:?}", played.results("main/worker"));
        assert_eq!(branches(&stage).lines().count(), left, "{call}");
        assert_eq!(played.notes.len(), left, "{call}: {:?}", played.notes);
        let found = kept(&stage.place.data, "test", AgentId(1));
        assert_eq!(found.is_some(), left == 1, "{call}");
        let rest = fs::read_dir(stage.place.data.join("worktrees/test")).unwrap().count();
        assert_eq!(rest, left * 2, "{call}");
        // Whoever called it knows where to look, as do programs, if it could have done anything.
        let could = !call.starts_with("read");
        let top = stage.place.data.join("worktrees/test/a1").display().to_string();
        let told = played.results("main")[0].contains(&top);
        let copy = &played.end("main/worker")["receipt"]["copy"];
        assert_eq!((told, copy["path"] == top), (could, could), "{call}: {copy}");
        assert!(!could || copy["branch"] == "locum/test/a1", "{copy}");
    }
}

/// Ignored folders, a submodule that is not checked out, and a person who wants short statuses.
fn with_hidden_places() -> Stage {
    let stage = repository();
    let work = &stage.place.workspace;
    fs::write(work.join(".gitignore"), "out/\n*.log\n").unwrap();
    let made = git(
        work,
        "add . && git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),sub && \
         git commit -qm second && git config status.showUntrackedFiles no && mkdir -p sub",
    );
    assert_eq!(made, "");
    stage
}

fn submodules_are_told() {
    let stage = with_hidden_places();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let kit = Kit { worktree: true, ..Kit::default() };
    let ready = runtime.block_on(stage.tools().0.prepare(AgentId(1), kit)).unwrap();
    let told = ready.told.unwrap();
    assert!(told.ends_with(" Submodules are not checked out in it: sub."), "{told}");
}

fn nobody_gets_out_of_a_copy() {
    let stage = repository();
    let work = stage.place.workspace.display().to_string();
    let data = stage.place.data.display().to_string();
    fs::write(stage.place.data.join("journal"), "secret").unwrap();
    let up = "../".repeat(3);
    let calls = [
        format!("read: {{path: \"{work}/a.txt\"}}"),
        format!("read: {{path: \"{up}work/a.txt\"}}"),
        format!("write: {{path: \"{work}/b.txt\", content: x}}"),
        format!("write: {{path: \"{up}work/b.txt\", content: x}}"),
        format!("read: {{path: \"{up}journal\"}}"),
        format!("ls: {{path: \"{data}\"}}"),
        format!("glob: {{pattern: \"*\", path: \"{work}\"}}"),
        format!("exec: {{command: \"pwd\", cwd: \"{work}\"}}"),
        format!("exec: {{command: \"pwd\", cwd: \"{up}\"}}"),
        // Where temporary folders are fresh inside it can be written, but not for anybody to see.
        format!("exec: {{command: \"(echo x > {work}/b.txt) 2>/dev/null; exit 1\"}}"),
        format!("exec: {{command: \"cat {data}/journal && echo got out\"}}"),
        format!("exec: {{command: \"ln -s {work} link; echo made; exit 1\"}}"),
        "write: {path: \"link/b.txt\", content: x}".to_owned(),
    ];
    let calls: Vec<String> = calls.iter().map(|call| format!("{{{call}}}")).collect();
    let played = play(&stage, &calls.join(", "));
    let results = played.of("tool.finished", "main/worker");
    assert_eq!(results.len(), calls.len());
    for (result, call) in results.iter().zip(&calls) {
        assert_eq!(result["ok"], false, "{call}: {result}");
        assert!(!result["output"].as_str().unwrap().contains("got out"), "{call}: {result}");
        assert!(!result["output"].as_str().unwrap().contains("secret"), "{call}: {result}");
    }
    assert_eq!(git(&stage.place.workspace, "status --porcelain"), "");
    assert!(!stage.work("b.txt").exists());
}

fn commits_work_and_hooks_do_not() {
    let stage = repository();
    let common = stage.place.workspace.join(".git");
    let before = fs::read_to_string(common.join("config")).unwrap();
    let evil = "touch evil".to_owned();
    let git_dir = common.display();
    let calls = [
        "git add . && git -c user.name=a -c user.email=b commit -qm second && echo well".to_owned(),
        format!("echo '{evil}' > {git_dir}/hooks/post-commit"),
        format!("mkdir -p {git_dir}/hooks && echo '{evil}' > {git_dir}/hooks/pre-commit"),
        format!("mv {git_dir}/hooks {git_dir}/old"),
        "git config core.hooksPath /tmp/evil".to_owned(),
        "git config --worktree core.hooksPath /tmp/evil".to_owned(),
        format!("echo ref: refs/heads/locum/test/a1 > {git_dir}/HEAD"),
        format!("rm {git_dir}/index"),
        format!("echo /tmp/evil > {git_dir}/worktrees/a1/commondir"),
        format!("rm {git_dir}/worktrees/a1/gitdir"),
        "echo gitdir: /tmp/evil > .git".to_owned(),
    ];
    let lines: Vec<String> =
        calls.iter().map(|line| format!("{{exec: {{command: {line:?}}}}}")).collect();
    let write = "{write: {path: new.txt, content: x}}";
    let played = play(&stage, &format!("{write}, {}", lines.join(", ")));
    let results = played.of("tool.finished", "main/worker");
    let said = results[1]["output"].as_str().unwrap();
    assert!(said.ends_with("well\n"), "{said}");
    for (result, line) in results[2..].iter().zip(&calls[1..]) {
        assert_eq!(result["ok"], false, "{line}: {result}");
    }
    assert_eq!(fs::read_to_string(common.join("config")).unwrap(), before);
    let log = git(&stage.place.workspace, "log --format=%s locum/test/a1");
    assert_eq!(log, "second\nfirst");
    assert_eq!(git(&stage.place.workspace, "log --format=%s"), "first");
    assert_eq!(git(&stage.place.workspace, "status --porcelain"), "");
    assert_eq!(git(&stage.place.workspace, "rev-parse --abbrev-ref HEAD"), "main");
}

fn who_may_only_read_reads_its_copy() {
    let stage = repository();
    let calls = "{exec: {command: \"cat a.txt\"}}, {exec: {command: \"echo x > a.txt\"}}";
    let played = stage.play(&one(calls), |config| {
        with_copies(config, &["worker"]);
        let worker = config.definitions.iter_mut().find(|it| it.name == "worker").unwrap();
        worker.uses.classes = [Class::Read, Class::Exec].into();
    });
    let said = played.results("main/worker");
    assert_eq!(said[0], "as it was\n", "{said:?}");
    assert!(said[1].contains("Read-only file system"), "{said:?}");
}

fn those_below_work_in_the_same_copy() {
    let stage = repository();
    let yaml = r#"
agents:
  main:
    - calls: [{call_recipe: {recipe: worker, message: "do it"}}]
    - {say: "{{last}}"}
  worker:
    - calls:
        - write: {path: mine.txt, content: mine}
        - call_recipe: {recipe: helper, message: "help"}
    - calls: [{exec: {command: "cat mine.txt theirs.txt"}}]
    - {say: "done"}
  helper:
    - calls: [{exec: {command: "cat mine.txt"}}, {write: {path: theirs.txt, content: theirs}}]
    - {say: "helped"}
"#;
    let played = stage.play(yaml, |config| with_copies(config, &["worker"]));
    assert_eq!(played.results("main/worker/helper")[0], "mine");
    let worker = played.results("main/worker");
    assert_eq!(*worker.last().unwrap(), "minetheirs", "{worker:?}");
    assert_eq!((worktrees(&stage), stage.read("mine.txt").contains("No such file")), (1, true));
}

fn what_was_read_elsewhere_does_not_count() {
    let stage = repository();
    let yaml = r#"
agents:
  main:
    - calls: [{read: {path: a.txt}}, {call_recipe: {recipe: worker, message: "do it"}}]
    - calls: [{edit: {path: a.txt, edits: [{old: was, new: main}]}}]
    - {say: "{{last}}"}
  worker:
    - calls: [{edit: {path: a.txt, edits: [{old: was, new: worker}]}}]
    - calls: [{read: {path: a.txt}}, {exec: {command: "echo it was changed > a.txt"}}]
    - calls: [{edit: {path: a.txt, edits: [{old: was, new: worker}]}}]
    - calls: [{read: {path: a.txt}}, {edit: {path: a.txt, edits: [{old: was, new: worker}]}}]
    - {say: "done"}
"#;
    let played = stage.play(yaml, |config| with_copies(config, &["worker"]));
    let ok = |path: &str, tool: &str| -> Vec<bool> {
        let lines = played.of("tool.finished", path);
        let own = lines.iter().filter(|line| line["name"] == tool);
        own.map(|line| line["ok"].as_bool().unwrap()).collect()
    };
    // Not read, then stale, then well.
    assert_eq!(ok("main/worker", "edit"), [false, false, true], "{:#?}", played.lines);
    // For main nothing has changed meanwhile.
    assert_eq!(ok("main", "edit"), [true]);
    assert_eq!(stage.read("a.txt"), "as it main\n");
}

/// A program has nothing else to say where its work is.
fn a_program_says_where_its_work_is() {
    let stage = repository();
    let top = stage.place.data.join("worktrees/test/a1");
    let cases = [
        ("cat a.txt", "as it was".to_owned()),
        (
            "echo done > b.txt; cat b.txt",
            format!("done\n[its work is in {} on the branch locum/test/a1]", top.display()),
        ),
    ];
    for (text, expected) in cases {
        let played = stage.play(&one("{read: {path: a.txt}}"), |config| {
            with_copies(config, &["worker"]);
            config.rules.push(allow("passthrough", None));
            let worker = config.definitions.iter_mut().find(|it| it.name == "worker").unwrap();
            let command = ["sh", "-c", text].map(str::to_owned).into();
            worker.program = Some(Program { command, input: ProgramInput::Stdin });
        });
        assert_eq!(played.end("main/worker")["result"], expected);
    }
    assert!(!stage.work("b.txt").exists());
}

fn a_copy_needs_a_repository() {
    let nothing = Stage::new();
    let empty = Stage::new();
    git(&empty.place.workspace, "init -q .");
    for (stage, words) in [(&nothing, "is not a git repository"), (&empty, "has no commit yet")] {
        let played = play(stage, "{read: {path: a.txt}}");
        let end = played.end("main/worker");
        let said = end["result"].as_str().unwrap();
        assert!(said.starts_with("could not start: ") && said.contains(words), "{said}");
        assert_eq!(end["outcome"], "failed");
    }
}

fn a_copy_is_of_the_last_commit() {
    let stage = repository();
    fs::write(stage.work("a.txt"), "not committed\n").unwrap();
    fs::write(stage.work("b.txt"), "not known\n").unwrap();
    let played = play(&stage, "{exec: {command: \"cat a.txt; ls\"}}");
    assert_eq!(played.results("main/worker"), ["as it was\na.txt\n"]);
    let said = &played.notes[0];
    assert!(said.contains("2 uncommitted changes"), "{said}");
    assert_eq!((played.notes.len(), worktrees(&stage)), (1, 0));
    assert_eq!(stage.read("a.txt"), "not committed\n");
}

/// Asked again, after a crash at any moment, there is one copy, and what was done in it stays.
fn a_copy_is_made_once() {
    let stage = repository();
    let prepare = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let kit = Kit { worktree: true, ..Kit::default() };
        runtime.block_on(stage.tools().0.prepare(AgentId(1), kit)).unwrap()
    };
    let own = stage.place.data.join("worktrees/test");
    prepare();
    fs::write(own.join("a1/mine.txt"), "mine").unwrap();
    prepare();
    assert_eq!(fs::read_to_string(own.join("a1/mine.txt")).unwrap(), "mine");
    // Before the record was written.
    fs::remove_file(own.join("a1.json")).unwrap();
    prepare();
    assert!(!own.join("a1/mine.txt").exists() && own.join("a1/a.txt").exists());
    assert_eq!((worktrees(&stage), branches(&stage)), (1, "locum/test/a1".into()));
    // Gone altogether; its branch has work on it, which stays.
    git(&own.join("a1"), "commit --allow-empty -qm work");
    fs::remove_dir_all(&own).unwrap();
    prepare();
    assert_eq!((worktrees(&stage), branches(&stage)), (1, "locum/test/a1\nlocum/test/a1-2".into()));
}

/// Only what nobody has touched goes, and only of sessions that are known to be gone; of the rest
/// people are told words that work.
fn what_sessions_left_is_swept_or_told() {
    let mut stage = repository();
    let work = stage.place.workspace.clone();
    for (session, change) in [
        ("alive", None),
        ("gone", None),
        ("written", Some("echo x > new.txt")),
        ("committed", Some("git commit --allow-empty -qm work")),
        ("ignored/odd name", None),
    ] {
        stage.place.session = session.into();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let kit = Kit { worktree: true, ..Kit::default() };
        runtime.block_on(stage.tools().0.prepare(AgentId(1), kit)).unwrap();
        let folder = kept(&stage.place.data, session, AgentId(1)).unwrap().folder;
        if let Some(change) = change {
            git(&folder, &format!("--version >/dev/null; {change}"));
        }
    }
    let data = stage.place.data.clone();
    let alive = || Some(vec!["alive".to_owned(), "ignored/odd name".to_owned()]);
    assert_eq!(sweep(&data, || None), 0, "who cannot tell removes nothing");
    assert_eq!(leftovers(&data).len(), 5);
    assert_eq!(sweep(&data, alive), 1);
    assert_eq!(sweep(&data, alive), 0);
    let is_there = |session| kept(&data, session, AgentId(1)).is_some();
    let there = ["alive", "gone", "written", "committed", "ignored/odd name"].map(is_there);
    assert_eq!(there, [true, false, true, true, true]);
    assert!(!branches(&stage).contains("locum/gone"), "{}", branches(&stage));
    assert!(!data.join("worktrees/gone").exists());
    for left in leftovers(&data) {
        let touched = ["written", "committed"].iter().any(|name| left.branch.contains(name));
        assert_eq!((left.is_untouched, left.bytes > 0), (!touched, true), "{left:?}");
        git(&work, &format!("--version >/dev/null; {}", left.removal()));
        assert!(!left.folder.exists(), "{left:?}");
    }
    assert_eq!((worktrees(&stage), branches(&stage)), (0, String::new()));
    // Records of what people have removed by hand go too.
    assert_eq!(sweep(&data, alive), 2);
}

fn a_folder_of_a_repository() {
    let mut stage = repository();
    let inner = stage.work("deep/inner");
    fs::create_dir_all(&inner).unwrap();
    fs::write(inner.join("b.txt"), "inner\n").unwrap();
    git(&stage.place.workspace, "add . && git commit -qm second");
    stage.place.workspace = inner;
    let played = play(&stage, "{exec: {command: \"cat b.txt\"}}, {read: {path: \"../../a.txt\"}}");
    let said = played.results("main/worker");
    assert_eq!(said[0], "inner\n", "{said:?}");
    assert_eq!(played.of("tool.finished", "main/worker")[1]["ok"], false);
}
