//! Text that arrives in pieces: what may be the beginning of a secret waits for what follows.

use super::{MAX_VALUE_BYTES, Redactor, forms};

/// Bytes that wait at most: longer than any key by its form, and than the longest value with every byte encoded.
const MAX_HELD_BYTES: usize = 3 * MAX_VALUE_BYTES;

/// A beginning of a secret that is shorter, in bytes, is not one that a reader of pieces is kept from: a program that waits
/// for an answer has often written such a piece.
const MIN_BEGUN_BYTES: usize = 4;

/// Which dashes end a PEM block, counted from zero: those after the words of its last line.
const LAST_DASHES: usize = 3;

/// What has arrived and is not told yet.
#[derive(Debug, Default)]
pub struct Held {
    text: String,
}

impl Held {
    /// Takes a piece and gives back what can be told now.
    pub fn take(&mut self, redactor: &Redactor, piece: &str) -> String {
        let ready = self.ready(redactor, piece);
        redactor.text(&ready).into_owned()
    }

    /// Gives back the rest; the text is over.
    pub fn finish(&mut self, redactor: &Redactor) -> String {
        redactor.text(&self.rest()).into_owned()
    }

    /// Takes a piece and gives back, as it came, what ends with no beginning of a secret.
    pub(super) fn ready(&mut self, redactor: &Redactor, piece: &str) -> String {
        self.text.push_str(piece);
        let rest = self.text.split_off(redactor.open_from(&self.text));
        std::mem::replace(&mut self.text, rest)
    }

    /// Gives back the rest as it came.
    pub(super) fn rest(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

impl Redactor {
    /// How many bytes at the end of `bytes`, which go on, may be the beginning of a secret; none where they are too few to
    /// give away anything.
    pub fn begun_in(&self, bytes: &[u8]) -> usize {
        let last = bytes.utf8_chunks().last().filter(|last| last.invalid().is_empty());
        let text = last.map_or("", |last| last.valid());
        Some(text.len() - self.open_from(text)).filter(|begun| *begun >= MIN_BEGUN_BYTES).unwrap_or(0)
    }

    /// Where in `text` a secret may begin whose end is not there yet.
    fn open_from(&self, text: &str) -> usize {
        let by_value = self.values.iter().map(|known| overlap(text, known.value.expose())).max();
        let mut open = text.len().saturating_sub(by_value.unwrap_or(0));
        // A piece must not end between what is a key by its form and what goes on with it.
        let word = text.rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')));
        let word = word.map_or(0, |at| {
            at + text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
        });
        if forms::may_become_key(text.get(word..).unwrap_or_default()) {
            open = open.min(word);
        }
        open = open.min(text.len().saturating_sub(overlap(text, forms::PEM_BEGIN)));
        if let Some(begin) = text.rfind(forms::PEM_BEGIN) {
            let block = text.get(begin..).unwrap_or_default();
            let end = match block.match_indices("-----").nth(LAST_DASHES) {
                Some((at, dashes)) => begin + at + dashes.len(),
                None if block.len() > forms::MAX_PEM_BYTES => begin,
                None => text.len().saturating_add(1),
            };
            open = if open < end { open.min(begin) } else { open };
        }
        let cut = self.finder.iter().filter(|_| open < text.len()).flat_map(|finder| finder.find_iter(text));
        if let Some(whole) = cut.into_iter().find(|found| found.start() < open && open < found.end()) {
            open = whole.start();
        }
        if text.len() - open > MAX_HELD_BYTES { text.len() } else { text.floor_char_boundary(open) }
    }
}

/// How many bytes at the end of `text` are a beginning of `value`, and not all of it.
fn overlap(text: &str, value: &str) -> usize {
    let (text, value) = (text.as_bytes(), value.as_bytes());
    let most = text.len().min(value.len().saturating_sub(1));
    let begins = |length: &usize| text.ends_with(value.get(..*length).unwrap_or_default());
    (1..=most).rev().find(begins).unwrap_or(0)
}
