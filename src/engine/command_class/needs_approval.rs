//! Finds commands that need approval even in the sandbox: destructive ones and those that reach outside the workspace.

use super::named_files::{self, NamedFile};
use super::program::Program;
use super::walk::Command;
use agent_core::language::Language;
use agent_messages as messages;
use agent_text::lines::{QUOTE_CHARS, one_line};
use std::collections::BTreeSet;

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

/// Subcommands of git that reach other repositories.
const GIT_CONNECTS: &[&str] = &["clone", "fetch", "pull", "push", "send-email"];

/// Why a command needs approval in every mode that asks. A question names the last ones in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// It runs code that is not in its text.
    UnknownCode,
    /// Its text cannot be parsed.
    Unclear,
    /// It can show files that the file tools refuse.
    Protected,
    /// After a change of directory, this file can be outside the workspace.
    PerhapsOutside(String),
    /// This file is outside the workspace.
    Outside(String),
    /// This program reaches other machines or services.
    Connects(String),
    /// What this program does cannot be undone.
    Irreversible(String),
    /// It has characters that a terminal does not show.
    Hidden,
}

impl Risk {
    /// Describes the risk to the user.
    pub fn text(&self, language: Language) -> String {
        match self {
            Self::Unclear => messages::risk_unclear(language).to_owned(),
            Self::Hidden => messages::risk_hidden(language).to_owned(),
            Self::UnknownCode => messages::risk_unknown_code(language).to_owned(),
            Self::Protected => messages::risk_protected(language).to_owned(),
            Self::PerhapsOutside(path) => messages::risk_perhaps_outside(&quoted(path), language),
            Self::Outside(path) => messages::risk_outside(&quoted(path), language),
            Self::Connects(program) => messages::risk_connects(&quoted(program), language),
            Self::Irreversible(program) => messages::risk_irreversible(&quoted(program), language),
        }
    }
}

fn quoted(text: &str) -> String {
    one_line(text, QUOTE_CHARS)
}

/// Returns why a command needs approval in every mode that asks; empty if it does not.
pub(super) fn risks(command: &Command<'_>) -> BTreeSet<Risk> {
    let programs = command
        .programs
        .iter()
        .filter_map(|program| irreversible(program).or_else(|| reaches_outside(program)));
    let unknown = has_unknown_program(command).then_some(Risk::UnknownCode);
    programs.chain(file_outside(command)).chain(unknown).collect()
}

/// Returns the risk of a command that reads or writes files outside the workspace. Creating a symbolic link to one is not reading.
fn file_outside(command: &Command<'_>) -> Option<Risk> {
    let names = |program: &Program<'_>| program.name == "ln" && program.has_flag('s', "--symbolic");
    let only_names = command.programs.iter().any(names);
    let files = named_files::named(command).into_iter().filter(|file| file.write || !only_names);
    files.filter_map(|file| risk_of_file(file, !command.directories.is_empty())).max()
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

/// Returns the risk of a program that deletes data irrecoverably.
fn irreversible(program: &Program<'_>) -> Option<Risk> {
    let name = program.name.as_str();
    let is_recursive = || program.has_flag('r', "--recursive") || program.has_flag('R', "--recursive");
    let what = match name {
        "rm" if is_recursive() => "rm -r",
        "rm" if program.args.iter().any(|arg| !arg.is_literal) => name,
        "shred" | "srm" | "truncate" | "unlink" | "wipe" => name,
        "find" if program.args.iter().any(|arg| arg.text == "-delete") => "find -delete",
        "git" => return git_risk(program),
        _ => return None,
    };
    Some(Risk::Irreversible(what.to_owned()))
}

/// Returns the risk of git commands that lose uncommitted work or commits, change remote repositories or change global settings.
fn git_risk(program: &Program<'_>) -> Option<Risk> {
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
    let command = command.unwrap_or_default();
    git_is_risky(command, has).then(|| match command {
        "config" => Risk::Outside("git config".to_owned()),
        "submodule" if !arguments.contains(&"deinit") => Risk::Connects("git submodule".to_owned()),
        command if GIT_CONNECTS.contains(&command) => Risk::Connects(format!("git {command}")),
        command => Risk::Irreversible(format!("git {command}")),
    })
}

/// Checks whether a subcommand of git is a risk, if `has` returns which flags it has.
fn git_is_risky(command: &str, has: impl Fn(&[&str]) -> bool) -> bool {
    match command {
        "filter-branch" | "filter-repo" | "prune" | "rm" | "update-ref" => true,
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
        command => GIT_CONNECTS.contains(&command),
    }
}

/// Checks whether `word` is a group of one-letter flags that contains `flag`.
fn is_joined(word: &str, flag: &str) -> bool {
    let letters = |text: &str| text.starts_with('-') && !text.starts_with("--");
    letters(word) && letters(flag) && word.contains(flag.trim_start_matches('-'))
}

/// Returns the risk of a program that connects to other machines or to local services.
fn reaches_outside(program: &Program<'_>) -> Option<Risk> {
    let name = program.name.as_str();
    let first = program.operands().next().unwrap_or_default();
    let fetches = |name: &str, first: &str| {
        PACKAGE_COMMANDS.iter().any(|(names, words)| names.contains(&name) && words.contains(&first))
    };
    let is_module = name.starts_with("python") && program.args.first().is_some_and(|arg| arg.text == "-m");
    let second = program.operands().nth(1).unwrap_or_default();
    let what = if EXTERNAL_PROGRAMS.contains(&name) {
        name.to_owned()
    } else if fetches(name, first) {
        format!("{name} {first}")
    } else if is_module && fetches(first, second) {
        format!("{first} {second}")
    } else {
        return None;
    };
    Some(Risk::Connects(what))
}

/// Returns the risk of a file outside the workspace, judging by its name. After a change of directory, the name of a
/// written file does not determine its location.
fn risk_of_file(file: NamedFile, has_moved: bool) -> Option<Risk> {
    if is_outside(&file.path) {
        return Some(Risk::Outside(file.path));
    }
    let is_unknown = file.write && has_moved && !is_harmless_path(&file.path);
    is_unknown.then_some(Risk::PerhapsOutside(file.path))
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
