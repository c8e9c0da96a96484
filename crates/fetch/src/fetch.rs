//! The way to a page: each address on it is judged, then asked, then perhaps followed on.

use std::error::Error as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Response, Url};
use tokio::time::timeout;

use crate::address::why_private;
use crate::body::{self, Body};
use crate::client::{Blocked, Client};
use crate::page::{self, Kind, Page};
use crate::refused::Refused;

const URL_BYTES_MAX: usize = 8 * 1024;

/// What a model reads best first; the rest is taken as well, and named.
const WANTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub redirects: usize,
    /// For everything, from the first look-up to the last byte.
    pub total: Duration,
    /// For the headers of each answer.
    pub first_byte: Duration,
    /// Of the body, unpacked.
    pub body_bytes: usize,
    pub header_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            redirects: 5,
            total: Duration::from_secs(20),
            first_byte: Duration::from_secs(10),
            body_bytes: 2 * 1024 * 1024,
            header_bytes: 64 * 1024,
        }
    }
}

/// Where a redirect may lead without being told instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// The same host, with or without `www`, and encrypted if it was not.
    #[default]
    Place,
    /// The same without `www` coming or going.
    Host,
    Nowhere,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub url: String,
    pub follow: Follow,
    pub limits: Limits,
}

impl Request {
    #[must_use]
    pub fn new(url: impl Into<String>) -> Request {
        Request { url: url.into(), follow: Follow::default(), limits: Limits::default() }
    }
}

/// A page that says 404 is a page too: its status says so.
pub async fn fetch(request: &Request, client: &Client) -> Result<Page, Refused> {
    let Request { url, follow, limits } = request;
    let slow = |_| Refused::TooSlow { url: short(url), after: limits.total };
    let (url, response, body, hops) =
        timeout(limits.total, travel(url, *follow, limits, client)).await.map_err(slow)??;
    let status = response.status;
    // Making text of it keeps a processor busy, which others on this thread are not to wait for.
    let made = tokio::task::spawn_blocking(move || {
        page::make(page::Raw { url, status, kind: response.kind, body, hops })
    });
    made.await.map_err(|error| Refused::Machine { why: error.to_string() })
}

struct Head {
    status: u16,
    kind: Kind,
}

async fn travel(
    url: &str,
    follow: Follow,
    limits: &Limits,
    client: &Client,
) -> Result<(Url, Head, Body, Vec<String>), Refused> {
    let mut at = parse(url)?;
    let mut hops: Vec<String> = Vec::new();
    loop {
        let on_the_way = |refused: Refused| match hops.last() {
            Some(before) => {
                Refused::Redirect { url: before.clone(), to: told(&at), source: Box::new(refused) }
            }
            None => refused,
        };
        check(&at, client).map_err(on_the_way)?;
        let response = ask(&at, limits, client).await.map_err(on_the_way)?;
        let status = response.status();
        if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
            let kind = Kind::of(response.headers().get(CONTENT_TYPE));
            let body = body::read(response, &told(&at), &kind, limits).await?;
            return Ok((at, Head { status: status.as_u16(), kind }, body, hops));
        }
        hops.push(told(&at));
        if hops.len() > limits.redirects {
            return Err(Refused::TooManyRedirects { url: short(url), max: limits.redirects });
        }
        let to = next(&at, response.headers(), status.as_u16())?;
        if !is_followed(follow, &at, &to) {
            let (url, place) = (told(&at), told(&to));
            // What would be refused anyway is told as that.
            return Err(match check(&to, client) {
                Ok(()) => Refused::Elsewhere { url, to: place },
                Err(why) => Refused::Redirect { url, to: place, source: Box::new(why) },
            });
        }
        at = to;
    }
}

fn is_followed(follow: Follow, from: &Url, to: &Url) -> bool {
    match follow {
        Follow::Place => is_same_place(from, to),
        Follow::Host => is_same_place(from, to) && from.host_str() == to.host_str(),
        Follow::Nowhere => false,
    }
}

/// Whoever allowed an address allowed the place it is at: its host, with or without `www`, and
/// encrypted if it was not. Where else it leads is asked for and judged like any other address.
fn is_same_place(from: &Url, to: &Url) -> bool {
    let host =
        |url: &Url| url.host_str().map(|host| host.strip_prefix("www.").unwrap_or(host).to_owned());
    let ports = (from.port(), to.port());
    match (from.scheme(), to.scheme()) {
        ("http", "https") => host(from) == host(to) && ports == (None, None),
        (one, other) => one == other && host(from) == host(to) && ports.0 == ports.1,
    }
}

fn next(at: &Url, headers: &HeaderMap, status: u16) -> Result<Url, Refused> {
    let astray = || Refused::Astray { url: told(at), status };
    let to = headers.get(LOCATION).map(|to| to.as_bytes().to_vec()).ok_or_else(astray)?;
    let to = String::from_utf8(to).map_err(|_| astray())?;
    if to.len() > URL_BYTES_MAX {
        return Err(astray());
    }
    at.join(to.trim()).map_err(|_| astray())
}

fn parse(url: &str) -> Result<Url, Refused> {
    let bad = |why: String| Refused::NotAnAddress { url: short(url), why };
    if url.len() > URL_BYTES_MAX {
        return Err(bad(format!("it has {} bytes", url.len())));
    }
    Url::parse(url.trim()).map_err(|error| bad(error.to_string()))
}

/// Everything that can be judged before anybody is asked. The parser of addresses has by now made
/// plain numbers of every way to write them: `0x7f.1` and `2130706433` are 127.0.0.1 here.
fn check(url: &Url, client: &Client) -> Result<(), Refused> {
    let scheme = url.scheme();
    if scheme != "http" && scheme != "https" {
        return Err(Refused::Scheme { url: told(url), scheme: scheme.to_owned() });
    }
    let bad = |why: &str| Refused::NotAnAddress { url: told(url), why: why.to_owned() };
    let host = url.host_str().ok_or_else(|| bad("it names no machine"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Refused::Credentials { host: host.to_owned() });
    }
    let port = url.port_or_known_default().unwrap_or(443);
    let number: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    if let Some(address) = number {
        let allowed = client.is_allowed(SocketAddr::new(address, port));
        if let Some(why) = why_private(address).filter(|_| !allowed) {
            return Err(Refused::Private { url: told(url), address, why });
        }
    }
    if port < 1_024 && port != 80 && port != 443 {
        return Err(Refused::Port { url: told(url), port });
    }
    Ok(())
}

async fn ask(url: &Url, limits: &Limits, client: &Client) -> Result<Response, Refused> {
    let port = url.port_or_known_default().unwrap_or(443);
    let machine = |error: reqwest::Error| Refused::Machine { why: error.to_string() };
    let connection = client.connect(port, limits.first_byte).map_err(machine)?;
    let mut bare = url.clone();
    bare.set_fragment(None);
    let question = connection.get(bare).header(ACCEPT, WANTED).header(ACCEPT_ENCODING, "gzip");
    let answer = timeout(limits.first_byte, question.send()).await;
    let silent = |_| Refused::Silent { url: told(url), after: limits.first_byte };
    let response = answer.map_err(silent)?.map_err(|error| failed(url, limits, &error))?;
    let bytes: usize =
        response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > limits.header_bytes {
        let max = limits.header_bytes;
        return Err(Refused::Headers { url: told(url), bytes, max });
    }
    Ok(response)
}

/// The innermost cause says most; a blocked address says it itself.
fn failed(url: &Url, limits: &Limits, error: &reqwest::Error) -> Refused {
    let mut why = error.to_string();
    let mut at = error.source();
    while let Some(inner) = at {
        if let Some(Blocked { address, why }) = inner.downcast_ref() {
            return Refused::Private { url: told(url), address: *address, why };
        }
        why = inner.to_string();
        at = inner.source();
    }
    if error.is_timeout() {
        return Refused::Silent { url: told(url), after: limits.first_byte };
    }
    Refused::Unreachable { url: told(url), why }
}

/// An address as it may be shown: whole, but for what nobody should read.
pub(crate) fn told(url: &Url) -> String {
    let mut url = url.clone();
    // Neither fails for an address that has a host; one without has nothing to hide there.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    short(url.as_str())
}

fn short(url: &str) -> String {
    const SHOWN: usize = 300;
    match url.len() {
        ..=SHOWN => url.to_owned(),
        _ => format!("{}…", &url[..url.floor_char_boundary(SHOWN)]),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::{Follow, is_followed, is_same_place};

    #[test]
    fn a_place_is_a_host_and_its_port() {
        let cases = [
            ("http://a.org/x", "https://a.org/y", true),
            ("https://a.org/x", "https://www.a.org/x", true),
            ("https://www.a.org/x", "https://a.org/", true),
            ("https://a.org", "https://A.org./", false),
            ("https://a.org/x", "http://a.org/x", false),
            ("http://a.org:8080/", "http://a.org:8080/y", true),
            ("http://a.org:8080/", "https://a.org/", false),
            ("https://a.org/", "https://a.org:8443/", false),
            ("https://a.org/", "https://b.a.org/", false),
            ("https://b.a.org/", "https://a.org/", false),
            ("https://a.org/", "https://a.org.evil.net/", false),
            ("https://a.org/", "ftp://a.org/", false),
        ];
        for (from, to, same) in cases {
            let [from, to] = [from, to].map(|it| Url::parse(it).expect("an address"));
            assert_eq!(is_same_place(&from, &to), same, "{from} {to}");
            assert_eq!(is_followed(Follow::Place, &from, &to), same, "{from} {to}");
            assert!(!is_followed(Follow::Nowhere, &from, &to), "{from} {to}");
            let with_www = from.as_str().contains("www.") != to.as_str().contains("www.");
            assert_eq!(is_followed(Follow::Host, &from, &to), same && !with_www, "{from} {to}");
        }
    }
}
