//! The `delete_file` tool: deletes one file if the configuration allows it.

use crate::file_change;
use crate::rewrite::Rewrite;
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_core::file_change::{Change, ChangedBy, FileState};
use agent_workspace::error::FileError;
use agent_workspace::path::RelPath;
use agent_workspace::replace::Expected;
use schemars::JsonSchema;
use serde::Deserialize;

/// Message for the model when the configuration does not allow deleting.
pub const DELETE_DISABLED: &str =
    "Delete operations are disabled. Set workspace.allow_delete=true to allow them.";

/// The `delete_file` tool.
#[derive(Debug)]
pub struct DeleteFile {
    /// `workspace.allow_delete`: whether files may be deleted.
    pub allow_delete: bool,
}

/// The arguments of `delete_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    path: String,
}

impl TypedTool for DeleteFile {
    const NAME: &'static str = "delete_file";
    const ACCESS: Access = Access::Write;
    const DESCRIPTION: &'static str = "Delete a file (not a directory).";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        Plan::file(&args.path, true)
    }

    fn rewrites(&self, args: &Args, cx: &ToolContext) -> Result<Vec<Rewrite>, String> {
        let path = self.deletable_path(args, cx)?;
        // A file that is not text has no diff but can still be deleted.
        let old = file_change::load(cx, &path).ok().flatten();
        Ok(vec![Rewrite { path, old, new: None, mode: None }])
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let path = self.deletable_path(&args, cx)?;
        let real = cx.workspace.resolve_directory(&path).map_err(|error| error.to_string())?;
        let expected = cx.observed_files.hash(real.as_str()).map_or(Expected::Any, Expected::Hash);
        let was = cx.workspace.state_of(&path).unwrap_or(FileState::Unknown);
        let change = Change::between(real.as_str(), ChangedBy::Tool, &was, &FileState::Absent);
        file_change::announce(cx, vec![change])?;
        let displaced = cx.workspace.remove(&path, &expected).map_err(|error| match error {
            FileError::Missing(_) => file_change::missing_file_text(cx, &path),
            error => error.to_string(),
        })?;
        Ok(file_change::change_output(cx, &displaced, format!("File {path} deleted")))
    }
}

impl DeleteFile {
    fn deletable_path(&self, args: &Args, cx: &ToolContext) -> Result<RelPath, String> {
        if !self.allow_delete {
            return Err(DELETE_DISABLED.to_owned());
        }
        file_change::checked_path(cx, &args.path)
    }
}
