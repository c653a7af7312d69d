//! Command-line arguments of `agent run` and `agent resume`.

use crate::commands::common_args::CommonArgs;
use agent_config::flag_values::{parse_effort, parse_mode, parse_name, parse_seconds, parse_usd};
use agent_config::overrides::Overrides;
use agent_config::schema::SandboxMode;
use agent_config::trust::TrustFlag;
use agent_config::verbosity::Verbosity;
use agent_core::evaluation::EvaluationMode;
use agent_core::secret::Secret;
use agent_engine::approver::NoApprover;
use agent_engine::policy::Mode;
use agent_llm::effort::Effort;
use agent_report::OutputFormat;
use agent_report::session_report::ReportFormat;
use agent_run::request::{AnswerSchema, RunRequest};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use std::path::PathBuf;
use strum::VariantNames;

/// The group of the options that say what is done, in `--help`.
pub const TASK: &str = "Task";
const MODEL: &str = "Model";
const PERMISSIONS: &str = "Permissions";
/// The group of the limits, in `--help`.
pub const LIMITS: &str = "Limits";
const SANDBOX: &str = "Sandbox";
const OUTPUT: &str = "Output";
const CI: &str = "CI";

/// The help of a command with these options. `-h` has the usual options only, and at most 25 rows of 80 columns.
const HELP: &str = "{about} (all options: --help)\n{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Arguments of `agent run`.
#[derive(Debug, Args)]
#[command(next_display_order = 1)]
pub struct RunArgs {
    /// The task; `-` or a pipe reads it from standard input
    #[arg(help_heading = TASK, display_order = 0)]
    pub prompt: Option<String>,
    /// Earlier conversation: a JSON array of {"role": "user" or "assistant", "content": "…"}
    #[arg(long, value_name = "FILE", help_heading = TASK, hide_short_help = true)]
    pub history: Option<PathBuf>,
    /// Have the agent `plan` make a plan first, which the working agent receives
    #[arg(long, help_heading = TASK, hide_short_help = true)]
    pub mixed: bool,
    /// Show the model the changes of the working tree since this commit or branch
    #[arg(long, value_name = "REF", help_heading = TASK, hide_short_help = true)]
    pub context_git_diff: Option<String>,
    /// Options shared with `resume`.
    #[command(flatten)]
    pub options: RunOptions,
}

/// Arguments of `agent resume`.
#[derive(Debug, Args)]
#[command(next_display_order = 1, mut_arg("json", |arg| arg.hide_short_help(true)))]
pub struct ResumeArgs {
    /// Session id; with `--last`, the prompt
    #[arg(value_name = "ID", help_heading = TASK, display_order = 0)]
    pub id: Option<String>,
    /// Next message; without it the session goes on
    #[arg(help_heading = TASK, display_order = 0)]
    pub prompt: Option<String>,
    /// Resume the newest session of this workspace
    #[arg(long, help_heading = TASK)]
    pub last: bool,
    /// Options shared with `run`.
    #[command(flatten)]
    pub options: RunOptions,
}

/// Options shared by `run` and `resume`.
#[derive(Debug, Clone, Default, Args)]
#[command(disable_help_flag = true, help_template = HELP, mut_arg("config", |arg| arg.hide_short_help(true)))]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct RunOptions {
    /// The configuration file and the workspace.
    #[command(flatten, next_help_heading = TASK)]
    pub common: CommonArgs,
    /// Agent: build, plan, review, resume, or one of your own
    #[arg(short, long, value_name = "NAME", help_heading = TASK)]
    pub agent: Option<String>,
    /// Image for the model: PNG, JPEG, GIF or WebP (repeatable)
    #[arg(long, value_name = "FILE", help_heading = TASK, hide_short_help = true)]
    pub image: Vec<PathBuf>,
    /// Command that must succeed at the end (repeatable)
    ///
    /// It runs in the workspace; the run does not count as done before it succeeds.
    #[arg(long, value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new(), help_heading = TASK)]
    pub check: Vec<String>,
    /// Have the model evaluate its own answer; `full` sends it feedback before the run becomes partial
    #[arg(long, value_parser = |text: &str| parse_name::<EvaluationMode>("it is one of", text), value_name = "off|basic|full", help_heading = TASK, hide_short_help = true)]
    pub self_eval: Option<EvaluationMode>,
    /// Have the agent `review` review the changes; the run is done when it approves them
    #[arg(long = "review", help_heading = TASK, hide_short_help = true)]
    pub review_changes: bool,
    /// Measure the code before and after the run: complexity and length of functions, repeated blocks
    #[arg(long, help_heading = TASK, hide_short_help = true)]
    pub health: bool,
    /// Model: provider/model, local/MODEL, or scripted:FILE
    #[arg(long, help_heading = MODEL)]
    pub model: Option<String>,
    /// Fallback model, used when the previous one is unusable (repeatable)
    #[arg(long, value_name = "P/M", help_heading = MODEL, hide_short_help = true)]
    pub fallback_model: Vec<String>,
    /// Base URL of the server, such as `http://localhost:8080/v1`
    #[arg(long, value_name = "URL", help_heading = MODEL, hide_short_help = true)]
    pub api_base: Option<String>,
    /// API key; the provider's environment variable is safer because process lists do not show it
    #[arg(long, value_name = "KEY", help_heading = MODEL, hide_short_help = true)]
    pub api_key: Option<String>,
    /// Reasoning effort, from none to max
    ///
    /// One of none, minimal, low, medium, high, xhigh and max.
    #[arg(long, value_parser = parse_effort, value_name = "LEVEL", help_heading = MODEL)]
    pub effort: Option<Effort>,
    /// Store answers and reuse them for equal requests (for development)
    #[arg(long, help_heading = MODEL, hide_short_help = true)]
    pub cache: bool,
    /// Neither store nor reuse answers; overrides `--cache` and the configuration
    #[arg(long, help_heading = MODEL, hide_short_help = true)]
    pub no_cache: bool,
    /// Remove all stored answers first
    #[arg(long, help_heading = MODEL, hide_short_help = true)]
    pub cache_clear: bool,
    /// Do not stream answers
    #[arg(long, help_heading = MODEL, hide_short_help = true)]
    pub no_stream: bool,
    /// confirm-all, confirm-sensitive, auto or yolo (asks nothing)
    ///
    /// Every call, changes and other sensitive calls, or none (`agent help permissions`).
    #[arg(short, long, value_parser = parse_mode, value_name = "MODE", help_heading = PERMISSIONS)]
    pub mode: Option<Mode>,
    /// Only describe changes and commands
    ///
    /// Calls that only read run without asking.
    #[arg(long, help_heading = PERMISSIONS)]
    pub dry_run: bool,
    /// Enable `run_command`, even if the configuration disables it
    #[arg(long, help_heading = PERMISSIONS, hide_short_help = true)]
    pub allow_commands: bool,
    /// Disable `run_command`; overrides `--allow-commands`
    #[arg(long, help_heading = PERMISSIONS, hide_short_help = true)]
    pub no_commands: bool,
    /// Use the MCP servers in this file: `mcp:` of the configuration, or JSON with `mcpServers`
    #[arg(long, value_name = "FILE", help_heading = PERMISSIONS, hide_short_help = true)]
    pub mcp_config: Option<PathBuf>,
    /// Use no MCP server
    #[arg(long, help_heading = PERMISSIONS, hide_short_help = true)]
    pub disable_mcp: bool,
    /// Maximum number of model calls
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub max_steps: Option<u32>,
    /// Time limit of the whole run
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, help_heading = LIMITS)]
    pub timeout: Option<u64>,
    /// Time limit of one step
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, help_heading = LIMITS, hide_short_help = true)]
    pub step_timeout: Option<u64>,
    /// Time limit of one tool call; the model is notified when it is exceeded
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, help_heading = LIMITS, hide_short_help = true)]
    pub tool_timeout: Option<u64>,
    /// Maximum cost of the run
    ///
    /// The closing summary is included. A call that could exceed it is not made.
    #[arg(long, value_parser = parse_usd, value_name = "USD", help_heading = LIMITS)]
    pub budget: Option<f64>,
    /// Maximum number of tokens of the run, prompts and answers together
    #[arg(long, value_name = "N", help_heading = LIMITS, hide_short_help = true)]
    pub max_tokens: Option<u64>,
    /// Confinement of commands and hooks: strongest available, full or none
    #[arg(long, value_name = "auto|require|off", help_heading = SANDBOX, hide_short_help = true)]
    pub sandbox: Option<SandboxArg>,
    /// Allow commands and hooks to use the network
    #[arg(long, help_heading = SANDBOX, hide_short_help = true)]
    pub allow_net: bool,
    /// Allow commands and hooks to reach this host through a proxy (repeatable)
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "allow_net", help_heading = SANDBOX, hide_short_help = true)]
    pub allow_host: Vec<String>,
    /// Allow commands and hooks to write to this directory (repeatable)
    #[arg(long, value_name = "DIR", help_heading = SANDBOX, hide_short_help = true)]
    pub allow_write: Vec<PathBuf>,
    /// One JSON document on standard output
    ///
    /// Same as `--output-format json`; standard error has only warnings.
    #[arg(long, conflicts_with = "output_format", help_heading = OUTPUT)]
    pub json: bool,
    /// Format of standard output: the answer, one JSON document, or every event as a JSON line
    #[arg(long, value_parser = output_formats(), value_name = "text|json|stream-json", hide_possible_values = true, help_heading = OUTPUT, hide_short_help = true)]
    pub output_format: Option<OutputFormat>,
    /// JSON Schema that the answer must match; standard output is then that JSON value, or nothing
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    pub output_schema: Option<PathBuf>,
    /// Only errors on standard error
    #[arg(short, long, help_heading = OUTPUT)]
    pub quiet: bool,
    /// More output on standard error; twice for everything
    #[arg(short, long, action = ArgAction::Count, help_heading = OUTPUT, hide_short_help = true)]
    pub verbose: u8,
    /// Log level on standard error
    #[arg(long, value_parser = str::parse::<Verbosity>, value_name = "debug|info|human|warn|error", help_heading = OUTPUT, hide_short_help = true)]
    pub log_level: Option<Verbosity>,
    /// Also write every event to this file, as JSON lines
    #[arg(long, value_name = "FILE", help_heading = OUTPUT, hide_short_help = true)]
    pub log_file: Option<PathBuf>,
    /// Print the cost of the session at the end, at every log level
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    pub show_costs: bool,
    /// Print help; `-h` prints the usual options
    #[arg(short, long, action = ArgAction::Help, help_heading = OUTPUT, hide_short_help = true)]
    pub help: Option<bool>,
    /// What happens to a call when no user can approve it: refuse it, or pause the run
    #[arg(long, value_parser = |text: &str| parse_name::<NoApprover>("it is one of", text), value_name = "refuse|pause", help_heading = CI, hide_short_help = true)]
    pub approvals: Option<NoApprover>,
    /// Trust the project's configuration in this run; with HASH, only if its content has that hash
    #[arg(long, value_name = "HASH", num_args = 0..=1, require_equals = true, help_heading = CI, hide_short_help = true)]
    pub trust_workspace: Option<Option<String>>,
    /// Also write a report on the session, to standard error unless a file is given
    #[arg(long, value_parser = str::parse::<ReportFormat>, value_name = "json|markdown|github|html|junit|sarif", help_heading = CI, hide_short_help = true)]
    pub report: Option<ReportFormat>,
    /// File of the report; without `--report`, its extension selects the format
    #[arg(long, value_name = "FILE", help_heading = CI, hide_short_help = true)]
    pub report_file: Option<PathBuf>,
    /// Exit code of a partial result
    #[arg(long, value_name = "N", help_heading = CI, hide_short_help = true)]
    pub exit_code_on_partial: Option<u8>,
}

impl RunOptions {
    /// Returns the request for a run with these options, without its task.
    pub fn request(&self) -> RunRequest {
        RunRequest {
            overrides: self.overrides(),
            images: self.image.clone(),
            schema: self.output_schema.clone().map(AnswerSchema::File),
            checks: self.check.clone(),
            dry_run: self.dry_run,
            clear_cache: self.cache_clear,
            format: self.format(),
            quiet: self.quiet,
            verbose: self.verbose,
            log_level: self.log_level,
            show_costs: self.show_costs,
            report: self.report,
            report_file: self.report_file.clone(),
            exit_code_on_partial: self.exit_code_on_partial,
            ..RunRequest::default()
        }
    }

    /// Returns the settings among these options.
    fn overrides(&self) -> Overrides {
        Overrides {
            agent: self.agent.clone(),
            mode: self.mode,
            approvals: self.approvals,
            model: self.model.clone(),
            api_base: self.api_base.clone(),
            api_key: self.api_key.as_deref().map(Secret::new),
            effort: self.effort,
            cache: match (self.no_cache, self.cache) {
                (true, _) => Some(false),
                (false, cache) => cache.then_some(true),
            },
            no_stream: self.no_stream,
            max_steps: self.max_steps,
            timeout: self.timeout,
            step_timeout: self.step_timeout,
            self_eval: self.self_eval,
            tool_timeout: self.tool_timeout,
            budget: self.budget,
            max_tokens: self.max_tokens,
            fallback: self.fallback_model.clone(),
            sandbox: match self.sandbox {
                Some(SandboxArg::Auto) => Some(SandboxMode::Auto),
                Some(SandboxArg::Require) => Some(SandboxMode::Require),
                Some(SandboxArg::Off) | None => None,
            },
            sandbox_off: self.sandbox == Some(SandboxArg::Off),
            allow_net: self.allow_net,
            allow_host: self.allow_host.clone(),
            allow_write: self.allow_write.clone(),
            mcp_config: self.mcp_config.clone(),
            disable_mcp: self.disable_mcp,
            trust: match &self.trust_workspace {
                None => TrustFlag::Stored,
                Some(None) => TrustFlag::ThisRun,
                Some(Some(hash)) => TrustFlag::WithHash(hash.clone()),
            },
            allow_commands: self.allow_commands,
            no_commands: self.no_commands,
            health: self.health,
            review: self.review_changes,
            log_file: self.log_file.clone(),
            ..self.common.overrides()
        }
    }

    /// Returns the format of standard output.
    pub fn format(&self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { self.output_format.unwrap_or_default() }
    }
}

fn output_formats() -> impl TypedValueParser<Value = OutputFormat> {
    PossibleValuesParser::new(OutputFormat::VARIANTS).try_map(|name| name.parse())
}

/// Confinement of commands and hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SandboxArg {
    /// The strongest confinement available.
    Auto,
    /// Full confinement; otherwise the run does not start.
    Require,
    /// No confinement.
    Off,
}
