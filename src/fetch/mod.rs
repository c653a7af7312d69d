//! One page of the web: asked for at addresses that were checked before they are dialled, under a time limit and a size cap.
//!
//! Each hop is resolved once, here; every address that came back is judged, and the client can dial nothing else,
//! because its resolver knows only those. It goes directly: a proxy would decide itself what a name means.

pub mod page_url;
pub mod public_ip;

use crate::http::{MAX_HEADER_BYTES, MAX_HEADERS, is_tls, root_cause};
use page_url::HostPattern;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url, redirect};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{Instant, timeout_at};

/// The time of a whole fetch, redirects and body included (spec.md T28).
pub const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// How many redirects are followed (spec.md T28).
pub const MAX_REDIRECTS: usize = 5;
/// The most of a body that is read, in bytes after decompression (spec.md 1.9).
pub const BODY_CAP: usize = 1_000_000;
/// Addresses of one name that are judged and tried; a name with more is cut, because each is a wait.
const MAX_ADDRESSES: usize = 16;
/// The first port that a server needs no right for; of those below it, pages are served at [`PAGE_PORTS`] alone.
const FIRST_FREE_PORT: u16 = 1024;
/// The ports of http and https.
const PAGE_PORTS: [u16; 2] = [80, 443];
/// What is liked best, so that servers which keep Markdown send it.
const ACCEPTED_TYPES: &str =
    "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";

/// Why a page was not fetched; worded for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address is none of a page; as [`page_url::parse_page_url`] says it.
    #[error("{0}")]
    InvalidUrl(String),
    /// The user does not allow the host.
    #[error(
        "The host {0} is not one of web.allowed_hosts ({1}).\nGo on without it, and say in your answer if the task \
         needs it: a person can add it."
    )]
    HostNotAllowed(String, String),
    /// The host is at an address that is not of the public internet.
    #[error("{host} is at {address}, which is not a public address ({reason}); nothing was sent to it.")]
    PrivateAddress {
        /// The host.
        host: String,
        /// Where it is.
        address: IpAddr,
        /// Why that is not public.
        reason: &'static str,
    },
    /// A port below 1024 that belongs to another protocol: what is sent there could be taken for its words.
    #[error(
        "{0} is not fetched: of the ports below {FIRST_FREE_PORT} only 80 and 443 serve pages; nothing was sent to it."
    )]
    PortNotAllowed(SocketAddr),
    /// The host does not prove who it is.
    #[error(
        "The TLS certificate of {0} is not accepted ({1}); nothing was asked of it.\nGo on without it. If the host is \
         known, a person can name the file of its certificate authority in SSL_CERT_FILE."
    )]
    InvalidCertificate(String, String),
    /// The name means nothing.
    #[error("The host {0} was not found: {1}.")]
    HostNotFound(String, String),
    /// A redirect from https to http.
    #[error("{0} redirects to {1}, away from https; that is not followed.")]
    Downgrade(String, String),
    /// A redirect to a host about which somebody has something to say.
    #[error(
        "{0} redirects to {1}, and a rule is about that host; that is not followed. Fetch that address itself."
    )]
    RedirectToRuledHost(String, String),
    /// More redirects than [`MAX_REDIRECTS`].
    #[error("More than {MAX_REDIRECTS} redirects; the last one led to {0}.")]
    TooManyRedirects(Url),
    /// The page was not complete within [`FETCH_TIMEOUT`].
    #[error("{0} did not answer completely within {time:?}.", time = FETCH_TIMEOUT)]
    Timeout(Url),
    /// The connection or what came over it.
    #[error("{0} could not be fetched: {1}.")]
    Transfer(Url, String),
}

/// What the user allows to be fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetcher {
    /// The hosts; with none, nothing is fetched.
    pub allowed_hosts: Vec<HostPattern>,
    /// Addresses that are not public and may be dialled all the same.
    pub allowed_private: Vec<SocketAddr>,
    /// The hosts as the user wrote them.
    pub allowed_hosts_text: String,
    /// Hosts that no redirect of another one leads to: whether they may be asked is decided for each call.
    pub hosts_with_rules: Vec<HostPattern>,
}

/// An answer whose status is known and whose body is still to be read.
#[derive(Debug)]
pub struct PageResponse {
    /// Where it came from in the end.
    pub url: Url,
    deadline: Instant,
    response: Response,
}

/// What was read of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageBody {
    /// At most [`BODY_CAP`] bytes.
    pub bytes: Vec<u8>,
    /// Whether there were more.
    pub is_cut: bool,
}

impl Fetcher {
    /// Whether the user allows the host of `url`.
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

    /// Asks for `url`, which [`page_url::parse_page_url`] accepted, and for where it redirects to.
    ///
    /// # Errors
    /// When something of it is not allowed, or there is no answer.
    pub async fn fetch(&self, method: Method, url: Url) -> Result<PageResponse, FetchError> {
        let deadline = Instant::now() + FETCH_TIMEOUT;
        let followed = self.follow_redirects(&method, url.clone(), deadline);
        timeout_at(deadline, followed).await.map_err(|_| FetchError::Timeout(url))?
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

    /// The addresses of the host of `url`, all of which may be dialled.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, FetchError> {
        let shown = url.host_str().unwrap_or_default();
        let host = shown.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or_default();
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

    /// Whether `address`, one of those of `host`, may be dialled. One that may not is not left out but refuses the host:
    /// a public name for a private address is an attack or a mistake.
    async fn check_address(&self, host: &str, address: SocketAddr) -> Result<(), FetchError> {
        let (ip, port) = (address.ip(), address.port());
        let private = |reason| FetchError::PrivateAddress { host: host.to_owned(), address: ip, reason };
        match public_ip::non_public_reason(ip) {
            _ if self.allowed_private.contains(&address) => Ok(()),
            Some(reason) => Err(private(reason)),
            None if is_own_address(ip).await => Err(private("this machine")),
            None if port < FIRST_FREE_PORT && !PAGE_PORTS.contains(&port) => {
                Err(FetchError::PortNotAllowed(address))
            }
            None => Ok(()),
        }
    }
}

/// What went wrong with an exchange.
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

/// Whether a public address is one of this machine: then packets to it would come from it. None is sent.
async fn is_own_address(ip: IpAddr) -> bool {
    /// Any port will do (RFC 863).
    const DISCARD: u16 = 9;
    let any: IpAddr = match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let Ok(socket) = UdpSocket::bind((any, 0)).await else { return false };
    // Without a way to it nothing will be dialled either.
    socket.connect((ip, DISCARD)).await.is_ok() && socket.local_addr().is_ok_and(|own| own.ip() == ip)
}

/// Where an answer points to, when it is a redirect.
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
    let unusable = || FetchError::Transfer(url.clone(), "it redirects to what is no address".to_owned());
    let location = location.to_str().map_err(|_| unusable())?;
    let next = url.join(location).map_err(|_| unusable())?;
    let next = page_url::check_page_url(next)
        .map_err(|why| FetchError::InvalidUrl(format!("{} redirects elsewhere. {why}", url.as_str())))?;
    if url.scheme() == "https" && next.scheme() == "http" {
        return Err(FetchError::Downgrade(url.to_string(), next.to_string()));
    }
    Ok(Some(next))
}

/// A client that dials these addresses and no others. It keeps nothing: no cookies, no referrer, no connection.
fn client(url: &Url, addresses: Vec<SocketAddr>) -> Result<Client, reqwest::Error> {
    // The provider may stand already: any later call of this function finds it so.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = Client::builder()
        .user_agent(concat!("agent/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(PinnedResolver(addresses)))
        .no_proxy()
        .referer(false)
        .redirect(redirect::Policy::none())
        .http1_max_headers(MAX_HEADERS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .pool_max_idle_per_host(0);
    if url.scheme() == "http" {
        // Plain http has no use for the system's store of roots, which takes a while to read.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// A resolver that knows only addresses that were judged, whatever it is asked.
struct PinnedResolver(Vec<SocketAddr>);

impl Resolve for PinnedResolver {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

impl PageResponse {
    /// Whether the server says that it worked.
    pub fn is_success(&self) -> bool {
        self.response.status().is_success()
    }

    /// The status code with its usual words.
    pub fn status_line(&self) -> String {
        self.response.status().to_string()
    }

    /// The content type as the server says it, where that is text.
    pub fn content_type(&self) -> Option<&str> {
        self.response.headers().get(CONTENT_TYPE)?.to_str().ok()
    }

    /// How the body is still encoded, in the server's words: what was asked for is decoded already.
    pub fn content_encoding(&self) -> Option<&str> {
        let encoding =
            self.response.headers().get(CONTENT_ENCODING)?.to_str().unwrap_or("an unknown encoding");
        Some(encoding.trim()).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
    }

    /// How long the body is said to be, in bytes on the wire.
    pub fn content_length(&self) -> Option<u64> {
        self.response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// The headers whose values are text, in the server's order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.response.headers().iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// The beginning of the body, decompressed: at most [`BODY_CAP`] bytes, within what is left of [`FETCH_TIMEOUT`].
    ///
    /// # Errors
    /// When the time is up or the connection breaks.
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

    /// What is said of a host that has all these addresses.
    fn judged(allowed: &[&str], addresses: &[&str]) -> Result<(), FetchError> {
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
                matches!(judged(&[], &addresses), Err(FetchError::PrivateAddress { .. })),
                "{addresses:?}"
            );
        }
        assert_eq!(judged(&["10.0.0.1:80"], &["1.1.1.1:80", "10.0.0.1:80"]), Ok(()));
        assert!(judged(&["10.0.0.1:80"], &["10.0.0.1:81"]).is_err(), "an address is allowed with its port");
    }

    #[test]
    fn t27_ports_of_other_protocols_are_not_dialled() {
        for port in [1, 22, 25, 79, 81, 110, 442, 587, 993, 1023] {
            let address = format!("1.1.1.1:{port}");
            assert_eq!(judged(&[], &[&address]), Err(FetchError::PortNotAllowed(address.parse().unwrap())));
        }
        for port in [80, 443, 1024, 8080, 65535] {
            assert_eq!(judged(&[], &[&format!("1.1.1.1:{port}")]), Ok(()));
        }
        assert_eq!(judged(&["10.0.0.1:81"], &["10.0.0.1:81"]), Ok(()));
    }
}
