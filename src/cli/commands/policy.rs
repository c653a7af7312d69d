//! `agent policy`: explains which rule decides on a call, without running it.

use crate::args::PolicyCommand;
use crate::commands::common_args::CommonArgs;
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::decision::Decision;
use agent_core::failure::FailureKind;
use agent_core::message::MCP_PREFIX;
use agent_engine::policy::MODE_RULE_PREFIX;
use agent_engine::rules::Action;
use agent_engine::{Engine, call_arguments};
use agent_fetch::page_url;
use agent_process::launch::Launcher;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::deciding_engine::deciding_engine;
use agent_run::error::{AppError, AppResult};
use agent_run::mcp::{McpOptions, McpServers};
use agent_run::output::print;
use agent_run::subagents;
use agent_run::toolbox::toolbox;
use agent_tools::toolbox::Toolbox;
use agent_tools::web_search::WebSearch;
use agent_tools::{Access, Plan, Tool, TypedTool};
use serde_json::{Value, json};
use std::fmt::Write;
use std::rc::Rc;

/// Prints the decision on a call and its reason.
///
/// # Errors
/// Fails for an invalid configuration, an unknown tool or invalid arguments, and when standard output cannot be
/// written.
pub fn policy(app: &App, command: PolicyCommand, common: &CommonArgs) -> AppResult<()> {
    let PolicyCommand::Test { call, agent, mode } = command;
    let call = call.join(" ");
    let (name, target_text) = call.trim().split_once(char::is_whitespace).unwrap_or((call.trim(), ""));
    let loaded = app.load_and_notify(&Overrides { agent, mode, ..common.overrides() })?;
    let settings = &loaded.settings;
    let launcher = assemble::launcher(app, settings)?;
    let mut toolbox = toolbox(settings).with(subagents::dispatch_tool(settings, &Rc::default()));
    if name.starts_with(MCP_PREFIX) {
        toolbox = app.block_on(with_accepted_tools(app, settings, &launcher, toolbox))?;
    }
    let engine = deciding_engine(app, settings, launcher, toolbox)?;
    let wrong = |problem: String| AppError::new(FailureKind::Usage, problem);
    let tool = engine.toolbox.get(name).map_err(wrong)?;
    let target_text = target_text.trim();
    let args = target_text
        .starts_with('{')
        .then(|| call_arguments::parse(target_text))
        .transpose()
        .map_err(wrong)?;
    let plan = args
        .as_ref()
        .map_or_else(|| plan_from_text(tool, target_text), |args| tool.plan(args))
        .map_err(wrong)?;
    print(&app.terminal, &app.redactor(settings).text(&explanation(&engine, tool, args.as_ref(), &plan)))
}

/// Adds the accepted tools of the MCP servers to `toolbox`, without starting a server.
async fn with_accepted_tools(
    app: &App,
    settings: &Settings,
    launcher: &Launcher,
    toolbox: Toolbox,
) -> AppResult<Toolbox> {
    let options = McpOptions { dry_run: true, ask_until: None, hosted: Vec::new() };
    let mut servers = McpServers::start(app, settings, launcher, options).await;
    let toolbox = servers.add_to(toolbox, settings, &app.redactor(settings));
    servers.show_notices(app);
    Ok(toolbox)
}

/// Creates the plan of a call from a path, command or other single target.
fn plan_from_text(tool: &dyn Tool, target_text: &str) -> Result<Plan, String> {
    match tool.access() {
        _ if target_text.is_empty() => Ok(Plan::default()),
        Access::Execute => Ok(Plan {
            summary: target_text.to_owned(),
            command: Some(target_text.to_owned()),
            ..Plan::default()
        }),
        Access::Network if tool.name() == WebSearch::NAME => tool.plan(&json!({ "query": target_text })),
        Access::Network => {
            let host = page_url::parse_page_url(target_text)?.host_str().map(str::to_owned);
            Ok(Plan { summary: target_text.to_owned(), host, ..Plan::default() })
        }
        Access::Mcp | Access::McpWrite { .. } => {
            Ok(Plan { summary: target_text.to_owned(), ..Plan::default() })
        }
        access @ (Access::Read | Access::Write) => Ok(Plan::file(target_text, access == Access::Write)),
    }
}

fn explanation(engine: &Engine, tool: &dyn Tool, args: Option<&Value>, plan: &Plan) -> String {
    let mode = || format!("{MODE_RULE_PREFIX}{}", engine.policy.mode().name());
    let (verdict, rule, reason) = match engine.judge(tool, args, plan) {
        Decision::Deny { reason, rule } => ("deny", rule, Some(reason)),
        Decision::Ask { reason, rule } => ("ask", rule, Some(reason)),
        Decision::Allow => match engine.policy.ruling(tool.name(), &engine.resolved(plan)) {
            Some(ruling) if ruling.action == Action::Allow => ("allow", ruling.rule, ruling.reason),
            _ => ("allow", mode(), None),
        },
    };
    let mut text = format!("{verdict}: {} {}\n", tool.name(), plan.summary);
    let _ = writeln!(text, "decided by: {rule}");
    for line in reason.iter().flat_map(|reason| reason.lines()) {
        let _ = writeln!(text, "    {line}");
    }
    text
}
