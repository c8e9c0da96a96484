//! The definitions that come with the program.

use std::path::PathBuf;

use crate::definition::{Kind, Origin, Scope};
use crate::load::{Loaded, parse};

const FILES: &[(&str, Kind, &str)] = &[
    ("explorer.md", Kind::Agent, include_str!("../builtin/explorer.md")),
    ("planner.md", Kind::Agent, include_str!("../builtin/planner.md")),
    ("researcher.md", Kind::Agent, include_str!("../builtin/researcher.md")),
    ("reviewer.md", Kind::Agent, include_str!("../builtin/reviewer.md")),
    ("worker.md", Kind::Agent, include_str!("../builtin/worker.md")),
];

pub(crate) fn all() -> impl Iterator<Item = (Origin, Kind, Loaded)> {
    FILES.iter().map(|(name, kind, text)| {
        let origin = origin(name);
        let loaded = parse(text, *kind, &origin);
        (origin, *kind, loaded)
    })
}

pub(crate) fn load(origin: &Origin) -> Loaded {
    let named = |(name, _, _): &&(&str, Kind, &str)| origin.file.ends_with(name);
    match FILES.iter().find(named) {
        Some((_, kind, text)) => parse(text, *kind, origin),
        None => Loaded { definition: None, problems: Vec::new() },
    }
}

fn origin(name: &str) -> Origin {
    let root = PathBuf::from("builtin");
    Origin { file: root.join(name), root, scope: Scope::Builtin }
}
