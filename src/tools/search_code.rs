//! The `search_code` tool: searches the files of the workspace with a regular expression.

use crate::search_support;
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_workspace::search::Query;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Default number of matching lines.
const DEFAULT_RESULTS: usize = 20;

/// Maximum number of matching lines of one call.
const MAX_RESULTS: usize = 200;

/// Default number of context lines on either side.
const DEFAULT_CONTEXT: usize = 2;

/// Maximum number of context lines on either side.
const MAX_CONTEXT: usize = 10;

/// The `search_code` tool.
#[derive(Debug)]
pub struct SearchCode;

/// The arguments of `search_code`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Rust regex syntax, matched line by line.
    pattern: String,
    /// File or directory. Default: workspace.
    path: Option<String>,
    /// File name glob, e.g. *.rs.
    file_pattern: Option<String>,
    /// 1 to 200. Default: 20.
    max_results: Option<usize>,
    /// 0 to 10. Default: 2.
    context_lines: Option<usize>,
    /// Default: true.
    case_sensitive: Option<bool>,
}

impl TypedTool for SearchCode {
    const NAME: &'static str = "search_code";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str =
        "Search files with a regular expression; shows context. Skips ignored files and hidden directories.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let path = args.path.as_deref().unwrap_or(".");
        Plan::search(&args.pattern, path)
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        let base =
            cx.workspace.path(args.path.as_deref().unwrap_or(".")).map_err(|error| error.to_string())?;
        let most = args.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
        let query = Query {
            pattern: args.pattern.clone(),
            literal: false,
            case_sensitive: args.case_sensitive.unwrap_or(true),
            base,
            glob: search_support::parse_glob(args.file_pattern.as_deref())?,
            context: args.context_lines.unwrap_or(DEFAULT_CONTEXT).min(MAX_CONTEXT),
            most,
            hidden: Arc::clone(&cx.hidden),
        };
        let workspace = (*cx.workspace).clone();
        let results = search_support::run_blocking(cx, move |stop| workspace.search(&query, stop))
            .await?
            .map_err(|error| error.to_string())?;
        Ok(ToolOutput::ok(search_support::format_answer(
            &results,
            &args.pattern,
            search_support::format_blocks(&results),
            most,
        )))
    }
}
