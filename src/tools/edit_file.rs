//! The `edit_file` tool: replaces one or more passages of a file, each of which must occur exactly once.

use crate::file_change;
use crate::rewrite::{LoadedFile, Rewrite};
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_text::edit::{self, Edited, Replacement};
use agent_text::lines::pluralize;
use agent_text::{diff, match_level::MatchLevel};
use agent_workspace::path::RelPath;
use schemars::JsonSchema;
use serde::Deserialize;

/// Maximum number of replacements in one call.
const MAX_EDITS: usize = 100;

/// The `edit_file` tool.
#[derive(Debug)]
pub struct EditFile;

/// The arguments of `edit_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    path: String,
    /// Exact text to replace.
    old_str: Option<String>,
    /// Replacement.
    new_str: Option<String>,
    /// Several replacements instead of `old_str` and `new_str`, all matched against the current file.
    edits: Option<Vec<Pair>>,
}

// One of several replacements. A doc comment would be sent to the model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pair {
    old_str: String,
    new_str: String,
}

impl TypedTool for EditFile {
    const NAME: &'static str = "edit_file";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str = "Replace text that occurs exactly once in a file. Returns the diff.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let replacements = args.replacements().unwrap_or_default();
        let lines = |text: fn(&Replacement<'_>) -> usize| replacements.iter().map(text).sum::<usize>();
        let (old, new) = (lines(|it| it.old.lines().count()), lines(|it| it.new.lines().count()));
        Plan::change(&args.path, &format!("{old}→{}", pluralize(new, "line")))
    }

    fn rewrites(&self, args: &Args, cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        let (path, old, new) = apply_edits(args, cx)?;
        Ok(vec![Rewrite::to(path, Some(old), new.text)])
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let (path, old, new) = apply_edits(&args, cx)?;
        let message = format!(
            "File {path} edited{}:\n{}",
            notes(&new.match_levels),
            diff::unified(&path.to_string(), &old.text, &new.text)
        );
        file_change::store(cx, &path, Some(&old), &new.text, message)
    }
}

impl Args {
    fn replacements(&self) -> Result<Vec<Replacement<'_>>, String> {
        match (&self.old_str, &self.new_str, self.edits.as_deref()) {
            (Some(old), Some(new), None | Some([])) => Ok(vec![Replacement { old, new }]),
            (None, None, Some(edits)) if (1..=MAX_EDITS).contains(&edits.len()) => {
                Ok(edits.iter().map(|pair| Replacement { old: &pair.old_str, new: &pair.new_str }).collect())
            }
            (None, None, Some(edits)) if !edits.is_empty() => {
                Err(format!("Invalid arguments: at most {MAX_EDITS} edits in one call"))
            }
            _ => {
                Err("Invalid arguments: give old_str and new_str, or edits with one of both in each"
                    .to_owned())
            }
        }
    }
}

fn apply_edits(args: &Args, cx: &ToolContext) -> Result<(RelPath, LoadedFile, Edited), String> {
    let replacements = args.replacements()?;
    let path = file_change::checked_path(cx, &args.path)?;
    let old = file_change::load_unchanged(cx, &path)?;
    let new =
        edit::replace(&path.to_string(), &old.text, &replacements).map_err(|error| error.to_string())?;
    Ok((path, old, new))
}

/// Describes which passages matched inexactly, and how.
fn notes(match_levels: &[MatchLevel]) -> String {
    let note = |(number, level): (usize, &MatchLevel)| {
        let what = if match_levels.len() == 1 { "old_str".to_owned() } else { format!("edit {number}") };
        level.difference().map(|allowance| format!("{what} matched {allowance}"))
    };
    let notes: Vec<String> = (1..).zip(match_levels).filter_map(note).collect();
    if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) }
}
