//! MCP over HTTP ("Streamable HTTP"): connects with the user's token, tries again when the server is busy, and explains failures.

use super::client::{Client, newest_or_older};
use super::definition::harmless;
use super::login::authorization;
use super::login_store::{Login, LoginStore};
use super::result::LenientTransport;
use agent_core::secret::Secret;
use agent_http::{own_origin, root_cause};
use agent_text::lines::one_line;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ClientLifecycleMode;
use rmcp::service::{ClientInitializeError, ClientServiceExt, RoleClient, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthError};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

/// Maximum bytes of a message of a server: an image of 5 MiB in base64 fits. Less than for programs, whose values are counted before
/// they are parsed.
const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// Waits before a request is repeated that the server was too busy for (status 429 or 503).
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// Maximum wait that a server may ask for in `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// Time limit of a TCP and TLS connection.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Maximum characters of an error in a message.
const ERROR_CHARS: usize = 400;

/// A server that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpServer {
    /// Its address.
    pub url: Url,
    /// The token of the user's configuration, sent as `Authorization: Bearer`.
    pub token: Option<Secret>,
    /// Further headers.
    pub headers: HashMap<HeaderName, HeaderValue>,
    /// The login, used if there is no token.
    pub login: LoginStore,
}

type TransportError = StreamableHttpError<reqwest::Error>;

impl HttpServer {
    /// Replaces the tokens of the login, which may have been renewed during the run, in what the server says.
    pub fn redact(&self, text: &str) -> String {
        let login = self.login.load().ok().flatten();
        let secrets = login.iter().flat_map(Login::secrets);
        secrets.fold(text.to_owned(), |text, secret| {
            text.replace(secret.value.expose(), &format!("[redacted: {}]", secret.name))
        })
    }

    /// Connects. Repeats the handshake while the server is busy.
    ///
    /// # Errors
    /// A description of the failure, which names the server.
    pub async fn open(&self, client: Client, lifecycle: ClientLifecycleMode) -> Result<Service, String> {
        let server = client.server.clone();
        let login = match &self.token {
            Some(_) => None,
            None => self.login.load().map_err(|error| format!("the stored login is not usable: {error}"))?,
        };
        let credentials = Credentials { token: self.token.clone(), login };
        let connected = self.connect(client, lifecycle, credentials).await?;
        connected.map_err(|error| explain_handshake(&server, &error))
    }

    /// Returns the challenge (`WWW-Authenticate`) with which the server refuses a client without token; `None` if it accepts it.
    ///
    /// # Errors
    /// A description of any other failure.
    pub async fn challenge(&self, client: Client) -> Result<Option<String>, String> {
        let server = client.server.clone();
        match self.connect(client, newest_or_older(), Credentials::default()).await? {
            Ok(mut service) => {
                let _result = service.close_with_timeout(CLOSE_TIME).await;
                Ok(None)
            }
            Err(error) if needs_login(in_handshake(&error)) => Ok(error.auth_challenge().map(str::to_owned)),
            Err(error) => Err(explain_handshake(&server, &error)),
        }
    }

    async fn connect(
        &self,
        client: Client,
        mut lifecycle: ClientLifecycleMode,
        credentials: Credentials,
    ) -> Result<Result<Service, ClientInitializeError>, String> {
        let http = own_origin::client(&self.url, CONNECT_TIME).map_err(|error| error.to_string())?;
        let authorization = authorization(&self.url, credentials.login, self.login.clone()).await?;
        let http = AuthClient::new(http, authorization);
        let mut delays = RETRY_DELAYS.into_iter();
        loop {
            let attempt =
                self.attempt(client.clone(), lifecycle.clone(), http.clone(), credentials.token.as_ref());
            let error = match attempt.await {
                Ok(service) => return Ok(Ok(service)),
                Err(error) => error,
            };
            let is_newest = !matches!(lifecycle, ClientLifecycleMode::Initialize);
            match (in_handshake(&error), delay_if_busy(in_handshake(&error), &mut delays)) {
                (_, Some(delay)) => tokio::time::sleep(delay).await,
                // Servers of the older protocol answer the unknown method with anything.
                (None | Some(StreamableHttpError::HttpStatus(_)), None) if is_newest => {
                    lifecycle = ClientLifecycleMode::Initialize;
                }
                (_, None) => return Ok(Err(error)),
            }
        }
    }

    async fn attempt(
        &self,
        client: Client,
        lifecycle: ClientLifecycleMode,
        http: AuthClient<reqwest::Client>,
        token: Option<&Secret>,
    ) -> Result<Service, ClientInitializeError> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .custom_headers(self.headers.clone())
            .max_sse_event_size(MAX_MESSAGE_BYTES)
            .max_json_response_size(MAX_MESSAGE_BYTES);
        if let Some(token) = token {
            config = config.auth_header(token.expose());
        }
        let transport = LenientTransport(StreamableHttpClientTransport::with_client(http, config));
        client.serve_with_lifecycle(transport, lifecycle).await
    }
}

/// What a connection authorizes itself with.
#[derive(Default)]
struct Credentials {
    token: Option<Secret>,
    login: Option<Login>,
}

type Service = RunningService<RoleClient, Client>;

/// Time for telling the server that the session has ended.
pub const CLOSE_TIME: Duration = Duration::from_secs(2);

/// Calls `request`, and repeats it while the server is busy.
///
/// # Errors
/// The last failure.
pub async fn retried<T, Request: Future<Output = Result<T, ServiceError>>>(
    request: impl Fn() -> Request,
) -> Result<T, ServiceError> {
    let mut delays = RETRY_DELAYS.into_iter();
    loop {
        let error = match request().await {
            Err(error) => error,
            done => return done,
        };
        match delay_if_busy(in_request(&error), &mut delays) {
            Some(delay) => tokio::time::sleep(delay).await,
            None => return Err(error),
        }
    }
}

/// Describes a failed request to `server`; `None` if the failure is not one of HTTP.
pub fn explain(server: &str, error: &ServiceError) -> Option<String> {
    in_request(error).map(|error| explain_transport(server, error))
}

/// Checks whether a request failed because its answer cannot be read.
pub fn is_unreadable_answer(error: &ServiceError) -> bool {
    match in_request(error) {
        // The text of any other status begins with it.
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => !text.starts_with("HTTP "),
        Some(
            StreamableHttpError::UnexpectedContentType(_)
            | StreamableHttpError::ResponseBodyTooLarge { .. }
            | StreamableHttpError::Deserialize(_),
        ) => true,
        _ => false,
    }
}

fn explain_handshake(server: &str, error: &ClientInitializeError) -> String {
    match in_handshake(error) {
        Some(error) => explain_transport(server, error),
        None => shown(error),
    }
}

fn in_request(error: &ServiceError) -> Option<&TransportError> {
    match error {
        ServiceError::TransportSend(error) => error.error.downcast_ref(),
        _ => None,
    }
}

fn in_handshake(error: &ClientInitializeError) -> Option<&TransportError> {
    match error {
        ClientInitializeError::TransportError { error, .. } => error.error.downcast_ref(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => in_handshake(fallback),
        _ => None,
    }
}

/// Returns how long to wait before a request is repeated: what the server asks for, else the next of `delays`. `None` if the server
/// was not too busy, or no delay is left.
fn delay_if_busy(
    error: Option<&TransportError>,
    delays: &mut impl Iterator<Item = Duration>,
) -> Option<Duration> {
    let Some(StreamableHttpError::HttpStatus(status)) = error else { return None };
    let delay = delays.next().filter(|_| matches!(status.status, 429 | 503))?;
    let asked = status.retry_after.as_deref().and_then(|text| text.trim().parse().ok());
    Some(asked.map_or(delay, Duration::from_secs).min(MAX_RETRY_AFTER))
}

fn needs_login(error: Option<&TransportError>) -> bool {
    match error {
        Some(
            StreamableHttpError::AuthRequired(_)
            | StreamableHttpError::InsufficientScope(_)
            | StreamableHttpError::Auth(AuthError::AuthorizationRequired),
        ) => true,
        // Without `WWW-Authenticate`, only the text contains the status.
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => text.starts_with("HTTP 401"),
        _ => false,
    }
}

fn explain_transport(server: &str, error: &TransportError) -> String {
    let scope = match error {
        StreamableHttpError::InsufficientScope(error) => {
            error.required_scope.as_deref().filter(|scope| is_scope(scope))
        }
        _ => None,
    };
    if let StreamableHttpError::Auth(AuthError::InternalError(_)) = error {
        return "it refuses the token of `token_env`".to_owned();
    }
    match (needs_login(Some(error)), scope) {
        (true, Some(scope)) => format!(
            "it asks for the permission `{scope}`; the user can grant it with `agent mcp login {server} --scope '{scope}'`"
        ),
        (true, None) => format!("it needs a login; the user can log in with `agent mcp login {server}`"),
        (false, _) => match error {
            // The breakers recognise these words.
            StreamableHttpError::HttpStatus(status) => {
                format!("it is temporarily unavailable: it answered with HTTP status {}", status.status)
            }
            // Its text contains the address, which may contain a key.
            StreamableHttpError::Client(error) => {
                one_line(&harmless(&format!("the request failed: {}", root_cause(error))), ERROR_CHARS)
            }
            error => shown(error),
        },
    }
}

/// Checks that scopes have the characters of RFC 6749 section 3.3 except those that a shell interprets inside of quotes.
fn is_scope(scope: &str) -> bool {
    let is_valid = |byte: u8| matches!(byte, b' ' | b'!' | b'#'..=b'&' | b'('..=b'[' | b']'..=b'~');
    !scope.is_empty() && scope.len() <= 500 && scope.bytes().all(is_valid)
}

/// Shows an error with its innermost cause, which for HTTP is the most specific one.
fn shown(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    let cause = root_cause(error);
    let both = if text.contains(&cause) { text } else { format!("{text}: {cause}") };
    one_line(&harmless(both.trim_end_matches([':', ' '])), ERROR_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_that_could_end_the_quotes_of_a_command_is_not_repeated() {
        assert!(is_scope("repo:read user https://h/x"));
        for hostile in ["a'; touch x; '", "a\nb", "a\\b", "", "é"] {
            assert!(!is_scope(hostile), "{hostile}");
        }
    }
}
