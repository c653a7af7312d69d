//! Checkpoints: what the session has made of files, every few steps a commit under a reference of its own. Neither branch nor
//! index nor working tree is touched.
//!
//! Each is a commit on top of what `HEAD` was at that moment, with every file as it is that the session has changed,
//! untracked and ignored ones too. `git fast-import` makes it in one go.

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

/// Bytes of files in one checkpoint; what is beyond is left out.
const MAX_BYTES: u64 = 64 << 20;

/// Whose commits they are.
const COMMITTER: &str = "agent <agent@localhost>";

/// What a checkpoint begins from.
struct Base {
    /// The root of the workspace in the repository: empty, or with a `/` at its end.
    prefix: String,
    /// The commit; nothing where there is none yet.
    head: Option<String>,
}

/// What a commit holds at a path.
enum CommitEntry {
    /// Nothing any more.
    Nothing,
    /// A file or a link: its mode as git writes it, and its content.
    File(&'static str, Vec<u8>),
}

impl Engine {
    /// Makes a checkpoint after `step` of this run, if it is time for one.
    ///
    /// # Errors
    /// When the journal can no longer be written; what git cannot do is said once.
    pub async fn checkpoint(&self, step: u32) -> Result<(), EmitError> {
        let Some(checkpoints) = &self.checkpoints else { return Ok(()) };
        if checkpoints.finish_step(step) { self.make_checkpoint(checkpoints).await } else { Ok(()) }
    }

    /// Makes a checkpoint of what came after the last one, because the run ends.
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
        let (stream, left_out) = self.stream(checkpoints, step, &reference, &base);
        let exit = self.git(&["fast-import", "--quiet", "--force"], stream).await?;
        let commit = String::from_utf8_lossy(&exit.stdout.head).trim().to_owned();
        if exit.reason != ExitReason::Code(0) || commit.is_empty() {
            return Err(error_text(&exit));
        }
        Ok(Event::Checkpoint { step, reference, commit, left_out })
    }

    /// Where the repository is, seen from the workspace, and what is checked out.
    async fn base(&self) -> Result<Base, String> {
        let words = ["rev-parse", "--show-prefix", "--quiet", "--verify", "HEAD^{commit}"];
        let exit = self.git(&words, Vec::new()).await?;
        let text = String::from_utf8_lossy(&exit.stdout.head).into_owned();
        let mut lines = text.lines();
        // Without a commit it says no more than the prefix.
        let Some(prefix) = lines.next() else { return Err(error_text(&exit)) };
        Ok(Base { prefix: prefix.to_owned(), head: lines.next().map(str::to_owned) })
    }

    async fn git(&self, words: &[&str], stdin: Vec<u8>) -> Result<CommandOutcome, String> {
        git(&self.launcher, self.workspace.root(), words, stdin).await
    }

    /// The commit in the words of `git fast-import`, and the files that are not in it.
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
        let (mut left_out, mut left) = (Vec::new(), MAX_BYTES);
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
                None => left_out.push(path),
            }
        }
        stream.extend(b"\nget-mark :1\ndone\n");
        (stream, left_out)
    }

    /// What a commit is to hold at a path. Nothing where that is not its business: a file that is sensitive or has a secret in
    /// it, is too large, or belongs to a repository below the root.
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

/// A path as `git fast-import` reads it.
fn quoted(path: &str) -> String {
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}
