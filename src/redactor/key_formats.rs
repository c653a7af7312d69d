//! Detects keys by their format, such as provider API keys and PEM private keys.

use super::{SecretMatch, finder};
use aho_corasick::AhoCorasick;
use memchr::{memchr, memmem};
use regex::bytes::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Prefixes of keys, each with the name in its redaction marker.
const KEY_PREFIXES: &[(&str, &str)] = &[
    ("sk-", "API key"),
    ("sk_live_", "Stripe key"),
    ("rk_live_", "Stripe key"),
    ("ghp_", "GitHub token"),
    ("gho_", "GitHub token"),
    ("ghu_", "GitHub token"),
    ("ghs_", "GitHub token"),
    ("ghr_", "GitHub token"),
    ("github_pat_", "GitHub token"),
    ("glpat-", "GitLab token"),
    ("npm_", "npm token"),
    ("AKIA", "AWS key id"),
    ("ASIA", "AWS key id"),
    ("AIza", "Google key"),
    ("xoxa-", "Slack token"),
    ("xoxb-", "Slack token"),
    ("xoxp-", "Slack token"),
    ("xoxr-", "Slack token"),
    ("xoxs-", "Slack token"),
    ("eyJ", "JWT"),
];

/// Regular expression of the key formats, as their issuers document them; `sk-` with the infixes that providers use.
const KEY_PATTERN: &str = r"(?-u)\b(?:sk-[A-Za-z0-9]{20,}|sk-(?:proj|ant|or|svcacct|admin|live|test)-[A-Za-z0-9_-]{20,}|[rs]k_live_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|A[KS]IA[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})";

/// Name of a PEM private key in its redaction marker.
const PEM: &str = "private key";
/// Start of a PEM block.
pub(super) const PEM_BEGIN: &str = "-----BEGIN ";
/// End of the first line of a PEM private key.
const PEM_KEY: &str = "PRIVATE KEY-----";
/// Start of the last line of a PEM block.
const PEM_END: &str = "-----END ";
/// Maximum bytes of the label between the dashes of a PEM line.
const PEM_LABEL_BYTES: usize = 64;
/// Maximum bytes of a private key: RSA with 16,384 bits takes 12.5 KiB.
pub(super) const MAX_PEM_BYTES: usize = 16 << 10;

/// Maximum bytes of a UTF-8 character.
const MAX_CHARACTER_BYTES: usize = 4;

static KEY_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEY_PATTERN).ok());

/// Finds key prefixes; the regular expression is built only when one is found.
static PREFIX_MATCHER: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| finder(KEY_PREFIXES.iter().map(|(prefix, _)| *prefix).chain([PEM_BEGIN])));

/// Checks whether `name` is the name of a key format in redaction markers.
pub(super) fn is_key_kind(name: &str) -> bool {
    name == PEM || KEY_PREFIXES.iter().any(|(_, known)| *known == name)
}

/// Checks whether `word`, which may continue, can be the start of a key.
pub(super) fn may_become_key(word: &[u8]) -> bool {
    let has_prefix = |prefix: &str| prefix.as_bytes().starts_with(word);
    !word.is_empty() && (KEY_PREFIXES.iter().any(|(prefix, _)| has_prefix(prefix)) || may_contain_key(word))
}

/// Checks whether `text` contains a key prefix; if not, the functions below find no key.
pub(super) fn may_contain_key(text: &[u8]) -> bool {
    PREFIX_MATCHER.as_ref().is_none_or(|prefixes| prefixes.is_match(text))
}

/// Returns the positions of keys in `text`, without private keys.
pub(super) fn find_keys(text: &[u8]) -> Vec<SecretMatch<'static>> {
    let name = |key: &[u8]| {
        let prefix = KEY_PREFIXES.iter().find(|(prefix, _)| key.starts_with(prefix.as_bytes()));
        prefix.map_or("key", |(_, name)| name)
    };
    let found = KEY_REGEX.iter().flat_map(|finder| finder.find_iter(text));
    found.map(|key| SecretMatch { range: key.range(), name: name(key.as_bytes()) }).collect()
}

/// Returns the positions of PEM private keys in `text`; one without an end extends to the maximum length of a key.
pub(super) fn find_private_keys(text: &[u8]) -> Vec<SecretMatch<'static>> {
    let mut found = Vec::new();
    let mut searched = 0;
    while let Some(key) = private_key(text.get(searched..).unwrap_or_default()) {
        found.push(SecretMatch { range: searched + key.start..searched + key.end, name: PEM });
        searched += key.end;
    }
    found
}

/// Returns the position of the first private key.
fn private_key(text: &[u8]) -> Option<Range<usize>> {
    memmem::find_iter(text, PEM_BEGIN).find_map(|start| {
        let block = text.get(start..)?;
        let longest = floor_char_boundary(block, MAX_PEM_BYTES);
        let block = block.get(..longest)?;
        let label = block.get(..PEM_BEGIN.len() + PEM_LABEL_BYTES).unwrap_or(block);
        let label = memchr(b'\n', label).and_then(|end| label.get(..end)).unwrap_or(label);
        let body = memmem::find(label, PEM_KEY.as_bytes())? + PEM_KEY.len();
        let end = memmem::find(block.get(body..)?, PEM_END.as_bytes()).and_then(|at| {
            let closing = block.get(body + at..)?;
            Some(body + at + memmem::find(closing, PEM_KEY.as_bytes())? + PEM_KEY.len())
        });
        Some(start..start + end.unwrap_or(longest))
    })
}

/// Returns the last position up to `at` that is not inside a character.
fn floor_char_boundary(text: &[u8], at: usize) -> usize {
    let is_within = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    let at = at.min(text.len());
    (at.saturating_sub(MAX_CHARACTER_BYTES - 1)..=at).rev().find(|at| !is_within(at)).unwrap_or(at)
}
