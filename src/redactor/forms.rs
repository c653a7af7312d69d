//! What is a key by its form alone, wherever it comes from.

use super::{finder, marker};
use aho_corasick::AhoCorasick;
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What begins like this may be a key; the name is that of the marker.
const HEADS: &[(&str, &str)] = &[
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
const FORMS: &str = r"(?-u)\b(?:sk-[A-Za-z0-9]{20,}|sk-(?:proj|ant|or|svcacct|admin|live|test)-[A-Za-z0-9_-]{20,}|[rs]k_live_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|A[KS]IA[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{35}|xox[abprs]-[A-Za-z0-9-]{10,}|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})";

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

static FINDER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(FORMS).ok());

/// Finds what keys begin with: the forms are not made before there may be one.
static BEGINNINGS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| finder(HEADS.iter().map(|(head, _)| *head)));

/// Whether a marker of this module carries `name`.
pub(super) fn is_name(name: &str) -> bool {
    name == PEM || HEADS.iter().any(|(_, known)| *known == name)
}

/// Whether `word`, which may still go on, is the beginning of a key.
pub(super) fn may_become_key(word: &str) -> bool {
    !word.is_empty() && HEADS.iter().any(|(head, _)| head.starts_with(word) || word.contains(head))
}

/// `text` without keys.
pub(super) fn redacted(text: &str) -> Cow<'_, str> {
    let without_pem = without_private_keys(text);
    if BEGINNINGS.as_ref().is_some_and(|beginnings| !beginnings.is_match(&*without_pem)) {
        return without_pem;
    }
    let Some(finder) = &*FINDER else { return without_pem };
    let replaced = finder.replace_all(&without_pem, |found: &regex::Captures<'_>| {
        let key = found.get(0).map_or("", |key| key.as_str());
        marker(HEADS.iter().find(|(head, _)| key.starts_with(head)).map_or("key", |(_, name)| name))
    });
    match replaced {
        Cow::Owned(text) => Cow::Owned(text),
        Cow::Borrowed(_) => without_pem,
    }
}

/// `text` without private keys in PEM; one that does not end goes as far as a key could.
fn without_private_keys(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((start, end)) = private_key(rest) {
        out.push_str(rest.get(..start).unwrap_or_default());
        out.push_str(&marker(PEM));
        rest = rest.get(end..).unwrap_or_default();
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Where the first private key begins and ends.
fn private_key(text: &str) -> Option<(usize, usize)> {
    let begins = text.match_indices(PEM_BEGIN).map(|(start, _)| start);
    for start in begins {
        let block = text.get(start..)?;
        let label = block.get(..block.floor_char_boundary(PEM_BEGIN.len() + PEM_LABEL_BYTES))?;
        let Some(key) = label.lines().next().and_then(|line| line.find(PEM_KEY)) else { continue };
        let body = key + PEM_KEY.len();
        let longest = block.floor_char_boundary(MAX_PEM_BYTES);
        let within = block.get(body..longest.max(body))?;
        let end = within.find(PEM_END).and_then(|at| {
            let closing = within.get(at..)?;
            Some(body + at + closing.find(PEM_KEY)? + PEM_KEY.len())
        });
        return Some((start, start + end.unwrap_or(longest.max(body))));
    }
    None
}
