//! The files that a command plainly names: what it redirects to, what `tee` writes and what `cat` and the like show.
//!
//! A program does more than its words say. This stops the honest mistake; a wall is what the operating system builds.

use super::blocklist::{self, program};
use super::words::{self, Simple};

/// How deep substitutions and texts for other shells are looked into; deeper ones are blocked anyway.
const MAX_DEPTH: usize = 12;

/// What a program does with the files it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Shows or runs all of them.
    Reads,
    /// Shows all but the first word, which is a pattern or a script unless a flag gives one.
    ReadsAfterPattern,
    /// Reads all but the last, which it writes.
    Copies,
    /// Writes, moves or removes all of them.
    Writes,
    /// Takes them as `if=FILE` and `of=FILE`.
    Dd,
}

/// Programs whose arguments are files (spec.md 1.10 and their like).
const PROGRAMS: &[(Use, &[&str])] = &[
    (
        Use::Reads,
        &[
            ".", "base64", "bat", "cat", "cmp", "comm", "cut", "diff", "expand", "fold", "head", "hexdump",
            "less", "more", "nl", "od", "paste", "rev", "sort", "source", "strings", "tac", "tail", "uniq",
            "xxd", "zcat",
        ],
    ),
    (Use::ReadsAfterPattern, &["awk", "egrep", "fgrep", "gawk", "grep", "rg", "sed"]),
    (Use::Copies, &["cp", "install", "ln"]),
    (
        Use::Writes,
        &[
            "chgrp", "chmod", "chown", "mkdir", "mv", "rm", "rmdir", "shred", "tee", "touch", "truncate",
            "unlink",
        ],
    ),
    (Use::Dd, &["dd"]),
];

/// A file that a command names.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// The path as it stands there, quotes removed.
    pub path: String,
    /// Whether it is written.
    pub write: bool,
}

/// The files that `command` names, substitutions included.
pub fn named_files(command: &str) -> Vec<NamedFile> {
    let mut found = Vec::new();
    collect(command, 0, &mut found);
    found
}

fn collect(text: &str, depth: usize, found: &mut Vec<NamedFile>) {
    if depth > MAX_DEPTH {
        return;
    }
    let script = words::split(text);
    for simple in &script.commands {
        let named = |paths: &[String], write| {
            paths.iter().map(|path| NamedFile { path: path.clone(), write }).collect::<Vec<_>>()
        };
        found.extend(arguments(simple));
        found.extend(named(&simple.targets, true));
        found.extend(named(&simple.sources, false));
        let (name, args) = innermost(&simple.words);
        if let Some(text) = blocklist::text_to_run(&name, args) {
            collect(&text, depth + 1, found);
        }
    }
    for nested in &script.nested {
        collect(nested, depth + 1, found);
    }
}

/// The program that `words` run in the end: behind wrappers like `env` it is the first one that is known.
fn innermost(words: &[String]) -> (String, &[String]) {
    let (name, args) = program(words);
    if !blocklist::is_wrapper(&name) {
        return (name, args);
    }
    let plain = |word: &String| program(std::slice::from_ref(word)).0;
    let is_known = |name: &String| use_of(name).is_some() || blocklist::runs_text(name);
    let inner = args.iter().map(plain).enumerate().find(|(_, name)| is_known(name));
    inner.map_or((name, args), |(at, name)| (name, args.get(at + 1..).unwrap_or_default()))
}

fn use_of(name: &str) -> Option<Use> {
    PROGRAMS.iter().find(|(_, names)| names.contains(&name)).map(|(use_of, _)| *use_of)
}

/// The files among the arguments of a command. A flag is no file, but its value may be taken for one.
fn arguments(command: &Simple) -> Vec<NamedFile> {
    let (name, args) = innermost(&command.words);
    let Some(use_of) = use_of(&name) else { return Vec::new() };
    let named = |path: &str, write| NamedFile { path: path.to_owned(), write };
    let operands: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let last = operands.len().saturating_sub(1);
    match use_of {
        Use::Reads => operands.iter().map(|path| named(path, false)).collect(),
        Use::Writes => operands.iter().map(|path| named(path, true)).collect(),
        Use::Copies => operands.iter().enumerate().map(|(at, path)| named(path, at == last)).collect(),
        Use::ReadsAfterPattern => {
            let in_place = name == "sed" && has_flag(args, 'i', "--in-place");
            let has_pattern = has_flag(args, 'e', "--regexp") || has_flag(args, 'e', "--expression");
            let files = operands.iter().skip(usize::from(!has_pattern));
            files.map(|path| named(path, in_place)).collect()
        }
        Use::Dd => {
            let file = |arg: &&String, key, write| arg.strip_prefix(key).map(|path| named(path, write));
            operands.iter().filter_map(|arg| file(arg, "if=", false).or(file(arg, "of=", true))).collect()
        }
    }
}

/// Whether a flag is there, alone, among other letters or with a value.
fn has_flag(args: &[String], short: char, long: &str) -> bool {
    args.iter().any(|arg| match arg.strip_prefix('-') {
        Some(letters) if !letters.starts_with('-') => letters.contains(short),
        _ => arg.starts_with(long),
    })
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
        assert_eq!(named("git log .env"), []);
    }

    #[test]
    fn a_pattern_is_no_file() {
        assert_eq!(named("grep -n .env README"), all(false, &["README"]));
        assert_eq!(named("grep -ne x a b"), all(false, &["x", "a", "b"]));
        assert_eq!(named("sed -n 1p a"), all(false, &["a"]));
        assert_eq!(named("sed -Ei s/a/b/ a"), all(true, &["a"]));
    }

    #[test]
    fn copying_reads_and_writes_and_moving_writes() {
        assert_eq!(named("cp -r a b"), [("a".to_owned(), false), ("b".to_owned(), true)]);
        assert_eq!(named("mv a b"), all(true, &["a", "b"]));
        assert_eq!(named("dd if=a of=b bs=1"), [("a".to_owned(), false), ("b".to_owned(), true)]);
    }

    #[test]
    fn wrappers_and_texts_for_shells_are_looked_into() {
        for command in
            ["env A=1 cat a", "xargs -n 1 cat a", "bash -c 'cat a'", "eval cat a", "nice sh -ec 'cat a'"]
        {
            assert_eq!(named(command), all(false, &["a"]), "{command}");
        }
    }

    proptest! {
        #[test]
        fn any_text_names_files_in_time(text in "(cat |env |sh -c |eval |a |'|\"|-e |[|;<>&$(`)]){0,200}") {
            named_files(&text);
        }
    }
}
