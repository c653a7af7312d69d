//! Names of configuration files that make programs run or grant permissions, in a workspace and in a home directory.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Names protected at any depth from the file tools. For commands they are protected in the workspace root, and below it in
/// directories that commands did not create and that are not package directories.
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

/// Files in a home directory that the user's shells, desktop, editors and git run or read.
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

/// Package directories, which contain configurations of their own.
const PACKAGE_DIRECTORIES: [&str; 8] =
    [".tox", ".venv", "bower_components", "node_modules", "site-packages", "third_party", "vendor", "venv"];

/// Checks whether `name` is a configuration of a tool. Ignores case, as some file systems do.
pub fn is_tool_configuration(name: &OsStr) -> bool {
    TOOL_CONFIGURATIONS.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// Checks whether `directory`, a path below the root, is a project directory: neither in a package directory nor in a
/// configuration directory.
pub fn is_project_directory(directory: &Path) -> bool {
    !directory.iter().any(|part| {
        is_tool_configuration(part) || PACKAGE_DIRECTORIES.iter().any(|packages| part == *packages)
    })
}

/// Maximum number of links to follow from one name (the kernel's own limit).
const MAX_LINKS: usize = 40;

/// Returns the path of a file pattern without wildcards, relative to the root.
pub fn literal_path(pattern: &str) -> Option<&Path> {
    let path = Path::new(pattern.trim_start_matches("./").trim_start_matches('/'));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_path = is_plain && path != Path::new("") && !pattern.contains(['*', '?', '[', '{', '\\']);
    is_path.then_some(path)
}

/// Returns the target of links of the protected `path`, existing or not, if it is in `workspace`. `None` without links or if
/// the target is the whole workspace.
pub fn protected_link_target(path: &Path, workspace: &Path) -> Option<PathBuf> {
    // Most do not exist, which one call detects. Resolving a path takes one call for each directory of it.
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
