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
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use strum::VariantNames;

/// Arguments of `agent run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task; `-` or a pipe reads it from standard input
    pub prompt: Option<String>,
    /// Earlier conversation: a JSON array of {"role": "user" or "assistant", "content": "…"}
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Have the agent `plan` make a plan first, which the working agent receives
    #[arg(long)]
    pub mixed: bool,
    /// Show the model the changes of the working tree since this commit or branch
    #[arg(long, value_name = "REF")]
    pub context_git_diff: Option<String>,
    /// Options shared with `resume`.
    #[command(flatten)]
    pub options: RunOptions,
}

/// Arguments of `agent resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Session id; with `--last`, the prompt
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// Next message to the model; without it the session resumes where it stopped
    pub prompt: Option<String>,
    /// Resume the newest session of this workspace
    #[arg(long)]
    pub last: bool,
    /// Options shared with `run`.
    #[command(flatten)]
    pub options: RunOptions,
}

/// Options shared by `run` and `resume`.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct RunOptions {
    /// The configuration file and the workspace.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Agent: build, plan, review, resume, or one of your own
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Which calls run without asking
    #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|auto|yolo")]
    pub mode: Option<Mode>,
    /// What happens to a call when no user can approve it: refuse it, or pause the run
    #[arg(long, value_parser = |text: &str| parse_name::<NoApprover>("it is one of", text), value_name = "refuse|pause")]
    pub approvals: Option<NoApprover>,
    /// Model: provider/model, local/MODEL, or scripted:FILE
    #[arg(long)]
    pub model: Option<String>,
    /// Fallback model, used when the previous one is unusable (repeatable)
    #[arg(long, value_name = "P/M")]
    pub fallback_model: Vec<String>,
    /// Base URL of the server, such as `http://localhost:8080/v1`
    #[arg(long, value_name = "URL")]
    pub api_base: Option<String>,
    /// API key; the provider's environment variable is safer because process lists do not show it
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,
    /// Reasoning effort of the model
    #[arg(long, value_parser = parse_effort, value_name = "none|minimal|low|medium|high|xhigh|max")]
    pub effort: Option<Effort>,
    /// Store answers and reuse them for equal requests (for development)
    #[arg(long)]
    pub cache: bool,
    /// Neither store nor reuse answers; overrides `--cache` and the configuration
    #[arg(long)]
    pub no_cache: bool,
    /// Remove all stored answers first
    #[arg(long)]
    pub cache_clear: bool,
    /// Do not stream answers
    #[arg(long)]
    pub no_stream: bool,
    /// Maximum number of model calls
    #[arg(long, value_name = "N")]
    pub max_steps: Option<u32>,
    /// Time limit of the whole run
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub timeout: Option<u64>,
    /// Time limit of one step
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub step_timeout: Option<u64>,
    /// Time limit of one tool call; the model is notified when it is exceeded
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    pub tool_timeout: Option<u64>,
    /// Maximum cost of the run, closing summary included; a call that could exceed it is not made
    #[arg(long, value_parser = parse_usd, value_name = "USD")]
    pub budget: Option<f64>,
    /// Maximum number of tokens of the run, prompts and answers together
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Print the cost of the session at the end, at every log level
    #[arg(long)]
    pub show_costs: bool,
    /// Trust the project's configuration in this run; with HASH, only if its content has that hash
    #[arg(long, value_name = "HASH", num_args = 0..=1, require_equals = true)]
    pub trust_workspace: Option<Option<String>>,
    /// Confinement of commands and hooks: strongest available, full or none
    #[arg(long, value_name = "auto|require|off")]
    pub sandbox: Option<SandboxArg>,
    /// Allow commands and hooks to use the network
    #[arg(long)]
    pub allow_net: bool,
    /// Allow commands and hooks to reach this host through a proxy (repeatable)
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "allow_net")]
    pub allow_host: Vec<String>,
    /// Use the MCP servers in this file: `mcp:` of the configuration, or JSON with `mcpServers`
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    /// Use no MCP server
    #[arg(long)]
    pub disable_mcp: bool,
    /// Allow commands and hooks to write to this directory (repeatable)
    #[arg(long, value_name = "DIR")]
    pub allow_write: Vec<PathBuf>,
    /// Enable `run_command`, even if the configuration disables it
    #[arg(long)]
    pub allow_commands: bool,
    /// Disable `run_command`; overrides `--allow-commands`
    #[arg(long)]
    pub no_commands: bool,
    /// Image for the model: PNG, JPEG, GIF or WebP (repeatable)
    #[arg(long, value_name = "FILE")]
    pub image: Vec<PathBuf>,
    /// JSON Schema that the answer must match; standard output is then that JSON value, or nothing
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<PathBuf>,
    /// Command in the workspace that must succeed before the run counts as done (repeatable)
    #[arg(long, value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub check: Vec<String>,
    /// Have the model evaluate its own answer; `full` sends it feedback before the run becomes partial
    #[arg(long, value_parser = |text: &str| parse_name::<EvaluationMode>("it is one of", text), value_name = "off|basic|full")]
    pub self_eval: Option<EvaluationMode>,
    /// Have the agent `review` review the changes; the run is done when it approves them
    #[arg(long = "review")]
    pub review_changes: bool,
    /// Measure the code before and after the run: complexity and length of functions, repeated blocks
    #[arg(long)]
    pub health: bool,
    /// Run read-only calls, and only describe changes and commands
    #[arg(long)]
    pub dry_run: bool,
    /// Format of standard output: the answer, one JSON document, or every event as a JSON line
    #[arg(long, value_parser = output_formats(), value_name = "text|json|stream-json", hide_possible_values = true)]
    pub output_format: Option<OutputFormat>,
    /// Same as `--output-format json`: one JSON document, only warnings on standard error
    #[arg(long, conflicts_with = "output_format")]
    pub json: bool,
    /// Also write a report on the session, to standard error unless a file is given
    #[arg(long, value_parser = str::parse::<ReportFormat>, value_name = "json|markdown|github|html|junit|sarif")]
    pub report: Option<ReportFormat>,
    /// File of the report; without `--report`, its extension selects the format
    #[arg(long, value_name = "FILE")]
    pub report_file: Option<PathBuf>,
    /// Only errors on standard error
    #[arg(short, long)]
    pub quiet: bool,
    /// More output on standard error; twice for everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Log level on standard error
    #[arg(long, value_parser = str::parse::<Verbosity>, value_name = "debug|info|human|warn|error")]
    pub log_level: Option<Verbosity>,
    /// Also write every event to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Exit code of a partial result
    #[arg(long, value_name = "N")]
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
