//! Who brings definitions: a file is read when a call names what is in it, and what can be named
//! is told anew when that changes. Nothing is watched; whoever has something to say looks first.

use std::fmt::Debug;
use std::sync::Arc;

use locum_kernel::{
    Command, Definition, Input, Made, Message, Offer, Reply, Session, Sub, Time, To, Wanted, Who,
    wanted,
};

/// The definitions of a session.
pub trait Library: Debug + Send + Sync {
    /// What can be brought, if it is not what it was when this was last asked. Cheap if it is.
    fn news(&self, now: Time) -> Option<Vec<Offer>>;

    /// The definition a person names with `@name`, if there is one, or why it cannot be started.
    fn summon(&self, name: &str) -> Option<Result<Definition, String>>;

    /// The definition a call names, made for this call, or why it cannot be. `subs` are those
    /// that only the caller may use. `None`: nothing of that name is here, and the session's own
    /// names are meant.
    fn bring(&self, wanted: &Wanted, subs: &[Sub]) -> Option<Result<Definition, String>>;
}

/// Brings what the calls of a reply name. Files are read, so not on the thread that drives.
pub(crate) async fn furnish(library: Arc<dyn Library>, subs: Vec<Sub>, mut reply: Reply) -> Reply {
    let named: Vec<(usize, Wanted)> =
        reply.calls.iter().enumerate().filter_map(|(at, call)| Some((at, wanted(call)?))).collect();
    if named.is_empty() {
        return reply;
    }
    let look = move || {
        let bring = |(at, wanted): (usize, Wanted)| Some((at, library.bring(&wanted, &subs)?));
        named.into_iter().filter_map(bring).collect::<Vec<_>>()
    };
    let brought = tokio::task::spawn_blocking(look).await.unwrap_or_default();
    for (at, made) in brought {
        let Some(call) = reply.calls.get_mut(at) else { continue };
        call.made = Some(match made {
            Ok(definition) => {
                let digest = definition.digest();
                reply.brings.push(definition);
                Made::Of(digest)
            }
            Err(why) => Made::Not(why),
        });
    }
    reply
}

/// `@name text` for somebody who is not there yet starts them. What a channel must not deliver
/// twice stays a message; so does a name that means nobody.
pub(crate) fn started(library: &dyn Library, session: &Session, input: Input) -> Input {
    let Input::Said(message) = &input else { return input };
    let Some((name, text)) = addressed(message) else { return input };
    let is_there = |agent: &locum_kernel::Agent| agent.label() == name && !agent.has_ended();
    if session.agents().iter().any(is_there) {
        return input;
    }
    match library.summon(name) {
        Some(Ok(definition)) => {
            let (definition, text) = (Box::new(definition), text.to_owned());
            let by = Who::Person(message.sender.clone());
            Input::Commanded { by, command: Command::Start { definition, text } }
        }
        Some(Err(_)) | None => input,
    }
}

fn addressed(message: &Message) -> Option<(&str, &str)> {
    if message.to != To::Floor || message.external_id.is_some() {
        return None;
    }
    let rest = message.text.trim_start().strip_prefix('@')?;
    let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    (!name.is_empty()).then_some((name, text.trim()))
}
