//! The sandbox of one run: what they are to hold is known from the start, they are built for the first command.

use super::policy::CacheVariable;
use super::settings::SandboxSettings;
use super::{SHARED_TEMP_DIRS, SandboxPolicy, policy, repositories};
use crate::process::protected::ProtectionTracker;
use crate::process::scratch_dir::{ScratchDir, create_private_dir};
use crate::process::tier::Tier;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The confinement of one run.
#[derive(Debug)]
pub struct Confinement {
    settings: SandboxSettings,
    sandbox: OnceLock<PreparedSandbox>,
}

impl Confinement {
    /// One that holds what `settings` says.
    pub fn new(settings: SandboxSettings) -> Self {
        Self { settings, sandbox: OnceLock::new() }
    }

    /// Whether commands share our network.
    pub fn has_network(&self) -> bool {
        self.settings.network
    }

    /// Whether `directory` was that of a repository before the first command, whatever has become of it since.
    pub fn was_repository(&self, directory: &Path) -> bool {
        let protection = self.sandbox.get().and_then(|sandbox| sandbox.protection.get());
        protection.is_some_and(|protection| repositories::is_protected(protection.policy(), directory))
    }

    /// What holds the commands; the first call makes their directories.
    ///
    /// # Errors
    /// When those cannot be made.
    pub fn sandbox(&self) -> io::Result<&PreparedSandbox> {
        match self.sandbox.get() {
            Some(sandbox) => Ok(sandbox),
            None => {
                PreparedSandbox::prepare(&self.settings).map(|sandbox| self.sandbox.get_or_init(|| sandbox))
            }
        }
    }
}

/// What holds the commands of a run, with the directories that are made for them.
#[derive(Debug)]
pub struct PreparedSandbox {
    /// What is reached, as far as that is known without a look into the workspace.
    base_policy: SandboxPolicy,
    protection: OnceLock<ProtectionTracker>,
    cache_variables: Vec<CacheVariable>,
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
            quarantine: settings.quarantine.join(run),
            scratch,
            commands: AtomicU64::new(0),
        })
    }

    /// What is held of the workspace. The first call looks for its repositories (at most some ten milliseconds).
    pub(in crate::process) fn protection(&self) -> &ProtectionTracker {
        self.protection.get_or_init(|| ProtectionTracker::new(self.base_policy.clone()))
    }

    /// The first directory that may be changed with something hidden below.
    pub(in crate::process) fn first_root_with_hidden(&self) -> Option<&Path> {
        let is_around =
            |root: &&PathBuf| self.base_policy.hidden.iter().any(|hidden| hidden.starts_with(root));
        self.base_policy.writable.iter().find(is_around).map(PathBuf::as_path)
    }

    /// The temporary directory of the run.
    pub(in crate::process) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A directory that is not there yet, for what one command makes of protected files.
    pub(in crate::process) fn quarantine(&self) -> PathBuf {
        self.quarantine.join(self.commands.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// Leads programs to places that they may change, by variables that nobody has set for commands.
    pub(in crate::process) fn set_environment(&self, env: &mut BTreeMap<String, String>, tier: Tier) {
        for lead in &self.cache_variables {
            let set = env.get(lead.name);
            if set.is_none() || set == lead.replaces.as_ref() {
                env.insert(lead.name.to_owned(), lead.value.clone());
            }
        }
        let [shared, _] = SHARED_TEMP_DIRS.map(Path::new);
        let is_there = tier.has_own_view() && self.base_policy.is_private(shared);
        let place = if is_there { shared } else { &self.base_policy.temporary }.display().to_string();
        env.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.to_owned(), place.clone())));
    }
}
