//! The file of a report: written whole or not at all, and never through a link that somebody laid meanwhile.

use crate::process::scratch_dir::create_private_dir;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a report is to go.
#[derive(Debug)]
pub struct ReportFile {
    /// As it was asked for.
    path: PathBuf,
    /// The real directory it is in, as it was found at first; what was in the way when there was none.
    directory: Result<PathBuf, io::Error>,
}

impl ReportFile {
    /// The file `path`, in a directory that is made where it is missing. What is in the way is told when it is written.
    pub fn at(path: PathBuf) -> Self {
        let directory = directory_of(&path);
        let directory = create_private_dir(&directory).and_then(|()| directory.canonicalize());
        Self { path, directory }
    }

    /// As it was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` in place of what is there. A link in its place is replaced, not followed: between the first look and
    /// this one, commands may have laid it.
    ///
    /// # Errors
    /// When the directory is another one by now, or the file cannot be written; what was there is there still.
    pub fn replace(&self, text: &str) -> io::Result<()> {
        let (directory, name) = self.verified_target()?;
        let path = directory.join(name);
        let file = write_temporary(directory, text)?;
        if let Ok(there) = path.symlink_metadata() {
            if there.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            if there.is_file() {
                file.as_file().set_permissions(there.permissions())?;
            }
        }
        file.persist(&path)?;
        Ok(())
    }

    /// Adds `text` to what is there, as commands do to the summary of a job: whole, or what was there stays as it was.
    ///
    /// # Errors
    /// When the directory is another one by now, or the file is no regular one or cannot be written.
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
            // The first error is the one that is told.
            let _cut = file.set_len(before.len());
        })
    }

    /// Writes `text` to a file of the same name in the directory `here`, where there is none yet; gives its path.
    ///
    /// # Errors
    /// When there is one, or it cannot be written.
    pub fn write_copy_in(&self, here: &Path, text: &str) -> io::Result<PathBuf> {
        let path = here.join(self.path.file_name().ok_or(io::ErrorKind::InvalidFilename)?);
        write_temporary(here, text)?.persist_noclobber(&path)?;
        Ok(path)
    }

    fn verified_target(&self) -> io::Result<(&Path, &std::ffi::OsStr)> {
        let directory =
            self.directory.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        if directory_of(&self.path).canonicalize()? != *directory {
            return Err(io::Error::other("its directory has become another one meanwhile"));
        }
        let name = self.path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        Ok((directory, name))
    }
}

/// The directory that a path names.
fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A file in `directory` without a name of its own yet, on disk, readable by its owner only.
fn write_temporary(directory: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(".agent-report-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    File::sync_all(file.as_file())?;
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
    fn beside_nothing_is_replaced() {
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
