//! Outputs too long for the model, kept without secrets under the name `output:CALL_ID`.

use crate::redactor::{RedactingWriter, Redactor};
use crate::text::excerpt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

/// What the names of kept outputs begin with.
pub const OUTPUT_PREFIX: &str = "output:";

/// Bytes kept of one output; whoever writes one ends there.
pub const MAX_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;

/// Characters per token, roughly, in every estimate (spec.md 1.5).
pub const CHARS_PER_TOKEN: usize = 4;

/// Longest call id used as a file name as it is.
const MAX_ID_CHARS: usize = 64;

/// Digits of the hash that stands for a call id that cannot be a file name.
const HASH_DIGITS: usize = 32;

/// The directory of one session's long outputs.
#[derive(Clone)]
pub struct Outputs {
    /// Made with mode 0700 when the first output is kept.
    pub dir: PathBuf,
    /// Where those of the session are that this one belongs to: they can be read too.
    pub parent: Option<PathBuf>,
    /// Keeps secrets out of the files.
    pub redactor: Arc<Redactor>,
}

impl Outputs {
    /// The name by which the output of call `call_id` is read.
    pub fn name(call_id: &str) -> String {
        format!("{OUTPUT_PREFIX}{}", stem(call_id))
    }

    /// Those of a subagent that call `call_id` asks: it reads these too, and keeps its own apart.
    #[must_use]
    pub fn for_subagent(&self, call_id: &str) -> Self {
        let dir = self.dir.join(format!("subagent-{}", stem(call_id)));
        Self { dir, parent: Some(self.dir.clone()), redactor: Arc::clone(&self.redactor) }
    }

    /// A new file, mode 0600, for the output of call `call_id`; at most [`MAX_OUTPUT_BYTES`] are to be written, and then flushed.
    ///
    /// # Errors
    /// When the directory or the file cannot be made.
    pub fn writer(&self, call_id: &str) -> io::Result<RedactingWriter<File>> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(self.file(&stem(call_id)))?;
        Ok(RedactingWriter::new(file, Arc::clone(&self.redactor)))
    }

    /// Keeps `bytes`, at most [`MAX_OUTPUT_BYTES`] of them, as the output of call `call_id`; returns its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn store(&self, call_id: &str, bytes: &[u8]) -> io::Result<String> {
        let most = usize::try_from(MAX_OUTPUT_BYTES).unwrap_or(usize::MAX).min(bytes.len());
        let mut file = self.writer(call_id)?;
        file.write_all(bytes.get(..most).unwrap_or(bytes))?;
        file.flush()?;
        Ok(Self::name(call_id))
    }

    /// Opens the output called `name` (`output:CALL_ID`) for reading.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn open(&self, name: &str) -> io::Result<File> {
        let stem = stem(name.strip_prefix(OUTPUT_PREFIX).unwrap_or(name));
        let parent = self.parent.as_ref().map(|parent| parent.join(format!("{stem}.txt")));
        File::open(self.file(&stem)).or_else(|error| parent.map_or(Err(error), File::open))
    }

    /// `text` cut to `max_tokens` (0: never cut); the whole of a cut text is kept, unless the
    /// tool has kept its output itself, and the answer says under which name.
    pub fn fit(&self, call_id: &str, text: String, max_tokens: usize) -> String {
        let limit = max_tokens.saturating_mul(CHARS_PER_TOKEN);
        let cut = match excerpt::fit(&text, limit) {
            std::borrow::Cow::Borrowed(_) => return text,
            std::borrow::Cow::Owned(cut) => cut,
        };
        let kept = match self.open(&Self::name(call_id)) {
            Ok(_) => Ok(Self::name(call_id)),
            Err(_) => self.store(call_id, text.as_bytes()),
        };
        match kept {
            Ok(name) => format!(
                "{}\n[Cut to {} of {} characters. The whole text is {name}: read_file with start_line and limit, or grep, with that name as path.]",
                cut.trim_end_matches('\n'),
                cut.chars().count(),
                text.chars().count()
            ),
            Err(error) => {
                format!("{}\n[Cut; the whole text could not be kept: {error}]", cut.trim_end_matches('\n'))
            }
        }
    }

    fn file(&self, stem: &str) -> PathBuf {
        self.dir.join(format!("{stem}.txt"))
    }
}

/// Whether `name` can be the file name of a kept output.
pub fn is_file_name(name: &str) -> bool {
    name.strip_suffix(".txt").is_some_and(|name| stem(name) == name)
}

/// A call id as a file name: itself when it is plain, else a hash of it. `~` keeps the two apart and is plain only in
/// front, so that the name of an output names the same file as its id.
fn stem(call_id: &str) -> String {
    let bare = call_id.strip_prefix('~').unwrap_or(call_id);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !bare.is_empty() && bare.len() <= MAX_ID_CHARS && bare.bytes().all(plain) {
        return call_id.to_owned();
    }
    let mut digits = blake3::hash(call_id.as_bytes()).to_hex().to_string();
    digits.truncate(HASH_DIGITS);
    format!("~{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Read;
    use std::os::unix::fs::PermissionsExt;

    fn outputs() -> (tempfile::TempDir, Outputs) {
        let dir = tempfile::tempdir().unwrap();
        let outputs =
            Outputs { dir: dir.path().join("state/outputs"), parent: None, redactor: Arc::default() };
        (dir, outputs)
    }

    #[test]
    fn k1_a_long_text_is_cut_kept_and_can_be_read_by_its_name() {
        let (_dir, outputs) = outputs();
        let text = (1..=500).map(|line| format!("this is line number {line}\n")).collect::<Vec<_>>().concat();
        let cut = outputs.fit("call_1", text.clone(), 2000);
        assert!(cut.contains("[... 440 lines omitted ...]") && cut.contains("output:call_1"), "{cut}");
        let mut kept = String::new();
        outputs.open("output:call_1").unwrap().read_to_string(&mut kept).unwrap();
        assert_eq!(kept, text);
        assert_eq!(outputs.fit("call_2", text.clone(), 0), text);
        assert_eq!(outputs.fit("call_3", "short".to_owned(), 1), "short");
    }

    #[test]
    fn kept_outputs_are_readable_by_their_owner_only() {
        let (_dir, outputs) = outputs();
        outputs.store("a", b"secret").unwrap();
        let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&outputs.dir), 0o700);
        assert_eq!(mode(&outputs.dir.join("a.txt")), 0o600);
    }

    proptest! {
        #[test]
        fn any_call_id_is_one_file_in_the_directory_and_its_name_names_it(id in "\\PC{0,100}|[./~a-z]{0,8}") {
            let name = Outputs::name(&id);
            let file = stem(&id);
            prop_assert!(!file.is_empty() && !file.contains(['/', '.', '\0']) && file.len() <= MAX_ID_CHARS + 1);
            prop_assert_eq!(stem(name.strip_prefix(OUTPUT_PREFIX).unwrap()), file);
        }
    }
}
