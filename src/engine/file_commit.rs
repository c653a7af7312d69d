//! Commits files of the workspace as they are, by `git fast-import`: without index, hooks, filters and signature.

use crate::policy::Policy;
use agent_core::file_change::FileState;
use agent_messages as messages;
use agent_process::launch::{ExitReason, Launcher};
use agent_process::sandbox::repositories::unacknowledged_repository;
use agent_redactor::Redactor;
use agent_workspace::Workspace;
use agent_workspace::content_store::MAX_FILE_BYTES;
use agent_workspace::git::{
    FIND_FILTERS, HEAD, SAFE_DIFF, commit_or_empty_tree, error_text, filtered_paths, git, listed_paths,
    stdout_text, untracked_files, whole_output, without_filters,
};
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum bytes of files in one commit; files beyond it are omitted.
const MAX_BYTES: u64 = 64 << 20;

/// Committer of the commits.
const COMMITTER: &str = "agent <agent@localhost>";

/// Base of a commit.
struct Base {
    /// Path of the workspace in the repository: empty, or with a `/` at its end.
    prefix: String,
    /// The `HEAD` commit, if there is one.
    head: Option<String>,
}

/// Content of a commit at a path.
enum CommitEntry {
    /// The file was deleted.
    Nothing,
    /// A file or a link: its git mode and its content.
    File(&'static str, Vec<u8>),
}

/// A commit.
pub struct FileCommit {
    /// Its id.
    pub id: String,
    /// Its parent, which was the `HEAD` commit.
    pub parent: Option<String>,
    /// Files that it omits.
    pub omitted_files: Vec<String>,
}

/// Writes commits.
pub struct CommitWriter<'a> {
    /// Starts git.
    pub launcher: &'a Launcher,
    /// The workspace.
    pub workspace: &'a Workspace,
    /// Names the files that are never committed.
    pub policy: &'a Policy,
    /// Finds secrets.
    pub redactor: &'a Redactor,
    /// Time of the commits, in seconds since the Unix epoch.
    pub unix_seconds: u64,
}

impl CommitWriter<'_> {
    /// Creates a commit on top of `HEAD` with the current content of `files` (paths from the workspace root), and `reference` to it.
    /// `message` ends with a line break.
    ///
    /// # Errors
    /// The error message of git.
    pub async fn commit(
        &self,
        reference: &str,
        message: &str,
        files: &[String],
    ) -> Result<FileCommit, String> {
        let root = self.workspace.root();
        let base = base(self.launcher, root).await?;
        let (stream, omitted_files) = self.stream(reference, message, files, &base);
        let exit = git(self.launcher, root, &["fast-import", "--quiet", "--force"], stream, &[]).await?;
        let id = String::from_utf8_lossy(&exit.stdout.head).trim().to_owned();
        if exit.reason != ExitReason::Code(0) || id.is_empty() {
            let why = error_text(&exit);
            return Err(match unacknowledged_repository(root) {
                Some(directory) => messages::repository_read_only(&why, &directory),
                None => why,
            });
        }
        Ok(FileCommit { id, parent: base.head, omitted_files })
    }

    /// Builds the input of `git fast-import`, and lists the files that the commit omits.
    fn stream(
        &self,
        reference: &str,
        message: &str,
        files: &[String],
        base: &Base,
    ) -> (Vec<u8>, Vec<String>) {
        let mut stream = format!(
            "feature done\ncommit {reference}\nmark :1\ncommitter {COMMITTER} {} +0000\ndata {}\n{message}",
            self.unix_seconds,
            message.len()
        )
        .into_bytes();
        if let Some(head) = &base.head {
            stream.extend(format!("from {head}\n").bytes());
        }
        let (mut omitted_files, mut left) = (Vec::new(), MAX_BYTES);
        for path in files {
            let name = quoted(&format!("{}{path}", base.prefix));
            match self.commit_entry(path, left) {
                Some(CommitEntry::Nothing) => stream.extend(format!("D {name}\n").bytes()),
                Some(CommitEntry::File(mode, bytes)) => {
                    left = left.saturating_sub(bytes.len() as u64);
                    stream.extend(format!("M {mode} inline {name}\ndata {}\n", bytes.len()).bytes());
                    stream.extend(bytes);
                    stream.push(b'\n');
                }
                None => omitted_files.push(path.clone()),
            }
        }
        stream.extend(b"\nget-mark :1\ndone\n");
        (stream, omitted_files)
    }

    /// Returns the content for a path. Returns `None` for a file that is sensitive, contains a secret, is too large or belongs
    /// to a repository below the root.
    fn commit_entry(&self, path: &str, limit: u64) -> Option<CommitEntry> {
        let path = self.workspace.path(path).ok()?;
        if self.policy.is_sensitive(path.as_str()) || self.workspace.is_in_repository_below(&path) {
            return None;
        }
        let state = self.workspace.state_of(&path).ok()?;
        if state == FileState::Absent {
            return Some(CommitEntry::Nothing);
        }
        let bytes = self.workspace.content_of(&path, limit.min(MAX_FILE_BYTES)).ok()?;
        if self.redactor.contains_known(&bytes) {
            return None;
        }
        let is_executable = state.mode().is_some_and(|mode| mode & 0o100 != 0);
        let mode = if state.is_link() {
            "120000"
        } else if is_executable {
            "100755"
        } else {
            "100644"
        };
        Some(CommitEntry::File(mode, bytes))
    }
}

/// Returns the workspace's path in the repository and the `HEAD` commit.
async fn base(launcher: &Launcher, root: &Path) -> Result<Base, String> {
    let words = ["rev-parse", "--show-prefix", "--quiet", "--verify", "HEAD^{commit}"];
    let exit = git(launcher, root, &words, Vec::new(), &[]).await?;
    let text = String::from_utf8_lossy(&exit.stdout.head).into_owned();
    let mut lines = text.lines();
    // Without a commit, git prints only the prefix.
    let Some(prefix) = lines.next() else { return Err(error_text(&exit)) };
    Ok(Base { prefix: prefix.to_owned(), head: lines.next().map(str::to_owned) })
}

/// Quotes a path for `git fast-import`.
fn quoted(path: &str) -> String {
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

/// Returns the files below `root` whose content or staged content differs from the `HEAD` commit, with files that git does not track
/// but without ignored ones. Without a commit, these are all files.
///
/// # Errors
/// The error message of git, such as without a repository.
pub async fn changed_files(launcher: &Launcher, root: &Path) -> Result<BTreeSet<String>, String> {
    let head = commit_or_empty_tree(launcher, root, HEAD).await?;
    let settings = without_filters(launcher, root).await?;
    let mut files: BTreeSet<String> = untracked_files(launcher, root).await?.into_iter().collect();
    for cached in [&[][..], &["--cached"]] {
        let words = [&SAFE_DIFF[..], cached, &["--name-only", "-z", &head, "--", "."]].concat();
        files.extend(listed_paths(&git(launcher, root, &words, Vec::new(), &settings).await?)?);
    }
    Ok(files)
}

/// Returns those of `files` (paths from `root`) that have a filter, whose program is not run.
///
/// # Errors
/// The error message of git.
pub async fn filtered_files(
    launcher: &Launcher,
    root: &Path,
    files: &BTreeSet<String>,
) -> Result<BTreeSet<String>, String> {
    let paths: String = files.iter().flat_map(|path| [path.as_str(), "\0"]).collect();
    let found = whole_output(launcher, root, &FIND_FILTERS, paths.into_bytes(), &[]).await?;
    Ok(filtered_paths(&String::from_utf8_lossy(&found)).into_iter().collect())
}

/// Moves the current branch to `commit`, and the index at `files` (paths from `root`) to their current content.
///
/// # Errors
/// The error message of git, such as when the branch is not at the parent of the commit any more.
pub async fn advance_branch(
    launcher: &Launcher,
    root: &Path,
    commit: &FileCommit,
    files: &[String],
) -> Result<(), String> {
    let parent = commit.parent.as_deref().unwrap_or_default();
    let words = ["update-ref", "-m", "agent pipeline", "HEAD", &commit.id, parent];
    stdout_text(&git(launcher, root, &words, Vec::new(), &[]).await?)?;
    let settings = without_filters(launcher, root).await?;
    let paths: String = files.iter().flat_map(|path| [path.as_str(), "\0"]).collect();
    let words = ["update-index", "--add", "--remove", "-z", "--stdin"];
    stdout_text(&git(launcher, root, &words, paths.into_bytes(), &settings).await?)?;
    Ok(())
}
