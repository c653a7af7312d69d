//! Measures the source files of a workspace, within limits of files, size, lines and time.

use crate::language::{LANGUAGES, SourceLanguage, language_of};
use crate::project::{MeasuredFile, MeasuredProject};
use agent_core::health::FilesLeftOut;
use agent_runtime::blocking::run_blocking;
use agent_workspace::Workspace;
use agent_workspace::error::FileError;
use agent_workspace::file;
use agent_workspace::path::RelPath;
use agent_workspace::walk::FindQuery;
use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time limit of one measurement, after which the other files are left out.
pub const MEASURE_TIME: Duration = Duration::from_secs(10);
/// Maximum number of measured files, the first by path.
const MAX_FILES: usize = 20_000;
/// Maximum size of a measured file in bytes.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// Maximum number of lines of all measured files, which limits the memory for repeated blocks to 100 MB.
const MAX_LINES: usize = 2_000_000;
/// Time limit of parsing one file.
const FILE_TIME: Duration = Duration::from_secs(1);

/// The files to measure.
#[derive(Debug, Clone)]
pub struct HealthScope {
    workspace: Workspace,
    base: RelPath,
    sources: GlobMatcher,
    include: GlobSet,
    exclude_dirs: GlobSet,
}

/// Why a file was not measured.
enum Skipped {
    TooLarge,
    TooSlow,
    Unreadable,
    Sensitive,
    NotReached,
    /// A link: its target is measured where it is.
    Link,
}

impl HealthScope {
    /// Selects the files of known languages below `base` (or `base` itself) whose paths match one of the globs `include` and are
    /// in no directory with a name that matches one of `exclude_dirs`.
    ///
    /// # Errors
    /// When a glob is invalid.
    pub fn new(
        workspace: Workspace,
        base: RelPath,
        include: &[String],
        exclude_dirs: &[String],
    ) -> Result<Self, globset::Error> {
        let extensions: Vec<&str> =
            LANGUAGES.iter().flat_map(|language| language.extensions).copied().collect();
        let sources =
            GlobBuilder::new(&format!("*.{{{}}}", extensions.join(","))).case_insensitive(true).build()?;
        let (include, exclude_dirs) = (glob_set(include)?, glob_set(exclude_dirs)?);
        Ok(Self { workspace, base, sources: sources.compile_matcher(), include, exclude_dirs })
    }

    /// Checks whether the file `path` is of a known language, below the base and not excluded.
    pub fn is_selected(&self, path: &str) -> bool {
        self.language(path).is_some()
    }

    /// Returns the language of a selected file; `None` for other files.
    fn language(&self, path: &str) -> Option<&'static SourceLanguage> {
        let is_excluded = path.split('/').rev().skip(1).any(|name| self.exclude_dirs.is_match(name));
        let is_below = Path::new(path).starts_with(self.base.as_str());
        language_of(path).filter(|_| is_below && !is_excluded && self.include.is_match(path))
    }

    /// Measures the selected files until `stop` is set. Files with the same content as in `known` are not parsed again.
    ///
    /// # Errors
    /// When the base is missing or unreadable.
    pub fn measure(
        &self,
        known: Option<&MeasuredProject>,
        stop: &AtomicBool,
    ) -> Result<MeasuredProject, FileError> {
        let find = |glob: Option<&GlobMatcher>, most| {
            let query = FindQuery { base: &self.base, glob, directories: false, most };
            self.workspace.find(&query, stop)
        };
        let (sources, all) = (find(Some(&self.sources), MAX_FILES)?, find(None, 0)?);
        let mut project = MeasuredProject {
            other_files: all.total.saturating_sub(sources.total) as u64,
            ..MeasuredProject::default()
        };
        project.left_out.unreadable = sources.unreadable as u64;
        project.left_out.not_reached = sources.total.saturating_sub(sources.entries.len()) as u64;
        let mut lines = 0_usize;
        for entry in &sources.entries {
            let path = entry.path.as_str();
            let Some(language) = self.language(path) else {
                project.other_files += 1;
                continue;
            };
            let measured = if lines > MAX_LINES {
                Err(Skipped::NotReached)
            } else {
                self.measure_file(&entry.path, language, known, stop)
            };
            lines += measured.as_ref().map_or(0, |file| file.blocks.len());
            add(&mut project, path, measured);
        }
        project.is_complete = !sources.is_incomplete && project.left_out.not_reached == 0;
        Ok(project)
    }

    /// Returns the state before a change: `after` with the earlier contents of the `changed` files, if they had any then.
    pub fn before(
        &self,
        after: &MeasuredProject,
        changed: &BTreeMap<String, Option<Vec<u8>>>,
        stop: &AtomicBool,
    ) -> MeasuredProject {
        let mut before = after.clone();
        for (path, earlier) in changed {
            let was_measured = before.files.remove(path).is_some();
            // A file that is left out now is left out before too.
            let Some(language) = self.language(path).filter(|_| was_measured || !self.exists(path)) else {
                continue;
            };
            if let Some(source) = earlier {
                add(&mut before, path, measure_source(language, file::hash(source), source, stop));
            }
        }
        before.is_complete &= before.left_out.not_reached == 0;
        before
    }

    fn exists(&self, path: &str) -> bool {
        self.workspace.path(path).is_ok_and(|path| self.workspace.open_file(&path).is_ok())
    }

    fn measure_file(
        &self,
        path: &RelPath,
        language: &SourceLanguage,
        known: Option<&MeasuredProject>,
        stop: &AtomicBool,
    ) -> Result<Arc<MeasuredFile>, Skipped> {
        if stop.load(Ordering::Relaxed) {
            return Err(Skipped::NotReached);
        }
        let content = self.workspace.read(path, MAX_FILE_BYTES).map_err(|error| match error {
            FileError::TooLarge { .. } => Skipped::TooLarge,
            FileError::ProtectedFile(_) => Skipped::Sensitive,
            _ => Skipped::Unreadable,
        })?;
        if content.path != *path && *path != self.base {
            return Err(Skipped::Link);
        }
        let same =
            known.and_then(|known| known.files.get(path.as_str())).filter(|file| file.hash == content.hash);
        match same {
            Some(same) => Ok(Arc::clone(same)),
            None => measure_source(language, content.hash, &content.bytes, stop),
        }
    }
}

/// Measures the code within `limit`. Files with the same content as in `known` are not parsed again.
///
/// # Errors
/// A message when the code cannot be measured.
pub async fn measure(
    scope: &HealthScope,
    known: Option<MeasuredProject>,
    limit: Duration,
    cancel: &CancellationToken,
) -> Result<MeasuredProject, String> {
    let scope = scope.clone();
    let measured = run_blocking(limit, cancel, move |stop| scope.measure(known.as_ref(), stop)).await;
    measured.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn measure_source(
    language: &SourceLanguage,
    hash: String,
    source: &[u8],
    stop: &AtomicBool,
) -> Result<Arc<MeasuredFile>, Skipped> {
    if source.contains(&0) {
        return Err(Skipped::Unreadable);
    }
    let started = Instant::now();
    let is_over = || stop.load(Ordering::Relaxed) || started.elapsed() > FILE_TIME;
    MeasuredFile::new(language, hash, source, is_over)
        .map(Arc::new)
        .ok_or_else(|| if stop.load(Ordering::Relaxed) { Skipped::NotReached } else { Skipped::TooSlow })
}

fn add(project: &mut MeasuredProject, path: &str, measured: Result<Arc<MeasuredFile>, Skipped>) {
    let FilesLeftOut { too_large, too_slow, unreadable, sensitive, not_reached } = &mut project.left_out;
    let count = match measured {
        Ok(file) => {
            project.files.insert(path.to_owned(), file);
            return;
        }
        Err(Skipped::TooLarge) => too_large,
        Err(Skipped::TooSlow) => too_slow,
        Err(Skipped::Unreadable) => unreadable,
        Err(Skipped::Sensitive) => sensitive,
        Err(Skipped::NotReached) => not_reached,
        Err(Skipped::Link) => &mut project.other_files,
    };
    *count += 1;
}

fn glob_set(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        builder.add(Glob::new(pattern)?);
    }
    builder.build()
}
