//! The memory of a workspace: facts and corrections that its user or, with approval, the model has stored; a text file of
//! the state directory.

use agent_runtime::private_file::{self, create_private_dir};
use agent_text::lines::words;
use std::fmt::{self, Display};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Maximum number of entries, and bytes of the file; the oldest entries leave.
const MAX_ENTRIES: usize = 200;
const MAX_BYTES: usize = 16 << 10;

/// Maximum characters of an entry.
pub const MAX_ENTRY_CHARS: usize = 300;

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
pub enum MemoryKind {
    /// What the user corrected.
    Correction,
    /// A way of working in the project.
    Pattern,
    /// A fact about the project.
    Fact,
}

/// An entry: the line `- [YYYY-MM-DD] KIND: TEXT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryEntry {
    /// The day it was stored, `YYYY-MM-DD` (UTC).
    pub day: String,
    /// Its kind.
    pub kind: MemoryKind,
    /// Its text, one line.
    pub text: String,
}

impl Display for MemoryEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "- [{}] {}: {}", self.day, self.kind, self.text)
    }
}

impl MemoryEntry {
    fn parse(line: &str) -> Option<Self> {
        let (day, rest) = line.trim().strip_prefix("- [")?.split_once("] ")?;
        let (kind, text) = rest.split_once(": ")?;
        Some(Self { day: day.to_owned(), kind: kind.parse().ok()?, text: text.to_owned() })
    }
}

/// Why an entry is not stored.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// It is empty or too long.
    #[error("an entry has 1 to {MAX_ENTRY_CHARS} characters on one line")]
    Length,
    /// It contains a secret.
    #[error("it contains a secret, which is never stored")]
    Secret,
    /// The file cannot be read or written.
    #[error("the memory cannot be read or written: {0}")]
    Io(#[from] io::Error),
}

/// The file of a workspace's memory.
#[derive(Debug, Clone)]
pub struct Memory {
    directory: PathBuf,
}

impl Memory {
    /// Returns the memory in the state directory of a workspace; nothing is created.
    pub fn new(state: &Path) -> Self {
        Self { directory: state.to_owned() }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> PathBuf {
        self.directory.join("memory.md")
    }

    /// Returns the entries, oldest first; lines of another form are ignored.
    ///
    /// # Errors
    /// When the file exists and cannot be read, or another user may have written it.
    pub fn entries(&self) -> io::Result<Vec<MemoryEntry>> {
        /// Permission bits with which another user may have written the file.
        const OTHERS_MAY_WRITE: u32 = 0o022;
        let (file, metadata) = match private_file::open(&self.path()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        if !private_file::is_own(&metadata, OTHERS_MAY_WRITE) {
            return Err(io::Error::other("another user may have written it"));
        }
        let mut text = String::new();
        File::take(file, 2 * MAX_BYTES as u64).read_to_string(&mut text)?;
        Ok(text.lines().filter_map(MemoryEntry::parse).collect())
    }

    /// Adds an entry unless one with the same text exists; returns whether it was added. `has_secret` checks its text.
    ///
    /// # Errors
    /// For an entry that is empty, too long or holds a secret, and when the file cannot be written.
    pub fn add(
        &self,
        day: &str,
        kind: MemoryKind,
        text: &str,
        has_secret: impl Fn(&str) -> bool,
    ) -> Result<bool, MemoryError> {
        let text = words(text);
        if text.is_empty() || text.chars().count() > MAX_ENTRY_CHARS {
            return Err(MemoryError::Length);
        }
        if has_secret(&text) {
            return Err(MemoryError::Secret);
        }
        let _lock = self.lock()?;
        let mut entries = self.entries()?;
        if entries.iter().any(|entry| entry.text == text) {
            return Ok(false);
        }
        entries.push(MemoryEntry { day: day.to_owned(), kind, text });
        self.write(entries)?;
        Ok(true)
    }

    /// Removes the entries for which `fits` returns true; returns their number.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn remove(&self, fits: impl Fn(usize, &MemoryEntry) -> bool) -> Result<usize, MemoryError> {
        let _lock = self.lock()?;
        let all = self.entries()?;
        let before = all.len();
        let kept: Vec<MemoryEntry> = all
            .into_iter()
            .zip(1..)
            .filter(|(entry, number)| !fits(*number, entry))
            .map(|(entry, _)| entry)
            .collect();
        let removed = before.saturating_sub(kept.len());
        if removed > 0 {
            self.write(kept)?;
        }
        Ok(removed)
    }

    fn lock(&self) -> io::Result<File> {
        create_private_dir(&self.directory)?;
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.directory.join("memory.lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn write(&self, mut entries: Vec<MemoryEntry>) -> io::Result<()> {
        let size =
            |entries: &[MemoryEntry]| entries.iter().map(|entry| entry.to_string().len() + 1).sum::<usize>();
        let excess = entries.len().saturating_sub(MAX_ENTRIES);
        entries.drain(..excess);
        while size(&entries) > MAX_BYTES {
            entries.remove(0);
        }
        let mut lines = Vec::new();
        for entry in &entries {
            writeln!(lines, "{entry}")?;
        }
        private_file::replace(&self.path(), &lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn t30_an_entry_is_stored_once_and_the_oldest_leave() {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory::new(dir.path());
        let add = |text: &str| {
            memory.add("2026-11-25", MemoryKind::Fact, text, |text| text.contains("sk-")).unwrap()
        };
        assert!(add("one") && !add(" one ") && add("two"));
        assert!(matches!(
            memory.add("d", MemoryKind::Fact, "sk-1", |text| text.contains("sk-")),
            Err(MemoryError::Secret)
        ));
        assert!(matches!(
            memory.add("d", MemoryKind::Fact, &"x".repeat(301), |_| false),
            Err(MemoryError::Length)
        ));
        for number in 0..250 {
            add(&format!("fact {number} {}", "y".repeat(40)));
        }
        let entries = memory.entries().unwrap();
        assert!(entries.len() <= MAX_ENTRIES && entries.last().unwrap().text.starts_with("fact 249"));
        assert!(memory.path().metadata().unwrap().len() <= MAX_BYTES as u64);
        assert_eq!(memory.remove(|number, _| number == 1).unwrap(), 1);
        assert_eq!(memory.remove(|_, entry| entry.text == "nothing").unwrap(), 0);
    }

    proptest! {
        #[test]
        fn an_entry_is_read_as_it_was_written(text in "[^\\p{C}\\s]{1,20}( [^\\p{C}\\s]{1,20}){0,3}") {
            let entry = MemoryEntry { day: "2026-01-01".into(), kind: MemoryKind::Pattern, text };
            prop_assert_eq!(MemoryEntry::parse(&entry.to_string()), Some(entry));
        }
    }
}
