//! The project's own instructions for agents: found and read, within limits.

use super::error::ConfigError;
use super::file::{inside, read_text};
use crate::agent::prompt::{INSTRUCTION_FILES, Instructions};
use std::path::Path;

/// Bytes of an instructions file that are read at all; what the model gets is cut to less.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The first of [`INSTRUCTION_FILES`] at the canonical root of the workspace, and a line for people about one that
/// exists but cannot be used: it never ends a run.
pub fn read(root: &Path) -> (Option<Instructions>, Option<String>) {
    let present = |name: &&&str| root.join(name).symlink_metadata().is_ok();
    let Some(name) = INSTRUCTION_FILES.iter().find(present) else { return (None, None) };
    let text = inside(root, name.as_ref()).and_then(|path| match path {
        Some(path) => read_text(&path, MAX_FILE_BYTES),
        None => Err(ConfigError::new("is a link to nothing")),
    });
    match text {
        Ok(text) => (text.map(|text| Instructions { name: (*name).to_owned(), text }), None),
        Err(error) => (None, Some(format!("{name}: project instructions not used: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            std::io::Write::write_all(
                &mut std::fs::File::create(directory.path().join(name)).unwrap(),
                bytes,
            )
            .unwrap();
        }
        directory
    }

    #[test]
    fn k08_the_first_known_name_wins() {
        let root = project(&[("CLAUDE.md", b"c"), ("AGENTS.md", b"a"), (".architect.md", b"x")]);
        let (found, notice) = read(root.path());
        assert_eq!(found, Some(Instructions { name: "AGENTS.md".into(), text: "a".into() }));
        assert_eq!(notice, None);
        assert_eq!(read(project(&[]).path()), (None, None));
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
