//! The command line's words: commands and flags, each accepted only because it works.

use crate::cli::commands::common_args::CommonArgs;
use crate::cli::commands::report::ReportArgs;
use crate::cli::commands::run_args::{ResumeArgs, RunArgs, parse_mode};
use crate::cli::commands::sessions::args::SessionsCommand;
use crate::cli::commands::stats::StatsArgs;
use crate::engine::policy::Mode;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// A terminal coding agent.
#[derive(Debug, Parser)]
#[command(name = "agent", version, disable_help_subcommand = true, max_term_width = 110)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Work on a task in the workspace
    Run(RunArgs),
    /// Go on with an earlier session
    Resume(ResumeArgs),
    /// Look at earlier sessions
    Sessions {
        /// What to do with them.
        #[command(subcommand)]
        command: SessionsCommand,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Look at the calls that wait for an answer
    Approvals {
        /// What to do with them.
        #[command(subcommand)]
        command: ApprovalsCommand,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Let a call run that waits for an answer
    Approve {
        /// The call's id; `agent approvals list` shows it
        id: String,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Do not let a call run that waits for an answer
    Deny {
        /// The call's id; `agent approvals list` shows it
        id: String,
        /// Why; the model reads it
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show what a session did to files
    Diff(DiffArgs),
    /// Put back what a session did to files
    #[command(visible_alias = "rollback")]
    Undo(UndoArgs),
    /// Take back the last undo
    Redo(RestoreArgs),
    /// List the steps of a session that changed files
    History(HistoryArgs),
    /// Do the runs of a session again from its journal, without model and network, and compare
    Replay(ReplayArgs),
    /// What models were asked in this workspace, and what it cost
    Stats(StatsArgs),
    /// Give an account of a session: what was done, refused and changed, and what it took
    Report(ReportArgs),
    /// List the agents there are
    Agents(CommonArgs),
    /// List the tools, or call one without a model
    Tools {
        /// What to do with them.
        #[command(subcommand)]
        command: Option<ToolsCommand>,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Apply a patch as the tool of that name would, with every rule and hook
    ApplyPatch(PatchArgs),
    /// Show or check the configuration
    Config {
        /// What to do with it.
        #[command(subcommand)]
        command: ConfigCommand,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Say which rule or mode decides about a call, without making it
    Policy {
        /// What to do.
        #[command(subcommand)]
        command: PolicyCommand,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Show what the project's configuration asks for, and allow exactly that
    Trust {
        /// What to do about it.
        #[command(flatten)]
        args: TrustArgs,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// List models with their prices, or show one
    #[command(args_conflicts_with_subcommands = true)]
    Models {
        /// What to do with them.
        #[command(subcommand)]
        command: Option<ModelsCommand>,
        /// Only models whose name contains this
        filter: Option<String>,
        /// Where to look.
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Check what this machine and configuration offer
    Doctor(DoctorArgs),
    /// Watch the agent fix a bug in a small project; no key, no network
    Demo,
    /// Print the JSON Schema of what this program writes or reads
    Schema {
        /// Of which.
        what: SchemaArg,
    },
    /// Print a completion script
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Read the manual
    Help {
        /// A topic; without one the topics are listed.
        topic: Option<String>,
    },
}

/// `agent doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The model to look at, as `run` takes it
    #[arg(long)]
    pub model: Option<String>,
    /// The server's base URL, as `run` takes it
    #[arg(long, value_name = "URL")]
    pub api_base: Option<String>,
    /// Also ask a server that is not on this machine, with the key
    #[arg(long)]
    pub online: bool,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent apply-patch`.
#[derive(Debug, Clone, Args)]
pub struct PatchArgs {
    /// The patch: a unified diff with file names, or from `*** Begin Patch` to `*** End Patch`; `-`, or leaving it out of
    /// a pipe, reads it from standard input
    pub file: Option<PathBuf>,
    /// What may happen without asking
    #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|yolo")]
    pub mode: Option<Mode>,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The session's id; without it the newest of this workspace
    pub session: Option<String>,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The session's id; without it the newest of this workspace
    pub session: Option<String>,
    /// Call the tools again too, in a copy of the workspace as it was, and compare what they answer
    #[arg(long)]
    pub live_tools: bool,
    /// How much they may do; nobody is asked
    #[arg(short, long, requires = "live_tools", value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|yolo")]
    pub mode: Option<Mode>,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The session's id; without it the newest of this workspace
    pub session: Option<String>,
    /// Only what came after step N; `agent history` lists them
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub since_step: u32,
    /// Only this file
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Only what came after step N; `agent history` lists them
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub to_step: u32,
    /// What it shares with `redo`.
    #[command(flatten)]
    pub restore: RestoreArgs,
}

/// What `undo` and `redo` share.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The session's id; without it the newest of this workspace
    pub session: Option<String>,
    /// Only this file
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// Also files that somebody else has changed since, which `redo` or `undo` brings back, and those whose content cannot be
    /// kept, which is lost
    #[arg(long)]
    pub force: bool,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent trust`.
#[derive(Debug, Clone, Args)]
pub struct TrustArgs {
    /// Only show it, with its hash
    #[arg(long)]
    pub show: bool,
    /// Trust it no longer
    #[arg(long, conflicts_with = "show")]
    pub revoke: bool,
    /// Trust it without asking, where you know what it is
    #[arg(short, long, conflicts_with_all = ["show", "revoke"])]
    pub yes: bool,
}

/// `agent approvals …`.
#[derive(Debug, Subcommand)]
pub enum ApprovalsCommand {
    /// The calls of all sessions of this workspace that wait for an answer, with what they would do
    List {
        /// One JSON document on standard output
        #[arg(long)]
        json: bool,
    },
}

/// `agent tools …`.
#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// Call a tool as the model would, with every rule and hook
    Call {
        /// The tool
        name: String,
        /// Its arguments, a JSON object
        arguments: String,
        /// What may happen without asking
        #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|yolo")]
        mode: Option<Mode>,
    },
}

/// `agent policy …`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Say whether a call would run, be asked about or be refused, and why
    Test {
        /// The tool with its command, path or address (`run_command git push`), or with its arguments as JSON
        #[arg(required = true, trailing_var_arg = true, value_name = "CALL")]
        call: Vec<String>,
        /// The agent
        #[arg(short, long, value_name = "NAME")]
        agent: Option<String>,
        /// What may happen without asking
        #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|yolo")]
        mode: Option<Mode>,
    },
}

/// `agent models …`.
#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// Everything that is known about a model
    Show {
        /// Its name, as `--model` takes it
        model: String,
    },
}

/// `agent config …`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Every key with its value
    Show {
        /// Also say where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Check every configuration file
    Validate,
    /// The files and directories in use
    Path,
}

/// What `agent schema` prints the schema of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SchemaArg {
    /// A line of `--output-format stream-json`
    Events,
    /// The document of `--json`
    Result,
    /// The configuration
    Config,
    /// A line of a session's journal and of `--log-file`
    Journal,
    /// The document of `agent approvals list --json`
    Approvals,
    /// The document of `agent stats --json`
    Stats,
    /// The document of `--report json`
    Report,
}
