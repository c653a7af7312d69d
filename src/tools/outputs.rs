//! Stores tool outputs that are too long for the model, redacted, under the name `output:CALL_ID`.

use agent_journal::kept_results::{KEPT_PREFIX, KeptResults};
use agent_redactor::{RedactingWriter, Redactor};
use agent_runtime::private_file::create_private_dir;
use agent_text::excerpt;
use agent_workspace::Workspace;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Prefix of the names of stored outputs.
pub const OUTPUT_PREFIX: &str = "output:";

/// Maximum bytes stored of one output; writers must stop there.
pub const MAX_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;

/// Beginnings of the notes on stored outputs.
pub(crate) const FULL_NOTE: &str = "[Full output: ";
pub(crate) const FIRST_PART_NOTE: &str = "[The first 64 MiB of the output: ";
pub(crate) const READ_NOTE: &str = "read_file or grep with path \"";
const CUT_NOTE: &str = "[Cut to ";
const CUT_NOTE_NAME: &str = " characters. The full text is ";
const CUT_NOTE_END: &str = ": read_file with start_line and limit, or grep, with that name as path.]";

/// Approximate characters per token in every estimate.
pub const CHARS_PER_TOKEN: usize = 4;

/// Characters of the longest call id that is used unchanged as a file name.
const MAX_ID_CHARS: usize = 64;

/// Hexadecimal digits of the hash that replaces a call id unsuitable as a file name.
const HASH_DIGITS: usize = 32;

/// The directory of one session's long outputs.
#[derive(Clone)]
pub struct Outputs {
    /// The directory; created with mode 0700 when the first output is stored.
    pub dir: PathBuf,
    /// Directory of the parent session of a subagent, whose outputs can be read too.
    pub parent: Option<PathBuf>,
    /// Results of earlier sessions; absent: none are kept.
    pub kept: Option<Arc<KeptResults>>,
    /// Removes secrets before writing.
    pub redactor: Arc<Redactor>,
}

impl Outputs {
    /// Returns the name under which the output of call `call_id` is read.
    pub fn name(call_id: &str) -> String {
        format!("{OUTPUT_PREFIX}{}", stem(call_id))
    }

    /// Returns the outputs of the subagent started by call `call_id`: it stores its own separately and can read these too.
    #[must_use]
    pub fn for_subagent(&self, call_id: &str) -> Self {
        let dir = self.dir.join(format!("subagent-{}", stem(call_id)));
        Self { dir, parent: Some(self.dir.clone()), ..self.clone() }
    }

    /// Creates a file with mode 0600 for the output of call `call_id`. The caller writes at most [`MAX_OUTPUT_BYTES`] and flushes.
    ///
    /// # Errors
    /// When the directory or the file cannot be created.
    pub fn writer(&self, call_id: &str) -> io::Result<RedactingWriter<File>> {
        create_private_dir(&self.dir)?;
        let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(self.path(call_id))?;
        Ok(RedactingWriter::new(file, Arc::clone(&self.redactor)))
    }

    /// Stores the first [`MAX_OUTPUT_BYTES`] of `bytes` as the output of call `call_id`, and returns its name.
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
    /// When there is no output of that name.
    pub fn open(&self, name: &str) -> io::Result<File> {
        let id = name.strip_prefix(OUTPUT_PREFIX).unwrap_or(name);
        let stem = if is_hashed(id) { id.to_owned() } else { stem(id) };
        let parent = self.parent.as_ref().map(|parent| parent.join(format!("{stem}.txt")));
        File::open(self.file(&stem)).or_else(|error| parent.map_or(Err(error), File::open))
    }

    /// Opens the output or the kept result called `name`, `output:CALL_ID` or `kept:ID`; `None` for any other name.
    ///
    /// # Errors
    /// A message for the model when there is none of that name, or it is void.
    pub fn open_named(&self, name: &str, workspace: &Workspace) -> Option<Result<File, String>> {
        let missing = || format!("There is no stored output {name}.");
        match &self.kept {
            _ if !is_stored(name) => None,
            Some(kept) if name.starts_with(KEPT_PREFIX) => Some(kept.open(name, workspace)),
            None if name.starts_with(KEPT_PREFIX) => Some(Err(missing())),
            _ => Some(self.open(name).map_err(|_| missing())),
        }
    }

    /// Returns `text` cut to `max_tokens` (0: no limit), with a note that names the stored full text. It stores the full text
    /// unless the tool has already stored its output.
    pub fn fit(&self, call_id: &str, text: String, max_tokens: usize) -> String {
        let limit = max_tokens.saturating_mul(CHARS_PER_TOKEN);
        let cut = match excerpt::fit(&text, limit) {
            std::borrow::Cow::Borrowed(_) => return text,
            std::borrow::Cow::Owned(cut) => cut,
        };
        let stored = match self.open(&Self::name(call_id)) {
            Ok(_) => Ok(Self::name(call_id)),
            Err(_) => self.store(call_id, text.as_bytes()),
        };
        match stored {
            Ok(name) => format!(
                "{}\n{CUT_NOTE}{} of {}{}{CUT_NOTE_NAME}{name}{CUT_NOTE_END}",
                cut.trim_end_matches('\n'),
                cut.chars().count(),
                excerpt::at_least(&text),
                text.chars().count()
            ),
            Err(error) => {
                format!("{}\n[Cut; the full text could not be stored: {error}]", cut.trim_end_matches('\n'))
            }
        }
    }

    /// Returns the file of the output of call `call_id`, whether there is one or not.
    pub fn path(&self, call_id: &str) -> PathBuf {
        self.file(&stem(call_id))
    }

    fn file(&self, stem: &str) -> PathBuf {
        self.dir.join(format!("{stem}.txt"))
    }
}

/// Checks whether a line is a note for the model on a stored output. Only the exact text of a note counts: the user sees every other line.
pub fn is_note(line: &str) -> bool {
    let is_name =
        |name: &str| name.strip_prefix(OUTPUT_PREFIX).is_some_and(|id| is_file_name(&format!("{id}.txt")));
    let stored = [FULL_NOTE, FIRST_PART_NOTE].iter().find_map(|note| line.strip_prefix(note));
    if let Some(rest) = stored {
        return rest.strip_prefix(READ_NOTE).and_then(|rest| rest.strip_suffix("\"]")).is_some_and(is_name);
    }
    let Some((size, name)) = line.strip_prefix(CUT_NOTE).and_then(|rest| rest.split_once(CUT_NOTE_NAME))
    else {
        return false;
    };
    let is_size =
        size.split(' ').all(|word| matches!(word, "of" | "at" | "least") || word.parse::<usize>().is_ok());
    is_size && name.strip_suffix(CUT_NOTE_END).is_some_and(is_name)
}

/// Checks whether `path` names a stored output or a kept result and not a file.
pub fn is_stored(path: &str) -> bool {
    path.starts_with(OUTPUT_PREFIX) || path.starts_with(KEPT_PREFIX)
}

/// Checks whether `name` can be the file name of a stored output.
pub fn is_file_name(name: &str) -> bool {
    name.strip_suffix(".txt").is_some_and(|name| is_hashed(name) || stem(name) == name)
}

/// Checks whether `stem` is the file name of the output of a call whose id is unsuitable as one.
fn is_hashed(stem: &str) -> bool {
    let digits = stem.strip_prefix('~').unwrap_or_default();
    digits.len() == HASH_DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the file name for a call id: the id itself if it has only letters, digits, `_` and `-`, else `~` and its hash. No
/// id has the file name of another one.
fn stem(call_id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !call_id.is_empty() && call_id.len() <= MAX_ID_CHARS && call_id.bytes().all(plain) {
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
        let outputs = Outputs {
            dir: dir.path().join("state/outputs"),
            parent: None,
            kept: None,
            redactor: Arc::default(),
        };
        (dir, outputs)
    }

    #[test]
    fn k1_a_long_text_is_cut_kept_and_can_be_read_by_its_name() {
        let (_dir, outputs) = outputs();
        let text = (1..=500).map(|line| format!("this is line number {line}\n")).collect::<Vec<_>>().concat();
        let cut = outputs.fit("call_1", text.clone(), 2000);
        assert!(cut.contains("[... 440 lines omitted ...]") && cut.contains("output:call_1"), "{cut}");
        let mut stored = String::new();
        outputs.open("output:call_1").unwrap().read_to_string(&mut stored).unwrap();
        assert_eq!(stored, text);
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
            let dir = tempfile::tempdir().unwrap();
            let outputs = Outputs { dir: dir.path().to_owned(), parent: None, kept: None, redactor: Arc::default() };
            outputs.store(&id, b"x").unwrap();
            prop_assert!(outputs.open(&name).is_ok() && is_file_name(&format!("{file}.txt")), "{}", name);
        }
    }

    // Fault E1: what is stored by the id of a call.
    #[test]
    fn an_id_that_is_the_file_name_of_another_id_has_a_file_of_its_own() {
        let (_dir, outputs) = outputs();
        let other = stem("an id with blanks");
        outputs.store("an id with blanks", b"first").unwrap();
        outputs.store(&other, b"second").unwrap();
        let mut stored = String::new();
        outputs.open(&Outputs::name("an id with blanks")).unwrap().read_to_string(&mut stored).unwrap();
        outputs.open(&Outputs::name(&other)).unwrap().read_to_string(&mut stored).unwrap();
        assert_eq!(stored, "firstsecond");
    }
}
