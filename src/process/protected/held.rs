//! What is held of a workspace during a run, and whether it still is as it was.

use super::Disturbance;
#[cfg(target_os = "linux")]
use super::{
    arrivals, restore,
    survey::{Found, Survey},
};
use crate::process::sandbox::Reach;
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
pub struct Held {
    reach: Reach,
    #[cfg(target_os = "linux")]
    survey: Option<Mutex<Survey>>,
    altered: OnceLock<String>,
    running: Arc<Mutex<Running>>,
}

/// A command that runs, until this is dropped.
#[derive(Debug)]
pub struct Begun(Arc<Mutex<Running>>);

/// `reach` with what was found in the workspace kept as it is.
#[cfg(target_os = "linux")]
fn with_found(reach: Reach, found: Found) -> Reach {
    let mut reach = repositories::protected(reach, &found.repositories);
    reach.compared = of_ours(found.configurations, &reach);
    reach.compared.truncate(MAX_CONFIGURATIONS);
    reach
}

/// Those of `paths` that are not protected or hidden in another way.
#[cfg(target_os = "linux")]
fn of_ours(paths: impl IntoIterator<Item = PathBuf>, reach: &Reach) -> Vec<PathBuf> {
    let otherwise =
        |path: &PathBuf| reach.read_only.iter().chain(&reach.hidden).any(|above| path.starts_with(above));
    paths.into_iter().filter(|path| !otherwise(path)).collect()
}

/// The commands that run.
#[derive(Debug, Default)]
struct Running {
    count: usize,
    /// Whether there have been two at once since there was none.
    several: bool,
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.count = running.count.saturating_sub(1);
    }
}

impl Held {
    /// Looks for the repositories and configurations of the workspace (at most some ten milliseconds).
    pub fn before(reach: Reach) -> Self {
        #[cfg(target_os = "linux")]
        let (survey, found) = reach.writable.first().and_then(|workspace| Survey::of(workspace).ok()).unzip();
        #[cfg(target_os = "linux")]
        let reach = with_found(reach, found.unwrap_or_default());
        Self {
            reach,
            #[cfg(target_os = "linux")]
            survey: survey.map(Mutex::new),
            altered: OnceLock::new(),
            running: Arc::default(),
        }
    }

    /// What commands may reach, with the repositories of the workspace protected.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Why no more commands may run: what they would find changed is taken for what was there before.
    pub fn altered(&self) -> Option<&str> {
        self.altered.get().map(String::as_str)
    }

    /// Has a command begun by `start`, which is told whether no other one runs: only then is what is there now what is put
    /// back. What others are doing meanwhile must not be taken for it.
    ///
    /// # Errors
    /// Those of `start`.
    pub fn begin<T>(&self, start: impl FnOnce(bool) -> io::Result<T>) -> io::Result<(T, Begun)> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(target_os = "linux")]
        if running.count == 0
            && let Some(survey) = &self.survey
        {
            survey.lock().unwrap_or_else(PoisonError::into_inner).catch_up();
        }
        let begun = start(running.count == 0)?;
        running.several = running.count > 0;
        running.count += 1;
        Ok((begun, Begun(Arc::clone(&self.running))))
    }

    /// Looks at what the command `begun` has left, of which its guard has told the changes that it found, or was killed before it
    /// could. What the command has newly made moves to `quarantine`.
    pub fn after(&self, begun: Begun, told: Option<Vec<Disturbance>>, quarantine: &Path) -> Vec<Disturbance> {
        drop(begun);
        let shared = self.running.lock().unwrap_or_else(PoisonError::into_inner).several;
        let mut all = told.unwrap_or_else(|| vec![Disturbance::unknown()]);
        all.extend(self.newly_made(quarantine));
        for one in &mut all {
            one.shared = shared;
        }
        if let Some((one, why)) = all.iter().find_map(|one| Some((one, one.left.as_ref()?))) {
            let _the_first_counts = self.altered.set(format!(
                "no more commands run here until a person has looked at {:?}, which an earlier one has changed and which could \
                 not be put back ({why}); then a new run may begin",
                one.path
            ));
        }
        all
    }

    #[cfg(target_os = "linux")]
    fn newly_made(&self, quarantine: &Path) -> Vec<Disturbance> {
        let Some(survey) = &self.survey else { return Vec::new() };
        let mut survey = survey.lock().unwrap_or_else(PoisonError::into_inner);
        let reach = &self.reach;
        survey.since(|repositories, configurations| {
            let mut moved = arrivals::hold(repositories, &reach.read_only, quarantine);
            moved.extend(restore::take_away(&of_ours(configurations.iter().cloned(), reach), quarantine));
            moved
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn newly_made(&self, _quarantine: &Path) -> Vec<Disturbance> {
        Vec::new()
    }
}
