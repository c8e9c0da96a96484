//! Which files in a folder are ours to check, among everything else that is written in YAML,
//! JSON, Markdown and TOML: by where they are, else by what stands at their beginning.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use locum_definitions::limits::{ENTRIES_MAX, FILE_BYTES_MAX, FILES_MAX};
use locum_definitions::{CIRCLE, Origin, Problem, Scope, Severity, beneath, load_from, read_text};

use crate::config;

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Definition,
    /// `config.toml`.
    Config,
    /// `mcp.json`.
    Servers,
    /// What a scripted model says.
    Script,
}

/// Folders below the one that was named.
const DEEP_MAX: usize = 16;
/// Entries of all folders together: a large repository has a tenth of it.
const LOOKED_MAX: usize = 200_000;
/// Never written by hand.
const PASSED_OVER: [&str; 3] = [".git", "node_modules", "target"];
/// They live among definitions and are none.
const NO_DEFINITIONS: [&str; 6] =
    ["readme.md", "agents.md", "claude.md", "gemini.md", "license.md", "changelog.md"];

/// What stands at the left edge of recipes.
const RECIPE_KEYS: [&str; 17] = [
    "version",
    "title",
    "description",
    "instructions",
    "prompt",
    "parameters",
    "extensions",
    "settings",
    "sub_recipes",
    "response",
    "retry",
    "activities",
    "author",
    "context",
    "tools",
    "locum",
    "recipe",
];

#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<(PathBuf, Sort)>,
    pub(super) problems: Vec<Problem>,
    /// Files in folders of commands, which nothing here starts.
    pub(super) commands: usize,
}

/// Everything in a folder and below it that is one of ours.
pub(super) fn find(root: &Path) -> Found {
    let mut walk = Walk { root, found: Found::default(), seen: BTreeSet::new(), looked: 0 };
    walk.folder(root, 0);
    walk.found
}

struct Walk<'a> {
    root: &'a Path,
    found: Found,
    seen: BTreeSet<PathBuf>,
    looked: usize,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) {
        match beneath(folder, self.root) {
            Ok(real) => {
                // A link that leads back up is looked at once.
                if !self.seen.insert(real) {
                    return;
                }
            }
            Err(refused) if is_shelf(folder) => {
                return self.found.problems.extend(refused.problems(folder));
            }
            Err(_) => return,
        }
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => return self.tell(folder, "cannot be read", &error.to_string()),
        };
        let mut paths: Vec<PathBuf> =
            entries.take(ENTRIES_MAX + 1).filter_map(|entry| Some(entry.ok()?.path())).collect();
        if paths.len() > ENTRIES_MAX {
            let what = format!("more than {ENTRIES_MAX} entries");
            return self.tell(folder, &what, "so much is not looked through");
        }
        paths.sort();
        for path in paths {
            if self.looked >= LOOKED_MAX || self.found.files.len() >= FILES_MAX {
                let last = self.found.problems.last();
                if last.is_none_or(|last| last.what != TOO_MANY) {
                    self.tell(&path, TOO_MANY, "this and the rest is not checked");
                }
                return;
            }
            self.looked += 1;
            self.entry(&path, depth);
        }
    }

    fn entry(&mut self, path: &Path, depth: usize) {
        let is_folder = fs::metadata(path).is_ok_and(|data| data.is_dir());
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !is_folder {
            let sort = self.sort(path);
            self.found.commands += usize::from(sort.is_none() && self.is_command(path));
            self.found.files.extend(sort.map(|sort| (path.to_owned(), sort)));
        } else if depth < DEEP_MAX && !PASSED_OVER.contains(&name) {
            self.folder(path, depth + 1);
        }
    }

    fn tell(&mut self, path: &Path, what: &str, why: &str) {
        self.found.problems.push(Problem {
            file: path.to_owned(),
            line: 1,
            column: 1,
            severity: Severity::Error,
            what: what.to_owned(),
            why: why.to_owned(),
            how: "check a smaller folder".to_owned(),
        });
    }

    /// What a file in a folder is; `None` is nothing of ours.
    fn sort(&self, path: &Path) -> Option<Sort> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let parent = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        // The folder that was named has a name too, even if it is `.`.
        let own =
            || fs::canonicalize(path.parent()?).ok()?.file_name()?.to_str().map(str::to_owned);
        let parent = parent.filter(|it| *it != "..").map(str::to_owned).or_else(own);
        let parent = parent.unwrap_or_default();
        let hidden = parent.starts_with('.') && parent != ".locum";
        if NO_DEFINITIONS.contains(&name.as_str()) {
            return None;
        }
        match (name.rsplit_once('.')?.1, name.as_str()) {
            (_, ".mcp.json") => Some(Sort::Servers),
            (_, "mcp.json") if !hidden => Some(Sort::Servers),
            (_, "skill.md") => Some(Sort::Definition),
            ("toml", "config.toml" | "rules.toml") if ["locum", ".locum"].contains(&&*parent) => {
                Some(Sort::Config)
            }
            ("toml", "config.toml") if !hidden => {
                let keys = keys(&self.text(path)?);
                let known = keys.iter().any(|key| config::TOP.contains(&key.as_str()));
                known.then_some(Sort::Config)
            }
            ("yaml" | "yml" | "json", _) if parent == "recipes" => Some(Sort::Definition),
            ("yaml" | "yml" | "json", _) => {
                let text = self.text(path)?;
                let put_together = || self.is_put_together(path, &text);
                sort_of(&text).or_else(|| put_together().then_some(Sort::Definition))
            }
            ("md", _) if ["agents", "agent", "skills"].contains(&&*parent) => {
                Some(Sort::Definition)
            }
            ("md", _) => is_agent(&self.text(path)?).then_some(Sort::Definition),
            _ => None,
        }
    }

    /// A recipe whose fields are in other files, or that leads back to itself and so has none. A
    /// part of a recipe is neither.
    fn is_put_together(&self, path: &Path, text: &str) -> bool {
        let tag = |text: &str| ["include", "extends"].iter().any(|word| text.starts_with(word));
        let tagged = text.split("{%").skip(1).any(|it| tag(it.trim_start_matches(['-', '+', ' '])));
        if !tagged || keys(text).iter().any(|key| !RECIPE_KEYS.contains(&key.as_str())) {
            return false;
        }
        let (file, root) = (path.to_owned(), self.root.to_owned());
        let loaded = load_from(&Origin { file, root, scope: Scope::User });
        let circle = |problem: &Problem| problem.what.starts_with(CIRCLE);
        loaded.definition.is_some() || loaded.problems.iter().any(circle)
    }

    fn is_command(&self, path: &Path) -> bool {
        let below = path.strip_prefix(self.root).unwrap_or(path);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let mut folders = below.parent().into_iter().flat_map(Path::components);
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_text = ending == "md" && !NO_DEFINITIONS.contains(&name.as_str());
        is_text && folders.any(|folder| folder.as_os_str() == "commands")
    }

    /// What cannot be read is not known to be ours, so it is nobody's mistake.
    fn text(&self, path: &Path) -> Option<String> {
        read_text(path, self.root, FILE_BYTES_MAX).ok()
    }
}

const TOO_MANY: &str = "too many files";

fn is_shelf(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| ["recipes", "agents", "agent", "skills"].contains(&name))
}

impl Sort {
    /// What a file is that somebody named.
    pub(super) fn named(path: &Path) -> Sort {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending {
            "toml" => Sort::Config,
            "json" if [".mcp.json", "mcp.json"].contains(&name.as_str()) => Sort::Servers,
            "yaml" | "yml" => {
                let root = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let root = root.unwrap_or(Path::new("."));
                let text = read_text(path, root, FILE_BYTES_MAX).unwrap_or_default();
                sort_of(&text).unwrap_or(Sort::Definition)
            }
            _ => Sort::Definition,
        }
    }
}

/// A recipe or a script, by the keys at the left edge.
fn sort_of(text: &str) -> Option<Sort> {
    let keys = keys(text);
    let has = |names: &[&str]| keys.iter().any(|key| names.contains(&key.as_str()));
    let is_recipe = has(&["instructions", "prompt"]) && has(&["title", "description"]);
    if is_recipe || (has(&["recipe"]) && keys.len() == 1) {
        return Some(Sort::Definition);
    }
    let plays =
        ["agents:", "agents :"].iter().any(|start| text.lines().any(|it| it.starts_with(start)));
    let strange = |key: &String| !["seed", "defaults", "tools", "may", "agents"].contains(&&**key);
    let steps = ["say:", "calls:", "error:", "hang_ms:"].iter().any(|step| text.contains(step));
    (plays && steps && !keys.iter().any(strange)).then_some(Sort::Script)
}

/// Names before a colon or an equals sign at the left edge, tables of TOML, and in JSON those one
/// level below the outermost braces.
fn keys(text: &str) -> Vec<String> {
    let trimmed = text.trim_start();
    if trimmed.starts_with('{') {
        return match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text) {
            Ok(fields) => fields.keys().cloned().collect(),
            Err(_) => text
                .lines()
                .filter_map(|line| key(line.trim_start_matches([' ', '\t', '{'])))
                .collect(),
        };
    }
    text.lines().filter_map(key).collect()
}

fn key(line: &str) -> Option<String> {
    let table = line.strip_prefix('[').map(|line| line.trim_start_matches('['));
    let line = table.unwrap_or(line);
    let end = line.find([':', '=', ']', '.'])?;
    let name = line[..end].trim_end().trim_matches(['"', '\'']);
    let plain = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == '-';
    (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned())
}

/// It begins with a name and what it is for, between lines of dashes.
fn is_agent(text: &str) -> bool {
    let mut lines = text.lines();
    if lines.next().is_none_or(|line| line.trim_end() != "---") {
        return false;
    }
    let front: Vec<&str> = lines.take_while(|line| line.trim_end() != "---").collect();
    ["name:", "description:"].iter().all(|key| front.iter().any(|line| line.starts_with(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_beginning() {
        use Sort::{Definition, Script};
        let cases = [
            ("title: a\nprompt: b\n", Some(Definition)),
            ("description: a\ninstructions: |\n  b\n", Some(Definition)),
            ("{\"title\": \"a\", \"prompt\": \"b\"}", Some(Definition)),
            ("{\n  \"title\": \"a\",\n  \"prompt\": \"b\",\n", Some(Definition)),
            ("recipe:\n  title: a\n", Some(Definition)),
            ("agents:\n  main:\n    - say: hi\n", Some(Script)),
            ("agents:\n  - name: x\n", None),
            ("name: CI\non: push\njobs:\n  a:\n    description: d\n    prompt: p\n", None),
            ("{\"name\": \"x\", \"description\": \"d\", \"scripts\": {\"prompt\": \"x\"}}", None),
            ("openapi: 3\ninfo:\n  title: a\n  description: b\n", None),
            ("", None),
        ];
        for (text, sort) in cases {
            assert_eq!(sort_of(text), sort, "{text}");
        }
        assert!(is_agent("---\nname: a\ndescription: b\n---\nx"));
        assert!(!is_agent("---\ntitle: a\ndescription: b\n---\nname: x"));
        assert!(!is_agent("name: a\ndescription: b\n"));
    }
}
