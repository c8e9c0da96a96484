//! How one server is reached: everything a start needs and nothing that is started, so that a
//! start under way does not keep alive what it is for.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::transport::AuthClient;

use crate::auth::{self, Login, LoginOptions, Store};
use crate::client::{Client, Reports};
use crate::connection::{Connection, Era, Failure, Route};
use crate::error::Error;
use crate::event::Asks;
use crate::http::{self, Web};
use crate::logs::Logs;
use crate::spec::{ServerSpec, Settings, Transport};
use crate::stale::Stale;
use crate::tool::Listing;

pub(crate) struct Parts {
    pub(crate) spec: ServerSpec,
    pub(crate) settings: Arc<Settings>,
    pub(crate) asks: Arc<Asks>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) watched: Arc<Mutex<BTreeSet<String>>>,
    pub(crate) store: Store,
    pub(crate) login: Arc<Mutex<Option<AuthClient<Web>>>>,
}

impl Parts {
    pub(crate) fn new(spec: ServerSpec, settings: Arc<Settings>, asks: Arc<Asks>) -> Parts {
        let url = match &spec.transport {
            Transport::Http { url, .. } => url.as_str(),
            Transport::Stdio { .. } => "",
        };
        Parts {
            store: Store::new(settings.credentials.as_deref(), &spec.name, url),
            spec,
            settings,
            asks,
            logs: Arc::default(),
            watched: Arc::default(),
            login: Arc::default(),
        }
    }

    /// Connects, in the newer way or else in the older, and reads the tools: a server that does
    /// not even list them is not there.
    pub(crate) async fn open(&self, era: Era) -> Result<(Connection, Listing), Failure> {
        let opened =
            Connection::open(self.client(), self.route().await?, era, self.spec.start_timeout);
        let connection = match (opened.await, era) {
            (Ok(connection), _) => connection,
            (Err(Failure::Passing(why)), Era::Unknown | Era::Discover) => {
                self.logs.note(&format!("tries the older way to begin: {why}"));
                let route = self.route().await?;
                let (client, limit) = (self.client(), self.spec.start_timeout);
                Connection::open(client, route, Era::Initialize, limit).await?
            }
            (Err(failure), _) => return Err(failure),
        };
        let listed = connection.tools(&self.spec, self.spec.start_timeout).await;
        let listing = listed.map_err(|error| {
            if let Error::Login { challenge, .. } = error {
                return Failure::Login(challenge);
            }
            Failure::Passing(error.to_string())
        })?;
        Ok((connection, listing))
    }

    fn client(&self) -> Client {
        Client {
            server: self.spec.name.clone(),
            settings: Arc::clone(&self.settings),
            asks: Arc::clone(&self.asks),
            logs: Arc::clone(&self.logs),
            watched: Arc::clone(&self.watched),
            stale: Arc::new(Stale::new()),
            reports: Arc::new(Reports::default()),
        }
    }

    async fn route(&self) -> Result<Route, Failure> {
        let (url, headers) = match &self.spec.transport {
            Transport::Stdio { .. } => {
                let launch = (self.settings.wrap)(&self.spec);
                return launch.map(Route::Program).map_err(|error| {
                    let is_missing = error.kind() == std::io::ErrorKind::NotFound;
                    let why = if is_missing { "" } else { "it cannot be enclosed: " };
                    Failure::Hopeless(format!("{why}{error}"))
                });
            }
            Transport::Http { url, headers } => (url, headers),
        };
        let config = Box::new(http::settings(url, headers).map_err(Failure::Hopeless)?);
        let web = Web::new().map_err(|error| Failure::Hopeless(error.to_string()))?;
        if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
            return Ok(Route::Web(web, config));
        }
        let known = self.login.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let account = match known {
            Some(account) => Some(account),
            None => auth::restore(url, self.store.clone(), web.clone()).await,
        };
        Ok(match account {
            Some(account) => Route::Account(account, config),
            None => Route::Web(web, config),
        })
    }

    pub(crate) async fn begin_login(
        &self,
        challenge: Option<String>,
        options: LoginOptions,
    ) -> Result<Login, Error> {
        let server = self.spec.name.clone();
        let Transport::Http { url, .. } = &self.spec.transport else {
            let why = "it is a program on this machine and has no logins".to_owned();
            return Err(Error::Authorization { server, why });
        };
        let web = Web::new().map_err(|error| Error::Authorization {
            server: server.clone(),
            why: error.to_string(),
        })?;
        let begun = auth::begin(&server, url, self.store.clone(), challenge, options);
        let (url, state) = begun.await?;
        Ok(Login { server, url, state, slot: Arc::clone(&self.login), web })
    }

    pub(crate) fn forget_login(&self) -> Result<(), Error> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.store.forget().map_err(|error| Error::Authorization {
            server: self.spec.name.clone(),
            why: error.to_string(),
        })
    }
}
