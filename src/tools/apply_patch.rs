//! The `apply_patch` tool: applies a unified diff or a patch envelope to one or more files, all hunks or none.

use crate::delete_file::DELETE_DISABLED;
use crate::file_change;
use crate::rewrite::{LoadedFile, Rewrite};
use crate::{Access, Plan, ToolContext, ToolOutput, TouchedFile, TypedTool};
use agent_text::lines::{BOM, QUOTE_CHARS, one_line, pluralize};
use agent_text::patch::apply::{Patched, apply};
use agent_text::patch::error::PatchError;
use agent_text::patch::file_patch::{Action, FilePatch};
use agent_text::patch::hunk::Hunk;
use agent_text::{diff, patch};
use agent_workspace::path::RelPath;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::HashSet;
use std::fmt::Write as _;

/// Maximum number of files in one patch.
const MAX_FILES: usize = 50;

/// Maximum total bytes of all files of one patch, counted before and after the change.
const MAX_TOTAL_BYTES: usize = 64 * 1024 * 1024;

/// The `apply_patch` tool.
#[derive(Debug)]
pub struct ApplyPatch {
    /// `workspace.allow_delete`: whether a patch may delete files.
    pub allow_delete: bool,
}

/// The arguments of `apply_patch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Existing file; omit if the patch names its files.
    path: Option<String>,
    /// Unified diff (`@@ -10,3 +10,4 @@`; `@@ -0,0 +1,2 @@` inserts), or `*** Begin Patch` … `*** End Patch` with
    /// `*** Add File: `, `*** Update File: `, `*** Move to: `, `*** Delete File: `.
    patch: String,
}

impl TypedTool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str = "Apply a patch to one or more files. All hunks apply or none.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let Ok(sections) = args.sections() else {
            // An invalid patch is not applied, but the policy still checks its path.
            return args.path.as_deref().map_or_else(Plan::default, |path| Plan::file(path, true));
        };
        let (added, removed) = line_counts(&sections);
        let paths: Vec<&str> = sections.iter().flat_map(section_paths).collect();
        let shown: Vec<String> = paths.iter().map(|path| one_line(path, QUOTE_CHARS)).collect();
        Plan {
            summary: format!("{} (+{added} -{removed})", one_line(&shown.join(", "), QUOTE_CHARS)),
            touched_files: paths
                .iter()
                .map(|path| TouchedFile { path: (*path).to_owned(), write: true })
                .collect(),
            ..Plan::default()
        }
    }

    fn rewrites(&self, args: &Args, cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        let (_, work) = self.plan_changes(args, cx)?;
        Ok(work.into_iter().flat_map(|part| part.rewrites).collect())
    }

    fn preview(&self, args: &Args, cx: &ToolContext) -> Result<Option<String>, String> {
        let (_, work) = self.plan_changes(args, cx)?;
        let diffs: String = work.into_iter().map(|part| part.diff).collect();
        Ok(Some(diffs).filter(|diffs| !diffs.is_empty()))
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let (sections, work) = self.plan_changes(&args, cx)?;
        let diffs: String =
            work.iter().filter(|part| part.is_diff_shown).map(|part| part.diff.as_str()).collect();
        let (added, removed) = line_counts(&sections);
        let heading = match work.as_slice() {
            [_] => String::new(),
            parts => format!("Patch applied to {} files: +{added} -{removed}.\n", parts.len()),
        };
        let message: Vec<&str> = work.iter().map(|part| part.message.as_str()).collect();
        let message = format!("{heading}{}\n{}", message.join("\n"), diff::truncate(&diffs));
        let rewrites = work.into_iter().flat_map(|part| part.rewrites).collect();
        file_change::store_all(cx, rewrites, message.trim_end().to_owned())
    }
}

impl Args {
    fn sections(&self) -> Result<Vec<FilePatch>, PatchError> {
        let sections = patch::parse(&self.patch, self.path.as_deref())?;
        if sections.len() > MAX_FILES { Err(PatchError::TooManyFiles(MAX_FILES)) } else { Ok(sections) }
    }
}

/// Returns the paths that a section of a patch changes: its own, and the target of a move.
fn section_paths(section: &FilePatch) -> impl Iterator<Item = &str> {
    let to = match &section.action {
        Action::Update { to, .. } => to.as_deref(),
        Action::Add(_) | Action::Delete(_) => None,
    };
    std::iter::once(section.path.as_str()).chain(to.filter(|to| *to != section.path))
}

fn line_counts(sections: &[FilePatch]) -> (usize, usize) {
    sections.iter().map(FilePatch::line_counts).fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
}

/// Planned changes of one section of a patch.
struct SectionChange {
    rewrites: Vec<Rewrite>,
    /// Result for the model, one line.
    message: String,
    /// Diff for the approval prompt; sent to the model only if `is_diff_shown`.
    diff: String,
    is_diff_shown: bool,
}

impl ApplyPatch {
    /// Plans the changes of a call without writing anything.
    fn plan_changes(
        &self,
        args: &Args,
        cx: &ToolContext,
    ) -> Result<(Vec<FilePatch>, Vec<SectionChange>), String> {
        let refused = |error: &PatchError| match &args.path {
            Some(path) => {
                format!("Patch not applied to {}, which is untouched: {error}.", one_line(path, QUOTE_CHARS))
            }
            None => format!("Patch not applied, no file is touched: {error}."),
        };
        let sections = args.sections().map_err(|error| refused(&error))?;
        let mut parts = Vec::with_capacity(sections.len());
        let (mut paths, mut bytes) = (HashSet::new(), 0_usize);
        for section in &sections {
            let part = self.part(section, cx, &|error| match sections.len() {
                1 => {
                    format!(
                        "Patch not applied to {}, which is untouched: {error}.",
                        one_line(&section.path, QUOTE_CHARS)
                    )
                }
                _ => refused(&error.in_file(&section.path)),
            })?;
            for rewrite in &part.rewrites {
                let real = rewrite.old.as_ref().map_or(&rewrite.path, |old| &old.path);
                if !paths.insert(real.clone()) {
                    return Err(format!(
                        "Patch not applied: it names {real} twice. Put all of its hunks into one section."
                    ));
                }
                let old = rewrite.old.as_ref().map_or(0, |old| old.text.len());
                bytes = bytes.saturating_add(old).saturating_add(rewrite.new.as_ref().map_or(0, String::len));
            }
            if bytes > MAX_TOTAL_BYTES {
                return Err(format!(
                    "Patch not applied: its files have over {MAX_TOTAL_BYTES} bytes. Make several calls."
                ));
            }
            parts.push(part);
        }
        Ok((sections, parts))
    }

    fn part(
        &self,
        section: &FilePatch,
        cx: &ToolContext,
        refused: &dyn Fn(PatchError) -> String,
    ) -> Result<SectionChange, String> {
        let path = file_change::checked_path(cx, &section.path)?;
        match &section.action {
            Action::Add(text) => {
                check_free(cx, &path)?;
                let message = format!("File {path} created ({}).", pluralize(text.lines().count(), "line"));
                let diff = diff::unified_full(path.as_str(), "", text);
                let rewrite = Rewrite::to(path, None, text.clone());
                Ok(SectionChange { rewrites: vec![rewrite], message, diff, is_diff_shown: false })
            }
            Action::Delete(hunks) => {
                if !self.allow_delete {
                    return Err(DELETE_DISABLED.to_owned());
                }
                let old = file_change::load_unchanged(cx, &path)?;
                let rest = apply(&old.text, hunks).map_err(refused)?.text;
                if !hunks.is_empty() && !rest.trim_start_matches(BOM).is_empty() {
                    return Err(refused(PatchError::PartialDelete));
                }
                let message = format!("File {path} deleted.");
                let diff = diff::unified_full(path.as_str(), &old.text, "");
                let rewrite = Rewrite { path, old: Some(old), new: None, mode: None };
                Ok(SectionChange { rewrites: vec![rewrite], message, diff, is_diff_shown: false })
            }
            Action::Update { to, hunks } => {
                let old = file_change::load_unchanged(cx, &path)?;
                let new = apply(&old.text, hunks).map_err(refused)?;
                let to = to.as_ref().filter(|to| **to != section.path);
                match to.map(|to| file_change::checked_path(cx, to)).transpose()? {
                    Some(to) => move_file(cx, path, to, old, &new, hunks),
                    None if new.text == old.text => Err(refused(PatchError::Unchanged)),
                    None => {
                        let message = format!("Patch applied to {path}. {}", hunk_summary(&new, hunks));
                        let diff = diff::unified_full(path.as_str(), &old.text, &new.text);
                        let rewrite = Rewrite::to(path, Some(old), new.text);
                        Ok(SectionChange { rewrites: vec![rewrite], message, diff, is_diff_shown: true })
                    }
                }
            }
        }
    }
}

/// Plans a move, with an optional change of the text; the permissions are preserved.
fn move_file(
    cx: &ToolContext,
    path: RelPath,
    to: RelPath,
    old: LoadedFile,
    new: &Patched,
    hunks: &[Hunk],
) -> Result<SectionChange, String> {
    check_free(cx, &to)?;
    let message = format!("File {path} moved to {to}. {}", hunk_summary(new, hunks)).trim_end().to_owned();
    let diff = format!("{path} becomes {to}\n{}", diff::unified_full(to.as_str(), &old.text, &new.text));
    let mode = Some(old.mode);
    let rewrites = vec![
        Rewrite { path: to, old: None, new: Some(new.text.clone()), mode },
        Rewrite { path, old: Some(old), new: None, mode: None },
    ];
    Ok(SectionChange { rewrites, message, diff, is_diff_shown: !hunks.is_empty() })
}

fn check_free(cx: &ToolContext, path: &RelPath) -> Result<(), String> {
    match file_change::load(cx, path) {
        Ok(None) => Ok(()),
        _ => Err(format!(
            "Patch not applied: File {path} already exists. To change it use `*** Update File: {path}`; a file is moved only to a free name."
        )),
    }
}

/// Summarizes the number of hunks and changed lines, and lists the hunks that matched inexactly.
fn hunk_summary(new: &Patched, hunks: &[Hunk]) -> String {
    if hunks.is_empty() {
        return String::new();
    }
    let mut text = format!("{} hunk(s), {} changed.", hunks.len(), pluralize(new.changed_lines, "line"));
    for (number, level) in (1..).zip(&new.match_levels) {
        if let Some(allowance) = level.difference() {
            // Writing to a String cannot fail.
            let _ = write!(text, " Hunk {number} matched {allowance}.");
        }
    }
    text
}
