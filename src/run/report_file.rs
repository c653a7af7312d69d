//! Writes the file of a report: completely or not at all, and never through a symbolic link.

use agent_runtime::private_file::{create_private_dir, set_mode, synced};
use rustix::fs::{Mode, OFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The destination file of a report.
#[derive(Debug)]
pub struct ReportFile {
    /// The path as requested.
    path: PathBuf,
    /// The canonical directory at the time of creation, or the reason why it is unusable.
    directory: Result<PathBuf, io::Error>,
}

impl ReportFile {
    /// Creates the destination for `path` and its directory if it is missing. Errors are reported when the file is written.
    pub fn at(path: PathBuf) -> Self {
        let directory = directory_of(&path);
        let directory = create_private_dir(&directory).and_then(|()| directory.canonicalize());
        Self { path, directory }
    }

    /// Returns the path as requested.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the file with `text`. A symbolic link at the path is replaced, not followed, because commands may have created
    /// it in the meantime.
    ///
    /// # Errors
    /// Fails when the directory was replaced, or the file cannot be written; the earlier content remains.
    pub fn replace(&self, text: &str) -> io::Result<()> {
        let (directory, name) = self.verified_target()?;
        let path = directory.join(name);
        let file = write_temporary(directory, text)?;
        if let Ok(there) = path.symlink_metadata() {
            if there.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if there.is_file() {
                set_mode(file.as_file(), Mode::from_raw_mode(there.mode() & 0o7777))?;
            }
        }
        file.persist(&path)?;
        Ok(())
    }

    /// Appends `text` to the file, as for the summary of a job. On failure the file keeps its earlier content.
    ///
    /// # Errors
    /// Fails when the directory was replaced, the file is not a regular file, or it cannot be written.
    pub fn append(&self, text: &str) -> io::Result<()> {
        let (directory, name) = self.verified_target()?;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = OpenOptions::new();
        let mut file =
            options.append(true).create(true).mode(0o600).custom_flags(flags).open(directory.join(name))?;
        let before = file.metadata()?;
        if !before.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        file.write_all(text.as_bytes()).inspect_err(|_| {
            // The first error is the one to report.
            let _cut = file.set_len(before.len());
        })
    }

    /// Writes `text` to a new file of the same name in the directory `here` and returns its path.
    ///
    /// # Errors
    /// Fails when the file exists or cannot be written.
    pub fn write_copy_in(&self, here: &Path, text: &str) -> io::Result<PathBuf> {
        let path = here.join(self.path.file_name().ok_or(io::ErrorKind::InvalidFilename)?);
        write_temporary(here, text)?.persist_noclobber(&path)?;
        Ok(path)
    }

    fn verified_target(&self) -> io::Result<(&Path, &std::ffi::OsStr)> {
        let directory =
            self.directory.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        if directory_of(&self.path).canonicalize()? != *directory {
            return Err(io::Error::other("its directory was replaced in the meantime"));
        }
        let name = self.path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        Ok((directory, name))
    }
}

/// Returns the directory of a path.
fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Writes a temporary file in `directory`, synced to disk and readable by its owner only.
fn write_temporary(directory: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(".agent-report-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    synced(File::sync_all(file.as_file()))?;
    Ok(file)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests look at the files")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn o17_a_report_takes_the_place_of_another_and_leaves_nothing_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/report.md");
        let file = ReportFile::at(path.clone());
        file.replace("one").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        file.replace("two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        assert_eq!(names(path.parent().unwrap()), ["report.md"]);
    }

    #[test]
    fn a_link_in_the_place_of_a_report_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (other, path) = (root.path().join("other"), root.path().join("report.md"));
        fs::write(&other, "mine").unwrap();
        let file = ReportFile::at(path.clone());
        symlink(&other, &path).unwrap();
        assert!(file.append("x").is_err());
        file.replace("report").unwrap();
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
        assert_eq!(fs::read_to_string(&path).unwrap(), "report");
    }

    #[test]
    fn a_directory_that_became_a_link_meanwhile_gets_no_report() {
        let root = tempfile::tempdir().unwrap();
        let (out, other) = (root.path().join("out"), root.path().join("other"));
        fs::create_dir(&other).unwrap();
        let file = ReportFile::at(out.join("report.md"));
        fs::remove_dir(&out).unwrap();
        symlink(&other, &out).unwrap();
        assert!(file.replace("report").is_err());
        assert!(file.append("report").is_err());
        assert_eq!(names(&other), [""; 0]);
    }

    #[test]
    fn a_copy_replaces_no_existing_file() {
        let root = tempfile::tempdir().unwrap();
        let file = ReportFile::at(PathBuf::from("/proc/x.md"));
        assert!(file.replace("report").is_err());
        assert_eq!(file.write_copy_in(root.path(), "one").unwrap(), root.path().join("x.md"));
        assert!(file.write_copy_in(root.path(), "two").is_err());
        assert_eq!(fs::read_to_string(root.path().join("x.md")).unwrap(), "one");
        assert_eq!(names(root.path()), ["x.md"]);
    }

    #[test]
    fn a_summary_keeps_what_was_there() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("summary");
        fs::write(&path, "before\n").unwrap();
        ReportFile::at(path.clone()).append("after\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before\nafter\n");
    }
}
