//! HTTP client for a model server: one exchange with a streamed answer, under four deadlines and a size limit.

mod deadlines;

pub use deadlines::{Deadline, Deadlines, Delivery};

use deadlines::ExchangeTimer;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, StatusCode, Url, redirect};
use std::cell::OnceCell;
use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_util::bytes::Bytes;

/// The most of an error body that is read, in bytes; messages are short, an HTML page need not be loaded.
pub const MAX_ERROR_BODY_BYTES: usize = 16 * 1024;
/// The longest an error body is waited for; the status alone is worth reporting.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
/// The most of an answer that is read, in bytes after decompression. None of it is kept here; an event of a few hundred
/// bytes may carry one token, and the longest answers have 128,000.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;
/// The longest body that is kept as a whole, in bytes; the longest answers that are not streamed have about 1 MiB.
pub const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// The most headers of an answer under HTTP/1; real ones have up to forty. Their bytes are bounded by hyper's read
/// buffer, 408 KiB, which cannot be set from here.
pub(crate) const MAX_HEADERS: usize = 100;
/// The most bytes of an answer's headers under HTTP/2, counted as RFC 9113 section 6.5.2 does.
pub(crate) const MAX_HEADER_BYTES: u32 = 32 * 1024;
/// How long the end of a body may follow its last useful byte for the connection to be kept.
const DRAIN_TIME: Duration = Duration::from_millis(20);

/// An exchange that did not work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The address is not one.
    #[error("{0}")]
    Address(String),
    /// The key cannot be one.
    #[error(
        "the API key holds a character that no key has: a line break, a typographic quotation mark, an accent"
    )]
    Key,
    /// The client could not be set up (TLS roots, proxy variables).
    #[error("the HTTP client could not be set up: {0}")]
    Setup(String),
    /// Nobody answers there.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server is there, but its TLS certificate or handshake is not acceptable.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// A deadline passed.
    #[error("{0} {1:?}")]
    Timeout(Deadline, Duration),
    /// The connection ended early, or what came was not HTTP.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// The server points elsewhere; that is never followed, because a key would go along.
    #[error("the server redirects to {0}, which is not followed; if you trust it, make it the API base")]
    Redirect(String),
    /// More than this many bytes: [`MAX_RESPONSE_BYTES`] or [`MAX_BODY_BYTES`].
    #[error("the answer is longer than {} MiB", .0 / 1024 / 1024)]
    TooLarge(usize),
}

/// The bytes of a request, shared between its repetitions.
#[derive(Debug)]
pub struct RequestBody(Bytes);

impl From<Vec<u8>> for RequestBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

/// A connection pool for one API base. Nothing happens before the first exchange.
#[derive(Debug)]
pub struct Endpoint {
    base: Url,
    headers: HeaderMap,
    deadlines: Deadlines,
    client: OnceCell<Client>,
}

impl Endpoint {
    /// An endpoint at `base`; the headers, which may hold a key, are sent there and nowhere else.
    ///
    /// # Errors
    /// When the address is not an http or https URL, or the key cannot be one.
    pub fn new(
        base: &str,
        headers: &[(&'static str, String)],
        deadlines: Deadlines,
    ) -> Result<Self, HttpError> {
        // What stands before an `@` may be a password, what stands behind a question mark a key.
        let shown = base.split(['?', '#']).next().unwrap_or_default();
        let shown = shown.rsplit_once('@').map_or(shown, |(_, rest)| rest);
        let address =
            |why: &str| HttpError::Address(format!("`{shown}` is not an address of a model server: {why}"));
        let form = "it must begin with http:// or https:// and name a host";
        let parsed = Url::parse(base).map_err(|error| {
            if base.contains("://") { address(&error.to_string()) } else { address(form) }
        })?;
        if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
            return Err(address(form));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(HttpError::Address(
                "the API base holds a user name or password; give a key with --api-key instead".into(),
            ));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(address(
                "what follows a question mark belongs to the path of a request: llm.providers.NAME.query",
            ));
        }
        let headers = headers.iter().map(|(name, value)| {
            let value = value.trim();
            // A header may hold other characters, but no provider's key does: they come with a careless copy.
            let printable = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
            let value = printable.then(|| HeaderValue::try_from(value).ok()).flatten();
            let mut value = value.ok_or(HttpError::Key)?;
            value.set_sensitive(true);
            Ok((HeaderName::from_static(name), value))
        });
        let headers = headers.collect::<Result<_, HttpError>>()?;
        Ok(Self { base: parsed, headers, deadlines, client: OnceCell::new() })
    }

    /// Host and, where it is not the default, port: what messages show of the address.
    pub fn host(&self) -> String {
        authority(&self.base)
    }

    /// The whole address, which holds no key.
    pub fn base(&self) -> &str {
        self.base.as_str()
    }

    /// The deadlines of an exchange whose answer arrives as `delivery` says.
    pub fn deadlines(&self, delivery: Delivery) -> Deadlines {
        self.deadlines.of(delivery)
    }

    /// Whether the server runs on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// Sends `payload` as JSON to `path` below the base (from a slash on) and waits for the status line; the body is
    /// then read from the [`HttpResponse`].
    ///
    /// # Errors
    /// When there is no answer, or a redirect. An error status is an answer.
    pub async fn post(
        &self,
        path: &str,
        payload: &RequestBody,
        delivery: Delivery,
    ) -> Result<HttpResponse, HttpError> {
        self.exchange(Method::POST, path, Some(payload), self.deadlines(delivery)).await
    }

    /// Asks for what is at `path` below the base.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub async fn get(&self, path: &str) -> Result<HttpResponse, HttpError> {
        self.exchange(Method::GET, path, None, self.deadlines(Delivery::Whole { thinks: false })).await
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        payload: Option<&RequestBody>,
        deadlines: Deadlines,
    ) -> Result<HttpResponse, HttpError> {
        let clock = ExchangeTimer { started: Instant::now(), deadlines };
        let url = format!("{}{path}", self.base.as_str().trim_end_matches('/'));
        let mut request = self.client()?.request(method, url).headers(self.headers.clone());
        if let Some(body) = payload {
            request = request.header(CONTENT_TYPE, "application/json").body(body.0.clone());
        }
        let (until, deadline) = clock.until_first_byte();
        let response = timeout_at(until, request.send())
            .await
            .map_err(|_| clock.passed(deadline))?
            .map_err(|error| self.explain(error))?;
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

    fn explain(&self, error: reqwest::Error) -> HttpError {
        let error = error.without_url();
        if error.is_connect() && error.is_timeout() {
            return HttpError::Timeout(Deadline::Connect, self.deadlines.connect);
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
}

/// An answer whose status is known and whose body is still to be read.
#[derive(Debug)]
pub struct HttpResponse {
    clock: ExchangeTimer,
    response: reqwest::Response,
    received: usize,
    /// When the last complete event, or the first byte, was received.
    last_event: Instant,
    /// The same, keep-alive lines included.
    alive: Instant,
}

impl HttpResponse {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The status code with its usual words.
    pub fn status_line(&self) -> String {
        self.response.status().to_string()
    }

    /// The value of a header, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next piece of the body, decompressed; none at its end.
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
            // The task that keeps the connection must run once more before another exchange can have it.
            tokio::task::yield_now().await;
        }
        Ok(chunk)
    }

    /// Restarts the deadline for silence: a complete event was received.
    pub fn event_received(&mut self) {
        self.last_event = Instant::now();
        self.alive = self.last_event;
    }

    /// Restarts the deadline for silence within ten minutes after the last event: a line without content was received.
    pub fn kept_alive(&mut self) {
        self.alive = Instant::now();
    }

    /// The whole body of an answer that is not streamed.
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

    /// The beginning of an error's body: what arrives within five seconds, at most [`MAX_ERROR_BODY_BYTES`].
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

    /// Reads the end of a body whose content is complete, so that the connection can serve the next exchange.
    pub async fn drain(mut self) {
        let until = Instant::now() + DRAIN_TIME;
        while let Ok(Ok(Some(_))) = timeout_at(until, self.chunk()).await {}
    }
}

fn build(url: &Url, connect: Duration) -> Result<Client, HttpError> {
    // The provider may stand already: any later call of this function finds it so.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .user_agent(concat!("agent/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .redirect(redirect::Policy::none())
        .http1_max_headers(MAX_HEADERS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .tcp_nodelay(true);
    if url.scheme() == "http" {
        // No roots: reading the system's store takes up to 36 ms, and plain http has no use for it.
        builder = builder.tls_certs_only([]);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| HttpError::Setup(root_cause(&error)))
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

/// The innermost cause, which is the one that says something.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    chain(error).last().unwrap_or(error).to_string()
}

/// Whether TLS is what went wrong: the certificate or the handshake.
pub(crate) fn is_tls(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(<dyn Error>::is::<rustls::Error>)
}

/// `error` and everything behind it. An I/O error's `source` skips the error it wraps, so that is looked at first.
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
