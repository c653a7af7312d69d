//! Credentials in URLs: user information, and the values of parameters such as `token`.

use std::borrow::Cow;
use std::ops::Range;

/// In place of the value of a parameter.
const HIDDEN: &str = "[redacted]";

/// Ends of the names of parameters whose values are secrets; compared in lower case, with `_` in place of `-`.
const SECRET_PARAMETERS: [&str; 10] =
    ["token", "key", "secret", "password", "passwd", "pwd", "auth", "credential", "signature", "sig"];

/// Characters that end a URL in a text.
const URL_ENDS: [char; 7] = ['"', '\'', '`', '<', '>', '\\', '|'];

/// Returns `text` without user information in its URLs, and with the values of secret parameters replaced. The user of an `ssh` URL
/// stays: it is no secret.
pub fn hide(text: &str) -> Cow<'_, str> {
    let found = find(text);
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
    for Credential { range, replacement, .. } in found {
        shown.push_str(text.get(end..range.start).unwrap_or_default());
        shown.push_str(replacement);
        end = range.end;
    }
    shown.push_str(text.get(end..).unwrap_or_default());
    Cow::Owned(shown)
}

/// Returns the passwords and the values of secret parameters in a URL.
pub fn secrets_in(url: &str) -> Vec<&str> {
    find(url)
        .into_iter()
        .filter_map(|found| url.get(found.secret))
        .filter(|secret| !secret.is_empty())
        .collect()
}

/// A credential in a text.
struct Credential {
    /// What is replaced.
    range: Range<usize>,
    replacement: &'static str,
    /// The part of it that is secret.
    secret: Range<usize>,
}

/// Returns the credentials in a text, in their order.
fn find(text: &str) -> Vec<Credential> {
    let mut found = Vec::new();
    for (at, separator) in text.match_indices("://") {
        let scheme = text.get(..at).unwrap_or_default();
        let start = at + separator.len();
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.find(|c: char| c.is_whitespace() || URL_ENDS.contains(&c)).unwrap_or(rest.len());
        let url = rest.get(..length).unwrap_or_default();
        let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
        if let Some((user, _host)) = authority.rsplit_once('@') {
            let (colon, end) = (user.find(':').map(|colon| start + colon), start + user.len());
            let range = match (scheme.ends_with("ssh"), colon) {
                (true, None) => None,
                (true, Some(colon)) => Some(colon..end),
                (false, _) => Some(start..end + 1),
            };
            let secret = colon.map_or(start, |colon| colon + 1)..end;
            found.extend(range.map(|range| Credential { range, replacement: "", secret }));
        }
        let Some(query) = url.find(['?', '#']) else { continue };
        let mut position = start + query + 1;
        for parameter in url.get(query + 1..).unwrap_or_default().split(['&', ';', '#', '?']) {
            if let Some((name, value)) = parameter.split_once('=').filter(|(name, _)| is_secret(name)) {
                let value = position + name.len() + 1..position + name.len() + 1 + value.len();
                found.push(Credential { range: value.clone(), replacement: HIDDEN, secret: value });
            }
            position += parameter.len() + 1;
        }
    }
    found
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_PARAMETERS.iter().any(|end| name.trim_end_matches('s').ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Fault E7: tokens in URLs were stored and printed.
    #[test]
    fn user_information_and_token_parameters_are_hidden_wherever_a_text_has_a_url() {
        for (text, shown) in [
            ("https://u:TOKEN@host/x", "https://host/x"),
            ("https://TOKEN@host/x#v1", "https://host/x#v1"),
            ("fatal: unable to access 'https://u:p@h/x/': no", "fatal: unable to access 'https://h/x/': no"),
            ("ssh://git@host/x", "ssh://git@host/x"),
            ("ssh://git:pw@host/x", "ssh://git@host/x"),
            ("git@host:a/b.git", "git@host:a/b.git"),
            ("https://h/mcp?a=1&token=T&b=2", "https://h/mcp?a=1&token=[redacted]&b=2"),
            ("https://h/mcp?API-Key=T", "https://h/mcp?API-Key=[redacted]"),
            ("https://h/#access_token=T", "https://h/#access_token=[redacted]"),
            ("a https://x:y@h b https://h?sig=T c", "a https://h b https://h?sig=[redacted] c"),
            ("https://h/a@b?q=x@y", "https://h/a@b?q=x@y"),
            ("no url: a?token=b", "no url: a?token=b"),
            ("ä://ö:ü@h/ß?tokens=ü", "ä://h/ß?tokens=[redacted]"),
        ] {
            assert_eq!(hide(text), shown, "{text}");
            assert_eq!(hide(&hide(text)), shown, "{text}");
        }
        assert_eq!(secrets_in("https://u:pw@h/?x=1&token=T"), ["pw", "T"]);
        assert_eq!(secrets_in("ssh://git@h/x"), Vec::<&str>::new());
    }
}
