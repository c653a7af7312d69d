//! Buffer for streamed text: holds back what may be the start of a secret until more text arrives.

use super::{MAX_VALUE_BYTES, Redactor, as_text, key_formats};
use memchr::{memmem, memrchr_iter};
use std::borrow::Cow;

/// Maximum bytes held back: more than any key format, and than the longest value with every byte percent-encoded.
const MAX_PENDING_BYTES: usize = 3 * MAX_VALUE_BYTES;

/// Minimum bytes of a partial secret that is withheld from a reader of command output: a program that prompts for input
/// often ends its output with fewer.
const MIN_PARTIAL_BYTES: usize = 4;

/// Dashes on both sides of the label of a PEM line.
const DASHES: &str = "-----";

/// Index of the dashes that end a PEM block: those after the label of its last line.
const LAST_DASHES: usize = 3;

/// Text that has arrived and is not emitted yet.
#[derive(Debug, Default)]
pub struct PendingText {
    bytes: Vec<u8>,
}

impl PendingText {
    /// Adds a piece of text and returns the redacted text that can be emitted now.
    pub fn take(&mut self, redactor: &Redactor, piece: &str) -> String {
        as_text(redactor.bytes(&self.push_bytes(redactor, piece.as_bytes())).into_owned())
    }

    /// Returns the redacted rest at the end of the text.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        as_text(redactor.bytes(&self.take_rest()).into_owned())
    }

    /// Adds a piece and returns the bytes, unredacted, that do not end in a partial secret.
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

    /// Returns the rest, unredacted.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

impl Redactor {
    /// Returns how many bytes at the end of `bytes` may be the start of a secret; 0 if they are too few to reveal anything.
    pub fn partial_secret_len(&self, bytes: &[u8]) -> usize {
        let partial = bytes.len() - self.partial_secret_start(bytes);
        if partial < MIN_PARTIAL_BYTES { 0 } else { partial }
    }

    /// Returns the position in `text` where an incomplete secret may start; never inside a character.
    fn partial_secret_start(&self, text: &[u8]) -> usize {
        let values = self.values.iter().map(|known| known.value.expose()).chain([key_formats::PEM_BEGIN]);
        let partial = values.map(|value| overlap(text, value.as_bytes())).max().unwrap_or(0);
        let mut open = text.len() - partial;
        // A piece must not end between a key format and the characters that continue it.
        let is_word_byte = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let word = text.iter().rposition(|byte| !is_word_byte(byte)).map_or(0, |last| last + 1);
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

/// Returns the start of the last PEM block in `text`, unless the block ends before `open`.
fn open_block(text: &[u8], open: usize) -> Option<usize> {
    let searched = text.len().saturating_sub(key_formats::MAX_PEM_BYTES);
    let begin = searched + memmem::rfind(text.get(searched..)?, key_formats::PEM_BEGIN.as_bytes())?;
    let mut dashes = memmem::find_iter(text.get(begin..)?, DASHES);
    let is_over = dashes.nth(LAST_DASHES).is_some_and(|last| begin + last + DASHES.len() <= open);
    (!is_over).then_some(begin)
}

/// Returns the length of the longest proper prefix of `value` that `text` ends with.
fn overlap(text: &[u8], value: &[u8]) -> usize {
    let Some(last) = text.last() else { return 0 };
    let most = text.len().min(value.len().saturating_sub(1));
    memrchr_iter(*last, value.get(..most).unwrap_or_default())
        .map(|at| at + 1)
        .find(|length| text.ends_with(value.get(..*length).unwrap_or_default()))
        .unwrap_or(0)
}
