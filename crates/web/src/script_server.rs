//! The scripted model over HTTP, in the words of three providers, for other programs and tests.
//!
//! Every request carries its conversation, and the place in the script follows from it; only how
//! often a place has failed is remembered (`memory`). The same request gets the same bytes.
//! In reading order: `talk` (what a request says), `desk` (what it is answered), the wires
//! (`anthropic`, `chat`, `responses`), `events` (a stream and where it is cut),
//! `body` (what goes over the wire).

mod anthropic;
mod body;
mod chat;
mod desk;
mod events;
mod memory;
mod responses;
mod talk;

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderMap, HeaderValue, UPGRADE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use locum_runtime::clock::Clock;
use locum_runtime::script::Script;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use body::{Broken, Pieces};
use desk::{Desk, Wire};

/// As much as a request may carry; the longest context of today fits many times.
const BODY_BYTES_MAX: usize = 64 << 20;

/// How much more is read and thrown away, so that whoever sends it still hears why not.
const WASTE_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// How long to wait when the machine has no more connections to give.
const BREATHER_MS: u64 = 50;

/// Answers until it is dropped, which ends every connection.
pub async fn serve(listener: TcpListener, script: Script, clock: Arc<dyn Clock>) -> Infallible {
    let desk = Arc::new(Desk::new(script, Arc::clone(&clock)));
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    open.spawn(connection(stream, Arc::clone(&desk)));
                }
                Err(_) => clock.sleep_until(clock.now().plus_ms(BREATHER_MS)).await,
            },
            Some(_ended) = open.join_next(), if !open.is_empty() => {}
        }
    }
}

async fn connection(stream: TcpStream, desk: Arc<Desk>) {
    // A stream of small pieces must not wait for acknowledgements; without it, it is only slower.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| route(request, &desk));
    // How it ended is for the other side to judge: dropping it is one of our answers.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Where a request can go.
enum Place {
    Ask(Wire),
    CountTokens,
    Models,
    Health,
}

impl Place {
    fn find(path: &str) -> Option<(Method, Place)> {
        Some(match path {
            "/v1/messages" => (Method::POST, Place::Ask(Wire::Anthropic)),
            "/v1/chat/completions" => (Method::POST, Place::Ask(Wire::Chat)),
            "/v1/responses" => (Method::POST, Place::Ask(Wire::Responses)),
            "/v1/messages/count_tokens" => (Method::POST, Place::CountTokens),
            "/v1/models" => (Method::GET, Place::Models),
            "/healthz" => (Method::GET, Place::Health),
            _ => return None,
        })
    }
}

async fn route(request: Request<Incoming>, desk: &Desk) -> Result<Response<Pieces>, Broken> {
    let (head, incoming) = request.into_parts();
    let path = head.uri.path();
    let Some((method, place)) = Place::find(path) else {
        let message = format!("There is no {path} here.");
        return Ok(problem(StatusCode::NOT_FOUND, "not_found_error", &message));
    };
    if head.method != method && wants_socket(&head.headers) {
        return Ok(no_socket(path));
    }
    if head.method != method {
        let message = format!("{path} takes {method}, not {}.", head.method);
        let wrong = StatusCode::METHOD_NOT_ALLOWED;
        let mut response = problem(wrong, "invalid_request_error", &message);
        if let Ok(method) = HeaderValue::from_str(method.as_str()) {
            response.headers_mut().insert(ALLOW, method);
        }
        return Ok(response);
    }
    match place {
        Place::Ask(wire) => match said(incoming).await? {
            Ok(asked) => desk.answer(wire, &asked).await,
            Err((status, message)) => Ok(desk::refuse(wire, status, &message)),
        },
        Place::CountTokens => Ok(match said(incoming).await? {
            Ok(asked) => body::json(StatusCode::OK, &json!({"input_tokens": tokens(&asked)})),
            Err((status, message)) => desk::refuse(Wire::Anthropic, status, &message),
        }),
        Place::Models => Ok(body::json(StatusCode::OK, &desk.models())),
        Place::Health => Ok(body::json(StatusCode::OK, &json!({"status": "ok"}))),
    }
}

fn wants_socket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Clients that would rather have a web socket read this as "there is none, ask as usual"; any
/// other refusal they take for a bad connection and try again.
fn no_socket(path: &str) -> Response<Pieces> {
    let message = format!("There are no web sockets here: {path} takes POST.");
    let status = StatusCode::UPGRADE_REQUIRED;
    let mut response = problem(status, "invalid_request_error", &message);
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
    response
}

/// What nobody's wire explains, in a shape that every provider's client can read.
fn problem(status: StatusCode, kind: &str, message: &str) -> Response<Pieces> {
    let error = json!({"type": kind, "message": message, "param": null, "code": null});
    body::json(status, &json!({"type": "error", "error": error}))
}

/// The request's JSON, or what is wrong with it.
async fn said(mut incoming: Incoming) -> Result<Result<Value, (StatusCode, String)>, Broken> {
    let mut bytes = Vec::new();
    let mut length: usize = 0;
    while let Some(frame) = incoming.frame().await {
        // Whoever sends half a request does not wait for an answer.
        let Ok(data) = frame.map_err(|_| Broken)?.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length > WASTE_BYTES_MAX {
            break;
        }
        if length > BODY_BYTES_MAX {
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(&data);
        }
    }
    if length > BODY_BYTES_MAX {
        let message = format!("The request is longer than {BODY_BYTES_MAX} bytes.");
        return Ok(Err((StatusCode::PAYLOAD_TOO_LARGE, message)));
    }
    let wrong = |error| (StatusCode::BAD_REQUEST, format!("The request is no JSON: {error}."));
    Ok(serde_json::from_slice(&bytes).map_err(wrong))
}

/// About how many tokens a request is: four bytes each.
fn tokens(asked: &Value) -> usize {
    let parts = ["system", "messages", "tools"].map(|name| asked.get(name));
    let bytes: usize = parts.into_iter().flatten().map(|part| part.to_string().len()).sum();
    bytes.div_ceil(4)
}
