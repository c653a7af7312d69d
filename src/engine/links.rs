//! Where the paths of a call lead through links: told to the person who decides, and looked at again after the answer.

use crate::core::language::Language;
use crate::engine::Engine;
use crate::engine::command_class::{NamedFile, named_files};
use crate::messages;
use crate::tools::{Plan, TouchedFile};
use crate::workspace::error::FileError;
use crate::workspace::file;
use crate::workspace::path::RelPath;

/// Links that a question tells of; a command may name hundreds.
const MAX_SHOWN_LINKS: usize = 6;

/// A path that is not where its name says.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    path: RelPath,
    /// Where it is; nothing when that is outside of the workspace.
    real: Option<RelPath>,
}

/// What a call touches by name: its own paths, and the files that its command plainly names.
pub fn touched_files(plan: &Plan) -> Vec<TouchedFile> {
    let named = plan.command.as_deref().map(named_files).unwrap_or_default().into_iter();
    let named =
        named.map(|file: NamedFile| TouchedFile { path: plan.path_from_root(&file.path), write: file.write });
    plan.touched_files.iter().cloned().chain(named).collect()
}

/// What a person is told of `links`, a line each.
pub fn notes(links: &[Link], language: Language) -> Vec<String> {
    let note = |link: &Link| {
        let real = link.real.as_ref().map(RelPath::as_str);
        messages::link_target(link.path.as_str(), real, language)
    };
    let more = links.len().checked_sub(MAX_SHOWN_LINKS).filter(|more| *more > 0);
    let more = more.map(|more| messages::more_links(more, language));
    links.iter().take(MAX_SHOWN_LINKS).map(note).chain(more).collect()
}

/// A hash of where `links` lead.
pub fn digest(links: &[Link]) -> String {
    let places: Vec<[Option<&str>; 2]> = links
        .iter()
        .map(|link| [Some(link.path.as_str()), link.real.as_ref().map(RelPath::as_str)])
        .collect();
    file::hash(serde_json::json!(places).to_string().as_bytes())
}

impl Engine {
    /// The paths of a call that lead elsewhere, where its command runs among them.
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
