//! Recognizes commands that move, overwrite or replace the root directory, a home, the workspace or its `.git`.

use super::program::Program;
use super::walk::{Command, join};
use agent_text::shell::{Direction, Word};
use std::path::{Component, Path, PathBuf};

/// Description of the blocked pattern.
pub(super) const LOST: &str =
    "moving, overwriting or linking away a home, the file system, the workspace or its .git";

/// Expansions to the directory in which a command runs or to the workspace.
const WORKING_DIRECTORY: &[&str] =
    &["$PWD", "${PWD}", "$(pwd)", "`pwd`", "$(pwd -P)", "$(git rev-parse --show-toplevel)"];

/// The workspace and the home directory, as absolute paths with resolved links.
#[derive(Debug, Clone)]
pub(super) struct Roots {
    workspace: PathBuf,
    home: PathBuf,
}

impl Default for Roots {
    /// Returns impossible paths, for use when the real ones are unknown.
    fn default() -> Self {
        Self { workspace: "/\0/workspace".into(), home: "/\0/home".into() }
    }
}

/// Kind of a protected directory that a word names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    /// The root of the workspace.
    Workspace,
    /// The workspace's `.git`, a home directory, the root of the file system, or a directory that contains one of these.
    Other,
}

impl Roots {
    /// Creates the roots of a run in `workspace` by the user with the directory `home`.
    pub(super) fn new(workspace: &Path, home: Option<&Path>) -> Self {
        let unknown = Self::default();
        Self { workspace: workspace.to_owned(), home: home.map_or(unknown.home, Path::to_owned) }
    }

    /// Checks whether `command` moves, overwrites or replaces a root.
    pub(super) fn are_lost(&self, command: &Command<'_>) -> bool {
        let written = command.simple.redirections.iter().filter(|file| file.direction == Direction::Write);
        let is_root = |word: &Word| self.root(word, command.directories).is_some();
        written.map(|file| &file.target).any(is_root)
            || command.programs.iter().any(|program| self.loses(program, command.directories))
    }

    fn loses(&self, program: &Program<'_>, directories: &[Option<String>]) -> bool {
        let (files, has_target) = operands(program);
        let is_root = |word: &&Word| self.root(word, directories).is_some();
        let ends = if has_target { None } else { files.split_last().filter(|(_, first)| !first.is_empty()) };
        let (target, sources) = ends.map_or((None, &*files), |(last, first)| (Some(last), first));
        let is_exact = program.has_flag('T', "--no-target-directory");
        match program.name.as_str() {
            "mv" => sources.iter().any(is_root) || (is_exact && target.is_some_and(&is_root)),
            "cp" | "install" => {
                let empties =
                    || sources.iter().any(|word| matches!(word.text.as_str(), "/dev/null" | "/dev/zero"));
                let replaces = is_exact || program.has_flag('\0', "--remove-destination") || empties();
                replaces && target.is_some_and(&is_root)
            }
            "ln" => target.is_some_and(|target| self.is_linked_over(program, target, directories)),
            "rsync" => {
                let has = |option: &str| program.args.iter().any(|arg| arg.text.starts_with(option));
                (has("--del") && target.is_some_and(&is_root))
                    || (has("--remove-source-files") && sources.iter().any(is_root))
            }
            "rename" => {
                let is_expression = files.first().is_some_and(|word| word.text.contains('/'));
                files.iter().skip(if is_expression { 1 } else { 2 }).any(is_root)
            }
            "tee" | "truncate" => files.iter().any(is_root),
            "dd" => files.iter().filter(|word| word.text.starts_with("of=")).any(|word| {
                let [text, raw] = [&word.text, &word.raw].map(|text| text.replacen("of=", "", 1));
                self.root(&Word { text, raw, is_literal: word.is_literal }, directories).is_some()
            }),
            _ => false,
        }
    }

    /// Checks whether a link replaces a root. A link with a directory as its target is created inside it: `ln -s ../a .` is
    /// harmless.
    fn is_linked_over(&self, program: &Program<'_>, link: &Word, directories: &[Option<String>]) -> bool {
        let is_exact =
            program.has_flag('n', "--no-dereference") || program.has_flag('T', "--no-target-directory");
        match self.root(link, directories) {
            Some(Root::Other) => true,
            Some(Root::Workspace) if link.text.trim_end_matches('/') == "." => is_exact,
            Some(Root::Workspace) => is_exact || program.has_flag('f', "--force"),
            None => false,
        }
    }

    /// Returns the root that `word` names relative to one of `directories`, or to the workspace if there are none.
    fn root(&self, word: &Word, directories: &[Option<String>]) -> Option<Root> {
        let path = spelling(word);
        if directories.is_empty() {
            return self.root_at(&path, word.is_literal);
        }
        directories
            .iter()
            .flatten()
            .find_map(|directory| self.root_at(&join(directory, &path), word.is_literal))
    }

    fn root_at(&self, path: &str, is_literal: bool) -> Option<Root> {
        let has_all = path.ends_with("/*") && !is_literal;
        let path = if has_all { path.trim_end_matches('*') } else { path };
        let path = self.absolute(path, is_literal);
        let contains_one = [&self.workspace, &self.home].into_iter().any(|root| root.starts_with(&path));
        if path == self.workspace {
            // The content of the workspace may be moved.
            return (!has_all).then_some(Root::Workspace);
        }
        let is_git = path.parent() == Some(&self.workspace)
            && path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"));
        (contains_one || is_git || is_home(&path)).then_some(Root::Other)
    }

    /// Expands `path` to an absolute path without `.` and `..`.
    fn absolute(&self, path: &str, is_literal: bool) -> PathBuf {
        let after = |prefixes: &[&str]| {
            let rests = prefixes.iter().filter_map(|prefix| path.strip_prefix(prefix));
            rests.filter(|_| !is_literal).find(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let (base, rest) = if let Some(rest) = after(&["~", "$HOME", "${HOME}"]) {
            (self.home.clone(), rest.trim_start_matches('/'))
        } else if let Some(user) = path.strip_prefix('~').filter(|_| !is_literal) {
            (PathBuf::from("/home"), user)
        } else {
            (self.workspace.clone(), path)
        };
        let mut absolute = PathBuf::new();
        for component in base.join(rest).components() {
            match component {
                Component::CurDir | Component::Prefix(_) => {}
                Component::ParentDir => {
                    absolute.pop();
                }
                Component::RootDir | Component::Normal(_) => absolute.push(component),
            }
        }
        absolute
    }
}

/// Checks whether `path` is a home directory or the parent of all home directories.
fn is_home(path: &Path) -> bool {
    let is_shared = |path: &Path| matches!(path.to_str(), Some("/home" | "/Users"));
    is_shared(path) || path.parent().is_some_and(is_shared) || path == Path::new("/root")
}

/// Returns the path in a word, with `.` in directory of expansions to the working directory.
fn spelling(word: &Word) -> String {
    let text = if word.text.contains("$()") { word.raw.replace('"', "") } else { word.text.clone() };
    let rests =
        WORKING_DIRECTORY.iter().filter_map(|spelt| text.strip_prefix(spelt)).filter(|_| !word.is_literal);
    let rest = { rests }.find(|rest| rest.is_empty() || rest.starts_with('/'));
    rest.map(|rest| format!(".{rest}")).unwrap_or(text)
}

/// Returns the file arguments of a program, and whether an option names the target directory.
fn operands<'a>(program: &Program<'a>) -> (Vec<&'a Word>, bool) {
    let takes_target = matches!(program.name.as_str(), "cp" | "install" | "ln" | "mv");
    let (mut files, mut has_target, mut only_files) = (Vec::new(), false, false);
    let mut args = program.args.iter();
    while let Some(arg) = args.next() {
        let text = arg.text.as_str();
        if only_files || !text.starts_with('-') {
            files.push(arg);
        } else if text == "--" {
            only_files = true;
        } else if takes_target {
            let is_long = text.starts_with("--");
            let names_target = if is_long { text.starts_with("--target") } else { text.contains('t') };
            let is_next = if is_long { !text.contains('=') } else { text.ends_with('t') };
            has_target |= names_target;
            if names_target && is_next {
                args.next();
            }
        }
    }
    (files, has_target)
}

#[cfg(test)]
mod tests {
    use super::super::{CommandClass, CommandOptions, classify};
    use std::path::Path;

    fn class(command: &str) -> CommandClass {
        let options =
            CommandOptions::default().with_roots(Path::new("/home/u/project"), Some(Path::new("/opt/me")));
        classify(command, &options).class
    }

    #[track_caller]
    fn all_are_blocked(commands: impl IntoIterator<Item = String>) {
        for command in commands {
            assert!(
                matches!(class(&command), CommandClass::Blocked { .. }),
                "{command}: {:?}",
                class(&command)
            );
        }
    }

    const HOMES: &[&str] = &[
        "~",
        "~/",
        "~/.",
        "~/*",
        "$HOME",
        "$HOME/",
        "${HOME}",
        "\"$HOME\"",
        "\"${HOME}/\"",
        "/opt/me",
        "/opt/me/",
        "~u",
        "/home/u",
        "/home/u/",
        "/home/somebody",
        "/home",
        "/root",
        "/Users/me",
        "/",
        "//",
        "/.",
        "/*",
        "..",
        "/opt",
    ];
    const WORKSPACE: &[&str] = &[
        "$PWD",
        "${PWD}",
        "\"$PWD\"",
        "$(pwd)",
        "\"$(pwd)\"",
        "`pwd`",
        "$(git rev-parse --show-toplevel)",
        "./",
        "/home/u/project",
        "/home/u/project/",
        "../project",
        "sub/..",
        ".",
    ];
    const GIT: &[&str] = &[
        ".git",
        "./.git",
        ".git/",
        ".git/*",
        "sub/../.git",
        "\"$PWD/.git\"",
        "$(pwd)/.git",
        "/home/u/project/.git",
        "\".git\"",
        "'.git'",
        ".GIT",
    ];

    #[test]
    fn roots_are_not_moved_emptied_or_linked_away_in_any_spelling() {
        let every = |roots: &[&[&str]], commands: &[&str]| {
            for root in roots.concat() {
                all_are_blocked(commands.iter().map(|command| command.replace("ROOT", root)));
            }
        };
        let commands = [
            "mv ROOT /dev/null",
            "mv ROOT /tmp/x",
            "mv -f -- ROOT x",
            "mv -t /tmp ROOT",
            "mv --target-directory=/tmp a ROOT",
            "env mv ROOT x",
            "sh -c 'true; mv a b'; mv a ROOT x",
            "if true; then mv ROOT x; fi",
            "rsync -a --remove-source-files ROOT /tmp/x",
            "rename s/a/b/ ROOT",
            "rename a b ROOT",
        ];
        every(&[HOMES, WORKSPACE, GIT], &commands);
        let commands = [
            "truncate -s 0 ROOT",
            "truncate --size=0 a ROOT",
            "> ROOT",
            ": > ROOT",
            "echo x >| ROOT",
            "cat a &> ROOT",
            "echo x | tee ROOT",
            "mv -T a ROOT",
            "cp -rT a ROOT",
            "cp --remove-destination a ROOT",
            "cp /dev/null ROOT",
            "install -T a ROOT",
            "install /dev/null ROOT",
            "ln -sfn / ROOT",
            "ln -sfT /tmp/x ROOT",
            "rsync -a --delete empty/ ROOT",
            "rsync -a --delete-after empty/ ROOT",
            "dd if=/dev/zero of=ROOT",
        ];
        // A glob without a match stays as written: `> ~/*` is an ambiguous redirection.
        every(&[HOMES, WORKSPACE, GIT], &commands);
        every(&[HOMES, GIT], &["ln -s / ROOT", "ln -sf /tmp/x ROOT", "ln -f a ROOT"]);
        all_are_blocked(
            ["cd sub; cd ..; mv .git x", "cd / && mv home x", "cd .. && mv project x"].map(str::to_owned),
        );
    }

    #[test]
    fn copying_from_roots_and_moving_inside_the_workspace_stay_as_they_were() {
        for command in [
            "mv a.txt b.txt",
            "mv a.txt .",
            "mv a.txt ./",
            "mv * sub/",
            "mv ./* sub/",
            "mv -t . sub/a",
            "mv a.txt \"$PWD\"",
            "mv .gitignore x",
            "mv .github/a .",
            "mv '~' x",
            "mv \\~ x",
            "mv a '$HOME'",
            "cp -r .git /tmp/x",
            "cp -r . /tmp/x",
            "cp a.txt .",
            "cp /dev/null a.txt",
            "ln -s ~ home",
            "ln -s / r",
            "ln -s ../a .",
            "ln -sf ../a .",
            "ln -s ../a",
            "rsync -a --delete ./ /tmp/x/",
            "rsync -a a/ .",
            "rsync -a --delete a/ sub/",
            "install -m 644 a.txt .",
            "truncate -s 0 a.txt",
            "> a.txt",
            ": > .gitignore",
            "rename . _ a.txt",
            "rename s/a/b/ a.txt",
            "tee a.txt",
            "dd if=/dev/zero of=a.txt count=1",
            "echo .git > x",
            "cd sub && mv .git x",
            "cd sub && rsync -a --delete ../a/ .",
            "cd sub && rsync -a --delete ../a/ \"$PWD\"",
            "cp -r ~ x",
            "cp -r \"$HOME\" /tmp/x",
            "mv a.txt ~",
            "mv a.txt /home/u",
            "mv ~/a.txt .",
            "mv /home/u/a.txt /tmp/x",
            "rsync -a ~/ /tmp/x/",
            "cat ~/a > b",
            "mv ../a.txt .",
        ] {
            let before = classify(command, &CommandOptions::default()).class;
            assert!(
                !matches!(class(command), CommandClass::Blocked { .. }),
                "{command}: {:?}",
                class(command)
            );
            assert_eq!(class(command), before, "{command}");
        }
    }
}
