//! Finds the files of a workspace to which a setting refers, such as the scripts of hooks: their content needs trust as well.

use crate::error::ConfigError;
use agent_runtime::private_file;
use globset::GlobBuilder;
use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of file names that are looked up; a real project has a few dozen, and each is one system call.
const MAX_LOOKUPS: usize = 20_000;
/// Maximum number of directory entries that are looked at for one pattern.
const MAX_PATTERN_ENTRIES: usize = 1_000;
/// Maximum number of words to which the braces of one word expand.
const MAX_BRACE_WORDS: usize = 256;
/// Extensions of files that a shell runs, whether they are executable or not.
const SCRIPT_EXTENSIONS: [&str; 5] = ["sh", "bash", "zsh", "ksh", "fish"];

/// The files that the patterns of commands match.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PatternMatches {
    /// The scripts among them, as paths from the root.
    pub scripts: BTreeSet<String>,
    /// The patterns that match other files too, match at any depth, or for which too many files would have to be looked at.
    pub uncovered: BTreeSet<String>,
}

/// Returns the number of levels from `root` up to the outermost repository around it; 0 outside of one.
pub(super) fn levels_to_repository(root: &Path) -> usize {
    let levels = root.ancestors().enumerate();
    let repositories = levels.filter(|(_, above)| above.join(".git").symlink_metadata().is_ok());
    repositories.last().map_or(0, |(levels, _)| levels)
}

/// Returns the regular files below `root`, or in the repository around it, to which `texts` refer, as paths from the root.
///
/// A word is tried as it is and without its part before the first `/`, which may be a variable. Each word is
/// looked up in the root and in every directory that the same text names, because of `cd tools && ./check.sh`. References
/// inside those files are not followed.
///
/// # Errors
/// Fails when there are too many words to look up.
pub fn find_files<'a>(
    root: &Path,
    texts: impl IntoIterator<Item = &'a str>,
) -> Result<BTreeSet<String>, ConfigError> {
    let mut found = BTreeSet::new();
    let mut lookups = 0;
    for text in texts {
        let (names, directories) = names_and_directories(root, text);
        count(&mut lookups, names.len() * (directories.len() + 1))?;
        let all = directories.iter().flat_map(|directory| names.iter().map(|name| directory.join(name)));
        let files = all.filter(|path| root.join(path).is_file());
        found.extend(files.map(|path| path.to_string_lossy().into_owned()));
    }
    Ok(found)
}

/// Returns what the patterns in `commands` match, each in the root and in every directory that the same command names. Only scripts are
/// covered: files that are executable, begin with `#!` or have the extension of a shell. Others, such as the sources that a linter
/// checks, change with every work on the project.
///
/// # Errors
/// Fails when there are too many files to look at.
pub fn match_patterns<'a>(
    root: &Path,
    commands: impl IntoIterator<Item = &'a str>,
) -> Result<PatternMatches, ConfigError> {
    let mut found = PatternMatches::default();
    let mut lookups = 0;
    for command in commands {
        let (names, directories) = names_and_directories(root, command);
        let levels = levels_to_repository(root);
        for name in names.iter().filter(|name| is_pattern(name) && !is_tail(root, name, &names)) {
            let (mut matches, mut is_too_wide) = (Vec::new(), false);
            for directory in &directories {
                if let Some(pattern) = below(root, levels, &directory.join(name).to_string_lossy()) {
                    let expanded = expand(root, &pattern, &mut lookups)?;
                    is_too_wide |= expanded.is_none();
                    matches.extend(expanded.unwrap_or_default());
                }
            }
            let (scripts, others): (Vec<_>, Vec<_>) =
                matches.into_iter().partition(|path| is_script(&root.join(path)));
            found.scripts.extend(scripts.iter().map(|path| path.to_string_lossy().into_owned()));
            if is_too_wide || !others.is_empty() || name.components().any(|part| part.as_os_str() == "**") {
                found.uncovered.insert(name.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

/// Checks whether `name` is the rest of another of `names` that leads through an existing directory: `*.sh` of `tools/*.sh`.
fn is_tail(root: &Path, name: &Path, names: &BTreeSet<PathBuf>) -> bool {
    let leads_through = |other: &PathBuf| {
        let before = other.components().count().saturating_sub(name.components().count());
        before > 0 && root.join(other.components().take(before).collect::<PathBuf>()).is_dir()
    };
    names.iter().any(|other| other.ends_with(name) && leads_through(other))
}

/// Returns the possible file names in a text, and the directories among them with the root and that of the repository around it.
fn names_and_directories(root: &Path, text: &str) -> (BTreeSet<PathBuf>, Vec<PathBuf>) {
    let levels = levels_to_repository(root);
    let names: BTreeSet<PathBuf> = words(text).iter().filter_map(|word| below(root, levels, word)).collect();
    let mut directories = vec![PathBuf::new()];
    if levels > 0 {
        directories.push(up(levels));
    }
    directories.extend(names.iter().filter(|name| root.join(name).is_dir()).cloned());
    (names, directories)
}

/// Adds to the number of lookups.
fn count(lookups: &mut usize, more: usize) -> Result<(), ConfigError> {
    *lookups += more;
    if *lookups > MAX_LOOKUPS {
        return Err(ConfigError::new("refers to too many files, so it cannot be trusted"));
    }
    Ok(())
}

fn is_pattern(name: &Path) -> bool {
    name.to_string_lossy().contains(['*', '?', '['])
}

/// Returns the regular files that `pattern` matches as a shell expands it: part by part, without names that begin with a dot unless the
/// part does; `None` if the directories have too many entries.
fn expand(root: &Path, pattern: &Path, lookups: &mut usize) -> Result<Option<Vec<PathBuf>>, ConfigError> {
    let most = *lookups + MAX_PATTERN_ENTRIES;
    let mut found = vec![PathBuf::new()];
    for part in pattern.components().map(|part| part.as_os_str().to_string_lossy().into_owned()) {
        let mut next = Vec::new();
        // A part that is no valid pattern stands for itself.
        let glob = is_pattern(Path::new(&part)).then(|| GlobBuilder::new(&part).build().ok()).flatten();
        let Some(matcher) = glob.map(|glob| glob.compile_matcher()) else {
            for path in &mut found {
                path.push(&part);
            }
            continue;
        };
        for path in found {
            for entry in root.join(&path).read_dir().into_iter().flatten().flatten() {
                count(lookups, 1)?;
                if *lookups > most {
                    return Ok(None);
                }
                let name = entry.file_name();
                let is_hidden = name.to_string_lossy().starts_with('.') && !part.starts_with('.');
                if !is_hidden && matcher.is_match(&name) {
                    next.push(path.join(name));
                }
            }
        }
        found = next;
    }
    found.retain(|path| root.join(path).is_file());
    Ok(Some(found))
}

fn is_script(path: &Path) -> bool {
    let is_executable = || path.metadata().is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
    let has_interpreter = || {
        let mut start = [0; 2];
        let read = path.canonicalize().and_then(|path| private_file::open(&path)?.0.read_exact(&mut start));
        read.is_ok() && start == *b"#!"
    };
    path.extension().is_some_and(|name| SCRIPT_EXTENSIONS.iter().any(|known| name == *known))
        || is_executable()
        || has_interpreter()
}

/// Returns the possible file names in a shell command: its words with quotes and backslashes resolved, and the parts between
/// the characters that separate a name from other text, each also without its first component.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for word in shell_words(text).iter().flat_map(|word| without_braces(word)) {
        let pieces = word.split(['$', '{', '}', '=', ':', ',', '`', '"', '\'']);
        for name in pieces.chain([word.as_str()]) {
            words.insert(name.to_owned());
            words.extend(name.split_once('/').map(|(_, rest)| rest.to_owned()));
        }
    }
    words
}

/// Expands the alternatives in braces as bash does: `{a,b}.sh` becomes `a.sh` and `b.sh`. A range such as `{1..3}` becomes a
/// pattern, and so do too many alternatives.
fn without_braces(word: &str) -> Vec<String> {
    let mut finished = Vec::new();
    let mut open = vec![word.to_owned()];
    while let Some(word) = open.pop() {
        let Some((head, inner, tail)) = innermost_braces(&word) else {
            finished.push(word);
            continue;
        };
        let words = inner.split(',').count();
        let is_list = words > 1 && finished.len() + open.len() + words <= MAX_BRACE_WORDS;
        let inner = if is_list { inner } else { "*" };
        open.extend(inner.split(',').map(|one| format!("{head}{one}{tail}")));
    }
    finished
}

/// Returns the content of the first braces with alternatives or a range and no other braces, between what is before and behind them.
fn innermost_braces(word: &str) -> Option<(&str, &str, &str)> {
    let closing = word.match_indices('}').filter_map(|(end, _)| {
        let start = word.get(..end)?.rfind('{')?;
        Some((word.get(..start)?, word.get(start + 1..end)?, word.get(end + 1..)?))
    });
    closing
        .into_iter()
        .find(|(_, inner, _)| !inner.contains('}') && (inner.contains(',') || inner.contains("..")))
}

/// Splits a shell command into words; operators end a word, quotes and backslashes keep it together.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote: Option<char> = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let Some(word) = words.last_mut() else { break };
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None | Some('"'), '\\') => word.extend(characters.next()),
            (None, ';' | '|' | '&' | '<' | '>' | '(' | ')') => words.push(String::new()),
            (None, _) if c.is_whitespace() => words.push(String::new()),
            _ => word.push(c),
        }
    }
    // Quotes may contain another command: `sh -c "./check.sh && ./more.sh"`.
    let inner = words.iter().filter(|word| word.contains(char::is_whitespace));
    let inner: Vec<String> = inner.flat_map(|word| word.split_whitespace().map(str::to_owned)).collect();
    let inner = inner.iter().flat_map(|word| word.split([';', '|', '&', '<', '>', '(', ')', '"', '\'', '`']));
    let inner: Vec<String> = inner.map(str::to_owned).collect();
    words.into_iter().chain(inner).filter(|word| !word.is_empty()).collect()
}

/// Returns the path that leads so many levels up.
pub(super) fn up(levels: usize) -> PathBuf {
    std::iter::repeat_n("..", levels).collect()
}

/// Returns `word` as a path from the root, which may lead so many `levels` up; `None` for a directory there and for paths outside.
fn below(root: &Path, levels: usize, word: &str) -> Option<PathBuf> {
    let path = Path::new(word);
    let relative = match path.strip_prefix(root) {
        _ if path.is_relative() => path.to_owned(),
        Ok(below) => below.to_owned(),
        Err(_) => up(levels).join(path.strip_prefix(root.ancestors().nth(levels)?).ok()?),
    };
    let (mut plain, mut above) = (PathBuf::new(), 0);
    for component in relative.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir if above < levels => above += 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (plain.components().next().is_some()).then(|| up(above).join(plain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn project(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::File::create(path).unwrap();
        }
        directory
    }

    #[test]
    fn a_script_is_found_however_a_command_names_it() {
        let root = project(&["tools/check.sh", "my check.sh", "play.yaml", "other.sh"]);
        let absolute = format!("sh {}/tools/check.sh", root.path().display());
        for (command, expected) in [
            ("./tools/check.sh {file}", "tools/check.sh"),
            ("tools/../tools/check.sh", "tools/check.sh"),
            ("cd tools && ./check.sh", "tools/check.sh"),
            ("cd tools; (sh check.sh)", "tools/check.sh"),
            ("\"$AGENT_WORKSPACE/tools/check.sh\"", "tools/check.sh"),
            ("${AGENT_WORKSPACE}/tools/check.sh", "tools/check.sh"),
            ("$(git rev-parse --show-toplevel)/tools/check.sh", "tools/check.sh"),
            ("sh -c 'true;./tools/check.sh'", "tools/check.sh"),
            ("bash -c \"exec ./tools/check.sh\"", "tools/check.sh"),
            ("env X=1 sh<tools/check.sh", "tools/check.sh"),
            ("'./my check.sh'", "my check.sh"),
            ("./my\\ check.sh", "my check.sh"),
            ("make --file=tools/check.sh", "tools/check.sh"),
            ("scripted:play.yaml", "play.yaml"),
            (&absolute, "tools/check.sh"),
        ] {
            let found = find_files(root.path(), [command]).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>(), [expected], "{command}");
        }
    }

    // Fault E6: a script that a pattern names could change under `--trust-workspace=HASH`.
    #[test]
    fn a_script_is_found_when_a_pattern_names_it() {
        let files =
            ["tools/check.sh", "tools/b.sh", "tools/x.py", "c1.sh", "c2.sh", ".hidden.sh", "a/deep/x.sh"];
        let root = project(&files);
        let both = &["tools/b.sh", "tools/check.sh"][..];
        for (command, expected) in [
            ("sh tools/*.sh", both),
            ("for f in ./tools/*; do sh $f; done", both),
            ("cd tools && sh ?????.sh", &["tools/check.sh"]),
            ("sh tools/[bc]*.sh", both),
            ("find tools -name '*.sh' -exec sh {} +", &["c1.sh", "c2.sh", "tools/b.sh", "tools/check.sh"]),
            ("\"$AGENT_WORKSPACE\"/tools/*.sh", both),
            ("sh c{1..2}.sh", &["c1.sh", "c2.sh"]),
            ("sh */deep/*.sh", &["a/deep/x.sh"]),
            ("sh .h*.sh", &[".hidden.sh"]),
            ("test [ -f x ]; echo '['", &[]),
            ("sh *.rb", &[]),
        ] {
            let found = match_patterns(root.path(), [command]).unwrap();
            assert_eq!(found.scripts.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{command}");
        }
        for (command, expected) in [
            ("tools/{check,b}.sh", both),
            ("sh {tools/{b,check},c1}.sh", &["c1.sh", "tools/b.sh", "tools/check.sh"]),
        ] {
            let found = find_files(root.path(), [command]).unwrap();
            assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{command}");
        }
        let uncovered = |command| match_patterns(root.path(), [command]).unwrap().uncovered;
        assert_eq!(uncovered("python tools/*.py"), BTreeSet::from(["tools/*.py".to_owned()]));
        assert_eq!(uncovered("sh a/**/x.sh"), BTreeSet::from(["a/**/x.sh".to_owned()]));
        assert_eq!(uncovered("sh tools/*.sh"), BTreeSet::new());
        // A large directory was the end of all trust.
        for number in 0..MAX_PATTERN_ENTRIES {
            std::fs::File::create(root.path().join("tools").join(number.to_string())).unwrap();
        }
        assert_eq!(uncovered("sh tools/*.sh"), BTreeSet::from(["tools/*.sh".to_owned()]));
        assert!(without_braces(&"{a,b}".repeat(40)).len() <= MAX_BRACE_WORDS);
    }

    #[test]
    fn what_is_outside_or_no_file_is_not_found() {
        let root = project(&["tools/check.sh"]);
        for command in ["/bin/sh", "../x", "tools", "cargo fmt --check", "", ".", "/"] {
            assert!(find_files(root.path(), [command]).unwrap().is_empty(), "{command}");
        }
    }

    // Fault E8: in a directory of a repository, its other files counted as the user's own.
    #[test]
    fn a_script_of_the_repository_around_the_workspace_is_found() {
        let repository = project(&["tools/check.sh", "sub/own.sh", "sub/deep/x"]);
        std::fs::create_dir(repository.path().join(".git")).unwrap();
        let root = repository.path().join("sub/deep");
        let absolute = format!("sh {}/tools/check.sh", repository.path().display());
        for (command, expected) in [
            ("sh ../../tools/check.sh", "../../tools/check.sh"),
            ("cd ../../tools; sh c*.sh; sh check.sh", "../../tools/check.sh"),
            ("$(git rev-parse --show-toplevel)/tools/check.sh", "../../tools/check.sh"),
            (&absolute, "../../tools/check.sh"),
            ("../own.sh", "../own.sh"),
            ("sh ../*.sh", "../own.sh"),
        ] {
            let mut found = find_files(&root, [command]).unwrap();
            found.extend(match_patterns(&root, [command]).unwrap().scripts);
            assert_eq!(found.into_iter().collect::<Vec<_>>(), [expected], "{command}");
        }
        assert!(find_files(&root, ["sh ../../../../x", "/etc/passwd"]).unwrap().is_empty());
    }

    #[test]
    fn too_many_file_names_are_an_error() {
        let root = project(&[]);
        let many: String = (0..MAX_LOOKUPS).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
        assert!(find_files(root.path(), [many.as_str()]).is_err());
    }

    proptest! {
        #[test]
        fn no_text_names_anything_outside(text: String) {
            let root = Path::new("/nowhere/at/all");
            for word in words(&text) {
                if let Some(path) = below(root, 0, &word) {
                    prop_assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
                }
            }
        }
    }
}
