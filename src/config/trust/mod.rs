//! Trust in a project: compares what it requests with what the user has reviewed and allowed.

mod file_references;
pub mod manifest;
pub mod pipelines;

use super::error::ConfigError;
use super::fact_cache::FactCache;
use super::project::ProjectConfig;
use agent_messages as messages;
use manifest::TrustManifest;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Returns the storage of the trust in a workspace, which is a file in its state directory.
pub fn fact_cache<'a>(state: &'a Path, workspace: &'a Path) -> FactCache<'a> {
    FactCache { state, workspace, name: "trust.json" }
}

/// The trust option of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TrustFlag {
    /// The stored trust applies.
    #[default]
    Stored,
    /// `--trust-workspace`: any content, for this run.
    ThisRun,
    /// `--trust-workspace=HASH`: only this content, for this run.
    WithHash(String),
}

/// The trust status of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustStatus {
    /// The project has no settings that need trust.
    NothingToTrust,
    /// The user has not trusted it.
    Untrusted,
    /// The user trusted it, and it has changed since.
    Changed {
        /// Description of the changes.
        changes: String,
    },
    /// The user has trusted its current content.
    Trusted,
    /// The command line trusts it for this run.
    ThisRun {
        /// The hash of its content.
        hash: String,
    },
}

impl TrustStatus {
    /// Checks whether settings that need trust take effect.
    pub fn is_trusted(&self) -> bool {
        match self {
            Self::Trusted | Self::ThisRun { .. } => true,
            Self::NothingToTrust | Self::Untrusted | Self::Changed { .. } => false,
        }
    }
}

/// The trust status of a project, the trusted files and the notices for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustDecision {
    /// The status.
    pub status: TrustStatus,
    /// The trusted files, if the project is trusted.
    pub manifest: TrustManifest,
    /// Notices for the user.
    pub notices: Vec<String>,
}

impl TrustDecision {
    fn new(status: TrustStatus) -> Self {
        Self { status, manifest: TrustManifest::default(), notices: Vec::new() }
    }

    fn with_notice(self, notice: String) -> Self {
        Self { notices: vec![notice], ..self }
    }
}

/// Decides on the trust in `project` from the command line, else from the stored trust.
///
/// # Errors
/// Fails for a hash on the command line that differs from that of the content.
pub fn decide(
    flag: &TrustFlag,
    project: &ProjectConfig,
    fact_cache: FactCache<'_>,
) -> Result<TrustDecision, ConfigError> {
    let manifest = || TrustManifest::for_project(fact_cache.workspace, project);
    match flag {
        TrustFlag::Stored if !project.requires_trust() => Ok(TrustDecision::new(TrustStatus::NothingToTrust)),
        TrustFlag::Stored => Ok(compare_with_stored(project, fact_cache)),
        TrustFlag::ThisRun => {
            let manifest = manifest()?;
            let hash = manifest.hash();
            let notice = messages::trusted_this_run(&hash);
            let decision = TrustDecision { manifest, ..TrustDecision::new(TrustStatus::ThisRun { hash }) };
            Ok(decision.with_notice(notice))
        }
        TrustFlag::WithHash(wanted) => {
            let manifest = manifest()?;
            let hash = manifest.hash();
            if *wanted != hash {
                return Err(ConfigError::new(messages::trust_hash_mismatch(&hash)).file("--trust-workspace"));
            }
            Ok(TrustDecision { manifest, ..TrustDecision::new(TrustStatus::ThisRun { hash }) })
        }
    }
}

/// Compares the stored trust with the current content. If they cannot be compared, the project is not trusted.
fn compare_with_stored(project: &ProjectConfig, fact_cache: FactCache<'_>) -> TrustDecision {
    let untrusted = TrustDecision::new(TrustStatus::Untrusted);
    let stored = match fact_cache.load() {
        Ok(Some(files)) => TrustManifest { files },
        Ok(None) => return untrusted,
        Err(error) => return untrusted.with_notice(messages::trust_record_rejected(&error.to_string())),
    };
    let manifest = match TrustManifest::for_project(fact_cache.workspace, project) {
        Ok(manifest) => manifest,
        Err(error) => return untrusted.with_notice(messages::trust_ended(&error.to_string())),
    };
    match manifest.changes_since(&stored) {
        None => TrustDecision { manifest, ..TrustDecision::new(TrustStatus::Trusted) },
        Some(changes) => {
            let notice = messages::trust_ended(&changes);
            TrustDecision::new(TrustStatus::Changed { changes }).with_notice(notice)
        }
    }
}

/// Returns the files of a trusted project other than its configuration, which no other rule protects.
pub fn other_files<'a>(
    manifest: &'a TrustManifest,
    project: &'a ProjectConfig,
) -> impl Iterator<Item = &'a Path> {
    let own = |path: &str| project.files.iter().any(|file| file.path == path);
    manifest.files.keys().filter(move |path| !own(path)).map(Path::new)
}
