//! Results of calls that are kept for later sessions of the workspace under the name `kept:ID` (`tools.keep_results`).

use agent_core::file_change::ObservedFile;
use agent_llm::ToolDefinition;
use agent_messages as messages;
use agent_runtime::private_file::{self, create_private_dir};
use agent_text::lines::{QUOTE_CHARS, one_line};
use agent_workspace::Workspace;
use agent_workspace::error::FileError;
use agent_workspace::file::hash_reader;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Prefix of the names of kept results.
pub const KEPT_PREFIX: &str = "kept:";

/// Maximum bytes of all kept results of a workspace; the oldest leave.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum bytes of one kept result; a longer one is not kept.
pub const MAX_RESULT_BYTES: usize = 8 << 20;

/// Maximum bytes of a file whose changes are noticed; the result of a call that names a larger one is not kept.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Maximum number of kept results of a workspace.
const MAX_RESULTS: usize = 1_000;

/// Maximum bytes of what is stored about a result.
const MAX_ENTRY_BYTES: u64 = 64 << 10;

/// Hours after which a result of a tool that is no longer configured is removed: the maximum of the setting.
const MAX_HOURS: u32 = 8_760;

/// Maximum number of results that a session lists.
const MAX_LISTED: usize = 20;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 12;

/// What is stored about a result, besides its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptResult {
    /// The id, a hash of the tool, its definition and the arguments.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The call in one line.
    pub summary: String,
    /// Hash of the definition of the tool.
    definition: String,
    /// Hash of the permission rules.
    rules: String,
    /// When the result was kept, in seconds since 1970.
    kept_at: u64,
    /// The files that the call names, with the hashes of their contents; absent: there was no such file.
    files: BTreeMap<String, Option<String>>,
}

/// A call whose result may be kept.
#[derive(Debug)]
pub struct FinishedCall<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: &'a Value,
    /// The call in one line.
    pub summary: &'a str,
    /// The paths that it names, from the root of the workspace.
    pub paths: Vec<String>,
    /// The files that it has read.
    pub seen: &'a [ObservedFile],
}

/// The kept results of a workspace.
#[derive(Debug)]
pub struct KeptResults {
    directory: PathBuf,
    /// Hours for which the results of a tool are kept.
    hours: BTreeMap<String, u32>,
    /// Hashes of the definitions of these tools.
    definitions: BTreeMap<String, String>,
    /// Hash of the permission rules and of the patterns of sensitive files.
    rules: String,
    /// Seconds since 1970 at `started`.
    started_at: u64,
    started: Instant,
}

impl KeptResults {
    /// Returns the kept results in the state directory of a workspace at `unix_time`, the time since 1970, under the permission
    /// rules `rules`, whose change makes results void; nothing is created or read.
    pub fn new(
        state: &Path,
        hours: BTreeMap<String, u32>,
        definitions: &[ToolDefinition],
        rules: &str,
        unix_time: Duration,
    ) -> Self {
        let named = definitions.iter().filter(|tool| hours.contains_key(&tool.name));
        let definitions = named.map(|tool| (tool.name.clone(), hash_definition(tool))).collect();
        Self {
            directory: state.join("kept-results"),
            rules: blake3::hash(rules.as_bytes()).to_hex().to_string(),
            hours,
            definitions,
            started_at: unix_time.as_secs(),
            started: Instant::now(),
        }
    }

    /// Checks whether results of `tool` are kept.
    pub fn keeps(&self, tool: &str) -> bool {
        self.hours.contains_key(tool)
    }

    /// Keeps the result of a call in place of an earlier one of the same call, unless it is too long or the call names a large
    /// file. `text` returns it without secrets; the argument is its name.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(
        &self,
        call: &FinishedCall<'_>,
        workspace: &Workspace,
        text: impl FnOnce(&str) -> Vec<u8>,
    ) -> io::Result<()> {
        let Some(definition) = self.definitions.get(call.tool) else { return Ok(()) };
        let mut arguments = call.arguments.clone();
        arguments.sort_all_objects();
        let key = [call.tool, definition, &arguments.to_string()].join("\0");
        let mut id = blake3::hash(key.as_bytes()).to_hex().to_string();
        id.truncate(ID_DIGITS);
        let mut files = BTreeMap::<String, _>::new();
        let named = call.paths.iter().map(|path| (path, None));
        let seen = call.seen.iter().map(|seen| (&seen.path, Some(&seen.hash)));
        for (path, read) in named.chain(seen) {
            match file_hash(workspace, path) {
                Ok(hash) if read.is_none() || hash.as_ref() == read => files.insert(path.clone(), hash),
                // A file that has changed since it was read makes the result void already.
                _ => return Ok(()),
            };
        }
        let text = text(&format!("{KEPT_PREFIX}{id}"));
        if text.len() > MAX_RESULT_BYTES {
            return Ok(());
        }
        let summary = one_line(call.summary, QUOTE_CHARS);
        let (tool, definition) = (call.tool.to_owned(), definition.clone());
        let rules = self.rules.clone();
        let kept = KeptResult { id, tool, summary, definition, rules, kept_at: self.now(), files };
        let entry = serde_json::to_vec(&kept)?;
        if entry.len() as u64 > MAX_ENTRY_BYTES {
            return Ok(());
        }
        create_private_dir(&self.directory)?;
        self.make_room(text.len())?;
        self.write(&kept.id, "txt", &text)?;
        self.write(&kept.id, "json", &entry)
    }

    /// Returns all kept results, newest first; files of another form are ignored.
    ///
    /// # Errors
    /// When the directory exists and cannot be read.
    pub fn all(&self) -> io::Result<Vec<KeptResult>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json")
                && let Ok(kept) = read_entry(&path)
                && path == self.file(&kept.id, "json")
            {
                found.push(kept);
            }
        }
        found.sort_by(|a, b| (b.kept_at, &a.id).cmp(&(a.kept_at, &b.id)));
        Ok(found)
    }

    /// Returns why a result is void, in words that continue "it is void because"; `None` while it is valid.
    pub fn void_reason(&self, kept: &KeptResult, workspace: &Workspace) -> Option<String> {
        let tool = one_line(&kept.tool, QUOTE_CHARS);
        let Some(hours) = self.hours.get(&kept.tool) else {
            return Some(format!("tools.keep_results does not name {tool}"));
        };
        if self.definitions.get(&kept.tool) != Some(&kept.definition) {
            return Some(format!("the definition of {tool} has changed"));
        }
        if self.rules != kept.rules {
            return Some("the permission rules have changed".to_owned());
        }
        self.outdated_reason(kept, *hours, workspace)
    }

    /// Returns why a result will never be valid again.
    fn outdated_reason(&self, kept: &KeptResult, hours: u32, workspace: &Workspace) -> Option<String> {
        let seconds = u64::from(hours).saturating_mul(3_600);
        if self.now() >= kept.kept_at.saturating_add(seconds) {
            return Some(format!("it is older than {hours} hours"));
        }
        let mut files = kept.files.iter();
        let changed = files.find(|(path, hash)| file_hash(workspace, path).as_ref().ok() != Some(*hash));
        changed.map(|(path, _)| format!("{} has changed", one_line(path, QUOTE_CHARS)))
    }

    /// Returns the lines `kept:ID TOOL SUMMARY (AGE)` of the newest valid results, at most 20, and removes those that will
    /// never be valid again.
    ///
    /// # Errors
    /// When they cannot be read or removed.
    pub fn list(&self, workspace: &Workspace) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        for kept in self.all()? {
            let hours = self.hours.get(&kept.tool).copied().unwrap_or(MAX_HOURS);
            if self.outdated_reason(&kept, hours, workspace).is_some() {
                self.remove(&kept.id)?;
            } else if lines.len() < MAX_LISTED && self.void_reason(&kept, workspace).is_none() {
                lines.push(self.line(&kept));
            }
        }
        Ok(lines)
    }

    /// Returns the line `kept:ID TOOL SUMMARY (AGE)` of a result.
    pub fn line(&self, kept: &KeptResult) -> String {
        let (tool, summary) = (one_line(&kept.tool, QUOTE_CHARS), one_line(&kept.summary, QUOTE_CHARS));
        let age = messages::ago(Duration::from_secs(self.now().saturating_sub(kept.kept_at)));
        format!("{KEPT_PREFIX}{} {tool} {summary} ({age})", kept.id)
    }

    /// Opens the text of the result called `name` (`kept:ID`).
    ///
    /// # Errors
    /// A message for the model when there is no such result or it is void.
    pub fn open(&self, name: &str, workspace: &Workspace) -> Result<File, String> {
        let unknown = || format!("There is no kept result {}.", one_line(name, QUOTE_CHARS));
        let id = name.strip_prefix(KEPT_PREFIX).unwrap_or(name);
        if id.len() != ID_DIGITS || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(unknown());
        }
        let kept = read_entry(&self.file(id, "json")).map_err(|_| unknown())?;
        match self.void_reason(&kept, workspace) {
            Some(why) => Err(format!("{KEPT_PREFIX}{id} is void: {why}. Make the call again.")),
            None => File::open(self.file(id, "txt")).map_err(|_| unknown()),
        }
    }

    /// Removes all results and returns their number.
    ///
    /// # Errors
    /// When one cannot be removed.
    pub fn clear(&self) -> io::Result<usize> {
        let number = self.all()?.len();
        for id in self.ids()? {
            self.remove(&id)?;
        }
        Ok(number)
    }

    /// Returns the ids of all files, also of those that a process which was killed has left incomplete.
    fn ids(&self) -> io::Result<BTreeSet<String>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        let stem = |entry: fs::DirEntry| Some(entry.path().file_stem()?.to_str()?.to_owned());
        entries.filter_map(|entry| entry.map(stem).transpose()).collect()
    }

    fn now(&self) -> u64 {
        self.started_at.saturating_add(self.started.elapsed().as_secs())
    }

    fn file(&self, id: &str, end: &str) -> PathBuf {
        self.directory.join(format!("{id}.{end}"))
    }

    fn write(&self, id: &str, end: &str, bytes: &[u8]) -> io::Result<()> {
        private_file::replace(&self.file(id, end), bytes)
    }

    #[expect(clippy::disallowed_methods, reason = "this module owns the files")]
    fn remove(&self, id: &str) -> io::Result<()> {
        for end in ["json", "txt"] {
            match fs::remove_file(self.file(id, end)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the oldest results until there is room for one of `bytes`.
    fn make_room(&self, bytes: usize) -> io::Result<()> {
        let of_file = |id: String| {
            let file = self.file(&id, "txt").metadata().ok();
            let (time, size) = file.map_or((None, 0), |file| (file.modified().ok(), file.len()));
            (time, size, id)
        };
        let mut all: Vec<_> = self.ids()?.into_iter().map(of_file).collect();
        all.sort_by(|a, b| b.cmp(a));
        let mut total = all.iter().map(|(_, size, _)| size).sum::<u64>().saturating_add(bytes as u64);
        while (total > MAX_BYTES || all.len() >= MAX_RESULTS)
            && let Some((_, size, oldest)) = all.pop()
        {
            total = total.saturating_sub(size);
            self.remove(&oldest)?;
        }
        Ok(())
    }
}

fn read_entry(path: &Path) -> io::Result<KeptResult> {
    let (file, _) = private_file::open(path)?;
    let mut text = Vec::new();
    file.take(MAX_ENTRY_BYTES).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn hash_definition(tool: &ToolDefinition) -> String {
    let text = [tool.description.as_str(), tool.parameters.json()].join("\0");
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Returns the hash of a file of the workspace, `None` if there is no file at the path.
///
/// # Errors
/// When the file is too large or cannot be read.
fn file_hash(workspace: &Workspace, path: &str) -> io::Result<Option<String>> {
    let unreadable = |error: FileError| io::Error::other(error.to_string());
    let Ok(path) = workspace.path(path) else { return Ok(None) };
    if workspace.is_directory(&path) {
        return Ok(None);
    }
    match workspace.open_file(&path) {
        Ok(opened) if opened.size > MAX_FILE_BYTES => Err(io::Error::other("too large")),
        Ok(opened) => hash_reader(opened.file).map(Some),
        Err(FileError::Missing(_) | FileError::NotDirectory(_)) => Ok(None),
        Err(error) => Err(unreadable(error)),
    }
}
