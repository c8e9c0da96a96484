//! `locum memory`: what agents and people want remembered, listed, searched and edited by people.
//! It works beside a locum that runs.

mod complain;
mod edit;

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use locum_kernel::Time;
use locum_memory::{Id, Memory, Note, Provenance, Reader, Saved, Scope, render};
use locum_runtime::clock::{Clock as _, System, rfc3339};
use serde_json::{Value, json};

use crate::complaint::Complaint;
use crate::flags::{self, MemoryAct, Whose};
use crate::text;
use crate::{data, print};
use complain::told;

/// More than a page to be taken in has with every note as long as it may be, and still bounded.
const PAGE_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Who asks for what, with the memory open.
struct Desk<'a> {
    flags: &'a flags::Memory,
    memory: Memory,
    reader: Reader,
    workspace: String,
    folder: std::path::PathBuf,
}

pub(crate) fn obey(flags: &flags::Memory, data: Option<&Path>) -> Result<u8, Complaint> {
    let desk = Desk::open(flags, data)?;
    let list = MemoryAct::List { limit: 100, after: None };
    match flags.act.as_ref().unwrap_or(&list) {
        MemoryAct::List { limit, after } => desk.list(*limit, *after)?,
        MemoryAct::Search { text, limit } => desk.search(text, *limit)?,
        MemoryAct::Show { id } => desk.show(*id)?,
        MemoryAct::Save { text } => desk.save(text)?,
        MemoryAct::Forget { ids } => desk.forget(ids)?,
        MemoryAct::Edit => desk.edit()?,
        MemoryAct::Export { output } => desk.export(output.as_deref())?,
        MemoryAct::Import { file } => desk.import(file)?,
    }
    Ok(0)
}

impl Desk<'_> {
    fn open<'a>(flags: &'a flags::Memory, data: Option<&Path>) -> Result<Desk<'a>, Complaint> {
        let here = flags.workspace.as_deref().unwrap_or(Path::new("."));
        let root = here.canonicalize().map_err(|error| Complaint::workspace(here, &error))?;
        let workspace = root.to_string_lossy().into_owned();
        let folder = data::folder(data)?;
        let memory = Memory::open(&folder).map_err(|error| told(&error))?;
        let reader = Reader { workspace: Some(workspace.clone()), agent: flags.agent.clone() };
        Ok(Desk { flags, memory, reader, workspace, folder })
    }

    fn scope_of(&self, whose: Whose) -> Result<Scope, Complaint> {
        let workspace = self.workspace.clone();
        match (whose, &self.flags.agent) {
            (Whose::User, _) => Ok(Scope::User),
            (Whose::Workspace, _) => Ok(Scope::Workspace { path: workspace }),
            (Whose::Agent, Some(name)) => Ok(Scope::Agent { name: name.clone(), workspace }),
            (Whose::Agent, None) => Err(complain::no_agent()),
        }
    }

    /// The one scope that is written to.
    fn scope(&self) -> Result<Scope, Complaint> {
        self.scope_of(self.flags.scope.unwrap_or(Whose::Workspace))
    }

    /// Those that are read.
    fn scopes(&self) -> Result<Vec<Scope>, Complaint> {
        match self.flags.scope {
            Some(whose) => Ok(vec![self.scope_of(whose)?]),
            None => Ok(self.reader.scopes()),
        }
    }

    fn list(&self, limit: usize, after: Option<Id>) -> Result<(), Complaint> {
        let mut notes = Vec::new();
        for scope in self.scopes()? {
            let found = self.memory.list(&self.reader, &scope, after, limit.saturating_add(1));
            let mut found = found.map_err(|error| told(&error))?;
            if found.len() > limit {
                found.truncate(limit);
                let last = found.last().map_or_else(String::new, |note| note.id.to_string());
                print::note(&format!("more in {scope}; do: locum memory list --after {last}"));
            }
            notes.extend(found);
        }
        if self.flags.json {
            show_json(&notes.iter().map(to_json).collect::<Vec<_>>().into());
        } else if notes.is_empty() {
            print::line("nothing is remembered here");
        } else {
            let head = ["ID", "FOR", "UPDATED (UTC)", "BY", "TEXT"];
            let rows = notes.iter().map(|note| self.row(note, &note.text));
            print::line(&text::table(&head, &rows.collect::<Vec<_>>()));
        }
        Ok(())
    }

    fn search(&self, question: &str, limit: usize) -> Result<(), Complaint> {
        let found = self.memory.search(&self.reader, question, limit);
        let mut found = found.map_err(|error| told(&error))?;
        if self.flags.scope.is_some() {
            let scopes = self.scopes()?;
            found.retain(|one| scopes.contains(&one.note.scope));
        }
        if self.flags.json {
            let each = found.iter().map(|one| {
                let mut value = to_json(&one.note);
                value["snippet"] = one.snippet.clone().into();
                value["score"] = one.score.into();
                value
            });
            show_json(&each.collect::<Vec<_>>().into());
        } else if found.is_empty() {
            print::line("nothing found");
        } else {
            let head = ["ID", "FOR", "UPDATED (UTC)", "BY", "TEXT"];
            let rows = found.iter().map(|one| self.row(&one.note, &one.snippet));
            print::line(&text::table(&head, &rows.collect::<Vec<_>>()));
        }
        Ok(())
    }

    fn row(&self, note: &Note, shown: &str) -> Vec<String> {
        let whose = match &note.scope {
            Scope::User => "user".to_owned(),
            Scope::Workspace { .. } => "folder".to_owned(),
            Scope::Agent { name, .. } => text::row(name, 30),
        };
        vec![
            note.id.to_string(),
            whose,
            text::moment(Time(note.updated_at)),
            note.provenance.source.word().to_owned(),
            text::row(shown, if self.flags.json { usize::MAX } else { 100 }),
        ]
    }

    fn show(&self, id: Id) -> Result<(), Complaint> {
        let note = self.memory.get(&self.reader, id).map_err(|error| told(&error))?;
        if self.flags.json {
            show_json(&to_json(&note));
            return Ok(());
        }
        let from = &note.provenance;
        let mut lines = vec![
            format!("note     {}", note.id),
            format!("for      {}", text::row(&note.scope.to_string(), 200)),
            format!("by       {}, {} UTC", from.source.word(), text::moment(Time(from.at))),
        ];
        let agent = from.agent.as_ref().map(|agent| format!("agent    {}", text::row(agent, 200)));
        let session = from.session.as_ref();
        let session = session.map(|session| format!("session  {}", text::row(session, 200)));
        lines.extend(agent.into_iter().chain(session));
        lines.push(format!("updated  {} UTC", text::moment(Time(note.updated_at))));
        lines.push(String::new());
        lines.push(text::clean(&note.text));
        print::line(&lines.join("\n"));
        Ok(())
    }

    fn save(&self, words: &str) -> Result<(), Complaint> {
        let read = if words == "-" { Some(stdin()?) } else { None };
        let words = read.as_deref().unwrap_or(words);
        let scope = self.scope()?;
        let saved = self.memory.save(&self.reader, &scope, words, &by_person());
        let saved = saved.map_err(|error| told(&error))?;
        if self.flags.json {
            let mut value = to_json(saved.note());
            value["new"] = matches!(saved, Saved::New(_)).into();
            show_json(&value);
            return Ok(());
        }
        let scope = text::row(&scope.to_string(), 200);
        print::line(&match &saved {
            Saved::New(note) => format!("{} kept for {scope}", note.id),
            Saved::Again(note) => format!("{} says so already for {scope}", note.id),
        });
        Ok(())
    }

    fn forget(&self, ids: &[Id]) -> Result<(), Complaint> {
        let mut gone = Vec::new();
        for id in ids {
            let note = self.memory.forget(&self.reader, *id).map_err(|error| told(&error))?;
            if !self.flags.json {
                print::line(&format!("{id} forgotten: {}", text::row(&note.text, 80)));
            }
            gone.push(to_json(&note));
        }
        if self.flags.json {
            show_json(&gone.into());
        }
        Ok(())
    }

    fn notes(&self, scope: &Scope) -> Result<Vec<Note>, Complaint> {
        let notes = self.memory.list(&self.reader, scope, None, usize::MAX);
        notes.map_err(|error| told(&error))
    }

    fn export(&self, output: Option<&Path>) -> Result<(), Complaint> {
        let scope = self.scope()?;
        let notes = self.notes(&scope)?;
        let page = if self.flags.json {
            text::json(&notes.iter().map(to_json).collect::<Vec<_>>().into())
        } else {
            render(&scope, &notes)
        };
        match output {
            Some(file) => {
                let written = fs::write(file, &page);
                written.map_err(|error| complain::page_file(file, &error))?;
                print::note(&format!("{} notes in {}", notes.len(), file.display()));
            }
            // What is piped into a file comes back as it is; a terminal obeys none of it.
            None => print::line(text::clean(&page).trim_end()),
        }
        Ok(())
    }

    fn import(&self, file: &Path) -> Result<(), Complaint> {
        let page = if file == Path::new("-") {
            stdin()?
        } else {
            let read = fs::File::open(file).and_then(bounded);
            read.map_err(|error| complain::page_file(file, &error))?
        };
        self.take_back(None, &page, file)
    }
}

/// As far as a page can go; one that is longer is not one.
fn bounded(reader: impl io::Read) -> io::Result<String> {
    let mut text = String::new();
    let read = reader.take(PAGE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if u64::try_from(read).is_ok_and(|read| read <= PAGE_BYTES_MAX) {
        return Ok(text);
    }
    Err(io::Error::other("it is far too long"))
}

fn stdin() -> Result<String, Complaint> {
    bounded(io::stdin()).map_err(|error| Complaint {
        next: "locum memory --help".into(),
        ..Complaint::stdin(&error)
    })
}

fn by_person() -> Provenance {
    Provenance::person(System.now().0)
}

fn show_json(value: &Value) {
    print::line(&text::json(value));
}

fn to_json(note: &Note) -> Value {
    let from = &note.provenance;
    json!({
        "id": note.id,
        "text": note.text,
        "scope": note.scope,
        "source": from.source,
        "at": rfc3339(Time(from.at)),
        "session": from.session,
        "agent": from.agent,
        "updated": rfc3339(Time(note.updated_at)),
    })
}
