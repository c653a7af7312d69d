//! The `list_files` tool: lists a directory.

use crate::search_support::{self, MAX_LISTED};
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_text::lines::{escape_controls, pluralize};
use agent_workspace::error::FileError;
use agent_workspace::walk::{EntryKind, FindQuery};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write as _;

/// The `list_files` tool.
#[derive(Debug)]
pub struct ListFiles;

/// The arguments of `list_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Default: workspace.
    path: Option<String>,
    /// Name glob, e.g. *.rs.
    pattern: Option<String>,
    /// Include subdirectories; skips ignored files and hidden directories. Default: false.
    recursive: Option<bool>,
}

impl TypedTool for ListFiles {
    const NAME: &'static str = "list_files";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "List a directory.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        Plan::file(args.path.as_deref().unwrap_or("."), false)
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let base =
            cx.workspace.path(args.path.as_deref().unwrap_or(".")).map_err(|error| error.to_string())?;
        let glob = search_support::parse_glob(args.pattern.as_deref())?;
        let (workspace, recursive) = ((*cx.workspace).clone(), args.recursive.unwrap_or(false));
        let listing = search_support::run_blocking(cx, move |stop| {
            // Fails if the path is a file, which a recursive walk would list as its only entry.
            let direct = workspace.list(&base, glob.as_ref(), MAX_LISTED)?;
            if recursive {
                let wanted =
                    FindQuery { base: &base, glob: glob.as_ref(), directories: true, most: MAX_LISTED };
                workspace.find(&wanted, stop)
            } else {
                Ok(direct)
            }
        })
        .await?
        .map_err(|error| match error {
            FileError::Missing(path) => format!("Directory does not exist: {path}"),
            FileError::NotDirectory(path) => {
                format!("Path is not a directory: {path}; read_file reads a file")
            }
            error => error.to_string(),
        })?;
        let mut out = String::new();
        for entry in &listing.entries {
            let icon = if entry.kind == EntryKind::Directory { "📁" } else { "📄" };
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{icon} {}", escape_controls(entry.path.as_str()));
        }
        if listing.total == 0 {
            out.push_str(if args.pattern.is_some() { "(nothing matches)\n" } else { "(empty directory)\n" });
        }
        let _ = write!(out, "Total: {}", pluralize(listing.total, "item"));
        search_support::write_listing_notes(&mut out, &listing);
        Ok(ToolOutput::ok(out))
    }
}
