//! What in a workspace makes programs run or gives permission when somebody else works there, a person or an agent, besides
//! its repository, and what does so in a home directory: one list each for the file tools and for commands.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Names at any depth for the tools. Commands are held to them in the root of the workspace, and below it in directories that
/// they did not make and that are not of packages.
pub const TOOL_CONFIGURATIONS: &[&str] = &[
    ".agent",
    ".agents",
    ".aider.conf.yml",
    ".aider.model.metadata.json",
    ".aider.model.settings.yml",
    ".amazonq",
    ".augment",
    ".claude",
    ".cline",
    ".clinerules",
    ".codebuddy",
    ".codex",
    ".continue",
    ".crush",
    ".crush.json",
    ".cursor",
    ".cursorrules",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".envrc",
    ".exrc",
    ".factory",
    ".fleet",
    ".gemini",
    ".gitmodules",
    ".goose",
    ".goosehints",
    ".helix",
    ".husky",
    ".idea",
    ".junie",
    ".kilocode",
    ".kilocodemodes",
    ".kiro",
    ".mcp.json",
    ".nvim.lua",
    ".nvimrc",
    ".opencode",
    ".openhands",
    ".qwen",
    ".roo",
    ".roomodes",
    ".rovodev",
    ".tabnine",
    ".trae",
    ".vibe",
    ".vscode",
    ".warp",
    ".windsurf",
    ".zed",
    "crush.json",
    "opencode.json",
    "opencode.jsonc",
];

/// What in a home directory a person's shells, desktop, editors and git start or obey.
pub const STARTUP_FILES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".cargo/bin",
    ".cargo/config.toml",
    ".config/autostart",
    ".config/emacs",
    ".config/environment.d",
    ".config/fish",
    ".config/git",
    ".config/nvim",
    ".config/systemd",
    ".config/tmux",
    ".cshrc",
    ".emacs",
    ".emacs.d",
    ".gdbinit",
    ".gitconfig",
    ".irbrc",
    ".kshrc",
    ".lldbinit",
    ".local/bin",
    ".login",
    ".pam_environment",
    ".profile",
    ".psqlrc",
    ".screenrc",
    ".tcshrc",
    ".tmux.conf",
    ".vim",
    ".vimrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// Directories of packages, which bring configurations of their own.
const PACKAGE_DIRECTORIES: [&str; 8] =
    [".tox", ".venv", "bower_components", "node_modules", "site-packages", "third_party", "vendor", "venv"];

/// Whether somebody's programs obey what is called so, also where file systems ignore case.
pub fn is_tool_configuration(name: &OsStr) -> bool {
    TOOL_CONFIGURATIONS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Whether `directory`, a path below the root, is one in which people work: not of packages, nor in what is a configuration
/// itself.
pub fn is_project_directory(directory: &Path) -> bool {
    !directory.iter().any(|part| {
        is_tool_configuration(part) || PACKAGE_DIRECTORIES.iter().any(|packages| part == *packages)
    })
}

/// The most links that are followed from one name (the kernel's own limit).
const MAX_LINKS: usize = 40;

/// The path from the root that a file pattern is, when it has no wildcard.
pub fn literal_path(pattern: &str) -> Option<&Path> {
    let path = Path::new(pattern.trim_start_matches("./").trim_start_matches('/'));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_path = is_plain && path != Path::new("") && !pattern.contains(['*', '?', '[', '{', '\\']);
    is_path.then_some(path)
}

/// Where links lead the protected `path` to in `workspace`, whether there is something or not; nothing where no link does, or
/// it leads outside or to all of the workspace.
pub fn protected_link_target(path: &Path, workspace: &Path) -> Option<PathBuf> {
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
