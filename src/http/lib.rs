//! HTTP client for a model server: one exchange with a streamed response, under four deadlines and a size limit.

mod connection_variables;
mod deadlines;
pub mod own_origin;
pub mod post;
pub mod server;

pub use deadlines::{Deadline, Deadlines, Delivery, KEEP_ALIVE_LIMIT, UNSTREAMED_START};

use deadlines::ExchangeTimer;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, ClientBuilder, Method, StatusCode, Url, redirect};
use std::cell::OnceCell;
use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_util::bytes::Bytes;

/// Maximum bytes read of an error body; messages are short, and an HTML page is not needed.
pub const MAX_ERROR_BODY_BYTES: usize = 16 * 1024;
/// Maximum time to wait for an error body; the status alone is worth reporting.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
/// Maximum bytes read of a response, after decompression. They are not stored here. An event of a few hundred bytes may
/// carry one token, and the longest responses have 128,000 tokens.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;
/// Maximum bytes of a body that is stored as a whole; the longest responses that are not streamed have about 1 MiB.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of response headers under HTTP/1; real responses have up to forty. Their bytes are limited by hyper's
/// read buffer, 408 KiB, which cannot be configured here.
const MAX_HEADERS: usize = 100;
/// Maximum bytes of the response headers under HTTP/2, counted as in RFC 9113 section 6.5.2.
const MAX_HEADER_BYTES: u32 = 32 * 1024;
/// How long to wait for the end of a body after its last useful byte, to reuse the connection.
const DRAIN_TIME: Duration = Duration::from_millis(20);

/// Failure of an exchange.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The address is invalid.
    #[error("{0}")]
    Address(String),
    /// The API key contains characters that are not allowed.
    #[error(
        "the API key contains an invalid character, such as a line break, a typographic quotation mark or an accent"
    )]
    Key,
    /// The client could not be set up (TLS roots, proxy variables).
    #[error("the HTTP client could not be set up: {0}")]
    Setup(String),
    /// The connection failed.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server's TLS certificate or handshake was rejected.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// A deadline passed.
    #[error("{0} {1:?}")]
    Timeout(Deadline, Duration),
    /// The connection ended early, or the response was not HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The server sent a redirect. Redirects are not followed, because the key would be sent along.
    #[error(
        "the server redirects to {0}, which is not followed; if you trust that address, use it as the API base"
    )]
    Redirect(String),
    /// The response has more than this many bytes: [`MAX_RESPONSE_BYTES`] or [`MAX_BODY_BYTES`].
    #[error("the answer is longer than {} MiB", .0 / 1024 / 1024)]
    TooLarge(usize),
}

/// Body of a request, shared between its retries.
#[derive(Debug)]
pub struct RequestBody(Bytes);

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

/// A connection pool for one API base. It connects at the first exchange.
#[derive(Debug)]
pub struct Endpoint {
    base: Url,
    headers: HeaderMap,
    deadlines: Deadlines,
    client: OnceCell<Client>,
}

impl Endpoint {
    /// Creates an endpoint at `base`. The headers, which may contain a key, are sent only there.
    ///
    /// # Errors
    /// When the address is not an http or https URL, or the key contains invalid characters.
    pub fn new(
        base: &str,
        headers: &[(&'static str, String)],
        deadlines: Deadlines,
    ) -> Result<Self, HttpError> {
        // The part before an `@` may be a password, the part after a question mark a key.
        let shown = base.split(['?', '#']).next().unwrap_or_default();
        let shown = shown.rsplit_once('@').map_or(shown, |(_, rest)| rest);
        let address = |why: &str| {
            HttpError::Address(format!("`{shown}` is not a valid address of a model server: {why}"))
        };
        let form = "it must begin with http:// or https:// and name a host";
        let parsed = Url::parse(base).map_err(|error| {
            if base.contains("://") { address(&error.to_string()) } else { address(form) }
        })?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(address(form));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(HttpError::Address(
                "the API base contains a user name or password; use --api-key instead".into(),
            ));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(address(
                "it contains a query or fragment; set a query in llm.providers.NAME.query instead",
            ));
        }
        let headers = headers.iter().map(|(name, value)| {
            let value = value.trim();
            // Other characters are valid in a header but come from a copying mistake: no provider's key contains them.
            let printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            let value = printable.then(|| HeaderValue::try_from(value).ok()).flatten();
            let mut value = value.ok_or(HttpError::Key)?;
            value.set_sensitive(true);
            Ok((HeaderName::from_static(name), value))
        });
        let headers = headers.collect::<Result<_, HttpError>>()?;
        Ok(Self { base: parsed, headers, deadlines, client: OnceCell::new() })
    }

    /// Checks the variables for connections to this server: proxies and root certificates. A client with the latter is set up.
    ///
    /// # Errors
    /// When one cannot be used; the error names it.
    pub fn with_checked_variables(self) -> Result<Self, HttpError> {
        if self.base.scheme() == "https" && connection_variables::name_certificates() {
            self.client()?;
        } else {
            drop(configured(&self.base, self.deadlines.connect)?);
        }
        Ok(self)
    }

    /// Returns the host, and the port unless it is the default; messages show this form of the address.
    pub fn host(&self) -> String {
        authority(&self.base)
    }

    /// Returns the whole address, which contains no key.
    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    /// Returns the deadlines of an exchange with this `delivery`.
    pub fn deadlines(&self, delivery: Delivery) -> Deadlines {
        self.deadlines.of(delivery)
    }

    /// Checks whether the server runs on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Sends `payload` as JSON to `path`, which starts with a slash, below the base, and waits for the status line. The
    /// body is then read from the [`HttpResponse`].
    ///
    /// # Errors
    /// When there is no response, or a redirect. A response with an error status is `Ok`.
    pub async fn post(
        &self,
        path: &str,
        payload: &RequestBody,
        delivery: Delivery,
    ) -> Result<HttpResponse, HttpError> {
        self.exchange(Method::POST, path, Some(payload), None, self.deadlines(delivery)).await
    }

    /// Sends `payload` as [`post`](Self::post) does, with one more header.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub async fn post_with_header(
        &self,
        path: &str,
        payload: &RequestBody,
        header: (&'static str, &str),
        delivery: Delivery,
    ) -> Result<HttpResponse, HttpError> {
        self.exchange(Method::POST, path, Some(payload), Some(header), self.deadlines(delivery)).await
    }

    /// Sends a GET request to `path` below the base.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub async fn get(&self, path: &str) -> Result<HttpResponse, HttpError> {
        self.exchange(Method::GET, path, None, None, self.deadlines(Delivery::Whole { thinks: false })).await
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        payload: Option<&RequestBody>,
        header: Option<(&'static str, &str)>,
        deadlines: Deadlines,
    ) -> Result<HttpResponse, HttpError> {
        let clock = ExchangeTimer { started: Instant::now(), deadlines };
        let url = format!("{}{path}", self.base.as_str().trim_end_matches('/'));
        let mut request = self.client()?.request(method, url).headers(self.headers.clone());
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        if let Some(body) = payload {
            request = request.header(CONTENT_TYPE, "application/json").body(body.0.clone());
        }
        let (until, deadline) = clock.until_first_byte();
        let response = timeout_at(until, request.send())
            .await
            .map_err(|_| clock.passed(deadline))?
            .map_err(|error| explain(error, self.deadlines.connect))?;
        if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED {
            return Err(HttpError::Redirect(self.redirect_target(response.headers())));
        }
        let now = Instant::now();
        Ok(HttpResponse { clock, response, received: 0, last_event: now, alive: now })
    }

    fn client(&self) -> Result<&Client, HttpError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let built = build(&self.base, self.deadlines.connect)?;
        Ok(self.client.get_or_init(|| built))
    }

    fn redirect_target(&self, headers: &HeaderMap) -> String {
        headers
            .get(LOCATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|location| self.base.join(location).ok())
            .map_or_else(
                || "an address that it does not name".into(),
                |url| format!("{}://{}", url.scheme(), authority(&url)),
            )
    }
}

/// A response with a known status and an unread body.
#[derive(Debug)]
pub struct HttpResponse {
    clock: ExchangeTimer,
    response: reqwest::Response,
    received: usize,
    /// When the last complete event, or the first byte, was received.
    last_event: Instant,
    /// When the last complete event or keep-alive line was received.
    alive: Instant,
}

impl HttpResponse {
    /// Returns the status code.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// Returns the status code with its reason phrase.
    pub fn status_line(&self) -> String {
        self.response.status().to_string()
    }

    /// Returns the value of a header if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// Returns the next chunk of the body, decompressed; `None` at its end.
    ///
    /// # Errors
    /// When a deadline passes, the connection breaks, or the body is longer than [`MAX_RESPONSE_BYTES`].
    pub async fn chunk(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, HttpError> {
        let (until, deadline) = match self.received {
            0 => self.clock.until_first_byte(),
            _ => self.clock.until_silence(self.last_event, self.alive),
        };
        let chunk = timeout_at(until, self.response.chunk())
            .await
            .map_err(|_| self.clock.passed(deadline))?
            .map_err(|error| HttpError::Broken(root_cause(&error.without_url())))?;
        if self.received == 0 {
            self.event_received();
        }
        self.received = self.received.saturating_add(chunk.as_ref().map_or(0, Bytes::len));
        if self.received > MAX_RESPONSE_BYTES {
            return Err(HttpError::TooLarge(MAX_RESPONSE_BYTES));
        }
        if chunk.is_none() {
            // The connection task must run once more before another exchange can use the connection.
            tokio::task::yield_now().await;
        }
        Ok(chunk)
    }

    /// Restarts the silence deadline after a complete event.
    pub fn event_received(&mut self) {
        self.last_event = Instant::now();
        self.alive = self.last_event;
    }

    /// Restarts the silence deadline after a keep-alive line, up to ten minutes after the last event.
    pub fn kept_alive(&mut self) {
        self.alive = Instant::now();
    }

    /// Returns the whole body of a response that is not streamed.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and when it is longer than [`MAX_BODY_BYTES`].
    pub async fn body(&mut self) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.as_ref().len() > MAX_BODY_BYTES {
                return Err(HttpError::TooLarge(MAX_BODY_BYTES));
            }
            body.extend_from_slice(chunk.as_ref());
        }
        Ok(body)
    }

    /// Returns the start of an error body: what arrives within five seconds, at most [`MAX_ERROR_BODY_BYTES`].
    pub async fn error_body(mut self) -> Vec<u8> {
        let until = Instant::now() + ERROR_BODY_TIME;
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY_BYTES {
            let Ok(Ok(Some(chunk))) = timeout_at(until, self.chunk()).await else { break };
            body.extend_from_slice(chunk.as_ref());
        }
        body.truncate(MAX_ERROR_BODY_BYTES);
        body
    }

    /// Reads the rest of a body whose content is complete, so that the connection can be reused.
    pub async fn drain(mut self) {
        let until = Instant::now() + DRAIN_TIME;
        while let Ok(Ok(Some(_))) = timeout_at(until, self.chunk()).await {}
    }
}

fn build(url: &Url, connect: Duration) -> Result<Client, HttpError> {
    built(configured(url, connect)?)
}

fn built(builder: ClientBuilder) -> Result<Client, HttpError> {
    builder.build().map_err(|error| {
        let cause = root_cause(&error);
        HttpError::Setup(if is_tls(&error) { connection_variables::tls_problem(&cause) } else { cause })
    })
}

fn configured(url: &Url, connect: Duration) -> Result<ClientBuilder, HttpError> {
    let builder = client_builder(url).connect_timeout(connect).tcp_nodelay(true);
    if is_loopback(url) || connection_variables::is_excepted(url)? {
        return Ok(builder.no_proxy());
    }
    connection_variables::check_proxy(url)?;
    Ok(builder)
}

/// Returns the error for a request without a response; `connect` is the time limit of the connection.
fn explain(error: reqwest::Error, connect: Duration) -> HttpError {
    let error = error.without_url();
    if error.is_connect() && error.is_timeout() {
        return HttpError::Timeout(Deadline::Connect, connect);
    }
    let causes = root_cause(&error);
    if error.is_connect() && is_tls(&error) {
        HttpError::Tls(causes)
    } else if error.is_connect() {
        HttpError::Connect(causes)
    } else if error.is_builder() {
        HttpError::Setup(causes)
    } else {
        HttpError::Broken(causes)
    }
}

/// Returns the builder of a client for `url` that follows no redirects and limits the headers.
pub fn client_builder(url: &Url) -> ClientBuilder {
    // Fails if a provider is installed already, which is fine.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = Client::builder()
        .user_agent(concat!("agent/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .http1_max_headers(MAX_HEADERS)
        .http2_max_header_list_size(MAX_HEADER_BYTES);
    // Plain http needs no root certificates; reading the system's store takes up to 36 ms.
    if url.scheme() == "http" { builder.tls_certs_only([]) } else { builder }
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn is_loopback(url: &Url) -> bool {
    url.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

/// Returns the message of the innermost cause, which is the most specific one.
pub fn root_cause(error: &(dyn Error + 'static)) -> String {
    chain(error).last().unwrap_or(error).to_string()
}

/// Checks whether TLS failed: the certificate or the handshake.
pub fn is_tls(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(<dyn Error>::is::<rustls::Error>)
}

/// Iterates over `error` and its causes. The `source` of an I/O error skips the error it wraps, so that one is visited
/// first.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| {
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        wrapped.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(url: &str) -> Result<Endpoint, HttpError> {
        Endpoint::new(url, &[], Deadlines::default())
    }

    #[test]
    fn an_address_without_scheme_or_with_a_password_is_refused() {
        for url in ["localhost:8080", "ftp://h/", "https://user:secret@h/v1", "user:secret@h", "nonsense"] {
            let error = endpoint(url).map(|_| ()).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for (url, expected) in [
            ("http://127.0.0.1:1/v1", true),
            ("http://localhost/v1", true),
            ("http://[::1]:80/", true),
            ("https://example.org/v1", false),
            ("http://127.0.0.1.example.org/", false),
        ] {
            assert_eq!(endpoint(url).unwrap().is_loopback(), expected, "{url}");
        }
    }

    #[test]
    fn a_key_with_a_line_break_is_refused_and_not_shown() {
        let error = Endpoint::new("https://h/", &[("authorization", "a\nb".into())], Deadlines::default())
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error, HttpError::Key);
        let quoted = Endpoint::new("https://h/", &[("authorization", "“ab”".into())], Deadlines::default());
        assert_eq!(quoted.map(|_| ()), Err(HttpError::Key));
    }

    #[test]
    fn an_address_with_a_query_or_a_fragment_is_refused_because_a_path_is_put_behind_it() {
        for url in ["https://h/v1?api-version=1", "https://h/v1#top", "https://h/v1?key=secret"] {
            let error = endpoint(url).map(|_| ()).unwrap_err();
            assert!(matches!(error, HttpError::Address(_)), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        endpoint("http://[::1]:80/a/v1/").unwrap();
    }
}
