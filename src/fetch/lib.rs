//! Fetches web pages and search results for the model, from addresses that are checked before they are dialled, under a time limit and a size limit.
//!
//! Each host, including those of redirects, is resolved once, here. Every resolved address is checked, and the client can
//! dial no other, because its resolver returns only those. No proxy is used: it would resolve the name itself.

pub mod allowed_host;
pub mod command_proxy;
pub mod page_url;
pub mod public_ip;
pub mod search_provider;

use agent_http::{client_builder, is_tls, root_cause};
use page_url::HostPattern;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{Instant, timeout_at};

/// Maximum time of a whole fetch, including redirects and body.
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of redirects that are followed.
pub const MAX_REDIRECTS: usize = 5;
/// Maximum bytes read of a body, after decompression.
pub const BODY_CAP: usize = 1_000_000;
/// Maximum number of addresses of one name that are checked and tried; each may cost waiting time.
const MAX_ADDRESSES: usize = 16;
/// The first unprivileged port; below it, only [`PAGE_PORTS`] are allowed.
const FIRST_FREE_PORT: u16 = 1024;
/// The ports of http and https.
const PAGE_PORTS: [u16; 2] = [80, 443];
/// The Accept header: Markdown is preferred, for servers that offer it.
const ACCEPTED_TYPES: &str =
    "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";

/// Why a page was not fetched; the text is written for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL is invalid; see [`page_url::parse_page_url`].
    #[error("{0}")]
    InvalidUrl(String),
    /// The host is not allowed by the user.
    #[error(
        "The host {0} is not one of web.allowed_hosts ({1}).\nContinue without this page. If the task needs it, \
         report that in your answer, so that the user can add the host."
    )]
    HostNotAllowed(String, String),
    /// The host has an address that is not public.
    #[error("{host} is at {address}, which is not a public address ({reason}); nothing was sent to it.")]
    PrivateAddress {
        /// The host.
        host: String,
        /// The address.
        address: IpAddr,
        /// Why the address is not public.
        reason: &'static str,
    },
    /// A port below 1024 of another protocol, whose server could interpret the request as commands.
    #[error(
        "{0} is not fetched: of the ports below {FIRST_FREE_PORT} only 80 and 443 serve pages; nothing was sent to it."
    )]
    PortNotAllowed(SocketAddr),
    /// The TLS certificate of the host was rejected.
    #[error(
        "The TLS certificate of {0} was rejected ({1}); no request was sent.\nContinue without this page. If the host \
         is known, the user can set SSL_CERT_FILE to the file of its certificate authority."
    )]
    InvalidCertificate(String, String),
    /// The host name cannot be resolved.
    #[error("The host {0} was not found: {1}.")]
    HostNotFound(String, String),
    /// A redirect from https to http.
    #[error("{0} redirects to {1}, away from https; the redirect was not followed.")]
    Downgrade(String, String),
    /// A redirect to a host that a permission rule names.
    #[error(
        "{0} redirects to {1}, and a permission rule names that host; the redirect was not followed. Fetch that \
         address directly."
    )]
    RedirectToRuledHost(String, String),
    /// More redirects than [`MAX_REDIRECTS`].
    #[error("More than {MAX_REDIRECTS} redirects; the last one led to {0}.")]
    TooManyRedirects(Url),
    /// The page was not complete within [`FETCH_TIMEOUT`].
    #[error("{0} did not answer completely within {time:?}.", time = FETCH_TIMEOUT)]
    Timeout(Url),
    /// The connection failed or broke.
    #[error("{0} could not be fetched: {1}.")]
    Transfer(Url, String),
}

/// Fetches pages that the user's settings allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetcher {
    /// Allowed hosts; if empty, nothing is fetched.
    pub allowed_hosts: Vec<HostPattern>,
    /// Private addresses that may be dialled.
    pub allowed_private: Vec<SocketAddr>,
    /// The allowed hosts as the user wrote them.
    pub allowed_hosts_text: String,
    /// Hosts that permission rules name. No redirect from another host leads to them: each call to them needs its own
    /// decision.
    pub hosts_with_rules: Vec<HostPattern>,
}

/// A request to a service, whose redirects are not followed, because its headers may contain a key.
#[derive(Debug)]
pub struct WebRequest {
    /// The method.
    pub method: Method,
    /// The URL.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<String>,
}

/// A response with a known status and an unread body.
#[derive(Debug)]
pub struct PageResponse {
    /// The final URL, after redirects.
    pub url: Url,
    deadline: Instant,
    response: Response,
}

/// The body of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageBody {
    /// At most [`BODY_CAP`] bytes.
    pub bytes: Vec<u8>,
    /// Whether the body was longer and was cut.
    pub is_cut: bool,
}

impl Fetcher {
    /// Checks whether the user allows the host of `url`.
    ///
    /// # Errors
    /// [`FetchError::HostNotAllowed`].
    pub fn check_host(&self, url: &Url) -> Result<(), FetchError> {
        let host = url.host_str().unwrap_or_default();
        if self.allowed_hosts.iter().any(|pattern| pattern.matches(host)) {
            return Ok(());
        }
        let shown = if self.allowed_hosts_text.is_empty() { "it is empty" } else { &self.allowed_hosts_text };
        Err(FetchError::HostNotAllowed(host.to_owned(), shown.to_owned()))
    }

    /// Requests `url`, which [`page_url::parse_page_url`] accepted, and follows its redirects.
    ///
    /// # Errors
    /// When an address is not allowed, or there is no response.
    pub async fn fetch(&self, method: Method, url: Url) -> Result<PageResponse, FetchError> {
        let deadline = Instant::now() + FETCH_TIMEOUT;
        let followed = self.follow_redirects(&method, url.clone(), deadline);
        timeout_at(deadline, followed).await.map_err(|_| FetchError::Timeout(url))?
    }

    /// Sends `request` and returns the first response, also if it is a redirect.
    ///
    /// # Errors
    /// When an address is not allowed, or there is no response.
    pub async fn request(&self, request: WebRequest) -> Result<PageResponse, FetchError> {
        let deadline = Instant::now() + FETCH_TIMEOUT;
        let WebRequest { method, url, headers, body } = request;
        let sent = async {
            self.check_host(&url)?;
            let broken = |error| transfer_error(&url, error);
            let client = client(&url, self.addresses(&url).await?).map_err(broken)?;
            let request = client.request(method, url.clone()).headers(headers);
            let request = match body {
                Some(body) => request.body(body),
                None => request,
            };
            let response = request.send().await.map_err(broken)?;
            Ok(PageResponse { url: url.clone(), deadline, response })
        };
        timeout_at(deadline, sent).await.map_err(|_| FetchError::Timeout(url.clone()))?
    }

    async fn follow_redirects(
        &self,
        method: &Method,
        mut url: Url,
        deadline: Instant,
    ) -> Result<PageResponse, FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            self.check_host(&url)?;
            let addresses = self.addresses(&url).await?;
            let broken = |error| transfer_error(&url, error);
            let client = client(&url, addresses).map_err(broken)?;
            let request = client.request(method.clone(), url.clone()).header(ACCEPT, ACCEPTED_TYPES);
            let response = request.send().await.map_err(broken)?;
            let Some(next) = redirect_target(&url, &response)? else {
                return Ok(PageResponse { url, deadline, response });
            };
            let host = next.host_str().unwrap_or_default();
            if url.host_str() != Some(host)
                && self.hosts_with_rules.iter().any(|pattern| pattern.matches(host))
            {
                return Err(FetchError::RedirectToRuledHost(url.into(), next.into()));
            }
            url = next;
        }
        Err(FetchError::TooManyRedirects(url))
    }

    /// Resolves the host of `url` and checks that every address may be dialled.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, FetchError> {
        self.resolve(url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
            .await
    }

    /// Resolves `shown`, a host as a URL contains it, and checks that every address may be dialled.
    ///
    /// # Errors
    /// When the host is unknown or has an address that may not be dialled.
    pub async fn resolve(&self, shown: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
        let host = shown.trim_start_matches('[').trim_end_matches(']');
        let unknown = |why: String| FetchError::HostNotFound(shown.to_owned(), why);
        let found = lookup_host((host, port)).await.map_err(|error| unknown(error.to_string()))?;
        let found: Vec<SocketAddr> = found.take(MAX_ADDRESSES).collect();
        if found.is_empty() {
            return Err(unknown("it has no address".to_owned()));
        }
        for address in &found {
            self.check_address(shown, *address).await?;
        }
        Ok(found)
    }

    /// Checks whether `address`, one of those of `host`, may be dialled. A forbidden address refuses the whole host: a
    /// public name with a private address is an attack or a mistake.
    async fn check_address(&self, host: &str, address: SocketAddr) -> Result<(), FetchError> {
        let (ip, port) = (address.ip(), address.port());
        let private = |reason| FetchError::PrivateAddress { host: host.to_owned(), address: ip, reason };
        match public_ip::non_public_reason(ip) {
            _ if self.allowed_private.contains(&address) => Ok(()),
            Some(reason) => Err(private(reason)),
            None if is_own_address(ip).await => Err(private("this machine")),
            None if !may_dial(port) => Err(FetchError::PortNotAllowed(address)),
            None => Ok(()),
        }
    }
}

/// Checks whether a port may be dialled: that of a page, or one that any program may listen on.
fn may_dial(port: u16) -> bool {
    port >= FIRST_FREE_PORT || PAGE_PORTS.contains(&port)
}

/// Converts a client error to a [`FetchError`].
fn transfer_error(url: &Url, error: reqwest::Error) -> FetchError {
    let error = error.without_url();
    if error.is_connect() && is_tls(&error) {
        return FetchError::InvalidCertificate(
            url.host_str().unwrap_or_default().to_owned(),
            root_cause(&error),
        );
    }
    FetchError::Transfer(url.clone(), root_cause(&error))
}

/// Checks whether a public address belongs to this machine: a packet to it would have it as the source address. No packet
/// is sent.
async fn is_own_address(ip: IpAddr) -> bool {
    /// Any port will do (RFC 863).
    const DISCARD: u16 = 9;
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let Ok(socket) = UdpSocket::bind((any, 0)).await else { return false };
    // Without a route to the address, no connection is possible either.
    socket.connect((ip, DISCARD)).await.is_ok() && socket.local_addr().is_ok_and(|own| own.ip() == ip)
}

/// Returns the target of a response that is a redirect.
fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, FetchError> {
    let redirects = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    let location = response.headers().get(LOCATION).filter(|_| redirects.contains(&response.status()));
    let Some(location) = location else { return Ok(None) };
    let unusable = || FetchError::Transfer(url.clone(), "it redirects to an invalid address".to_owned());
    let location = location.to_str().map_err(|_| unusable())?;
    let next = url.join(location).map_err(|_| unusable())?;
    let next = page_url::check_page_url(next)
        .map_err(|why| FetchError::InvalidUrl(format!("{} redirects elsewhere. {why}", url.as_str())))?;
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(FetchError::Downgrade(url.to_string(), next.to_string()));
    }
    Ok(Some(next))
}

/// Creates a client that dials only these addresses and stores nothing: no cookies, no referrer, no connections.
fn client(url: &Url, addresses: Vec<SocketAddr>) -> Result<Client, reqwest::Error> {
    client_builder(url)
        .dns_resolver(Arc::new(PinnedResolver(addresses)))
        .no_proxy()
        .referer(false)
        .pool_max_idle_per_host(0)
        .build()
}

/// A resolver that returns only checked addresses, for any name.
struct PinnedResolver(Vec<SocketAddr>);

impl Resolve for PinnedResolver {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

impl PageResponse {
    /// Returns the status.
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    /// Returns the status code with its reason phrase.
    pub fn status_line(&self) -> String {
        self.response.status().to_string()
    }

    /// Returns the Content-Type header if it is text.
    pub fn content_type(&self) -> Option<&str> {
        self.response.headers().get(CONTENT_TYPE)?.to_str().ok()
    }

    /// Returns the Content-Encoding header of a body that the client did not decode.
    pub fn content_encoding(&self) -> Option<&str> {
        let encoding =
            self.response.headers().get(CONTENT_ENCODING)?.to_str().unwrap_or("an unknown encoding");
        Some(encoding.trim()).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
    }

    /// Returns the Content-Length header, in bytes on the wire.
    pub fn content_length(&self) -> Option<u64> {
        self.response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Iterates over the headers with text values, in the server's order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.response.headers().iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// Reads the start of the body, decompressed: at most [`BODY_CAP`] bytes, within the rest of [`FETCH_TIMEOUT`].
    ///
    /// # Errors
    /// When the time runs out or the connection breaks.
    pub async fn read(mut self) -> Result<PageBody, FetchError> {
        let mut bytes = Vec::new();
        loop {
            let chunk = timeout_at(self.deadline, self.response.chunk())
                .await
                .map_err(|_| FetchError::Timeout(self.url.clone()))?
                .map_err(|error| transfer_error(&self.url, error))?;
            let Some(chunk) = chunk else { return Ok(PageBody { bytes, is_cut: false }) };
            bytes.extend_from_slice(&chunk);
            if bytes.len() > BODY_CAP {
                bytes.truncate(BODY_CAP);
                return Ok(PageBody { bytes, is_cut: true });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks all addresses of a host.
    fn check_all(allowed: &[&str], addresses: &[&str]) -> Result<(), FetchError> {
        let private = allowed.iter().map(|text| text.parse().unwrap()).collect();
        let fetcher = Fetcher { allowed_private: private, ..Fetcher::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for address in addresses {
                fetcher.check_address("h", address.parse().unwrap()).await?;
            }
            Ok(())
        })
    }

    #[test]
    fn class_53_one_private_address_among_public_ones_refuses_the_host() {
        for addresses in [
            ["1.1.1.1:80", "10.0.0.1:80"],
            ["10.0.0.1:80", "1.1.1.1:80"],
            ["[2606:4700::1111]:80", "[::1]:80"],
            ["1.1.1.1:80", "[fe80::1%7]:80"],
        ] {
            assert!(
                matches!(check_all(&[], &addresses), Err(FetchError::PrivateAddress { .. })),
                "{addresses:?}"
            );
        }
        assert_eq!(check_all(&["10.0.0.1:80"], &["1.1.1.1:80", "10.0.0.1:80"]), Ok(()));
        assert!(
            check_all(&["10.0.0.1:80"], &["10.0.0.1:81"]).is_err(),
            "an address is allowed with its port"
        );
    }

    #[test]
    fn t27_ports_of_other_protocols_are_not_dialled() {
        for port in [1, 22, 25, 79, 81, 110, 442, 587, 993, 1023] {
            let address = format!("1.1.1.1:{port}");
            assert_eq!(
                check_all(&[], &[&address]),
                Err(FetchError::PortNotAllowed(address.parse().unwrap()))
            );
        }
        for port in [80, 443, 1024, 8080, 65535] {
            assert_eq!(check_all(&[], &[&format!("1.1.1.1:{port}")]), Ok(()));
        }
        assert_eq!(check_all(&["10.0.0.1:81"], &["10.0.0.1:81"]), Ok(()));
    }
}
