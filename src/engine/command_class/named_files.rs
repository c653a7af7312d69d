//! Finds the files that a command names: redirections and the arguments of known programs such as `cat` and `tee`.
//!
//! Programs may use other files too. This prevents accidents; only the sandbox protects against hostile commands.

use super::program::Program;
use super::walk::{self, Command, ScriptPart};
use agent_text::shell::Direction;

/// How a program uses its file arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileUse {
    /// Reads all of them.
    Reads,
    /// Reads all but the first argument, which is a pattern or script unless an option contains it.
    ReadsAfterPattern,
    /// Reads all but the last and writes the last.
    Copies,
    /// Writes, moves or removes all of them.
    Writes,
    /// Reads `if=FILE` and writes `of=FILE`.
    Dd,
}

/// Programs whose arguments are files.
const PROGRAMS: &[(FileUse, &[&str])] = &[
    (
        FileUse::Reads,
        &[
            ".", "base64", "bat", "bzip2", "cat", "cmp", "comm", "cut", "diff", "expand", "fold", "gzip",
            "head", "hexdump", "less", "more", "nl", "od", "paste", "rev", "sort", "source", "strings",
            "tac", "tail", "tar", "uniq", "wc", "xxd", "xz", "zcat", "zip", "zstd",
        ],
    ),
    (FileUse::ReadsAfterPattern, &["awk", "egrep", "fgrep", "gawk", "grep", "rg", "sed"]),
    (FileUse::Copies, &["cp", "install", "ln", "rsync", "scp", "split"]),
    (
        FileUse::Writes,
        &[
            "chgrp", "chmod", "chown", "ed", "ex", "mkdir", "mv", "patch", "rm", "rmdir", "shred", "tee",
            "touch", "truncate", "unlink",
        ],
    ),
    (FileUse::Dd, &["dd"]),
];

/// A file that a command names.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The path as written in the command, without quotes.
    pub path: String,
    /// Whether it is written.
    pub write: bool,
}

/// Returns the files that `command` names, including those in substitutions. A file named after `cd` is returned relative
/// to the start directory and to the new directory.
pub fn named_files(command: &str) -> Vec<NamedFile> {
    let mut found = Vec::new();
    walk::walk(command, &mut |part| {
        if let ScriptPart::Command(command) = part {
            found.extend(named(command));
        }
    });
    found
}

/// Returns the files that one simple command names, relative to the directory in which the whole text starts.
pub(super) fn named(command: &Command<'_>) -> Vec<NamedFile> {
    let files = named_as_written(command);
    let below = |directory: &String| {
        let there =
            |file: &NamedFile| NamedFile { path: walk::join(directory, &file.path), write: file.write };
        files.iter().map(there).collect::<Vec<_>>()
    };
    let placed: Vec<_> = command.directories.iter().flatten().flat_map(below).collect();
    files.into_iter().chain(placed).collect()
}

/// Returns the files that one simple command names, as written.
fn named_as_written(command: &Command<'_>) -> Vec<NamedFile> {
    // With wrappers such as `env`, the first known program counts.
    let mut found = command.programs.iter().find_map(arguments).unwrap_or_default();
    found.extend(command.simple.redirections.iter().map(|redirection| NamedFile {
        path: redirection.target.text.clone(),
        write: redirection.direction == Direction::Write,
    }));
    found
}

/// Returns the file arguments of a known program. The value of an option may be counted as a file.
fn arguments(program: &Program<'_>) -> Option<Vec<NamedFile>> {
    let operands: Vec<&str> = program.operands().collect();
    let named = |path: &str, write| NamedFile { path: path.to_owned(), write };
    if program.name == "git" {
        let written = git_operands(&operands, &["checkout", "mv", "restore", "rm"]).iter();
        let shown = git_operands(&operands, &["blame", "cat-file", "diff", "show"]).iter();
        let shown = shown.map(|path| path.split_once(':').map_or(*path, |(_, path)| path));
        return Some(
            written.map(|path| named(path, true)).chain(shown.map(|path| named(path, false))).collect(),
        );
    }
    let (use_of, _) = PROGRAMS.iter().find(|(_, names)| names.contains(&program.name.as_str()))?;
    let last = operands.len().saturating_sub(1);
    Some(match use_of {
        FileUse::Reads => operands.iter().map(|path| named(path, false)).collect(),
        FileUse::Writes => operands.iter().map(|path| named(path, true)).collect(),
        FileUse::Copies => operands.iter().enumerate().map(|(at, path)| named(path, at == last)).collect(),
        FileUse::ReadsAfterPattern => {
            let in_place = program.name == "sed" && program.has_flag('i', "--in-place");
            let has_pattern = program.has_flag('e', "--regexp") || program.has_flag('e', "--expression");
            let files = operands.iter().skip(usize::from(!has_pattern));
            files.map(|path| named(path, in_place)).collect()
        }
        FileUse::Dd => {
            let file = |arg: &&str, key, write| arg.strip_prefix(key).map(|path| named(path, write));
            operands.iter().filter_map(|arg| file(arg, "if=", false).or(file(arg, "of=", true))).collect()
        }
    })
}

/// Returns the operands after the first of the git subcommands `commands`.
fn git_operands<'a>(operands: &'a [&'a str], commands: &[&str]) -> &'a [&'a str] {
    let at = operands.iter().position(|word| commands.contains(word));
    at.and_then(|at| operands.get(at + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn named(command: &str) -> Vec<(String, bool)> {
        named_files(command).into_iter().map(|file| (file.path, file.write)).collect()
    }

    fn all(write: bool, paths: &[&str]) -> Vec<(String, bool)> {
        paths.iter().map(|path| ((*path).to_owned(), write)).collect()
    }

    #[test]
    fn redirections_and_tee_write() {
        assert_eq!(named("echo x > .env 2>>'a b'"), all(true, &[".env", "a b"]));
        assert_eq!(named("echo x | /usr/bin/tee -a .env log"), all(true, &[".env", "log"]));
        assert_eq!(named("ls; echo $(date > \".env\")"), all(true, &[".env"]));
        assert_eq!(named("echo 'x > .env' tee .env"), []);
        assert_eq!(named("echo x >& .env; make 2>&1 >&-"), all(true, &[".env"]));
    }

    #[test]
    fn showing_reads() {
        assert_eq!(named("cat .env"), all(false, &[".env"]));
        assert_eq!(named("A=1 head -n1 .env > out"), [(".env".to_owned(), false), ("out".to_owned(), true)]);
        assert_eq!(named("python < .env; cat <<< text"), all(false, &[".env"]));
        assert_eq!(named("git log .env; git add .env"), []);
        assert_eq!(named("git diff HEAD .env; git show -q HEAD:.env"), all(false, &["HEAD", ".env", ".env"]));
        assert_eq!(named("tar -czf out .env; wc .env"), all(false, &["out", ".env", ".env"]));
    }

    #[test]
    fn a_pattern_is_no_file() {
        assert_eq!(named("grep -n .env README"), all(false, &["README"]));
        assert_eq!(named("grep -ne x a b"), all(false, &["x", "a", "b"]));
        assert_eq!(named("grep --regexp=x a; sed --expression=p b"), all(false, &["a", "b"]));
        assert_eq!(named("sed -n 1p a"), all(false, &["a"]));
        assert_eq!(named("sed -Ei s/a/b/ a"), all(true, &["a"]));
    }

    #[test]
    fn copying_reads_and_writes_and_moving_writes() {
        assert_eq!(named("cp -r a b"), [("a".to_owned(), false), ("b".to_owned(), true)]);
        assert_eq!(named("mv a b"), all(true, &["a", "b"]));
        let both = [("{}".to_owned(), false), ("b".to_owned(), true)];
        assert_eq!(named("find . -exec cp {} b ';' -exec cp {} b \\;"), both);
        assert_eq!(named("patch -p1 a"), all(true, &["a"]));
        assert_eq!(named("rsync -a a b"), [("a".to_owned(), false), ("b".to_owned(), true)]);
        assert_eq!(named("ln -s a b"), [("a".to_owned(), false), ("b".to_owned(), true)]);
        assert_eq!(
            named("git -C d checkout -q -- a b; git restore a; git log c"),
            all(true, &["a", "b", "a"])
        );
        assert_eq!(named("dd if=a of=b bs=1"), [("a".to_owned(), false), ("b".to_owned(), true)]);
    }

    #[test]
    fn wrappers_and_texts_for_shells_are_looked_into() {
        assert_eq!(named("echo cat a | sh; sh <<E\ncat b\nE"), all(false, &["a", "b"]));
        for command in
            ["env A=1 cat a", "xargs -n 1 cat a", "bash -c 'cat a'", "eval cat a", "nice sh -ec 'cat a'"]
        {
            assert_eq!(named(command), all(false, &["a"]), "{command}");
        }
    }

    #[test]
    fn files_are_named_from_where_the_command_began() {
        assert_eq!(named("cd .git && echo x > hooks/a"), all(true, &["hooks/a", ".git/hooks/a"]));
        assert_eq!(named("cd a; cd /b; touch c"), all(true, &["c", "a/c", "/b/c"]));
        assert_eq!(named("cd \"$x\"; cat ~/a"), all(false, &["~/a"]));
    }

    proptest! {
        #[test]
        fn any_text_names_files_in_time(text in "(cat |env |sh -c |eval |a |'|\"|-e |[|;<>&$(`)]){0,200}") {
            named_files(&text);
        }
    }
}
