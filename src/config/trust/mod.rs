//! Whether this project is trusted: what it asks for, compared with what the user has seen and allowed.

mod file_references;
pub mod manifest;

use super::error::ConfigError;
use super::fact_cache::FactCache;
use super::project::ProjectConfig;
use crate::messages;
use manifest::TrustManifest;
use std::path::Path;

/// Where trust in a workspace is kept: in its state directory.
pub fn fact_cache<'a>(state: &'a Path, workspace: &'a Path) -> FactCache<'a> {
    FactCache { state, workspace, name: "trust.json" }
}

/// What the command line says about trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TrustFlag {
    /// What was kept holds.
    #[default]
    Stored,
    /// `--trust-workspace`: whatever is there, for this run.
    ThisRun,
    /// `--trust-workspace=HASH`: exactly this content, for this run.
    WithHash(String),
}

/// How a project stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustStatus {
    /// Nothing in it waits for trust.
    NothingToTrust,
    /// Nobody trusts it.
    Untrusted,
    /// It was trusted, and is not what it was.
    Changed {
        /// What changed, in words.
        changes: String,
    },
    /// It is what the user has trusted.
    Trusted,
    /// The command line trusts it, for this run.
    ThisRun {
        /// The hash of its content.
        hash: String,
    },
}

impl TrustStatus {
    /// Whether what waits for trust has an effect.
    pub fn is_trusted(&self) -> bool {
        match self {
            Self::Trusted | Self::ThisRun { .. } => true,
            Self::NothingToTrust | Self::Untrusted | Self::Changed { .. } => false,
        }
    }
}

/// How `project` stands, the files it names when it is trusted, and lines for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustDecision {
    /// How it stands.
    pub status: TrustStatus,
    /// What is trusted, if anything is.
    pub manifest: TrustManifest,
    /// Lines for people.
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

/// Judges `project` by what the command line says, else by what was kept.
///
/// # Errors
/// A hash on the command line that is not that of the content.
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

/// What was kept, compared with what is there. What cannot be compared is not trusted.
fn compare_with_stored(project: &ProjectConfig, fact_cache: FactCache<'_>) -> TrustDecision {
    let untrusted = TrustDecision::new(TrustStatus::Untrusted);
    let kept = match fact_cache.load() {
        Ok(Some(files)) => TrustManifest { files },
        Ok(None) => return untrusted,
        Err(error) => return untrusted.with_notice(messages::trust_record_rejected(&error.to_string())),
    };
    let manifest = match TrustManifest::for_project(fact_cache.workspace, project) {
        Ok(manifest) => manifest,
        Err(error) => return untrusted.with_notice(messages::trust_ended(&error.to_string())),
    };
    match manifest.changes_since(&kept) {
        None => TrustDecision { manifest, ..TrustDecision::new(TrustStatus::Trusted) },
        Some(changes) => {
            let notice = messages::trust_ended(&changes);
            TrustDecision::new(TrustStatus::Changed { changes }).with_notice(notice)
        }
    }
}

/// The files of a trusted project that are no configuration of its own, and so are protected by nothing else.
pub fn other_files<'a>(
    manifest: &'a TrustManifest,
    project: &'a ProjectConfig,
) -> impl Iterator<Item = &'a Path> {
    let own = |path: &str| project.files.iter().any(|file| file.path == path);
    manifest.files.keys().filter(move |path| !own(path)).map(Path::new)
}
