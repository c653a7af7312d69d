//! URLs of web pages, parsed strictly, and patterns of the hosts that the user allows.

use reqwest::Url;

/// Maximum length of a URL in characters, as servers and proxies commonly accept (RFC 9110 recommends 8,000; a user who
/// approves a URL must be able to read it).
const URL_CHARS: usize = 2048;

/// Parses the URL of a page. The result is both shown to the user and requested.
///
/// # Errors
/// What is wrong with the URL, as text for the model.
pub fn parse_page_url(raw: &str) -> Result<Url, String> {
    let wrong = |why: &str| Err(format!("The url cannot be fetched: {why}."));
    if raw.chars().count() > URL_CHARS {
        return wrong("it is longer than 2048 characters");
    }
    // URL parsers disagree about these characters; the URL shown must be the one requested.
    if raw.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return wrong(
            "it contains a space, a control character or a backslash; percent-encode it, for example as %20",
        );
    }
    match Url::parse(raw) {
        Ok(url) => check_page_url(url),
        Err(error) => wrong(&format!("{error}; it must begin with http:// or https://")),
    }
}

/// Checks whether `url`, which may come from a redirect, is the URL of a page.
///
/// # Errors
/// As [`parse_page_url`].
pub fn check_page_url(mut url: Url) -> Result<Url, String> {
    let wrong = |why: &str| Err(format!("The url cannot be fetched: {why}."));
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("only http and https are supported");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("it contains a user name or password");
    }
    let host = url.host_str().unwrap_or_default();
    if host.is_empty() || host.ends_with('.') {
        return wrong("its host is empty or ends with a dot");
    }
    if url.as_str().len() > URL_CHARS {
        return wrong("it is longer than 2048 characters");
    }
    url.set_fragment(None);
    Ok(url)
}

/// Pattern of hosts that the user allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// `*`: every host.
    Any,
    /// `example.org`: this host.
    Exact(String),
    /// `*.example.org`: its subdomains; stored with the leading dot.
    Subdomains(String),
}

impl HostPattern {
    /// Parses `*`, `example.org`, `*.example.org` or an IP address.
    ///
    /// # Errors
    /// The allowed forms of a pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, below) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
        let plain = !name.is_empty() && !name.contains(['/', '@', '?', '#', '\\', '*', ' ']);
        let url = plain.then(|| Url::parse(&format!("http://{name}/")).ok()).flatten();
        let host = url.filter(|url| url.port().is_none() && !name.ends_with(":80"));
        match host.as_ref().and_then(Url::host_str) {
            Some(host) if !host.is_empty() && !host.ends_with('.') && below => {
                Ok(Self::Subdomains(format!(".{host}")))
            }
            Some(host) if !host.is_empty() && !host.ends_with('.') => Ok(Self::Exact(host.to_owned())),
            _ => Err(
                "must be a host such as `example.org`, `*.example.org` or `*`, without scheme, port and path"
                    .to_owned(),
            ),
        }
    }

    /// Checks whether `host`, as a parsed URL contains it, matches the pattern.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(name) => name == host,
            Self::Subdomains(end) => host.len() > end.len() && host.ends_with(end.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn class_53_odd_forms_of_an_address_are_read_as_what_they_mean_or_refused() {
        for (raw, host) in [
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://0177.0.0.1/", "127.0.0.1"),
            ("http://127.1/", "127.0.0.1"),
            ("http://127.0.0.1./", "127.0.0.1"),
            ("http://１２７.0.0.1/", "127.0.0.1"),
            ("http://[::ffff:7f00:1]/", "[::ffff:7f00:1]"),
            ("http://[0:0:0:0:0:0:0:1]/", "[::1]"),
            ("HTTP://EXAMPLE.org:80/a#b", "example.org"),
            ("https://bücher.example/", "xn--bcher-kva.example"),
        ] {
            assert_eq!(parse_page_url(raw).unwrap().host_str(), Some(host), "{raw}");
        }
        for raw in [
            "",
            "example.org",
            "file:///etc/passwd",
            "ftp://example.org/",
            "gopher://example.org/",
            "data:text/plain,x",
            "javascript:1",
            "http://",
            "http://user@example.org/",
            "http://:secret@example.org/",
            "http://example.org./",
            "http://[fe80::1%25eth0]/",
            "http://[::1",
            "http://exa mple.org/",
            "http://example.org\\@127.0.0.1/",
            "http://example.org/\t",
            "http://example.org:99999/",
            "http://256.256.256.256/",
        ] {
            assert!(parse_page_url(raw).is_err(), "{raw}");
        }
        assert!(parse_page_url(&format!("http://example.org/{}", "a".repeat(URL_CHARS))).is_err());
    }

    #[test]
    fn class_51_hosts_are_compared_whole_and_an_entry_is_nothing_but_a_host() {
        let allows = |pattern: &str, host: &str| HostPattern::parse(pattern).unwrap().matches(host);
        assert!(allows("Example.ORG", "example.org") && allows("*", "example.org"));
        assert!(allows("*.example.org", "docs.example.org") && allows("[::1]", "[::1]"));
        for host in ["example.org.evil.test", "notexample.org", "evil.test", "example.or", "a.example.org"] {
            assert!(!allows("example.org", host), "{host}");
        }
        for host in ["example.org", "evil-example.org", "docs.example.org.evil.test"] {
            assert!(!allows("*.example.org", host), "{host}");
        }
        for text in [
            "",
            "http://example.org",
            "example.org/x",
            "a@b",
            "example.org:80",
            "example.org:8080",
            "*.",
            "a.*",
            "example.org.",
            "**",
        ] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_reads_the_same_again(raw in "(https?://)?[a-z0-9.:@%\\[\\]/\\\\#?xé -]{0,40}") {
            if let Ok(url) = parse_page_url(&raw) {
                prop_assert_eq!(parse_page_url(url.as_str()), Ok(url.clone()));
                prop_assert!(url.as_str().is_ascii());
            }
        }
    }
}
