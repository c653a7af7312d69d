//! What is held of a workspace during a run, and whether it still is as it was.

use super::ProtectedChange;
#[cfg(target_os = "linux")]
use super::{
    new_repositories, restore,
    workspace_scan::{ScanResult, WorkspaceScan},
};
use crate::process::sandbox::SandboxPolicy;
#[cfg(target_os = "linux")]
use crate::process::sandbox::repositories;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The configurations below the root that are compared for each command.
#[cfg(target_os = "linux")]
const MAX_CONFIGURATIONS: usize = 64;

/// What was found in the workspace before the first command, and what has become of it.
#[derive(Debug)]
pub struct ProtectionTracker {
    policy: SandboxPolicy,
    #[cfg(target_os = "linux")]
    survey: Option<Mutex<WorkspaceScan>>,
    altered: OnceLock<String>,
    running: Arc<Mutex<CommandCount>>,
}

/// A command that runs, until this is dropped.
#[derive(Debug)]
pub struct ActiveCommand(Arc<Mutex<CommandCount>>);

/// `policy` with what was found in the workspace kept as it is.
#[cfg(target_os = "linux")]
fn with_found(policy: SandboxPolicy, found: ScanResult) -> SandboxPolicy {
    let mut policy = repositories::with_protected(policy, &found.repositories);
    policy.compared = of_ours(found.configurations, &policy);
    policy.compared.truncate(MAX_CONFIGURATIONS);
    policy
}

/// Those of `paths` that are not protected or hidden in another way.
#[cfg(target_os = "linux")]
fn of_ours(paths: impl IntoIterator<Item = PathBuf>, policy: &SandboxPolicy) -> Vec<PathBuf> {
    let otherwise =
        |path: &PathBuf| policy.read_only.iter().chain(&policy.hidden).any(|above| path.starts_with(above));
    paths.into_iter().filter(|path| !otherwise(path)).collect()
}

/// The commands that run.
#[derive(Debug, Default)]
struct CommandCount {
    count: usize,
    /// Whether there have been two at once since there was none.
    several: bool,
}

impl Drop for ActiveCommand {
    fn drop(&mut self) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.count = running.count.saturating_sub(1);
    }
}

impl ProtectionTracker {
    /// Looks for the repositories and configurations of the workspace (at most some ten milliseconds).
    pub fn new(policy: SandboxPolicy) -> Self {
        #[cfg(target_os = "linux")]
        let (survey, found) =
            policy.writable.first().and_then(|workspace| WorkspaceScan::start(workspace).ok()).unzip();
        #[cfg(target_os = "linux")]
        let policy = with_found(policy, found.unwrap_or_default());
        Self {
            policy,
            #[cfg(target_os = "linux")]
            survey: survey.map(Mutex::new),
            altered: OnceLock::new(),
            running: Arc::default(),
        }
    }

    /// What commands may reach, with the repositories of the workspace protected.
    pub fn policy(&self) -> &SandboxPolicy {
        &self.policy
    }

    /// Why no more commands may run: what they would find changed is taken for what was there before.
    pub fn block_reason(&self) -> Option<&str> {
        self.altered.get().map(String::as_str)
    }

    /// Has a command begun by `start`, which is told whether no other one runs: only then is what is there now what is put
    /// back. What others are doing meanwhile must not be taken for it.
    ///
    /// # Errors
    /// Those of `start`.
    pub fn start_command<T>(
        &self,
        start: impl FnOnce(bool) -> io::Result<T>,
    ) -> io::Result<(T, ActiveCommand)> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(target_os = "linux")]
        if running.count == 0
            && let Some(survey) = &self.survey
        {
            survey.lock().unwrap_or_else(PoisonError::into_inner).accept_configurations();
        }
        let begun = start(running.count == 0)?;
        running.several = running.count > 0;
        running.count += 1;
        Ok((begun, ActiveCommand(Arc::clone(&self.running))))
    }

    /// Looks at what the command `begun` has left, of which its guard has reported the changes that it found, or was killed before it
    /// could. What the command has newly made moves to `quarantine`.
    pub fn finish_command(
        &self,
        begun: ActiveCommand,
        reported: Option<Vec<ProtectedChange>>,
        quarantine: &Path,
    ) -> Vec<ProtectedChange> {
        drop(begun);
        let shared = self.running.lock().unwrap_or_else(PoisonError::into_inner).several;
        let mut all = reported.unwrap_or_else(|| vec![ProtectedChange::unknown()]);
        all.extend(self.quarantine_new(quarantine));
        for one in &mut all {
            one.ran_concurrently = shared;
        }
        if let Some((one, why)) = all.iter().find_map(|one| Some((one, one.restore_error.as_ref()?))) {
            let _the_first_counts = self.altered.set(format!(
                "no more commands run here until a person has looked at {:?}, which an earlier one has changed and which could \
                 not be put back ({why}); then a new run may begin",
                one.path
            ));
        }
        all
    }

    #[cfg(target_os = "linux")]
    fn quarantine_new(&self, quarantine: &Path) -> Vec<ProtectedChange> {
        let Some(survey) = &self.survey else { return Vec::new() };
        let mut survey = survey.lock().unwrap_or_else(PoisonError::into_inner);
        let policy = &self.policy;
        survey.judge_new(|repositories, configurations| {
            let mut moved = new_repositories::quarantine_unsafe(repositories, &policy.read_only, quarantine);
            moved.extend(restore::quarantine_paths(
                &of_ours(configurations.iter().cloned(), policy),
                quarantine,
            ));
            moved
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn quarantine_new(&self, _quarantine: &Path) -> Vec<ProtectedChange> {
        Vec::new()
    }
}
