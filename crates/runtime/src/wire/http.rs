//! One question over HTTP: sent, and its answer read as it comes, within limits of time and size.
//! A key leaves here only in the header it is meant for.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use locum_kernel::{Failure, FailureKind, Reply, clip, headline};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, Url};

use super::tls::{self, Scheme};
use super::{Decoder, Meaning, Question, Reading, Settings, after, failed};
use crate::clock::Clock;
use crate::provider::failure_kind;

/// How much is read of an answer that says what went wrong.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How long it may take to say so.
const EXPLAINING: Duration = Duration::from_secs(10);
/// How much of the provider's words is passed on.
const WORDS_BYTES_MAX: usize = 1_000;
/// A host that does not even pick up.
const CONNECT: Duration = Duration::from_secs(30);
/// How long a server of this machine that is not there is given to come back.
const STARTING: Duration = Duration::from_millis(300);
/// How long the end of a response is waited for after the answer is whole: the connection can be
/// used again only then. It almost always comes with the last event.
const TRAILING: Duration = Duration::from_millis(20);

/// What is shorter stands for a key where none is needed (`k`, `none`, `ollama`): it hides nothing,
/// and taken out of every word it is part of, it would make a riddle of the message.
const KEY_BYTES_MIN: usize = 8;
/// The same for what the user wants sent along, of which most is no secret.
const HEADER_BYTES_MIN: usize = 16;

/// A secret that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    #[must_use]
    pub fn new(secret: impl Into<String>) -> Key {
        Key(secret.into())
    }
}

impl Key {
    /// Its end, to tell one key from another; of a short one nothing.
    #[must_use]
    pub fn ending(&self) -> String {
        let signs = self.0.chars().count();
        let skipped = if signs < 16 { signs } else { signs - 4 };
        format!("…{}", self.0.chars().skip(skipped).collect::<String>())
    }

    /// For the header it is meant for, and nowhere else.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Why an address or a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    #[error("{0:?} is no address of a provider")]
    NotOne(String),
    #[error("the key holds a character that no key has")]
    Key,
    #[error("the header {0:?} holds a character that no header has")]
    Header(String),
}

pub(super) struct Http {
    /// Made when first needed: a run that asks nothing pays nothing.
    client: OnceLock<Client>,
    /// Without the version that may stand at its end: people give both.
    base: Url,
    key: Key,
    /// What the user wants sent along.
    extra: HeaderMap,
    ca_file: Option<PathBuf>,
    idle: Duration,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An address may carry a password.
        f.debug_struct("Http").field("host", &self.base.host_str()).finish_non_exhaustive()
    }
}

impl Http {
    pub(super) fn new(settings: &Settings, clock: Arc<dyn Clock>) -> Result<Http, BadAddress> {
        let base = settings.base_url.trim();
        let not_one = || BadAddress::NotOne(headline(base, 200));
        let trimmed =
            base.trim_end_matches('/').trim_end_matches("/v1").trim_end_matches("/v1beta");
        let base = Url::parse(trimmed).map_err(|_| not_one())?;
        match base.scheme() {
            "https" | "http" if base.has_host() => {}
            _ => return Err(not_one()),
        }
        HeaderValue::from_str(&settings.key.0).map_err(|_| BadAddress::Key)?;
        let (client, key, idle) = (OnceLock::new(), settings.key.clone(), settings.idle);
        let (extra, ca_file) = (extra_headers(settings)?, settings.ca_file.clone());
        Ok(Http { client, base, key, extra, ca_file, idle, clock })
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    fn url(&self, path: &str) -> Result<Url, Failure> {
        let base = self.base.as_str().trim_end_matches('/');
        Url::parse(&format!("{base}{path}"))
            .map_err(|_| failed(FailureKind::Other, "the model's name makes no address"))
    }

    fn client(&self) -> Result<&Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let scheme = if self.base.scheme() == "https" { Scheme::Encrypted } else { Scheme::Plain };
        let client = tls::builder(scheme, self.ca_file.as_deref())
            .and_then(|builder| Ok(builder.connect_timeout(CONNECT).build()?))
            .map_err(|error| failed(FailureKind::Other, causes(&error)))?;
        Ok(self.client.get_or_init(|| client))
    }

    pub(super) async fn ask<D: Decoder>(
        &self,
        question: Question,
        mut reading: Reading<D>,
    ) -> Result<Reply, Failure> {
        let Question { path, headers, body, takes_whole, meaning, wait_in } = question;
        let mut request = self.client()?.post(self.url(&path)?).body(body);
        let mut map = HeaderMap::with_capacity(headers.len() + 1);
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in headers {
            if let Ok(mut header) = HeaderValue::from_str(&value) {
                header.set_sensitive(!self.key.0.is_empty() && value.contains(&self.key.0));
                map.insert(name, header);
            }
        }
        // Last, so that people can say it differently.
        map.extend(self.extra.clone());
        request = request.headers(map);
        let again = request.try_clone();
        let response = match (self.send(request).await, again) {
            // One that is being started again is there in a moment.
            (Err(Failure { kind: FailureKind::Absent, .. }), Some(again)) => {
                tokio::time::sleep(STARTING).await;
                self.send(again).await?
            }
            (sent, _) => sent?,
        };
        let whole = takes_whole && is(&response, "application/json");
        if response.status().as_u16() != 200 || !(whole || may_be_stream(&response)) {
            return Err(self.refused(response, &meaning, wait_in).await);
        }
        if whole {
            reading = reading.of_whole();
        }
        self.read(response, reading).await.map_err(|failure| self.without_key(failure))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let sent = tokio::time::timeout(self.idle, request.send()).await;
        sent.map_err(|_| self.silent())?.map_err(|error| self.network(&error))
    }

    async fn read<D: Decoder>(
        &self,
        mut response: Response,
        mut reading: Reading<D>,
    ) -> Result<Reply, Failure> {
        while !reading.is_done() {
            let Some(chunk) = self.chunk(&mut response).await? else { return reading.finish() };
            reading.feed(&chunk)?;
        }
        // Left unread, the end of the response would cost the connection.
        let _ = tokio::time::timeout(TRAILING, response.chunk()).await;
        reading.finish()
    }

    async fn chunk(&self, response: &mut Response) -> Result<Option<Bytes>, Failure> {
        let chunk = tokio::time::timeout(self.idle, response.chunk()).await;
        chunk.map_err(|_| self.silent())?.map_err(|error| {
            failed(FailureKind::Cut, format!("the connection broke off: {}", chain(&error)))
        })
    }

    /// What a response means that is no answer.
    async fn refused(
        &self,
        mut response: Response,
        meaning: &Meaning,
        wait_in: fn(&[u8]) -> Option<u64>,
    ) -> Failure {
        let status = response.status().as_u16();
        let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after_ms = after.and_then(|value| after::retry_after_ms(value, self.clock.now()));
        let mut body = Vec::new();
        let reading = async {
            while body.len() < ERROR_BYTES_MAX
                && let Ok(Some(chunk)) = response.chunk().await
            {
                body.extend_from_slice(&chunk[..chunk.len().min(ERROR_BYTES_MAX - body.len())]);
            }
        };
        // What there is of it will do.
        let _ = tokio::time::timeout(self.idle.min(EXPLAINING), reading).await;
        let retry_after_ms = retry_after_ms.or_else(|| wait_in(&body));
        let (name, words) = (meaning.error_in)(&body).unwrap_or_default();
        let by_name = (meaning.named)(&name, &words);
        // A name says more than a number; without one the number has to do.
        let kind = if by_name != FailureKind::Other {
            by_name
        } else if status == 200 {
            FailureKind::Malformed
        } else {
            failure_kind(status)
        };
        let words = if words.is_empty() {
            headline(&String::from_utf8_lossy(&body), WORDS_BYTES_MAX)
        } else {
            words
        };
        let message = match (status, words.is_empty()) {
            (200, _) => format!("what came back is no stream of events: {words}"),
            (_, true) => format!("the provider answered with status {status}"),
            (_, false) => words,
        };
        let status = (status != 200).then_some(status);
        self.without_key(Failure { kind, status, retry_after_ms, message })
    }

    fn silent(&self) -> Failure {
        let seconds = self.idle.as_secs();
        failed(FailureKind::Timeout, format!("the provider said nothing for {seconds} s"))
    }

    /// Nothing was heard at all: nobody there, or the line is dead.
    fn network(&self, error: &reqwest::Error) -> Failure {
        let host = self.base.host_str().unwrap_or_default();
        if tls::is_distrust(error) {
            let why = format!("{host} is not trusted: {}", chain(error));
            return self.without_key(failed(FailureKind::Other, why));
        }
        if is_refused(error) && self.is_here() {
            let port = self.base.port_or_known_default().unwrap_or_default();
            return failed(FailureKind::Absent, format!("nobody listens at {host}:{port}"));
        }
        let kind = if error.is_timeout() { FailureKind::Timeout } else { FailureKind::Server };
        self.without_key(failed(kind, format!("{host} cannot be reached: {}", chain(error))))
    }

    /// On this machine, where a refusal says that there is nobody, and not that the line is bad.
    fn is_here(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || bare.parse().is_ok_and(|host: IpAddr| host.is_loopback())
    }

    /// Some servers repeat what they were sent.
    fn without_key(&self, mut failure: Failure) -> Failure {
        let sent = self.extra.values().filter_map(|value| value.to_str().ok());
        // What stands before the secret in a header is no secret.
        let sent = sent.filter_map(|value| value.rsplit(' ').next());
        let secrets = [(self.key.0.as_str(), KEY_BYTES_MIN)].into_iter();
        for (secret, least) in secrets.chain(sent.map(|value| (value, HEADER_BYTES_MIN))) {
            if secret.len() >= least && failure.message.contains(secret) {
                failure.message = failure.message.replace(secret, "(the key)");
            }
        }
        failure.message = clip(failure.message, WORDS_BYTES_MAX);
        failure
    }
}

fn extra_headers(settings: &Settings) -> Result<HeaderMap, BadAddress> {
    let mut map = HeaderMap::with_capacity(settings.headers.len());
    for (name, value) in &settings.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let header = header.zip(HeaderValue::from_str(value.secret()).ok());
        let (name, mut value) = header.ok_or_else(|| BadAddress::Header(headline(name, 100)))?;
        // It may well be a key.
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

/// Some proxies say nothing about what they pass on; what they say otherwise is believed.
fn may_be_stream(response: &Response) -> bool {
    !["text/html", "application/json"].iter().any(|kind| is(response, kind))
}

fn is(response: &Response, kind: &str) -> bool {
    let told = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    told.is_some_and(|told| told.starts_with(kind))
}

fn is_refused(error: &reqwest::Error) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |error| error.source());
    causes.any(|cause| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ConnectionRefused)
    })
}

/// Everything behind an error. Never the address: it may carry a password.
fn chain(error: &reqwest::Error) -> String {
    std::error::Error::source(error).map(causes).unwrap_or_default()
}

/// An error with everything behind it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = vec![error.to_string()];
    let mut at = error.source();
    while let Some(error) = at {
        words.push(error.to_string());
        at = error.source();
    }
    words.join(": ")
}
