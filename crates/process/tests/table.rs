//! The table: what can be done with a process, and that every way to lose interest in one, our
//! own death among them, leaves nobody. `-- WORD` runs only the tests with that word.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a test program of its own")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{self, ExitCode};
use std::time::Duration;

use locum_process::{Command, Error, Exit, Hold, Input, Io, Processes, Ran, Report, Start};
use support::{END, Folder, argv};
use tokio::time::{sleep, timeout};

const DRIVER: &str = "__drive";
const HOLDS: [Hold; 2] = [Hold::Namespace, Hold::Tree];

/// What is hard to end. Each says with a file that it is there.
const STUBBORN: [&str; 6] = [
    "trap '' TERM HUP INT; touch up; while :; do sleep 1; done",
    "(setsid sh -c 'trap \"\" TERM HUP; touch up; while :; do sleep 1; done' &); sleep 1000",
    "for i in 1 2 3; do (sleep 1000 &); done; touch up; kill -STOP $$",
    "nohup setsid sleep 1000 > /dev/null 2>&1 & touch up; yes",
    "yes | cat > /dev/null & touch up; kill -STOP 0",
    "env -i setsid sh -c ': TOKEN; touch up; sleep 1000; :' & wait",
];

fn main() -> ExitCode {
    if let Some(code) = support::if_keeper() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    if words.first().is_some_and(|word| word == DRIVER) {
        runtime.block_on(drive(&words[1..]));
        return ExitCode::SUCCESS;
    }
    let _wall = support::Wall::new();
    runtime.block_on(all(words.first().map_or("", String::as_str)));
    let folder = Folder::new();
    if support::again_as_nobody(&folder.0, &words) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

macro_rules! tests {
    ($word:ident: $($name:ident),* $(,)?) => {
        $(if stringify!($name).contains($word) {
            let done = timeout(Duration::from_mins(2), $name()).await;
            assert!(done.is_ok(), "{} hangs", stringify!($name));
            println!("ok {}", stringify!($name));
        })*
    };
}

async fn all(word: &str) {
    println!("as {}", if support::is_root() { "root" } else { "an ordinary user" });
    tests!(word:
        says_how_it_ended, gives_exactly_this_environment, refuses_what_cannot_run,
        goes_on_in_the_background, is_written_to, talks_in_a_terminal, keeps_head_and_tail,
        reads_all_of_a_log, bounds_the_file, tells_progress, times_out_in_the_background,
        knows_its_owner, is_bounded, cancelled_leaves_nobody, owner_gone_leaves_nobody,
        table_gone_leaves_nobody, killed_leaves_nobody, our_death_leaves_nobody,
    );
}

fn sh(text: &str, folder: &Folder) -> Command {
    let mut command = support::script("sh", text, "sh", &folder.0, Hold::Auto);
    command.timeout = Some(Duration::from_secs(30));
    command
}

/// What `seq` says, with something before each number.
fn lines(before: &str, last: u32) -> String {
    let lines: Vec<String> = (1..=last).map(|number| format!("{before}{number}\n")).collect();
    lines.concat()
}

async fn ended(processes: &Processes, command: Command) -> Report {
    match processes.run("a1", command, |_| {}).await.unwrap() {
        Ran::Ended(report) => report,
        Ran::Backgrounded { id, .. } => panic!("{id} is in the background"),
    }
}

async fn says_how_it_ended() {
    let (processes, folder) = (support::processes(), Folder::new());
    let cases = [
        ("exit 0", Exit::Code(0), "", 0),
        ("echo out; echo err >&2; echo out; exit 42", Exit::Code(42), "out\nerr\nout\n", 0),
        ("kill -KILL $$", Exit::Signal(9), "", 0),
        ("pwd; sleep 1000 & sleep 1000 &", Exit::Code(0), "FOLDER\n", 2),
    ];
    for hold in HOLDS {
        for (text, exit, says, left) in cases {
            let report = ended(&processes, Command { hold, ..sh(text, &folder) }).await;
            let says = says.replace("FOLDER", folder.0.to_str().unwrap());
            let found = (report.exit, report.output.to_string(), report.left_behind);
            assert_eq!(found, (exit, says, left), "{text}, {hold:?}");
            assert_eq!(report.output.left_out, 0);
        }
    }
    assert!(processes.list("a1").is_empty(), "who has reported is gone");
}

async fn gives_exactly_this_environment() {
    let (processes, folder) = (support::processes(), Folder::new());
    for hold in HOLDS {
        let mut command = Command { hold, ..sh("", &folder) };
        command.argv = argv(&["/usr/bin/env"]);
        command.env = vec![("ONE".into(), "1".into()), ("TWO".into(), "2\n3".into())];
        let report = ended(&processes, command).await;
        let text = report.output.to_string();
        let (mark, own) = text.split_once('\n').unwrap();
        assert_eq!((&mark[..11], mark.len(), own), ("LOCUM_KEEP=", 27, "ONE=1\nTWO=2\n3\n"));
        // In a namespace they see only themselves, and themselves under the right number.
        let report = ended(&processes, Command { hold, ..sh("cat /proc/$$/comm", &folder) }).await;
        assert_eq!(report.output.to_string(), "sh\n", "{hold:?}");
        // An ordinary user gets no powers from being in one.
        let powers = "grep -cE 'Cap(Inh|Prm|Eff|Amb):.*[1-9a-f]' /proc/self/status";
        let report = ended(&processes, Command { hold, ..sh(powers, &folder) }).await;
        let expected = if support::is_root() { "2\n" } else { "0\n" };
        assert_eq!(report.output.to_string(), expected, "{hold:?}");
    }
}

async fn refuses_what_cannot_run() {
    let (processes, folder) = (support::processes(), Folder::new());
    let plain = folder.0.join("plain");
    fs::write(&plain, "echo no shebang\n").unwrap();
    let words = |words: &[&str]| Command { argv: argv(words), ..sh("", &folder) };
    let huge = "x".repeat(200 << 10);
    let cases = [
        (words(&[]), "there is no command"),
        (words(&["/no/such"]), "cannot start /no/such: No such file"),
        (words(&[plain.to_str().unwrap()]), "cannot start"),
        (words(&["/bin/true", &huge]), "cannot start /bin/true: Argument list too long"),
        (words(&["/bin/echo", "a\0b"]), "cannot start /bin/echo: Invalid argument"),
        (Command { cwd: "/no/such".into(), ..words(&["true"]) }, "cannot run in /no/such"),
        (Command { cwd: plain.clone(), ..words(&["true"]) }, "cannot run in"),
    ];
    for (command, expected) in cases {
        for io in [Io::Pipes, Io::Terminal { rows: 24, cols: 80 }] {
            let error = processes.run("a1", Command { io, ..command.clone() }, |_| {}).await;
            let error = error.unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}, not {expected}");
        }
    }
    let many: Vec<String> = (0..30_000).map(|number| format!("{number}")).collect();
    let many: Vec<&str> = ["echo"].into_iter().chain(many.iter().map(String::as_str)).collect();
    let report = ended(&processes, words(&many)).await;
    assert_eq!((report.exit, report.output.bytes), (Exit::Code(0), 168_890));
}

async fn goes_on_in_the_background() {
    let (processes, folder) = (support::processes(), Folder::new());
    let text = "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 3";
    let patience = Duration::from_millis(300);
    let ran = processes.run("a1", Command { patience, ..sh(text, &folder) }, |_| {}).await;
    let Ok(Ran::Backgrounded { id, so_far }) = ran else { panic!("{ran:?}") };
    assert_eq!(so_far.to_string(), "one\n");
    let rows = processes.list("a1");
    assert_eq!((rows.len(), rows[0].id, rows[0].exit), (1, id, None));
    assert_eq!(rows[0].start, Start::Background);
    let still = processes.wait(id, Duration::from_millis(50), |_| {}).await.unwrap();
    assert!(matches!(still, Ran::Backgrounded { .. }));
    fs::write(folder.0.join("go"), "").unwrap();
    let Ran::Ended(report) = processes.wait(id, END, |_| {}).await.unwrap() else { panic!() };
    assert_eq!((report.exit, report.output.to_string().as_str()), (Exit::Code(3), "one\ntwo\n"));
    let log = processes.log(id, 4, 100).unwrap();
    assert_eq!(
        (log.text.as_str(), log.from, log.next, log.exit),
        ("two\n", 4, 8, Some(report.exit))
    );
    assert_eq!(processes.list("a1")[0].exit, Some(Exit::Code(3)));
}

async fn background(processes: &Processes, owner: &str, command: Command) -> locum_process::Id {
    let command = Command { start: Start::Background, ..command };
    match processes.run(owner, command, |_| {}).await.unwrap() {
        Ran::Backgrounded { id, .. } => id,
        Ran::Ended(report) => panic!("{report:?}"),
    }
}

/// Polls until the process has said it.
async fn says(processes: &Processes, id: locum_process::Id, text: &str) {
    for _ in 0..500 {
        if processes.log(id, 0, 1 << 15).unwrap().text.contains(text) {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{text:?} is not in {:?}", processes.log(id, 0, 1 << 15).unwrap());
}

async fn is_written_to() {
    let (processes, folder) = (support::processes(), Folder::new());
    let id =
        background(&processes, "a1", Command { input: Input::Open, ..sh("cat", &folder) }).await;
    processes.write(id, b"hello\n").await.unwrap();
    says(&processes, id, "hello\n").await;
    let long = vec![b'x'; 300_000];
    processes.write(id, &long).await.unwrap();
    processes.close_input(id).await.unwrap();
    let Ran::Ended(report) = processes.wait(id, END, |_| {}).await.unwrap() else { panic!() };
    assert_eq!((report.exit, report.output.bytes), (Exit::Code(0), 300_006));
    for text in ["cat", "head -c 300000", "sleep 0.1; cat; echo >&2"] {
        let input = Input::Text("y".repeat(300_000));
        let ran = processes.run("a1", Command { input, ..sh(text, &folder) }, |_| {}).await;
        let Ok(Ran::Ended(report)) = ran else { panic!("{text}: {ran:?}") };
        assert_eq!(report.output.bytes / 10, 30_000, "{text}");
    }
    let unread = Command { input: Input::Text("y".repeat(300_000)), ..sh("exit 4", &folder) };
    let Ok(Ran::Ended(report)) = processes.run("a1", unread, |_| {}).await else { panic!() };
    assert_eq!(report.exit, Exit::Code(4));
    let Ok(Ran::Ended(report)) = processes.run("a1", sh("cat; echo $?", &folder), |_| {}).await
    else {
        panic!()
    };
    assert_eq!(report.output.head, "0\n", "nothing to read is an end, not an error");
    let deaf = background(&processes, "a1", sh("sleep 1000", &folder)).await;
    assert!(matches!(processes.write(deaf, b"x").await, Err(Error::NoInput { .. })));
    let slow = Command { input: Input::Open, ..sh("sleep 1000", &folder) };
    let slow = background(&processes, "a1", slow).await;
    let Err(Error::NotRead { written, .. }) = processes.write(slow, &long).await else { panic!() };
    assert_eq!(written, 64 << 10, "as much as the system keeps for it");
    let unknown = locum_process::Id(99);
    assert!(matches!(processes.write(unknown, b"x").await, Err(Error::Unknown { .. })));
}

/// Whoever was started to ignore the key that interrupts passes that on to all below it, and no
/// shell can take it back.
fn is_interrupt_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 0b10 != 0)
}

async fn talks_in_a_terminal() {
    if is_interrupt_ignored() {
        eprintln!("SKIPPED: these tests were started with interrupts ignored; no key was pressed");
        return;
    }
    let (processes, folder) = (support::processes(), Folder::new());
    let io = Io::Terminal { rows: 33, cols: 77 };
    for hold in HOLDS {
        let text = "tty; stty size; printf '\\033[31mred\\033[0m\\n'; printf '1%%\\r2%%\\n'; \
                    trap 'echo int; exit 9' INT; read x < /dev/tty; echo got $x; \
                    while :; do sleep 1; done";
        let id = background(&processes, "a1", Command { io, hold, ..sh(text, &folder) }).await;
        says(&processes, id, "2%\n").await;
        processes.write(id, b"word\n").await.unwrap();
        says(&processes, id, "got word\n").await;
        // The key that interrupts reaches whoever is in the foreground of the terminal.
        processes.write(id, &[3]).await.unwrap();
        let Ran::Ended(report) = processes.wait(id, END, |_| {}).await.unwrap() else {
            panic!("{hold:?}")
        };
        assert_eq!(report.exit, Exit::Code(9));
        let text = report.output.to_string();
        assert!(text.starts_with("/dev/pts/"), "{text}");
        assert!(text.contains("33 77\nred\n2%\nword\ngot word\n"), "{text:?}");
    }
}

async fn keeps_head_and_tail() {
    let (processes, folder) = (support::processes(), Folder::new());
    let report = ended(&processes, sh("seq 1 30000", &folder)).await;
    let output = &report.output;
    assert_eq!(output.head.len() + output.tail.len(), 32 << 10);
    assert!(output.head.starts_with("1\n2\n3\n") && output.tail.ends_with("29999\n30000\n"));
    let spill = output.spill.as_ref().unwrap();
    let whole = lines("", 30_000);
    assert_eq!(fs::read_to_string(&spill.path).unwrap(), whole);
    assert_eq!((spill.bytes, output.bytes, &spill.trouble), (168_894, 168_894, &None));
    let text = output.to_string();
    assert!(text.contains("[… 136126 bytes left out; all of it is in "), "{text}");
    // At the bound nothing is left out, one byte above it one byte is.
    let at = ended(&processes, sh("head -c 32768 /dev/zero", &folder)).await.output;
    assert_eq!((at.left_out, at.spill), (0, None));
    let above = ended(&processes, sh("head -c 32769 /dev/zero", &folder)).await.output;
    assert_eq!((above.left_out, above.spill.unwrap().bytes), (1, 32_769));
    // A disk that refuses is said, and the command goes on.
    let command = Command { spill_dir: "/no/such".into(), ..sh("seq 1 30000; exit 4", &folder) };
    let report = ended(&processes, command).await;
    assert_eq!((report.exit, report.output.spill), (Exit::Code(4), None));
}

async fn reads_all_of_a_log() {
    let (processes, folder) = (support::processes(), Folder::new());
    let text = "for i in $(seq 1 20000); do echo é$i; done; sleep 1000";
    let id = background(&processes, "a1", sh(text, &folder)).await;
    let (mut read, mut offset) = (String::new(), 0);
    while !read.ends_with("é20000\n") {
        let log = processes.log(id, offset, 1_001).unwrap();
        assert_eq!(log.from, offset);
        read.push_str(&log.text);
        offset = log.next;
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(read, lines("é", 20_000));
    assert_eq!(processes.log(id, offset, 10).unwrap().text, "");
    assert_eq!(processes.log(id, u64::MAX, 10).unwrap().from, offset);
}

async fn bounds_the_file() {
    let (processes, folder) = (support::processes(), Folder::new());
    let text = "head -c 70000000 /dev/zero | tr '\\0' a; echo end";
    let report = ended(&processes, sh(text, &folder)).await;
    let spill = report.output.spill.clone().unwrap();
    assert_eq!((report.output.bytes, spill.bytes), (70_000_004, 64 << 20));
    assert_eq!(fs::metadata(&spill.path).unwrap().len(), 64 << 20);
    assert!(report.output.tail.ends_with("aend\n"));
    let text = report.output.to_string();
    assert!(text.contains("the first 67108864 are in") && text.contains("64 MiB"), "{text:.90}");
}

async fn tells_progress() {
    let (processes, folder) = (support::processes(), Folder::new());
    let mut told = Vec::new();
    let command = sh("for i in 1 2 3; do echo $i; sleep 0.3; done", &folder);
    processes.run("a1", command, |progress| told.push(progress.tail.clone())).await.unwrap();
    assert_eq!(told.first().map(String::as_str), Some("1\n"));
    assert!(told.contains(&"1\n2\n".to_owned()) && told.len() <= 10, "{told:?}");
    let mut calls = 0;
    let command = Command { timeout: Some(Duration::from_millis(500)), ..sh("yes", &folder) };
    let told = |progress: &locum_process::Progress| {
        calls += 1;
        assert!(progress.tail.len() <= 2 << 10);
    };
    processes.run("a1", command, told).await.unwrap();
    assert!(calls < 30, "{calls}");
}

async fn times_out_in_the_background() {
    let (processes, folder) = (support::processes(), Folder::new());
    let command =
        Command { timeout: Some(Duration::from_millis(300)), ..sh("sleep 1000", &folder) };
    let id = background(&processes, "a1", command).await;
    let Ran::Ended(report) = processes.wait(id, END, |_| {}).await.unwrap() else { panic!() };
    assert_eq!(report.exit, Exit::TimedOut);
    assert!((300..1_500).contains(&report.ms), "{}", report.ms);
}

async fn knows_its_owner() {
    let (processes, folder) = (support::processes(), Folder::new());
    let one = background(&processes, "a1", sh("sleep 1000", &folder)).await;
    let two = background(&processes, "a2", sh("sleep 1000", &folder)).await;
    assert_eq!(processes.list("a1")[0].id, one);
    assert_eq!(processes.end_owner("a1").await, 1);
    assert!(processes.list("a1").is_empty());
    assert_eq!((processes.list("a2")[0].id, processes.list("a2")[0].exit), (two, None));
    assert!(matches!(processes.log(one, 0, 1), Err(Error::Unknown { .. })));
    let report = processes.kill(two).await.unwrap();
    assert!(report.exit == Exit::Killed && report.ms < 5_000, "{report:?}");
    assert_eq!(two.to_string().parse::<locum_process::Id>().unwrap(), two);
    assert!("x2".parse::<locum_process::Id>().is_err());
}

async fn is_bounded() {
    let (processes, folder) = (support::processes(), Folder::new());
    for _ in 0..64 {
        let command = Command { hold: Hold::Tree, ..sh("sleep 1000", &folder) };
        background(&processes, "a1", command).await;
    }
    let more = processes.run("a1", sh("true", &folder), |_| {}).await;
    assert!(matches!(more, Err(Error::Full { running: 64 })), "{more:?}");
    assert_eq!(processes.end_owner("a1").await, 64);
    ended(&processes, sh("true", &folder)).await;
    assert!(support::peak_kib() < 96 << 10);
}

/// Runs what is stubborn, in each way, and hands over the future that runs it once it is there.
async fn stubborn(end: impl AsyncFn(Processes, Command, &Path)) {
    for hold in HOLDS {
        for io in [Io::Pipes, Io::Terminal { rows: 24, cols: 80 }] {
            for text in STUBBORN {
                let (folder, token) = (Folder::new(), support::token());
                let mut command = support::script("sh", text, &token, &folder.0, hold);
                command.io = io;
                end(support::processes(), command, &folder.0.join("up")).await;
                let left = support::nobody_left(&token, END).await;
                assert_eq!(left, Ok(()), "{text}, {hold:?}, {io:?}");
            }
        }
    }
    for _ in 0..300 {
        if support::children() + support::groups() == 0 {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("{} children and {} groups are left", support::children(), support::groups());
}

async fn there(file: &Path) {
    for _ in 0..1_000 {
        if file.exists() {
            return;
        }
        sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not start");
}

async fn cancelled_leaves_nobody() {
    stubborn(async |processes, command, up| {
        tokio::select! {
            ran = processes.run("a1", command, |_| {}) => panic!("{ran:?}"),
            () = there(up) => {}
        }
        // The table lives on, and has forgotten it.
        assert!(processes.list("a1").is_empty());
        sleep(Duration::from_millis(300)).await;
    })
    .await;
}

async fn owner_gone_leaves_nobody() {
    stubborn(async |processes, command, up| {
        background(&processes, "a1", command).await;
        there(up).await;
        assert_eq!(processes.end_owner("a1").await, 1);
    })
    .await;
}

async fn table_gone_leaves_nobody() {
    stubborn(async |processes, command, up| {
        background(&processes, "a1", command).await;
        there(up).await;
    })
    .await;
}

async fn killed_leaves_nobody() {
    stubborn(async |processes, command, up| {
        let id = background(&processes, "a1", command).await;
        there(up).await;
        assert_eq!(processes.kill(id).await.unwrap().exit, Exit::Killed);
    })
    .await;
}

/// Another program, killed without a chance to do anything, runs them.
async fn our_death_leaves_nobody() {
    stubborn(async |_, command, up| {
        let terminal = if command.io == Io::Pipes { "pipes" } else { "terminal" };
        let mut driver = process::Command::new("/proc/self/exe");
        driver.arg(DRIVER).arg(format!("{:?}", command.hold)).arg(terminal);
        driver.arg(&command.cwd).arg(&command.argv[2]).arg(&command.argv[3]);
        let mut driver = driver.spawn().unwrap();
        there(up).await;
        driver.kill().unwrap();
        driver.wait().unwrap();
    })
    .await;
}

async fn drive(words: &[String]) {
    let [hold, io, folder, text, token] = words else { panic!("{words:?}") };
    let hold = if hold == "Tree" { Hold::Tree } else { Hold::Namespace };
    let mut command = support::script("sh", text, token, Path::new(folder), hold);
    if io == "terminal" {
        command.io = Io::Terminal { rows: 24, cols: 80 };
    }
    support::processes().run("a1", command, |_| {}).await.unwrap();
}
