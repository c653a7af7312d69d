//! What may be asked for: the addresses of pages, read strictly, and the hosts that the user allows.

use reqwest::Url;

/// The longest address of a page, in characters: what servers and proxies commonly take (RFC 9110 asks for 8,000; a
/// person who is to approve one must be able to read it).
const URL_CHARS: usize = 2048;

/// Reads the address of a page. What comes out is what is shown to people and what is asked for.
///
/// # Errors
/// What is wrong with it, for a model.
pub fn parse_page_url(raw: &str) -> Result<Url, String> {
    let wrong = |why: &str| Err(format!("The url cannot be fetched: {why}."));
    if raw.chars().count() > URL_CHARS {
        return wrong("it is longer than 2048 characters");
    }
    // Readers of addresses disagree about these; the shown one must be the one that is asked for.
    if raw.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return wrong("it holds a space, a control character or a backslash; write them as %20 and the like");
    }
    match Url::parse(raw) {
        Ok(url) => check_page_url(url),
        Err(error) => wrong(&format!("{error}; it must begin with http:// or https://")),
    }
}

/// Whether `url`, which may come from a redirect, is the address of a page.
///
/// # Errors
/// As [`parse_page_url`].
pub fn check_page_url(mut url: Url) -> Result<Url, String> {
    let wrong = |why: &str| Err(format!("The url cannot be fetched: {why}."));
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("only http and https are");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("it holds a user name or password");
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

/// Hosts that the user allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// `*`: every one.
    Any,
    /// `example.org`: this one.
    Exact(String),
    /// `*.example.org`: those below it, with the dot in front.
    Subdomains(String),
}

impl HostPattern {
    /// Reads `*`, `example.org`, `*.example.org` or an address.
    ///
    /// # Errors
    /// What such an entry must be.
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

    /// Whether `host`, as a parsed address holds it, is one of these.
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
