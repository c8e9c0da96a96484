//! Whom a message from another terminal is for. Whoever drives the session decides that again with
//! all it knows; where nobody does, what is known here must do: those who live in the session and
//! the definitions of its folder, if that is trusted.

use std::path::Path;

use locum_kernel::{Known, Message, Refusal, Session, To, addressed, meant, state_word};
use locum_runtime::clock::{Clock as _, System};

use crate::address;
use crate::complaint::Complaint;
use crate::config;
use crate::data::Places;
use crate::librarian::near;
use crate::library::library;
use crate::text::quote;
use crate::trust::{self, Said, Trust};
use crate::workshop;

/// A message on its way.
pub(crate) struct Addressed {
    pub(crate) message: Message,
    /// What is wrong with it, unless whoever drives the session knows better: the names of a
    /// script, or of a folder that is trusted for one run.
    pub(crate) doubt: Option<Complaint>,
}

pub(crate) fn of(
    session: &Session,
    message: Message,
    data: &Path,
    places: &Places<'_>,
) -> Result<Addressed, Complaint> {
    let defined = |name: &str| defined(session, name, data, places);
    let (name, doubt) = match meant(session, message.clone(), System.now(), defined) {
        Ok(meant) => match outlived(session, &message, &meant, data) {
            Some(doubt) => doubt,
            None => return Ok(Addressed { message: meant, doubt: None }),
        },
        Err(why) => {
            let doubt = address::not_meant(session.key(), &why);
            let Refusal::Nobody { name, .. } = why else { return Err(doubt) };
            let workspace = Path::new(session.workspace());
            (name, unread(doubt, workspace, data, Said::Nothing))
        }
    };
    // Nobody has vouched for the name, so it goes as words: no session keeps it for later.
    let text = Message { to: To::Name(name.clone()), ..message.clone() }.words();
    let text = if message.to == To::Floor { message.text.clone() } else { text };
    if addressed(&text).is_none_or(|(said, _)| said != name) {
        return Err(doubt);
    }
    Ok(Addressed { message: Message { to: To::Floor, text, ..message }, doubt: Some(doubt) })
}

/// Whether a name means somebody who has ended only because the definition they were made from is
/// not read here: what could be started goes before who was.
fn outlived(
    session: &Session,
    said: &Message,
    meant: &Message,
    data: &Path,
) -> Option<(String, Complaint)> {
    let To::Agent(id) = meant.to else { return None };
    let agent = session.agent(id).filter(|agent| agent.has_ended())?;
    let name = match &said.to {
        To::Name(name) => name.as_str(),
        To::Floor => addressed(&said.text)?.0,
        To::Main | To::Agent(_) => return None,
    };
    if name.contains('/') || name == id.to_string() {
        return None;
    }
    let workspace = Path::new(session.workspace());
    trust::unread(workspace, data, Said::Nothing)?;
    let nobody = Refusal::Nobody { name: name.to_owned(), near: Vec::new() };
    let nobody = address::not_meant(session.key(), &nobody);
    let cause = format!("{id} had the name and has ended ({}).", state_word(session, agent).word());
    let doubt = unread(Complaint { cause, ..nobody }, workspace, data, Said::Nothing);
    Some((name.to_owned(), doubt))
}

/// A name for nobody may be that of a definition which is not read: whoever is told that there is
/// none is told that too. Nothing is read for it.
pub(crate) fn unread(nobody: Complaint, folder: &Path, data: &Path, said: Said) -> Complaint {
    if nobody.code != address::UNKNOWN {
        return nobody;
    }
    let Some((root, has)) = trust::unread(folder, data, said) else { return nobody };
    let Complaint { cause, next, .. } = &nobody;
    Complaint {
        cause: format!("{cause}\nNot read, because this folder is not trusted: {has}."),
        next: format!("locum trust {}\ndo: {next}", quote(&root.display().to_string())),
        ..nobody
    }
}

/// Nobody is asked here, so what is not trusted is not read.
fn defined(session: &Session, name: &str, data: &Path, places: &Places<'_>) -> Known {
    let workspace = Path::new(session.workspace());
    let trust = trust::quietly(workspace, data, Said::Nothing).unwrap_or(Trust::No);
    let settings = config::read(places.config).unwrap_or_default();
    let place = workshop::place(session.key(), workspace, data, places.config);
    let files = library(&place, &settings, &trust);
    match files.named(name) {
        Ok(_) => Known::Yes,
        Err(missing) if !missing.skipped.is_empty() => Known::Not(missing.to_string()),
        Err(_) => Known::No(near(&files, name)),
    }
}
