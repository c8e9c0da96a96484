//! Who fetches. A name is looked up once for each connection and every address it has is judged
//! right then, so that a name which means another machine a moment later gains nothing. No proxy
//! is used, whatever the environment says: what is behind it could not be judged.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::Refused;
use crate::address::why_private;

/// Names who asks, so that whoever runs a server knows.
const AGENT: &str = concat!("locum/", env!("CARGO_PKG_VERSION"), " (web_fetch)");

/// No page needs more; the bytes are counted as well.
const HEADERS_MAX: usize = 100;

pub type Looking = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Which addresses a name has. The system's way unless a test says otherwise.
pub trait Lookup: fmt::Debug + Send + Sync {
    fn look_up(&self, name: &str) -> Looking;
}

#[derive(Debug)]
struct System;

impl Lookup for System {
    fn look_up(&self, name: &str) -> Looking {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

#[derive(Clone, Debug)]
pub struct Client {
    tls: ClientConfig,
    allowed: Arc<[SocketAddr]>,
    lookup: Arc<dyn Lookup>,
}

#[derive(Debug)]
pub struct Builder {
    allowed: Vec<SocketAddr>,
    roots: Vec<CertificateDer<'static>>,
    lookup: Arc<dyn Lookup>,
}

impl Client {
    /// With the certificates this machine trusts, and nothing private.
    pub fn new() -> Result<Client, Refused> {
        Client::builder().build()
    }

    #[must_use]
    pub fn builder() -> Builder {
        Builder { allowed: Vec::new(), roots: Vec::new(), lookup: Arc::new(System) }
    }

    pub(crate) fn is_allowed(&self, address: SocketAddr) -> bool {
        self.allowed.contains(&address)
    }

    /// For one connection: only its port tells which private address is allowed.
    pub(crate) fn connect(
        &self,
        port: u16,
        patience: Duration,
    ) -> reqwest::Result<reqwest::Client> {
        let (allowed, lookup) = (Arc::clone(&self.allowed), Arc::clone(&self.lookup));
        reqwest::Client::builder()
            .dns_resolver(Guard { port, allowed, lookup })
            .tls_backend_preconfigured(self.tls.clone())
            .no_proxy()
            .redirect(redirect::Policy::none())
            .http1_only()
            .http1_max_headers(HEADERS_MAX)
            .connect_timeout(patience)
            .pool_max_idle_per_host(0)
            .referer(false)
            .user_agent(AGENT)
            .build()
    }
}

impl Builder {
    /// These and no other private addresses may be fetched from, whatever name leads there.
    #[must_use]
    pub fn allow_private(mut self, addresses: impl IntoIterator<Item = SocketAddr>) -> Builder {
        self.allowed.extend(addresses);
        self
    }

    /// Trusts these certificates instead of the machine's.
    #[must_use]
    pub fn trust_only(
        mut self,
        roots: impl IntoIterator<Item = CertificateDer<'static>>,
    ) -> Builder {
        self.roots.extend(roots);
        self
    }

    #[must_use]
    pub fn lookup(mut self, lookup: Arc<dyn Lookup>) -> Builder {
        self.lookup = lookup;
        self
    }

    pub fn build(self) -> Result<Client, Refused> {
        let told = |error: rustls::Error| Refused::Machine { why: error.to_string() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().map_err(told)?;
        let config = if self.roots.is_empty() {
            config.with_platform_verifier().map_err(told)?
        } else {
            let mut roots = RootCertStore::empty();
            for root in self.roots {
                roots.add(root).map_err(told)?;
            }
            config.with_root_certificates(roots)
        };
        let tls = config.with_no_client_auth();
        Ok(Client { tls, allowed: self.allowed.into(), lookup: self.lookup })
    }
}

/// Every address of the name is one that may not be connected to; this is the first.
#[derive(Debug, thiserror::Error)]
#[error("{address} is for {why}")]
pub(crate) struct Blocked {
    pub(crate) address: IpAddr,
    pub(crate) why: &'static str,
}

struct Guard {
    port: u16,
    allowed: Arc<[SocketAddr]>,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (port, allowed) = (self.port, Arc::clone(&self.allowed));
        let looking = self.lookup.look_up(name.as_str());
        Box::pin(async move {
            let found = looking.await?;
            let mut blocked = None;
            let mut open = Vec::new();
            for address in found {
                let place = SocketAddr::new(address, port);
                match why_private(address) {
                    Some(why) if !allowed.contains(&place) => {
                        blocked = blocked.or(Some(Blocked { address, why }));
                    }
                    Some(_) | None => open.push(place),
                }
            }
            match blocked {
                Some(blocked) if open.is_empty() => Err(blocked.into()),
                Some(_) | None => Ok(Box::new(open.into_iter()) as Addrs),
            }
        })
    }
}
