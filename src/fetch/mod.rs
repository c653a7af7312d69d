//! One page of the web: asked for at addresses that were checked before they are dialled, under a time limit and a size cap.
//!
//! Each hop is resolved once, here; every address that came back is judged, and the client can dial nothing else,
//! because its resolver knows only those. It goes directly: a proxy would decide itself what a name means.

pub mod address;
pub mod target;

use crate::http::{HEADER_BYTES_CAP, HEADERS_CAP, causes, is_tls};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url, redirect};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use target::HostPattern;
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{Instant, timeout_at};

/// The time of a whole fetch, redirects and body included (spec.md T28).
pub const TIME: Duration = Duration::from_secs(10);
/// How many redirects are followed (spec.md T28).
pub const MAX_REDIRECTS: usize = 5;
/// The most of a body that is read, in bytes after decompression (spec.md 1.9).
pub const BODY_CAP: usize = 1_000_000;
/// Addresses of one name that are judged and tried; a name with more is cut, because each is a wait.
const ADDRESSES: usize = 16;
/// The first port that a server needs no right for; of those below it, pages are served at [`PAGE_PORTS`] alone.
const FIRST_FREE_PORT: u16 = 1024;
/// The ports of http and https.
const PAGE_PORTS: [u16; 2] = [80, 443];
/// What is liked best, so that servers which keep Markdown send it.
const LIKED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5";

/// Why a page was not fetched; worded for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address is none of a page; as [`target::page`] says it.
    #[error("{0}")]
    Address(String),
    /// The user does not allow the host.
    #[error(
        "The host {0} is not one of web.allowed_hosts ({1}).\nGo on without it, and say in your answer if the task \
         needs it: a person can add it."
    )]
    Host(String, String),
    /// The host is at an address that is not of the public internet.
    #[error("{host} is at {address}, which is not a public address ({reason}); nothing was sent to it.")]
    Private {
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
    Port(SocketAddr),
    /// The host does not prove who it is.
    #[error(
        "The TLS certificate of {0} is not accepted ({1}); nothing was asked of it.\nGo on without it. If the host is \
         known, a person can name the file of its certificate authority in SSL_CERT_FILE."
    )]
    Certificate(String, String),
    /// The name means nothing.
    #[error("The host {0} was not found: {1}.")]
    Unknown(String, String),
    /// A redirect from https to http.
    #[error("{0} redirects to {1}, away from https; that is not followed.")]
    Downgrade(String, String),
    /// A redirect to a host about which somebody has something to say.
    #[error(
        "{0} redirects to {1}, and a rule is about that host; that is not followed. Fetch that address itself."
    )]
    Ruled(String, String),
    /// More redirects than [`MAX_REDIRECTS`].
    #[error("More than {MAX_REDIRECTS} redirects; the last one led to {0}.")]
    Redirects(Url),
    /// The page was not complete within [`TIME`].
    #[error("{0} did not answer completely within {time:?}.", time = TIME)]
    Timeout(Url),
    /// The connection or what came over it.
    #[error("{0} could not be fetched: {1}.")]
    Broken(Url, String),
}

/// What the user allows to be fetched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetcher {
    /// The hosts; with none, nothing is fetched.
    pub hosts: Vec<HostPattern>,
    /// Addresses that are not public and may be dialled all the same.
    pub private: Vec<SocketAddr>,
    /// The hosts as the user wrote them.
    pub shown: String,
    /// Hosts that no redirect of another one leads to: whether they may be asked is decided for each call.
    pub ruled: Vec<HostPattern>,
}

/// An answer whose status is known and whose body is still to be read.
#[derive(Debug)]
pub struct Answer {
    /// Where it came from in the end.
    pub url: Url,
    until: Instant,
    response: Response,
}

/// What was read of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// At most [`BODY_CAP`] bytes.
    pub bytes: Vec<u8>,
    /// Whether there were more.
    pub is_cut: bool,
}

impl Fetcher {
    /// Whether the user allows the host of `url`.
    ///
    /// # Errors
    /// [`FetchError::Host`].
    pub fn allowed(&self, url: &Url) -> Result<(), FetchError> {
        let host = url.host_str().unwrap_or_default();
        if self.hosts.iter().any(|pattern| pattern.allows(host)) {
            return Ok(());
        }
        let shown = if self.shown.is_empty() { "it is empty" } else { &self.shown };
        Err(FetchError::Host(host.to_owned(), shown.to_owned()))
    }

    /// Asks for `url`, which [`target::page`] accepted, and for where it redirects to.
    ///
    /// # Errors
    /// When something of it is not allowed, or there is no answer.
    pub async fn fetch(&self, method: Method, url: Url) -> Result<Answer, FetchError> {
        let until = Instant::now() + TIME;
        let followed = self.follow(&method, url.clone(), until);
        timeout_at(until, followed).await.map_err(|_| FetchError::Timeout(url))?
    }

    async fn follow(&self, method: &Method, mut url: Url, until: Instant) -> Result<Answer, FetchError> {
        for _ in 0..=MAX_REDIRECTS {
            self.allowed(&url)?;
            let addresses = self.addresses(&url).await?;
            let broken = |error| broken(&url, error);
            let client = client(&url, addresses).map_err(broken)?;
            let request = client.request(method.clone(), url.clone()).header(ACCEPT, LIKED);
            let response = request.send().await.map_err(broken)?;
            let Some(next) = next(&url, &response)? else { return Ok(Answer { url, until, response }) };
            let host = next.host_str().unwrap_or_default();
            if url.host_str() != Some(host) && self.ruled.iter().any(|pattern| pattern.allows(host)) {
                return Err(FetchError::Ruled(url.into(), next.into()));
            }
            url = next;
        }
        Err(FetchError::Redirects(url))
    }

    /// The addresses of the host of `url`, all of which may be dialled.
    async fn addresses(&self, url: &Url) -> Result<Vec<SocketAddr>, FetchError> {
        let shown = url.host_str().unwrap_or_default();
        let host = shown.trim_start_matches('[').trim_end_matches(']');
        let port = url.port_or_known_default().unwrap_or_default();
        let unknown = |why: String| FetchError::Unknown(shown.to_owned(), why);
        let found = lookup_host((host, port)).await.map_err(|error| unknown(error.to_string()))?;
        let found: Vec<SocketAddr> = found.take(ADDRESSES).collect();
        if found.is_empty() {
            return Err(unknown("it has no address".to_owned()));
        }
        for address in &found {
            self.judge(shown, *address).await?;
        }
        Ok(found)
    }

    /// Whether `address`, one of those of `host`, may be dialled. One that may not is not left out but refuses the host:
    /// a public name for a private address is an attack or a mistake.
    async fn judge(&self, host: &str, address: SocketAddr) -> Result<(), FetchError> {
        let (ip, port) = (address.ip(), address.port());
        let private = |reason| FetchError::Private { host: host.to_owned(), address: ip, reason };
        match address::objection(ip) {
            _ if self.private.contains(&address) => Ok(()),
            Some(reason) => Err(private(reason)),
            None if is_own(ip).await => Err(private("this machine")),
            None if port < FIRST_FREE_PORT && !PAGE_PORTS.contains(&port) => Err(FetchError::Port(address)),
            None => Ok(()),
        }
    }
}

/// What went wrong with an exchange.
fn broken(url: &Url, error: reqwest::Error) -> FetchError {
    let error = error.without_url();
    if error.is_connect() && is_tls(&error) {
        return FetchError::Certificate(url.host_str().unwrap_or_default().to_owned(), causes(&error));
    }
    FetchError::Broken(url.clone(), causes(&error))
}

/// Whether a public address is one of this machine: then packets to it would come from it. None is sent.
async fn is_own(ip: IpAddr) -> bool {
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
fn next(url: &Url, response: &Response) -> Result<Option<Url>, FetchError> {
    let redirects = [
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::FOUND,
        StatusCode::SEE_OTHER,
        StatusCode::TEMPORARY_REDIRECT,
        StatusCode::PERMANENT_REDIRECT,
    ];
    let location = response.headers().get(LOCATION).filter(|_| redirects.contains(&response.status()));
    let Some(location) = location else { return Ok(None) };
    let unusable = || FetchError::Broken(url.clone(), "it redirects to what is no address".to_owned());
    let location = location.to_str().map_err(|_| unusable())?;
    let next = url.join(location).map_err(|_| unusable())?;
    let next = target::checked(next)
        .map_err(|why| FetchError::Address(format!("{} redirects elsewhere. {why}", url.as_str())))?;
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
        .dns_resolver(Arc::new(Pinned(addresses)))
        .no_proxy()
        .referer(false)
        .redirect(redirect::Policy::none())
        .http1_max_headers(HEADERS_CAP)
        .http2_max_header_list_size(HEADER_BYTES_CAP)
        .pool_max_idle_per_host(0);
    if url.scheme() == "http" {
        // Plain http has no use for the system's store of roots, which takes a while to read.
        builder = builder.tls_certs_only([]);
    }
    builder.build()
}

/// A resolver that knows only addresses that were judged, whatever it is asked.
struct Pinned(Vec<SocketAddr>);

impl Resolve for Pinned {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

impl Answer {
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
    pub fn encoding(&self) -> Option<&str> {
        let encoding =
            self.response.headers().get(CONTENT_ENCODING)?.to_str().unwrap_or("an unknown encoding");
        Some(encoding.trim()).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
    }

    /// How long the body is said to be, in bytes on the wire.
    pub fn announced_length(&self) -> Option<u64> {
        self.response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// The headers whose values are text, in the server's order.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self.response.headers().iter();
        headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// The beginning of the body, decompressed: at most [`BODY_CAP`] bytes, within what is left of [`TIME`].
    ///
    /// # Errors
    /// When the time is up or the connection breaks.
    pub async fn read(mut self) -> Result<Body, FetchError> {
        let mut bytes = Vec::new();
        loop {
            let chunk = timeout_at(self.until, self.response.chunk())
                .await
                .map_err(|_| FetchError::Timeout(self.url.clone()))?
                .map_err(|error| broken(&self.url, error))?;
            let Some(chunk) = chunk else { return Ok(Body { bytes, is_cut: false }) };
            bytes.extend_from_slice(&chunk);
            if bytes.len() > BODY_CAP {
                bytes.truncate(BODY_CAP);
                return Ok(Body { bytes, is_cut: true });
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
        let fetcher = Fetcher { private, ..Fetcher::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for address in addresses {
                fetcher.judge("h", address.parse().unwrap()).await?;
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
            assert!(matches!(judged(&[], &addresses), Err(FetchError::Private { .. })), "{addresses:?}");
        }
        assert_eq!(judged(&["10.0.0.1:80"], &["1.1.1.1:80", "10.0.0.1:80"]), Ok(()));
        assert!(judged(&["10.0.0.1:80"], &["10.0.0.1:81"]).is_err(), "an address is allowed with its port");
    }

    #[test]
    fn t27_ports_of_other_protocols_are_not_dialled() {
        for port in [1, 22, 25, 79, 81, 110, 442, 587, 993, 1023] {
            let address = format!("1.1.1.1:{port}");
            assert_eq!(judged(&[], &[&address]), Err(FetchError::Port(address.parse().unwrap())));
        }
        for port in [80, 443, 1024, 8080, 65535] {
            assert_eq!(judged(&[], &[&format!("1.1.1.1:{port}")]), Ok(()));
        }
        assert_eq!(judged(&["10.0.0.1:81"], &["10.0.0.1:81"]), Ok(()));
    }
}
