//! The environment variables of connections: proxies, hosts that need none, and root certificates. `reqwest` reads them too, but
//! ignores a proxy that it does not understand, and some forms of `NO_PROXY`.

use super::HttpError;
use hyper::Uri;
use reqwest::Url;
use std::env::VarError;
use std::net::IpAddr;

/// Schemes of proxies that `reqwest` understands.
const PROXY_SCHEMES: [&str; 6] = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];

/// Variables that name the root certificates.
const CERTIFICATE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Checks the proxy that the variables name for `url`.
///
/// # Errors
/// When it cannot be used: without it, the connection would be a direct one.
pub(super) fn check_proxy(url: &Url) -> Result<(), HttpError> {
    let own =
        if url.scheme() == "https" { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let set = first_set(own)?.filter(|(_, value)| !value.is_empty());
    let set = match set {
        Some(set) => Some(set),
        None => first_set(["ALL_PROXY", "all_proxy"])?,
    };
    let Some((name, value)) = set.filter(|(_, value)| !value.is_empty()) else { return Ok(()) };
    proxy_problem(&value).map_or(Ok(()), |why| Err(HttpError::Setup(format!("{name} cannot be used: {why}"))))
}

/// Checks whether `NO_PROXY` excepts `url` from proxies.
///
/// # Errors
/// When the variable is not UTF-8.
pub(super) fn is_excepted(url: &Url) -> Result<bool, HttpError> {
    let list = first_set(["NO_PROXY", "no_proxy"])?.map(|(_, list)| list).unwrap_or_default();
    Ok(excepts(&list, url.host_str().unwrap_or_default(), url.port_or_known_default()))
}

/// Checks whether variables name the root certificates.
pub(super) fn name_certificates() -> bool {
    CERTIFICATE_VARIABLES.into_iter().any(|name| !matches!(variable(name), Ok(None)))
}

/// Describes the failure to set up TLS because of `cause`.
pub(super) fn tls_problem(cause: &str) -> String {
    let set = CERTIFICATE_VARIABLES.into_iter().filter_map(|name| Some((name, variable(name).ok()??)));
    let set: Vec<String> = set.map(|(name, value)| format!("{name} ({value})")).collect();
    match set.as_slice() {
        [] => format!(
            "{cause}; install the root certificates of this system, or name a file with them in SSL_CERT_FILE"
        ),
        set => format!("no root certificate can be read from {}: {cause}", set.join(" or ")),
    }
}

/// Returns the first variable that is set, with its value.
fn first_set(names: [&'static str; 2]) -> Result<Option<(&'static str, String)>, HttpError> {
    for name in names {
        if let Some(value) = variable(name)? {
            return Ok(Some((name, value)));
        }
    }
    Ok(None)
}

#[expect(clippy::disallowed_methods, reason = "reqwest reads the same variables itself")]
fn variable(name: &str) -> Result<Option<String>, HttpError> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            Err(HttpError::Setup(format!("{name} cannot be used: it is not UTF-8")))
        }
    }
}

/// Returns why the address of a proxy cannot be used. It does not contain the address, which may have a password.
fn proxy_problem(value: &str) -> Option<String> {
    let form = "it is not the address of a proxy, such as http://HOST:PORT";
    let Ok(uri) = value.parse::<Uri>() else { return Some(form.to_owned()) };
    if let Some(scheme) = uri.scheme_str().filter(|scheme| !PROXY_SCHEMES.contains(scheme)) {
        return Some(format!("the scheme `{scheme}` is not one of {}", PROXY_SCHEMES.join(", ")));
    }
    let authority = uri.authority().map(hyper::http::uri::Authority::as_str).unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let is_usable = Url::parse(&format!("http://{address}/")).is_ok_and(|url| url.host_str().is_some());
    (!is_usable).then(|| form.to_owned())
}

/// Checks whether an entry of `list` (`NO_PROXY`) matches a host and port. Entries are separated by commas or blanks: `*`, a name with
/// its subdomains, `.name` or `*.name`, an address, a network such as `10.0.0.0/8`; each also with a port.
fn excepts(list: &str, host: &str, port: Option<u16>) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']).to_ascii_lowercase();
    let mut entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    entries.any(|entry| {
        let entry = entry.to_ascii_lowercase();
        let (name, entry_port) = match entry.rsplit_once(':') {
            Some((name, digits)) if !name.contains(':') || name.ends_with(']') => (name, Some(digits)),
            _ => (entry.as_str(), None),
        };
        let has_port = entry_port.is_none_or(|digits| digits.parse().ok() == port && port.is_some());
        has_port && matches_host(name.trim_start_matches('[').trim_end_matches(']'), &host)
    })
}

fn matches_host(entry: &str, host: &str) -> bool {
    if entry == "*" {
        return true;
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        let (network, bits) = entry.split_once('/').unwrap_or((entry, "128"));
        return network
            .parse::<IpAddr>()
            .is_ok_and(|network| is_in_network(address, network, bits.parse().unwrap_or(128)));
    }
    let is_below = |name: &str| host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    if let Some(name) = entry.strip_prefix("*.") {
        return is_below(name);
    }
    let name = entry.trim_start_matches('.').trim_end_matches('.');
    !name.is_empty() && (host == name || is_below(name))
}

fn is_in_network(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits.min(32)
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            (address.to_bits() ^ network.to_bits()).leading_zeros() >= bits.min(128)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fault A18: with such a proxy, the connection was a direct one, without a line.
    #[test]
    fn a_proxy_that_cannot_be_used_is_described_without_its_password() {
        for proxy in [
            "http://h:3128",
            "https://u:p@h",
            "socks5h://h:1080",
            "h:3128",
            "h",
            "http://[::1]:1/",
            "http://10.0.0.1",
        ] {
            assert_eq!(proxy_problem(proxy), None, "{proxy}");
        }
        for (proxy, problem) in [
            ("socks://h:1", "`socks`"),
            ("SOCKS5H://h:1", "`SOCKS5H`"),
            ("ftp://h", "`ftp`"),
            ("http://", "not the address"),
            ("http://[bad", "not the address"),
            ("http://u:secret@", "not the address"),
            ("http://h:99999", "not the address"),
            ("http://h: 80", "not the address"),
            ("/run/proxy.sock", "not the address"),
            ("\"http://h:1\"", "not the address"),
        ] {
            let why = proxy_problem(proxy).unwrap_or_default();
            assert!(why.contains(problem) && !why.contains("secret"), "{proxy}: {why}");
        }
    }

    // Fault A18: `*.test`, `host:port` and lists with blanks were ignored.
    #[test]
    fn exceptions_from_proxies_have_the_usual_forms() {
        let excepted = |list: &str, host: &str| excepts(list, host, Some(443));
        for (list, host) in [
            ("*", "h.test"),
            ("test", "h.test"),
            (".test", "h.test"),
            ("*.test", "a.h.test"),
            ("h.test:443", "h.test"),
            ("*.test:443", "h.test"),
            ("other h.test", "h.test"),
            ("other,\t H.Test ", "h.TEST"),
            ("10.0.0.0/8", "10.2.3.4"),
            ("10.2.3.4:443 x", "10.2.3.4"),
            ("fd00::/8", "[fd00::1]"),
            ("[fd00::1]:443", "[fd00::1]"),
        ] {
            assert!(excepted(list, host), "{list} {host}");
        }
        for (list, host) in [
            ("", "h.test"),
            ("est", "h.test"),
            ("*.test", "test"),
            ("h.test:8443", "h.test"),
            ("h.test:x", "h.test"),
            ("10.0.0.0/8", "11.0.0.1"),
            ("fd00::1", "[fd00::2]"),
            (", ,", "h.test"),
        ] {
            assert!(!excepted(list, host), "{list} {host}");
        }
    }
}
