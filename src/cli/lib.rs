//! Command line. Each file of `commands` parses the arguments of one command into a request.

pub mod args;
pub mod commands;
pub mod described;
mod pager;

use crate::args::{Cli, Command};
use crate::commands::chat::args::ChatArgs;
use crate::commands::eval::EvalAction;
use crate::commands::{
    agents, apply_patch, approvals, approve, chain, chat, completions, config, consolidate, demo, diff,
    doctor, eval, first_model, help, history, import, init, loop_command, man, mcp, memory, models, parallel,
    pipeline, policy, program, redo, replay, report, review, run, schema, sessions, skills, start, stats,
    tools, trust, undo, work,
};
use crate::described::Described;
use agent_bridges::{acp, claude, exec, serve};
use agent_core::approval::ApprovalAnswer;
use agent_core::failure::FailureKind;
use agent_run::app::App;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::output::print;
use agent_terminal::Style;
use clap::error::ErrorKind as ClapError;
use clap::{FromArgMatches, Parser};
use std::ffi::OsString;

/// Rows of a help that is shown at once also where the screen has a row less, such as that of `-h`.
const MAX_SHORT_HELP: usize = 25;

/// Runs the program and returns its exit code.
pub fn main() -> std::process::ExitCode {
    run_arguments(&agent_run::program::start(), std::env::args_os().collect()).into()
}

/// Runs the command of `arguments`, of which the first one is the name of the program, and returns its exit code.
pub fn run_arguments(app: &App, arguments: Vec<OsString>) -> u8 {
    let arguments = start::with_command(arguments);
    let first = arguments.get(1).and_then(|first| first.to_str());
    if first.is_some_and(claude::args::is_flag) {
        return match claude::args::parse(arguments) {
            Ok(args) => claude::claude(app, &args),
            Err(error) => print_parse_error(app, &error),
        };
    }
    let matches = Cli::overview().try_get_matches_from(&arguments);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(Cli { command: Some(command) }) => run_command_line(app, command),
        Ok(Cli { command: None }) => code(app, start::start(app)),
        Err(error) => print_parse_error(app, &start::with_tip(error, &arguments)),
    }
}

/// Runs a program beside `agent` whose arguments are `P`, and returns its exit code.
pub fn run_program<P: Parser>(perform: impl FnOnce(&App, P) -> AppResult<u8>) -> std::process::ExitCode {
    let app = agent_run::program::start();
    let code = match P::try_parse() {
        Ok(arguments) => code(&app, perform(&app, arguments)),
        Err(error) => print_parse_error(&app, &error),
    };
    code.into()
}

/// Runs a parsed command and returns its exit code.
pub fn run_command_line(app: &App, command: Command) -> u8 {
    let outcome = match command {
        Command::Chat(Described(args)) => return code(app, begin_chat(app, args)),
        Command::Run(Described(args)) => return run::run(app, args),
        Command::Exec(Described(args)) => return exec::exec(app, &args),
        Command::Review(Described(args)) => return review::review(app, &args),
        Command::Health(Described(args)) => return code(app, program::health(app, args)),
        Command::Loop(Described(args)) => return loop_command::run_loop(app, args),
        Command::Parallel(Described(args)) => return parallel::parallel(app, *args),
        Command::Eval(Described(args)) => match &args.action {
            Some(EvalAction::Compare(args)) => eval::compare(app, args),
            None => return eval::eval(app, *args),
        },
        Command::ParallelCleanup(Described(args)) => return code(app, parallel::clean_up(app, &args)),
        Command::Chain(Described(args)) => return chain::chain(app, args),
        Command::Consolidate(Described(args)) => return consolidate::consolidate(app, args),
        Command::Pipeline(Described(args)) => return pipeline::pipeline(app, *args),
        Command::Fleet(command) => return code(app, program::fleet(app, command)),
        Command::Work { command, common } => work::work(app, command.map(Described::into_inner), &common),
        Command::Resume(Described(args)) => return run::resume(app, args),
        Command::Sessions { command, common } => sessions::sessions(app, command.into_inner(), &common),
        Command::Approvals { command, common } => approvals::approvals(app, &command, &common),
        Command::Approve { id, common } => approve::answer(app, &id, &ApprovalAnswer::Approve, &common),
        Command::Deny { id, reason, common } => approve::deny(app, &id, reason, &common),
        Command::Diff(Described(args)) => diff::diff(app, &args),
        Command::Undo(Described(args)) => undo::undo(app, &args),
        Command::Redo(Described(args)) => redo::redo(app, &args),
        Command::History(Described(args)) => history::history(app, &args),
        Command::Replay(Described(args)) => return replay::replay(app, &args),
        Command::Stats(Described(args)) => stats::stats(app, &args),
        Command::Report(Described(args)) => report::report(app, &args),
        Command::Agents(Described(common)) => agents::agents(app, &common),
        Command::Mcp(Described(args)) => mcp::mcp(app, args),
        Command::Acp(Described(args)) => args.request().and_then(|request| acp::serve(app, request)),
        Command::Serve(Described(args)) => args.request().and_then(|request| serve::serve(app, request)),
        Command::Skills { command, common } => {
            skills::skills(app, command.map(Described::into_inner), &common)
        }
        Command::Tools { command, common } => tools::tools(app, command.map(Described::into_inner), &common),
        Command::ApplyPatch(Described(args)) => apply_patch::apply_patch(app, &args),
        Command::Init(Described(args)) => init::init(app, &args),
        Command::Import(Described(args)) => import::import(app, &args),
        Command::Config { command, common } => config::config(app, &command, &common),
        Command::Policy { command, common } => policy::policy(app, command.into_inner(), &common),
        Command::Trust { args, common } => trust::trust(app, &args, &common),
        Command::Memory { command, common } => {
            memory::memory(app, command.map(Described::into_inner), &common)
        }
        Command::Models { command, filter, endpoint, common } => {
            models::models(app, command.map(Described::into_inner), filter, endpoint, &common)
        }
        Command::Doctor(Described(args)) => doctor::doctor(app, args),
        Command::Demo => demo::demo(app),
        Command::Schema { what } => schema::schema(&app.terminal, what),
        Command::Man { dir } => man::man(app, dir.as_deref()),
        Command::Completions { shell } => completions::completions(&app.terminal, shell),
        Command::Help { topic } => help::help(app, topic.as_deref()),
    };
    finish(app, outcome)
}

/// Runs the command of `words`, the arguments of this program; returns its exit code.
///
/// # Errors
/// Fails for words that are no command line.
pub fn parse_and_run(app: &App, words: Vec<String>) -> AppResult<u8> {
    let parsed = Cli::try_parse_from(std::iter::once("agent".to_owned()).chain(words));
    match parsed {
        Ok(Cli { command }) => {
            Ok(command.map_or(ExitCode::Success.code(), |command| run_command_line(app, command)))
        }
        Err(error) => {
            let text = error.render().to_string();
            Err(AppError::new(FailureKind::Usage, text.trim_end().trim_start_matches("error: ").to_owned()))
        }
    }
}

/// Starts a conversation; a new one without a model asks for it first.
fn begin_chat(app: &App, args: ChatArgs) -> AppResult<u8> {
    if !args.last && args.resume.is_none() {
        first_model::ask_if_missing(app, &args.options.request().effective_overrides())?;
    }
    chat::chat(app, args)
}

fn finish(app: &App, outcome: AppResult<()>) -> u8 {
    code(app, outcome.map(|()| ExitCode::Success.code()))
}

/// Returns the exit code of a command, and reports its error.
fn code(app: &App, outcome: AppResult<u8>) -> u8 {
    outcome.unwrap_or_else(|error| {
        app.report_error(&error);
        error.exit_code().code()
    })
}

/// Prints help and version to standard output, and everything else as a usage error to standard error.
fn print_parse_error(app: &App, error: &clap::Error) -> u8 {
    let text = error.render().to_string();
    match error.kind() {
        ClapError::DisplayHelp | ClapError::DisplayVersion => {
            let is_short = text.lines().count() <= MAX_SHORT_HELP;
            let printed = if is_short { print(&app.terminal, &text) } else { pager::print_long(app, &text) };
            printed.map_or(ExitCode::Failed, |()| ExitCode::Success).code()
        }
        _ => {
            app.notify(Style::Plain, &app.redact(text.trim_end()));
            ExitCode::Config.code()
        }
    }
}
