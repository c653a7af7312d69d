//! Completion at the prompt of `agent chat`: slash commands, and paths after `@` and `/image`.

use agent_terminal::line_editor::Candidate;
use agent_terminal::needs_escape;
use agent_workspace::Workspace;
use agent_workspace::walk::EntryKind;
use std::borrow::Cow;
use std::path::Path;

/// Maximum number of paths offered.
const MAX_PATHS: usize = 100;

/// Returns the commands that begin with what was typed, without those that the terminal must not show.
pub fn commands(commands: &[Candidate], typed: &str) -> Vec<Candidate> {
    commands
        .iter()
        .filter(|command| command.text.starts_with(typed) && is_plain(&command.text))
        .cloned()
        .collect()
}

/// Checks that `name` has no control or invisible characters, because the editor writes it to the terminal.
fn is_plain(name: &str) -> bool {
    !name.chars().any(needs_escape)
}

/// Returns the candidates for the last word of `line`, a slash command with arguments: for `/image` the files below `directory`.
pub fn arguments(directory: &Path, line: &str) -> Vec<String> {
    let Some(files) = line.strip_prefix("/image ") else { return Vec::new() };
    let typed = files.rsplit(char::is_whitespace).next().unwrap_or_default();
    let quoted = |path: &String| shlex::try_quote(path).map(Cow::into_owned).ok();
    paths(directory, typed).iter().filter_map(quoted).collect()
}

/// Returns the files and directories below `root` that begin with the path that was typed; none for an unreadable
/// directory, and without those that the terminal must not show.
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
        (file.starts_with(name) && !is_hidden && is_plain(path)).then(|| format!("{path}{end}"))
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
        for file in ["src/main.rs", "src/model.rs", "readme.md", "two words.gif", ".hidden"] {
            std::fs::File::create(dir.path().join(file)).unwrap();
        }
        assert_eq!(paths(dir.path(), ""), ["readme.md", "src/", "two words.gif"]);
        assert_eq!(paths(dir.path(), "src/m"), ["src/main.rs", "src/model.rs"]);
        assert_eq!(paths(dir.path(), ".h"), [".hidden"]);
        assert!(paths(dir.path(), "../").is_empty());
        assert!(paths(dir.path(), "/etc/").is_empty());
        assert_eq!(arguments(dir.path(), "/image a.png src/ma"), ["src/main.rs"]);
        assert_eq!(arguments(dir.path(), "/image two"), ["'two words.gif'"]);
        assert!(arguments(dir.path(), "/model src/ma").is_empty());
    }
}
