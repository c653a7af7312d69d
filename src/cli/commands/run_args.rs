//! The words of `agent run` and `agent resume`.

use crate::cli::commands::common_args::CommonArgs;
use crate::cli::compose::app::common_flags;
use crate::config::flags::Flags;
use crate::config::schema::{LogLevel, SandboxMode};
use crate::config::settings::Settings;
use crate::config::trust::TrustFlag;
use crate::core::evaluation::EvaluationMode;
use crate::core::secret::Secret;
use crate::engine::approver::NoApprover;
use crate::engine::policy::Mode;
use crate::llm::effort::Effort;
use crate::report::OutputFormat;
use crate::report::session_report::ReportFormat;
use crate::report::verbosity::Verbosity;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `agent run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The task in words; `-` reads it from standard input, and so does leaving it out of a pipe
    pub prompt: Option<String>,
    /// An earlier conversation that the task follows: a JSON array of {"role": "user" or "assistant", "content": "…"}
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Let the agent `plan` study the task first; its plan is given to the agent that does the work
    #[arg(long)]
    pub mixed: bool,
    /// Show the model what the working tree changes compared with this commit or branch
    #[arg(long, value_name = "REF")]
    pub context_git_diff: Option<String>,
    /// What it shares with `resume`.
    #[command(flatten)]
    pub options: RunOptions,
}

/// `agent resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The session's id, or with `--last` the prompt
    #[arg(value_name = "ID")]
    pub id: Option<String>,
    /// More to say; without it the session goes on where it stopped
    pub prompt: Option<String>,
    /// Take the newest session of this workspace
    #[arg(long)]
    pub last: bool,
    /// What it shares with `run`.
    #[command(flatten)]
    pub options: RunOptions,
}

/// What `run` and `resume` share.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct RunOptions {
    /// Where configuration and workspace are.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The agent: build, plan, review, resume, or one of yours
    #[arg(short, long, value_name = "NAME")]
    pub agent: Option<String>,
    /// What may happen without asking
    #[arg(short, long, value_parser = parse_mode, value_name = "confirm-all|confirm-sensitive|yolo")]
    pub mode: Option<Mode>,
    /// What becomes of a call that nobody can be asked about: refused, or the run ends and the call waits for an answer
    #[arg(long, value_parser = parse_approvals, value_name = "refuse|pause")]
    pub approvals: Option<NoApprover>,
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
    /// Time for one tool call; the model is told when it is up
    #[arg(long, value_name = "SECONDS")]
    pub tool_timeout: Option<u64>,
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
    /// A command that must pass before the run counts as done, in the workspace (repeatable)
    #[arg(long, value_name = "CMD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub check: Vec<String>,
    /// Let the model judge its own answer: what is found wanting is partial; with `full` the model is told first
    #[arg(long, value_parser = parse_evaluation, value_name = "off|basic|full")]
    pub self_eval: Option<EvaluationMode>,
    /// Read, but only describe what would be written or run
    #[arg(long)]
    pub dry_run: bool,
    /// What standard output gets: the answer, one JSON document, or every event as a line of JSON
    #[arg(long, value_name = "text|json|stream-json", hide_possible_values = true)]
    pub output_format: Option<OutputArg>,
    /// The same as `--output-format json`: one JSON document, nothing but warnings on standard error
    #[arg(long, conflicts_with = "output_format")]
    pub json: bool,
    /// Also give an account of the session, on standard error unless a file is named
    #[arg(long, value_parser = str::parse::<ReportFormat>, value_name = "json|markdown|github|html")]
    pub report: Option<ReportFormat>,
    /// Where the account goes; without `--report` the ending of the name says its form
    #[arg(long, value_name = "FILE")]
    pub report_file: Option<PathBuf>,
    /// Only errors on standard error
    #[arg(short, long)]
    pub quiet: bool,
    /// More on standard error; twice for everything
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// How loud the log on standard error is
    #[arg(long, value_parser = str::parse::<Verbosity>, value_name = "debug|info|human|warn|error")]
    pub log_level: Option<Verbosity>,
    /// Also write every event to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// The exit code of a partial result
    #[arg(long, value_name = "N")]
    pub exit_code_on_partial: Option<u8>,
}

impl RunOptions {
    /// How much is told on standard error: the flags, else the configuration where it says something.
    pub fn detail(&self, settings: &Settings) -> Verbosity {
        let configured = match settings.logging.level {
            LogLevel::Debug => Some(Verbosity::Debug),
            LogLevel::Info => Some(Verbosity::Info),
            LogLevel::Human => None,
            LogLevel::Warn => Some(Verbosity::Warn),
            LogLevel::Error => Some(Verbosity::Error),
        };
        let (level, for_programs) = (self.log_level.or(configured), self.format() != OutputFormat::Text);
        Verbosity::choose(self.quiet, self.verbose, level, for_programs)
    }

    /// What they say about the settings.
    pub fn flags(&self) -> Flags {
        Flags {
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
            no_stream: self.no_stream || self.format() == OutputFormat::Json || self.quiet,
            max_steps: self.max_steps,
            timeout: self.timeout,
            step_timeout: self.step_timeout,
            self_eval: self.self_eval,
            tool_timeout: self.tool_timeout,
            budget: self.budget,
            fallback: self.fallback_model.clone(),
            sandbox: match self.sandbox {
                Some(SandboxArg::Auto) => Some(SandboxMode::Auto),
                Some(SandboxArg::Require) => Some(SandboxMode::Require),
                Some(SandboxArg::Off) | None => None,
            },
            sandbox_off: self.sandbox == Some(SandboxArg::Off),
            allow_net: self.allow_net,
            allow_write: self.allow_write.clone(),
            trust: match &self.trust_workspace {
                None => TrustFlag::Stored,
                Some(None) => TrustFlag::ThisRun,
                Some(Some(hash)) => TrustFlag::WithHash(hash.clone()),
            },
            allow_commands: self.allow_commands,
            no_commands: self.no_commands,
            log_file: self.log_file.clone(),
            ..common_flags(&self.common)
        }
    }

    /// What standard output gets.
    pub fn format(&self) -> OutputFormat {
        match self.output_format {
            _ if self.json => OutputFormat::Json,
            None | Some(OutputArg::Text) => OutputFormat::Text,
            Some(OutputArg::Json) => OutputFormat::Json,
            Some(OutputArg::StreamJson) => OutputFormat::StreamJson,
        }
    }
}

/// A number of dollars; what the number parser also takes (`nan`, `inf`) would be no budget at all.
fn parse_usd(text: &str) -> Result<f64, String> {
    let dollars =
        text.strip_prefix('$').unwrap_or(text).parse().ok().filter(|dollars: &f64| dollars.is_finite());
    dollars.ok_or_else(|| "a budget is a number of US dollars, such as 0.50".to_owned())
}

/// The one of `known` whose `name` is `text`; another is told which `there_are`.
fn parse_name<T: Copy, const N: usize>(
    known: [T; N],
    name: impl Fn(T) -> &'static str,
    there_are: &str,
    text: &str,
) -> Result<T, String> {
    let found = known.into_iter().find(|one| name(*one) == text);
    found.ok_or_else(|| format!("{there_are} {}", known.map(name).join(", ")))
}

fn parse_evaluation(text: &str) -> Result<EvaluationMode, String> {
    parse_name(EvaluationMode::ALL, EvaluationMode::name, "it is one of", text)
}

fn parse_effort(text: &str) -> Result<Effort, String> {
    parse_name(Effort::ALL, Effort::name, "the levels are", text)
}

/// The mode of that name.
///
/// # Errors
/// When there is none; the message names those there are.
pub fn parse_mode(text: &str) -> Result<Mode, String> {
    match text {
        "confirm-all" => Ok(Mode::ConfirmAll),
        "confirm-sensitive" => Ok(Mode::ConfirmSensitive),
        "yolo" => Ok(Mode::Yolo),
        _ => Err("the modes are confirm-all, confirm-sensitive and yolo".to_owned()),
    }
}

fn parse_approvals(text: &str) -> Result<NoApprover, String> {
    parse_name([NoApprover::Refuse, NoApprover::Pause], NoApprover::name, "it is one of", text)
}

/// `--output-format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputArg {
    /// The answer.
    Text,
    /// One JSON document.
    Json,
    /// Every event as a line of JSON.
    StreamJson,
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
