//! Sandbox of one run, configured at the start and prepared for the first command.

use super::policy::CacheVariable;
use super::settings::{SandboxSettings, WorkspaceAccess};
use super::{SHARED_TEMP_DIRS, SandboxPolicy, policy, repositories};
use crate::protected::ProtectionTracker;
use crate::scratch_dir::ScratchDir;
use crate::tier::Tier;
use agent_runtime::private_file::create_private_dir;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum files of a sensitive directory that are hidden one by one. To git, the files of a hidden directory are deleted, while it
/// refuses to add a hidden file.
const MAX_HIDDEN_FILES: usize = 100;

/// Confinement of one run.
#[derive(Debug)]
pub struct Confinement {
    settings: SandboxSettings,
    sandbox: OnceLock<PreparedSandbox>,
}

impl Confinement {
    /// Creates a confinement from `settings`.
    pub fn new(settings: SandboxSettings) -> Self {
        Self { settings, sandbox: OnceLock::new() }
    }

    /// Checks whether commands share the host's network.
    pub fn has_network(&self) -> bool {
        self.settings.network
    }

    /// Checks whether commands can change the workspace.
    pub fn writes_workspace(&self) -> bool {
        self.settings.access == WorkspaceAccess::Write
    }

    /// Checks whether `directory` belonged to a repository before the first command, even if it changed since.
    pub fn was_repository(&self, directory: &Path) -> bool {
        let protection = self.sandbox.get().and_then(|sandbox| sandbox.protection.get());
        protection.is_some_and(|protection| repositories::is_protected(protection.policy(), directory))
    }

    /// Returns the prepared sandbox. The first call creates its directories.
    ///
    /// # Errors
    /// Fails if they cannot be created.
    pub fn sandbox(&self) -> io::Result<&PreparedSandbox> {
        match self.sandbox.get() {
            Some(sandbox) => Ok(sandbox),
            None => {
                PreparedSandbox::prepare(&self.settings).map(|sandbox| self.sandbox.get_or_init(|| sandbox))
            }
        }
    }
}

/// Prepared sandbox of a run, with its directories.
#[derive(Debug)]
pub struct PreparedSandbox {
    /// Policy without the repositories found in the workspace.
    base_policy: SandboxPolicy,
    protection: OnceLock<ProtectionTracker>,
    cache_variables: Vec<CacheVariable>,
    workspace: PathBuf,
    /// Paths of sensitive files, existing or not.
    sensitive: Vec<PathBuf>,
    scratch: ScratchDir,
    quarantine: PathBuf,
    commands: AtomicU64,
}

impl PreparedSandbox {
    fn prepare(settings: &SandboxSettings) -> io::Result<Self> {
        let cannot = |path: &Path, error: &io::Error| {
            io::Error::new(error.kind(), format!("cannot make {}: {error}", path.display()))
        };
        let scratch =
            ScratchDir::new(&settings.temporary).map_err(|error| cannot(&settings.temporary, &error))?;
        create_private_dir(&settings.caches).map_err(|error| cannot(&settings.caches, &error))?;
        let run = scratch.path().file_name().unwrap_or_default();
        Ok(Self {
            base_policy: policy::sandbox_policy(settings, scratch.path()),
            protection: OnceLock::new(),
            cache_variables: policy::cache_variables(settings),
            workspace: settings.workspace.clone(),
            sensitive: policy::literal_paths(&settings.sensitive, settings),
            quarantine: settings.quarantine.join(run),
            scratch,
            commands: AtomicU64::new(0),
        })
    }

    /// Returns the tracker of protected files. The first call searches for repositories (takes at most some ten milliseconds).
    pub(crate) fn protection(&self) -> &ProtectionTracker {
        self.protection.get_or_init(|| ProtectionTracker::new(self.base_policy.clone()))
    }

    /// Hides the sensitive files that exist, by their resolved paths in the workspace.
    pub(crate) fn hide_sensitive(&self, policy: &mut SandboxPolicy) {
        let real = policy::existing_real_paths(self.sensitive.iter().cloned()).into_iter();
        let hidden = real.filter(|path| path.starts_with(&self.workspace) && *path != self.workspace);
        let hidden: Vec<PathBuf> =
            hidden.flat_map(|path| files_below(&path).unwrap_or_else(|| vec![path])).collect();
        policy.read_only.retain(|path| !hidden.iter().any(|hidden| path.starts_with(hidden)));
        policy.hidden.extend(hidden);
    }

    /// Returns the first writable directory with a hidden path below it.
    pub(crate) fn first_root_with_hidden(&self) -> Option<&Path> {
        let is_around =
            |root: &&PathBuf| self.base_policy.hidden.iter().any(|hidden| hidden.starts_with(root));
        self.base_policy.writable.iter().find(is_around).map(PathBuf::as_path)
    }

    /// Returns the temporary directory of the run.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Returns a new path for what one command creates in place of protected files. It does not exist yet.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.quarantine.join(self.commands.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// Points programs to writable directories through variables that the user has not set for commands.
    pub(crate) fn set_environment(&self, env: &mut BTreeMap<String, String>, tier: Tier) {
        for variable in &self.cache_variables {
            let set = env.get(variable.name);
            if set.is_none() || set == variable.replaces.as_ref() {
                env.insert(variable.name.to_owned(), variable.value.clone());
            }
        }
        let [shared, _] = SHARED_TEMP_DIRS.map(Path::new);
        let is_there = tier.has_own_view() && self.base_policy.is_private(shared);
        let temp_dir = if is_there { shared } else { &self.base_policy.temporary }.display().to_string();
        env.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.to_owned(), temp_dir.clone())));
    }
}

/// Returns the files below a directory; `None` if it is a file, cannot be read or has too many.
fn files_below(directory: &Path) -> Option<Vec<PathBuf>> {
    let (mut files, mut directories) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir().ok()? {
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
            if files.len() + directories.len() > MAX_HIDDEN_FILES {
                return None;
            }
        }
    }
    Some(files)
}
