//! Instructions for agents (`AGENTS.md` and others) of the user and the project: reading, and comparison with those of earlier runs.

use super::error::ConfigError;
use super::fact_cache::FactCache;
use super::text_file::{read_own_text, read_text, resolve_inside};
use agent_core::run_result::{InstructionFile, PreviousInstructions};
use agent_engine::nested_instructions::{INSTRUCTION_FILES, MAX_INSTRUCTION_FILE_BYTES};
use agent_messages as messages;
use agent_session::system_prompt::ProjectInstructions;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Names of the user's own instructions in the configuration directory, in order of preference.
const USER_FILES: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];

/// Instructions for the system message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundInstructions {
    /// The user's, then the project's, from the repository's root to the workspace.
    pub files: Vec<ProjectInstructions>,
    /// Warnings about files that exist but are unusable; they never end a run.
    pub warnings: Vec<String>,
}

impl FoundInstructions {
    /// Adds the first of `names` that has text. `read` returns the text of a name, and `path_of` its path for people and model.
    fn add(
        &mut self,
        names: &[&str],
        read: impl Fn(&str) -> Result<Option<String>, ConfigError>,
        path_of: impl Fn(&str) -> String,
    ) {
        for name in names {
            match read(name) {
                Ok(text) => {
                    let Some(text) = text.filter(|text| !text.trim().is_empty()) else { continue };
                    self.files.push(ProjectInstructions { path: path_of(name), text });
                    return;
                }
                Err(error) => {
                    self.warnings.push(messages::instructions_unusable(&path_of(name), &error.to_string()));
                }
            }
        }
    }
}

/// Reads the user's instructions in the directory `config`, and the project's from the root of its repository down to the
/// canonical `workspace`: of each directory the first file with text. A file above the workspace must belong to the user, as the
/// configuration does.
pub fn read(workspace: &Path, config: &Path) -> FoundInstructions {
    let mut found = FoundInstructions::default();
    let own = |name: &str| read_own_text(&config.join(name), MAX_INSTRUCTION_FILE_BYTES);
    found.add(&USER_FILES, own, |name| config.join(name).to_string_lossy().into_owned());
    let is_repository = |directory: &&Path| directory.join(".git").symlink_metadata().is_ok();
    let root = workspace.ancestors().find(is_repository).unwrap_or(workspace);
    let directories: Vec<&Path> = workspace.ancestors().take_while(|dir| dir.starts_with(root)).collect();
    for (depth, directory) in directories.into_iter().enumerate().rev() {
        let read = |name: &str| {
            let file = directory.join(name);
            if file.symlink_metadata().is_err() {
                return Ok(None);
            }
            let relative = file.strip_prefix(root).unwrap_or(&file);
            let path = resolve_inside(root, relative)?.ok_or_else(|| ConfigError::new("is a broken link"))?;
            let read = if depth == 0 { read_text } else { read_own_text };
            read(&path, MAX_INSTRUCTION_FILE_BYTES)
        };
        found.add(&INSTRUCTION_FILES, read, |name| format!("{}{name}", "../".repeat(depth)));
    }
    found
}

/// Returns the cache of the instructions' hashes, which is a file in the state directory of the workspace.
pub fn fact_cache<'a>(state: &'a Path, workspace: &'a Path) -> FactCache<'a> {
    FactCache { state, workspace, name: "instructions.json" }
}

/// Compares instructions that a run at `now_ms` uses, each a path and a text, with the stored hashes and replaces them. If two runs
/// start at the same time, one may overwrite the other's record; a later run then reports the change again.
///
/// # Errors
/// Fails when the stored record is not trustworthy or cannot be replaced; the comparison then reports no earlier version.
pub fn compare_and_store<'a>(
    fact_cache: FactCache<'_>,
    instructions: impl IntoIterator<Item = (&'a str, &'a str)>,
    now_ms: u64,
) -> (Vec<InstructionFile>, io::Result<()>) {
    let stored = fact_cache.load::<PreviousInstructions>();
    let (mut files, load_result) = match stored {
        Ok(files) => (files.unwrap_or_default(), Ok(())),
        Err(error) => (BTreeMap::new(), Err(error)),
    };
    let compared = instructions.into_iter().map(|(path, text)| {
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        let now = PreviousInstructions { hash: hash.clone(), at_ms: now_ms };
        let before = files.insert(path.to_owned(), now);
        InstructionFile { path: path.to_owned(), hash, bytes: 0, before }
    });
    let compared: Vec<InstructionFile> = compared.collect();
    // Files that no longer exist must not stay in the record for ever.
    files.retain(|path, _| fact_cache.workspace.join(path).symlink_metadata().is_ok());
    (compared, load_result.and(fact_cache.store(files)))
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

    fn found(root: &Path) -> (Vec<(String, String)>, Vec<String>) {
        let FoundInstructions { files, warnings } = read(root, &root.join("no configuration"));
        (files.into_iter().map(|file| (file.path, file.text)).collect(), warnings)
    }

    #[test]
    fn k08_the_first_known_name_wins() {
        let root = project(&[("CLAUDE.md", b"c"), ("AGENTS.md", b"a"), (".architect.md", b"x")]);
        assert_eq!(found(root.path()), (vec![("AGENTS.md".into(), "a".into())], Vec::new()));
        assert_eq!(read(project(&[]).path(), Path::new("/none")), FoundInstructions::default());
    }

    #[test]
    fn class_29_a_change_is_told_once_for_each_file() {
        let fixture = project(&[("AGENTS.md", b"x"), ("CLAUDE.md", b"x")]);
        let (state, workspace) = (fixture.path().join("state"), fixture.path());
        let stored = tempfile::tempdir().unwrap();
        assert!(!state.exists());
        let compare = |name: &str, text: &str, now| {
            let (mut files, stored) =
                compare_and_store(fact_cache(stored.path(), workspace), [(name, text)], now);
            stored.unwrap();
            let file = files.remove(0);
            let same = file.before.as_ref().map(|before| before.hash == file.hash);
            (file.before.map(|before| before.at_ms), same)
        };
        assert_eq!(compare("AGENTS.md", "a", 1), (None, None));
        assert_eq!(compare("AGENTS.md", "a", 2), (Some(1), Some(true)));
        assert_eq!(compare("CLAUDE.md", "a", 3), (None, None));
        assert_eq!(compare("AGENTS.md", "b", 4), (Some(2), Some(false)));
        assert_eq!(compare("AGENTS.md", "b", 5), (Some(4), Some(true)));
        assert_eq!(compare("gone/AGENTS.md", "a", 6), (None, None));
        assert_eq!(compare("gone/AGENTS.md", "a", 7), (None, None), "what does not exist is not recorded");
    }

    #[test]
    fn class_29_a_record_that_the_project_brings_along_is_not_believed() {
        let fixture = project(&[]);
        let state = fixture.path().join("state");
        let (files, stored) = compare_and_store(fact_cache(&state, fixture.path()), [("AGENTS.md", "a")], 1);
        assert_eq!(files[0].before, None);
        assert!(stored.unwrap_err().to_string().contains("part of the workspace"));
    }

    // Fault A17: an empty or broken file hid the next name.
    #[test]
    fn unusable_instructions_cause_a_notice_and_do_not_hide_the_next_name() {
        let claude = vec![("CLAUDE.md".to_owned(), "c".to_owned())];
        let root = project(&[("AGENTS.md", b"\xff\xfe"), ("CLAUDE.md", b"c")]);
        let (files, notices) = found(root.path());
        assert_eq!(files, claude);
        assert!(
            notices[0].contains("AGENTS.md: instructions not used") && notices[0].contains("UTF-8"),
            "{notices:?}"
        );

        let root = project(&[("AGENTS.md", b" \n"), ("CLAUDE.md", b"c")]);
        assert_eq!(found(root.path()), (claude.clone(), Vec::new()));

        let root = project(&[("CLAUDE.md", b"c")]);
        std::fs::create_dir(root.path().join("AGENTS.md")).unwrap();
        assert!(found(root.path()).1[0].contains("directory"));
        assert_eq!(found(root.path()).0, claude);

        for (target, problem) in [("/etc/passwd", "leaves the workspace"), ("nowhere", "broken link")] {
            let root = project(&[("CLAUDE.md", b"c")]);
            std::os::unix::fs::symlink(target, root.path().join("AGENTS.md")).unwrap();
            let (files, notices) = found(root.path());
            assert_eq!(files, claude);
            assert!(notices[0].contains(problem), "{notices:?}");
        }
    }

    // Fault A17
    #[test]
    fn instructions_are_read_from_the_root_of_the_repository_down_to_the_workspace() {
        let root = project(&[("AGENTS.md", b"root"), ("config", b"")]);
        for (path, text) in [
            ("repo/AGENTS.md", "top"),
            ("repo/pkg/CLAUDE.md", "package"),
            ("repo/pkg/b/AGENTS.md", "displaced"),
            ("repo/pkg/b/AGENTS.override.md", "inner"),
            ("own/AGENTS.md", "user"),
        ] {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            io::Write::write_all(&mut std::fs::File::create(file).unwrap(), text.as_bytes()).unwrap();
        }
        let (own, workspace) = (root.path().join("own"), root.path().join("repo/pkg/b"));
        let texts = || {
            let FoundInstructions { files, warnings } = read(&workspace, &own);
            assert_eq!(warnings, Vec::<String>::new());
            files.into_iter().map(|file| (file.path, file.text)).collect::<Vec<_>>()
        };
        let named = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
        };
        let user = own.join("AGENTS.md").to_string_lossy().into_owned();
        assert_eq!(texts(), named(&[(&user, "user"), ("AGENTS.override.md", "inner")]), "no repository");
        std::fs::create_dir(root.path().join("repo/.git")).unwrap();
        let all = [
            (&*user, "user"),
            ("../../AGENTS.md", "top"),
            ("../CLAUDE.md", "package"),
            ("AGENTS.override.md", "inner"),
        ];
        assert_eq!(texts(), named(&all));
    }
}
