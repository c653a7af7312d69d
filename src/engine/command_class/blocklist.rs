//! What never runs, in no mode: commands that destroy a machine, a home or a workspace, or take privileges.
//!
//! This is a net under honest mistakes, not a wall against a hostile command: a wall is what the operating system builds.

use super::words::{self, Simple};

/// How deep texts inside texts (substitutions, `sh -c`, `eval`) are looked into.
const MAX_DEPTH: usize = 12;

/// Words of a wrapper among which the program it runs is looked for: its own options and their values are fewer by far,
/// and looking at each of a hundred thousand words takes minutes.
const MAX_WRAPPER_WORDS: usize = 256;

/// Functions looked at for a fork bomb, which needs one.
const MAX_FUNCTIONS: usize = 256;

/// Programs that run the program named after them.
const WRAPPERS: &[&str] = &[
    "builtin", "busybox", "chroot", "command", "doas", "env", "exec", "flock", "ionice", "nice", "nohup",
    "parallel", "setsid", "stdbuf", "strace", "time", "timeout", "toybox", "watch", "xargs",
];

/// Programs that run the text they are given.
const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "sh", "zsh"];

/// Words before a command that are not its name.
const RESERVED: &[&str] =
    &["!", "{", "}", "if", "then", "elif", "else", "while", "until", "do", "time", "coproc"];

/// Programs that end or wipe the machine.
const MACHINE: &[&str] = &["halt", "poweroff", "reboot", "shutdown", "wipefs"];

/// The blocked pattern that `text` falls under, in words for the model.
pub(super) fn blocked(text: &str) -> Option<&'static str> {
    blocked_at(text, 0)
}

fn blocked_at(text: &str, depth: usize) -> Option<&'static str> {
    if depth > MAX_DEPTH {
        return Some("commands nested too deeply to be looked into");
    }
    if is_fork_bomb(text) {
        return Some("a fork bomb");
    }
    let script = words::split(text);
    let deeper = |text: &str| blocked_at(text, depth + 1);
    script
        .nested
        .iter()
        .find_map(|nested| deeper(nested))
        .or_else(|| piped_to_shell(&script.commands, &script.nested))
        .or_else(|| script.commands.iter().find_map(|command| blocked_command(command, depth)))
        .or_else(|| fed_to_shell(&script.commands).iter().find_map(|text| deeper(text)))
}

fn blocked_command(command: &Simple, depth: usize) -> Option<&'static str> {
    let (name, args) = program(&command.words);
    let itself = command.targets.iter().find_map(|target| blocked_target(target));
    let itself = itself.or_else(|| blocked_program(&name, args, depth));
    if !is_wrapper(&name) {
        return itself;
    }
    // Which word of a wrapper's is the program depends on its options, so any of them may be.
    let inner = (0..args.len().min(MAX_WRAPPER_WORDS)).find_map(|from| {
        // In front of an assignment stands the same program as behind it.
        let words = args.get(from..).filter(|words| !words.first().is_some_and(|word| is_prefix(word)))?;
        let (name, args) = program(words);
        blocked_program(&name, args, depth)
    });
    itself.or(inner)
}

/// The program that `words` name, in lower case and without its directory, and its arguments.
pub(super) fn program(words: &[String]) -> (String, &[String]) {
    let prefixes = words.iter().take_while(|word| is_prefix(word)).count();
    match words.get(prefixes..).and_then(<[String]>::split_first) {
        Some((name, args)) => (name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase(), args),
        None => (String::new(), &[]),
    }
}

/// Whether `word` may stand before the name of a program: an assignment or a reserved word.
fn is_prefix(word: &str) -> bool {
    let assigns = word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_' || char == '+')
    });
    assigns || RESERVED.contains(&word)
}

fn blocked_program(name: &str, args: &[String], depth: usize) -> Option<&'static str> {
    let deeper = |text: &str| blocked_at(text, depth + 1);
    match name {
        "sudo" | "su" | "doas" => Some("sudo, su, doas"),
        "rm" if is_recursive(args) && operands(args).any(is_precious) => {
            Some("rm -r of an absolute path, a home or the whole workspace")
        }
        "chmod" | "chown" | "chgrp" if is_recursive(args) && operands(args).any(is_precious) => {
            Some("chmod -R or chown -R of an absolute path, a home or the whole workspace")
        }
        "chmod" if operands(args).any(|mode| matches!(mode, "777" | "0777" | "a+rwx" | "ugo+rwx")) => {
            Some("chmod 777")
        }
        "dd" if args.iter().any(|arg| arg.strip_prefix("of=").is_some_and(is_device)) => {
            Some("dd to a device")
        }
        "pkill" if is_sigkill(args) && has_flag(args, 'f', "--full") => Some("pkill -9 -f"),
        "killall" if is_sigkill(args) => Some("killall -9"),
        "kill" if args.iter().any(|arg| arg == "-1") && args.len() > 1 => Some("kill of every process"),
        "find" => blocked_find(args, depth),
        "trap" => args.first().and_then(|text| deeper(text)),
        "env" => args.iter().skip_while(|arg| *arg != "-S").nth(1).and_then(|text| deeper(text)),
        "tee" => args.iter().find_map(|path| blocked_target(path)),
        _ if name.starts_with("mkfs") => Some("mkfs"),
        _ if MACHINE.contains(&name) => Some("ending or wiping the machine"),
        _ => text_to_run(name, args).and_then(|text| deeper(&text)),
    }
}

/// Whether the program named `name` runs the program named after it.
pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name)
}

/// Whether the program named `name` runs text that it is given.
pub(super) fn runs_text(name: &str) -> bool {
    name == "eval" || SHELLS.contains(&name)
}

/// The text that `eval TEXT…` or a shell's `-c TEXT` runs.
pub(super) fn text_to_run(name: &str, args: &[String]) -> Option<String> {
    if !runs_text(name) {
        return None;
    }
    if name == "eval" {
        return Some(args.join(" "));
    }
    let is_text_flag = |arg: &&String| !(arg.starts_with('-') && !arg.starts_with("--") && arg.contains('c'));
    args.iter().skip_while(is_text_flag).skip(1).find(|arg| !arg.starts_with('-')).cloned()
}

fn blocked_find(args: &[String], depth: usize) -> Option<&'static str> {
    let is_start = |arg: &&String| !arg.starts_with('-') || matches!(arg.as_str(), "-L" | "-P" | "-H");
    let is_precious_start = args.iter().take_while(is_start).any(|path| is_precious(path) && path != ".");
    let executes = |arg: &&String| matches!(arg.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let actions = args.iter().enumerate().filter(|(_, arg)| executes(arg));
    let mut programs = actions.map(|(at, _)| program(args.get(at + 1..).unwrap_or_default()));
    let found = programs.find_map(|(name, args)| {
        let removes = is_precious_start && matches!(name.as_str(), "rm" | "shred" | "unlink");
        if removes {
            Some("find -exec rm over an absolute path or a home")
        } else {
            blocked_program(&name, args, depth)
        }
    });
    let deletes = is_precious_start && args.iter().any(|arg| arg == "-delete");
    found.or(deletes.then_some("find -delete over an absolute path or a home"))
}

/// A download whose text a shell runs.
fn piped_to_shell(commands: &[Simple], nested: &[String]) -> Option<&'static str> {
    const PATTERN: &str = "curl or wget into a shell";
    let downloads = |command: &Simple| matches!(program(&command.words).0.as_str(), "curl" | "wget");
    let mut downloaded = false;
    for command in commands {
        downloaded = downloads(command) || (downloaded && command.is_piped_into);
        let (name, _) = program(&command.words);
        let runs_text = SHELLS.contains(&name.as_str()) || matches!(name.as_str(), "eval" | "source" | ".");
        let substituted = || nested.iter().any(|text| words::split(text).commands.iter().any(downloads));
        if runs_text && ((downloaded && command.is_piped_into) || substituted()) {
            return Some(PATTERN);
        }
    }
    None
}

/// Texts that a shell reads from its standard input: here-documents and what `echo` pipes into it.
fn fed_to_shell(commands: &[Simple]) -> Vec<String> {
    let mut fed = Vec::new();
    let mut said = String::new();
    for command in commands {
        let (name, args) = program(&command.words);
        if !command.is_piped_into {
            said.clear();
        }
        if SHELLS.contains(&name.as_str()) {
            fed.push(format!("{said}\n{}", command.documents));
        }
        said.push_str(&command.documents);
        if matches!(name.as_str(), "echo" | "printf") {
            said.push_str(&args.join(" "));
        }
    }
    fed
}

/// `NAME(){ NAME|NAME& };NAME` with any spaces.
fn is_fork_bomb(text: &str) -> bool {
    let packed: String = text.chars().filter(|char| !char.is_whitespace()).collect();
    packed.match_indices("(){").take(MAX_FUNCTIONS).any(|(at, _)| {
        let (before, body) = packed.split_at(at);
        let name = before.rsplit([';', '&', '|', '{', '(']).next().unwrap_or_default();
        !name.is_empty() && body.contains(&format!("{name}|{name}&"))
    })
}

fn operands(args: &[String]) -> impl Iterator<Item = &str> {
    args.iter().map(String::as_str).filter(|arg| !arg.starts_with('-'))
}

fn has_flag(args: &[String], short: char, long: &str) -> bool {
    args.iter()
        .any(|arg| arg == long || (arg.starts_with('-') && !arg.starts_with("--") && arg.contains(short)))
}

fn is_recursive(args: &[String]) -> bool {
    let no_preserve = args.iter().any(|arg| arg.starts_with("--no-pres"));
    no_preserve || has_flag(args, 'r', "--recursive") || has_flag(args, 'R', "--recursive")
}

fn is_sigkill(args: &[String]) -> bool {
    args.iter().any(|arg| {
        let signal = arg.trim_start_matches('-').to_ascii_uppercase();
        matches!(signal.as_str(), "9" | "KILL" | "SIGKILL" | "SIGNAL=9" | "SIGNAL=KILL" | "S9" | "SKILL")
    })
}

/// Whether losing `path` loses a machine, a home or the workspace.
fn is_precious(path: &str) -> bool {
    let plain = path.trim_end_matches(['/', '*', '.']);
    plain.is_empty()
        || path.starts_with(['/', '~'])
        || path.starts_with("$HOME")
        || path.starts_with("${HOME")
}

/// Whether redirecting to `path` destroys a device or what a login shell runs.
fn blocked_target(path: &str) -> Option<&'static str> {
    if path.starts_with("/dev/") && is_device(path) {
        return Some("writing to a device");
    }
    let home = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|home| path.strip_prefix(home));
    let is_dot_file = home.is_some_and(|rest| rest.starts_with('.') && !rest.contains('/'));
    is_dot_file.then_some("overwriting a dot file of the home directory")
}

/// Whether `path` is a device that holds data.
fn is_device(path: &str) -> bool {
    const HARMLESS: &[&str] =
        &["null", "zero", "stdout", "stderr", "stdin", "tty", "full", "random", "urandom"];
    path.strip_prefix("/dev/").is_some_and(|name| !HARMLESS.contains(&name) && !name.starts_with("fd/"))
}
