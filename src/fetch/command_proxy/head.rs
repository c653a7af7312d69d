//! The head of a request to the proxy: parsed strictly, so that what is checked is what is dialled.

use crate::allowed_host::{host_name, parse_port};
use httparse::{EMPTY_HEADER, Status};
use std::fmt::Write as _;

/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;

/// Port of HTTPS, for which a command asks for a connection.
const HTTPS_PORT: u16 = 443;

/// Headers that concern only the connection to the proxy (RFC 9110, 7.6.1), and `Host`, which is written anew.
const NOT_FORWARDED: [&str; 8] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
];

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyRequest {
    /// The host, a name in lower case.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The head to send to the host; `None` for `CONNECT`, which asks for a connection.
    pub head: Option<String>,
    /// Number of bytes of the head that was read.
    pub length: usize,
}

/// Why a head is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadError {
    /// It is not a request that the proxy understands, for this reason.
    Malformed(&'static str),
    /// What it names in place of a host with a port.
    Host(String),
}

impl From<&'static str> for HeadError {
    fn from(reason: &'static str) -> Self {
        Self::Malformed(reason)
    }
}

/// Parses the head at the start of `bytes`; `None` while it is incomplete.
///
/// # Errors
/// What is wrong with it.
pub fn parse(bytes: &[u8]) -> Result<Option<ProxyRequest>, HeadError> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(_) => return Err("the request is not HTTP/1".into()),
    };
    let (method, target) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    if method == "CONNECT" {
        let (host, port) = target.rsplit_once(':').unwrap_or((target, ""));
        let (host, port) = checked(host, port)?;
        return Ok(Some(ProxyRequest { host, port, head: None, length }));
    }
    let prefix = target.get(..7).unwrap_or_default();
    if !prefix.eq_ignore_ascii_case("http://") {
        return Err("a request to the proxy needs an address that begins with http://, or CONNECT".into());
    }
    let rest = target.get(7..).unwrap_or_default();
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    let (host, port) = checked(host, port)?;
    if port == HTTPS_PORT {
        return Err("plain HTTP to port 443 is not forwarded".into());
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head = format!("{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\n");
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).map_err(|_| "a header is not UTF-8 text")?;
        if !NOT_FORWARDED.iter().any(|name| header.name.eq_ignore_ascii_case(name)) {
            let _infallible = write!(head, "{}: {value}\r\n", header.name);
        }
    }
    head.push_str("Connection: close\r\n\r\n");
    Ok(Some(ProxyRequest { host, port, head: Some(head), length }))
}

fn checked(host: &str, port: &str) -> Result<(String, u16), HeadError> {
    match (host_name(host), parse_port(port)) {
        (Some(host), Some(port)) => Ok((host, port)),
        _ => Err(HeadError::Host(format!("{host}:{port}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(head: &str) -> Result<Option<(String, u16)>, HeadError> {
        parse(head.as_bytes()).map(|found| found.map(|found| (found.host, found.port)))
    }

    #[test]
    fn class_54_only_names_with_a_port_pass_and_nothing_of_a_split_head_is_used() {
        assert_eq!(target("CONNECT A.test:443 HTTP/1.1\r\n\r\n"), Ok(Some(("a.test".to_owned(), 443))));
        assert_eq!(target("GET http://a.test HTTP/1.1\r\n\r\n"), Ok(Some(("a.test".to_owned(), 80))));
        assert_eq!(
            target("GET HTTP://a.test:8080/x HTTP/1.1\r\n\r\n"),
            Ok(Some(("a.test".to_owned(), 8080)))
        );
        for partial in
            ["", "CONN", "CONNECT a.test:443 HTTP/1.1\r\n", "CONNECT a.test:443 HTTP/1.1\r\nA: b\r\n\r"]
        {
            assert_eq!(target(partial), Ok(None), "{partial:?}");
        }
        for wrong in [
            "CONNECT a.test HTTP/1.1\r\n\r\n",
            "CONNECT a.test:443:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.test\0.evil.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.test%00.evil.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.test.:443 HTTP/1.1\r\n\r\n",
            "CONNECT u@a.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT 127.0.0.1:443 HTTP/1.1\r\n\r\n",
            "CONNECT 0x7f000001:443 HTTP/1.1\r\n\r\n",
            "CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
            "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
            "CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1\r\n\r\n",
            "CONNECT [fe80::1%25lo]:443 HTTP/1.1\r\n\r\n",
            "CONNECT ::1:443 HTTP/1.1\r\n\r\n",
            "CONNECT http://a.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.test:0443 HTTP/1.1\r\n\r\n",
            "CONNECT a.test:99999 HTTP/1.1\r\n\r\n",
            "CONNECT  a.test:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.test:443 HTTP/2.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET https://a.test/ HTTP/1.1\r\n\r\n",
            "GET http://a.test:443/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.test/ HTTP/1.1\r\n\r\n",
            "GET http://a.test\\@evil.test/ HTTP/1.1\r\n\r\n",
            "GET http://u:p@a.test/ HTTP/1.1\r\n\r\n",
            "GET http://a.test#@evil.test/ HTTP/1.1\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nA : b\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\n folded\r\n\r\n",
            "GET http:///a.test/ HTTP/1.1\r\n\r\n",
            "\u{16}\u{3}\u{1}\u{2}",
            "\u{5}\u{1}\u{0}",
        ] {
            assert!(target(wrong).is_err(), "{wrong:?}: {:?}", target(wrong));
        }
    }

    #[test]
    fn class_54_the_host_that_is_checked_is_the_host_that_is_sent() {
        let request = "GET http://a.test/x?y HTTP/1.1\r\nHost: evil.test\r\nProxy-Connection: keep-alive\r\nConnection: x\r\nAccept: */*\r\n\r\nbody";
        let found = parse(request.as_bytes()).unwrap().unwrap();
        assert_eq!(
            found.head.unwrap(),
            "GET /x?y HTTP/1.1\r\nHost: a.test\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(request.get(found.length..), Some("body"));
        let found = parse(b"GET http://a.test?q HTTP/1.1\r\n\r\n").unwrap().unwrap();
        assert!(found.head.unwrap().starts_with("GET /?q HTTP/1.1\r\nHost: a.test\r\n"));
    }

    proptest! {
        #[test]
        fn class_54_whatever_is_sent_a_request_names_a_host_in_strict_form(
            bytes in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                "(CONNECT|GET) (http://)?[a-z0-9.:@\\[\\]%\\\\/\0 x-]{0,30} HTTP/1.1\r\n(A: b\r\n)?\r\n".prop_map(String::into_bytes),
            ]
        ) {
            if let Ok(Some(found)) = parse(&bytes) {
                prop_assert_eq!(host_name(&found.host), Some(found.host.clone()));
                if let Some(head) = found.head {
                    prop_assert_eq!(head.matches("\r\n\r\n").count(), 1);
                }
            }
        }
    }
}
