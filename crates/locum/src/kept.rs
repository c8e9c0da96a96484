//! Rules kept for one folder: what people allowed for the project, so that they are not asked
//! again in later sessions there. One file for each workspace, in the data folder, in the words of
//! `config.toml`, so that it can be read and edited.
//!
//! The journal is where a grant is a fact. This is a copy of it that is made when the fact is
//! seen, and again whenever its session is opened: rules are a set, so twice is once. A row that
//! was forgotten stays, because otherwise its session would bring it back.

pub(crate) mod unkept;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use locum_kernel::{Digest, Grant, Rule, Session, ToolSpec};
use locum_runtime::rules;
use locum_tools::own;
use serde::{Deserialize, Serialize};

use crate::complaint::Complaint;
use crate::print;
use crate::rule;

/// The rules kept for a folder, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) file: PathBuf,
    rows: Vec<(Rule, Row)>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    workspace: String,
    #[serde(default)]
    rules: Vec<Row>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    rule: String,
    /// Who allowed it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) by: String,
    /// The session and the fact it comes from; a row that a person wrote has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) from: String,
    /// What the tool said of itself then: it was granted to that, and to nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    #[serde(default, skip_serializing_if = "is_not")]
    forgotten: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_not(word: &bool) -> bool {
    !word
}

/// Above it, for whoever opens the file.
const HEAD: &str = "# What may be done in this folder without asking, because somebody said so with
# the scope `project`. The words are those of `rules` in config.toml.
# See: locum rules list; take one back: locum rules forget N\n\n";

/// A folder's own name, for people, and a digest of its path, for two of one name.
pub(crate) fn file(data: &Path, workspace: &Path) -> PathBuf {
    let digest = Digest::of_bytes(workspace.as_os_str().as_encoded_bytes());
    let name = workspace.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).take(40).collect();
    let digest = digest.as_str().get(..16).unwrap_or_default();
    data.join(FOLDER).join(format!("{name}-{digest}.toml"))
}

const FOLDER: &str = "rules";

pub(crate) fn read(data: &Path, workspace: &Path) -> Result<Kept, Complaint> {
    let file = file(data, workspace);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Kept { file, rows: Vec::new() });
        }
        Err(error) => return Err(Complaint::config_unread(&file, &error)),
    };
    parse(file, &text)
}

/// A rule that cannot be read may be one that forbids, so it is not passed over.
fn parse(file: PathBuf, text: &str) -> Result<Kept, Complaint> {
    let page: Page = toml::from_str(text).map_err(|error| {
        let before = text.get(..error.span().unwrap_or_default().start).unwrap_or_default();
        let line = before.split('\n').count();
        let cause = format!("{}:{line}: {}", file.display(), error.message());
        Complaint::config(&file, line, cause)
    })?;
    let mut rows = Vec::new();
    for row in page.rules {
        let rule = rules::parse(&row.rule).map_err(|wrong| {
            let is_it = |line: &str| line.starts_with("rule") && line.contains(&row.rule);
            let line = text.lines().position(is_it).map_or(1, |at| at + 1);
            let (path, said, column) = (file.display(), &row.rule, wrong.column);
            let cause = format!("{path}:{line}: {said:?}, column {column}: {wrong}");
            Complaint::config(&file, line, cause)
        })?;
        rows.push((rule, row));
    }
    Ok(Kept { file, rows })
}

impl Kept {
    /// Those that hold; `None` for tools that nobody knows yet, whose rules hold until somebody
    /// does.
    pub(crate) fn in_force(&self, tools: Option<&[ToolSpec]>) -> Vec<(&Rule, &Row)> {
        let holds = |(rule, row): &&(Rule, Row)| !row.forgotten && is_same(rule, row, tools);
        self.rows.iter().filter(holds).map(|(rule, row)| (rule, row)).collect()
    }

    /// The file, if the rule is written there.
    pub(crate) fn place_of(&self, rule: &Rule) -> Option<String> {
        let is_here = self.rows.iter().any(|(other, row)| other == rule && !row.forgotten);
        is_here.then(|| self.file.display().to_string())
    }

    /// Takes a rule back, wherever it came from.
    pub(crate) fn forget(data: &Path, workspace: &Path, rule: &Rule) -> Result<(), Complaint> {
        change(data, workspace, |rows| {
            for (_, row) in rows.iter_mut().filter(|(other, _)| other == rule) {
                row.forgotten = true;
            }
        })
    }
}

/// Whether the tool is still what it said it was when it was allowed.
fn is_same(rule: &Rule, row: &Row, tools: Option<&[ToolSpec]>) -> bool {
    let Some(tools) = tools else { return true };
    let tool = tools.iter().find(|tool| tool.name == rule.tool);
    tool.is_none_or(|tool| row.identity.is_none() || tool.identity == row.identity)
}

/// What holds in a workspace, with what this session was granted and nobody kept yet.
pub(crate) fn here(data: &Path, session: &Session, workspace: &Path) -> Result<Kept, Complaint> {
    keep(data, session);
    read(data, workspace)
}

/// Keeps what a session was granted for the project and that is not kept yet. What cannot be kept
/// holds in the session all the same, and is told.
pub(crate) fn keep(data: &Path, session: &Session) {
    let grants: Vec<&Grant> = session.grants().filter(|grant| !grant.rules.is_empty()).collect();
    if grants.is_empty() || session.workspace().is_empty() {
        return;
    }
    let rows = |grant: &Grant| made_of(session.key(), grant, session.tool(&grant.tool));
    let rows: Vec<(Rule, Row)> = grants.into_iter().flat_map(rows).collect();
    add(data, Path::new(session.workspace()), &rows);
}

/// The same for one grant as it is told.
pub(crate) fn keep_one(data: &Path, workspace: &Path, key: &str, tools: &[ToolSpec], it: &Grant) {
    let tool = tools.iter().find(|tool| tool.name == it.tool);
    add(data, workspace, &made_of(key, it, tool));
}

fn made_of(key: &str, grant: &Grant, tool: Option<&ToolSpec>) -> Vec<(Rule, Row)> {
    let row = |rule: &Rule| Row {
        rule: rule::written(rule),
        by: grant.by.to_string(),
        from: format!("{key} {}", grant.id),
        identity: tool.and_then(|tool| tool.identity.clone()),
        forgotten: false,
    };
    let said = |(rule, row): &(Rule, Row)| rules::parse(&row.rule).as_ref() == Ok(rule);
    grant.rules.iter().map(|rule| (rule.clone(), row(rule))).filter(said).collect()
}

fn add(data: &Path, workspace: &Path, new: &[(Rule, Row)]) {
    if new.is_empty() {
        return;
    }
    // Most often there is nothing new, which is seen without a lock.
    let known = |rows: &[(Rule, Row)], row: &Row| {
        rows.iter().any(|(_, it)| it.rule == row.rule && it.from == row.from)
    };
    let is_there = |kept: &Kept| new.iter().all(|(_, row)| known(&kept.rows, row));
    if read(data, workspace).is_ok_and(|kept| is_there(&kept)) {
        return;
    }
    let kept = change(data, workspace, |rows| {
        for (rule, row) in new {
            if !known(rows, row) {
                rows.push((rule.clone(), row.clone()));
            }
        }
    });
    if let Err(why) = kept {
        print::note(&format!("note: a rule holds in this session only: {}", why.cause.trim_end()));
    }
}

/// Reads, changes and replaces the file whole, one process at a time.
fn change(
    data: &Path,
    workspace: &Path,
    edit: impl FnOnce(&mut Vec<(Rule, Row)>),
) -> Result<(), Complaint> {
    let folder = data.join(FOLDER);
    let failed = |error: io::Error| Complaint::unkept(&folder, &error);
    let _lock = own::lock(&folder.join("lock")).map_err(failed)?;
    let mut kept = read(data, workspace)?;
    edit(&mut kept.rows);
    let rules = kept.rows.into_iter().map(|(_, row)| row).collect();
    let page = Page { workspace: workspace.display().to_string(), rules };
    let text = toml::to_string(&page).map_err(|error| failed(io::Error::other(error)))?;
    own::replace(&kept.file, format!("{HEAD}{text}").as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_are_read() {
        let cases = [
            r#"allow exec "cargo test""#,
            r#"allow exec "echo "a" 'b' \ c""#,
            "allow exec \"make\nmake install\"",
            r#"allow write "a.txt" agent=b"#,
            r"allow web_fetch",
        ];
        let page = Page {
            workspace: "/a".into(),
            rules: cases
                .map(|rule| Row {
                    rule: rule.into(),
                    by: String::new(),
                    from: String::new(),
                    identity: None,
                    forgotten: false,
                })
                .into(),
        };
        let text = toml::to_string(&page).unwrap();
        let kept = parse("f.toml".into(), &text).unwrap();
        let written: Vec<String> = kept.rows.iter().map(|(rule, _)| rule::written(rule)).collect();
        assert_eq!(written, cases);
        assert!(kept.rows.iter().all(|(rule, row)| rules::parse(&row.rule).as_ref() == Ok(rule)));
    }

    #[test]
    fn what_cannot_be_read_is_told_with_its_line() {
        let cases = [
            ("workspace = \"/a\"\n[[rules]]\nrule = 5\n", "f.toml:3: "),
            ("workspace = \"/a\"\n[[rules]]\nrule = 'permit x'\n", "f.toml:3: \"permit x\""),
            ("workspace = \"/a\"\n[[rules]]\nrule = 'deny x'\nhow = 1\n", "f.toml:4: "),
            ("[[rules]\n", "f.toml:1: "),
        ];
        for (text, expected) in cases {
            let told = parse("f.toml".into(), text).unwrap_err();
            assert!(told.cause.starts_with(expected), "{text:?}: {}", told.cause);
            assert_eq!(told.exit, 2);
        }
    }
}
