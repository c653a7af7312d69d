//! Trust in the pipelines of a workspace: each is trusted by itself, with the files that its commands name.

use super::TrustFlag;
use super::file_references::{levels_to_repository, up};
use super::manifest::TrustManifest;
use crate::error::ConfigError;
use crate::fact_cache::FactCache;
use crate::pipeline::Pipeline;
use crate::project::ProjectConfig;
use agent_messages as messages;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A pipeline of the workspace.
#[derive(Debug)]
pub struct WorkspacePipeline {
    /// Its path from the root of the workspace; it begins with `..` in the rest of the repository.
    pub path: String,
    /// Its file and those that its commands name.
    pub manifest: TrustManifest,
}

/// Returns the storage of the trust in pipelines: the hash of the manifest of each, by its path.
pub fn fact_cache<'a>(state: &'a Path, workspace: &'a Path) -> FactCache<'a> {
    FactCache { state, workspace, name: "pipelines.json" }
}

/// Returns the path from `root` of a file that lies in it or in the repository around it, or that a link there names; `None` for
/// another one.
fn path_in(root: &Path, file: &Path) -> io::Result<Option<String>> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let named = directory.canonicalize()?.join(file.file_name().unwrap_or_default());
    let levels = levels_to_repository(root);
    let repository = root.ancestors().nth(levels).unwrap_or(root);
    let path = [named, file.canonicalize()?].into_iter().find_map(|path| {
        let below = path.strip_prefix(root).map(Path::to_owned);
        let below =
            below.or_else(|_| path.strip_prefix(repository).map(|below| up(levels).join(below))).ok()?;
        Some(below.to_string_lossy().into_owned())
    });
    Ok(path)
}

impl WorkspacePipeline {
    /// Returns the pipeline with `text` in `file`; `None` if the file lies neither in the workspace `root` nor in the repository around
    /// it.
    ///
    /// # Errors
    /// Fails for a path that cannot be resolved, and a file that a command names and that cannot be read.
    pub fn new(
        root: &Path,
        file: &Path,
        text: &str,
        pipeline: &Pipeline,
    ) -> Result<Option<Self>, ConfigError> {
        let path = path_in(root, file).map_err(|error| ConfigError::new(error.to_string()).path(file))?;
        let Some(path) = path else { return Ok(None) };
        let manifest = TrustManifest::for_pipeline(root, &path, text, pipeline)?;
        Ok(Some(Self { path, manifest }))
    }

    /// Returns the trust option of the runs of the pipeline; `None` if the user has not trusted it.
    ///
    /// # Errors
    /// Fails for a hash on the command line that differs from that of project and pipeline together.
    pub fn decide(
        &self,
        flag: &TrustFlag,
        project: &ProjectConfig,
        fact_cache: FactCache<'_>,
    ) -> Result<Option<TrustFlag>, ConfigError> {
        match flag {
            TrustFlag::Stored => Ok(self.is_stored(fact_cache)?.then_some(TrustFlag::Stored)),
            TrustFlag::ThisRun => Ok(Some(TrustFlag::ThisRun)),
            TrustFlag::WithHash(wanted) => {
                let project = TrustManifest::for_project(fact_cache.workspace, project)?;
                let hash = project.joined(&self.manifest).hash();
                if *wanted != hash {
                    let message = messages::pipeline_hash_mismatch(&hash, &self.path);
                    return Err(ConfigError::new(message).file("--trust-workspace"));
                }
                Ok(Some(TrustFlag::WithHash(project.hash())))
            }
        }
    }

    /// Checks whether the stored trust covers the pipeline as it is.
    ///
    /// # Errors
    /// Fails for a record that the user may not have written.
    pub fn is_stored(&self, fact_cache: FactCache<'_>) -> Result<bool, ConfigError> {
        let stored = stored(fact_cache)?;
        Ok(stored.get(&self.path) == Some(&self.manifest.hash()))
    }

    /// Stores the trust in the pipeline as it is.
    ///
    /// # Errors
    /// Fails when the record cannot be read or written.
    pub fn store(&self, fact_cache: FactCache<'_>) -> Result<(), ConfigError> {
        let mut pipelines = stored(fact_cache)?;
        pipelines.insert(self.path.clone(), self.manifest.hash());
        let stored = fact_cache.store(pipelines);
        stored.map_err(|error| ConfigError::new(messages::trust_not_stored(&error.to_string())))
    }
}

fn stored(fact_cache: FactCache<'_>) -> Result<BTreeMap<String, String>, ConfigError> {
    let stored = fact_cache.load();
    let rejected = |error: io::Error| ConfigError::new(messages::trust_record_rejected(&error.to_string()));
    Ok(stored.map_err(rejected)?.unwrap_or_default())
}
