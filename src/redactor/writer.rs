//! A writer that keeps secrets out of what it passes on, for what the model may read later.

use super::{Held, Redactor};
use std::io::{self, Write};
use std::sync::Arc;

/// Passes on what is written to it without secrets. What may begin one waits for what follows, or for
/// [`flush`](Write::flush), which says that nothing does. Bytes that are no text pass as they are.
pub struct CleanWriter<W> {
    inner: W,
    redactor: Arc<Redactor>,
    held: Held,
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl<W: Write> CleanWriter<W> {
    /// Writes to `inner` what `redactor` leaves.
    pub fn new(inner: W, redactor: Arc<Redactor>) -> Self {
        Self { inner, redactor, held: Held::default(), begun: Vec::new() }
    }

    fn pass(&mut self, mut text: String) -> io::Result<()> {
        self.redactor.clean_for_model(&mut text);
        self.inner.write_all(text.as_bytes())
    }

    fn pass_rest(&mut self) -> io::Result<()> {
        let rest = self.held.rest();
        self.pass(rest)
    }

    /// Passes on `bytes`, but for a character at their end that is not whole.
    fn pass_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.utf8_chunks() {
            let ready = self.held.ready(&self.redactor, chunk.valid());
            self.pass(ready)?;
            if !chunk.invalid().is_empty() {
                // No secret that we know has such bytes in it.
                self.pass_rest()?;
                self.inner.write_all(chunk.invalid())?;
            }
        }
        Ok(())
    }
}

impl<W: Write> Write for CleanWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        self.begun = all.split_off(all.len() - unfinished(&all));
        self.pass_bytes(&all)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let begun = std::mem::take(&mut self.begun);
        self.pass_rest()?;
        self.inner.write_all(&begun)?;
        self.inner.flush()
    }
}

/// How many bytes at the end of `bytes` may be the beginning of a character: at most three.
fn unfinished(bytes: &[u8]) -> usize {
    let Some(last) = bytes.utf8_chunks().last() else { return 0 };
    let is_beginning = std::str::from_utf8(last.invalid()).is_err_and(|error| error.error_len().is_none());
    if is_beginning { last.invalid().len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redactor::NamedSecret;
    use crate::secret::Secret;
    use proptest::prelude::*;

    fn redactor() -> Arc<Redactor> {
        let secret = NamedSecret { name: "X_TOKEN".to_owned(), value: Secret::new("schlüssel-12345") };
        Arc::new(Redactor::new([secret]))
    }

    #[test]
    fn a_marker_in_what_was_kept_is_recognised_when_it_comes_back() {
        let redactor = redactor();
        let mut writer = CleanWriter::new(Vec::new(), Arc::clone(&redactor));
        writer.write_all("a schlüssel-12345 b".as_bytes()).unwrap();
        writer.flush().unwrap();
        assert_eq!(writer.inner, b"a [redacted: X_TOKEN] b");
        assert!(redactor.echoed(&serde_json::json!("[redacted: X_TOKEN]")).is_some());
    }

    proptest! {
        #[test]
        fn no_secret_passes_however_it_is_cut_and_all_other_bytes_do(
            before in proptest::collection::vec(any::<u8>(), 0..20),
            after in proptest::collection::vec(any::<u8>(), 0..20),
            cuts in proptest::collection::vec(1_usize..9, 1..60),
        ) {
            let whole = [&before[..], b" ", "schlüssel-12345".as_bytes(), b" ", &after].concat();
            let mut writer = CleanWriter::new(Vec::new(), redactor());
            let mut rest = whole.as_slice();
            for size in cuts.iter().cycle() {
                let (piece, later) = rest.split_at((*size).min(rest.len()));
                writer.write_all(piece).unwrap();
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            writer.flush().unwrap();
            prop_assert_eq!(writer.inner, [&before[..], b" [redacted: X_TOKEN] ", &after].concat());
        }
    }
}
