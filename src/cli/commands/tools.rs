//! `agent tools`: lists the tools, or calls one like the model does.

use crate::args::ToolsCommand;
use crate::commands::common_args::CommonArgs;
use agent_config::mcp::ToolListing;
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::failure::FailureKind;
use agent_core::message::{MCP_PREFIX, ToolCall, ToolResult};
use agent_engine::policy::Mode;
use agent_engine::skill_set::SkillSet;
use agent_mcp::definition::name_prefix;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::assemble;
use agent_run::directories;
use agent_run::error::{AppError, AppResult};
use agent_run::mcp::{McpOptions, McpServers};
use agent_run::output::print;
use agent_run::session::session_store;
use agent_run::subagents;
use agent_run::toolbox::{all_kept_results, toolbox};
use agent_runtime::emitter::Emitter;
use agent_terminal::Style;
use agent_text::lines::{QUOTE_CHARS, one_line};
use agent_tools::foreground::ForegroundCommands;
use agent_tools::toolbox::Toolbox;
use agent_workspace::Workspace;
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;

/// Lists the tools or calls one.
///
/// # Errors
/// Fails for an invalid configuration and a call that fails or is refused, and when standard output cannot be written.
pub fn tools(app: &App, command: Option<ToolsCommand>, common: &CommonArgs) -> AppResult<()> {
    match command {
        None => list(app, common),
        Some(ToolsCommand::Kept { clear }) => kept(app, common, clear),
        Some(ToolsCommand::Call { name, arguments, mode }) => call(app, mode, common, name, arguments),
    }
}

/// Calls the tool `name` with `arguments` (a JSON object) like the model does, and prints the result.
///
/// # Errors
/// Fails as [`tools`] does.
pub fn call(
    app: &App,
    mode: Option<Mode>,
    common: &CommonArgs,
    name: String,
    arguments: String,
) -> AppResult<()> {
    let flags = Overrides { mode, ..common.overrides() };
    let call = ToolCall::new("call", name, arguments);
    let foreground = ForegroundCommands::default();
    let single = SingleCall { call, flags, dry_run: false, session: None, foreground };
    let result = app.block_on(run_one(app, single))?;
    if result.is_error {
        let reason = result.text.strip_prefix("Error: ").unwrap_or(&result.text);
        return Err(AppError::new(FailureKind::Request, reason.to_owned()));
    }
    print(&app.terminal, &result.text)
}

fn list(app: &App, common: &CommonArgs) -> AppResult<()> {
    let mut settings = app.load_and_notify(&common.overrides())?.settings;
    settings.mcp.listing = ToolListing::All;
    let mut toolbox = toolbox(&settings).with(subagents::dispatch_tool(&settings, &Rc::default()));
    if settings.mcp.enabled().next().is_some() {
        toolbox = app.block_on(with_servers(app, &settings, toolbox))?;
    }
    let mut text = String::new();
    for tool in toolbox.definitions() {
        // The first sentence about a tool of a server names the server.
        let sentence = usize::from(tool.name.starts_with(MCP_PREFIX));
        let about = tool.description.split(". ").nth(sentence).unwrap_or_default();
        let about = one_line(about.trim_end_matches('.'), QUOTE_CHARS);
        let _ = writeln!(text, "{:<14} {about}", tool.name);
    }
    print(&app.terminal, &text)
}

/// Adds the tools of the MCP servers to `toolbox`; the servers are ended again.
async fn with_servers(app: &App, settings: &Settings, toolbox: Toolbox) -> AppResult<Toolbox> {
    directories::prepare(settings)?;
    let launcher = assemble::launcher(app, settings)?;
    let options = McpOptions { dry_run: false, ask_until: None, hosted: Vec::new() };
    let mut servers = McpServers::start(app, settings, &launcher, options).await;
    let toolbox = servers.add_to(toolbox, settings, &app.redactor(settings));
    servers.finish_and_notify(app, settings).await;
    Ok(toolbox)
}

/// Lists the kept results of the workspace, void ones with the reason, or removes them.
fn kept(app: &App, common: &CommonArgs, clear: bool) -> AppResult<()> {
    let settings = app.load_and_notify(&common.overrides())?.settings;
    let failed = |error: anyhow::Error| AppError { kind: FailureKind::Request, cause: error };
    let workspace = Workspace::open(&settings.workspace).map_err(|error| failed(error.into()))?;
    let kept = all_kept_results(&settings, &toolbox(&settings), &app.source);
    if clear {
        let removed = kept.clear().map_err(|error| failed(error.into()))?;
        return print(&app.terminal, &messages::kept_results_removed(removed));
    }
    let all = kept.all().map_err(|error| failed(error.into()))?;
    let mut text = String::new();
    for result in &all {
        let reason = kept.void_reason(result, &workspace);
        let reason = reason.map_or_else(String::new, |reason| format!(", void: {reason}"));
        let _infallible = writeln!(text, "{}{reason}", kept.line(result));
    }
    print(&app.terminal, if all.is_empty() { messages::NO_KEPT_RESULTS } else { &text })
}

/// Stores the result of the call.
struct ResultRecorder(Rc<RefCell<Option<ToolResult>>>);

impl EventSink for ResultRecorder {
    fn emit(&mut self, record: &Record) -> std::io::Result<()> {
        if let Event::ToolCallEnd { result, .. } = &record.event {
            *self.0.borrow_mut() = Some(result.clone());
        }
        Ok(())
    }
}

/// A call of a tool outside of a run.
pub struct SingleCall<'a> {
    /// The call.
    pub call: ToolCall,
    /// The flags for its settings.
    pub flags: Overrides,
    /// Whether changes and commands are only described.
    pub dry_run: bool,
    /// The session that may read a long result as `output:ID`.
    pub session: Option<&'a str>,
    /// Whether a user follows a command while it runs.
    pub foreground: ForegroundCommands,
}

/// Calls a tool like the model does, outside of a run, and returns its result.
///
/// # Errors
/// Fails for an invalid configuration, and when the call gives no result.
pub async fn run_one(app: &App, single: SingleCall<'_>) -> AppResult<ToolResult> {
    let SingleCall { call, flags, dry_run, session, foreground } = single;
    let loaded = app.load_and_notify(&flags)?;
    let settings = &loaded.settings;
    directories::prepare(settings)?;
    let launcher = assemble::launcher(app, settings)?;
    let interrupt = assemble::arm_interrupt(app, Some(&launcher), settings.language)?;
    let mcp_options = McpOptions { dry_run, ask_until: Some(interrupt.clone()), hosted: Vec::new() };
    let mut needed = settings.clone();
    needed.mcp.servers.retain(|server, _| call.name.starts_with(&name_prefix(server)));
    // Also the values that are mapped to servers that are not started are secrets.
    let redactor = app.redactor(settings);
    let mut servers = McpServers::start(app, &needed, &launcher, mcp_options).await;
    let toolbox = toolbox(settings).with(subagents::dispatch_tool(settings, &Rc::default()));
    let toolbox = servers.add_to(toolbox, settings, &redactor);
    servers.show_notices(app);
    let recorded = Rc::new(RefCell::new(None));
    let sinks: Vec<Box<dyn EventSink>> = vec![Box::new(ResultRecorder(Rc::clone(&recorded)))];
    let emitter =
        Emitter::new(Rc::clone(&app.source), app.source.short_id(), 0, sinks).with_redactor(redactor);
    let outputs = match session {
        Some(id) => session_store(settings).outputs_dir(id)?,
        None => settings.state.join("calls").join(app.source.session_id()),
    };
    let parts = assemble::EngineParts {
        launcher,
        emitter: Rc::new(emitter),
        outputs,
        images: None,
        undo_store: None,
        skills: SkillSet::default(),
        kept: None,
        toolbox,
    };
    let interaction = agent_run::approver::InteractionOptions {
        dry_run,
        foreground,
        ..agent_run::approver::InteractionOptions::for_single_call(Some(interrupt.clone()))
    };
    let engine = assemble::engine(app, settings, parts, interaction)?;
    for text in assemble::recover_transactions(&engine.workspace) {
        app.notify(Style::Warning, &text);
    }
    let ran = engine.run_calls(&[call], &interrupt, None).await;
    servers.finish_and_notify(app, settings).await;
    ran.map_err(|error| AppError { kind: FailureKind::Internal, cause: error.into() })?;
    recorded.take().ok_or_else(|| AppError::new(FailureKind::Internal, "the call gave no result"))
}
