//! The command of a step that a kill interrupted: its changes to files are undone before it runs again.
//!
//! Files that were changed before the command or after the kill are left as they are: a file is touched each second while the command
//! runs, and the launcher ends a command within a second of the death of this process.

use crate::pipeline_command::steps::{BegunStep, Steps};
use crate::work::record::work_store;
use agent_core::failure::FailureKind;
use agent_core::file_change::{Change, FileState};
use agent_messages as messages;
use agent_run::error::{AppError, AppResult};
use agent_run::undo_store::content_store;
use agent_runtime::private_file;
use agent_terminal::{Style, sanitize};
use agent_workspace::Workspace;
use agent_workspace::baseline::Baseline;
use agent_workspace::content_store::{ContentStore, MAX_FILE_BYTES};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

/// Time between two touches of the file that tells when the command last ran.
const TOUCH_INTERVAL: Duration = Duration::from_secs(1);

/// Seconds after the last touch in which the command may have changed a file.
const MAX_SECONDS_AFTER_TOUCH: i64 = 2;

/// The file states before the command of a step. They are on disk until its result is recorded: those that a step finds when it
/// starts are of an interrupted command.
pub(super) struct StatesBefore {
    workspace: Workspace,
    contents: ContentStore,
    /// The states, written just before the command starts.
    path: PathBuf,
    /// A file that is touched while the command runs.
    running: PathBuf,
    /// Directory for copies of the files that the undo replaces.
    replaced: PathBuf,
}

/// The times between which an interrupted command may have changed files, in seconds and nanoseconds since the epoch.
type RunTimes = RangeInclusive<(i64, i64)>;

/// What the undo of an interrupted command did.
#[derive(Default)]
struct Undone {
    restored: Vec<String>,
    left: Vec<String>,
}

impl Steps<'_> {
    /// Undoes what an interrupted command of the step has changed, and stores the file states before the next one. `None` for a
    /// step within `parallel`, whose changes cannot be told from those of the others.
    ///
    /// # Errors
    /// Fails when the states cannot be written.
    pub(super) async fn states_before(&self, begun: &BegunStep<'_>) -> AppResult<Option<StatesBefore>> {
        if begun.interrupt.is_some() {
            return Ok(None);
        }
        let settings = &self.setup.settings;
        let dir = work_store(settings).session_dir(&begun.record().id)?;
        let contents = content_store(self.app, settings);
        self.workspace.set_content_store(contents.clone());
        let states = StatesBefore {
            workspace: self.workspace.clone(),
            contents,
            path: dir.join(format!("before-{}", begun.index + 1)),
            running: dir.join(format!("running-{}", begun.index + 1)),
            replaced: dir.join(format!("replaced-{}", self.app.source.short_id())),
        };
        let work = move || (states.undo(), states.write(), states);
        let (undone, written, states) = tokio::task::spawn_blocking(work)
            .await
            .map_err(io::Error::from)
            .map_err(|error| unwritable(&error))?;
        written.map_err(|error| unwritable(&error))?;
        if let Some(Undone { restored, left }) = undone {
            let language = settings.language;
            let replaced = states.replaced.display().to_string();
            let restored =
                (!restored.is_empty()).then(|| messages::command_undone(&restored, &replaced, language));
            let left = (!left.is_empty()).then(|| messages::command_not_undone(&left, language));
            for text in restored.into_iter().chain(left) {
                self.app.notify(Style::Warning, &self.app.redact(&sanitize(&text)));
            }
        }
        Ok(Some(states))
    }
}

impl StatesBefore {
    /// Waits for the command, and touches the file that tells when it ran.
    pub(super) async fn while_running<T>(&self, command: impl Future<Output = T>) -> T {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let now = Timestamps { last_access: now, last_modification: now };
        let mut touches = tokio::time::interval(TOUCH_INTERVAL);
        let mut command = pin!(command);
        loop {
            tokio::select! {
                ended = &mut command => return ended,
                // If it fails, fewer changes are undone after a kill.
                _ = touches.tick() => drop(rustix::fs::utimensat(CWD, &self.running, &now, AtFlags::empty())),
            }
        }
    }

    /// Removes the states from the disk: the command has ended.
    pub(super) fn remove(&self) {
        // If it stays, the next command of the step undoes one that failed.
        let _ = rustix::fs::unlink(&self.path);
        let _ = rustix::fs::unlink(&self.running);
    }

    /// Stores the states. If the files are too many, an empty file tells that a command has started.
    fn write(&self) -> io::Result<()> {
        self.remove();
        private_file::create_new(&self.path, true)?;
        Baseline::new(self.workspace.clone(), Some(self.path.clone())).before_command();
        private_file::create_new(&self.running, true).map(drop)
    }

    /// Restores the files that an interrupted command has changed; `None` if there is none.
    fn undo(&self) -> Option<Undone> {
        let (began, last) =
            (private_file::open(&self.path).ok()?.1, private_file::open(&self.running).ok()?.1);
        let times = (began.mtime(), began.mtime_nsec())
            ..=(last.mtime().saturating_add(MAX_SECONDS_AFTER_TOUCH), last.mtime_nsec());
        let mut undone = Undone::default();
        let found = Baseline::load(self.workspace.clone(), &self.path).and_then(|mut it| it.after_command());
        let Some(changes) = found else {
            undone.left.push(messages::UNKNOWN_FILES.to_owned());
            return Some(undone);
        };
        for change in &changes.listed {
            match self.restore(change, &times) {
                Ok(true) => undone.restored.push(change.path.clone()),
                Ok(false) | Err(_) => undone.left.push(change.path.clone()),
            }
        }
        if changes.left_out > 0 {
            undone.left.push(messages::UNKNOWN_FILES.to_owned());
        }
        (!(undone.restored.is_empty() && undone.left.is_empty())).then_some(undone)
    }

    /// Restores a file after a copy of it was made; returns `false` if its earlier content is not stored, or it was changed outside of
    /// `times`. A file that was there before the command may be new to the states, such as one that is no longer ignored.
    fn restore(&self, change: &Change, times: &RunTimes) -> anyhow::Result<bool> {
        let path = self.workspace.path(&change.path)?;
        let (now, wanted) = (self.workspace.state_of(&path)?, change.before_state());
        let is_of_command = self.changed_at(&change.path).is_some_and(|time| times.contains(&time));
        if wanted == FileState::Unknown || !is_of_command {
            return Ok(false);
        }
        if now != FileState::Absent {
            let content = self.workspace.content_of(&path, MAX_FILE_BYTES)?;
            private_file::create_new(&self.replaced.join(&change.path), true)?.write_all(&content)?;
        }
        let is_restored = self.workspace.restore_stored(&path, &now, &wanted, &self.contents)?.is_some();
        self.workspace.remove_directories([(path, change.directories)]);
        Ok(is_restored)
    }

    /// Returns when a file, or the nearest directory of one that is gone, last changed.
    fn changed_at(&self, path: &str) -> Option<(i64, i64)> {
        let path = self.workspace.root().join(path);
        let mut found = path.ancestors().filter_map(|path| path.symlink_metadata().ok());
        found.next().map(|found| (found.ctime(), found.ctime_nsec()))
    }
}

fn unwritable(error: &io::Error) -> AppError {
    AppError::new(FailureKind::Request, format!("cannot store the files before the command: {error}"))
}
