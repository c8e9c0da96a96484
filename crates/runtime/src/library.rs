//! Who brings definitions: a file is read when a call names what is in it, and what can be named
//! is told anew when that changes. Nothing is watched; whoever has something to say looks first.

use std::fmt::Debug;
use std::sync::Arc;

use locum_kernel::{
    Definition, Found, Input, Key, Known, Made, Offer, Refusal, Reply, Session, Sub, Time, Wanted,
    meant, wanted,
};

/// The definitions of a session.
pub trait Library: Debug + Send + Sync {
    /// What can be brought, if it is not what it was when this was last asked. Cheap if it is.
    fn news(&self, now: Time) -> Option<Vec<Offer>>;

    /// The definition a person names with `@name`, if there is one, or why it cannot be started.
    /// `words` are what they have for it.
    fn summon(&self, name: &str, words: &str) -> Found;

    /// Names of definitions that are like one that is not there.
    fn near(&self, name: &str) -> Vec<String>;

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

/// Says whom a message is for that names somebody, if it does: the kernel decides by what this
/// session and its library know.
pub(crate) fn addressed(
    library: Option<&dyn Library>,
    session: &Session,
    at: Time,
    input: Input,
) -> Result<Input, Refusal> {
    let Input::Said(message) = input else { return Ok(input) };
    let defined = |name: &str| match library.map(|library| library.summon(name, "")) {
        Some(Found::Made(_)) => Known::Yes,
        Some(Found::Not(why)) => Known::Not(why),
        Some(Found::Nothing) => {
            Known::No(library.map(|library| library.near(name)).unwrap_or_default())
        }
        None => Known::No(Vec::new()),
    };
    meant(session, message, at, defined).map(Input::Said)
}

/// Looks for whom a person named. Files are read, so not on the thread that drives.
pub(crate) async fn summon(
    library: Option<Arc<dyn Library>>,
    key: Key,
    (name, words): (String, String),
) -> Input {
    let look = move || library.map_or(Found::Nothing, |library| library.summon(&name, &words));
    let found = tokio::task::spawn_blocking(look).await;
    // Whoever looked has panicked: that is no reason to lose what was said.
    let found = found.unwrap_or_else(|_| Found::Not("it cannot be read".into()));
    Input::Summoned { key, found }
}
