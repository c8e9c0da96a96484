//! Streamable HTTP with a bound on every body: the SDK's own client reads a JSON answer whole,
//! however long it is.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Once};

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use reqwest::redirect::Policy;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use crate::limits;
use crate::logs::clip;
use crate::mend;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "Mcp-Session-Id";
/// The worker behind this sets the protocol's version itself; a person's file may not.
const RESERVED: &[&str] = &["accept", "mcp-session-id", "last-event-id"];

type Failure = StreamableHttpError<reqwest::Error>;

#[derive(Clone, Debug)]
pub(crate) struct Web(reqwest::Client);

impl Web {
    pub(crate) fn new() -> Result<Web, reqwest::Error> {
        choose_cryptography();
        // Another origin could be anybody, and would be sent our token.
        let stay = Policy::custom(|attempt| {
            let same = attempt.previous().last().is_some_and(|from| {
                from.origin() == attempt.url().origin() && attempt.previous().len() <= 5
            });
            if same { attempt.follow() } else { attempt.stop() }
        });
        // A connection whose last answer was not read to its end stalls the next request.
        let builder = reqwest::Client::builder().pool_max_idle_per_host(0).redirect(stay);
        Ok(Web(builder.build()?))
    }
}

/// One process has one choice. Whoever chose before us is respected.
pub(crate) fn choose_cryptography() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _chosen_before = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Err: what is wrong with the headers.
pub(crate) fn settings(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let parsed = HeaderName::try_from(name.as_str()).ok();
        let parsed = parsed.filter(|name| !RESERVED.contains(&name.as_str()));
        let name = parsed.ok_or_else(|| format!("`{name}` cannot be a header of yours"))?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| {
            format!("the value of header `{name}` has signs that no header may have")
        })?;
        value.set_sensitive(true);
        custom.insert(name, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    Ok(config.custom_headers(custom).max_sse_event_size(limits::MESSAGE_BYTES))
}

impl StreamableHttpClient for Web {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut request = self.0.post(uri.as_ref());
        request = request.header(header::ACCEPT, format!("{EVENTS}, {JSON}"));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let with_session = session.is_some();
        if let Some(session) = session {
            request = request.header(SESSION, session.as_ref());
        }
        let response = request.json(&message).send().await.map_err(Failure::Client)?;
        refused(&response)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && with_session {
            return Err(Failure::SessionExpired);
        }
        let kind = text(&response, header::CONTENT_TYPE.as_str()).unwrap_or_default();
        let session = text(&response, SESSION);
        if !status.is_success() {
            let body = read(response).await?;
            return failed(&message, with_session, status, &body, session);
        }
        if kind.starts_with(EVENTS) {
            let stream = SseStream::from_bytes_stream(bounded(response)).map(mended).boxed();
            return Ok(StreamableHttpPostResponse::Sse(stream, session));
        }
        let body = read(response).await?;
        match mend::message(&body) {
            Ok(answer) if kind.starts_with(JSON) => {
                Ok(StreamableHttpPostResponse::Json(answer, session))
            }
            // Nobody waits for an answer to these.
            _ if !matches!(message, JsonRpcMessage::Request(_)) => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            Ok(_) => Err(Failure::UnexpectedContentType(Some(kind))),
            Err(_) => {
                let what = format!("an answer that is no message: {}", preview(&body));
                Err(Failure::UnexpectedServerResponse(what.into()))
            }
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.0.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let limit = limits::MESSAGE_BYTES;
        let client = &self.0;
        client.get_stream_with_max_sse_event_size(uri, session, last, token, headers, limit).await
    }
}

fn text(response: &reqwest::Response, header: &str) -> Option<String> {
    Some(response.headers().get(header)?.to_str().ok()?.to_owned())
}

fn preview(body: &[u8]) -> String {
    clip(&String::from_utf8_lossy(&body[..body.len().min(400)]), 200)
}

/// Answers that are about who we are or how often we come, not about the message.
fn refused(response: &reqwest::Response) -> Result<(), Failure> {
    let challenge = || text(response, header::WWW_AUTHENTICATE.as_str());
    match response.status() {
        // Without a challenge the address alone has to say where to log in.
        StatusCode::UNAUTHORIZED => {
            let challenge = challenge().unwrap_or_else(|| "Bearer".to_owned());
            Err(Failure::AuthRequired(AuthRequiredError::new(challenge)))
        }
        StatusCode::FORBIDDEN => challenge().map_or(Ok(()), |challenge| {
            let scope = scope(&challenge);
            Err(Failure::InsufficientScope(InsufficientScopeError::new(challenge, scope)))
        }),
        status if status == StatusCode::TOO_MANY_REQUESTS => {
            let later = text(response, header::RETRY_AFTER.as_str());
            Err(HttpStatusError::new(status.as_u16(), later).into())
        }
        _ => Ok(()),
    }
}

/// What a server says it would take.
pub(crate) fn scope(challenge: &str) -> Option<String> {
    let (_, rest) = challenge.split_once("scope=\"")?;
    rest.split_once('"').map(|(scope, _)| scope.to_owned())
}

fn failed(
    message: &ClientJsonRpcMessage,
    with_session: bool,
    status: StatusCode,
    body: &[u8],
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Failure> {
    let answer = serde_json::from_slice::<ServerJsonRpcMessage>(body).ok();
    let error = match answer {
        Some(JsonRpcMessage::Error(error)) => Some(error),
        Some(
            JsonRpcMessage::Request(_)
            | JsonRpcMessage::Response(_)
            | JsonRpcMessage::Notification(_),
        )
        | None => None,
    };
    // A server of the old kind does not know the question; what it answers need not even be JSON.
    if let JsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && status.is_client_error()
        && status != StatusCode::FORBIDDEN
        && !with_session
    {
        let what = || ErrorData::invalid_request(format!("HTTP {status}"), None);
        let error = error.map_or_else(what, |error| error.error);
        let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match error {
        Some(error) => Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), session)),
        None if status.is_server_error() => Err(HttpStatusError::new(status.as_u16(), None).into()),
        None => {
            let what = format!("HTTP {status}: {}", preview(body));
            Err(Failure::UnexpectedServerResponse(Cow::Owned(what)))
        }
    }
}

async fn read(mut response: reqwest::Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Failure::Client)? {
        if body.len() + chunk.len() > limits::MESSAGE_BYTES {
            let what = format!("an answer of more than {} bytes", limits::MESSAGE_BYTES);
            return Err(Failure::UnexpectedServerResponse(what.into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Other servers' lists of tools come in events.
fn mended(event: Result<Sse, SseError>) -> Result<Sse, SseError> {
    let event = event?;
    Ok(Sse { data: event.data.map(mend::text), ..event })
}

#[derive(Debug, thiserror::Error)]
enum Stream {
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
    #[error("an event of more than {} bytes", limits::MESSAGE_BYTES)]
    TooLong,
}

/// Ends with an error once an event, up to its empty line, is too long.
fn bounded(
    response: reqwest::Response,
) -> impl futures_util::Stream<Item = Result<bytes::Bytes, Stream>> + Send {
    let mut length = 0;
    let mut last = b'\n';
    response.bytes_stream().map(move |chunk| {
        let chunk = chunk?;
        for byte in &chunk {
            match (last, *byte) {
                (_, b'\r') => continue,
                (b'\n', b'\n') => length = 0,
                (_, byte) => {
                    length += 1;
                    if length > limits::MESSAGE_BYTES {
                        return Err(Stream::TooLong);
                    }
                    last = byte;
                    continue;
                }
            }
            last = *byte;
        }
        Ok(chunk)
    })
}
