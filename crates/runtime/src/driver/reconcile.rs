//! What is owed against what runs: start the one, drop the other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use locum_kernel::{
    AgentId, Effect, Errand, Failure, FailureKind, Found, Input, Key, Output, Ready, Seq, Time,
    deadline, errand, is_repeatable, owed, parcel, prompt, relay, summons, summons_words,
};
use tokio::time::{Instant, timeout_at};

use super::{Driver, Error, Hands};
use crate::form;
use crate::library::{self, furnish};
use crate::live::Live;
use crate::provider::Asked;

const NOT_BEGUN: &str = "not begun: the disk was full; when there is room it can be called again";

/// What runs when the disk is full may end within this.
const LAST_MOMENT: Duration = Duration::from_secs(3);

impl Driver {
    /// Starts what is owed and may start, drops what is not owed any more. Returns when to look
    /// again if nothing happens before.
    pub(super) fn reconcile(&mut self, hands: &Hands) -> Option<Time> {
        for agent in self.ended.drain(..) {
            hands.tools.ended(agent);
        }
        let now = self.world.clock.now();
        let effects = owed(&self.session);
        let keys: BTreeSet<Key> = effects.iter().map(Effect::key).collect();
        self.inflight.keep(&keys);
        let mut wake = deadline(&self.session);
        for effect in effects {
            if self.inflight.has(effect.key()) {
                continue;
            }
            let starts = not_before(&effect);
            if starts > now {
                wake = Some(wake.map_or(starts, |wake| wake.min(starts)));
            } else {
                self.start(hands, &effect);
            }
        }
        wake
    }

    /// Nothing more is begun: calls that were about to be hear so, and what can be done again is
    /// dropped. What cannot gets a moment to end, because once it is cut nobody knows what it has
    /// done. Returns why it is over.
    pub(super) async fn wind_up(&mut self) -> Error {
        let until = Instant::now() + LAST_MOMENT;
        loop {
            let effects = owed(&self.session);
            let begun: Vec<&Effect> = effects.iter().filter(|it| !self.is_harmless(it)).collect();
            let keys: BTreeSet<Key> = begun.iter().map(|effect| effect.key()).collect();
            self.inflight.keep(&keys);
            let idle = |effect: &&Effect| match effect {
                Effect::RunTool { key, .. } => (!self.inflight.has(*key)).then_some(*key),
                Effect::CallModel { .. }
                | Effect::Prepare { .. }
                | Effect::Deliver { .. }
                | Effect::Relay { .. }
                | Effect::Summon { .. } => None,
            };
            let idle = begun.iter().find_map(idle);
            let input = match idle {
                Some(key) => Input::Ran { key, output: Output::error(NOT_BEGUN) },
                None if !self.inflight.is_busy() => break,
                None => match timeout_at(until, self.inflight.next()).await {
                    Ok(input) => input,
                    Err(_) => break,
                },
            };
            if let Err(error) = self.take(input) {
                return error;
            }
        }
        match self.drain().await {
            Ok(()) => Error::Full { session: self.key.clone() },
            Err(error) => error,
        }
    }

    /// Losing it and doing it again changes nothing in the world.
    pub(super) fn is_harmless(&self, effect: &Effect) -> bool {
        match effect {
            Effect::CallModel { .. } | Effect::Summon { .. } => true,
            Effect::RunTool { key, .. } => is_repeatable(&self.session, *key),
            Effect::Prepare { .. } | Effect::Deliver { .. } | Effect::Relay { .. } => false,
        }
    }

    /// What must be safe before an effect that is not harmless: what made it owed, and that this
    /// process is the one to do it.
    pub(super) fn explained_by(&self, effect: &Effect) -> Seq {
        effect.key().max(self.came)
    }

    /// Unless the entry that explains it must be safe first: then it is looked at again when it is.
    fn start(&mut self, hands: &Hands, effect: &Effect) {
        if self.explained_by(effect) > self.safe && !self.is_harmless(effect) {
            return;
        }
        match *effect {
            Effect::CallModel { key, agent, .. } => self.call_model(hands, key, agent),
            Effect::RunTool { key, .. } => {
                if let Some(errand) = errand(&self.session, key) {
                    self.run_tool(hands, key, errand);
                }
            }
            Effect::Prepare { key, agent } => self.prepare(hands, key, agent),
            Effect::Deliver { key, .. } => {
                let to = parcel(&self.session, key).map(|parcel| parcel.to).unwrap_or_default();
                let error = Some(format!("there is no channel to {to}"));
                let ready = async move { Input::Delivered { key, error } };
                self.inflight.start(key, delivery_panicked, ready);
            }
            Effect::Relay { key, .. } => {
                if let Some(relay) = relay(&self.session, key) {
                    hands.tools.answered(&relay);
                }
                self.inflight.start(key, relayed, async move { relayed(key) });
            }
            Effect::Summon { key } => {
                let name = summons(&self.session, key).unwrap_or_default().to_owned();
                let words = summons_words(&self.session, key).unwrap_or_default().to_owned();
                let found = library::summon(self.library.clone(), key, (name, words));
                self.inflight.start(key, summon_panicked, found);
            }
        }
    }

    fn prepare(&mut self, hands: &Hands, key: Key, agent: AgentId) {
        let kit = self.session.kit(agent).cloned().unwrap_or_default();
        let ready = hands.tools.prepare(agent, kit);
        self.inflight.start(key, setup_panicked, async move {
            match ready.await {
                Ok(ready) => Input::Prepared { key, error: None, ready },
                Err(why) => Input::Prepared { key, error: Some(why), ready: Ready::default() },
            }
        });
    }

    fn call_model(&mut self, hands: &Hands, key: Key, agent: AgentId) {
        let now = self.world.clock.now();
        let found = self.teller.progress(agent).zip(prompt(&self.session, agent, now));
        let Some((progress, request)) = found else {
            let failed = async move { Input::Failed { key, failure: nobody(agent) } };
            return self.inflight.start(key, model_panicked, failed);
        };
        let asked = Asked {
            definition: progress.definition.to_owned(),
            label: progress.name.label.clone(),
            replies: progress.replies,
            failures: progress.failures,
            tries: progress.tries,
            request,
        };
        let live = self.feed.live(key, progress.name.clone());
        let wanted = asked.request.output.clone();
        let answer = hands.provider.answer(asked, live);
        let library = self.library.clone();
        let subs = self.session.subs(agent).to_vec();
        self.inflight.start(key, model_panicked, async move {
            match answer.await {
                Ok(mut reply) => {
                    if let Some(library) = library {
                        reply = furnish(library, subs, reply).await;
                    }
                    reply.flaw = wanted.and_then(|schema| form::flaw(&schema, &reply));
                    Input::Replied { key, reply }
                }
                Err(failure) => Input::Failed { key, failure },
            }
        });
    }

    fn run_tool(&mut self, hands: &Hands, key: Key, errand: Errand) {
        let tools = Arc::clone(&hands.tools);
        let timeout = errand.timeout_ms.map(Duration::from_millis);
        let name = self.teller.progress(errand.agent).map(|it| it.name.clone());
        let live = name.map_or_else(|| Live::unheard(key), |name| self.feed.live(key, name));
        self.inflight.start(key, tool_panicked, async move {
            let run = tools.run(errand, live);
            let output = match timeout {
                None => run.await,
                Some(limit) => tokio::time::timeout(limit, run).await.unwrap_or_else(|_| {
                    Output::error(format!("stopped: it took longer than {} s", limit.as_secs()))
                }),
            };
            Input::Ran { key, output }
        });
    }
}

fn not_before(effect: &Effect) -> Time {
    match effect {
        Effect::CallModel { not_before, .. } | Effect::Deliver { not_before, .. } => *not_before,
        Effect::RunTool { .. }
        | Effect::Prepare { .. }
        | Effect::Relay { .. }
        | Effect::Summon { .. } => Time(0),
    }
}

/// The kernel owes nothing to agents it does not have; if it ever did, the session must still not
/// wedge.
fn nobody(agent: AgentId) -> Failure {
    failure(format!("there is no agent {agent}"))
}

fn failure(message: String) -> Failure {
    Failure { kind: FailureKind::Other, status: None, retry_after_ms: None, message }
}

pub(crate) const OUR_FAULT: &str = "locum made a mistake here; please report it";

fn model_panicked(key: Key) -> Input {
    Input::Failed { key, failure: failure(OUR_FAULT.into()) }
}

fn tool_panicked(key: Key) -> Input {
    Input::Ran { key, output: Output::error(format!("outcome unknown: {OUR_FAULT}")) }
}

fn setup_panicked(key: Key) -> Input {
    Input::Prepared { key, error: Some(OUR_FAULT.into()), ready: Ready::default() }
}

fn relayed(key: Key) -> Input {
    Input::Relayed { key }
}

fn summon_panicked(key: Key) -> Input {
    Input::Summoned { key, found: Found::Not(OUR_FAULT.into()) }
}

fn delivery_panicked(key: Key) -> Input {
    Input::Delivered { key, error: Some(OUR_FAULT.into()) }
}
