//! Text that arrives in pieces: what may be the beginning of a secret waits for what follows.

use super::{MAX_VALUE_BYTES, Redactor, as_text, key_formats};
use memchr::{memmem, memrchr_iter};
use std::borrow::Cow;

/// Bytes that wait at most: longer than any key by its form, and than the longest value with every byte encoded.
const MAX_PENDING_BYTES: usize = 3 * MAX_VALUE_BYTES;

/// A beginning of a secret that is shorter, in bytes, is not one that a reader of pieces is kept from: a program that waits
/// for an answer has often written such a piece.
const MIN_PARTIAL_BYTES: usize = 4;

/// What stands on both sides of the words of a PEM line.
const DASHES: &str = "-----";

/// Which dashes end a PEM block, counted from zero: those after the words of its last line.
const LAST_DASHES: usize = 3;

/// What has arrived and is not told yet.
#[derive(Debug, Default)]
pub struct PendingText {
    bytes: Vec<u8>,
}

impl PendingText {
    /// Takes a piece and gives back what can be told now.
    pub fn take(&mut self, redactor: &Redactor, piece: &str) -> String {
        as_text(redactor.bytes(&self.push_bytes(redactor, piece.as_bytes())).into_owned())
    }

    /// Gives back the rest; the text is over.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        as_text(redactor.bytes(&self.take_rest()).into_owned())
    }

    /// Takes a piece and gives back, as it came, what ends with no beginning of a secret.
    pub(super) fn push_bytes<'a>(&mut self, redactor: &Redactor, piece: &'a [u8]) -> Cow<'a, [u8]> {
        if self.bytes.is_empty() {
            let (ready, rest) = piece.split_at(redactor.partial_secret_start(piece));
            self.bytes.extend_from_slice(rest);
            return Cow::Borrowed(ready);
        }
        self.bytes.extend_from_slice(piece);
        let rest = self.bytes.split_off(redactor.partial_secret_start(&self.bytes));
        Cow::Owned(std::mem::replace(&mut self.bytes, rest))
    }

    /// Gives back the rest as it came.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

impl Redactor {
    /// How many bytes at the end of `bytes`, which go on, may be the beginning of a secret; none where they are too few to
    /// give away anything.
    pub fn partial_secret_len(&self, bytes: &[u8]) -> usize {
        let begun = bytes.len() - self.partial_secret_start(bytes);
        if begun < MIN_PARTIAL_BYTES { 0 } else { begun }
    }

    /// Where in `text` a secret may begin whose end is not there yet: never within a character of a text.
    fn partial_secret_start(&self, text: &[u8]) -> usize {
        let values = self.values.iter().map(|known| known.value.expose()).chain([key_formats::PEM_BEGIN]);
        let begun = values.map(|value| overlap(text, value.as_bytes())).max().unwrap_or(0);
        let mut open = text.len() - begun;
        // A piece must not end between what is a key by its form and what goes on with it.
        let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let word = text.iter().rposition(|byte| !goes_on(byte)).map_or(0, |last| last + 1);
        if key_formats::may_become_key(text.get(word..).unwrap_or_default()) {
            open = open.min(word);
        }
        open = open.min(open_block(text, open).unwrap_or(open));
        let known = if open < text.len() { self.find_known(text) } else { Vec::new() };
        if let Some(cut) = known.iter().find(|found| found.range.start < open && open < found.range.end) {
            open = cut.range.start;
        }
        if text.len() - open > MAX_PENDING_BYTES { text.len() } else { open }
    }
}

/// Where the last block of PEM in `text` begins, if it is not over before `open`.
fn open_block(text: &[u8], open: usize) -> Option<usize> {
    let searched = text.len().saturating_sub(key_formats::MAX_PEM_BYTES);
    let begin = searched + memmem::rfind(text.get(searched..)?, key_formats::PEM_BEGIN.as_bytes())?;
    let mut dashes = memmem::find_iter(text.get(begin..)?, DASHES);
    let is_over = dashes.nth(LAST_DASHES).is_some_and(|last| begin + last + DASHES.len() <= open);
    (!is_over).then_some(begin)
}

/// How many bytes at the end of `text` are a beginning of `value`, and not all of it.
fn overlap(text: &[u8], value: &[u8]) -> usize {
    let Some(last) = text.last() else { return 0 };
    let most = text.len().min(value.len().saturating_sub(1));
    memrchr_iter(*last, value.get(..most).unwrap_or_default())
        .map(|at| at + 1)
        .find(|length| text.ends_with(value.get(..*length).unwrap_or_default()))
        .unwrap_or(0)
}
