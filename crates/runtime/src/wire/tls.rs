//! Encrypted connections: one implementation of the cryptography, and whom to trust. Whom this
//! machine trusts is read only if an address is encrypted at all; that takes a few milliseconds,
//! and a run against a server of one's own should not pay them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::{Client, ClientBuilder, redirect};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;

/// Why nobody can be talked with in secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the certificates in {path} cannot be used")]
    File { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("there is no certificate in {path}")]
    Empty { path: PathBuf },
    #[error("encryption cannot be set up")]
    Setup(#[from] rustls::Error),
    #[error("no connection can be set up")]
    Client(#[from] reqwest::Error),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Plain,
    Encrypted,
}

/// A client to be finished by whoever knows how long to wait. Follows nobody anywhere: wherever
/// else a provider points, the key does not go.
pub(crate) fn builder(scheme: Scheme, ca_file: Option<&Path>) -> Result<ClientBuilder, Error> {
    let builder = Client::builder().redirect(redirect::Policy::none()).referer(false);
    Ok(builder.tls_backend_preconfigured(config(scheme, ca_file)?))
}

fn config(scheme: Scheme, ca_file: Option<&Path>) -> Result<ClientConfig, Error> {
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&crypto));
    let config = config.with_safe_default_protocol_versions()?;
    Ok(match scheme {
        // Never used: an address that is not encrypted leads nowhere that is.
        Scheme::Plain => {
            config.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
        Scheme::Encrypted => {
            let extra = ca_file.map(certificates).transpose()?.unwrap_or_default();
            let verifier = Verifier::new_with_extra_roots(extra, crypto)?;
            let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
            config.with_no_client_auth()
        }
    })
}

/// What is trusted besides whom the machine trusts.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |source| Error::File { path: path.to_owned(), source };
    let read = CertificateDer::pem_file_iter(path).map_err(failed)?;
    let found: Vec<_> = read.collect::<Result<_, _>>().map_err(failed)?;
    if found.is_empty() {
        return Err(Error::Empty { path: path.to_owned() });
    }
    Ok(found)
}

/// Whether trust is what is missing: nothing that another try would bring.
pub(crate) fn is_distrust(error: &reqwest::Error) -> bool {
    let mut at: Option<&(dyn std::error::Error + 'static)> = std::error::Error::source(error);
    while let Some(error) = at {
        if let Some(rustls::Error::InvalidCertificate(_)) = error.downcast_ref() {
            return true;
        }
        // An I/O error hides what it was made from, and may be made from another.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let wrapped = wrapped.map(|inner| inner as &(dyn std::error::Error + 'static));
        at = wrapped.or_else(|| error.source());
    }
    false
}
