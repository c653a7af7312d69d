//! Symbolic links among the paths of a call: shown to the user before approval, and checked again after it.

use crate::Engine;
use crate::command_class::{NamedFile, named_files};
use agent_core::language::Language;
use agent_messages as messages;
use agent_tools::{Plan, TouchedFile};
use agent_workspace::error::FileError;
use agent_workspace::file;
use agent_workspace::path::RelPath;

/// A path that leads through a symbolic link.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    path: RelPath,
    /// The resolved path; `None` when it is outside the workspace.
    real: Option<RelPath>,
}

/// Returns the files that a call names: its path arguments and the files in its command.
pub fn touched_files(plan: &Plan) -> Vec<TouchedFile> {
    let named = plan.command.as_deref().map(named_files).unwrap_or_default().into_iter();
    let named =
        named.map(|file: NamedFile| TouchedFile { path: plan.path_from_root(&file.path), write: file.write });
    plan.touched_files.iter().cloned().chain(named).collect()
}

/// Describes `links` for the user, one line each.
pub fn notes(links: &[Link], language: Language) -> Vec<String> {
    let note = |link: &Link| {
        let real = link.real.as_ref().map(RelPath::as_str);
        messages::link_target(link.path.as_str(), real, language)
    };
    links.iter().map(note).collect()
}

/// Returns a hash of the links and their targets.
pub fn digest(links: &[Link]) -> String {
    let targets: Vec<[Option<&str>; 2]> = links
        .iter()
        .map(|link| [Some(link.path.as_str()), link.real.as_ref().map(RelPath::as_str)])
        .collect();
    file::hash(serde_json::json!(targets).to_string().as_bytes())
}

impl Engine {
    /// Returns the paths of a call that lead through links, including the directory of its command.
    pub(super) fn links(&self, plan: &Plan) -> Vec<Link> {
        let named = touched_files(plan).into_iter().map(|touch| touch.path).chain(plan.directory.clone());
        let link = |name: String| {
            let path = self.workspace.path(&name).ok()?;
            let real = match self.workspace.resolve(&path) {
                Ok(real) => Some(real),
                Err(FileError::Escape(_)) => None,
                Err(_) => return None,
            };
            (real.as_ref() != Some(&path)).then_some(Link { path, real })
        };
        named.filter_map(link).collect()
    }
}
