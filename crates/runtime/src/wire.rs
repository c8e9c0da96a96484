//! Models over the network: one provider per wire, all on the same connection code.
//!
//! In reading order: this file (what every wire shares, and the Anthropic provider), `http`
//! (requests, statuses, time limits), `sse` (bytes to events), `history` (requests without
//! encoding everything again), `anthropic` (its words), `after` (when to come back).

mod after;
pub(crate) mod anthropic;
pub(crate) mod history;
mod http;
pub(crate) mod sse;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use locum_kernel::{Failure, FailureKind, Purpose, Reply};

use crate::clock::Clock;
use crate::live::Live;
use crate::provider::{Asked, Provider, Task};
use crate::schema::{BuiltIn, Describe};

use anthropic::request::Builder;
use anthropic::stream::Stream;
use http::Http;
use sse::{Event, Splitter, Stop};

pub use http::{BadAddress, Key};

/// Puts an answer together from the events of one response.
pub(crate) trait Decoder {
    fn event(&mut self, event: Event<'_>) -> Result<(), Failure>;

    /// Nothing more has arrived just now: whoever listens may hear what there is.
    fn pause(&mut self);

    /// The provider said that this was all.
    fn is_done(&self) -> bool;

    /// Something came that was part of an answer.
    fn has_begun(&self) -> bool;

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
    pub(crate) fn new(decoder: D) -> Reading<D> {
        Reading { splitter: Splitter::default(), decoder, bytes: 0 }
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

    /// Nothing more will come.
    pub(crate) fn finish(mut self) -> Result<Reply, Failure> {
        let rest = self.splitter.finish(|event| self.decoder.event(event));
        match rest {
            // Half an event is no event, and that the answer stops there is said below.
            Err(Stop::Reader(Failure { kind: FailureKind::Malformed, .. }) | Stop::TooLong)
            | Ok(()) => {}
            Err(Stop::Reader(failure)) => return Err(failure),
        }
        if self.bytes > 0 && !self.decoder.has_begun() {
            return Err(malformed("what came back is no answer of a model"));
        }
        self.decoder.finish()
    }
}

/// How a provider on the network is used.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `http://host:port`, with or without a path before `/v1`.
    pub base_url: String,
    pub key: Key,
    /// Longest answer to ask for, in tokens.
    pub max_tokens: u32,
    /// How long a provider may say nothing before it counts as gone.
    pub idle: Duration,
    /// What the tools are that agents may use.
    pub describe: Arc<dyn Describe>,
}

impl Settings {
    #[must_use]
    pub fn new(base_url: &str, key: Key) -> Settings {
        Settings {
            base_url: base_url.to_owned(),
            key,
            // What the kernel sets aside for an answer of a model it knows nothing of.
            max_tokens: 8_000,
            idle: Duration::from_mins(5),
            describe: Arc::new(BuiltIn),
        }
    }
}

/// Models behind the Anthropic Messages wire.
#[derive(Debug)]
pub struct Anthropic {
    http: Arc<Http>,
    builder: Builder,
}

impl Anthropic {
    /// Opens nothing yet: the first question does.
    pub fn new(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Anthropic, BadAddress> {
        Ok(Anthropic {
            http: Arc::new(Http::new(settings, "/v1/messages", clock)?),
            builder: Builder::new(Arc::clone(&settings.describe), settings.max_tokens),
        })
    }
}

impl Provider for Anthropic {
    fn answer(&self, asked: Asked, live: Live) -> Task<Result<Reply, Failure>> {
        let body = self.builder.body(&asked);
        // A summary is for the agent itself.
        let live = if asked.request.purpose == Purpose::Answer { live } else { Live::nobody() };
        let http = Arc::clone(&self.http);
        Box::pin(async move {
            let headers = [("x-api-key", http.key()), ("anthropic-version", anthropic::VERSION)];
            http.ask(body, &headers, Stream::new(live), &MEANING).await
        })
    }
}

/// What a wire's errors mean.
struct Meaning {
    /// The name and the words of an error, if the body is one.
    error_in: fn(&[u8]) -> Option<(String, String)>,
    /// `Other` says nothing: the status decides.
    named: fn(&str, &str) -> FailureKind,
}

const MEANING: Meaning = Meaning { error_in: anthropic::error_in, named: anthropic::failure_named };

pub(crate) fn failed(kind: FailureKind, message: impl Into<String>) -> Failure {
    Failure { kind, status: None, retry_after_ms: None, message: message.into() }
}

pub(crate) fn malformed(message: &str) -> Failure {
    failed(FailureKind::Malformed, message)
}
