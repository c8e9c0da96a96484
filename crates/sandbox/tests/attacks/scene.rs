//! A scene: a workspace, things outside that must not change, people who must not be reached,
//! and a look at all of it after each attack.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use locum_sandbox::{
    Below, Builder, Enclosed, Guard, Keep, StandIn, Survey, Walls, enclose, repository,
};

use crate::table::Attack;

/// An attack that takes longer hangs, and is ended.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long whoever was left running may take to be gone.
const POLLS: u32 = 200;
const POLL: Duration = Duration::from_millis(10);

/// How long survivors sleep: nobody else does so long, and no other run of this test either.
pub(crate) fn mark() -> String {
    format!("31337{}", std::process::id())
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    Writing,
    Reading,
}

type Watch = (String, Box<dyn Fn() -> bool>);

pub(crate) struct Scene {
    base: PathBuf,
    port: u16,
    key: u16,
    victim: Mutex<Child>,
    /// Who can be reached, and whether they were since the last look. Some go with the folders.
    lasting: Vec<Watch>,
    passing: Mutex<Vec<Watch>>,
    machine: Vec<String>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        end(&mut self.victim.lock().expect("no panic held it"));
        let script = format!(
            "$s = shmget({0}, 8, 0); shmctl($s, 0, 0); $q = msgget({0}, 0); msgctl($q, 0, 0)",
            self.key
        );
        let _ = Command::new("perl").args(["-e", &script]).output();
        for place in ["/run", "/tmp", "/dev/shm"] {
            let _ = fs::remove_file(format!("{place}/locum-test-{}", self.port));
        }
    }
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Guarded in a workspace that has nothing on the way there.
const WITHIN: [&str; 3] = [".github/agents", ".github/skills", "far/off/agents"];

/// Guarded in every folder below that has it.
const MADE_OF: [&str; 3] = [".claude", ".mcp.json", ".github/agents"];

/// What is below the workspace and guarded, because it is there.
const BELOW: &[&str] = &[
    "p1/.git/hooks",
    "p1/.git/config",
    "p1/.git/config.worktree",
    "p1/.git/commondir",
    "p1/.git/modules/libs/foo/config",
    "p1/.git/modules/libs/foo/hooks",
    "p1/.git/worktrees/p1-tree/commondir",
    "p1/.git/worktrees/p1-tree/gitdir",
    "p1/.git/worktrees/p1-tree/config.worktree",
    "p1/.claude",
    "p1/.mcp.json",
    "p1/.github/agents",
    "p1-tree/.git",
    "src/b/c/p2/.git/hooks",
    "src/b/c/p2/.git/config",
    "mirror.git/config",
    "mirror.git/hooks",
];

impl Scene {
    pub(crate) fn new(base: &Path) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = tcp.local_addr().expect("an address").port();
        let victim = Mutex::new(idle());
        let scene = Self {
            base: base.to_owned(),
            port,
            key: port,
            victim,
            lasting: lasting(tcp, port),
            passing: Mutex::default(),
            machine: machine(base),
        };
        scene.restore();
        scene
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.base.join("ws")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.base.join("out")
    }

    /// Guards as the program would set them, there or not.
    pub(crate) fn guards(&self) -> Vec<Guard> {
        let ws = self.workspace();
        let frozen = |name: &str, absent| {
            let path = ws.join(name);
            Guard { path, keep: Keep::Frozen, absent }
        };
        let mut guards = repository(&ws);
        guards.extend([
            frozen(".locum/agents", StandIn::Folder),
            frozen("locum.toml", StandIn::File("")),
            frozen("defs", StandIn::Folder),
            frozen("deep/er/est", StandIn::Folder),
        ]);
        guards.extend(self.within());
        guards.extend(self.hidden());
        guards.extend(Below::default().guards(&ws, &MADE_OF));
        guards
    }

    /// What is absent together with the folder it would be in, which is nobody's business.
    pub(crate) fn within(&self) -> Vec<Guard> {
        let frozen = |name: &&str| {
            let path = self.workspace().join(name);
            Guard { path, keep: Keep::Frozen, absent: StandIn::Within }
        };
        WITHIN.iter().map(frozen).collect()
    }

    fn hidden(&self) -> Vec<Guard> {
        let hidden = |name: &str| {
            let path = self.base.join(name);
            Guard { path, keep: Keep::Hidden, absent: StandIn::Folder }
        };
        vec![hidden("data"), hidden("config.toml")]
    }

    pub(crate) fn walls(&self, survey: &Survey, way: Way) -> Walls {
        let workspace = self.workspace();
        match way {
            Way::Reading => Walls { guards: self.guards(), ..Walls::read_only(workspace) },
            Way::Writing if survey.builders == [Builder::Landlock] => {
                Walls { guards: self.hidden(), ..Walls::around(workspace) }
            }
            Way::Writing => Walls { guards: self.guards(), ..Walls::around(workspace) },
        }
    }

    /// What harm was done. Without a survey there are no walls.
    pub(crate) fn attack(&self, attack: &Attack, survey: Option<&Survey>, way: Way) -> Vec<String> {
        let before = self.picture(way);
        let script = format!("{}\n{}", self.words(), attack.script);
        let output = match survey {
            Some(survey) => self.run(&self.walls(survey, way), survey, &script),
            None => self.spawn(self.leaky().args(["sh", "-c", &script])),
        };
        let mut harm = self.harm(&before, way);
        let marks = ["ESCAPED", "SECRET-"].into_iter().filter(|mark| output.contains(mark));
        harm.extend(marks.map(|mark| format!("said {mark}")));
        if survey.is_some() && output.contains("no sandbox") {
            harm.push(format!("not run at all: {output}"));
        }
        if harm.is_empty() {
            self.fresh_workspace();
        } else {
            self.restore();
        }
        harm
    }

    pub(crate) fn run(&self, walls: &Walls, survey: &Survey, script: &str) -> String {
        let program = ["sh".into(), "-c".into(), script.into()];
        let enclosed = enclose(walls, survey, &program, &self.workspace());
        let Enclosed { argv, env, hold } = match enclosed {
            Ok(enclosed) => enclosed,
            Err(why) => return format!("no sandbox: {why}"),
        };
        let output = self.spawn(self.leaky().args(argv).env_clear().envs(env));
        drop(hold);
        output
    }

    /// Leaves a file open, as careless programs do: the walls have to close it.
    fn leaky(&self) -> Command {
        let leak = format!("exec 7>>'{}'; exec \"$@\"", self.outside().join("canary").display());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &leak, "sh"]);
        command
    }

    /// Runs it and gives what it said, ending it when it takes too long.
    fn spawn(&self, command: &mut Command) -> String {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        command.stdin(Stdio::null()).stdout(writer.try_clone().expect("a copy")).stderr(writer);
        command.current_dir(self.workspace()).process_group(0);
        let mut child = command.spawn().expect("it starts");
        // Ours is the other end; the command's copies are its own.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = reader.by_ref().take(1 << 20).read_to_end(&mut text);
            let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
        });
        let ended = (0..PATIENCE.as_millis() / 5).any(|_| {
            thread::sleep(Duration::from_millis(5));
            !matches!(child.try_wait(), Ok(None))
        });
        if !ended {
            end(&mut child);
            return "ESCAPED from time".to_owned();
        }
        receiver.recv_timeout(Duration::from_secs(2)).unwrap_or_default()
    }

    pub(crate) fn words(&self) -> String {
        let Self { base, port, key, victim, .. } = self;
        let victim = victim.lock().expect("no panic held it").id();
        let (base, mark) = (base.display(), mark());
        let user = rustix::process::getuid().as_raw();
        format!(
            "WS={base}/ws OUT={base}/out DATA={base}/data PORT={port} KEY={key} MARK={mark} \
             VICTIM={victim} SOCK={base}/out/sock NAME=locum-test-{port} \
             OURSELVES={base}/wall UID0={user}; \
             W='sub w {{ my $x = shift; $x }} '; : ${{TMPDIR:=/tmp}}"
        )
    }

    /// Forgets who was reached on purpose.
    pub(crate) fn forgive(&self) {
        drop(self.reached());
    }

    fn reached(&self) -> Vec<String> {
        let passing = self.passing.lock().expect("no panic held it");
        let all = self.lasting.iter().chain(passing.iter());
        all.filter(|(_, reached)| reached()).map(|(name, _)| format!("reached {name}")).collect()
    }

    fn harm(&self, before: &[String], way: Way) -> Vec<String> {
        let mut harm = Vec::new();
        if survivors() {
            harm.push("somebody survived".to_owned());
        }
        let after = self.picture(way);
        harm.extend(after.iter().filter(|line| !before.contains(line)).map(|l| format!("+{l}")));
        harm.extend(before.iter().filter(|line| !after.contains(line)).map(|l| format!("-{l}")));
        harm.extend(self.reached());
        let now = machine(&self.base);
        harm.extend(now.into_iter().filter(|line| !self.machine.contains(line)));
        let mut victim = self.victim.lock().expect("no panic held it");
        let state = fs::read_to_string(format!("/proc/{}/stat", victim.id())).unwrap_or_default();
        let state = state.rsplit(") ").next().and_then(|rest| rest.chars().next());
        if state != Some('S') {
            harm.push(format!("the victim is {state:?}"));
            end(&mut victim);
            *victim = self.idle();
        }
        if !self.shared_intact() {
            harm.push("shared memory or queue was touched".to_owned());
        }
        for place in ["/", "/tmp", "/var/tmp", "/dev/shm", "/run", "/run/lock", "/etc/cron.d"] {
            let path = Path::new(place).join("locum-escaped");
            if fs::remove_file(&path).is_ok() {
                harm.push(path.display().to_string());
            }
        }
        harm
    }

    fn shared_intact(&self) -> bool {
        let script = format!(
            "$s = shmget({0}, 8, 0); shmread($s, $b, 0, 8); $q = msgget({0}, 0); \
             $n = msgrcv($q, $m, 9, 0, 04000); exit($b eq 'canary!!' && !$n ? 0 : 1)",
            self.key
        );
        let ran = Command::new("perl").args(["-e", &script]).status();
        ran.is_ok_and(|status| status.success())
    }

    /// All that must stay as it is, one line each.
    fn picture(&self, way: Way) -> Vec<String> {
        let mut lines = Vec::new();
        for name in ["out", "data", "config.toml", "wall"] {
            look(&self.base.join(name), &mut lines);
        }
        let ws = self.workspace();
        let mut guarded = vec!["locum.toml", ".locum", "defs", "deep/er/est"];
        guarded.extend(WITHIN);
        guarded.extend([".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir"]);
        guarded.push(".git/worktrees");
        guarded.extend(BELOW);
        if way == Way::Reading {
            guarded = vec![""];
        }
        for name in guarded {
            look(&ws.join(name), &mut lines);
        }
        for git in [".git", "p1", "p1/.git", "src/b/c/p2/.git", "mirror.git"] {
            if let Ok(data) = fs::symlink_metadata(ws.join(git)) {
                lines.push(format!("{git} {}", data.ino()));
            }
        }
        if let Ok(data) = fs::symlink_metadata(&self.base) {
            lines.push(format!("base {:o}", data.mode()));
        }
        special(&ws, &mut lines);
        look(&PathBuf::from(format!("/dev/shm/locum-test-{}", self.port)), &mut lines);
        lines
    }

    pub(crate) fn fresh_workspace(&self) {
        let (ws, template) = (self.workspace(), self.base.join("template"));
        let _ = Command::new("rm").arg("-rf").arg(&ws).status();
        let _ = fs::remove_dir_all(self.base.join("ws-old"));
        let copied = Command::new("cp").arg("-a").arg(template).arg(&ws).status();
        assert!(copied.is_ok_and(|status| status.success()), "a fresh workspace");
    }

    fn restore(&self) {
        let base = &self.base;
        for name in ["out", "out-gone", "ws", "ws-old", "data", "d", "template", "config.toml"] {
            let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(base.join(name)).output();
            let _ = Command::new("rm").arg("-rf").arg(base.join(name)).status();
        }
        let script = "
            chmod 755 .; umask 022; mkdir -p out/folder data template && echo untouched > out/canary
            echo old > out/old; echo kept > out/folder/file; : > out/.profile; mkfifo out/fifo
            echo SECRET-DATA > data/secret; echo SECRET-CONFIG > config.toml
            cd template && git init -q . && git config user.name t && git config user.email t@t
            mkdir -p .git/hooks .git/worktrees/other defs deep/er/est
            echo ../.. > .git/worktrees/other/commondir
            echo true > .git/hooks/post-checkout; echo text > defs/agent.md; echo hi > file
            git add file; git commit -q -m first
            printf 'p1\\np1-tree\\nsrc\\nmirror.git\\n' > .git/info/exclude
            for to in p1 src/b/c/p2 '--bare mirror.git'; do git clone -q --template= . $to; done
            mkdir p1/.git/hooks src/b/c/p2/.git/hooks mirror.git/hooks
            cd p1; git config user.name t; git config user.email t@t
            echo true > .git/hooks/post-checkout; mkdir -p .claude/agents .github/agents
            echo text > .claude/agents/a.md; echo '{}' > .mcp.json; echo text > .github/agents/a.md
            git config extensions.worktreeConfig true
            git worktree add -q ../p1-tree; sed -i s,/template/,/ws/, ../p1-tree/.git
            sed -i s,/template/,/ws/, .git/worktrees/p1-tree/gitdir
            mkdir -p .git/modules/libs; git init -q --bare --template= .git/modules/libs/foo
            mkdir .git/modules/libs/foo/hooks";
        let made = Command::new("sh").args(["-ec", script]).current_dir(base).output();
        let made = made.expect("a shell");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        symlink(base.join("data"), base.join("out/alias")).expect("a link");
        let _ = fs::write(format!("/dev/shm/locum-test-{}", self.port), "canary");
        let script = format!(
            "$s = shmget({0}, 8, 01600); shmwrite($s, 'canary!!', 0, 8); msgget({0}, 01600)",
            self.key
        );
        let _ = Command::new("perl").args(["-e", &script]).output();
        self.listen_at_paths();
        self.fresh_workspace();
        let mut victim = self.victim.lock().expect("no panic held it");
        end(&mut victim);
        *victim = self.idle();
        drop(victim);
        self.forgive();
    }

    /// Somebody else's work: in the folder outside, with a file open and a secret.
    fn idle(&self) -> Child {
        let canary = self.outside().join("canary");
        let script = format!("exec 3>>'{}'; exec perl -e 'sleep 1e5' \"$0\"", canary.display());
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("VICTIM_TOKEN", "SECRET-VICTIM");
        command.arg("SECRET-ARGUMENT").current_dir(self.outside());
        let child = command.process_group(0).stdin(Stdio::null()).spawn().expect("a victim");
        let sleeps = |_| {
            let name = fs::read_to_string(format!("/proc/{}/comm", child.id()));
            let done = name.is_ok_and(|name| name.trim() == "perl");
            if !done {
                thread::sleep(Duration::from_millis(1));
            }
            done
        };
        assert!((0..2000).any(sleeps), "the victim sleeps");
        child
    }

    fn listen_at_paths(&self) {
        let mut watches: Vec<Watch> = Vec::new();
        for path in [self.outside().join("sock"), self.base.join("data/door")] {
            watches.push(stream(path.display().to_string(), UnixListener::bind(&path)));
        }
        let socket = UnixDatagram::bind(self.outside().join("sock.dgram")).expect("a socket");
        socket.set_nonblocking(true).expect("no waiting");
        watches.push(("datagram".into(), Box::new(move || socket.recv(&mut [0; 9]).is_ok())));
        let mut fifo = OpenOptions::new();
        let fifo = fifo.read(true).custom_flags(libc::O_NONBLOCK).open(self.outside().join("fifo"));
        let fifo = fifo.expect("a fifo");
        let read = move || (&fifo).read(&mut [0; 9]).is_ok_and(|length| length > 0);
        watches.push(("fifo".into(), Box::new(read)));
        *self.passing.lock().expect("no panic held it") = watches;
    }
}

fn lasting(tcp: TcpListener, port: u16) -> Vec<Watch> {
    let udp = UdpSocket::bind(("127.0.0.1", port)).expect("a port");
    tcp.set_nonblocking(true).expect("no waiting");
    udp.set_nonblocking(true).expect("no waiting");
    let name = SocketAddr::from_abstract_name(format!("locum-test-{port}")).expect("a name");
    let mut watches: Vec<Watch> = vec![
        ("tcp".into(), Box::new(move || tcp.accept().is_ok())),
        ("udp".into(), Box::new(move || udp.recv(&mut [0; 9]).is_ok())),
        stream("nameless".into(), UnixListener::bind_addr(&name)),
    ];
    for place in ["/run", "/tmp"] {
        // Not everybody may listen everywhere.
        let socket = UnixListener::bind(format!("{place}/locum-test-{port}"));
        if socket.is_ok() {
            watches.push(stream(place.into(), socket));
        }
    }
    watches
}

fn stream(name: String, socket: io::Result<UnixListener>) -> Watch {
    let socket = socket.expect("a socket");
    socket.set_nonblocking(true).expect("no waiting");
    (name, Box::new(move || socket.accept().is_ok()))
}

/// Stands in until there is a folder for a real one.
fn idle() -> Child {
    Command::new("true").spawn().expect("true")
}

/// Others mount things too, so only where the attacks would.
fn machine(base: &Path) -> Vec<String> {
    let places = ["/", "/etc", "/tmp", "/run", "/proc"];
    let ours = |line: &&str| {
        let place = Path::new(line.split(' ').nth(1).unwrap_or_default());
        place.starts_with(base) || places.iter().any(|known| place == Path::new(known))
    };
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mounts = read("/proc/self/mounts");
    let mut lines: Vec<String> = mounts.lines().filter(ours).map(str::to_owned).collect();
    lines.extend(["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname"].map(read));
    lines
}

/// True: somebody who should be gone is not, after a while.
pub(crate) fn survivors() -> bool {
    for _ in 0..POLLS {
        let found = running(&mark());
        if found.is_empty() {
            return false;
        }
        thread::sleep(POLL);
    }
    for pid in running(&mark()) {
        let _ = Command::new("kill").args(["-9", &pid]).status();
    }
    true
}

pub(crate) fn running(word: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().into_string().ok());
    let has = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        line.starts_with("sleep\0") && line.contains(word)
    };
    pids.filter(|pid| pid.bytes().all(|sign| sign.is_ascii_digit())).filter(has).collect()
}

fn look(path: &Path, lines: &mut Vec<String>) {
    let Ok(data) = fs::symlink_metadata(path) else { return };
    let kind = data.file_type();
    let mode = data.permissions().mode();
    let mut line = format!("{} {mode:o} {} {}", path.display(), data.uid(), data.ino());
    if kind.is_file() {
        let mut start = Vec::new();
        let read = File::open(path).and_then(|file| file.take(60).read_to_end(&mut start));
        let start = read.map(|_| String::from_utf8_lossy(&start).into_owned());
        let (length, names, time) = (data.len(), data.nlink(), data.mtime());
        line = format!("{line} {length} {names} {time} {start:?}");
    } else if kind.is_symlink() {
        line = format!("{line} -> {:?}", fs::read_link(path));
    }
    lines.push(line);
    if kind.is_dir() {
        let children = fs::read_dir(path).into_iter().flatten().flatten();
        children.for_each(|child| look(&child.path(), lines));
    }
}

/// Programs that run as their owner, and devices.
fn special(folder: &Path, lines: &mut Vec<String>) {
    for child in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(data) = child.metadata() else { continue };
        if data.is_dir() {
            special(&child.path(), lines);
        } else if data.mode() & 0o6000 != 0
            || [0o020_000, 0o060_000].contains(&(data.mode() & 0o170_000))
        {
            lines.push(format!("{} {:o}", child.path().display(), data.mode()));
        }
    }
}
