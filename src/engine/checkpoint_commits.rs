//! Makes checkpoints: git commits of the files that the session has changed, under separate references.
//!
//! Branches, index and working tree are unchanged. Each checkpoint is a commit on top of the current `HEAD` with the current
//! content of every file that the session has changed, including untracked and ignored ones, made by `git fast-import`.

use crate::core::event::Event;
use crate::core::file_change::FileState;
use crate::engine::Engine;
use crate::engine::checkpoints::Checkpoints;
use crate::engine::git::{error_text, git};
use crate::journal::checkpoint_refs::ref_name;
use crate::messages;
use crate::process::launch::{CommandOutcome, ExitReason};
use crate::runtime::emitter::EmitError;
use crate::workspace::content_store::MAX_FILE_BYTES;

/// Maximum bytes of files in one checkpoint; files beyond it are omitted.
const MAX_BYTES: u64 = 64 << 20;

/// Committer of checkpoints.
const COMMITTER: &str = "agent <agent@localhost>";

/// Base of a checkpoint.
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

impl Engine {
    /// Makes a checkpoint after `step` of this run, if one is due.
    ///
    /// # Errors
    /// When the journal can no longer be written. A failure of git emits one warning and disables checkpoints.
    pub async fn checkpoint(&self, step: u32) -> Result<(), EmitError> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        if checkpoints.finish_step(step) { self.make_checkpoint(checkpoints).await } else { Ok(()) }
    }

    /// Makes a checkpoint of the changes since the last one at the end of the run.
    ///
    /// # Errors
    /// As [`checkpoint`](Self::checkpoint).
    pub async fn last_checkpoint(&self) -> Result<(), EmitError> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        self.make_checkpoint(checkpoints).await
    }

    async fn make_checkpoint(&self, checkpoints: &Checkpoints) -> Result<(), EmitError> {
        let Some(step) = checkpoints.take_due_step() else { return Ok(()) };
        match self.commit(checkpoints, step).await {
            Ok(event) => self.emitter.emit(event).map(drop),
            Err(reason) => {
                checkpoints.disable();
                self.warn(messages::no_checkpoints(&reason))
            }
        }
    }

    async fn commit(&self, checkpoints: &Checkpoints, step: u32) -> Result<Event, String> {
        let base = self.base().await?;
        let reference = ref_name(checkpoints.session(), step);
        let (stream, omitted_files) = self.stream(checkpoints, step, &reference, &base);
        let exit = self.git(&["fast-import", "--quiet", "--force"], stream).await?;
        let commit = String::from_utf8_lossy(&exit.stdout.head).trim().to_owned();
        if exit.reason != ExitReason::Code(0) || commit.is_empty() {
            return Err(error_text(&exit));
        }
        Ok(Event::Checkpoint { step, reference, commit, omitted_files })
    }

    /// Returns the workspace's path in the repository and the `HEAD` commit.
    async fn base(&self) -> Result<Base, String> {
        let words = ["rev-parse", "--show-prefix", "--quiet", "--verify", "HEAD^{commit}"];
        let exit = self.git(&words, Vec::new()).await?;
        let text = String::from_utf8_lossy(&exit.stdout.head).into_owned();
        let mut lines = text.lines();
        // Without a commit, git prints only the prefix.
        let Some(prefix) = lines.next() else { return Err(error_text(&exit)) };
        Ok(Base { prefix: prefix.to_owned(), head: lines.next().map(str::to_owned) })
    }

    async fn git(&self, words: &[&str], stdin: Vec<u8>) -> Result<CommandOutcome, String> {
        git(&self.launcher, self.workspace.root(), words, stdin, &[]).await
    }

    /// Builds the input of `git fast-import`, and lists the files that the commit omits.
    fn stream(
        &self,
        checkpoints: &Checkpoints,
        step: u32,
        reference: &str,
        base: &Base,
    ) -> (Vec<u8>, Vec<String>) {
        let message = format!("agent checkpoint: session {}, step {step}\n", checkpoints.session());
        let seconds = self.source.unix_time().as_secs();
        let mut stream = format!(
            "feature done\ncommit {reference}\nmark :1\ncommitter {COMMITTER} {seconds} +0000\ndata {}\n{message}",
            message.len()
        )
        .into_bytes();
        if let Some(head) = &base.head {
            stream.extend(format!("from {head}\n").bytes());
        }
        let (mut omitted_files, mut left) = (Vec::new(), MAX_BYTES);
        for path in checkpoints.files() {
            let name = quoted(&format!("{}{path}", base.prefix));
            match self.commit_entry(&path, left) {
                Some(CommitEntry::Nothing) => stream.extend(format!("D {name}\n").bytes()),
                Some(CommitEntry::File(mode, bytes)) => {
                    left = left.saturating_sub(bytes.len() as u64);
                    stream.extend(format!("M {mode} inline {name}\ndata {}\n", bytes.len()).bytes());
                    stream.extend(bytes);
                    stream.push(b'\n');
                }
                None => omitted_files.push(path),
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
        if self.emitter.redactor().contains_known(&bytes) {
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

/// Quotes a path for `git fast-import`.
fn quoted(path: &str) -> String {
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
