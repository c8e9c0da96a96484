//! A page of notes in the person's editor, and back. What was typed is never lost: a page that
//! cannot be taken in stays where it is, and its place is told.

use std::env;
use std::fs;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::{self, Command};

use locum_memory::{Base, render};

use super::complain::{self, told};
use super::{Desk, bounded, by_person, show_json};
use crate::complaint::Complaint;
use crate::print;
use crate::text;

impl Desk<'_> {
    pub(super) fn edit(&self) -> Result<(), Complaint> {
        let scope = self.scope()?;
        let editor = editor()?;
        let notes = self.notes(&scope)?;
        // In the data folder, which nobody else reads.
        let file = self.folder.join(format!("MEMORY-{}.md", process::id()));
        let page = render(&scope, &notes);
        let failed = |error| complain::page_file(&file, &error);
        fs::write(&file, &page).map_err(failed)?;
        let ended = open(&editor, &file);
        let edited = fs::File::open(&file).and_then(bounded).map_err(failed)?;
        if let Err(why) = ended {
            if edited == page {
                // Nothing was typed, so there is nothing to keep.
                let _ = fs::remove_file(&file);
            }
            return Err(complain::editor(&editor, why));
        }
        self.take_back(Some(&Base::of(&notes)), &edited, &file)?;
        let _ = fs::remove_file(&file);
        Ok(())
    }

    pub(super) fn take_back(
        &self,
        base: Option<&Base>,
        page: &str,
        file: &Path,
    ) -> Result<(), Complaint> {
        let scope = self.scope()?;
        let changes = self.memory.take_back(&self.reader, &scope, base, page, &by_person());
        let changes = changes.map_err(|error| {
            let in_page = matches!(error, locum_memory::Error::InPage { .. });
            if in_page { complain::page(file, &error) } else { told(&error) }
        })?;
        let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
        if self.flags.json {
            show_json(&lines.into());
        } else if lines.is_empty() {
            print::line("nothing was changed");
        } else {
            print::line(&text::clean(&lines.join("\n")));
        }
        Ok(())
    }
}

/// What the person says, or what every system has if there is somebody to use it.
fn editor() -> Result<String, Complaint> {
    let set = |name| env::var(name).ok().filter(|value| !value.trim().is_empty());
    if let Some(editor) = set("VISUAL").or_else(|| set("EDITOR")) {
        return Ok(editor);
    }
    let is_there = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if is_there { Ok("vi".to_owned()) } else { Err(complain::no_editor()) }
}

/// Through a shell: an editor is often named with flags.
fn open(editor: &str, file: &Path) -> Result<(), String> {
    let mut command = if cfg!(windows) {
        let mut command = Command::new("cmd");
        command.arg("/C").arg(editor).arg(file);
        command
    } else {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file);
        command
    };
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("It ended with {status}; nothing was taken in.")),
        Err(error) => Err(error.to_string()),
    }
}
