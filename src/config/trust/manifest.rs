//! The content for which a project requests trust: path and hash of each relevant file, and one hash of all of them.

use super::file_references;
use crate::error::{ConfigError, sanitize};
use crate::layers::Layers;
use crate::pipeline::Pipeline;
use crate::project::ProjectConfig;
use agent_text::lines::list_first;
use rustix::fs::OFlags;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size in bytes of a file to which a setting refers; it is hashed each time settings are loaded.
const MAX_REFERENCED_BYTES: u64 = 64 << 20;
/// Prefix of the hashed data, so that the hash differs from hashes of other data.
const HASHED_FORM: &[u8] = b"agent trust 1\n";
/// Keys whose texts are commands, or their arguments.
const COMMAND_KEYS: [&str; 2] = ["command", "args"];
/// Maximum number of changed files named in one line.
const MAX_LISTED_CHANGES: usize = 3;

/// Path (from the root of the workspace) and content hash of every file that needs trust.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustManifest {
    /// The hashes, hexadecimal, by path.
    pub files: BTreeMap<String, String>,
}

impl TrustManifest {
    /// Creates the manifest of `project` at `root`: its own files, its commands, and the files to which its
    /// settings that need trust refer.
    ///
    /// # Errors
    /// Fails for a referenced file that is unreadable or too large, and for too many files.
    pub fn for_project(root: &Path, project: &ProjectConfig) -> Result<Self, ConfigError> {
        let own = project.files.iter().map(|file| (file.path.clone(), file.hash.clone()));
        let commands = project.commands.values();
        let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
        let commands = commands.map(|command| (command.path.clone(), hash(&command.text)));
        let manifest = Self { files: own.chain(commands).collect() };
        manifest.with_referenced(root, referenced_files(root, project)?)
    }

    /// Creates the manifest of the pipeline in the file `path` of `root`: the file with its `text`, and the files to which its
    /// commands refer.
    ///
    /// # Errors
    /// Fails as [`for_project`](Self::for_project) does.
    pub fn for_pipeline(
        root: &Path,
        path: &str,
        text: &str,
        pipeline: &Pipeline,
    ) -> Result<Self, ConfigError> {
        let hash = blake3::hash(text.as_bytes()).to_hex().to_string();
        let manifest = Self { files: BTreeMap::from([(path.to_owned(), hash)]) };
        let mut files = file_references::find_files(root, pipeline.references())?;
        files.extend(file_references::match_patterns(root, pipeline.references())?.scripts);
        manifest.with_referenced(root, files)
    }

    /// Adds the files `names` of `root`.
    fn with_referenced(mut self, root: &Path, names: BTreeSet<String>) -> Result<Self, ConfigError> {
        for name in names {
            let hash = hash_of(&root.join(&name)).map_err(|error| {
                ConfigError::new(format!("cannot be trusted: {error}")).file(sanitize(&name))
            })?;
            self.files.entry(name).or_insert(hash);
        }
        Ok(self)
    }

    /// Returns the manifest of the files of both.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Self {
        Self { files: self.files.clone().into_iter().chain(other.files.clone()).collect() }
    }

    /// Returns one hexadecimal hash of the manifest. The location of the workspace does not count: every copy has the same hash.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(HASHED_FORM);
        for (path, hash) in &self.files {
            hasher.update(&(path.len() as u64).to_le_bytes()).update(path.as_bytes()).update(hash.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Describes the differences from `before`; `None` when there are none.
    pub fn changes_since(&self, before: &Self) -> Option<String> {
        let paths: BTreeSet<&String> = self.files.keys().chain(before.files.keys()).collect();
        let change = |path: &&String| match (before.files.get(*path), self.files.get(*path)) {
            (Some(old), Some(new)) if old == new => None,
            (Some(_), Some(_)) => Some(format!("{} changed", sanitize(path))),
            (None, _) => Some(format!("{} is new", sanitize(path))),
            (_, None) => Some(format!("{} was removed", sanitize(path))),
        };
        list_first(paths.iter().filter_map(change), MAX_LISTED_CHANGES, ", ")
    }
}

/// Returns the files to which settings that need trust refer. Instructions of agents are excluded: a model reads them, they do not run.
fn referenced_files(root: &Path, project: &ProjectConfig) -> Result<BTreeSet<String>, ConfigError> {
    let needs_trust = project.files.iter().flat_map(|file| file.restricted.needs_trust.layer_values());
    let relevant = needs_trust.filter(|(key, _)| !key.starts_with("agents."));
    let (mut texts, mut commands) = (Vec::new(), Vec::new());
    for (key, layer_value) in relevant {
        texts.extend(texts_of(&layer_value.value));
        commands.extend(commands_of(key, &layer_value.value));
    }
    let mut files = file_references::find_files(root, texts)?;
    files.extend(file_references::match_patterns(root, commands)?.scripts);
    Ok(files)
}

/// Returns the patterns in the commands of `settings` that match files which trust does not cover, each with its key.
///
/// # Errors
/// Fails as [`TrustManifest::for_project`] does.
pub fn uncovered_patterns(root: &Path, settings: &Layers) -> Result<Vec<(String, String)>, ConfigError> {
    let mut uncovered = Vec::new();
    for (key, layer_value) in settings.layer_values().filter(|(key, _)| !key.starts_with("agents.")) {
        let found = file_references::match_patterns(root, commands_of(key, &layer_value.value))?;
        uncovered.extend(found.uncovered.into_iter().map(|pattern| (key.to_owned(), pattern)));
    }
    Ok(uncovered)
}

/// Returns the patterns in the commands of a pipeline that match files which trust does not cover.
///
/// # Errors
/// Fails as [`TrustManifest::for_pipeline`] does.
pub fn uncovered_by_pipeline(root: &Path, pipeline: &Pipeline) -> Result<BTreeSet<String>, ConfigError> {
    Ok(file_references::match_patterns(root, pipeline.references())?.uncovered)
}

/// Returns the keys whose values refer to `file`.
pub fn referencing_keys<'a>(root: &Path, settings: &'a Layers, file: &str) -> Vec<&'a str> {
    let names = |key: &str, value: &Value| {
        file_references::find_files(root, texts_of(value)).is_ok_and(|found| found.contains(file))
            || file_references::match_patterns(root, commands_of(key, value))
                .is_ok_and(|found| found.scripts.contains(file))
    };
    settings
        .layer_values()
        .filter(|(key, layer_value)| names(key, &layer_value.value))
        .map(|(key, _)| key)
        .collect()
}

/// Returns the texts of the setting `key` that a shell or a program gets: other texts, such as the file patterns of a hook, expand to
/// nothing.
fn commands_of<'a>(key: &str, value: &'a Value) -> Vec<&'a str> {
    match value {
        _ if COMMAND_KEYS.contains(&key.rsplit('.').next().unwrap_or_default()) => texts_of(value),
        Value::Array(items) => items.iter().flat_map(|item| commands_of("", item)).collect(),
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| commands_of(key, value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Returns every text in a value.
fn texts_of(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts_of).collect(),
        Value::Object(fields) => fields.values().flat_map(texts_of).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Returns the hash of a regular file's content; never blocks on a pipe.
fn hash_of(path: &Path) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut hasher = blake3::Hasher::new();
    // A file that is too large is refused without reading it; one that grows while it is read is cut.
    let mut length = metadata.len();
    if length <= MAX_REFERENCED_BYTES {
        length = io::copy(&mut file.take(MAX_REFERENCED_BYTES + 1), &mut hasher)?;
    }
    if length > MAX_REFERENCED_BYTES {
        return Err(io::Error::other(format!("it is larger than {MAX_REFERENCED_BYTES} bytes")));
    }
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn manifest(files: &[(&str, &str)]) -> TrustManifest {
        TrustManifest { files: files.iter().map(|(path, hash)| ((*path).into(), (*hash).into())).collect() }
    }

    #[test]
    fn changes_are_described_in_one_line() {
        let before = manifest(&[("a", "1"), ("b", "1")]);
        assert_eq!(before.changes_since(&before), None);
        let after = manifest(&[("a", "2"), ("c", "1")]);
        assert_eq!(after.changes_since(&before).unwrap(), "a changed, b was removed, c is new");
        let many: Vec<String> = (0..9).map(|number| format!("f{number}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "1")).collect();
        assert_eq!(
            manifest(&many).changes_since(&manifest(&[])).unwrap(),
            "f0 is new, f1 is new, f2 is new, and 6 more"
        );
    }

    proptest! {
        #[test]
        fn equal_hashes_are_of_equal_content(
            a in prop::collection::btree_map("[a-c]{1,3}", "[0-1]{4}", 0..4),
            b in prop::collection::btree_map("[a-c]{1,3}", "[0-1]{4}", 0..4),
        ) {
            let (a, b) = (TrustManifest { files: a }, TrustManifest { files: b });
            prop_assert_eq!(a.hash() == b.hash(), a == b);
            prop_assert_eq!(a.changes_since(&b).is_none(), a == b);
        }
    }
}
