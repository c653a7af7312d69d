//! Replaces secrets in all output and events by `[redacted: NAME]`: known values, and keys recognized by their format.

pub mod environment_secrets;
mod event_redaction;
pub mod key_formats;
mod pending_text;
pub mod unique_keys;
pub mod url_credentials;
mod writer;

pub use pending_text::PendingText;
pub use writer::RedactingWriter;

use agent_core::secret::Secret;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE, Engine};
use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Minimum bytes of a value that is searched for; a shorter one would match unrelated text.
pub const MIN_BYTES: usize = 8;

/// Maximum number of values that are searched for; an environment with more was not written by a user.
const MAX_VALUES: usize = 256;

/// Maximum bytes of a value that is searched for; a longer one is a document, not a key.
const MAX_VALUE_BYTES: usize = 8 << 10;

/// Maximum total bytes of all values and encoded forms for one automaton; above it, they are searched one by one.
const MAX_FINDER_BYTES: usize = 1 << 20;

/// Minimum number of values and encoded forms for an automaton; below it they are searched one by one, because a small
/// automaton is only fast in text with few of its rarest letters.
const MIN_FINDER_VALUES: usize = 16;

/// Bytes in a group of base64, which is encoded as four digits.
const BASE64_GROUP: usize = 3;

/// Characters that are percent-encoded in URLs: all but the unreserved characters of RFC 3986, 2.3.
pub const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Start of a redaction marker.
const MARKER: &str = "[redacted: ";

/// A secret and its name, usually that of its environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// The name in the redaction marker.
    pub name: String,
    /// The secret value.
    pub value: Secret,
}

/// Position of a secret in a text, and its name.
struct SecretMatch<'a> {
    range: Range<usize>,
    name: &'a str,
}

/// Finds and replaces secrets; created once for a run.
#[derive(Default)]
pub struct Redactor {
    /// Finds `values` in a text; `None` for very few or very many values.
    finder: Option<AhoCorasick>,
    /// All values and their encoded forms, longest first.
    values: Vec<NamedSecret>,
    /// One finder for each value, if there is no `finder`.
    finders: Vec<memmem::Finder<'static>>,
    /// Names in the redaction markers that were sent to the model.
    shown_markers: Mutex<BTreeSet<String>>,
}

/// Prints no value.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// Creates a redactor of `secrets` and of all keys recognized by their format.
    pub fn new(secrets: impl IntoIterator<Item = NamedSecret>) -> Self {
        let known = secrets.into_iter().filter(|secret| {
            (MIN_BYTES..=MAX_VALUE_BYTES).contains(&secret.value.expose().len())
                && secret.value.expose().chars().any(|c| !c.is_ascii_whitespace())
        });
        let mut values: Vec<NamedSecret> =
            known.take(MAX_VALUES).flat_map(|known| encoded_forms(&known)).collect();
        values.sort_by_key(|known| Reverse(known.value.expose().len()));
        let bytes: usize = values.iter().map(|known| known.value.expose().len()).sum();
        let at_once = values.len() >= MIN_FINDER_VALUES && bytes <= MAX_FINDER_BYTES;
        let finder = at_once.then(|| finder(values.iter().map(|known| known.value.expose()))).flatten();
        let finders = if finder.is_some() { Vec::new() } else { finders(&values) };
        Self { finder, values, finders, shown_markers: Mutex::default() }
    }

    /// Returns `text` with the secrets replaced; takes linear time.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(as_text(clean)),
        }
    }

    /// Like [`text`](Self::text), for bytes that may not be UTF-8.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let clean = replace_matches(Cow::Borrowed(bytes), &self.find_known(bytes));
        if !key_formats::may_contain_key(&clean) {
            return clean;
        }
        let found = key_formats::find_private_keys(&clean);
        let clean = replace_matches(clean, &found);
        let found = key_formats::find_keys(&clean);
        replace_matches(clean, &found)
    }

    /// Checks whether `bytes` contains a known value.
    pub fn contains_known(&self, bytes: &[u8]) -> bool {
        !self.find_known(bytes).is_empty()
    }

    /// Returns the positions of known values, without overlaps: the leftmost match, and of several that start there the
    /// longest.
    fn find_known(&self, bytes: &[u8]) -> Vec<SecretMatch<'_>> {
        if let Some(finder) = &self.finder {
            let known = |index: usize| self.values.get(index).map_or("secret", |known| known.name.as_str());
            return finder
                .find_iter(bytes)
                .map(|found| SecretMatch { range: found.range(), name: known(found.pattern().as_usize()) })
                .collect();
        }
        let matches = self.values.iter().zip(&self.finders).flat_map(|(known, finder)| {
            let length = finder.needle().len();
            finder
                .find_iter(bytes)
                .map(move |start| SecretMatch { range: start..start + length, name: &known.name })
        });
        let mut found: Vec<SecretMatch<'_>> = matches.collect();
        found.sort_by_key(|found| (found.range.start, Reverse(found.range.end)));
        let mut end = 0;
        found.retain(|found| {
            let is_free = found.range.start >= end;
            end = if is_free { found.range.end } else { end };
            is_free
        });
        found
    }

    /// Replaces the secrets in `text`.
    pub fn redact(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// Like [`redact`](Self::redact), for text sent to the model: remembers the markers for
    /// [`echoed_marker`](Self::echoed_marker).
    pub fn redact_for_model(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
            self.remember_markers(text);
        }
    }

    /// Remembers the markers of this redactor in `text`, which was sent to the model in an earlier run.
    pub fn remember_markers(&self, text: &str) {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(MARKER) {
            let name = after.split_once(']').map_or("", |(name, _)| name);
            if key_formats::is_key_kind(name) || self.values.iter().any(|known| known.name == name) {
                self.shown_markers().insert(name.to_owned());
            }
            rest = after;
        }
    }

    fn shown_markers(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.shown_markers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a redaction marker that the model copied into `arguments`: a call with it would lose the secret.
    pub fn echoed_marker(&self, arguments: &Value) -> Option<String> {
        let shown = self.shown_markers();
        if shown.is_empty() {
            return None;
        }
        let text = arguments.to_string();
        shown.iter().map(|name| marker(name)).find(|marker| text.contains(marker.as_str()))
    }
}

/// Creates an automaton that finds any of `words`; it builds fast, and is fast in text without a match.
fn finder<'a>(words: impl Iterator<Item = &'a str>) -> Option<AhoCorasick> {
    let kind = Some(AhoCorasickKind::ContiguousNFA);
    AhoCorasick::builder().kind(kind).match_kind(MatchKind::LeftmostLongest).build(words).ok()
}

/// Creates a finder for each of `values`.
fn finders(values: &[NamedSecret]) -> Vec<memmem::Finder<'static>> {
    values.iter().map(|known| memmem::Finder::new(known.value.expose()).into_owned()).collect()
}

/// Returns `bytes` with each of the secrets `found` replaced by a marker.
fn replace_matches<'a>(bytes: Cow<'a, [u8]>, found: &[SecretMatch<'_>]) -> Cow<'a, [u8]> {
    if found.is_empty() {
        return bytes;
    }
    let (mut clean, mut copied) = (Vec::with_capacity(bytes.len()), 0);
    for SecretMatch { range, name } in found {
        clean.extend_from_slice(bytes.get(copied..range.start).unwrap_or_default());
        clean.extend_from_slice(marker(name).as_bytes());
        copied = range.end;
    }
    clean.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    Cow::Owned(clean)
}

/// Converts `bytes`, which contain whole characters, to a string.
fn as_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Returns the redaction marker of a secret.
fn marker(name: &str) -> String {
    format!("{MARKER}{name}]")
}

/// Returns the forms of a secret: plain, percent-encoded, as a JSON string, and as the middle of base64 (in both alphabets)
/// at each of the three offsets. For a secret of several lines, each line that looks like a key is also searched for: the
/// model reads lines with line numbers.
fn encoded_forms(known: &NamedSecret) -> Vec<NamedSecret> {
    let value = known.value.expose();
    let json = Value::from(value).to_string();
    let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let plain = [value.to_owned(), value.trim().to_owned(), json];
    let percent = utf8_percent_encode(value, ESCAPED);
    let in_small_digits =
        percent.clone().map(|part| if part.starts_with('%') { part.to_lowercase() } else { part.to_owned() });
    let percent = [in_small_digits.collect::<String>(), percent.to_string()];
    let base64 = (0..BASE64_GROUP).flat_map(|skipped| {
        let groups = value.as_bytes().get(skipped..).unwrap_or_default().chunks_exact(BASE64_GROUP);
        let whole: Vec<u8> = groups.flatten().copied().collect();
        [BASE64_STANDARD.encode(&whole), BASE64_URL_SAFE.encode(&whole)]
    });
    let is_one_line = value.trim().lines().count() < 2;
    let lines = value
        .lines()
        .filter(|line| !is_one_line && environment_secrets::looks_like_a_key(line))
        .map(str::to_owned);
    let all = plain.into_iter().chain(percent).chain(base64).chain(lines);
    let unique: BTreeSet<String> = all.filter(|form| form.len() >= MIN_BYTES).collect();
    unique
        .into_iter()
        .map(|form| NamedSecret { name: known.name.clone(), value: Secret::new(form) })
        .collect()
}

#[cfg(test)]
mod tests;
