//! Parses and applies patches: unified diffs, and envelopes from `*** Begin Patch` to `*** End Patch`.

pub mod apply;
mod envelope;
pub mod error;
pub mod file_patch;
pub mod hunk;
mod locate;
mod unified;

use error::PatchError;
use file_patch::FilePatch;

/// Parses `patch` into its changes, file by file. `path` is the target file, if the caller names it.
///
/// # Errors
/// When `patch` cannot be parsed, or its target files are unknown.
pub fn parse(patch: &str, path: Option<&str>) -> Result<Vec<FilePatch>, PatchError> {
    let patch = envelope::strip_wrapping(patch);
    if patch.trim().is_empty() {
        return Err(PatchError::Empty);
    }
    if !envelope::is_envelope(patch) {
        return unified::parse(patch, path);
    }
    let sections = envelope::parse(patch)?;
    match (path, sections.iter().find(|section| Some(section.path.as_str()) != path)) {
        (Some(path), Some(other)) => {
            Err(PatchError::OtherPath { named: other.path.clone(), path: path.to_owned() })
        }
        _ => Ok(sections),
    }
}

#[cfg(test)]
mod tests;
