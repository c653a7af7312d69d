//! The command line's words: commands and flags, each accepted only because it works.

use crate::engine::approve::Unanswered;
use crate::engine::policy::Mode;
use crate::llm::effort::Effort;
use crate::report::human::Detail;
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
        place: PlaceArgs,
    },
    /// Look at the calls that wait for an answer
    Approvals {
        /// What to do with them.
        #[command(subcommand)]
        command: ApprovalsCommand,
        /// Where to look.
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Let a call run that waits for an answer
    Approve {
        /// The call's id; `agent approvals list` shows it
        id: String,
        /// Where to look.
        #[command(flatten)]
        place: PlaceArgs,
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
        place: PlaceArgs,
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
    /// List the agents there are
    Agents(PlaceArgs),
    /// List the tools, or call one without a model
    Tools {
        /// What to do with them.
        #[command(subcommand)]
        command: Option<ToolsCommand>,
        /// Where to look.
        #[command(flatten)]
        place: PlaceArgs,
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
        place: PlaceArgs,
    },
    /// Say which rule or mode decides about a call, without making it
    Policy {
        /// What to do.
        #[command(subcommand)]
        command: PolicyCommand,
        /// Where to look.
        #[command(flatten)]
        place: PlaceArgs,
    },
    /// Show what the project's configuration asks for, and allow exactly that
    Trust {
        /// What to do about it.
        #[command(flatten)]
        args: TrustArgs,
        /// Where to look.
        #[command(flatten)]
        place: PlaceArgs,
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
        place: PlaceArgs,
    },
    /// Check what this machine and configuration offer
    Doctor(DoctorArgs),
    /// Watch the agent fix a bug in a small project; no key, no network
    Demo,
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

/// Where configuration and workspace are.
#[derive(Debug, Clone, Default, Args)]
pub struct PlaceArgs {
    /// A configuration file on top of the user's and the project's
    #[arg(short, long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// The directory to work in
    #[arg(short, long, value_name = "DIR", global = true)]
    pub workspace: Option<PathBuf>,
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
    pub place: PlaceArgs,
}

/// `agent run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task in words; `-` reads it from standard input, and so does leaving it out of a pipe
    pub prompt: Option<String>,
    /// What it shares with `resume`.
    #[command(flatten)]
    pub options: WorkArgs,
}

/// `agent resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The session's id, or with `--last` the prompt
    #[arg(value_name = "ID", required_unless_present = "last")]
    pub id: Option<String>,
    /// More to say; without it the session goes on where it stopped
    pub prompt: Option<String>,
    /// Take the newest session of this workspace
    #[arg(long)]
    pub last: bool,
    /// What it shares with `run`.
    #[command(flatten)]
    pub options: WorkArgs,
}

/// What `run` and `resume` share.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct WorkArgs {
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The agent: build, plan, review, resume, or one of yours
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// What may happen without asking
    #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|yolo")]
    pub mode: Option<Mode>,
    /// What becomes of a call that nobody can be asked about: refused, or the run ends and the call waits for an answer
    #[arg(long, value_parser = parse_approvals, value_name = "refuse|pause")]
    pub approvals: Option<Unanswered>,
    /// provider/model, local/MODEL, or scripted:FILE
    #[arg(long)]
    pub model: Option<String>,
    /// A model that takes over when the one before cannot be used; may be given several times
    #[arg(long, value_name = "P/M")]
    pub fallback_model: Vec<String>,
    /// The server's base URL, as `http://localhost:8080/v1`
    #[arg(long, value_name = "URL")]
    pub api_base: Option<String>,
    /// The key (better: the provider's variable, which does not show in process lists)
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,
    /// How hard the model thinks before it answers
    #[arg(long, value_parser = parse_effort, value_name = "none|minimal|low|medium|high|xhigh|max")]
    pub effort: Option<Effort>,
    /// Keep answers and use them again for the same requests (for development)
    #[arg(long)]
    pub cache: bool,
    /// Neither keep nor use answers; wins over `--cache` and the configuration
    #[arg(long)]
    pub no_cache: bool,
    /// Forget all kept answers first
    #[arg(long)]
    pub cache_clear: bool,
    /// Do not stream answers
    #[arg(long)]
    pub no_stream: bool,
    /// Model calls at most
    #[arg(long, value_name = "N")]
    pub max_steps: Option<u32>,
    /// Time for the whole run
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Time for one model call
    #[arg(long, value_name = "SECONDS")]
    pub step_timeout: Option<u64>,
    /// Money for the whole run, the closing summary included: a call that could exceed it is not made
    #[arg(long, value_parser = parse_usd, value_name = "USD")]
    pub budget: Option<f64>,
    /// Say at the end what the session cost, whatever the log level
    #[arg(long)]
    pub show_costs: bool,
    /// Let the project's configuration take effect in this run; with HASH, only if that is the hash of its content
    #[arg(long, value_name = "HASH", num_args = 0..=1, require_equals = true)]
    pub trust_workspace: Option<Option<String>>,
    /// What holds commands and hooks: the best there is, nothing less than all of it, or nothing
    #[arg(long, value_name = "auto|require|off")]
    pub sandbox: Option<SandboxArg>,
    /// Let commands and hooks reach the network
    #[arg(long)]
    pub allow_net: bool,
    /// Let commands and hooks change this directory too (repeatable)
    #[arg(long, value_name = "DIR")]
    pub allow_write: Vec<PathBuf>,
    /// Offer `run_command` whatever the configuration says
    #[arg(long)]
    pub allow_commands: bool,
    /// Do not offer `run_command`; wins over `--allow-commands`
    #[arg(long)]
    pub no_commands: bool,
    /// The JSON Schema that the answer must fit; standard output is then that JSON value, or nothing
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Read, but only describe what would be written or run
    #[arg(long)]
    pub dry_run: bool,
    /// One JSON document on standard output, nothing but warnings on standard error
    #[arg(long)]
    pub json: bool,
    /// Only errors on standard error
    #[arg(short, long)]
    pub quiet: bool,
    /// More on standard error; twice for everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// How loud the log on standard error is
    #[arg(long, value_parser = str::parse::<Detail>, value_name = "debug|info|human|warn|error")]
    pub log_level: Option<Detail>,
    /// Also write every event to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// The exit code of a partial result
    #[arg(long, value_name = "N")]
    pub exit_code_on_partial: Option<u8>,
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
    pub place: PlaceArgs,
}

/// `agent history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The session's id; without it the newest of this workspace
    pub session: Option<String>,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub place: PlaceArgs,
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
    pub place: PlaceArgs,
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
    /// Also files that somebody else has changed since; what they hold can be had back with `redo` or `undo`
    #[arg(long)]
    pub force: bool,
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub place: PlaceArgs,
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

/// `agent sessions …`.
#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// The sessions of this workspace, newest first
    List,
    /// What happened in a session
    Show {
        /// The session's id
        id: String,
    },
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

/// A number of dollars; what the number parser also takes (`nan`, `inf`) would be no budget at all.
fn parse_usd(text: &str) -> Result<f64, String> {
    let dollars =
        text.strip_prefix('$').unwrap_or(text).parse().ok().filter(|dollars: &f64| dollars.is_finite());
    dollars.ok_or_else(|| "a budget is a number of US dollars, such as 0.50".to_owned())
}

fn parse_effort(text: &str) -> Result<Effort, String> {
    let known = Effort::ALL.into_iter().find(|effort| effort.name() == text);
    known.ok_or_else(|| format!("the levels are {}", Effort::ALL.map(Effort::name).join(", ")))
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    match text {
        "confirm-all" => Ok(Mode::ConfirmAll),
        "confirm-sensitive" => Ok(Mode::ConfirmSensitive),
        "yolo" => Ok(Mode::Yolo),
        _ => Err("the modes are confirm-all, confirm-sensitive and yolo".to_owned()),
    }
}

fn parse_approvals(text: &str) -> Result<Unanswered, String> {
    let known = [Unanswered::Refuse, Unanswered::Pause].into_iter().find(|known| known.name() == text);
    known.ok_or_else(|| "it is refuse or pause".to_owned())
}

/// What holds commands and hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SandboxArg {
    /// The strongest confinement there is.
    Auto,
    /// The full one, or the run does not begin.
    Require,
    /// None.
    Off,
}
