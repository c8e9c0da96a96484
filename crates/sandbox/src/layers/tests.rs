//! Plans of small worlds: what is there, what is guarded, what is mounted.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::{Mount, plan};
use crate::walls::{Guard, Keep, NoWalls, StandIn, Walls};

struct World(PathBuf);

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Words are folders, `name=text` files and `name->target` links; `@name` is dated like a stand-in.
fn world(name: &str, things: &str) -> World {
    let base = std::env::temp_dir().join(format!("locum-layers-{name}-{}", std::process::id()));
    fs::create_dir_all(base.join("ws")).expect("a folder");
    let base = fs::canonicalize(base).expect("a real path");
    for thing in things.split_whitespace() {
        if let Some(dated) = thing.strip_prefix('@') {
            let at = UNIX_EPOCH + Duration::from_secs(1);
            let folder = File::open(base.join(dated)).expect("a folder");
            folder.set_times(FileTimes::new().set_modified(at)).expect("dated");
        } else if let Some((link, target)) = thing.split_once("->") {
            symlink(target, base.join(link)).expect("a link");
        } else if let Some((file, text)) = thing.split_once('=') {
            fs::write(base.join(file), text).expect("a file");
        } else {
            fs::create_dir_all(base.join(thing)).expect("a folder");
        }
    }
    World(base)
}

/// `!` hides, `=` freezes and `~` freezes nothing else.
fn walls(base: &Path, guards: &str) -> Walls {
    let guard = |word: &str| {
        let (keep, name) = match word.split_at(1) {
            ("!", name) => (Keep::Hidden, name),
            (_, name) => (Keep::Frozen, name),
        };
        let absent = if word.starts_with('~') { StandIn::Within } else { StandIn::File("") };
        Guard { path: base.join(name), keep, absent }
    };
    let guards = guards.split_whitespace().map(guard).collect();
    Walls { guards, ..Walls::around(base.join("ws")) }
}

/// Things, guards, and what comes out: `+` open, `=` frozen, `!` hidden, `?` needs a stand-in.
const CASES: &[(&str, &str, &str, &str)] = &[
    ("plain", "", "", "+ws"),
    ("file", "ws/f=x", "=ws/f", "+ws =ws/f"),
    ("folder", "ws/d", "!ws/d", "+ws !ws/d"),
    ("parents", "ws/a/b/c", "=ws/a/b/c", "+ws +ws/a +ws/a/b =ws/a/b/c"),
    ("absent", "", "=ws/f", "+ws =ws/f ?ws/f"),
    ("absent-below", "", "=ws/a/b/c", "+ws =ws/a ?ws/a"),
    ("absent-deep", "ws/a", "!ws/a/b/c", "+ws +ws/a =ws/a/b ?ws/a/b"),
    ("two-absent", "", "=ws/a/b =ws/a/c", "+ws =ws/a ?ws/a ?ws/a"),
    ("within", "", "~ws/a/b", "+ws +ws/a =ws/a/b ?ws/a ?ws/a/b"),
    ("within-two", "", "~ws/a/b ~ws/a/c", "+ws +ws/a =ws/a/b =ws/a/c ?ws/a ?ws/a/b ?ws/a ?ws/a/c"),
    ("within-there", "ws/a ws/a/f=x", "~ws/a/b", "+ws +ws/a =ws/a/b ?ws/a ?ws/a/b"),
    ("within-real", "ws/a/b ws/a/b/f=x", "~ws/a/b", "+ws +ws/a =ws/a/b"),
    ("within-dated", "ws/a/b @ws/a/b @ws/a", "~ws/a/b", "+ws +ws/a =ws/a/b ?ws/a ?ws/a/b"),
    ("within-dated-link", "ws/a ws/e ws/e/f=x ws/a/b->../e @ws/a", "~ws/a/b", "+ws =ws/a =ws/e"),
    ("outside-frozen", "out out/f=x", "=out/f", "+ws"),
    ("outside-hidden", "data", "!data", "!data +ws"),
    ("outside-absent", "", "!data =conf", "+ws"),
    ("through-outer-link", "data link->data", "!link", "!data +ws"),
    ("inner-link", "ws/g ws/real ws/g/hooks->../real", "=ws/g/hooks", "+ws =ws/g =ws/real"),
    ("inner-link-out", "ws/g out ws/g/hooks->../../out", "=ws/g/hooks", "+ws =ws/g"),
    ("inner-link-broken", "ws/g ws/g/hooks->../no", "=ws/g/hooks", "+ws =ws/g =ws/no ?ws/no"),
    ("file-for-folder", "ws/g=x", "=ws/g/hooks", "+ws =ws/g"),
    ("dots", "ws/a ws/b=x", "=ws/a/../b", "+ws =ws/b"),
    ("hidden-around", "", "!.", "!. +ws"),
    ("hidden-in-hidden", "data/more", "!data !data/more", "!data +ws"),
    ("stricter-wins", "ws/f=x", "=ws/f !ws/f", "+ws !ws/f"),
];

#[test]
fn plans() {
    for (name, things, guards, expected) in CASES {
        let world = world(name, things);
        let plan = plan(&walls(&world.0, guards)).expect("a plan");
        let short = |path: &Path| match path.strip_prefix(&world.0).expect("inside").to_str() {
            Some("") => ".".to_owned(),
            text => text.unwrap_or_default().to_owned(),
        };
        let sign = |mount| match mount {
            Mount::Open => '+',
            Mount::Show => '~',
            Mount::Freeze => '=',
            Mount::HideFile | Mount::HideFolder => '!',
        };
        let layers = plan.layers.iter().map(|l| format!("{}{}", sign(l.mount), short(&l.path)));
        let wants = plan.wants.iter().map(|want| format!("?{}", short(&want.path)));
        let found = layers.chain(wants).collect::<Vec<_>>().join(" ");
        assert_eq!(&found, expected, "{name}");
    }
}

#[test]
fn who_may_write_nowhere_still_sees_the_work() {
    let world = world("shown", "data/work");
    for (workspace, expected) in
        [("data/work", vec![Mount::HideFolder, Mount::Show]), ("ws", vec![Mount::HideFolder])]
    {
        let guards = walls(&world.0, "!data").guards;
        let walls = Walls { guards, ..Walls::read_only(world.0.join(workspace)) };
        let plan = plan(&walls).expect("a plan");
        let found: Vec<Mount> = plan.layers.iter().map(|layer| layer.mount).collect();
        assert_eq!(found, expected, "{workspace}");
    }
}

#[test]
fn what_cannot_be_planned() {
    let world = world("not", "other ws/.git->../other loop->loop");
    let refused = |guards: &str| plan(&walls(&world.0, guards));
    let link = refused("=ws/.git/hooks");
    assert!(matches!(&link, Err(NoWalls::Link { path }) if path.ends_with(".git")), "{link:?}");
    assert!(matches!(refused("=loop"), Err(NoWalls::Link { .. })));
    let everything = plan(&Walls::around("/"));
    assert!(matches!(everything, Err(NoWalls::Everything { .. })), "{everything:?}");
    let nothing = plan(&Walls::around("/nothing/there"));
    assert!(matches!(nothing, Err(NoWalls::Path { .. })), "{nothing:?}");
}
