//! Finds commands that need approval even in the sandbox: destructive ones and those that reach outside the workspace.

use super::named_files::{self, NamedFile};
use super::program::Program;
use super::walk::Command;

/// Programs that connect to other machines or local services, or that download and run code.
const EXTERNAL_PROGRAMS: &[&str] = &[
    "aws",
    "az",
    "batch",
    "bunx",
    "crontab",
    "curl",
    "dig",
    "docker",
    "ftp",
    "gcloud",
    "gh",
    "glab",
    "host",
    "kubectl",
    "mail",
    "nc",
    "ncat",
    "netcat",
    "npx",
    "nslookup",
    "ping",
    "ping6",
    "pnpx",
    "podman",
    "scp",
    "sendmail",
    "service",
    "sftp",
    "socat",
    "ssh",
    "systemctl",
    "telnet",
    "terraform",
    "traceroute",
    "uvx",
    "wget",
];

/// Subcommands of package managers that download, install or publish, by program.
const PACKAGE_COMMANDS: &[(&[&str], &[&str])] = &[
    (
        &["bun", "npm", "pnpm", "yarn"],
        &[
            "add", "audit", "ci", "create", "dlx", "exec", "i", "init", "install", "publish", "update",
            "upgrade", "x",
        ],
    ),
    (
        &["pip", "pip3", "pipx", "uv"],
        &["add", "download", "install", "pip", "publish", "run", "sync", "tool"],
    ),
    (&["cargo"], &["add", "install", "login", "owner", "publish", "update", "yank"]),
    (&["go"], &["get", "install"]),
    (&["gem"], &["install", "push", "update"]),
];

/// Directories and devices outside the workspace that are safe to use.
const HARMLESS_PATHS: &[&str] = &[
    "/dev/fd/",
    "/dev/null",
    "/dev/random",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
    "/tmp/",
];

/// Checks whether a command needs approval in every mode that asks.
pub(super) fn needs_approval(command: &Command<'_>) -> bool {
    has_unknown_program(command)
        || command.programs.iter().any(|program| destroys(program) || reaches_outside(program))
        || touches_outside(command)
}

/// Checks whether a command reads or writes files outside the workspace. Creating a symbolic link to one is not reading.
fn touches_outside(command: &Command<'_>) -> bool {
    let names = |program: &Program<'_>| program.name == "ln" && program.has_flag('s', "--symbolic");
    let only_names = command.programs.iter().any(names);
    let mut files = named_files::named(command).into_iter().filter(|file| file.write || !only_names);
    files.any(|file| is_file_outside(&file, !command.directories.is_empty()))
}

/// Checks whether the name of a program is known only at run time.
fn has_unknown_program(command: &Command<'_>) -> bool {
    let mut programs = command.programs.iter();
    let first = programs.next();
    first.is_some_and(|program| !program.has_literal_name)
        || programs
            .clone()
            .find(|program| !program.is_option())
            .is_some_and(|program| !program.has_literal_name)
        || programs.any(|program| program.is_substituted)
}

/// Checks whether a program deletes data irrecoverably.
fn destroys(program: &Program<'_>) -> bool {
    match program.name.as_str() {
        "rm" => {
            program.has_flag('r', "--recursive")
                || program.has_flag('R', "--recursive")
                || program.args.iter().any(|arg| !arg.is_literal)
        }
        "shred" | "srm" | "truncate" | "unlink" | "wipe" => true,
        "find" => program.args.iter().any(|arg| arg.text == "-delete"),
        "git" => destroys_with_git(program),
        _ => false,
    }
}

/// Checks for git commands that lose uncommitted work or commits, change remote repositories or change global settings.
fn destroys_with_git(program: &Program<'_>) -> bool {
    let mut words = program.args.iter().map(|arg| arg.text.as_str());
    let mut command = words.next();
    while let Some(option) = command.filter(|word| word.starts_with('-')) {
        let takes_value = matches!(option, "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace");
        command = if takes_value { words.nth(1) } else { words.next() };
    }
    let arguments: Vec<&str> = words.collect();
    let has = |flags: &[&str]| {
        arguments.iter().any(|word| flags.iter().any(|flag| word == flag || is_joined(word, flag)))
    };
    git_destroys(command.unwrap_or_default(), has)
}

/// Checks whether a subcommand of git destroys with some of its arguments.
pub(super) fn may_destroy_with_git(command: &str) -> bool {
    git_destroys(command, |_| true) || git_destroys(command, |_| false)
}

/// Checks whether a subcommand of git destroys, if `has` returns which flags it has.
fn git_destroys(command: &str, has: impl Fn(&[&str]) -> bool) -> bool {
    match command {
        "clone" | "fetch" | "pull" | "push" | "send-email" | "filter-branch" | "filter-repo" | "prune"
        | "rm" | "update-ref" => true,
        "branch" => has(&["-d", "-D", "-f", "-M", "--delete", "--force"]),
        "checkout" => has(&["--", ".", "-f", "--force", "--ours", "--theirs"]),
        "clean" => !has(&["-n", "--dry-run"]),
        "config" => has(&["--global", "--system"]),
        "reflog" => has(&["delete", "expire"]),
        "reset" => has(&["--hard", "--keep", "--merge"]),
        "restore" => !has(&["-S", "--staged"]) || has(&["-W", "--worktree"]),
        "stash" => has(&["clear", "drop"]),
        "submodule" => has(&["add", "deinit", "update"]),
        "switch" => has(&["-f", "-C", "--discard-changes", "--force"]),
        "tag" => has(&["-d", "-f", "--delete", "--force"]),
        "worktree" => has(&["prune", "remove"]),
        _ => false,
    }
}

/// Checks whether `word` is a group of one-letter flags that contains `flag`.
fn is_joined(word: &str, flag: &str) -> bool {
    let letters = |text: &str| text.starts_with('-') && !text.starts_with("--");
    letters(word) && letters(flag) && word.contains(flag.trim_start_matches('-'))
}

/// Checks whether a program connects to other machines or to local services.
fn reaches_outside(program: &Program<'_>) -> bool {
    let name = program.name.as_str();
    let first = program.operands().next().unwrap_or_default();
    let fetches = |name: &str, first: &str| {
        PACKAGE_COMMANDS.iter().any(|(names, words)| names.contains(&name) && words.contains(&first))
    };
    let is_module = name.starts_with("python") && program.args.first().is_some_and(|arg| arg.text == "-m");
    let module = || fetches(first, program.operands().nth(1).unwrap_or_default());
    EXTERNAL_PROGRAMS.contains(&name) || fetches(name, first) || (is_module && module())
}

/// Checks whether a file may be outside the workspace, judging by its name. After a change of directory, the name of a
/// written file does not determine its location.
fn is_file_outside(file: &NamedFile, has_moved: bool) -> bool {
    is_outside(&file.path) || (file.write && has_moved && !is_harmless_path(&file.path))
}

/// Checks whether a command may run outside the workspace after earlier changes of directory.
pub(super) fn may_run_outside(command: &Command<'_>) -> bool {
    command.directories.iter().any(|directory| directory.as_deref().is_none_or(is_outside))
}

fn is_outside(path: &str) -> bool {
    let is_above = path.split('/').any(|part| part == "..");
    let is_elsewhere = path.starts_with(['/', '~']) && !is_harmless_path(path);
    is_above || is_elsewhere || path.starts_with("$HOME") || path.starts_with("${HOME")
}

fn is_harmless_path(path: &str) -> bool {
    path == "/tmp" || HARMLESS_PATHS.iter().any(|directory| path.starts_with(directory))
}
