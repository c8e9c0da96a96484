//! The first words with a server, and what its errors mean.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ClientServiceExt as _;
use rmcp::model::{ProtocolVersion, ServerResult};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService};
use rmcp::transport::streamable_http_client::{AuthRequiredError, InsufficientScopeError};
use rmcp::transport::{AuthError, Transport};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client::Client;
use crate::connection::{Era, Failure};
use crate::gate::Gate;
use crate::logs::clip;
use crate::watch::over;

pub(crate) async fn begin<T>(
    client: Client,
    transport: Gate<T>,
    era: Era,
    limit: Duration,
    ended: watch::Receiver<Option<String>>,
) -> Result<RunningService<RoleClient, Client>, Failure>
where
    T: Transport<RoleClient> + 'static,
{
    let lifecycle = match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => {
            let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
            ClientLifecycleMode::Discover { preferred_versions }
        }
        Era::Unknown => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    let logs = Arc::clone(&client.logs);
    let started = timeout(limit, client.serve_with_lifecycle(transport, lifecycle)).await;
    match started {
        Err(_) => {
            let why = format!("it did not introduce itself within {} s", limit.as_secs_f32());
            Err(Failure::Passing(why))
        }
        Ok(Err(error)) => {
            if let Some(challenge) = error.auth_challenge() {
                return Err(Failure::Login(challenge.to_owned()));
            }
            if error.is_authorization_required() {
                return Err(Failure::Login("Bearer".to_owned()));
            }
            // What its program said before it ended is worth more than that it ended.
            let over = timeout(Duration::from_secs(1), over(ended)).await;
            let why = match (&error, over) {
                (ClientInitializeError::ConnectionClosed(_), Ok(why)) => why,
                _ => clip(&chain(&error), 400),
            };
            logs.note(&format!("no connection: {why}"));
            // Only results of the newer kind say what type they are.
            let newer = matches!(
                error,
                ClientInitializeError::ExpectedInitResult(Some(ServerResult::TaskAckResult(_)))
            );
            Err(if newer { Failure::Odd(why) } else { Failure::Passing(why) })
        }
        Ok(Ok(running)) => {
            let version = running.peer_info().map(|info| info.protocol_version.clone());
            match version {
                Some(version) if !ProtocolVersion::KNOWN_VERSIONS.contains(&version) => {
                    let why = format!("it speaks protocol version {version}, which is unknown");
                    Err(Failure::Hopeless(clip(&why, 200)))
                }
                Some(_) | None => Ok(running),
            }
        }
    }
}

/// What a server said about who may come in, wherever in the error it is.
pub(crate) fn challenge(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(required) = error.downcast_ref::<AuthRequiredError>() {
            return Some(required.www_authenticate_header.clone());
        }
        if let Some(scope) = error.downcast_ref::<InsufficientScopeError>() {
            return Some(scope.www_authenticate_header.clone());
        }
        if let Some(AuthError::AuthorizationRequired) = error.downcast_ref::<AuthError>() {
            return Some("Bearer".to_owned());
        }
        next = error.source();
    }
    None
}

/// The SDK names its own types in some errors, which says nothing to anybody else.
fn without_types(text: &str) -> String {
    match text.split_once("Transport [").zip(text.rsplit_once("] error: ")) {
        Some((_, (_, cause))) => cause.to_owned(),
        None => text.to_owned(),
    }
}

/// An error with its causes: the innermost usually is the one a person can act on.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = clip(&without_types(&error.to_string()), 300);
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = clip(&without_types(&cause.to_string()), 300);
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    clip(&text, 600)
}

#[cfg(test)]
mod tests {
    use super::without_types;

    #[test]
    fn types_are_left_out() {
        let cases = [
            ("Send message error Transport [a::Gate<b::C<D>>] error: refused", "refused"),
            ("Transport [x] error: Transport [y] error: gone", "gone"),
            ("plain", "plain"),
            ("a] error: b", "a] error: b"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_types(text), expected, "{text}");
        }
    }
}
