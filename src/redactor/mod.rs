//! Keeps secrets out of everything that is told: values that are known and texts that are keys by their form become
//! `[redacted: NAME]`.

pub mod environment_secrets;
mod event_redaction;
pub mod key_formats;
mod pending_text;
pub mod unique_keys;
mod writer;

pub use pending_text::PendingText;
pub use writer::RedactingWriter;

use crate::core::secret::Secret;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE, Engine};
use memchr::memmem;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The shortest value that is looked for, in bytes; a shorter one would be found where it is none.
pub const MIN_BYTES: usize = 8;

/// Values that are looked for at most; an environment with more of them is none that a person made.
const MAX_VALUES: usize = 256;

/// The longest value that is looked for, in bytes: what is longer is a document, not a key.
const MAX_VALUE_BYTES: usize = 8 << 10;

/// All values and their encoded forms that are looked for at once, in bytes; with more of them, one after the other.
const MAX_FINDER_BYTES: usize = 1 << 20;

/// Fewer values and forms are looked for one after the other, too: an automaton of few words is only quick in a text that
/// has little of their rarest letters.
const MIN_FINDER_VALUES: usize = 16;

/// Bytes in a group of base64, which stands for them in four digits.
const BASE64_GROUP: usize = 3;

/// What does not stand in addresses as it is: all but the unreserved characters of RFC 3986, 2.3.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What every marker begins with.
const MARKER: &str = "[redacted: ";

/// A secret and what it is called, as a rule the variable it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// What stands in the marker.
    pub name: String,
    /// The value.
    pub value: Secret,
}

/// Where a secret stands in a text, and what it is called.
struct SecretMatch<'a> {
    range: Range<usize>,
    name: &'a str,
}

/// Finds secrets and replaces them; made once for a run.
#[derive(Default)]
pub struct Redactor {
    /// Finds `values` in a text; there is none for very few or very many.
    finder: Option<AhoCorasick>,
    /// All values and their encoded forms, the longer first.
    values: Vec<NamedSecret>,
    /// What finds each of them, where there is no `finder`.
    finders: Vec<memmem::Finder<'static>>,
    /// Names of what was replaced in what the model reads.
    shown_markers: Mutex<BTreeSet<String>>,
}

impl Redactor {
    /// A redactor of `secrets` and of everything that is a key by its form.
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

    /// `text` without secrets; linear in its length.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(clean) => Cow::Owned(as_text(clean)),
        }
    }

    /// As [`text`](Self::text), of bytes that need not be text.
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

    /// Whether a known value stands in `bytes`.
    pub fn contains_known(&self, bytes: &[u8]) -> bool {
        !self.find_known(bytes).is_empty()
    }

    /// Where known values stand: the first in `bytes`, the longest of those that begin there, and so on behind it.
    fn find_known(&self, bytes: &[u8]) -> Vec<SecretMatch<'_>> {
        if let Some(finder) = &self.finder {
            let known = |index: usize| self.values.get(index).map_or("secret", |known| known.name.as_str());
            return finder
                .find_iter(bytes)
                .map(|found| SecretMatch { range: found.range(), name: known(found.pattern().as_usize()) })
                .collect();
        }
        let places = self.values.iter().zip(&self.finders).flat_map(|(known, finder)| {
            let length = finder.needle().len();
            finder
                .find_iter(bytes)
                .map(move |start| SecretMatch { range: start..start + length, name: &known.name })
        });
        let mut found: Vec<SecretMatch<'_>> = places.collect();
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

    /// As [`clean`](Self::clean), for what the model reads: the markers are remembered, see [`echoed`](Self::echoed).
    pub fn redact_for_model(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
            self.remember_markers(text);
        }
    }

    /// Remembers the markers of this redactor in `text`, which the model has read in an earlier run.
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

    /// A marker that the model was shown and now hands back in `arguments`: what stands behind it would be lost.
    pub fn echoed_marker(&self, arguments: &Value) -> Option<String> {
        let told = self.shown_markers();
        if told.is_empty() {
            return None;
        }
        let text = arguments.to_string();
        told.iter().map(|name| marker(name)).find(|marker| text.contains(marker.as_str()))
    }
}

/// Finds any of `words`; quick to build, and quick in a text that has none.
fn finder<'a>(words: impl Iterator<Item = &'a str>) -> Option<AhoCorasick> {
    let kind = Some(AhoCorasickKind::ContiguousNFA);
    AhoCorasick::builder().kind(kind).match_kind(MatchKind::LeftmostLongest).build(words).ok()
}

/// What finds each of `values` alone.
fn finders(values: &[NamedSecret]) -> Vec<memmem::Finder<'static>> {
    values.iter().map(|known| memmem::Finder::new(known.value.expose()).into_owned()).collect()
}

/// `bytes` with a marker for each secret that was `found` there.
fn replace_matches<'a>(bytes: Cow<'a, [u8]>, found: &[SecretMatch<'_>]) -> Cow<'a, [u8]> {
    if found.is_empty() {
        return bytes;
    }
    let (mut clean, mut told) = (Vec::with_capacity(bytes.len()), 0);
    for SecretMatch { range, name } in found {
        clean.extend_from_slice(bytes.get(told..range.start).unwrap_or_default());
        clean.extend_from_slice(marker(name).as_bytes());
        told = range.end;
    }
    clean.extend_from_slice(bytes.get(told..).unwrap_or_default());
    Cow::Owned(clean)
}

/// `bytes`, which are whole characters.
fn as_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What stands for a secret.
fn marker(name: &str) -> String {
    format!("{MARKER}{name}]")
}

/// A secret as it is, percent-encoded, as a string of JSON, and as the middle of base64 (in both alphabets) at each of the
/// three places it can begin there. Of one with several lines, each line that is no word counts by itself: the model is
/// shown lines with numbers before them.
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
