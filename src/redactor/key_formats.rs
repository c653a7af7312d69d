//! What is a key by its form alone, wherever it comes from.

use super::{SecretMatch, finder};
use aho_corasick::AhoCorasick;
use memchr::{memchr, memmem};
use regex::bytes::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// What begins like this may be a key; the name is that of the marker.
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

/// The forms, as their issuers document them; `sk-` with the words that providers put behind it.
const KEY_PATTERN: &str = r"(?-u)\b(?:sk-[A-Za-z0-9]{20,}|sk-(?:proj|ant|or|svcacct|admin|live|test)-[A-Za-z0-9_-]{20,}|[rs]k_live_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|A[KS]IA[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})";

/// The name of a private key in PEM.
const PEM: &str = "private key";
/// What a PEM block begins with.
pub(super) const PEM_BEGIN: &str = "-----BEGIN ";
/// What the first line of a private key ends with.
const PEM_KEY: &str = "PRIVATE KEY-----";
/// What its last line begins with.
const PEM_END: &str = "-----END ";
/// Bytes between the dashes of a PEM line.
const PEM_LABEL_BYTES: usize = 64;
/// A private key is not longer, in bytes: RSA with 16,384 bits takes 12.5 KiB.
pub(super) const MAX_PEM_BYTES: usize = 16 << 10;

/// The longest character of UTF-8, in bytes.
const MAX_CHARACTER_BYTES: usize = 4;

static KEY_REGEX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEY_PATTERN).ok());

/// Finds what keys begin with: the forms are not made before there may be one.
static PREFIX_MATCHER: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| finder(KEY_PREFIXES.iter().map(|(head, _)| *head).chain([PEM_BEGIN])));

/// Whether a marker of this module carries `name`.
pub(super) fn is_key_kind(name: &str) -> bool {
    name == PEM || KEY_PREFIXES.iter().any(|(_, known)| *known == name)
}

/// Whether `word`, which may still go on, is the beginning of a key.
pub(super) fn may_become_key(word: &[u8]) -> bool {
    let is_begun = |head: &str| head.as_bytes().starts_with(word);
    !word.is_empty() && (KEY_PREFIXES.iter().any(|(head, _)| is_begun(head)) || may_contain_key(word))
}

/// Whether a key may begin somewhere in `text`: if not, neither of the following finds one.
pub(super) fn may_contain_key(text: &[u8]) -> bool {
    PREFIX_MATCHER.as_ref().is_none_or(|beginnings| beginnings.is_match(text))
}

/// Where keys stand in `text`, private keys aside.
pub(super) fn find_keys(text: &[u8]) -> Vec<SecretMatch<'static>> {
    let name = |key: &[u8]| {
        let head = KEY_PREFIXES.iter().find(|(head, _)| key.starts_with(head.as_bytes()));
        head.map_or("key", |(_, name)| name)
    };
    let found = KEY_REGEX.iter().flat_map(|finder| finder.find_iter(text));
    found.map(|key| SecretMatch { range: key.range(), name: name(key.as_bytes()) }).collect()
}

/// Where private keys in PEM stand in `text`; one that does not end goes as far as a key could.
pub(super) fn find_private_keys(text: &[u8]) -> Vec<SecretMatch<'static>> {
    let mut found = Vec::new();
    let mut searched = 0;
    while let Some(key) = private_key(text.get(searched..).unwrap_or_default()) {
        found.push(SecretMatch { range: searched + key.start..searched + key.end, name: PEM });
        searched += key.end;
    }
    found
}

/// Where the first private key stands.
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

/// The last place up to `at` that is not within a character.
fn floor_char_boundary(text: &[u8], at: usize) -> usize {
    let is_within = |at: &usize| text.get(*at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    let at = at.min(text.len());
    (at.saturating_sub(MAX_CHARACTER_BYTES - 1)..=at).rev().find(|at| !is_within(at)).unwrap_or(at)
}
