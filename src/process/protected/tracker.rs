//! Tracks the protection of a workspace during a run, and whether its protected files are still intact.

use super::ProtectedChange;
#[cfg(target_os = "linux")]
use super::{
    new_repositories, restore,
    workspace_scan::{ScanResult, WorkspaceScan},
};
use crate::sandbox::SandboxPolicy;
#[cfg(target_os = "linux")]
use crate::sandbox::repositories;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Maximum number of configurations below the root to compare for each command.
#[cfg(target_os = "linux")]
const MAX_CONFIGURATIONS: usize = 64;

/// Findings in the workspace before the first command, and its state since.
#[derive(Debug)]
pub struct ProtectionTracker {
    policy: SandboxPolicy,
    #[cfg(target_os = "linux")]
    scan: Option<Mutex<WorkspaceScan>>,
    altered: OnceLock<String>,
    running: Arc<Mutex<CommandCount>>,
}

/// Marks a command as running until dropped.
#[derive(Debug)]
pub struct ActiveCommand(Arc<Mutex<CommandCount>>);

/// Returns `policy` with the findings protected.
#[cfg(target_os = "linux")]
fn with_found(policy: SandboxPolicy, found: ScanResult) -> SandboxPolicy {
    let mut policy = repositories::with_protected(policy, &found.repositories);
    policy.compared = of_ours(found.configurations, &policy);
    policy.compared.truncate(MAX_CONFIGURATIONS);
    policy
}

/// Returns the `paths` that are not otherwise protected or hidden.
#[cfg(target_os = "linux")]
fn of_ours(paths: impl IntoIterator<Item = PathBuf>, policy: &SandboxPolicy) -> Vec<PathBuf> {
    let otherwise =
        |path: &PathBuf| policy.read_only.iter().chain(&policy.hidden).any(|above| path.starts_with(above));
    paths.into_iter().filter(|path| !otherwise(path)).collect()
}

/// Counter of running commands.
#[derive(Debug, Default)]
struct CommandCount {
    count: usize,
    /// Whether two commands have run concurrently since the last time that none ran.
    several: bool,
}

impl Drop for ActiveCommand {
    fn drop(&mut self) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.count = running.count.saturating_sub(1);
    }
}

impl ProtectionTracker {
    /// Searches for the repositories and configurations of the workspace (takes at most some ten milliseconds).
    pub fn new(policy: SandboxPolicy) -> Self {
        #[cfg(target_os = "linux")]
        let (scan, found) =
            policy.writable.first().and_then(|workspace| WorkspaceScan::start(workspace).ok()).unzip();
        #[cfg(target_os = "linux")]
        let policy = with_found(policy, found.unwrap_or_default());
        Self {
            policy,
            #[cfg(target_os = "linux")]
            scan: scan.map(Mutex::new),
            altered: OnceLock::new(),
            running: Arc::default(),
        }
    }

    /// Returns the policy for commands, with the repositories of the workspace protected.
    pub fn policy(&self) -> &SandboxPolicy {
        &self.policy
    }

    /// Returns why no more commands may run: their snapshot would treat unrestored changes as the original state.
    pub fn block_reason(&self) -> Option<&str> {
        self.altered.get().map(String::as_str)
    }

    /// Starts a command with `start`, whose argument is true if no other command runs. Only then is the current state the one
    /// to restore, because concurrent commands may be changing it.
    ///
    /// # Errors
    /// Returns the error of `start`.
    pub fn start_command<T>(
        &self,
        start: impl FnOnce(bool) -> io::Result<T>,
    ) -> io::Result<(T, ActiveCommand)> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(target_os = "linux")]
        if running.count == 0
            && let Some(scan) = &self.scan
        {
            scan.lock().unwrap_or_else(PoisonError::into_inner).accept_configurations();
        }
        let started = start(running.count == 0)?;
        running.several = running.count > 0;
        running.count += 1;
        Ok((started, ActiveCommand(Arc::clone(&self.running))))
    }

    /// Checks the state after the command `active`. `reported` contains the changes that its guard found, or is `None` if the
    /// guard was killed. New items that are not allowed move to `quarantine`.
    pub fn finish_command(
        &self,
        active: ActiveCommand,
        reported: Option<Vec<ProtectedChange>>,
        quarantine: &Path,
    ) -> Vec<ProtectedChange> {
        drop(active);
        let shared = self.running.lock().unwrap_or_else(PoisonError::into_inner).several;
        let mut all = reported.unwrap_or_else(|| vec![ProtectedChange::unknown()]);
        all.extend(self.quarantine_new(quarantine));
        for one in &mut all {
            one.ran_concurrently = shared;
        }
        if let Some((one, why)) = all.iter().find_map(|one| Some((one, one.restore_error.as_ref()?))) {
            let _the_first_counts = self.altered.set(format!(
                "this run starts no more commands: an earlier one changed {:?}, which could not be put back ({why}). The user \
                 must check it and start a new run",
                one.path
            ));
        }
        all
    }

    #[cfg(target_os = "linux")]
    fn quarantine_new(&self, quarantine: &Path) -> Vec<ProtectedChange> {
        let Some(scan) = &self.scan else { return Vec::new() };
        let mut scan = scan.lock().unwrap_or_else(PoisonError::into_inner);
        let policy = &self.policy;
        scan.judge_new(|repositories, configurations| {
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
