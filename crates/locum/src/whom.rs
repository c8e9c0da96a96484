//! Whom a message from another terminal is for. Whoever drives the session decides that again with
//! all it knows; where nobody does, what is known here must do: those who live in the session and
//! the definitions of its folder, if that is trusted.

use std::path::Path;

use locum_kernel::{Known, Message, Refusal, Session, To, addressed, meant};
use locum_runtime::clock::{Clock as _, System};

use crate::address;
use crate::complaint::Complaint;
use crate::config;
use crate::data::Places;
use crate::librarian::near;
use crate::library::library;
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
    match meant(session, message.clone(), System.now(), defined) {
        Ok(message) => Ok(Addressed { message, doubt: None }),
        Err(why) => {
            let doubt = address::not_meant(session.key(), &why);
            let Refusal::Nobody { name, .. } = why else { return Err(doubt) };
            // Nobody has vouched for the name, so it goes as words: no session keeps it for later.
            let text = Message { to: To::Name(name.clone()), ..message.clone() }.words();
            let text = if message.to == To::Floor { message.text.clone() } else { text };
            if addressed(&text).is_none_or(|(said, _)| said != name) {
                return Err(doubt);
            }
            Ok(Addressed {
                message: Message { to: To::Floor, text, ..message },
                doubt: Some(doubt),
            })
        }
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
        Err(_) => Known::No(near(&files, name)),
    }
}
