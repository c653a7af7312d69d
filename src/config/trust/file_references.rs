//! Finds the files of a workspace to which a setting refers, such as the scripts of hooks: their content needs trust as well.

use crate::config::error::ConfigError;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// Maximum number of file names that are looked up; a real project has a few dozen, and each is one system call.
const MAX_LOOKUPS: usize = 20_000;

/// Returns the regular files below `root` to which `texts` refer, as paths from the root.
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
        let names: BTreeSet<PathBuf> = words(text).iter().filter_map(|word| below(root, word)).collect();
        let mut directories = vec![PathBuf::new()];
        directories.extend(names.iter().filter(|name| root.join(name).is_dir()).cloned());
        lookups += names.len() * (directories.len() + 1);
        if lookups > MAX_LOOKUPS {
            return Err(ConfigError::new("refers to too many files, so it cannot be trusted"));
        }
        let all = directories.iter().flat_map(|directory| names.iter().map(|name| directory.join(name)));
        let files = all.filter(|path| root.join(path).is_file());
        found.extend(files.map(|path| path.to_string_lossy().into_owned()));
    }
    Ok(found)
}

/// Returns the possible file names in a shell command: its words with quotes and backslashes resolved, and the parts between
/// the characters that separate a name from other text, each also without its first component.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    for word in shell_words(text) {
        let pieces = word.split(['$', '{', '}', '=', ':', ',', '`', '"', '\'']);
        for name in pieces.chain([word.as_str()]) {
            words.insert(name.to_owned());
            words.extend(name.split_once('/').map(|(_, rest)| rest.to_owned()));
        }
    }
    words
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

/// Returns `word` as a path from the root; `None` for the root itself and for paths outside.
fn below(root: &Path, word: &str) -> Option<PathBuf> {
    let path = Path::new(word);
    let relative = if path.is_absolute() { path.strip_prefix(root).ok()? } else { path };
    let mut plain = PathBuf::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (plain.components().next().is_some()).then_some(plain)
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

    #[test]
    fn what_is_outside_or_no_file_is_not_found() {
        let root = project(&["tools/check.sh"]);
        for command in ["/bin/sh", "../x", "tools", "cargo fmt --check", "", ".", "/"] {
            assert!(find_files(root.path(), [command]).unwrap().is_empty(), "{command}");
        }
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
                if let Some(path) = below(root, &word) {
                    prop_assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
                }
            }
        }
    }
}
