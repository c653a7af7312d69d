//! Copies the workspace for isolated work: files, links and directories, within limits, without links back to the original.

use crate::content_store::MAX_FILE_BYTES;
use crate::snapshot::CACHE_TAG;
use agent_process::sandbox::repositories;
use agent_redactor::Redactor;
use agent_runtime::private_file::{self, set_mode};
use rustix::fs::Mode;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// Maximum number of entries to copy. Enough for a project with its installed packages.
const MAX_ENTRIES: usize = 300_000;

/// Maximum number of bytes to copy, so that a copy does not fill the disk.
const MAX_BYTES: u64 = 4 << 30;

/// Owner permissions needed to work in a directory.
const OWN: u32 = 0o700;

/// Reasons why no copy was made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// It has too many entries.
    #[error("it has more than {MAX_ENTRIES} files and directories")]
    TooMany,
    /// It is too large.
    #[error("it has more than {} GiB", MAX_BYTES >> 30)]
    TooLarge,
    /// The operating system returned an error.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the failed operation.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Summary of a copy.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CopySummary {
    /// Number of files and links in the copy.
    pub files: usize,
    /// Cache directories, marked as such by a tool, which are empty in the copy.
    pub caches: Vec<String>,
    /// Paths that were not copied: files above the size limit of the content store, files with a secret of this process,
    /// unreadable files, special files, paths hidden from commands, and each `.git` that is not a directory, because it refers
    /// to a repository elsewhere.
    pub left_out: Vec<String>,
}

/// Copies the directory `from` to the empty directory `to`, without the `unseen` paths, which start with `from`. Files with a
/// secret known to `redactor` are not copied.
///
/// # Errors
/// Fails if `from` is too large or the copy cannot be written.
pub fn copy_workspace(
    from: &Path,
    to: &Path,
    redactor: &Redactor,
    unseen: &BTreeSet<PathBuf>,
) -> Result<CopySummary, CopyError> {
    let (copied, directories) = (CopySummary::default(), vec![PathBuf::new()]);
    let mut copying = Copier { from, to, redactor, unseen, copied, directories, entries: 0, bytes: 0 };
    while let Some(directory) = copying.directories.pop() {
        copying.directory(&directory)?;
    }
    copying.copied.caches.sort_unstable();
    copying.copied.left_out.sort_unstable();
    Ok(copying.copied)
}

struct Copier<'a> {
    from: &'a Path,
    to: &'a Path,
    redactor: &'a Redactor,
    unseen: &'a BTreeSet<PathBuf>,
    copied: CopySummary,
    /// Directories of the copy that are created but still empty, starting with the root.
    directories: Vec<PathBuf>,
    entries: usize,
    bytes: u64,
}

impl Copier<'_> {
    fn directory(&mut self, directory: &Path) -> Result<(), CopyError> {
        let Ok(entries) = self.from.join(directory).read_dir() else {
            self.leave_out(directory);
            return Ok(());
        };
        for entry in entries.flatten() {
            self.entries = self.entries.saturating_add(1);
            if self.entries > MAX_ENTRIES {
                return Err(CopyError::TooMany);
            }
            let path = directory.join(entry.file_name());
            match entry.metadata() {
                Ok(metadata) => self.entry(&path, &metadata)?,
                Err(_) => self.leave_out(&path),
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path, metadata: &Metadata) -> Result<(), CopyError> {
        let (from, to) = (self.from.join(path), self.to.join(path));
        let leads_away = path.file_name().is_some_and(repositories::is_git) && !metadata.is_dir();
        if self.unseen.contains(&from) {
            self.leave_out(path);
        } else if metadata.is_dir() {
            let made = std::fs::create_dir(&to).and_then(|()| File::open(&to));
            let mode = Mode::from_raw_mode(metadata.mode() & 0o7777 | OWN);
            made.and_then(|made| Ok(set_mode(&made, mode)?)).map_err(at(&to))?;
            if from.join(CACHE_TAG).symlink_metadata().is_ok() {
                self.copied.caches.push(path.to_string_lossy().into_owned());
            } else {
                self.directories.push(path.to_owned());
            }
        } else if metadata.is_symlink() && !leads_away {
            match from.read_link() {
                Ok(target) => {
                    symlink(target, &to).map_err(at(&to))?;
                    self.copied.files += 1;
                }
                Err(_) => self.leave_out(path),
            }
        } else if metadata.is_file() && !leads_away {
            self.file(path, &from, &to)?;
        } else {
            self.leave_out(path);
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, from: &Path, to: &Path) -> Result<(), CopyError> {
        let Ok((source, metadata)) = open(from) else {
            self.leave_out(path);
            return Ok(());
        };
        self.bytes = self.bytes.saturating_add(metadata.len());
        if self.bytes > MAX_BYTES {
            return Err(CopyError::TooLarge);
        }
        let mut bytes = Vec::new();
        let read = (&source).take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes);
        let is_large = bytes.len() as u64 > MAX_FILE_BYTES;
        // Git objects are compressed, so secrets in them cannot be detected.
        let is_packed = path.iter().any(|part| part == OsStr::new(repositories::GIT));
        if read.is_err() || is_large && !is_packed || self.redactor.contains_known(&bytes) {
            self.leave_out(path);
            return Ok(());
        }
        let mut rest = (&source).take(if is_large { metadata.len() } else { 0 });
        let written = File::create_new(to).and_then(|mut file| {
            file.write_all(&bytes)?;
            io::copy(&mut rest, &mut file)?;
            set_mode(&file, Mode::from_raw_mode(metadata.mode() & 0o777))?;
            file.set_modified(metadata.modified()?)
        });
        written.map_err(at(to))?;
        self.copied.files += 1;
        Ok(())
    }

    fn leave_out(&mut self, path: &Path) {
        self.copied.left_out.push(path.to_string_lossy().into_owned());
    }
}

/// Opens a regular file with its metadata. Does not follow a link.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let (file, metadata) = private_file::open(path)?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> CopyError {
    let path = path.to_owned();
    move |source| CopyError::Io { path, source }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests {
    use super::*;
    use agent_core::secret::Secret;
    use agent_redactor::NamedSecret;

    /// Copies a directory with these files and returns the temporary directory and the summary.
    fn copied(files: &[(&str, &str)], redactor: &Redactor) -> (tempfile::TempDir, CopySummary) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join("from").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::create_dir(dir.path().join("to")).unwrap();
        symlink("/elsewhere", dir.path().join("from/link")).unwrap();
        let unseen = BTreeSet::from([dir.path().join("from/keys")]);
        let done =
            copy_workspace(&dir.path().join("from"), &dir.path().join("to"), redactor, &unseen).unwrap();
        (dir, done)
    }

    #[test]
    fn files_links_repositories_and_what_is_ignored_are_copied_as_they_are() {
        let files = [(".gitignore", "x"), ("x/y", "1"), (".git/HEAD", "ref"), ("empty", "")];
        let (dir, done) = copied(&files, &Redactor::default());
        assert_eq!(done, CopySummary { files: files.len() + 1, ..CopySummary::default() });
        let to = dir.path().join("to");
        for (path, text) in files {
            assert_eq!(std::fs::read_to_string(to.join(path)).unwrap(), text);
        }
        assert_eq!(to.join("link").read_link().unwrap(), Path::new("/elsewhere"));
        let modified = |side: &str| dir.path().join(side).join("x/y").metadata().unwrap().modified().unwrap();
        assert_eq!(modified("from"), modified("to"));
    }

    #[test]
    fn caches_are_empty_and_what_leads_away_or_holds_a_secret_is_left_out() {
        let known = NamedSecret { name: "KEY".into(), value: Secret::new("sk-0123456789abcdef") };
        let files = [
            ("target/CACHEDIR.TAG", ""),
            ("target/out", "1"),
            ("module/.git", "gitdir: ../.git/modules/module"),
            (".env", "KEY=sk-0123456789abcdef"),
            ("keys/id", "1"),
        ];
        let (dir, done) = copied(&files, &Redactor::new([known]));
        assert_eq!((done.files, done.caches), (1, vec!["target".to_owned()]));
        assert_eq!(done.left_out, [".env", "keys", "module/.git"]);
        let to = dir.path().join("to");
        assert!(to.join("target").is_dir() && to.join("module").is_dir());
        assert!(!to.join("target/out").exists() && !to.join("module/.git").exists());
    }
}
