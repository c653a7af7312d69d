//! `agent policy`: says what decides about a call, without making it.

use crate::cli::app::{App, flags_of};
use crate::cli::args::PolicyCommand;
use crate::cli::compose;
use crate::cli::error::{CliError, CliResult};
use crate::cli::output::print;
use crate::cli::place::PlaceArgs;
use crate::cli::subagents;
use crate::config::flags::Flags;
use crate::decision::Decision;
use crate::emit::Emitter;
use crate::engine::policy::MODE_RULES;
use crate::engine::rules::Action;
use crate::engine::{Engine, arguments};
use crate::failure::ErrorKind;
use crate::fetch::target;
use crate::tools::{Access, Plan, Tool};
use serde_json::Value;
use std::fmt::Write;
use std::rc::Rc;

/// Explains what may happen to a call.
///
/// # Errors
/// When the configuration is wrong, there is no such tool or it takes no such arguments, or standard output cannot be
/// written.
pub fn policy(app: &App, command: PolicyCommand, place: &PlaceArgs) -> CliResult<()> {
    let PolicyCommand::Test { call, agent, mode } = command;
    let call = call.join(" ");
    let (name, about) = call.trim().split_once(char::is_whitespace).unwrap_or((call.trim(), ""));
    let loaded = app.load_and_tell(&Flags { agent, mode, ..flags_of(place) })?;
    let settings = &loaded.settings;
    let launcher = compose::launcher(app, settings)?;
    let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), 0, Vec::new());
    let outputs = settings.state.join("calls");
    let toolbox = compose::toolbox(settings).with(subagents::tool(settings, &Rc::default()));
    let bench = compose::Bench { launcher, emitter: Rc::new(emitter), outputs, toolbox, kept: None };
    let engine = compose::engine(app, settings, bench, compose::Manner::of_one_call(None))?;
    let wrong = |problem: String| CliError::new(ErrorKind::Usage, problem);
    let tool = engine.toolbox.get(name).map_err(wrong)?;
    let about = about.trim();
    let args = about.starts_with('{').then(|| arguments::read(about)).transpose().map_err(wrong)?;
    let plan = args.as_ref().map_or_else(|| named(tool, about), |args| tool.plan(args)).map_err(wrong)?;
    print(&app.terminal, &app.redactor(settings).text(&explained(&engine, tool, args.as_ref(), &plan)))
}

/// What a call would do, by the one thing that it is about.
fn named(tool: &dyn Tool, about: &str) -> Result<Plan, String> {
    match tool.access() {
        _ if about.is_empty() => Ok(Plan::default()),
        Access::Execute => {
            Ok(Plan { summary: about.to_owned(), command: Some(about.to_owned()), ..Plan::default() })
        }
        Access::Network => {
            let host = target::page(about)?.host_str().map(str::to_owned);
            Ok(Plan { summary: about.to_owned(), host, ..Plan::default() })
        }
        access @ (Access::Read | Access::Write) => Ok(Plan::file(about, access == Access::Write)),
    }
}

fn explained(engine: &Engine, tool: &dyn Tool, args: Option<&Value>, plan: &Plan) -> String {
    let mode = || format!("{MODE_RULES}{}", engine.policy.mode().name());
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
