//! The project's instructions for agents (`AGENTS.md` and others): reading, and comparison with those of earlier runs.

use super::error::ConfigError;
use super::fact_cache::FactCache;
use super::text_file::{read_text, resolve_inside};
use crate::agent::system_prompt::{INSTRUCTION_FILES, ProjectInstructions};
use crate::core::run_result::{InstructionFile, PreviousInstructions};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Maximum size of an instructions file in bytes; the model receives less.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads the first of [`INSTRUCTION_FILES`] at the canonical root of the workspace. The second value is a notice about a file
/// that exists but is unusable; it never ends a run.
pub fn read(root: &Path) -> (Option<ProjectInstructions>, Option<String>) {
    let present = |name: &&&str| root.join(name).symlink_metadata().is_ok();
    let Some(name) = INSTRUCTION_FILES.iter().find(present) else { return (None, None) };
    let text = resolve_inside(root, name.as_ref()).and_then(|path| match path {
        Some(path) => read_text(&path, MAX_FILE_BYTES),
        None => Err(ConfigError::new("is a broken link")),
    });
    match text {
        Ok(text) => (text.map(|text| ProjectInstructions { name: (*name).to_owned(), text }), None),
        Err(error) => (None, Some(format!("{name}: project instructions not used: {error}"))),
    }
}

/// Returns the cache of the instructions' hashes, which is a file in the state directory of the workspace.
pub fn fact_cache<'a>(state: &'a Path, workspace: &'a Path) -> FactCache<'a> {
    FactCache { state, workspace, name: "instructions.json" }
}

/// Compares the instructions of a run at `now_ms` with the stored hash and replaces it. If two runs start at the same time,
/// one may overwrite the other's record; a later run then reports the change again.
///
/// # Errors
/// Fails when the stored record is not trustworthy or cannot be replaced; the comparison then reports no earlier version.
pub fn compare_and_store(
    fact_cache: FactCache<'_>,
    instructions: &ProjectInstructions,
    now_ms: u64,
) -> (InstructionFile, io::Result<()>) {
    let hash = blake3::hash(instructions.text.as_bytes()).to_hex().to_string();
    let stored = fact_cache.load::<PreviousInstructions>();
    let (mut files, load_result) = match stored {
        Ok(files) => (files.unwrap_or_default(), Ok(())),
        Err(error) => (BTreeMap::new(), Err(error)),
    };
    let now = PreviousInstructions { hash: hash.clone(), at_ms: now_ms };
    let before = files.insert(instructions.name.clone(), now);
    // Files that are no longer read must not stay in the record for ever.
    files.retain(|name, _| INSTRUCTION_FILES.contains(&name.as_str()));
    (
        InstructionFile { path: instructions.name.clone(), hash, before },
        load_result.and(fact_cache.store(files)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            io::Write::write_all(&mut std::fs::File::create(directory.path().join(name)).unwrap(), bytes)
                .unwrap();
        }
        directory
    }

    #[test]
    fn k08_the_first_known_name_wins() {
        let root = project(&[("CLAUDE.md", b"c"), ("AGENTS.md", b"a"), (".architect.md", b"x")]);
        let (found, notice) = read(root.path());
        assert_eq!(found, Some(ProjectInstructions { name: "AGENTS.md".into(), text: "a".into() }));
        assert_eq!(notice, None);
        assert_eq!(read(project(&[]).path()), (None, None));
    }

    #[test]
    fn class_29_a_change_is_told_once_for_each_file() {
        let fixture = project(&[]);
        let (state, workspace) = (fixture.path().join("state"), fixture.path().join("project"));
        let compare = |name: &str, text: &str, now| {
            let instructions = ProjectInstructions { name: name.into(), text: text.into() };
            let (file, stored) = compare_and_store(fact_cache(&state, &workspace), &instructions, now);
            stored.unwrap();
            let same = file.before.as_ref().map(|before| before.hash == file.hash);
            (file.before.map(|before| before.at_ms), same)
        };
        assert_eq!(compare("AGENTS.md", "a", 1), (None, None));
        assert_eq!(compare("AGENTS.md", "a", 2), (Some(1), Some(true)));
        assert_eq!(compare("CLAUDE.md", "a", 3), (None, None));
        assert_eq!(compare("AGENTS.md", "b", 4), (Some(2), Some(false)));
        assert_eq!(compare("AGENTS.md", "b", 5), (Some(4), Some(true)));
    }

    #[test]
    fn class_29_a_record_that_the_project_brings_along_is_not_believed() {
        let fixture = project(&[]);
        let state = fixture.path().join("state");
        let instructions = ProjectInstructions { name: "AGENTS.md".into(), text: "a".into() };
        let (file, stored) = compare_and_store(fact_cache(&state, fixture.path()), &instructions, 1);
        assert_eq!(file.before, None);
        assert!(stored.unwrap_err().to_string().contains("part of the workspace"));
    }

    #[test]
    fn unusable_instructions_cause_a_notice_and_do_not_end_the_run() {
        let (none, notice) = read(project(&[("AGENTS.md", b"\xff\xfe")]).path());
        assert_eq!(none, None);
        assert!(notice.unwrap().contains("UTF-8"));

        let root = project(&[]);
        std::fs::create_dir(root.path().join("AGENTS.md")).unwrap();
        assert!(read(root.path()).1.unwrap().contains("directory"));

        let root = project(&[]);
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("AGENTS.md")).unwrap();
        assert!(read(root.path()).1.unwrap().contains("leaves the workspace"));
    }
}
