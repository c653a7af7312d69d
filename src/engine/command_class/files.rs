//! The files that a command plainly names: what it redirects to, what `tee` writes and what `cat` and the like show.
//!
//! A program does more than its words say. This stops the honest mistake; a wall is what the operating system builds.

use super::blocklist::program;
use super::words;

/// How deep substitutions are looked into; deeper ones are blocked anyway.
const MAX_DEPTH: usize = 12;

/// Programs that show the files they are given (spec.md 1.10).
const SHOWS: [&str; 5] = ["cat", "head", "less", "more", "tail"];

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
        let (name, arguments) = program(&simple.words);
        let writes = name == "tee";
        let arguments = arguments.iter().filter(|_| writes || SHOWS.contains(&name.as_str()));
        found.extend(arguments.map(|path| NamedFile { path: path.clone(), write: writes }));
        found.extend(simple.targets.iter().map(|path| NamedFile { path: path.clone(), write: true }));
    }
    for nested in &script.nested {
        collect(nested, depth + 1, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(command: &str) -> Vec<(String, bool)> {
        named_files(command).into_iter().map(|file| (file.path, file.write)).collect()
    }

    #[test]
    fn redirections_and_tee_write() {
        let written =
            |paths: &[&str]| paths.iter().map(|path| ((*path).to_owned(), true)).collect::<Vec<_>>();
        assert_eq!(named("echo x > .env 2>>'a b'"), written(&[".env", "a b"]));
        assert_eq!(named("echo x | /usr/bin/tee -a .env log"), written(&["-a", ".env", "log"]));
        assert_eq!(named("ls; echo $(date > \".env\")"), written(&[".env"]));
        assert_eq!(named("echo 'x > .env' tee .env"), written(&[]));
    }

    #[test]
    fn showing_reads() {
        assert_eq!(named("cat .env"), [(".env".to_owned(), false)]);
        assert_eq!(
            named("A=1 head -n1 .env > out"),
            [("-n1".to_owned(), false), (".env".to_owned(), false), ("out".to_owned(), true)]
        );
        assert_eq!(named("git log .env"), []);
    }
}
