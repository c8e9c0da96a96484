//! Models over the network: one provider per wire, all on the same connection code.
//!
//! In reading order: this file (what every wire shares), `http` (requests, statuses, time limits),
//! `tls` (whom to trust), `sse` (bytes to events), `history` (requests without encoding everything
//! again), `words` (what all say alike), `text` (strings inside events),
//! `picture` (what is shown), `after` (when to come
//! back), `greet` (what a server says of itself), `decode` (a recorded stream, read without a
//! model), then a folder for each wire's own words.

mod after;
pub(crate) mod anthropic;
pub(crate) mod chat;
mod decode;
pub(crate) mod gemini;
pub mod greet;
pub(crate) mod history;
mod http;
pub(crate) mod ollama;
pub(crate) mod picture;
pub(crate) mod responses;
pub(crate) mod sse;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod tls;
pub mod tuning;
pub(crate) mod words;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use locum_kernel::{Failure, FailureKind, Purpose, Reply};

use crate::clock::Clock;
use crate::live::Live;
use crate::provider::{Asked, Provider, Task};
use crate::schema::{BuiltIn, Describe};

use anthropic::Messages;
use chat::Chat;
use chat::presets::dialect_of;
use gemini::Generate;
use http::Http;
use responses::Responses;
use sse::{Event, Splitter, Stop};

#[cfg(test)]
pub(crate) use tests::asked_for as asked_for_tests;

pub use decode::{Decoded, DecodedCall, decode, decode_in, events_in};
pub use http::{BadAddress, Key};
pub use ollama::ollama_address;
pub use picture::Album;

/// What one wire has of its own: where a request goes, how it is put, how an answer is read.
pub(crate) trait Wire: Debug + Send + Sync + 'static {
    type Stream: Decoder + Debug + Send;

    /// What comes after the address, from `/v1` or its like on.
    fn path(&self, asked: &Asked) -> String;

    fn headers(&self, key: &Key) -> Vec<(&'static str, String)>;

    fn body(&self, asked: &Asked) -> Vec<u8>;

    fn stream(&self, live: Live) -> Self::Stream;

    fn framing(&self) -> Framing {
        Framing::Events
    }

    /// Takes an answer that is one JSON value, where a stream was asked for.
    fn takes_whole(&self) -> bool {
        false
    }

    fn meaning(&self) -> Meaning;

    /// Finds in the body of an error how long to stay away, in milliseconds.
    fn wait_in(&self) -> fn(&[u8]) -> Option<u64> {
        |_| None
    }
}

/// How a wire tells one event from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Events,
    /// The same, but what goes wrong on the way may stand between them as it is.
    LooseEvents,
    /// One JSON value per line.
    Lines,
    /// One JSON value, in however many lines.
    Whole,
}

/// A wire by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireName {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
    Gemini,
    Ollama,
}

impl WireName {
    pub const ALL: [WireName; 5] = [
        WireName::Anthropic,
        WireName::OpenAiChat,
        WireName::OpenAiResponses,
        WireName::Gemini,
        WireName::Ollama,
    ];

    #[must_use]
    pub fn named(word: &str) -> Option<WireName> {
        WireName::ALL.into_iter().find(|wire| wire.word() == word)
    }

    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            WireName::Anthropic => "anthropic",
            WireName::OpenAiResponses => "openai-responses",
            WireName::OpenAiChat => "openai-chat",
            WireName::Gemini => "gemini",
            WireName::Ollama => "ollama",
        }
    }
}

/// Models behind a wire. Opens nothing yet: the first question does.
pub fn provider(
    wire: WireName,
    settings: &Settings,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Provider>, BadAddress> {
    let http = Arc::new(Http::new(settings, clock)?);
    Ok(match wire {
        WireName::Anthropic => Arc::new(Online { http, wire: Messages::new(settings) }),
        WireName::OpenAiResponses => Arc::new(Online { http, wire: Responses::new(settings) }),
        WireName::OpenAiChat => {
            let dialect = dialect_of(&settings.provider, &settings.base_url);
            Arc::new(Online { http, wire: Chat::new(settings, dialect) })
        }
        WireName::Gemini => Arc::new(Online { http, wire: Generate::new(settings) }),
        WireName::Ollama => Arc::new(Online { http, wire: ollama::Chat::new(settings) }),
    })
}

/// Puts an answer together from the events of one response.
pub(crate) trait Decoder {
    fn event(&mut self, event: Event<'_>) -> Result<(), Failure>;

    /// Nothing more has arrived just now: whoever listens may hear what there is.
    fn pause(&mut self);

    /// The provider said that this was all.
    fn is_done(&self) -> bool;

    /// Something came that was part of an answer.
    fn has_begun(&self) -> bool;

    /// What there is so far, whole or not.
    fn decoded(&self) -> Decoded;

    /// The reply, if it is whole.
    fn finish(self) -> Result<Reply, Failure>;
}

/// How much of an answer is read at all.
const BODY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// One response being read: bytes in, a reply out.
#[derive(Debug)]
pub(crate) struct Reading<D> {
    splitter: Splitter,
    decoder: D,
    bytes: usize,
}

impl<D: Decoder> Reading<D> {
    pub(crate) fn new(decoder: D, framing: Framing) -> Reading<D> {
        Reading { splitter: Splitter::new(framing), decoder, bytes: 0 }
    }

    /// The same, for an answer that turned out to be one JSON value.
    pub(crate) fn of_whole(self) -> Reading<D> {
        Reading::new(self.decoder, Framing::Whole)
    }

    pub(crate) fn decoded(&self) -> Decoded {
        self.decoder.decoded()
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) -> Result<(), Failure> {
        self.bytes += chunk.len();
        if self.bytes > BODY_BYTES_MAX {
            return Err(malformed("the answer does not end"));
        }
        let fed = self.splitter.feed(chunk, |event| self.decoder.event(event));
        self.decoder.pause();
        fed.map_err(|stop| match stop {
            Stop::TooLong => malformed("an event longer than any event"),
            Stop::Reader(failure) => failure,
        })
    }

    pub(crate) fn is_done(&self) -> bool {
        self.decoder.is_done()
    }

    /// Nothing more will come: what the last line says counts, though it was not ended.
    pub(crate) fn end(&mut self) -> Result<(), Failure> {
        match self.splitter.finish(|event| self.decoder.event(event)) {
            // Half an event is no event, and that the answer stops there is said by `finish`.
            Err(Stop::Reader(Failure { kind: FailureKind::Malformed, .. }) | Stop::TooLong)
            | Ok(()) => Ok(()),
            Err(Stop::Reader(failure)) => Err(failure),
        }
    }

    pub(crate) fn finish(mut self) -> Result<Reply, Failure> {
        self.end()?;
        if self.bytes > 0 && !self.decoder.has_begun() {
            return Err(malformed("what came back is no answer of a model"));
        }
        self.decoder.finish()
    }
}

/// How a provider on the network is used.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it is called; some speak a little differently. Empty: nobody in particular.
    pub provider: String,
    /// `https://host`, with or without a path before `/v1`.
    pub base_url: String,
    pub key: Key,
    /// Sent along with every request, instead of ours where the names are the same. Any of them
    /// may be a secret.
    pub headers: Vec<(String, Key)>,
    /// Certificates to trust besides those this machine trusts.
    pub ca_file: Option<PathBuf>,
    /// Longest answer to ask for, in tokens.
    pub max_tokens: u32,
    /// How much a server of models makes room for, in tokens. None: as much as it likes.
    pub context: Option<u32>,
    /// How long a provider may say nothing before it counts as gone.
    pub idle: Duration,
    /// What the tools are that agents may use.
    pub describe: Arc<dyn Describe>,
    /// Where pictures are kept.
    pub album: Arc<dyn Album>,
}

impl Settings {
    #[must_use]
    pub fn new(base_url: &str, key: Key) -> Settings {
        Settings {
            provider: String::new(),
            base_url: base_url.to_owned(),
            key,
            headers: Vec::new(),
            ca_file: None,
            // What the kernel sets aside for an answer of a model it knows nothing of.
            max_tokens: 8_000,
            context: None,
            idle: Duration::from_mins(5),
            describe: Arc::new(BuiltIn),
            album: Arc::new(picture::Empty),
        }
    }
}

/// A wire, and the connection it is spoken on.
#[derive(Debug)]
struct Online<W> {
    http: Arc<Http>,
    wire: W,
}

impl<W: Wire> Provider for Online<W> {
    fn answer(&self, asked: Asked, live: Live) -> Task<Result<Reply, Failure>> {
        // A summary is for the agent itself.
        let live = if asked.request.purpose == Purpose::Answer { live } else { Live::nobody() };
        let (http, wire) = (Arc::clone(&self.http), &self.wire);
        let question = Question {
            path: wire.path(&asked),
            headers: wire.headers(http.key()),
            body: wire.body(&asked),
            takes_whole: wire.takes_whole(),
            meaning: wire.meaning(),
            wait_in: wire.wait_in(),
        };
        let reading = Reading::new(wire.stream(live), wire.framing());
        Box::pin(async move { http.ask(question, reading).await })
    }
}

/// One request, ready to be sent.
pub(crate) struct Question {
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    takes_whole: bool,
    meaning: Meaning,
    wait_in: fn(&[u8]) -> Option<u64>,
}

/// What a wire's errors mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meaning {
    /// The name and the words of an error, if the body is one.
    error_in: fn(&[u8]) -> Option<(String, String)>,
    /// `Other` says nothing: the status decides.
    named: fn(&str, &str) -> FailureKind,
}

pub(crate) fn failed(kind: FailureKind, message: impl Into<String>) -> Failure {
    Failure { kind, status: None, retry_after_ms: None, message: message.into() }
}

pub(crate) fn malformed(message: &str) -> Failure {
    failed(FailureKind::Malformed, message)
}
