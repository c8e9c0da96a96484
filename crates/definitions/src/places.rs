//! Where people keep definitions, and what lies there: folders in order, files in each by name.
//! Only names and sizes are looked at; that is enough to see whether anything changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use locum_kernel::Digest;

use crate::definition::{Kind, Origin, Scope};
use crate::file;
use crate::limits::{ENTRIES_MAX, FILES_MAX, FOLDERS_DEEP};
use crate::problem::{Place, Problem, Problems};

/// The folders that searching starts from. What is `None` is not looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places<'a> {
    /// Only if the person trusts it.
    pub workspace: Option<&'a Path>,
    pub home: Option<&'a Path>,
    /// Our own folder of configuration.
    pub config_dir: Option<&'a Path>,
    /// Folders of recipes that the person named.
    pub extra: &'a [PathBuf],
}

impl Places<'_> {
    /// Whose a file is that lies where definitions are looked for, by the folder that comes first.
    #[must_use]
    pub fn origin(&self, file: &Path) -> Option<Origin> {
        let written = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let real = fs::canonicalize(file).unwrap_or_else(|_| written.clone());
        let holds = |folder: &Path| {
            let beneath = fs::canonicalize(folder).is_ok_and(|folder| real.starts_with(folder));
            written.starts_with(folder) || beneath
        };
        let on = |base: &Path, list: &[(&str, Kind)]| {
            list.iter().any(|(name, _)| holds(&base.join(name)))
        };
        let (root, scope) = if let Some(root) = self.workspace.filter(|it| on(it, WORKSPACE)) {
            (root, Scope::Workspace)
        } else if let Some(root) = self.extra.iter().find(|folder| holds(folder)) {
            (root.as_path(), Scope::RecipePath)
        } else if let Some(folder) = self.config_dir.filter(|it| on(it, CONFIG)) {
            (self.config_root(folder), Scope::User)
        } else {
            (self.home.filter(|it| on(it, HOME))?, Scope::User)
        };
        Some(Origin { file: file.to_owned(), root: root.to_owned(), scope })
    }

    /// People keep such files elsewhere at home and link to them.
    fn config_root<'a>(&'a self, folder: &'a Path) -> &'a Path {
        self.home.filter(|home| folder.starts_with(home)).unwrap_or(folder)
    }
}

const WORKSPACE: &[(&str, Kind)] = &[
    (".locum/recipes", Kind::Recipe),
    (".goose/recipes", Kind::Recipe),
    (".agents/recipes", Kind::Recipe),
    (".locum/agents", Kind::Agent),
    (".goose/agents", Kind::Agent),
    (".claude/agents", Kind::Agent),
    (".agents/agents", Kind::Agent),
    (".opencode/agent", Kind::Agent),
    (".opencode/agents", Kind::Agent),
    (".github/agents", Kind::Agent),
    (".gemini/agents", Kind::Agent),
    (".locum/skills", Kind::Skill),
    (".agents/skills", Kind::Skill),
    (".goose/skills", Kind::Skill),
    (".claude/skills", Kind::Skill),
    (".github/skills", Kind::Skill),
    (".codex/skills", Kind::Skill),
    (".gemini/skills", Kind::Skill),
    ("skills", Kind::Skill),
];

const HOME: &[(&str, Kind)] = &[
    (".goose/recipes", Kind::Recipe),
    (".config/goose/recipes", Kind::Recipe),
    (".agents/recipes", Kind::Recipe),
    (".goose/agents", Kind::Agent),
    (".agents/agents", Kind::Agent),
    (".config/goose/agents", Kind::Agent),
    (".claude/agents", Kind::Agent),
    (".config/opencode/agent", Kind::Agent),
    (".config/opencode/agents", Kind::Agent),
    (".agents/skills", Kind::Skill),
    (".config/goose/skills", Kind::Skill),
    (".claude/skills", Kind::Skill),
    (".config/agents/skills", Kind::Skill),
    (".codex/skills", Kind::Skill),
    (".ash/skills", Kind::Skill),
];

const CONFIG: &[(&str, Kind)] =
    &[("recipes", Kind::Recipe), ("agents", Kind::Agent), ("skills", Kind::Skill)];

/// Files that live among definitions and are none.
const NO_DEFINITIONS: &[&str] = &["readme.md", "agents.md", "license.md", "changelog.md"];

/// Notes for programs, as these programs want them written. In small letters it is an agent that
/// is named after such a program.
const NOTES: &[&str] = &["CLAUDE.md", "GEMINI.md"];

/// A file that may be a definition.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) origin: Origin,
    pub(crate) kind: Kind,
    /// Found beside other things, so it is one only if it looks like one.
    pub(crate) stray: bool,
    pub(crate) bytes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) candidates: Vec<Candidate>,
    /// Every folder that was looked for, and whether it is there.
    pub(crate) looked_in: Vec<(PathBuf, bool)>,
    pub(crate) problems: Vec<Problem>,
    seen: BTreeSet<PathBuf>,
    trace: Vec<u8>,
}

/// How many files of each kind lie where a workspace's definitions lie. No file is opened, so
/// this may be asked of a folder that nobody trusts.
#[must_use]
pub fn count(workspace: &Path) -> BTreeMap<Kind, usize> {
    let mut survey = Survey::default();
    let place = |kind| Shelf { root: workspace, scope: Scope::Workspace, kind };
    survey.shelves(workspace, WORKSPACE, place);
    let mut count = BTreeMap::new();
    for candidate in &survey.candidates {
        *count.entry(candidate.kind).or_default() += 1;
    }
    count
}

/// One folder to look at.
struct Shelf<'a> {
    root: &'a Path,
    scope: Scope,
    kind: Kind,
}

impl Survey {
    pub(crate) fn of(places: &Places<'_>) -> Survey {
        let mut survey = Survey::default();
        if let Some(root) = places.workspace {
            let place = |kind| Shelf { root, scope: Scope::Workspace, kind };
            survey.strays(&place(Kind::Recipe));
            survey.shelves(root, WORKSPACE, place);
        }
        for root in places.extra {
            survey.folder(root, &Shelf { root, scope: Scope::RecipePath, kind: Kind::Recipe }, 1);
        }
        if let Some(folder) = places.config_dir {
            let root = places.config_root(folder);
            survey.shelves(folder, CONFIG, |kind| Shelf { root, scope: Scope::User, kind });
        }
        if let Some(root) = places.home {
            survey.shelves(root, HOME, |kind| Shelf { root, scope: Scope::User, kind });
        }
        survey
    }

    pub(crate) fn fingerprint(&self) -> Digest {
        Digest::of_bytes(&self.trace)
    }

    fn shelves<'a>(
        &mut self,
        base: &Path,
        list: &[(&str, Kind)],
        place: impl Fn(Kind) -> Shelf<'a>,
    ) {
        for (folder, kind) in list {
            let place = place(*kind);
            let depth = match kind {
                Kind::Recipe => 1,
                Kind::Agent | Kind::Skill => FOLDERS_DEEP,
            };
            self.folder(&base.join(folder), &place, depth);
        }
    }

    fn folder(&mut self, folder: &Path, place: &Shelf<'_>, depth: usize) {
        let there = folder.is_dir();
        self.looked_in.push((folder.to_owned(), there));
        self.note(folder, fs::metadata(folder).ok().as_ref());
        if there {
            self.walk(folder, place, depth);
        }
    }

    fn walk(&mut self, folder: &Path, place: &Shelf<'_>, depth: usize) {
        let real = match file::beneath(folder, place.root) {
            Ok(real) => real,
            Err(refused) => return self.refuse(folder, &refused),
        };
        // A link that leads back up is looked at once.
        if !self.seen.insert(real) {
            return;
        }
        for path in entries(folder) {
            let Ok(data) = fs::metadata(&path) else {
                if named_so(&path, place.kind) {
                    self.candidate(path, place, None);
                }
                continue;
            };
            if named_so(&path, place.kind) && !(data.is_dir() && place.kind == Kind::Skill) {
                self.candidate(path, place, Some(&data));
            } else if data.is_dir() && depth > 1 {
                self.note(&path, Some(&data));
                self.walk(&path, place, depth - 1);
            }
        }
    }

    /// Recipes in the workspace itself, among everything else that is written in YAML.
    fn strays(&mut self, place: &Shelf<'_>) {
        self.looked_in.push((place.root.to_owned(), true));
        for path in entries(place.root) {
            let Ok(data) = fs::metadata(&path) else { continue };
            if data.is_file() && named_so(&path, Kind::Recipe) {
                self.candidate(path, place, Some(&data));
                if let Some(last) = self.candidates.last_mut() {
                    last.stray = true;
                }
            }
        }
    }

    fn candidate(&mut self, path: PathBuf, place: &Shelf<'_>, data: Option<&Metadata>) {
        self.note(&path, data);
        if self.candidates.len() >= FILES_MAX {
            let problems = Problems::new(&path);
            let what = format!("more than {FILES_MAX} definitions");
            problems.error(Place::START, what, "the rest is not read", "keep fewer");
            if self.problems.last().is_none_or(|last| !last.what.starts_with("more than")) {
                self.problems.extend(problems.take());
            }
            return;
        }
        let origin = Origin { file: path, root: place.root.to_owned(), scope: place.scope };
        let bytes = data.map_or(0, Metadata::len);
        self.candidates.push(Candidate { origin, kind: place.kind, stray: false, bytes });
    }

    fn refuse(&mut self, folder: &Path, refused: &file::Refused) {
        let problems = Problems::new(folder);
        refused.tell(&problems);
        self.problems.extend(problems.take());
    }

    /// What a change would change.
    fn note(&mut self, path: &Path, data: Option<&Metadata>) {
        self.trace.extend_from_slice(path.as_os_str().as_encoded_bytes());
        let changed = data.and_then(|data| data.modified().ok());
        let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanos = changed.map_or(0, |time| time.as_nanos());
        self.trace.extend_from_slice(&nanos.to_le_bytes());
        self.trace.extend_from_slice(&data.map_or(0, Metadata::len).to_le_bytes());
        self.trace.push(u8::from(data.is_some()));
    }
}

/// By name, so that the order is the same everywhere.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        entries.take(ENTRIES_MAX).filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn named_so(path: &Path, kind: Kind) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let small = name.to_ascii_lowercase();
    let is_other = NO_DEFINITIONS.contains(&small.as_str()) || NOTES.contains(&name);
    if name.starts_with('.') || is_other {
        return false;
    }
    Kind::of(path) == Some(kind)
}
