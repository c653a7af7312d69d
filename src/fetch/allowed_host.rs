//! Hosts that confined commands may reach, and the strict form of host names in requests.

use super::page_url::HostPattern;
use super::{PAGE_PORTS, may_dial};

/// Maximum length of a host name and of one of its labels in characters (RFC 1035, 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A host of `sandbox.allowed_hosts`: `example.org`, `*.example.org` (all subdomains) or `example.org:8443`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    host: HostPattern,
    /// Absent: the ports of http and https.
    port: Option<u16>,
}

impl AllowedHost {
    /// Parses `HOST[:PORT]`.
    ///
    /// # Errors
    /// The allowed forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, parse_port(port).filter(|port| may_dial(*port)).map(Some)),
            None => (text, Some(None)),
        };
        let is_name = host_name(host.strip_prefix("*.").unwrap_or(host)).is_some();
        match (HostPattern::parse(host), port) {
            (Ok(host), Some(port)) if is_name => Ok(Self { host, port }),
            _ => Err("must be a host such as `example.org`, `*.example.org` or `example.org:8443`, in ASCII and not an \
                      IP address, with port 80, 443 or one above 1023"
                .to_owned()),
        }
    }

    /// Checks whether `port` of `host`, as [`host_name`] returns it, is allowed.
    pub fn allows(&self, host: &str, port: u16) -> bool {
        self.host.matches(host) && self.port.map_or(PAGE_PORTS.contains(&port), |own| own == port)
    }
}

/// Returns `text` in lower case if it is the name of a host in ASCII: no IP address in any spelling, no trailing dot, no user name.
pub fn host_name(text: &str) -> Option<String> {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_plain)
    };
    // A name whose last label is a number is an IPv4 address (URL standard, 3.5).
    let is_number = |label: &str| {
        let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
        label.bytes().all(|byte| byte.is_ascii_digit())
            || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    let is_name = text.len() <= MAX_NAME
        && text.split('.').all(is_label)
        && text.rsplit('.').next().is_some_and(|last| !is_number(last));
    is_name.then(|| text.to_ascii_lowercase())
}

/// Returns the port that `text` names: decimal digits only, without leading zeros.
pub fn parse_port(text: &str) -> Option<u16> {
    let is_plain = !text.starts_with(['0', '+']) && text.len() <= 5;
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn class_54_names_are_names_and_addresses_are_refused_in_every_form() {
        for name in ["example.org", "EXAMPLE.org", "a-b.c_d", "localhost", "xn--bcher-kva.example", "1.a"] {
            assert_eq!(host_name(name), Some(name.to_ascii_lowercase()), "{name}");
        }
        for wrong in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "a b",
            "a\0b",
            "a\0.example.org",
            "u@a",
            "a/b",
            "a:b",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0x7F000001",
            "0x",
            "1.2.3.0x4",
            "[::1]",
            "::1",
            "[::ffff:127.0.0.1]",
            "bücher.example",
            "a%00b",
            "a\\b",
            "a#b",
            "a?b",
            "*",
        ] {
            assert_eq!(host_name(wrong), None, "{wrong:?}");
            assert!(AllowedHost::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(host_name(&"a".repeat(64)).is_none() && host_name(&"a.".repeat(127)).is_none());
    }

    #[test]
    fn class_54_a_host_allows_its_web_ports_or_its_own_and_a_star_only_subdomains() {
        let allows =
            |pattern: &str, host: &str, port| AllowedHost::parse(pattern).unwrap().allows(host, port);
        assert!(allows("example.org", "example.org", 443) && allows("Example.org", "example.org", 80));
        assert!(!allows("example.org", "example.org", 22) && !allows("example.org", "a.example.org", 443));
        assert!(
            allows("example.org:8443", "example.org", 8443)
                && !allows("example.org:8443", "example.org", 443)
        );
        assert!(allows("*.example.org", "a.b.example.org", 443));
        for other in ["example.org", "evilexample.org", ".example.org", "example.org.evil.test"] {
            assert!(!allows("*.example.org", other, 443), "{other}");
        }
        for wrong in ["a:0", "a:22", "a:", "a:65536", "a:080", "a:+80", "a:80:80", "*", "*.", "a.*.b"] {
            assert!(AllowedHost::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_stable_and_no_address(text in "[a-zA-Z0-9.:\\[\\]x@/_-]{0,20}") {
            if let Some(name) = host_name(&text) {
                prop_assert_eq!(host_name(&name), Some(name.clone()));
                prop_assert!(name.parse::<std::net::IpAddr>().is_err());
                if let Ok(url) = reqwest::Url::parse(&format!("http://{name}/")) {
                    prop_assert!(url.host_str().unwrap().parse::<std::net::Ipv4Addr>().is_err(), "{}", url);
                }
            }
        }
    }
}
