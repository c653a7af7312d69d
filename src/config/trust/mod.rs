//! Whether this project is trusted: what it asks for, compared with what the user has seen and allowed.

pub mod claim;
mod named;

use super::error::ConfigError;
use super::project::Project;
use super::shelf::Shelf;
use crate::messages;
use claim::Claim;
use std::path::Path;

/// Where trust in a workspace is kept: in its state directory.
pub fn shelf<'a>(state: &'a Path, workspace: &'a Path) -> Shelf<'a> {
    Shelf { state, workspace, name: "trust.json" }
}

/// What the command line says about trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum TrustWish {
    /// What was kept holds.
    #[default]
    AsKept,
    /// `--trust-workspace`: whatever is there, for this run.
    ThisRun,
    /// `--trust-workspace=HASH`: exactly this content, for this run.
    Exactly(String),
}

/// How a project stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing in it waits for trust.
    NothingToTrust,
    /// Nobody trusts it.
    Untrusted,
    /// It was trusted, and is not what it was.
    Ended {
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

impl Standing {
    /// Whether what waits for trust has an effect.
    pub fn is_trusted(&self) -> bool {
        match self {
            Self::Trusted | Self::ThisRun { .. } => true,
            Self::NothingToTrust | Self::Untrusted | Self::Ended { .. } => false,
        }
    }
}

/// How `project` stands, the files it names when it is trusted, and lines for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// How it stands.
    pub standing: Standing,
    /// What is trusted, if anything is.
    pub claim: Claim,
    /// Lines for people.
    pub notices: Vec<String>,
}

impl Judgement {
    fn new(standing: Standing) -> Self {
        Self { standing, claim: Claim::default(), notices: Vec::new() }
    }

    fn saying(self, notice: String) -> Self {
        Self { notices: vec![notice], ..self }
    }
}

/// Judges `project` by what the command line says, else by what was kept.
///
/// # Errors
/// A hash on the command line that is not that of the content.
pub fn judge(wish: &TrustWish, project: &Project, shelf: Shelf<'_>) -> Result<Judgement, ConfigError> {
    let claim = || Claim::of(shelf.workspace, project);
    match wish {
        TrustWish::AsKept if !project.waits() => Ok(Judgement::new(Standing::NothingToTrust)),
        TrustWish::AsKept => Ok(as_kept(project, shelf)),
        TrustWish::ThisRun => {
            let claim = claim()?;
            let hash = claim.hash();
            let notice = messages::trusted_this_run(&hash);
            let judgement = Judgement { claim, ..Judgement::new(Standing::ThisRun { hash }) };
            Ok(judgement.saying(notice))
        }
        TrustWish::Exactly(wanted) => {
            let claim = claim()?;
            let hash = claim.hash();
            if *wanted != hash {
                return Err(ConfigError::new(messages::other_content(&hash)).file("--trust-workspace"));
            }
            Ok(Judgement { claim, ..Judgement::new(Standing::ThisRun { hash }) })
        }
    }
}

/// What was kept, compared with what is there. What cannot be compared is not trusted.
fn as_kept(project: &Project, shelf: Shelf<'_>) -> Judgement {
    let untrusted = Judgement::new(Standing::Untrusted);
    let kept = match shelf.recall() {
        Ok(Some(files)) => Claim { files },
        Ok(None) => return untrusted,
        Err(error) => return untrusted.saying(messages::trust_not_believed(&error.to_string())),
    };
    let claim = match Claim::of(shelf.workspace, project) {
        Ok(claim) => claim,
        Err(error) => return untrusted.saying(messages::trust_ended(&error.to_string())),
    };
    match claim.changes_since(&kept) {
        None => Judgement { claim, ..Judgement::new(Standing::Trusted) },
        Some(changes) => {
            let notice = messages::trust_ended(&changes);
            Judgement::new(Standing::Ended { changes }).saying(notice)
        }
    }
}

/// The files of a trusted project that are no configuration of its own, and so are protected by nothing else.
pub fn named<'a>(claim: &'a Claim, project: &'a Project) -> impl Iterator<Item = &'a Path> {
    let own = |path: &str| project.files.iter().any(|file| file.place == path);
    claim.files.keys().filter(move |path| !own(path)).map(Path::new)
}
