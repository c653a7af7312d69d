//! Writer that redacts secrets, for output that the model may read later.

use super::{PendingText, Redactor};
use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

/// Redacts what is written to it and passes it on. A possible start of a secret is pending back until more arrives or until
/// [`flush`](Write::flush). Bytes that are not UTF-8 pass unchanged.
pub struct RedactingWriter<W> {
    inner: W,
    redactor: Arc<Redactor>,
    pending: PendingText,
}

impl<W: Write> RedactingWriter<W> {
    /// Creates a writer to `inner` with this redactor.
    pub fn new(inner: W, redactor: Arc<Redactor>) -> Self {
        Self { inner, redactor, pending: PendingText::default() }
    }

    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let clean = self.redactor.bytes(bytes);
        if let Cow::Owned(clean) = &clean {
            self.redactor.remember_markers(&String::from_utf8_lossy(clean));
        }
        self.inner.write_all(&clean)
    }
}

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let ready = self.pending.push_bytes(&self.redactor, bytes);
        self.pass(&ready)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = self.pending.take_rest();
        self.pass(&rest)?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NamedSecret;
    use agent_core::secret::Secret;
    use proptest::prelude::*;

    fn redactor() -> Arc<Redactor> {
        let secret = NamedSecret { name: "X_TOKEN".to_owned(), value: Secret::new("schlüssel-12345") };
        Arc::new(Redactor::new([secret]))
    }

    #[test]
    fn a_marker_in_what_was_kept_is_recognised_when_it_comes_back() {
        let redactor = redactor();
        let mut writer = RedactingWriter::new(Vec::new(), Arc::clone(&redactor));
        writer.write_all("a schlüssel-12345 b".as_bytes()).unwrap();
        writer.flush().unwrap();
        assert_eq!(writer.inner, b"a [redacted: X_TOKEN] b");
        assert!(redactor.echoed_marker(&serde_json::json!("[redacted: X_TOKEN]")).is_some());
    }

    #[test]
    fn bytes_that_are_no_text_are_passed_on_at_once() {
        /// Counts the writes.
        #[derive(Default)]
        struct Writes(usize);
        impl Write for Writes {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += 1;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut writer = RedactingWriter::new(Writes::default(), redactor());
        writer.write_all(&b"a\xff".repeat(1000)).unwrap();
        assert_eq!(writer.inner.0, 1);
    }

    proptest! {
        #[test]
        fn no_secret_passes_however_it_is_cut_and_all_other_bytes_do(
            before in proptest::collection::vec(any::<u8>(), 0..20),
            after in proptest::collection::vec(any::<u8>(), 0..20),
            cuts in proptest::collection::vec(1_usize..9, 1..60),
        ) {
            let whole = [&before[..], b" ", "schlüssel-12345".as_bytes(), b" ", &after].concat();
            let mut writer = RedactingWriter::new(Vec::new(), redactor());
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
