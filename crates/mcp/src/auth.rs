//! Logging in at a server: the authorization-code flow of the SDK, with the page opened and the
//! redirect caught by whoever talks with the person.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::auth::OAuthState;
use rmcp::transport::{
    AuthClient, AuthError, AuthorizationManager, AuthorizationRequest, CredentialStore,
    StoredCredentials,
};

use crate::error::Error;
use crate::http::{self, Web, choose_cryptography};
use crate::logs::clip;
use crate::name;

/// What a person may know that a server does not say. All of it is optional but where the page
/// returns to.
#[derive(Clone, Debug, Default)]
pub struct LoginOptions {
    /// A loopback address that the caller listens on, such as `http://127.0.0.1:8765/callback`.
    pub redirect_uri: String,
    /// For servers at which clients are registered by hand.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// An https address at which a document describes us.
    pub client_metadata_url: Option<String>,
    /// Empty: what the server asks for.
    pub scopes: Vec<String>,
}

/// A login under way. The page is to be opened by a person; where it redirects to ends it.
pub struct Login {
    pub(crate) server: String,
    pub(crate) url: String,
    pub(crate) state: OAuthState,
    pub(crate) slot: Arc<Mutex<Option<AuthClient<Web>>>>,
    pub(crate) web: Web,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Login {
    /// The page to open.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `callback` is the whole address the page redirected to. After it, `restart` the server.
    pub async fn finish(mut self, callback: &str) -> Result<(), Error> {
        let failed = |error: AuthError| failure(&self.server, &error);
        self.state.handle_callback_url(callback).await.map_err(failed)?;
        let manager = self.state.into_authorization_manager();
        let manager = manager.ok_or_else(|| Error::Authorization {
            server: self.server.clone(),
            why: "the login did not finish".to_owned(),
        })?;
        let client = AuthClient::new(self.web, manager);
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
        Ok(())
    }
}

fn failure(server: &str, error: &AuthError) -> Error {
    Error::Authorization { server: server.to_owned(), why: clip(&error.to_string(), 400) }
}

/// Begins a login; `challenge` is what the server said when it refused us, if it did.
pub(crate) async fn begin(
    server: &str,
    url: &str,
    store: Store,
    challenge: Option<String>,
    options: LoginOptions,
) -> Result<(String, OAuthState), Error> {
    choose_cryptography();
    let failed = |error: AuthError| failure(server, &error);
    let mut manager = AuthorizationManager::new(url).await.map_err(failed)?;
    manager.set_credential_store(store.clone());
    let mut request = AuthorizationRequest::new(options.redirect_uri).with_client_name("locum");
    request.scopes = options.scopes;
    if request.scopes.is_empty() {
        request.scopes = store.wider(challenge.as_deref()).unwrap_or_default();
    }
    request.client_id = options.client_id;
    request.client_secret = options.client_secret;
    request.client_metadata_url = options.client_metadata_url;
    request.challenge = challenge;
    let mut state = OAuthState::Unauthorized(manager);
    state.start_authorization(request).await.map_err(failed)?;
    let url = state.get_authorization_url().await.map_err(failed)?;
    Ok((url, state))
}

/// A login from an earlier run, if there is one that still holds.
pub(crate) async fn restore(url: &str, store: Store, web: Web) -> Option<AuthClient<Web>> {
    choose_cryptography();
    if !store.is_there() {
        return None;
    }
    let mut manager = AuthorizationManager::new(url).await.ok()?;
    manager.set_credential_store(store);
    let known = manager.initialize_from_store().await.ok()?;
    known.then(|| AuthClient::new(web, manager))
}

/// Tokens of one server: in a file that only its owner can read, or in memory.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    path: Option<PathBuf>,
    memory: Arc<Mutex<Option<StoredCredentials>>>,
}

impl Store {
    /// The address is part of the file's name: another address under an old name must not be
    /// sent the old one's token.
    pub(crate) fn new(folder: Option<&Path>, server: &str, url: &str) -> Store {
        let tail = name::hex(&name::digest([server.as_bytes(), url.as_bytes()]));
        let clean = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let server: String = server.chars().take(40).map(clean).collect();
        let path = folder.map(|folder| folder.join(format!("{server}-{}.json", &tail[..12])));
        Store { path, memory: Arc::default() }
    }

    fn is_there(&self) -> bool {
        match &self.path {
            Some(path) => path.exists(),
            None => self.memory.lock().unwrap_or_else(PoisonError::into_inner).is_some(),
        }
    }

    fn read(&self) -> io::Result<Option<StoredCredentials>> {
        let Some(path) = &self.path else {
            return Ok(self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone());
        };
        match fs::read(path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whole or not at all, and never readable by others, not even for a moment.
    fn write(&self, credentials: StoredCredentials) -> io::Result<()> {
        let Some(path) = &self.path else {
            *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = Some(credentials);
            return Ok(());
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let draft = path.with_extension("new");
        let _left_from_a_crash = fs::remove_file(&draft);
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&draft)?;
        file.write_all(&serde_json::to_vec(&credentials)?)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    }

    /// Some: what we may do already and what the server now wants on top. A login for the new
    /// alone would lose the old.
    fn wider(&self, challenge: Option<&str>) -> Option<Vec<String>> {
        let wanted = http::scope(challenge.filter(|text| text.contains("insufficient_scope"))?)?;
        let mut scopes = self.read().ok()??.granted_scopes;
        for scope in wanted.split_whitespace() {
            if !scopes.iter().any(|known| known == scope) {
                scopes.push(scope.to_owned());
            }
        }
        Some(scopes)
    }

    pub(crate) fn forget(&self) -> io::Result<()> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).take();
        match self.path.as_ref().map(fs::remove_file) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Some(_) | None => Ok(()),
        }
    }

    fn failed(&self, error: &io::Error) -> AuthError {
        let path = self.path.as_deref().unwrap_or(Path::new("memory"));
        AuthError::InternalError(format!("{}: {error}", path.display()))
    }
}

#[async_trait]
impl CredentialStore for Store {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        self.read().map_err(|error| self.failed(&error))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        self.write(credentials).map_err(|error| self.failed(&error))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.forget().map_err(|error| self.failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use rmcp::transport::StoredCredentials;

    use super::Store;

    #[test]
    fn tokens_are_their_owners_alone() {
        let folder = std::env::temp_dir().join(format!("locum-mcp-store-{}", std::process::id()));
        let store = Store::new(Some(&folder), "a b/../c", "https://x");
        let other = Store::new(Some(&folder), "a b/../c", "https://y");
        assert!(store.read().expect("readable").is_none());
        let credentials = StoredCredentials::new("id".to_owned(), None, Vec::new(), None);
        store.write(credentials.clone()).expect("written");
        store.write(credentials).expect("written again");
        let read = store.read().expect("readable").expect("there");
        assert_eq!(read.client_id, "id");
        assert!(other.read().expect("readable").is_none(), "another address has another login");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let path = store.path.as_ref().expect("a file");
            let mode = std::fs::metadata(path).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        store.forget().expect("forgotten");
        store.forget().expect("forgotten twice");
        assert!(!store.is_there());
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
