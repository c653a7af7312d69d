//! The command line: one file per command, composition, exit codes.

pub mod agents;
pub mod answer;
pub mod app;
pub mod apply_patch;
pub mod approvals;
pub mod approver;
pub mod args;
mod beginning;
mod briefing;
pub mod chain;
pub mod completions;
mod compose;
pub mod config;
pub mod costs;
pub mod cut_off;
pub mod demo;
pub mod diff;
pub mod doctor;
mod earlier;
pub mod error;
pub mod exit_code;
pub mod given_history;
pub mod help;
pub mod history;
mod home;
pub mod kept;
mod live;
pub mod models;
pub mod notices;
pub mod output;
mod panics;
mod past;
pub mod place;
pub mod policy;
pub mod preparation;
mod prompt;
pub mod readiness;
pub mod redo;
pub mod replay;
pub mod report;
mod report_file;
mod restore;
pub mod schema;
mod secrets;
pub mod sessions;
pub mod stats;
pub mod structured;
mod subagents;
pub mod tools;
pub mod trust;
pub mod undo;
pub mod work;
pub mod work_args;

use crate::approval::ApprovalAnswer;
use crate::cli::app::App;
use crate::cli::args::{Cli, Command};
use crate::cli::error::CliResult;
use crate::cli::exit_code::ExitCode;
use crate::cli::output::print;
use crate::config::environment::Environment;
use crate::process;
use crate::terminal::Style;
use clap::Parser;
use clap::error::ErrorKind as ClapError;

/// Runs the program and says what it exits with.
pub fn main() -> std::process::ExitCode {
    process::disable_dumping();
    process::umask::save_user_umask();
    process::memory::configure_allocator();
    let app = App::new(Environment::read());
    panics::install(&app);
    let code = match Cli::try_parse() {
        Ok(cli) => dispatch(&app, cli.command),
        Err(error) => print_parse_error(&app, &error),
    };
    code.into()
}

fn dispatch(app: &App, command: Command) -> u8 {
    let outcome = match command {
        Command::Run(args) => return work::run(app, args),
        Command::Resume(args) => return work::resume(app, args),
        Command::Sessions { command, common } => sessions::sessions(app, command, &common),
        Command::Approvals { command, common } => approvals::approvals(app, &command, &common),
        Command::Approve { id, common } => answer::answer(app, &id, &ApprovalAnswer::Approve, &common),
        Command::Deny { id, reason, common } => answer::deny(app, &id, reason, &common),
        Command::Diff(args) => diff::diff(app, &args),
        Command::Undo(args) => undo::undo(app, &args),
        Command::Redo(args) => redo::redo(app, &args),
        Command::History(args) => history::history(app, &args),
        Command::Replay(args) => return replay::replay(app, &args),
        Command::Stats(args) => stats::stats(app, &args),
        Command::Report(args) => report::report(app, &args),
        Command::Agents(common) => agents::agents(app, &common),
        Command::Tools { command, common } => tools::tools(app, command, &common),
        Command::ApplyPatch(args) => apply_patch::apply_patch(app, &args),
        Command::Config { command, common } => config::config(app, &command, &common),
        Command::Policy { command, common } => policy::policy(app, command, &common),
        Command::Trust { args, common } => trust::trust(app, &args, &common),
        Command::Models { command, filter, common } => models::models(app, command, filter, &common),
        Command::Doctor(args) => doctor::doctor(app, args),
        Command::Demo => demo::demo(app),
        Command::Schema { what } => schema::schema(&app.terminal, what),
        Command::Completions { shell } => completions::completions(&app.terminal, shell),
        Command::Help { topic } => help::help(&app.terminal, topic.as_deref()),
    };
    finish(app, outcome)
}

fn finish(app: &App, outcome: CliResult<()>) -> u8 {
    match outcome {
        Ok(()) => ExitCode::Success.code(),
        Err(error) => {
            app.report_error(&error);
            error.exit_code().code()
        }
    }
}

/// Help and version go to standard output; everything else the parser says is a usage error.
fn print_parse_error(app: &App, error: &clap::Error) -> u8 {
    let text = error.render().to_string();
    match error.kind() {
        ClapError::DisplayHelp | ClapError::DisplayVersion => {
            print(&app.terminal, &text).map_or(ExitCode::Failed, |()| ExitCode::Success).code()
        }
        _ => {
            app.notify(Style::Plain, &app.redact(text.trim_end()));
            ExitCode::Config.code()
        }
    }
}
