//! What in a workspace makes programs run or gives permission when somebody else works there, a person or an agent, besides
//! its repository: one list for the file tools and for commands.

use std::path::{Component, Path, PathBuf};

/// Names at any depth for the tools; commands are held to them in the root of the workspace.
pub const CONFIGURATIONS: &[&str] = &[
    ".agent",
    ".agents",
    ".aider.conf.yml",
    ".aider.model.metadata.json",
    ".aider.model.settings.yml",
    ".amazonq",
    ".claude",
    ".cline",
    ".clinerules",
    ".codex",
    ".continue",
    ".crush.json",
    ".cursor",
    ".cursorrules",
    ".devcontainer",
    ".envrc",
    ".gemini",
    ".gitmodules",
    ".goose",
    ".goosehints",
    ".husky",
    ".idea",
    ".junie",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".qwen",
    ".roo",
    ".roomodes",
    ".vscode",
    ".windsurf",
    ".zed",
    "crush.json",
    "opencode.json",
    "opencode.jsonc",
];

/// The most links that are followed from one name (the kernel's own limit).
const MAX_LINKS: usize = 40;

/// The path from the root that a file pattern is, when it has no wildcard.
pub fn literal(pattern: &str) -> Option<&Path> {
    let path = Path::new(pattern.trim_start_matches("./").trim_start_matches('/'));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_path = is_plain && path != Path::new("") && !pattern.contains(['*', '?', '[', '{', '\\']);
    is_path.then_some(path)
}

/// Where links lead the protected `path` to in `workspace`, whether there is something or not; nothing where no link does, or
/// it leads outside or to all of the workspace.
pub fn led_to(path: &Path, workspace: &Path) -> Option<PathBuf> {
    // Most do not exist, which one look tells, and to resolve a path takes one at each directory of it.
    path.symlink_metadata().ok()?;
    let mut real = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(there) = real.canonicalize() {
            real = there;
            break;
        }
        let target = real.parent()?.join(real.read_link().ok()?);
        real = target.parent()?.canonicalize().ok()?.join(target.file_name()?);
        if real.symlink_metadata().is_err() {
            break;
        }
    }
    (real != path && real != workspace && real.starts_with(workspace)).then_some(real)
}
