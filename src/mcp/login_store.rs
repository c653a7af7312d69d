//! Storage of the logins at MCP servers: one file for each server address, readable by this user only.

use agent_core::secret::Secret;
use agent_redactor::NamedSecret;
use agent_runtime::private_file;
use async_trait::async_trait;
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationMetadata, CredentialRefreshGuard, CredentialStore, StoredCredentials,
};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum bytes of a stored login; tokens have a few KiB.
const MAX_BYTES: u64 = 1 << 20;
/// Permission bits that let other users read or write the file.
const OTHERS: u32 = 0o077;

/// A login: the tokens, and what is needed to renew them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// Address of the server; the tokens are sent only there.
    pub url: String,
    /// The client as which the user logged in.
    pub client: RegisteredClient,
    /// The authorization server.
    pub metadata: AuthorizationMetadata,
    /// The tokens.
    pub credentials: StoredCredentials,
}

/// A client that the authorization server knows (RFC 6749 section 2).
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisteredClient {
    /// Its identifier.
    pub id: String,
    /// Its secret; a client on the user's machine usually has none.
    pub secret: Option<String>,
    /// The address to which the user is redirected.
    pub redirect_url: String,
}

impl std::fmt::Debug for RegisteredClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegisteredClient").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Login {
    /// Returns the secrets of the login.
    pub fn secrets(&self) -> Vec<NamedSecret> {
        // As the authorization server sent them (RFC 6749 section 5.1).
        let tokens = serde_json::to_value(&self.credentials.token_response).unwrap_or_default();
        let tokens = ["access_token", "refresh_token", "id_token"].map(|field| tokens[field].as_str());
        let values = tokens.into_iter().chain([self.client.secret.as_deref()]).flatten();
        let secret = |value| NamedSecret { name: "MCP login".to_owned(), value: Secret::new(value) };
        values.map(secret).collect()
    }
}

/// The stored login at one server.
#[derive(Debug, Clone)]
pub struct LoginStore {
    directory: PathBuf,
    url: String,
}

impl LoginStore {
    /// Returns the storage for the server at `url`, in the user's state directory.
    pub fn new(state: &Path, url: &Url) -> Self {
        Self { directory: state.join("mcp-logins"), url: url.to_string() }
    }

    fn file(&self, extension: &str) -> PathBuf {
        self.directory.join(format!("{}.{extension}", blake3::hash(self.url.as_bytes()).to_hex()))
    }

    /// Loads the login; `None` when there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or another user can read or may have written it.
    pub fn load(&self) -> io::Result<Option<Login>> {
        let (file, metadata) = match private_file::open(&self.file("json")) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        if !private_file::is_own(&metadata, OTHERS) {
            return Err(io::Error::other("other users can read or write the stored login; log in again"));
        }
        let mut json = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut json)?;
        let login: Login = serde_json::from_slice(&json)?;
        Ok(Some(login).filter(|login| login.url == self.url))
    }

    /// Stores the login: writes a new file and renames it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, login: &Login) -> io::Result<()> {
        private_file::create_private_dir(&self.directory)?;
        private_file::replace(&self.file("json"), &serde_json::to_vec(login)?)
    }

    /// Deletes the login; returns whether there was one.
    ///
    /// # Errors
    /// When it cannot be deleted.
    #[expect(clippy::disallowed_methods, reason = "the file is this module's own")]
    pub fn delete(&self) -> io::Result<bool> {
        match std::fs::remove_file(self.file("json")) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until no other process renews the tokens.
    fn lock(&self) -> io::Result<std::fs::File> {
        private_file::create_private_dir(&self.directory)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(self.file("lock"))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }
}

fn unusable(error: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl CredentialStore for LoginStore {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        Ok(Self::load(self).map_err(unusable)?.map(|login| login.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        // A login that was deleted meanwhile stays deleted.
        let Some(login) = Self::load(self).map_err(unusable)? else { return Ok(()) };
        Self::save(self, &Login { credentials, ..login }).map_err(unusable)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.delete().map(drop).map_err(unusable)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let store = self.clone();
        let locked = tokio::task::spawn_blocking(move || store.lock()).await.map_err(unusable)?;
        Ok(Some(CredentialRefreshGuard::new(locked.map_err(unusable)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn login(url: &Url) -> Login {
        let client =
            RegisteredClient { id: "c".into(), secret: None, redirect_url: "http://127.0.0.1/".into() };
        let credentials = StoredCredentials::new("c".into(), None, Vec::new(), None);
        Login { url: url.to_string(), client, metadata: AuthorizationMetadata::default(), credentials }
    }

    #[test]
    fn a_login_is_private_to_the_user_and_belongs_to_one_address() {
        let state = tempfile::tempdir().unwrap();
        let url = Url::parse("https://h/mcp").unwrap();
        let store = LoginStore::new(state.path(), &url);
        assert!(store.load().unwrap().is_none());
        store.save(&login(&url)).unwrap();
        assert_eq!(store.load().unwrap().unwrap().url, "https://h/mcp");
        let other = LoginStore::new(state.path(), &Url::parse("https://h/other").unwrap());
        assert!(other.load().unwrap().is_none());
        let file = store.file("json");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(store.load().unwrap_err().to_string().contains("other users"));
        assert!(store.delete().unwrap());
        assert!(!store.delete().unwrap());
    }
}
