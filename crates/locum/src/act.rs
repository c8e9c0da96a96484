//! What people do from another terminal: say, allow, deny, answer, cancel, continue, and change
//! what waits in the queue. Each is one input of a session, safe when the command returns.

use std::path::Path;

use locum_kernel::{
    Ask, AskKind, Command, Grant, Input, InputId, Message, Scope, Session, To, Urgency, Verdict,
    view,
};
use locum_runtime::answer;
use locum_runtime::clock::{Clock as _, System};

use crate::address;
use crate::complaint::{Complaint, USAGE};
use crate::data;
use crate::data::{Places, fresh_key};
use crate::flags::act::{Act, Requeue, Send};
use crate::kept::{self, unkept};
use crate::look::{Seen, Sight, next};
use crate::people::{me, message, plain, said};
use crate::print::line;
use crate::reach::{Reached, reach};
use crate::text::{clean, quote};
use crate::whom::{self, Addressed};

pub(crate) fn act(act: &Act, places: &Places<'_>) -> Result<u8, Complaint> {
    let folder = data::folder(places.data)?;
    match act {
        Act::Send(send) => say(&folder, send, places),
        Act::Approve(it) => {
            let scope = it.scope.into();
            settle(&folder, it.session.key.as_deref(), &it.ids, &|ask| allow(ask, scope))
        }
        Act::Deny(it) => settle(&folder, it.session.key.as_deref(), &it.ids, &|_| {
            answer::deny(it.message.clone())
        }),
        Act::Answer(it) => {
            let ids = std::slice::from_ref(&it.id);
            let words = |ask: &Ask| answer::words(&ask.kind, it.text.clone());
            settle(&folder, it.session.key.as_deref(), ids, &words)
        }
        Act::Cancel(it) => {
            let session = session(&folder, it.session.key.as_deref())?;
            let agent = address::agent(&session, &it.agent)?;
            let why = it.message.clone().unwrap_or_else(|| "locum cancel".into());
            let path = session.path(agent);
            command(
                &folder,
                &session,
                Command::Cancel { agent, why },
                &format!("{path} is stopped"),
            )
        }
        Act::Continue(it) => {
            let session = session(&folder, it.session.key.as_deref())?;
            let agent = address::agent(&session, &it.agent)?;
            let (text, path) = (it.text.clone(), session.path(agent));
            command(
                &folder,
                &session,
                Command::Continue { agent, text },
                &format!("{path} goes on"),
            )
        }
    }
}

/// Changes what waits in a session's queue.
pub(crate) fn requeue(
    change: &Requeue,
    key: Option<&str>,
    data: Option<&Path>,
) -> Result<(), Complaint> {
    let folder = data::folder(data)?;
    let session = session(&folder, key)?;
    let (input, told) = match change {
        Requeue::Edit { input, text } => {
            (Input::Edited { input: waiting(input)?, text: text.clone() }, "changed")
        }
        Requeue::Rm { input } => (Input::Dropped { input: waiting(input)?, by: me() }, "dropped"),
        Requeue::Move { input, before } => {
            let before = before.as_deref().map(waiting).transpose()?;
            (Input::Moved { input: waiting(input)?, before }, "moved")
        }
    };
    reach(&folder, session.key(), &input)?;
    line(told);
    Ok(())
}

fn waiting(text: &str) -> Result<InputId, Complaint> {
    let number = text.strip_prefix('i').unwrap_or(text).parse().map(InputId);
    number.map_err(|_| Complaint::usage(&format!("{text:?} is no input; locum queue lists them")))
}

fn say(folder: &Path, send: &Send, places: &Places<'_>) -> Result<u8, Complaint> {
    let (to, text) = match &send.words[..] {
        [to, text] if to.starts_with('@') => (To::Name(plain(to).to_owned()), text),
        [text] => (To::Floor, text),
        words => return Err(unquoted(folder, send, words, places)),
    };
    let session = session(folder, send.session.key.as_deref())?;
    let urgency = match (send.steer, send.interrupt) {
        (true, _) => Urgency::Steer,
        (_, true) => Urgency::Interrupt,
        (false, false) => Urgency::Queue,
    };
    // Sent again because nobody answered, it must still be one message.
    let external_id = Some(send.id.clone().unwrap_or_else(|| fresh_key("send")));
    // A name alone is enough to start somebody, with or without quotes behind it.
    let text = match &to {
        To::Name(_) if text.trim().is_empty() => Ok(String::new()),
        To::Name(_) | To::Floor | To::Main | To::Agent(_) => said(text),
    };
    let text = text.map_err(|why| Complaint { next: "locum send --help".into(), ..why })?;
    let said = Message { to, external_id, ..message(text, urgency) };
    let Addressed { message: said, doubt } = whom::of(&session, said, folder, places)?;
    // One that was received before is taken for that one.
    let reached = reach(folder, session.key(), &Input::Said(said.clone()));
    let refused = |why: Complaint| if why.exit == USAGE { doubt.unwrap_or(why) } else { why };
    let reached = reached.map_err(refused)?;
    line(&received(folder, session.key(), InputId(reached.seq().0), &said.text)?);
    go_on(&session, reached);
    Ok(0)
}

/// Two words that are no name and a text: what was probably meant, as it can be typed.
fn unquoted(folder: &Path, send: &Send, words: &[String], places: &Places<'_>) -> Complaint {
    let [first, text] = words else { return Complaint::usage("the text must be one argument") };
    let is_somebody = session(folder, send.session.key.as_deref()).is_ok_and(|session| {
        let said = Message { to: To::Name(first.clone()), ..message(text.clone(), Urgency::Queue) };
        whom::of(&session, said, folder, places).is_ok_and(|it| it.doubt.is_none())
    });
    let (cause, words) = if is_somebody {
        let cause = format!("{first:?} is somebody's name; whoever is spoken to is named with @.");
        (cause, format!("@{first} {}", quote(text)))
    } else {
        ("The text must be one argument: quote it.".into(), quote(&format!("{first} {text}")))
    };
    let key = send.session.key.as_deref();
    let key = key.map(|key| format!(" -s {}", quote(key))).unwrap_or_default();
    let next = clean(&format!("locum send {words}{key}"));
    Complaint { cause: clean(&cause), next, ..Complaint::usage("") }
}

/// A message that came right behind another of the same sender is part of it.
fn received(folder: &Path, key: &str, input: InputId, text: &str) -> Result<String, Complaint> {
    let queue = view(&session(folder, Some(key))?, System.now()).queue;
    let tail = format!("\n{text}");
    let joined = queue.iter().find(|waits| waits.input < input && waits.text.ends_with(&tail));
    Ok(match joined.filter(|_| queue.iter().all(|waits| waits.input != input)) {
        Some(waits) => format!("added to {}, which still waits", waits.input),
        None => format!("received as {input}"),
    })
}

fn allow(ask: &Ask, scope: Scope) -> Verdict {
    answer::allow(&ask.kind, scope, None)
}

/// Answers asks, each where it is.
fn settle(
    folder: &Path,
    key: Option<&str>,
    ids: &[String],
    verdict: &dyn Fn(&Ask) -> Verdict,
) -> Result<u8, Complaint> {
    for id in ids {
        let sessions = sessions(folder, key)?;
        let found = address::ask_among(&sessions, id);
        // What could be two is told as that; only a name for nobody may be one that came too late.
        let ((_, session), wanted) = found.map_err(|why| match why.code {
            address::AMBIGUOUS => why,
            _ => late(folder, key, id, why),
        })?;
        let Some(ask) = session.asks().find(|ask| ask.id == wanted) else { continue };
        let verdict = verdict(ask);
        let told = format!("{} of {} {}", ask.id, session.path(ask.agent), verdict.word());
        let digest = answer::seen(&ask.kind);
        let input = Input::Answered { ask: ask.id, verdict, by: me(), digest };
        let reached = reach(folder, session.key(), &input)?;
        line(&told);
        keep(folder, session.key(), &input, &ask.kind)?;
        go_on(session, reached);
    }
    Ok(0)
}

/// What is allowed for the project is kept when this command returns, whoever took it, and where
/// it cannot be said as a rule that is told.
fn keep(folder: &Path, key: &str, input: &Input, kind: &AskKind) -> Result<(), Complaint> {
    let Input::Answered { ask, verdict: Verdict::Allow(allow), .. } = input else { return Ok(()) };
    if allow.scope != Scope::Project {
        return Ok(());
    }
    let session = session(folder, Some(key))?;
    kept::keep(folder, &session);
    let after = |grant: &&Grant| grant.id.0 > ask.0;
    match session.grants().filter(after).last() {
        Some(grant) if grant.rules.is_empty() => {
            let why = match kind {
                AskKind::Approval(approval) => unkept::why(approval),
                AskKind::Question { .. } | AskKind::Continue { .. } | AskKind::Budget { .. } => {
                    None
                }
            };
            line(&unkept::told(&ask.to_string(), why.unwrap_or("no rule says just this")));
        }
        Some(grant) => {
            let rules: Vec<String> = grant.rules.iter().map(ToString::to_string).collect();
            line(&clean(&format!("kept for this folder: {}", rules.join(", "))));
        }
        None => {}
    }
    Ok(())
}

/// It may be unknown only because somebody else was faster.
fn late(folder: &Path, key: Option<&str>, id: &str, unknown: Complaint) -> Complaint {
    let sight = Sight::open(Some(folder));
    let told = sight.ok().and_then(|sight| sight.answered(key, id));
    told.unwrap_or(unknown)
}

fn command(
    folder: &Path,
    session: &Session,
    command: Command,
    told: &str,
) -> Result<u8, Complaint> {
    let reached = reach(folder, session.key(), &Input::Commanded { by: me(), command })?;
    line(told);
    go_on(session, reached);
    Ok(0)
}

/// A session nobody drives waits for somebody to do so.
fn go_on(session: &Session, reached: Reached) {
    match reached {
        Reached::Running(_) => {}
        Reached::Resting(_) => line(&format!("do: {}", next::resume(session.key()))),
    }
}

/// The session that is meant: the one named, or the one written last.
fn session(folder: &Path, key: Option<&str>) -> Result<Session, Complaint> {
    Sight::open(Some(folder))?.find(key).map(|(_, session)| session)
}

/// Where an ask may be open: in the session named, or in any. Ids are counted in each session.
fn sessions(folder: &Path, key: Option<&str>) -> Result<Vec<(String, Session)>, Complaint> {
    let sight = Sight::open(Some(folder))?;
    if key.is_some() {
        return Ok(vec![sight.find(key)?]);
    }
    let whole = |seen: Seen| seen.session.ok().map(|session| (seen.key, session));
    Ok(sight.all()?.into_iter().filter_map(whole).collect())
}
