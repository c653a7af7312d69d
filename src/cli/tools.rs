//! `agent tools`: the tools there are, and one called as the model would call it.

use crate::cli::app::{App, flags_of};
use crate::cli::args::ToolsCommand;
use crate::cli::compose;
use crate::cli::error::{CliError, CliResult};
use crate::cli::home;
use crate::cli::output::print;
use crate::cli::place::PlaceArgs;
use crate::cli::subagents;
use crate::config::flags::Flags;
use crate::emit::Emitter;
use crate::engine::policy::Mode;
use crate::event::{Event, EventSink, Record};
use crate::failure::ErrorKind;
use crate::message::{ToolCall, ToolResult};
use crate::terminal::Style;
use std::cell::RefCell;
use std::fmt::Write;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// Lists the tools or calls one.
///
/// # Errors
/// When the configuration is wrong, the call fails or is refused, or standard output cannot be written.
pub fn tools(app: &App, command: Option<ToolsCommand>, place: &PlaceArgs) -> CliResult<()> {
    match command {
        None => list(app, place),
        Some(ToolsCommand::Call { name, arguments, mode }) => call(app, mode, place, name, arguments),
    }
}

/// Calls the tool `name` with `arguments`, a JSON object, as the model would, and prints what it answers.
///
/// # Errors
/// As [`tools`].
pub fn call(
    app: &App,
    mode: Option<Mode>,
    place: &PlaceArgs,
    name: String,
    arguments: String,
) -> CliResult<()> {
    let flags = Flags { mode, ..flags_of(place) };
    let call = ToolCall { id: "call".to_owned(), name, arguments, opaque: None };
    let result = app.block_on(run_one(app, &flags, call))?;
    if result.is_error {
        let reason = result.text.strip_prefix("Error: ").unwrap_or(&result.text);
        return Err(CliError::new(ErrorKind::Request, reason.to_owned()));
    }
    print(&app.terminal, &result.text)
}

fn list(app: &App, place: &PlaceArgs) -> CliResult<()> {
    let loaded = app.load_place(place)?;
    let subagents = subagents::tool(&loaded.settings, &Rc::default());
    let toolbox = compose::toolbox(&loaded.settings).with(subagents);
    let mut text = String::new();
    for tool in toolbox.definitions() {
        let first = tool.description.split(". ").next().unwrap_or_default();
        let _ = writeln!(text, "{:<14} {}", tool.name, first.trim_end_matches('.'));
    }
    print(&app.terminal, &text)
}

/// Keeps the result of the one call.
struct Keep(Rc<RefCell<Option<ToolResult>>>);

impl EventSink for Keep {
    fn emit(&mut self, record: &Record) -> std::io::Result<()> {
        if let Event::ToolEnd { result, .. } = &record.event {
            *self.0.borrow_mut() = Some(result.clone());
        }
        Ok(())
    }
}

async fn run_one(app: &App, flags: &Flags, call: ToolCall) -> CliResult<ToolResult> {
    let loaded = app.load_and_tell(flags)?;
    let settings = &loaded.settings;
    home::prepare(settings)?;
    let launcher = compose::launcher(app, settings)?;
    let interrupt = compose::listen(app, &launcher, settings.language)?;
    let kept = Rc::new(RefCell::new(None));
    let sinks: Vec<Box<dyn EventSink>> = vec![Box::new(Keep(Rc::clone(&kept)))];
    let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), 0, sinks)
        .redacting(app.redactor(settings));
    let outputs = settings.state.join("calls").join(app.source.session_id());
    let bench = compose::Bench {
        launcher,
        emitter: Rc::new(emitter),
        outputs,
        kept: None,
        toolbox: compose::toolbox(settings).with(subagents::tool(settings, &Rc::default())),
    };
    let manner = compose::Manner::of_one_call(Some(interrupt.token().clone()));
    let engine = compose::engine(app, settings, bench, manner)?;
    for text in compose::recover(&engine.workspace) {
        app.tell(Style::Caution, &text);
    }
    let token: &CancellationToken = interrupt.token();
    engine
        .run_batch(&[call], token, None)
        .await
        .map_err(|error| CliError { kind: ErrorKind::Internal, cause: error.into() })?;
    kept.take().ok_or_else(|| CliError::new(ErrorKind::Internal, "the call gave no result"))
}
