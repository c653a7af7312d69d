//! Parses unified diffs for one file named by the call, or for the files named in their headers.

use crate::lines::body;
use crate::patch::error::PatchError;
use crate::patch::file_patch::{Action, FilePatch};
use crate::patch::hunk::{Hunk, Line};

/// File name for a missing side of a diff.
const NOWHERE: &str = "/dev/null";

/// Part of a diff for one file, during parsing.
#[derive(Default)]
struct FileDiff {
    /// Line `diff --git …` above the part.
    git: Option<String>,
    /// Whether the part has a `rename to` line.
    renamed: bool,
    /// File names of both sides.
    names: Option<(String, String)>,
    hunks: Vec<Hunk>,
}

/// Parses `patch`. With a path, it applies to that file only, regardless of its headers; without one, headers name the files.
/// Other lines before the first `@@` are ignored.
///
/// # Errors
/// When a line cannot be parsed, the patch has no hunks or names no files, or has several files although `path` is given.
pub fn parse(patch: &str, path: Option<&str>) -> Result<Vec<FilePatch>, PatchError> {
    let mut parts: Vec<FileDiff> = read(&patch.split_inclusive('\n').map(body).collect::<Vec<_>>())?;
    if parts.iter().all(|part| part.hunks.is_empty()) {
        return Err(PatchError::NoHunks);
    }
    let Some(path) = path else {
        return parts.into_iter().map(named).collect();
    };
    match (parts.pop(), parts.is_empty()) {
        (Some(part), true) => {
            let action = Action::Update { to: None, hunks: part.hunks };
            Ok(vec![FilePatch { path: path.to_owned(), action }])
        }
        _ => Err(PatchError::ManyFiles),
    }
}

fn read(lines: &[&str]) -> Result<Vec<FileDiff>, PatchError> {
    let mut parts = vec![FileDiff::default()];
    let mut skip_next = false;
    for (index, line) in lines.iter().enumerate() {
        if std::mem::take(&mut skip_next) {
            continue;
        }
        let Some(part) = parts.last_mut() else { break };
        let number = part.hunks.len();
        match part.hunks.last_mut() {
            Some(hunk) if !begins_file(hunk, lines, index) && !line.starts_with("@@") => {
                // Skips the end of a code fence around the patch.
                if line.trim_end() != "```" {
                    hunk.take_line(line, number)?;
                }
                continue;
            }
            Some(_) if !line.starts_with("@@") => parts.push(FileDiff::default()),
            None if line.starts_with("diff --git ") && part.git.is_some() => parts.push(FileDiff::default()),
            _ => {}
        }
        let Some(part) = parts.last_mut() else { break };
        if line.starts_with("@@") {
            part.hunks.push(Hunk::header(line, number + 1)?);
        } else if line.starts_with("diff --git ") {
            part.git = Some((*line).to_owned());
        } else if part.git.is_some() && line.starts_with("rename to ") {
            part.renamed = true;
        } else if let Some(names) = names(lines, index) {
            part.names = Some(names);
            skip_next = true;
        }
    }
    for part in &mut parts {
        for (index, hunk) in part.hunks.iter_mut().enumerate() {
            hunk.finish(index + 1)?;
        }
    }
    Ok(parts)
}

/// Checks whether the part of another file starts at `index`, and not another line of `hunk`.
fn begins_file(hunk: &Hunk, lines: &[&str], index: usize) -> bool {
    let at = |offset: usize| lines.get(index + offset).copied().unwrap_or_default();
    let headers = at(0).starts_with("--- ") && at(1).starts_with("+++ ");
    at(0).starts_with("diff --git ")
        || headers && (hunk.is_full() || hunk.old_count.is_none() && at(2).starts_with("@@"))
}

fn names(lines: &[&str], index: usize) -> Option<(String, String)> {
    let name = |line: &str| line.split('\t').next().unwrap_or_default().trim().to_owned();
    let old = lines.get(index)?.strip_prefix("--- ")?;
    let new = lines.get(index + 1)?.strip_prefix("+++ ")?;
    Some((name(old), name(new)))
}

fn named(part: FileDiff) -> Result<FilePatch, PatchError> {
    let FileDiff { git, renamed, names, hunks } = part;
    let Some((old, new)) = names else {
        return Err(git.map_or(PatchError::NoPath, PatchError::NoText));
    };
    let prefixed = (old.starts_with("a/") || old == NOWHERE) && (new.starts_with("b/") || new == NOWHERE);
    let bare = |name: &str| {
        let without = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).filter(|_| prefixed);
        without.unwrap_or(name).to_owned()
    };
    let (from, to) = (bare(&old), bare(&new));
    if hunks.is_empty() {
        return Err(PatchError::NoHunks.in_file(&to));
    }
    let action = match (old.as_str(), new.as_str()) {
        (NOWHERE, _) => {
            Action::Add(new_file_text(&hunks).ok_or_else(|| PatchError::AddWithContext.in_file(&to))?)
        }
        (_, NOWHERE) => return Ok(FilePatch { path: from, action: Action::Delete(hunks) }),
        _ if renamed => return Ok(FilePatch { path: from, action: Action::Update { to: Some(to), hunks } }),
        _ => Action::Update { to: None, hunks },
    };
    Ok(FilePatch { path: to, action })
}

/// Returns the text of a new file; `None` unless all lines are added in a single hunk.
fn new_file_text(hunks: &[Hunk]) -> Option<String> {
    let [hunk] = hunks else { return None };
    let added = |line: &Line| if let Line::Added(text) = line { Some(format!("{text}\n")) } else { None };
    let mut text: String = hunk.lines.iter().map(added).collect::<Option<_>>()?;
    if hunk.new_without_newline {
        text.pop();
    }
    Some(text)
}
