//! Runs programs and lists the files that they change; the contents before are stored first.

use crate::Engine;
use crate::call_plan::PlannedCall;
use crate::hook_dispatch::append_paragraph;
use agent_core::event::{Event, NoticeLevel};
use agent_core::run_result::Executables;
use agent_messages as messages;
use agent_process::barrier::{Barrier, BarrierRelease};
use agent_process::launch::{Launcher, Tier};
use agent_runtime::emitter::EmitError;
use agent_runtime::private_file::synced;
use agent_tools::{Access, ChangeAnnouncer, Tool, ToolContext, ToolOutput};
use agent_workspace::baseline::Baseline;
use agent_workspace::content_store::MAX_FILE_BYTES;
use agent_workspace::executables;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

impl Engine {
    /// Runs a program after the journal is synced and the files are scanned, and adds the files that it changed to the result.
    /// Emits a warning if the changes cannot be listed; if that holds for the rest of the run, only once.
    pub(super) async fn run_and_list_changes(
        &self,
        program: &PlannedCall<'_>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, EmitError> {
        let (release, barrier) = Barrier::new();
        let launcher = Launcher::clone(&self.launcher).with_barrier(barrier).into();
        let own = ToolContext { launcher, ..self.context(&cx.call_id, &cx.cancel) };
        let refusals = self.launcher.refusals_of_call();
        let (compared, mut output) =
            tokio::join!(self.prepare_start(release, &cx.announce), self.call_with_time_limit(program, &own));
        let compared = compared?;
        let refusals = refusals.map(|list| list.take()).unwrap_or_default();
        if let Some(text) = self.report_refusals(&refusals)? {
            append_paragraph(&mut output.text, &format!("[{text}]"));
        }
        let changes =
            if compared { self.with_baseline(Baseline::after_command).await.flatten() } else { None };
        let Some(changes) = changes else {
            self.warn_changes_unlisted().await?;
            output.is_unlisted = true;
            return Ok(output);
        };
        output.changed.extend(changes.listed);
        output.is_unlisted = changes.left_out > 0;
        if changes.left_out > 0 {
            self.warn(messages::changes_left_out(changes.left_out))?;
        }
        if !changes.not_stored.is_empty() {
            let paths: Vec<&str> = changes.not_stored.iter().map(String::as_str).collect();
            self.warn(messages::commands_not_undone(&paths, MAX_FILE_BYTES >> 20))?;
        }
        Ok(output)
    }

    /// Syncs the journal, scans the files and then releases the program. Returns whether the scan succeeded.
    async fn prepare_start(
        &self,
        release: BarrierRelease,
        announce: &ChangeAnnouncer,
    ) -> Result<bool, EmitError> {
        let file_to_sync = self.emitter.file_to_sync()?;
        let work = move |baseline: &mut Baseline| {
            let synced = file_to_sync.map_or(Ok(()), |file| synced(file.sync_data()));
            (synced, baseline.before_command())
        };
        let compared = match self.with_baseline(work).await {
            Some((synced, compared)) => synced.map(|()| compared)?,
            None => self.emitter.sync().map(|()| false)?,
        };
        if compared {
            announce(Vec::new())?;
        }
        release.release();
        Ok(compared)
    }

    /// Finds the executables that changed since `began` (wall clock). The metadata of the scan after the last command serve again
    /// if nothing can have changed files since.
    pub fn executables_changed_since(&self, began: Duration) -> Executables {
        let is_of_server = |name: &str| {
            let access = self.toolbox.get(name).map(Tool::access);
            matches!(access, Ok(Access::Mcp | Access::McpWrite { .. }))
        };
        let runs_only_commands = self.hooks.are_none()
            && self.gates.is_empty()
            && self.background.list().is_empty()
            && self.launcher.tier() != Tier::Group
            && !self.toolbox.names().any(is_of_server);
        let baseline = self.baseline.lock().unwrap_or_else(PoisonError::into_inner);
        let known = baseline.current_scan().filter(|_| runs_only_commands);
        executables::executables_changed_since(self.workspace.root(), began, known)
    }

    /// Notes that files may have changed since the last scan.
    pub async fn set_scan_outdated(&self) {
        self.with_baseline(Baseline::set_outdated).await;
    }

    /// Emits a warning about hosts that the proxy has refused to commands in the background.
    pub(super) fn report_refused_hosts(&self) -> Result<(), EmitError> {
        self.report_refusals(&self.launcher.take_refusals()).map(drop)
    }

    /// Emits a warning about hosts that the proxy has refused, and returns its text.
    fn report_refusals(&self, reasons: &[String]) -> Result<Option<String>, EmitError> {
        if reasons.is_empty() {
            return Ok(None);
        }
        let text = messages::hosts_refused(reasons);
        self.warn(text.clone()).map(|()| Some(text))
    }

    async fn warn_changes_unlisted(&self) -> Result<(), EmitError> {
        if self.with_baseline(|baseline| baseline.has_given_up()).await != Some(true) {
            self.warn(messages::CHANGES_NOT_LISTED.to_owned())
        } else if !self.has_warned_unlisted.replace(true) {
            self.warn(messages::CHANGES_NEVER_LISTED.to_owned())
        } else {
            Ok(())
        }
    }

    /// Runs `work` with the baseline on a blocking thread; returns `None` when it panicked.
    async fn with_baseline<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Baseline) -> T + Send + 'static,
    ) -> Option<T> {
        let baseline = Arc::clone(&self.baseline);
        let locked_work = move || work(&mut baseline.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(locked_work).await.ok()
    }

    pub(super) fn warn(&self, text: String) -> Result<(), EmitError> {
        self.emitter.emit(Event::Notice { level: NoticeLevel::Warn, text }).map(drop)
    }
}
