//! What a request is answered: who is meant, what the script has for them, in which words.

use std::sync::{Arc, Mutex, PoisonError};

use hyper::header::{HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use locum_runtime::clock::Clock;
use locum_runtime::script::{Act, Answer, Failed, Script, Words};
use serde_json::{Value, json};

use super::body::{self, Broken, Pieces};
use super::events::{self, CREATED, Event, Speech};
use super::memory::Memory;
use super::talk::Talk;
use super::{anthropic, chat, responses};

/// The same to the millisecond, as clients of these providers read it.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// How a provider's clients speak.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire {
    Anthropic,
    Chat,
    Responses,
}

impl Wire {
    fn read(self, asked: &Value) -> Result<Talk, String> {
        match self {
            Wire::Anthropic => anthropic::read(asked),
            Wire::Chat => chat::read(asked),
            Wire::Responses => responses::read(asked),
        }
    }

    fn whole(self, speech: &Speech) -> Value {
        match self {
            Wire::Anthropic => anthropic::whole(speech),
            Wire::Chat => chat::whole(speech),
            Wire::Responses => responses::whole(speech),
        }
    }

    fn stream(self, speech: &Speech, usage: bool) -> Vec<Event> {
        match self {
            Wire::Anthropic => anthropic::stream(speech),
            Wire::Chat => chat::stream(speech, usage),
            Wire::Responses => responses::stream(speech),
        }
    }

    fn error(self, status: u16, message: &str) -> Value {
        match self {
            Wire::Anthropic => anthropic::error(status, message),
            Wire::Chat | Wire::Responses => chat::error(status, message),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Wire::Anthropic => "anthropic",
            Wire::Chat => "openai-chat",
            Wire::Responses => "openai-responses",
        }
    }

    fn request_id(self) -> HeaderName {
        match self {
            Wire::Anthropic => HeaderName::from_static("request-id"),
            Wire::Chat | Wire::Responses => HeaderName::from_static("x-request-id"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Desk {
    script: Script,
    clock: Arc<dyn Clock>,
    memory: Mutex<Memory>,
}

impl Desk {
    pub(super) fn new(script: Script, clock: Arc<dyn Clock>) -> Desk {
        Desk { script, clock, memory: Mutex::default() }
    }

    pub(super) async fn answer(
        &self,
        wire: Wire,
        asked: &Value,
    ) -> Result<Response<Pieces>, Broken> {
        let talk = match wire.read(asked) {
            Ok(talk) => talk,
            Err(message) => return Ok(refuse(wire, StatusCode::BAD_REQUEST, &message)),
        };
        let agent = talk.agent(&self.script);
        let tag = talk.tag(agent, wire.name());
        let Answer { after_ms, act } = self.next(agent, &talk, &tag);
        if after_ms > 0 {
            self.clock.sleep_until(self.clock.now().plus_ms(after_ms)).await;
        }
        let speech = |words: Words| Speech {
            model: talk.model.clone(),
            tag: tag.clone(),
            words,
            usage: self.script.usage(),
            chunk: self.script.chunk(),
        };
        let mut response = match act {
            Act::Speak(words) if talk.stream => {
                let events = wire.stream(&speech(words), talk.stream_usage);
                body::stream(events::whole(events), false)
            }
            Act::Speak(words) => body::json(StatusCode::OK, &wire.whole(&speech(words))),
            Act::Cut { words, chunks } if talk.stream => {
                let events = wire.stream(&speech(words), talk.stream_usage);
                body::stream(events::cut(events, chunks), true)
            }
            Act::Cut { words, .. } => body::half_json(&wire.whole(&speech(words))),
            Act::Refuse { status, retry_after_ms } => fail(wire, status, retry_after_ms),
            Act::Hang => return Err(Broken),
        };
        if let Ok(id) = HeaderValue::from_str(&format!("req_{tag}")) {
            response.headers_mut().insert(wire.request_id(), id);
        }
        Ok(response)
    }

    /// The next step of the script, and the memory of it if it is a failure.
    fn next(&self, agent: &str, talk: &Talk, tag: &str) -> Answer {
        // A panic elsewhere left at most one count behind.
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = Failed::Here(memory.failures(tag));
        let answer = self.script.play(&[agent], &talk.turns(), failed);
        match answer.act {
            Act::Speak(_) => memory.answered(tag),
            Act::Cut { .. } | Act::Refuse { .. } | Act::Hang => memory.failed(tag),
        }
        answer
    }

    /// The agents as models, in words that all clients understand.
    pub(super) fn models(&self) -> Value {
        let model = |id: &str| {
            json!({
                "id": id, "type": "model", "object": "model", "display_name": id,
                "created": CREATED, "created_at": "2023-11-14T22:13:20Z", "owned_by": "script",
            })
        };
        let ids: Vec<&str> = self.script.names().collect();
        json!({
            "object": "list",
            "data": ids.iter().map(|id| model(id)).collect::<Vec<_>>(),
            "has_more": false, "first_id": ids.first(), "last_id": ids.last(),
        })
    }
}

fn fail(wire: Wire, status: u16, retry_after_ms: Option<u64>) -> Response<Pieces> {
    // What is no failure in HTTP would not be read as one.
    let status = StatusCode::from_u16(status).ok().filter(|status| status.as_u16() >= 400);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = refuse(wire, status, "scripted");
    if let Some(ms) = retry_after_ms {
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1_000)));
        headers.insert(RETRY_AFTER_MS, HeaderValue::from(ms));
    }
    response
}

pub(super) fn refuse(wire: Wire, status: StatusCode, message: &str) -> Response<Pieces> {
    body::json(status, &wire.error(status.as_u16(), message))
}
