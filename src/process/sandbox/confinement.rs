//! The walls of one run: what they are to hold is known from the start, they are built for the first command.

use super::ground::Ground;
use super::places::Lead;
use super::{Reach, TEMPORARY, places, repositories};
use crate::process::protected::Held;
use crate::process::scratch::{Scratch, make_private};
use crate::process::tier::Tier;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The confinement of one run.
#[derive(Debug)]
pub struct Confinement {
    ground: Ground,
    walls: OnceLock<Walls>,
}

impl Confinement {
    /// One that holds what `ground` says.
    pub fn new(ground: Ground) -> Self {
        Self { ground, walls: OnceLock::new() }
    }

    /// Whether commands share our network.
    pub fn has_network(&self) -> bool {
        self.ground.network
    }

    /// Whether `directory` was that of a repository before the first command, whatever has become of it since.
    pub fn was_repository(&self, directory: &Path) -> bool {
        let held = self.walls.get().and_then(|walls| walls.held.get());
        held.is_some_and(|held| repositories::is_protected(held.reach(), directory))
    }

    /// What holds the commands; the first call makes their directories.
    ///
    /// # Errors
    /// When those cannot be made.
    pub fn walls(&self) -> io::Result<&Walls> {
        match self.walls.get() {
            Some(walls) => Ok(walls),
            None => Walls::around(&self.ground).map(|walls| self.walls.get_or_init(|| walls)),
        }
    }
}

/// What holds the commands of a run, with the directories that are made for them.
#[derive(Debug)]
pub struct Walls {
    /// What is reached, as far as that is known without a look into the workspace.
    usual: Reach,
    held: OnceLock<Held>,
    leads: Vec<Lead>,
    scratch: Scratch,
    quarantine: PathBuf,
    commands: AtomicU64,
}

impl Walls {
    fn around(ground: &Ground) -> io::Result<Self> {
        let cannot = |path: &Path, error: &io::Error| {
            io::Error::new(error.kind(), format!("cannot make {}: {error}", path.display()))
        };
        let scratch = Scratch::new(&ground.temporary).map_err(|error| cannot(&ground.temporary, &error))?;
        make_private(&ground.caches).map_err(|error| cannot(&ground.caches, &error))?;
        let run = scratch.path().file_name().unwrap_or_default();
        Ok(Self {
            usual: places::reach(ground, scratch.path()),
            held: OnceLock::new(),
            leads: places::caches(ground),
            quarantine: ground.quarantine.join(run),
            scratch,
            commands: AtomicU64::new(0),
        })
    }

    /// What is held of the workspace. The first call looks for its repositories (at most some ten milliseconds).
    pub(in crate::process) fn held(&self) -> &Held {
        self.held.get_or_init(|| Held::before(self.usual.clone()))
    }

    /// The first directory that may be changed with something hidden below.
    pub(in crate::process) fn around_hidden(&self) -> Option<&Path> {
        let is_around = |root: &&PathBuf| self.usual.hidden.iter().any(|hidden| hidden.starts_with(root));
        self.usual.writable.iter().find(is_around).map(PathBuf::as_path)
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
    pub(in crate::process) fn lead(&self, env: &mut BTreeMap<String, String>, tier: Tier) {
        for lead in &self.leads {
            let set = env.get(lead.name);
            if set.is_none() || set == lead.instead_of.as_ref() {
                env.insert(lead.name.to_owned(), lead.value.clone());
            }
        }
        let [shared, _] = TEMPORARY.map(Path::new);
        let is_there = tier.has_own_view() && self.usual.is_private(shared);
        let place = if is_there { shared } else { &self.usual.temporary }.display().to_string();
        env.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.to_owned(), place.clone())));
    }
}
