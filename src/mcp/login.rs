//! Logs in at the authorization server of an MCP server: OAuth 2.1 with PKCE, in the user's own browser. The checks of the protocol
//! (metadata, issuer, resource, state, addresses of other networks) are those of the crate `rmcp`.
//!
//! Source: <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization>.

use super::definition::harmless;
use super::login_store::{Login, LoginStore, RegisteredClient};
use agent_http::own_origin;
use agent_text::lines::{QUOTE_CHARS, one_line};
use reqwest::Url;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    InMemoryCredentialStore, OAuthClientConfig, OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest,
};
use std::sync::Arc;

/// Name of the client at registration.
const CLIENT_NAME: &str = "agent";

/// How to log in at a server.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// Address of the server.
    pub url: Url,
    /// Identifier of a client that the user has registered.
    pub client_id: Option<String>,
    /// Its secret.
    pub client_secret: Option<String>,
    /// Address of a document that describes the client, which is its identifier where the server supports that.
    pub client_metadata_url: Option<String>,
    /// The address to which the browser is redirected.
    pub redirect_url: String,
    /// The scopes to request; empty: those that the server asks for.
    pub scopes: Vec<String>,
    /// Whether the authorization server may have a private address although the server has a public name.
    pub private_network: bool,
}

/// A login that waits for the user.
pub struct PendingLogin {
    session: AuthorizationSession,
    tokens: InMemoryCredentialStore,
    login: LoginParts,
}

struct LoginParts {
    url: Url,
    client: RegisteredClient,
    metadata: rmcp::transport::auth::AuthorizationMetadata,
}

impl PendingLogin {
    /// Finds the authorization server, and registers as a client if needed. `challenge` is the value of `WWW-Authenticate` with which
    /// the server refused a request.
    ///
    /// # Errors
    /// A description of the failure.
    pub async fn begin(options: LoginOptions, challenge: Option<&str>) -> Result<Self, String> {
        let mut manager = manager(&options.url, options.private_network).await?;
        let resolved = manager.resolve_metadata_from_challenge(challenge).await;
        let metadata = resolved.map_err(|error| explain(&error))?.metadata;
        manager.set_metadata(metadata.clone());
        let tokens = InMemoryCredentialStore::new();
        manager.set_credential_store(tokens.clone());
        let scopes = match options.scopes.as_slice() {
            [] => manager.select_initial_scopes(&[]).await,
            scopes => scopes.to_vec(),
        };
        let redirect_url = options.redirect_url;
        let mut request = AuthorizationRequest::new(redirect_url.as_str()).with_scopes(scopes.clone());
        let described = options.client_metadata_url.filter(|_| supports_metadata_document(&metadata));
        let (id, secret) = match (options.client_id, described) {
            (Some(id), _) => (id, options.client_secret),
            (None, Some(document)) => (document, None),
            (None, None) => {
                let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
                let registered = manager.register_client(CLIENT_NAME, &redirect_url, &scopes).await;
                let registered = registered.map_err(|error| {
                    format!("{}; set oauth.client_id if you have registered a client", explain(&error))
                })?;
                (registered.client_id, registered.client_secret)
            }
        };
        request = request.with_preregistered_client(id.as_str());
        if let Some(secret) = &secret {
            request = request.with_client_secret(secret.as_str());
        }
        let session =
            AuthorizationSession::new(manager, request).await.map_err(|(_, error)| explain(&error))?;
        own_origin::address(session.get_authorization_url())
            .map_err(|error| format!("the login address that the server names {error}"))?;
        let client = RegisteredClient { id, secret, redirect_url };
        Ok(Self { session, tokens, login: LoginParts { url: options.url, client, metadata } })
    }

    /// Returns the address that the user opens.
    pub fn address(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// Completes the login with the address to which the browser was redirected.
    ///
    /// # Errors
    /// A description of the failure.
    pub async fn finish(self, redirected: &str) -> Result<Login, String> {
        if let Some(refusal) = refusal(redirected) {
            return Err(format!("the authorization server refused: {refusal}"));
        }
        self.session.handle_callback_url(redirected).await.map_err(|error| explain(&error))?;
        let credentials = self.tokens.load().await.map_err(|error| explain(&error))?;
        let credentials = credentials.ok_or_else(|| "the authorization server sent no token".to_owned())?;
        let LoginParts { url, client, metadata } = self.login;
        Ok(Login { url: url.to_string(), client, metadata, credentials })
    }
}

/// Returns what sends the tokens of `login`, and renews them in `store`; without a login nothing is sent.
///
/// # Errors
/// A description of the failure.
pub async fn authorization(
    url: &Url,
    login: Option<Login>,
    store: LoginStore,
) -> Result<AuthorizationManager, String> {
    let Some(login) = login else {
        let manager = AuthorizationManager::new_with_oauth_http_client(url.as_str(), Arc::new(NoLogin)).await;
        return manager.map_err(|error| explain(&error));
    };
    // The stored addresses were checked at the login.
    let mut manager = manager(url, true).await?;
    manager.set_metadata(login.metadata);
    let client = OAuthClientConfig::new(login.client.id, login.client.redirect_url);
    let client = match login.client.secret {
        Some(secret) => client.with_client_secret(secret),
        None => client,
    };
    manager.configure_client(client).map_err(|error| explain(&error))?;
    manager.set_credential_store(store);
    Ok(manager)
}

/// Sends no requests, because there is no login.
struct NoLogin;

impl OAuthHttpClient for NoLogin {
    fn execute(&self, _request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(std::future::ready(Err("there is no login".into())))
    }
}

async fn manager(url: &Url, private_network: bool) -> Result<AuthorizationManager, String> {
    let manager = if private_network {
        AuthorizationManager::new_allowing_private_addresses(url.as_str()).await
    } else {
        AuthorizationManager::new(url.as_str()).await
    };
    manager.map_err(|error| explain(&error))
}

fn supports_metadata_document(metadata: &rmcp::transport::auth::AuthorizationMetadata) -> bool {
    let field = metadata.additional_fields.get("client_id_metadata_document_supported");
    field.and_then(serde_json::Value::as_bool).unwrap_or_default()
}

/// Returns the error in an address to which the browser was redirected (RFC 6749 section 4.1.2.1).
fn refusal(redirected: &str) -> Option<String> {
    let url = Url::parse(redirected).ok()?;
    let find = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value);
    let texts: Vec<_> = [find("error")?.into(), find("error_description")].into_iter().flatten().collect();
    Some(one_line(&harmless(&texts.join(": ")), QUOTE_CHARS))
}

fn explain(error: &AuthError) -> String {
    one_line(&harmless(&error.to_string()), QUOTE_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_in_the_redirected_address_is_told_without_control_characters() {
        let told = refusal("http://127.0.0.1/?error=access_denied&error_description=no%1b%5b31m");
        assert_eq!(told.as_deref(), Some("access_denied: no[31m"));
        assert_eq!(refusal("http://127.0.0.1/?code=1&state=2"), None);
    }
}
