//! Removes temporary files that a killed edit left in the directory of its file.

use crate::Workspace;
use crate::path::RelPath;
use crate::replace::{Expected, TEMPORARY_PREFIX};
use rustix::fs::Dir;
use rustix::process::{Pid, getpid, test_kill_process};

/// Maximum number of directory entries to check.
const MAX_LISTED: usize = 10_000;

/// Result for the temporary files in the directory of a path.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Removed files: old content, or a part of the new.
    pub removed: Vec<RelPath>,
    /// Retained files, whose content may exist nowhere else, such as a save by another program during the edit.
    pub kept: Vec<RelPath>,
}

impl Workspace {
    /// Removes the temporary files of `path` that were left by dead processes. No part of `path` except the last may be a link.
    /// `before` is the content hash before the edit, if known. Once the file has another content, the temporary file contains
    /// the replaced content, and only the known old content is removed.
    pub fn clear_leftovers(&self, path: &RelPath, before: Option<&str>) -> Leftovers {
        let mut leftovers = Leftovers::default();
        let Ok(real) = self.resolve_directory(path) else { return leftovers };
        let Some((parent, _)) = real.split_last() else { return leftovers };
        // Both absent: a new file that did not exist yet.
        let untouched = self.hash_of(&real).as_deref() == before;
        for name in self.temporary_names(&parent) {
            let temporary = parent.join(&name);
            let Some(content) = self.hash_of(&temporary).filter(|_| !is_in_use(&name)) else { continue };
            let known = untouched || Some(content.as_str()) == before;
            if known && self.remove(&temporary, &Expected::Hash(content)).is_ok() {
                leftovers.removed.push(temporary);
            } else {
                leftovers.kept.push(temporary);
            }
        }
        leftovers
    }

    fn temporary_names(&self, directory: &RelPath) -> Vec<String> {
        let Ok(opened) = self.root_dir().open_directory(directory) else { return Vec::new() };
        let Ok(entries) = Dir::read_from(&opened) else { return Vec::new() };
        entries
            .take(MAX_LISTED)
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned()))
            .filter(|name| name.starts_with(TEMPORARY_PREFIX))
            .collect()
    }

    fn hash_of(&self, path: &RelPath) -> Option<String> {
        self.state_of(path).ok()?.hash().map(str::to_owned)
    }
}

/// Checks whether the process that created the temporary file `name` is still running and is not this one.
fn is_in_use(name: &str) -> bool {
    let maker = name.strip_prefix(TEMPORARY_PREFIX).and_then(|rest| rest.split('-').next());
    let pid = maker.and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
    pid.is_some_and(|pid| pid != getpid() && test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::hash;

    /// Creates a workspace with the file `a` containing `now` and a temporary file containing `left`, and returns the number of
    /// removed and of retained files if `a` contained `old` before.
    #[expect(clippy::disallowed_methods, reason = "the test is the process that was killed")]
    fn after_a_kill(now: &str, left: &str, old: Option<&str>) -> (usize, usize) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), now).unwrap();
        // No process has the largest possible id.
        std::fs::write(dir.path().join(format!("{TEMPORARY_PREFIX}{}-1", i32::MAX)), left).unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let path = workspace.path("a").unwrap();
        let before = old.map(|old| hash(old.as_bytes()));
        let leftovers = workspace.clear_leftovers(&path, before.as_deref());
        assert_eq!(
            std::fs::read_to_string(dir.path().join("a")).unwrap(),
            now,
            "the file itself is untouched"
        );
        (leftovers.removed.len(), leftovers.kept.len())
    }

    #[test]
    fn a_part_of_new_content_that_was_never_swapped_in_goes() {
        assert_eq!(after_a_kill("old", "ne", Some("old")), (1, 0));
        assert_eq!(
            after_a_kill("whatever", "ne", None),
            (0, 1),
            "it may contain a file that was edited unread"
        );
    }

    #[test]
    fn old_content_that_was_swapped_out_goes_and_anything_else_stays() {
        assert_eq!(after_a_kill("new", "old", Some("old")), (1, 0));
        assert_eq!(after_a_kill("new", "a person's save", Some("old")), (0, 1));
    }

    #[test]
    fn a_temporary_file_of_a_living_process_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero();
        std::fs::File::create(dir.path().join(format!("{TEMPORARY_PREFIX}{parent}-1"))).unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let path = workspace.path("a").unwrap();
        assert_eq!(workspace.clear_leftovers(&path, None), Leftovers::default());
    }

    #[test]
    fn a_part_of_a_new_file_that_is_not_there_yet_goes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::File::create(dir.path().join(format!("{TEMPORARY_PREFIX}{}-1", i32::MAX))).unwrap();
        let workspace = Workspace::open(dir.path()).unwrap();
        let leftovers = workspace.clear_leftovers(&workspace.path("a").unwrap(), None);
        assert_eq!((leftovers.removed.len(), leftovers.kept.len()), (1, 0));
    }
}
