//! Keeps secrets out of everything that is told: values that are known and texts that are keys by their form become
//! `[redacted: NAME]`.

pub mod forms;
mod stream;
mod telling;
pub mod variables;
mod writer;

pub use stream::Held;
pub use writer::CleanWriter;

use crate::secret::Secret;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The shortest value that is looked for, in bytes; a shorter one would be found where it is none.
pub const MIN_BYTES: usize = 8;

/// Values that are looked for at most; an environment with more of them is none that a person made.
const MAX_VALUES: usize = 256;

/// The longest value that is looked for, in bytes: what is longer is a document, not a key.
const MAX_VALUE_BYTES: usize = 8 << 10;

/// All values and their encoded forms that are looked for at once, in bytes; with more of them, one after the other.
const MAX_FINDER_BYTES: usize = 1 << 20;

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

/// Finds secrets and replaces them; made once for a run.
#[derive(Default)]
pub struct Redactor {
    /// Finds the first of `values` in a text, the longest where several begin.
    finder: Option<AhoCorasick>,
    /// All values and their encoded forms, the longer first.
    values: Vec<NamedSecret>,
    /// Names of what was replaced in what the model reads.
    told: Mutex<BTreeSet<String>>,
}

impl Redactor {
    /// A redactor of `secrets` and of everything that is a key by its form.
    pub fn new(secrets: impl IntoIterator<Item = NamedSecret>) -> Self {
        let known = secrets.into_iter().filter(|secret| {
            (MIN_BYTES..=MAX_VALUE_BYTES).contains(&secret.value.expose().len())
                && secret.value.expose().chars().any(|c| !c.is_ascii_whitespace())
        });
        let mut values: Vec<NamedSecret> = known.take(MAX_VALUES).flat_map(|known| encoded(&known)).collect();
        values.sort_by_key(|known| std::cmp::Reverse(known.value.expose().len()));
        let bytes: usize = values.iter().map(|known| known.value.expose().len()).sum();
        let finder = (1..=MAX_FINDER_BYTES)
            .contains(&bytes)
            .then(|| finder(values.iter().map(|known| known.value.expose())))
            .flatten();
        Self { finder, values, told: Mutex::default() }
    }

    /// `text` without secrets; linear in its length.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let by_value = match &self.finder {
            Some(finder) if !finder.is_match(text) => Cow::Borrowed(text),
            Some(finder) => {
                let mut clean = String::new();
                finder.replace_all_with(text, &mut clean, |found, _, clean| {
                    let known = self.values.get(found.pattern().as_usize());
                    clean.push_str(&marker(known.map_or("secret", |known| known.name.as_str())));
                    true
                });
                Cow::Owned(clean)
            }
            // None are known, or they are too many: then one is looked for after the other.
            None => self.values.iter().fold(Cow::Borrowed(text), |text, known| {
                let value = known.value.expose();
                if text.contains(value) {
                    Cow::Owned(text.replace(value, &marker(&known.name)))
                } else {
                    text
                }
            }),
        };
        match by_value {
            Cow::Borrowed(text) => forms::redacted(text),
            Cow::Owned(text) => match forms::redacted(&text) {
                Cow::Owned(again) => Cow::Owned(again),
                Cow::Borrowed(_) => Cow::Owned(text),
            },
        }
    }

    /// Replaces the secrets in `text`.
    pub fn clean(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// As [`clean`](Self::clean), for what the model reads: the markers are remembered, see [`echoed`](Self::echoed).
    pub fn clean_for_model(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
            self.recall(text);
        }
    }

    /// Remembers the markers of this redactor in `text`, which the model has read in an earlier run.
    pub fn recall(&self, text: &str) {
        let mut rest = text;
        while let Some((_, after)) = rest.split_once(MARKER) {
            let name = after.split_once(']').map_or("", |(name, _)| name);
            if forms::is_name(name) || self.values.iter().any(|known| known.name == name) {
                self.told().insert(name.to_owned());
            }
            rest = after;
        }
    }

    fn told(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A marker that the model was shown and now hands back in `arguments`: what stands behind it would be lost.
    pub fn echoed(&self, arguments: &Value) -> Option<String> {
        let told = self.told();
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

/// What stands for a secret.
fn marker(name: &str) -> String {
    format!("{MARKER}{name}]")
}

/// A secret as it is, percent-encoded, as a string of JSON, and as the middle of base64 (in both alphabets) at each of the
/// three places it can begin there. Of one with several lines, each line that is no word counts by itself: the model is
/// shown lines with numbers before them.
fn encoded(known: &NamedSecret) -> Vec<NamedSecret> {
    let value = known.value.expose();
    let json = Value::from(value).to_string();
    let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let plain = [value.to_owned(), value.trim().to_owned(), json];
    let percent = [
        percent_encoded(value, |byte| format!("%{byte:02X}")),
        percent_encoded(value, |byte| format!("%{byte:02x}")),
    ];
    let base64 = (0..3).map(|skipped| base64_middle(value.as_bytes(), skipped));
    let base64 = base64.flat_map(|digits| [digits.replace('+', "-").replace('/', "_"), digits]);
    let is_one_line = value.trim().lines().count() < 2;
    let lines =
        value.lines().filter(|line| !is_one_line && variables::looks_like_a_key(line)).map(str::to_owned);
    let all = plain.into_iter().chain(percent).chain(base64).chain(lines);
    let unique: BTreeSet<String> = all.filter(|form| form.len() >= MIN_BYTES).collect();
    unique
        .into_iter()
        .map(|form| NamedSecret { name: known.name.clone(), value: Secret::new(form) })
        .collect()
}

/// `value` as it stands in addresses, where each byte that may not stand there is what `escape` makes of it.
fn percent_encoded(value: &str, escape: impl Fn(u8) -> String) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&escape(byte));
        }
    }
    encoded
}

/// The base64 digits that depend on `bytes` alone when they begin `3 - skipped` bytes into a group, `skipped` being the
/// bytes of them that share it.
fn base64_middle(bytes: &[u8], skipped: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.get(skipped..).unwrap_or_default().chunks_exact(3);
    let digits = groups.flat_map(|group| {
        let bits = group.iter().fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        [18, 12, 6, 0].map(|shift| DIGITS.get(bits >> shift & 63).copied().map_or('=', char::from))
    });
    digits.collect()
}

#[cfg(test)]
mod tests;
