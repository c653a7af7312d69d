//! Links on a terminal: which terminals show them, and which addresses they may have. The address is text of a model and can be hostile.

use super::streams::{Style, TerminalEnvironment};
use std::fmt::Write;
use std::sync::Arc;

/// Bytes of an address; longer ones are cut or ignored by terminals.
const MAX_ADDRESS_BYTES: usize = 2_000;
/// Values of `TERM_PROGRAM` and beginnings of `TERM` of terminals that show links.
const PROGRAMS: [&str; 8] =
    ["Hyper", "WezTerm", "ghostty", "iTerm.app", "mintty", "terminology", "vscode", "zed"];
const TERMINALS: [&str; 5] = ["alacritty", "foot", "wezterm", "xterm-ghostty", "xterm-kitty"];
/// Beginnings of `TERM` inside a program that may take links out of what it shows.
const MULTIPLEXERS: [&str; 2] = ["screen", "tmux"];
/// First version of the library VTE, that of GNOME's terminals, that shows links.
const FIRST_VTE: u32 = 5_000;
/// Characters that are shown like the dot of a host name.
const DOTS: [char; 4] = ['\u{2024}', '\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// Checks whether the terminal is known to show links (OSC 8). `FORCE_HYPERLINK` decides, as for other programs.
pub(super) fn are_shown(environment: &TerminalEnvironment) -> bool {
    let TerminalEnvironment { force_hyperlink, term, term_program, vte, .. } = environment;
    if let Some(force) = force_hyperlink {
        return force.trim() != "0";
    }
    let term = term.as_deref().unwrap_or_default();
    if MULTIPLEXERS.iter().any(|multiplexer| term.starts_with(multiplexer)) {
        return false;
    }
    let is_new_vte = vte.as_deref().and_then(|version| version.parse::<u32>().ok()) >= Some(FIRST_VTE);
    is_new_vte
        || term_program.as_deref().is_some_and(|program| PROGRAMS.contains(&program))
        || TERMINALS.iter().any(|terminal| term.starts_with(terminal))
}

/// A link with a safe address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    address: Address,
    /// Style of the text.
    style: Box<Style>,
}

impl Link {
    pub(super) fn new(address: &Address, style: Style) -> Self {
        Self { address: address.clone(), style: Box::new(style) }
    }

    /// Returns the text as a link (OSC 8), underlined.
    pub(super) fn paint(&self, text: &str) -> String {
        let style = self.style.code().map(|code| format!(";{code}")).unwrap_or_default();
        let address = &self.address.text;
        format!("\x1b]8;;{address}\x1b\\\x1b[4{style}m{text}\x1b[0m\x1b]8;;\x1b\\")
    }
}

/// An address of http or https of visible ASCII characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    text: Arc<str>,
    host: String,
}

impl Address {
    /// Returns the address, other characters percent-encoded; `None` if it is too long, or does not name its host plainly.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let is_web = ["http", "https"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
        let authority = rest.split(['/', '?', '#', '\\']).next()?;
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        let is_plain =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
        let is_safe = is_web
            && !host.is_empty()
            && is_plain(host)
            && port.bytes().all(|byte| byte.is_ascii_digit())
            && !text.chars().any(char::is_control);
        if !is_safe || text.len() > MAX_ADDRESS_BYTES {
            return None;
        }
        let mut encoded = String::with_capacity(text.len());
        for byte in text.bytes() {
            if byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        let host = host.to_ascii_lowercase();
        (encoded.len() <= MAX_ADDRESS_BYTES).then(|| Self { text: encoded.into(), host })
    }

    /// Checks whether the text of a link names another host than that of the address.
    pub(super) fn is_denied_by(&self, text: &str) -> bool {
        let without = |host: &str| host.strip_prefix("www.").unwrap_or(host).to_owned();
        let own = without(&self.host);
        let text = text.replace(DOTS, ".").to_lowercase();
        let words = text.split(|char: char| char.is_whitespace() || "()[]{}<>,;\"'".contains(char));
        words.filter_map(host_in).any(|host| without(&host) != own)
    }
}

/// Returns the host that a word looks like.
fn host_in(word: &str) -> Option<String> {
    let (is_address, rest) = word.split_once("://").map_or((false, word), |(_, rest)| (true, rest));
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let after_user = authority.rsplit('@').next().unwrap_or_default();
    let host = after_user.split(':').next().unwrap_or_default().trim_matches(['.', '!', '*', '`']);
    let last = host.rsplit_once('.').map(|(_, last)| last).unwrap_or_default();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = last.chars().filter(|char| char.is_alphabetic()).count() >= 2
        || host.split('.').count() == 4 && host.split('.').all(is_number);
    (is_address || is_host).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn u04_links_are_for_terminals_that_are_known_to_show_them() {
        let shown = |term: &str, program: Option<&str>, vte: Option<&str>, force: Option<&str>| {
            are_shown(&TerminalEnvironment {
                term: Some(term.to_owned()),
                term_program: program.map(str::to_owned),
                vte: vte.map(str::to_owned),
                force_hyperlink: force.map(str::to_owned),
                ..TerminalEnvironment::default()
            })
        };
        assert!(!shown("xterm-256color", None, None, None));
        assert!(!shown("xterm-256color", Some("Apple_Terminal"), Some("4900"), None));
        assert!(shown("xterm-256color", None, Some("7600"), None));
        assert!(shown("xterm-256color", Some("iTerm.app"), None, None));
        assert!(shown("xterm-kitty", None, None, None));
        assert!(!shown("tmux-256color", Some("iTerm.app"), Some("7600"), None));
        assert!(shown("tmux-256color", None, None, Some("1")));
        assert!(!shown("xterm-kitty", None, None, Some("0")));
    }

    #[test]
    fn u04_an_address_that_could_deceive_or_command_is_no_link() {
        for (text, encoded) in [
            ("https://x.org/a?b=1#c", Some("https://x.org/a?b=1#c")),
            ("HTTP://x.org:80", Some("HTTP://x.org:80")),
            ("https://x.org/ü \"<>\\;", Some("https://x.org/%C3%BC%20%22%3C%3E%5C;")),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("data://x", None),
            ("src/main.rs", None),
            ("https://", None),
            ("https://bank.org@x.org/", None),
            ("https://b\u{430}nk.org", None),
            ("https://x.org/\u{1b}\\\u{1b}[2J", None),
            ("https://x.org/\u{7}", None),
            ("https://x.org/\u{9c}", None),
            ("https://x.org\n.y", None),
        ] {
            assert_eq!(
                Address::parse(text).map(|address| address.text.to_string()).as_deref(),
                encoded,
                "{text:?}"
            );
        }
        assert!(Address::parse(&format!("https://x.org/{}", "a".repeat(1_980))).is_some());
        assert!(Address::parse(&format!("https://x.org/{}", "a".repeat(2_000))).is_none());
        assert!(Address::parse(&format!("https://x.org/{}", "ü".repeat(900))).is_none());
    }

    #[test]
    fn u04_a_text_that_names_another_host_is_no_text_for_the_address() {
        let address = Address::parse("https://www.x.org/a").unwrap();
        for text in ["the docs", "x.org", "https://X.org/b", "see www.x.org.", "version 1.5", "e.g. this"] {
            assert!(!address.is_denied_by(text), "{text}");
        }
        for text in [
            "bank.org",
            "https://bank.org/login",
            "go to (bank.org)",
            "x.org.bank.com",
            "user@bank.org",
            "bank\u{3002}org",
            "https://localhost:80",
            "10.0.0.1",
            "x\u{200d}.org",
            "b\u{430}nk.org",
        ] {
            assert!(address.is_denied_by(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn u04_an_address_has_only_visible_ascii_characters(text in "https?://[a-z.]{1,9}(.|\n){0,40}") {
            if let Some(address) = Address::parse(&text) {
                prop_assert!(address.text.bytes().all(|byte| byte.is_ascii_graphic()));
            }
        }
    }
}
