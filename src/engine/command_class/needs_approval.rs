//! What a person is asked about however well it is contained: what cannot be undone, what reaches beyond the workspace,
//! and what leaves the machine.

use super::named_files::{self, NamedFile};
use super::program::Program;
use super::walk::Command;

/// Programs that speak with other machines or with services of this one, or that fetch and run what nobody has seen.
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

/// What fetches, installs or publishes, by the first word of a package manager.
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

/// Directories and devices that are nobody's: temporary files, and what holds nothing.
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

/// Whether a person is asked about a command in every mode that asks.
pub(super) fn needs_approval(command: &Command<'_>) -> bool {
    has_unknown_program(command)
        || command.programs.iter().any(|program| destroys(program) || reaches_outside(program))
        || touches_outside(command)
}

/// Whether a command shows or writes what is outside of the workspace. A symbolic link only names it.
fn touches_outside(command: &Command<'_>) -> bool {
    let names = |program: &Program<'_>| program.name == "ln" && program.has_flag('s', "--symbolic");
    let only_names = command.programs.iter().any(names);
    let mut files = named_files::named(command).into_iter().filter(|file| file.write || !only_names);
    files.any(|file| is_file_outside(&file, !command.directories.is_empty()))
}

/// Whether nobody can tell what runs: the name of the program is made when it runs.
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

/// Whether a program takes away what only a copy could bring back.
fn destroys(program: &Program<'_>) -> bool {
    match program.name.as_str() {
        "rm" => {
            program.has_flag('r', "--recursive")
                || program.has_flag('R', "--recursive")
                || program.args.iter().any(|arg| !arg.is_literal)
        }
        "shred" | "srm" | "wipe" => true,
        "git" => destroys_with_git(program),
        _ => false,
    }
}

/// Uncommitted work, commits that only one name leads to, the repository of others, settings for all repositories.
fn destroys_with_git(program: &Program<'_>) -> bool {
    let mut words = program.args.iter().map(|arg| arg.text.as_str());
    let mut command = words.next();
    while let Some(option) = command.filter(|word| word.starts_with('-')) {
        let takes_value = matches!(option, "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace");
        command = if takes_value { words.nth(1) } else { words.next() };
    }
    let given: Vec<&str> = words.collect();
    let has = |flags: &[&str]| {
        given.iter().any(|word| flags.iter().any(|flag| word == flag || is_joined(word, flag)))
    };
    match command.unwrap_or_default() {
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

/// Whether `word` is several one-letter flags in one, and `flag` among them.
fn is_joined(word: &str, flag: &str) -> bool {
    let letters = |text: &str| text.starts_with('-') && !text.starts_with("--");
    letters(word) && letters(flag) && word.contains(flag.trim_start_matches('-'))
}

/// Whether a program reaches other machines, or the services of this one.
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

/// Whether a file is outside of the workspace, as far as its name tells. What is written somewhere else than where the
/// command began is nowhere that its name tells.
fn is_file_outside(file: &NamedFile, has_moved: bool) -> bool {
    is_outside(&file.path) || (file.write && has_moved && !is_harmless_path(&file.path))
}

/// Whether a command may run outside of the workspace because of those before it.
pub(super) fn may_run_outside(command: &Command<'_>) -> bool {
    command.directories.iter().any(|place| place.as_deref().is_none_or(is_outside))
}

fn is_outside(path: &str) -> bool {
    let is_above = path.split('/').any(|part| part == "..");
    let is_elsewhere = path.starts_with(['/', '~']) && !is_harmless_path(path);
    is_above || is_elsewhere || path.starts_with("$HOME") || path.starts_with("${HOME")
}

fn is_harmless_path(path: &str) -> bool {
    path == "/tmp" || HARMLESS_PATHS.iter().any(|place| path.starts_with(place))
}
