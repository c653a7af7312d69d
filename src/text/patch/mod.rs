//! Patches in two forms: unified diffs, and the envelope from `*** Begin Patch` to `*** End Patch`. Each is read into what
//! it does to files; hunks apply all or none.

pub mod apply;
mod envelope;
pub mod error;
pub mod file_patch;
pub mod hunk;
mod locate;
mod unified;

use error::PatchError;
use file_patch::FilePatch;

/// What `patch` does, file by file. `path` is the file that it is for, when whoever sends it says so.
///
/// # Errors
/// When it cannot be read, or it is not known for which files it is.
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
