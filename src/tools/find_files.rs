//! The `find_files` tool: finds files by name.

use crate::search_support::{self, MAX_LISTED};
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_text::lines::{QUOTE_CHARS, escape_controls, one_line, pluralize};
use agent_workspace::walk::FindQuery;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write as _;

/// The `find_files` tool.
#[derive(Debug)]
pub struct FindFiles;

/// The arguments of `find_files`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Glob on names (*.rs), or on paths if it has a slash (src/**/*.rs).
    pattern: String,
    /// Directory. Default: workspace.
    path: Option<String>,
}

impl TypedTool for FindFiles {
    const NAME: &'static str = "find_files";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str = "Find files by name. Skips ignored files and hidden directories.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let path = args.path.as_deref().unwrap_or(".");
        Plan::search(&args.pattern, path)
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let base =
            cx.workspace.path(args.path.as_deref().unwrap_or(".")).map_err(|error| error.to_string())?;
        let glob = search_support::parse_glob(Some(&args.pattern))?;
        let workspace = (*cx.workspace).clone();
        let listing = search_support::run_blocking(cx, move |stop| {
            let wanted = FindQuery { base: &base, glob: glob.as_ref(), directories: false, most: MAX_LISTED };
            workspace.find(&wanted, stop)
        })
        .await?
        .map_err(|error| error.to_string())?;
        let pattern = one_line(&args.pattern, QUOTE_CHARS);
        let mut out = if listing.total == 0 {
            format!("No files found matching '{pattern}'")
        } else {
            format!("Found {} matching '{pattern}':", pluralize(listing.total, "file"))
        };
        for entry in &listing.entries {
            // Writing to a String cannot fail.
            let _ = write!(out, "\n{}", escape_controls(entry.path.as_str()));
        }
        search_support::write_listing_notes(&mut out, &listing);
        Ok(ToolOutput::ok(out))
    }
}
