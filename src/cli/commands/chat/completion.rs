//! Completion at the prompt of `agent chat`: slash commands, and paths after `@`.

use crate::terminal::needs_escape;
use crate::workspace::Workspace;
use crate::workspace::walk::EntryKind;
use std::path::Path;

/// Maximum number of paths offered.
const MAX_PATHS: usize = 100;

/// Returns the `names` that begin with what was typed.
pub fn names(names: &[String], typed: &str) -> Vec<String> {
    names.iter().filter(|name| name.starts_with(typed)).cloned().collect()
}

/// Returns the files and directories of the workspace that begin with the path that was typed; none for an unreadable
/// directory. Names with control or invisible characters are left out, because the editor writes them to the terminal.
pub fn paths(root: &Path, typed: &str) -> Vec<String> {
    let (directory, name) = typed.rsplit_once('/').map_or(("", typed), |(directory, name)| (directory, name));
    let found = || {
        let workspace = Workspace::open(root).ok()?;
        let path = workspace.path(if directory.is_empty() { "." } else { directory }).ok()?;
        workspace.list(&path, None, usize::MAX).ok()
    };
    let entries = found().map(|listing| listing.entries).unwrap_or_default();
    let candidates = entries.iter().filter_map(|entry| {
        let path = entry.path.as_str();
        let file = path.rsplit('/').next().unwrap_or(path);
        let is_hidden = file.starts_with('.') && !name.starts_with('.');
        let end = if entry.kind == EntryKind::Directory { "/" } else { "" };
        let is_plain = !path.chars().any(needs_escape);
        (file.starts_with(name) && !is_hidden && is_plain).then(|| format!("{path}{end}"))
    });
    candidates.take(MAX_PATHS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_completed_below_the_workspace_only() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        for file in ["src/main.rs", "src/model.rs", "readme.md", ".hidden"] {
            std::fs::File::create(dir.path().join(file)).unwrap();
        }
        assert_eq!(paths(dir.path(), ""), ["readme.md", "src/"]);
        assert_eq!(paths(dir.path(), "src/m"), ["src/main.rs", "src/model.rs"]);
        assert_eq!(paths(dir.path(), ".h"), [".hidden"]);
        assert!(paths(dir.path(), "../").is_empty());
        assert!(paths(dir.path(), "/etc/").is_empty());
    }
}
