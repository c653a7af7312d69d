//! `apply_patch`: applies a unified diff to one file, all hunks or none.

use crate::text::lines::counted;
use crate::text::patch::{self, Patched};
use crate::tools::guarded::{self, Loaded};
use crate::tools::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use crate::workspace::path::RelPath;
use futures_util::future::LocalBoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

/// Applies patches.
#[derive(Debug)]
pub struct ApplyPatch;

/// The arguments of `apply_patch`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Existing file to patch.
    path: String,
    /// Unified diff: `@@ -10,3 +10,4 @@` hunks; file headers optional; `@@ -0,0 +1,2 @@` inserts.
    patch: String,
}

impl TypedTool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str =
        "Apply a unified diff with one or more hunks to one file. All hunks apply or none.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let lines = || args.patch.lines().skip_while(|line| !line.starts_with("@@"));
        let [added, removed] = ['+', '-'].map(|sign| lines().filter(|line| line.starts_with(sign)).count());
        Plan::change(&args.path, &format!("+{added} -{removed}"))
    }

    fn preview(&self, args: &Args, cx: &ToolContext) -> Result<Option<String>, String> {
        let (path, old, new) = patched(args, cx)?;
        Ok(guarded::preview(&path, &old.text, &new.text))
    }

    fn run<'a>(&'a self, args: Args, cx: &'a ToolContext) -> LocalBoxFuture<'a, ToolOutput> {
        Box::pin(async move { run(&args, cx).unwrap_or_else(ToolOutput::error) })
    }
}

fn patched(args: &Args, cx: &ToolContext) -> Result<(RelPath, Loaded, Patched), String> {
    let path = guarded::path(cx, &args.path)?;
    let old = guarded::load_unchanged(cx, &path)?;
    let new = patch::apply(&old.text, &args.patch)
        .map_err(|error| format!("Patch not applied to {path}, which is untouched: {error}."))?;
    Ok((path, old, new))
}

fn run(args: &Args, cx: &ToolContext) -> Result<ToolOutput, String> {
    let (path, old, new) = patched(args, cx)?;
    let said = format!(
        "Patch applied to {path}. {} hunk(s), {} changed.",
        new.hunks,
        counted(new.changed_lines, "line")
    );
    guarded::store(cx, &path, Some(&old), &new.text, said)
}
