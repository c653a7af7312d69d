//! `edit_file`: replaces one unique passage of a file.

use crate::text::lines::counted;
use crate::text::{diff, edit};
use crate::tools::guarded::{self, Loaded};
use crate::tools::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use crate::workspace::path::RelPath;
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

/// Edits files.
#[derive(Debug)]
pub struct EditFile;

/// The arguments of `edit_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// File to edit.
    path: String,
    /// Exact text to replace; must occur exactly once.
    old_str: String,
    /// Text to put in its place.
    new_str: String,
}

impl TypedTool for EditFile {
    const NAME: &'static str = "edit_file";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str =
        "Replace a passage that occurs exactly once in a file. Returns the diff.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let [old, new] = [&args.old_str, &args.new_str].map(|text| text.lines().count());
        Plan::change(&args.path, &format!("{old}→{}", counted(new, "line")))
    }

    fn preview(&self, args: &Args, cx: &ToolContext) -> Result<Option<String>, String> {
        let (path, old, new) = edited(args, cx)?;
        Ok(guarded::preview(&path, &old.text, &new))
    }

    fn run<'a>(&'a self, args: Args, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(&args, cx).unwrap_or_else(ToolOutput::error) })
    }
}

fn edited(args: &Args, cx: &ToolContext) -> Result<(RelPath, Loaded, String), String> {
    let path = guarded::path(cx, &args.path)?;
    let old = guarded::load_unchanged(cx, &path)?;
    let new = edit::replace_once(&path.to_string(), &old.text, &args.old_str, &args.new_str)
        .map_err(|error| error.to_string())?;
    Ok((path, old, new))
}

fn run(args: &Args, cx: &ToolContext) -> Result<ToolOutput, String> {
    let (path, old, new) = edited(args, cx)?;
    let said = format!("File {path} edited:\n{}", diff::unified(&path.to_string(), &old.text, &new));
    guarded::store(cx, &path, Some(&old), &new, said)
}
