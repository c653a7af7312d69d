//! Definition of the command line: commands, their flags, and the lists of commands in the help.

use crate::commands::chain::ChainArgs;
use crate::commands::chat::args::ChatArgs;
use crate::commands::client_run::ClientArgs;
use crate::commands::common_args::CommonArgs;
use crate::commands::consolidate::ConsolidateArgs;
use crate::commands::eval::EvalArgs;
use crate::commands::import::ImportArgs;
use crate::commands::init::InitArgs;
use crate::commands::loop_command::LoopArgs;
use crate::commands::mcp_args::McpArgs;
use crate::commands::memory::MemoryCommand;
use crate::commands::parallel::{CleanupArgs, ParallelArgs};
use crate::commands::pipeline::PipelineArgs;
use crate::commands::program::{FleetCommand, ProgramArgs};
use crate::commands::report::ReportArgs;
use crate::commands::review::ReviewArgs;
use crate::commands::run_args::{ResumeArgs, RunArgs};
use crate::commands::sessions::args::SessionsCommand;
use crate::commands::skills::SkillsCommand;
use crate::commands::stats::StatsArgs;
use crate::commands::trust::TrustArgs;
use crate::commands::work::WorkCommand;
use crate::described::Described;
use agent_bridges::exec::args::ExecArgs;
use agent_config::flag_values::parse_mode;
use agent_core::file_change::RestoreDirection;
use agent_engine::policy::Mode;
use agent_messages as messages;
use agent_run::restore::RestoreRequest;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::fmt::Write;
use std::path::PathBuf;

/// A terminal coding agent.
#[derive(Debug, Parser)]
#[command(name = "agent", version, disable_help_subcommand = true, max_term_width = 110)]
pub struct Cli {
    /// The command; without one the first screen is shown.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The groups of commands in `agent help commands`, in order. A test checks that each command is in one.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Work",
        &[
            "run",
            "chat",
            "review",
            "loop",
            "pipeline",
            "parallel",
            "eval",
            "chain",
            "consolidate",
            "health",
            "resume",
            "demo",
        ],
    ),
    ("Sessions", &["sessions", "work", "parallel-cleanup", "history", "report", "stats", "replay"]),
    ("Queue", &["submit", "tasks", "worker", "hub"]),
    ("Changes", &["diff", "undo", "redo", "approvals", "approve", "deny"]),
    (
        "Setup",
        &[
            "init", "import", "doctor", "models", "config", "trust", "policy", "agents", "skills", "mcp",
            "acp", "memory", "tools", "help",
        ],
    ),
    ("Machine-readable", &["serve", "exec", "apply-patch", "schema", "man", "completions"]),
];

/// The commands of `agent --help`, in order: those of every day.
const USUAL: [&str; 12] = [
    "run", "chat", "resume", "sessions", "diff", "undo", "init", "doctor", "models", "config", "demo", "help",
];

impl Cli {
    /// Returns the definition of the command line whose help lists the usual commands.
    pub fn overview() -> clap::Command {
        let command = Self::command();
        let mut text = String::from("Commands:\n");
        for name in USUAL {
            let _ = writeln!(text, "  {name:<8}  {}", about(&command, name));
        }
        let more = messages::MORE_HELP;
        let template =
            format!("{{about}}\n{{usage-heading}} {{usage}}\n\n{text}\nOptions:\n{{options}}\n\n{more}");
        command.help_template(template)
    }

    /// Returns the page of the manual that lists all commands in groups.
    pub fn commands_page() -> String {
        let command = Self::command();
        let mut text = format!("# Commands\n\n{}\n", messages::COMMANDS_PAGE);
        for (group, names) in GROUPS {
            let _ = writeln!(text, "\n## {group}\n");
            for name in names {
                let _ = writeln!(text, "- `{name}`: {}", about(&command, name));
            }
        }
        text
    }

    /// Checks whether `name` is a command.
    pub fn has_command(name: &str) -> bool {
        Self::command().find_subcommand(name).is_some()
    }
}

fn about(command: &clap::Command, name: &str) -> String {
    command.find_subcommand(name).and_then(clap::Command::get_about).cloned().unwrap_or_default().to_string()
}

/// The commands. The arguments of a command are built when it is chosen, which saves 1 ms at each start.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub enum Command {
    /// Run a task in the workspace
    Run(Described<RunArgs>),
    /// Talk to the agent at the terminal
    Chat(Described<ChatArgs>),
    /// Review the changes since a commit and print the findings
    Review(Described<ReviewArgs>),
    /// Measure the code: complexity and length of functions, repeated blocks
    #[command(disable_help_flag = true)]
    Health(Described<ProgramArgs>),
    /// Repeat a task, each time with a clean conversation, until checks pass
    Loop(Described<LoopArgs>),
    /// Run the steps of a file one after another: prompts, commands, checks
    Pipeline(Described<Box<PipelineArgs>>),
    /// Run several tasks at the same time, each in a worktree and on a branch of its own
    Parallel(Described<Box<ParallelArgs>>),
    /// Compare models or configurations on a task: checks, steps, cost
    Eval(Described<Box<EvalArgs>>),
    /// Remove the worktrees and branches of `agent parallel` and others
    ParallelCleanup(Described<CleanupArgs>),
    /// Have agents work on a task one after another, each with the answer of the one before
    Chain(Described<ChainArgs>),
    /// Have several models answer a question in rounds, and a judge sum up
    Consolidate(Described<ConsolidateArgs>),
    /// The queue of tasks.
    #[command(flatten)]
    Fleet(FleetCommand),
    /// Resume an interrupted or finished session
    Resume(Described<ResumeArgs>),
    /// List, show or remove the records of commands of several runs, such as `agent loop`
    Work {
        /// The subcommand.
        #[command(subcommand)]
        command: Option<Described<WorkCommand>>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// List, show, search, export or delete sessions
    Sessions {
        /// The subcommand.
        #[command(subcommand)]
        command: Described<SessionsCommand>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// List pending approvals
    Approvals {
        /// The subcommand.
        #[command(subcommand)]
        command: Described<ApprovalsCommand>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// Approve a pending call
    Approve {
        /// The call's id; `agent approvals list` shows it
        id: String,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// Deny a pending call
    Deny {
        /// The call's id; `agent approvals list` shows it
        id: String,
        /// Why; the model reads it
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// Show the file changes of a session as a diff
    Diff(Described<DiffArgs>),
    /// Undo the file changes of a session
    #[command(visible_alias = "rollback")]
    Undo(Described<UndoArgs>),
    /// Redo what the last undo put back
    Redo(Described<RestoreArgs>),
    /// List the steps of a session that changed files
    History(Described<HistoryArgs>),
    /// Replay a session from its journal without model or network and compare
    Replay(Described<ReplayArgs>),
    /// Show tokens, cost and tool calls by model, session or day
    Stats(Described<StatsArgs>),
    /// Write a report on a session (calls, refusals, changes, cost)
    Report(Described<ReportArgs>),
    /// List the agents
    Agents(Described<CommonArgs>),
    /// List or change what is stored for later sessions
    Memory {
        /// The subcommand.
        #[command(subcommand)]
        command: Option<Described<MemoryCommand>>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// List MCP servers, show their tools, accept changes
    Mcp(Described<McpArgs>),
    /// Serve an editor over the Agent Client Protocol; the options of `run` bound what it can do
    Acp(Described<Box<ClientArgs>>),
    /// Serve other programs over JSON-RPC on standard input and output; the options of `run` bound what they can do
    Serve(Described<Box<ClientArgs>>),
    /// List, create, install or remove skills
    Skills {
        /// The subcommand.
        #[command(subcommand)]
        command: Option<Described<SkillsCommand>>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// List the tools, or call one without a model
    Tools {
        /// The subcommand.
        #[command(subcommand)]
        command: Option<Described<ToolsCommand>>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// Run a task as `codex exec` does, for programs that drive Codex
    Exec(Described<ExecArgs>),
    /// Apply a patch under the same rules and hooks as the tool
    ApplyPatch(Described<PatchArgs>),
    /// Write instructions and a configuration for this project
    Init(Described<InitArgs>),
    /// Import settings of Claude Code or Codex
    Import(Described<ImportArgs>),
    /// Show, change or check the configuration
    Config {
        /// The subcommand.
        #[command(subcommand)]
        command: Described<ConfigCommand>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// Show which rule or mode decides about a call
    Policy {
        /// The subcommand.
        #[command(subcommand)]
        command: Described<PolicyCommand>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// Show and trust the project's configuration
    Trust {
        /// What to trust or to revoke.
        #[command(flatten)]
        args: Described<TrustArgs>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// List models with their prices, or show one
    Models {
        /// The subcommand.
        #[command(subcommand)]
        command: Option<Described<ModelsCommand>>,
        /// Only models whose name contains this
        filter: Option<String>,
        /// Ask the server of the configured model, or of this provider, for its models
        #[arg(long, value_name = "PROVIDER", num_args = 0..=1, require_equals = true, default_missing_value = "")]
        endpoint: Option<String>,
        /// Configuration and workspace.
        #[command(flatten)]
        common: Described<CommonArgs>,
    },
    /// Check configuration, keys, models and sandbox
    Doctor(Described<DoctorArgs>),
    /// Watch the agent fix a bug in a small project (no key, no network)
    Demo,
    /// Print a JSON Schema of an output or of the configuration
    Schema {
        /// Of which.
        what: SchemaArg,
    },
    /// Print the manual page, or write one for each command
    Man {
        /// Directory for the pages of all commands
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
    /// Print a shell completion script
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
    /// Configuration and workspace.
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
    #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|auto|yolo")]
    pub mode: Option<Mode>,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// The session's id; without it the one of this workspace that ended last with file changes
    pub session: Option<String>,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The session's id; without it the one of this workspace that ended last
    pub session: Option<String>,
    /// Call the tools again too, in a copy of the original workspace, and compare their results
    #[arg(long)]
    pub live_tools: bool,
    /// Permission mode of the tools; there are no prompts
    #[arg(short, long, requires = "live_tools", value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|auto|yolo")]
    pub mode: Option<Mode>,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// `agent diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The session's id; without it the one of this workspace that ended last with file changes
    pub session: Option<String>,
    /// Only what came after step N; `agent history` lists them
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub since_step: u32,
    /// Only this file
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// Configuration and workspace.
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
    /// The session's id; without it the one of this workspace that ended last with file changes
    pub session: Option<String>,
    /// Only this file
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// Also files that somebody else has changed since, which `redo` or `undo` brings back, and those whose content cannot be
    /// kept, which is lost
    #[arg(long)]
    pub force: bool,
    /// Configuration and workspace.
    #[command(flatten)]
    pub common: CommonArgs,
}

impl RestoreArgs {
    /// Returns which files are restored.
    pub fn request(&self, direction: RestoreDirection, to_step: u32) -> RestoreRequest {
        let (session, file) = (self.session.clone(), self.file.clone());
        RestoreRequest {
            flags: self.common.overrides(),
            session,
            file,
            force: self.force,
            direction,
            to_step,
        }
    }
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
    /// List the results that later sessions may read (`tools.keep_results`)
    Kept {
        /// Remove them
        #[arg(long)]
        clear: bool,
    },
    /// Call a tool as the model would, with every rule and hook
    Call {
        /// The tool
        name: String,
        /// Its arguments, a JSON object
        arguments: String,
        /// What may happen without asking
        #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|auto|yolo")]
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
        #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|auto|yolo")]
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
        /// Refused: a server only lists its models.
        #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
        endpoint: Option<String>,
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
    /// Print the value of a key, or of all keys of a group
    Get {
        /// The key, such as llm.model
        key: String,
        /// Only what the project's file sets
        #[arg(long)]
        project: bool,
    },
    /// Set a key in your configuration file
    Set {
        /// The key, such as llm.model
        key: String,
        /// The value; a list as '[a, b]'
        #[arg(allow_negative_numbers = true)]
        value: String,
        /// In the project's file, `.agent/config.yaml`
        #[arg(long)]
        project: bool,
    },
    /// Remove a key from your configuration file
    Unset {
        /// The key, such as llm.model
        key: String,
        /// From the project's file, `.agent/config.yaml`
        #[arg(long)]
        project: bool,
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
    /// The document of `--json` of commands of several runs, such as `agent loop`
    Work,
    /// The document of `agent eval compare --json`
    Comparison,
    /// The documents of `agent tasks --json`
    Tasks,
    /// The document of `agent health --json`
    Health,
    /// The findings of `agent review`
    Review,
    /// The messages of `agent serve`
    Rpc,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let mut commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        commands.sort_unstable();
        assert_eq!(grouped, commands);
    }

    #[test]
    fn each_command_keeps_its_description_when_its_arguments_are_built() {
        let listed = Cli::command();
        let mut built = listed.clone();
        built.build();
        for command in listed.get_subcommands() {
            let name = command.get_name();
            let shown = built.find_subcommand(name).and_then(clap::Command::get_about);
            assert_eq!(shown, command.get_about(), "{name}");
        }
    }
}
