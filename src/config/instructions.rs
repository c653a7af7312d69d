//! The project's own instructions for agents: found and read, within limits, and compared with what earlier runs were given.

use super::error::ConfigError;
use super::fact_cache::FactCache;
use super::text_file::{read_text, resolve_inside};
use crate::agent::system_prompt::{INSTRUCTION_FILES, ProjectInstructions};
use crate::core::run_result::{InstructionFile, PreviousInstructions};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Bytes of an instructions file that are read at all; what the model gets is cut to less.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The first of [`INSTRUCTION_FILES`] at the canonical root of the workspace, and a line for people about one that
/// exists but cannot be used: it never ends a run.
pub fn read(root: &Path) -> (Option<ProjectInstructions>, Option<String>) {
    let present = |name: &&&str| root.join(name).symlink_metadata().is_ok();
    let Some(name) = INSTRUCTION_FILES.iter().find(present) else { return (None, None) };
    let text = resolve_inside(root, name.as_ref()).and_then(|path| match path {
        Some(path) => read_text(&path, MAX_FILE_BYTES),
        None => Err(ConfigError::new("is a link to nothing")),
    });
    match text {
        Ok(text) => (text.map(|text| ProjectInstructions { name: (*name).to_owned(), text }), None),
        Err(error) => (None, Some(format!("{name}: project instructions not used: {error}"))),
    }
}

/// Where it is kept what the runs in a workspace were given: in its state directory.
pub fn fact_cache<'a>(state: &'a Path, workspace: &'a Path) -> FactCache<'a> {
    FactCache { state, workspace, name: "instructions.json" }
}

/// What a run at `now_ms` is given, compared with what was kept, which it then replaces. Of two runs that begin together
/// one may replace what the other has kept: then a later run is told of a change once more.
///
/// # Errors
/// What was kept cannot be believed or replaced; the comparison says that nothing was.
pub fn compare_and_store(
    fact_cache: FactCache<'_>,
    given: &ProjectInstructions,
    now_ms: u64,
) -> (InstructionFile, io::Result<()>) {
    let hash = blake3::hash(given.text.as_bytes()).to_hex().to_string();
    let kept = fact_cache.load::<PreviousInstructions>();
    let (mut files, doubt) = match kept {
        Ok(files) => (files.unwrap_or_default(), Ok(())),
        Err(error) => (BTreeMap::new(), Err(error)),
    };
    let now = PreviousInstructions { hash: hash.clone(), at_ms: now_ms };
    let before = files.insert(given.name.clone(), now);
    // Files that no run reads any more are not kept for ever.
    files.retain(|name, _| INSTRUCTION_FILES.contains(&name.as_str()));
    (InstructionFile { path: given.name.clone(), hash, before }, doubt.and(fact_cache.store(files)))
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
        let world = project(&[]);
        let (state, workspace) = (world.path().join("state"), world.path().join("project"));
        let given = |name: &str, text: &str, now| {
            let given = ProjectInstructions { name: name.into(), text: text.into() };
            let (file, kept) = compare_and_store(fact_cache(&state, &workspace), &given, now);
            kept.unwrap();
            let same = file.before.as_ref().map(|before| before.hash == file.hash);
            (file.before.map(|before| before.at_ms), same)
        };
        assert_eq!(given("AGENTS.md", "a", 1), (None, None));
        assert_eq!(given("AGENTS.md", "a", 2), (Some(1), Some(true)));
        assert_eq!(given("CLAUDE.md", "a", 3), (None, None));
        assert_eq!(given("AGENTS.md", "b", 4), (Some(2), Some(false)));
        assert_eq!(given("AGENTS.md", "b", 5), (Some(4), Some(true)));
    }

    #[test]
    fn class_29_a_record_that_the_project_brings_along_is_not_believed() {
        let world = project(&[]);
        let state = world.path().join("state");
        let given = ProjectInstructions { name: "AGENTS.md".into(), text: "a".into() };
        let (file, kept) = compare_and_store(fact_cache(&state, world.path()), &given, 1);
        assert_eq!(file.before, None);
        assert!(kept.unwrap_err().to_string().contains("part of the workspace"));
    }

    #[test]
    fn instructions_that_cannot_be_used_are_said_and_do_not_end_the_run() {
        let (none, notice) = read(project(&[("AGENTS.md", b"\xff\xfe")]).path());
        assert_eq!(none, None);
        assert!(notice.unwrap().contains("UTF-8"));

        let root = project(&[]);
        std::fs::create_dir(root.path().join("AGENTS.md")).unwrap();
        assert!(read(root.path()).1.unwrap().contains("directory"));

        let root = project(&[]);
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("AGENTS.md")).unwrap();
        assert!(read(root.path()).1.unwrap().contains("leads out"));
    }
}
