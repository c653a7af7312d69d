//! The `grep` tool: searches plain text in the files of the workspace or in a stored output.

use crate::outputs::is_stored;
use crate::search_support;
use crate::{Access, Plan, ToolContext, ToolOutput, TypedTool};
use agent_workspace::path::RelPath;
use agent_workspace::search::{self, Query};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Default number of matching lines.
const DEFAULT_RESULTS: usize = 30;

/// Maximum number of matching lines of one call.
const MAX_RESULTS: usize = 500;

/// The `grep` tool.
#[derive(Debug)]
pub struct Grep;

/// The arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Literal text.
    text: String,
    /// File, directory or output:ID. Default: workspace.
    path: Option<String>,
    /// File name glob, e.g. *.rs.
    file_pattern: Option<String>,
    /// 1 to 500. Default: 30.
    max_results: Option<usize>,
    /// Default: true.
    case_sensitive: Option<bool>,
}

impl TypedTool for Grep {
    const NAME: &'static str = "grep";
    const ACCESS: Access = Access::Read;
    const DESCRIPTION: &'static str =
        "Find plain text in files, one line per hit. Skips ignored files and hidden directories.";
    type Args = Args;

    fn plan(&self, args: &Args) -> Plan {
        let path = args.path.as_deref().unwrap_or(".");
        let plan = Plan::search(&args.text, path);
        if is_stored(path) { Plan { touched_files: Vec::new(), ..plan } } else { plan }
    }

    async fn run(&self, args: Args, cx: &ToolContext) -> Result<ToolOutput, String> {
        if args.text.is_empty() {
            return Err("Invalid arguments: text is empty.".to_owned());
        }
        if args.text.contains('\n') {
            return Err("Invalid arguments: text has a line break, but grep matches single lines.".to_owned());
        }
        let path = args.path.as_deref().unwrap_or(".");
        let output = cx.outputs.open_named(path, &cx.workspace).transpose()?;
        let base = match &output {
            Some(_) => RelPath::root(),
            None => cx.workspace.path(path).map_err(|error| error.to_string())?,
        };
        let most = args.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
        let query = Query {
            pattern: args.text.clone(),
            literal: true,
            case_sensitive: args.case_sensitive.unwrap_or(true),
            base,
            glob: search_support::parse_glob(args.file_pattern.as_deref())?,
            context: 0,
            most,
            hidden: Arc::clone(&cx.hidden),
        };
        let found = if let Some(file) = output {
            let name = path.to_owned();
            search_support::run_blocking(cx, move |stop| search::search_one(&file, &name, &query, stop))
                .await?
        } else {
            let workspace = (*cx.workspace).clone();
            search_support::run_blocking(cx, move |stop| workspace.search(&query, stop)).await?
        };
        let results = found.map_err(|error| error.to_string())?;
        Ok(ToolOutput::ok(search_support::format_answer(
            &results,
            &args.text,
            search_support::format_lines(&results),
            most,
        )))
    }
}
