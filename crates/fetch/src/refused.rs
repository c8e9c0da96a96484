//! Why there is no page.

use std::net::IpAddr;
use std::time::Duration;

/// Each names the address, and says what could be done.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("{url:?} is no address of a page: {why}; give a whole one, with https://")]
    NotAnAddress { url: String, why: String },
    #[error("{url} begins with {scheme}:; only http and https are fetched")]
    Scheme { url: String, scheme: String },
    #[error("the address of {host} holds a name or a password; give it without")]
    Credentials { host: String },
    #[error("port {port} of {url} is not for pages; 80, 443 and those from 1024 on are")]
    Port { url: String, port: u16 },
    #[error("{url} is at {address}, which is for {why}; only public addresses are fetched")]
    Private { url: String, address: IpAddr, why: &'static str },
    #[error("{url} leads to {to}: {source}")]
    Redirect { url: String, to: String, source: Box<Refused> },
    #[error("{url} leads to another place, which was not asked for; if you want it, fetch {to}")]
    Elsewhere { url: String, to: String },
    #[error("{url} leads on after {max} redirects; ask for where it should end")]
    TooManyRedirects { url: String, max: usize },
    #[error("{url} redirects ({status}) to nowhere")]
    Astray { url: String, status: u16 },
    #[error("{url} said nothing within {} s; try again later", after.as_secs())]
    Silent { url: String, after: Duration },
    #[error("{url} took longer than {} s; try again later", after.as_secs())]
    TooSlow { url: String, after: Duration },
    #[error("the headers of {url} have {bytes} bytes, and {max} are enough for any page")]
    Headers { url: String, bytes: usize, max: usize },
    #[error("{url} is sent as {encoding}, which was not asked for and is not understood")]
    Encoding { url: String, encoding: String },
    #[error("{url} grows to more than {ratio} times its size when unpacked; nothing was kept")]
    Bomb { url: String, ratio: usize },
    #[error("{url} is not packed the way it says: {why}")]
    Garbled { url: String, why: String },
    #[error("{url} cannot be reached: {why}")]
    Unreachable { url: String, why: String },
    #[error("nothing can be fetched on this machine: {why}")]
    Machine { why: String },
}
