//! Logging in at an MCP server: the page is opened by the person, and ends at a loopback address
//! that is listened on here, or at one that the person copies.

use std::io;
use std::time::Duration;

use locum_mcp::{LoginOptions, Servers};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::complaint::Complaint;
use crate::flags::McpLogin;
use crate::print;
use crate::text::clean;

/// For a person to find a password.
const PATIENCE: Duration = Duration::from_mins(10);
/// For a browser to say what it wants.
const REQUEST: Duration = Duration::from_secs(5);
const REQUEST_BYTES: usize = 16 << 10;
const PATH: &str = "/callback";

pub(crate) async fn log_in(wanted: &McpLogin, servers: &Servers) -> Result<u8, Complaint> {
    let name = wanted.server.as_str();
    let failed = |error: io::Error| Complaint::login(name, &error.to_string());
    // Only this machine reaches it, and only until the page has answered.
    let listener = TcpListener::bind(("127.0.0.1", wanted.port.unwrap_or(0))).await;
    let listener = listener.map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let base = format!("http://127.0.0.1:{port}");
    let options = LoginOptions {
        redirect_uri: format!("{base}{PATH}"),
        client_id: wanted.client_id.clone(),
        scopes: wanted.scopes.clone(),
        ..LoginOptions::default()
    };
    let begun = servers.login(name, options).await;
    let login = begun.map_err(|error| Complaint::login(name, &error.to_string()))?;
    print::line(&clean(&format!("Open this page and log in at {name}:")));
    print::line(&clean(login.url()));
    let answer = if wanted.code {
        print::note("Then paste the address it ended at, and press Enter.");
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().read_line(&mut line).map(|_| line.trim().to_owned())
        });
        read.await.map_err(|error| failed(error.into()))?.map_err(failed)?
    } else {
        let state = parameter(login.url(), "state").unwrap_or_default().to_owned();
        let heard = timeout(PATIENCE, hear(&listener, &state)).await;
        let target = heard.map_err(|_| Complaint::login(name, "the page did not answer"))?;
        format!("{base}{}", target.map_err(failed)?)
    };
    drop(listener);
    let finished = login.finish(&answer).await;
    finished.map_err(|error| Complaint::login(name, &error.to_string()))?;
    let again = servers.restart(name);
    again.map_err(|error| Complaint::server(name, &error))?;
    let tools = servers.tools(REQUEST * 2).await;
    let count = tools.tools.iter().filter(|tool| tool.server == name).count();
    match tools.missing.into_iter().find(|missing| missing.server == name) {
        None => print::line(&clean(&format!("Logged in at {name}. Tools: {count}"))),
        Some(it) => print::line(&clean(&format!("Logged in at {name}, but: {}", it.why))),
    }
    Ok(0)
}

/// Waits for the page. Whoever comes with something else is sent away: other pages of the browser
/// can reach this address too, but do not know the state.
async fn hear(listener: &TcpListener, state: &str) -> io::Result<String> {
    loop {
        let (stream, _) = listener.accept().await?;
        // A visitor that says nothing must not keep out the one that is waited for.
        if let Ok(Ok(Some(target))) = timeout(REQUEST, visit(stream, state)).await {
            return Ok(target);
        }
    }
}

async fn visit(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    state: &str,
) -> io::Result<Option<String>> {
    let mut text = Vec::new();
    let mut part = [0; 2048];
    // The whole head is read: whoever is answered and left while still writing sees a failure.
    while !text.windows(4).any(|end| end == b"\r\n\r\n") && text.len() < REQUEST_BYTES {
        let read = stream.read(&mut part).await?;
        if read == 0 {
            break;
        }
        text.extend_from_slice(&part[..read]);
    }
    let text = String::from_utf8_lossy(&text);
    let target = wanted(text.lines().next().unwrap_or_default(), state).map(str::to_owned);
    let (status, words) = match target {
        Some(_) => ("200 OK", "locum has heard the answer. You can close this page."),
        None => ("404 Not Found", "Nothing is here."),
    };
    let length = words.len();
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{words}"
    );
    stream.write_all(reply.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(target)
}

/// The target of a request line, if it is the answer that is waited for.
fn wanted<'l>(line: &'l str, state: &str) -> Option<&'l str> {
    let mut words = line.split(' ');
    let (Some("GET"), Some(target)) = (words.next(), words.next()) else { return None };
    let is_answer = parameter(target, "code").or(parameter(target, "error")).is_some();
    let ours = !state.is_empty() && parameter(target, "state") == Some(state);
    let path = target.split('?').next();
    (path == Some(PATH) && is_answer && ours).then_some(target)
}

/// As it is written; nothing is decoded, because what is compared was written by the same hand.
fn parameter<'u>(url: &'u str, name: &str) -> Option<&'u str> {
    let (_, query) = url.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::{visit, wanted};

    #[tokio::test]
    async fn a_visitor_is_answered_once_it_has_said_everything() {
        let (mut browser, ours) = tokio::io::duplex(4096);
        let mut visited = pin!(visit(ours, "s1"));
        let mut context = Context::from_waker(Waker::noop());
        browser.write_all(b"GET /callback?code=a&state=s1 HTTP/1.1\r\nHost").await.unwrap();
        assert!(visited.as_mut().poll(&mut context).is_pending());
        browser.write_all(b": here\r\n\r\n").await.unwrap();
        let Poll::Ready(Ok(target)) = visited.as_mut().poll(&mut context) else {
            panic!("not answered");
        };
        assert_eq!(target.as_deref(), Some("/callback?code=a&state=s1"));
        let mut answer = String::new();
        browser.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }

    #[test]
    fn only_the_answer_that_is_waited_for_is_heard() {
        let cases = [
            ("GET /callback?code=a&state=s1 HTTP/1.1", true),
            ("GET /callback?state=s1&error=access_denied HTTP/1.1", true),
            ("GET /callback?code=a&state=s2 HTTP/1.1", false),
            ("GET /callback?code=a HTTP/1.1", false),
            ("GET /callback?state=s1 HTTP/1.1", false),
            ("POST /callback?code=a&state=s1 HTTP/1.1", false),
            ("GET /favicon.ico?code=a&state=s1 HTTP/1.1", false),
            ("", false),
        ];
        for (line, heard) in cases {
            assert_eq!(wanted(line, "s1").is_some(), heard, "{line}");
        }
        assert!(wanted("GET /callback?code=a&state= HTTP/1.1", "").is_none());
    }
}
