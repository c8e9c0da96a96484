//! `locum definitions`: what was found and where, what hides what, what was left out and why; and
//! all of one.

use std::path::Path;

use locum_definitions::{Found, Library, NotFound};
use locum_tools::Place;
use serde_json::{Value, json};

use crate::check::{line, object};
use crate::complaint::{Complaint, USAGE};
use crate::config;
use crate::data;
use crate::data::Places;
use crate::flags::Definitions;
use crate::library::{is_on, library};
use crate::print;
use crate::reading;
use crate::text::{self, clean, quote, row, table};
use crate::trust::{self, Trust};
use crate::workshop;

mod one;

/// What is known of the folder and the person when one looks.
struct Sight {
    library: Library,
    settings: config::Config,
    trust: Trust,
    workspace: String,
    place: Place,
}

pub(crate) fn obey(flags: &Definitions, places: &Places<'_>) -> Result<u8, Complaint> {
    let named = flags.workspace.as_deref().unwrap_or(Path::new("."));
    let root = named.canonicalize().map_err(|error| Complaint::workspace(named, &error))?;
    std::fs::read_dir(&root).map_err(|error| Complaint::workspace(named, &error))?;
    let settings = config::read(places.config)?;
    settings.warn();
    let data = data::place(places.data)?;
    let place = workshop::place("definitions", &root, &data, places.config);
    let trust = trust::quietly(&root, &data, flags.trust.into())?;
    let mut library = library(&place, &settings, &trust);
    reading::all(&mut library, &place, &settings);
    let workspace = root.display().to_string();
    let sight = Sight { library, settings, trust, workspace, place };
    if let Some(name) = &flags.name {
        return sight.one(name, flags);
    }
    sight.all(flags);
    Ok(0)
}

impl Sight {
    /// Why there may be more than is seen.
    fn untrusted(&self) -> Option<String> {
        let folder = quote(&self.workspace);
        self.trust.root().is_none().then(|| {
            format!(
                "{} is not trusted, so what it defines is not read; do: locum trust {folder}",
                clean(&self.workspace)
            )
        })
    }

    fn all(&self, flags: &Definitions) {
        if flags.json {
            print::line(&text::json(&self.json()));
            return;
        }
        let Library { found, skipped, problems, looked_in, .. } = &self.library;
        let rows: Vec<Vec<String>> = found.iter().map(|it| self.row(it)).collect();
        print::line(&table(&["name", "kind", "from", "about"], &rows));
        let hidden = found.iter().filter_map(|it| Some((it, it.shadowed_by.as_ref()?)));
        section(
            "hidden by another of the same name",
            hidden.map(|(it, by)| {
                format!(
                    "{} {}: {} comes before {}",
                    it.kind.word(),
                    it.name,
                    by.display(),
                    it.origin.file.display()
                )
            }),
        );
        let off = found.iter().filter(|it| !is_on(it, &self.settings));
        section(
            "off until named in config.toml, as enable = [\"NAME\"]",
            off.map(|it| it.name.clone()),
        );
        let told = skipped.iter().flat_map(|it| &it.problems).chain(problems);
        section("left out", told.map(line));
        let told = found.iter().flat_map(|it| &it.problems);
        section("warnings", told.map(line));
        let there = looked_in.iter().filter(|(_, there)| *there);
        section("looked in", there.map(|(folder, _)| folder.display().to_string()));
        let absent = looked_in.iter().filter(|(_, there)| !there).count();
        print::line(&format!("  and for {absent} folders that are not there (--json names them)"));
        if let Some(why) = self.untrusted() {
            print::line(&why);
        }
    }

    fn row(&self, found: &Found) -> Vec<String> {
        const ABOUT: usize = 60;
        // One long name must not push everything else off the screen.
        const NAME: usize = 40;
        let from = format!("{} {}", found.origin.scope.word(), found.origin.file.display());
        let about = found.title.as_ref().filter(|_| found.about.is_empty()).unwrap_or(&found.about);
        let mark = if found.shadowed_by.is_some() {
            " (hidden)"
        } else if is_on(found, &self.settings) {
            ""
        } else {
            " (off)"
        };
        let name = row(&found.name, NAME);
        vec![format!("{name}{mark}"), found.kind.word().to_owned(), clean(&from), row(about, ABOUT)]
    }

    fn json(&self) -> Value {
        let Library { found, skipped, problems, looked_in, .. } = &self.library;
        let found: Vec<Value> = found.iter().map(|it| self.brief(it)).collect();
        let skipped: Vec<Value> = skipped
            .iter()
            .map(|it| {
                json!({
                    "file": it.file.display().to_string(),
                    "kind": it.kind,
                    "scope": it.scope,
                    "problems": it.problems.iter().map(object).collect::<Vec<_>>(),
                })
            })
            .collect();
        let looked_in: Vec<Value> = looked_in
            .iter()
            .map(
                |(folder, there)| json!({ "folder": folder.display().to_string(), "there": there }),
            )
            .collect();
        json!({
            "workspace": self.workspace,
            "trusted": self.trust.root().is_some(),
            "found": found,
            "skipped": skipped,
            "problems": problems.iter().map(object).collect::<Vec<_>>(),
            "looked_in": looked_in,
        })
    }

    fn brief(&self, it: &Found) -> Value {
        json!({
            "name": it.name,
            "kind": it.kind,
            "scope": it.origin.scope,
            "file": it.origin.file.display().to_string(),
            "title": it.title,
            "about": it.about,
            "aliases": it.aliases,
            "opt_in": it.opt_in,
            "chat_types": it.chat_types,
            "on": is_on(it, &self.settings),
            "shadowed_by": it.shadowed_by.as_ref().map(|file| file.display().to_string()),
            "problems": it.problems.iter().map(object).collect::<Vec<_>>(),
        })
    }

    fn not_found(&self, missing: &NotFound) -> Complaint {
        let mut cause = Vec::new();
        let near = missing.near.iter().map(|(name, from)| format!("{name} ({})", from.display()));
        let near: Vec<String> = near.collect();
        if !near.is_empty() {
            cause.push(format!("near: {}", near.join(", ")));
        }
        cause.extend(missing.skipped.iter().map(|problem| format!("left out: {}", line(problem))));
        let folders = missing.looked_in.iter().map(|folder| folder.display().to_string());
        let folders: Vec<String> = folders.collect();
        cause.push(format!("looked in: {}, and in the program", folders.join(", ")));
        cause.extend(self.untrusted());
        Complaint {
            code: "E120",
            what: format!("There is no recipe, skill or agent {:?}.", clean(&missing.wanted)),
            cause: clean(&cause.join("\n")),
            next: match missing.near.first() {
                Some((name, _)) => format!("locum definitions {}", quote(name)),
                None => "locum definitions".into(),
            },
            exit: USAGE,
        }
    }
}

/// A heading with rows below it, if there are any.
fn section(heading: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<String> = rows.collect();
    if !rows.is_empty() {
        print::line(&format!("\n{heading}:"));
    }
    for row in rows {
        print::line(&format!("  {}", clean(&row).replace('\n', " ")));
    }
}
