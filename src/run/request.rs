//! What a run is to do.

use crate::client::{RunBounds, RunClient};
use crate::preparation::{Preparation, PromptData};
use crate::review_outcome::ReviewOutcome;
use agent_config::grants::Grants;
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_config::verbosity::Verbosity;
use agent_engine::message_queue::MessageQueue;
use agent_report::OutputFormat;
use agent_report::chat_log::ChatMemory;
use agent_report::session_report::ReportFormat;
use agent_session::total_budget::TotalBudget;
use agent_tools::Tool;
use agent_tools::foreground::ForegroundCommands;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::rc::Rc;

/// What a run is to do. A stored request lacks what exists only in the process that made it: the shared budget, the client, the queue, the
/// conversation, and the tools of the program.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct RunRequest {
    /// The session and its next message.
    pub task: Task,
    /// Settings that precede the settings of files and of the environment.
    pub overrides: Overrides,
    /// Limits that the settings cannot exceed.
    pub bounds: RunBounds,
    /// Images of the first message.
    pub images: Vec<PathBuf>,
    /// The JSON Schema that the answer must match.
    pub schema: Option<AnswerSchema>,
    /// Commands that must succeed before the run counts as done.
    pub checks: Vec<String>,
    /// Whether calls that change something are only described.
    pub dry_run: bool,
    /// Whether stored answers are removed first.
    pub clear_cache: bool,
    /// Format of standard output.
    pub format: OutputFormat,
    /// Whether standard error has errors only.
    pub quiet: bool,
    /// How many times more output on standard error was requested.
    pub verbose: u8,
    /// The level of the log on standard error.
    pub log_level: Option<Verbosity>,
    /// Whether the cost is printed at the end.
    pub show_costs: bool,
    /// Format of the report that the command writes besides the result ([`run_task`](crate::perform::run_task)).
    pub report: Option<ReportFormat>,
    /// File of the report; without a format, its extension decides.
    pub report_file: Option<PathBuf>,
    /// Exit code of the command for a partial result.
    pub exit_code_on_partial: Option<u8>,
    /// Whether the prompt is no text that the user typed: it is not searched for corrections.
    pub prompt_is_data: bool,
    /// Whether a person reads the answers and can reply: the model may ask.
    #[serde(default)]
    pub has_person: bool,
    /// Id of the session that a new run creates; without it, a new id.
    pub session_id: Option<String>,
    /// Id of the command of several runs, such as `agent loop`, to which the run belongs.
    pub work_id: Option<String>,
    /// Sessions whose changes are reviewed together with the changes of the run.
    pub earlier_sessions: Vec<String>,
    /// The budget that the run shares with other runs.
    #[serde(skip)]
    pub total_budget: Option<Rc<TotalBudget>>,
    /// The program that drives the run, if it is no user.
    #[serde(skip)]
    pub client: Option<RunClient>,
    /// Messages that the user types while the run works.
    #[serde(skip)]
    pub queue: MessageQueue,
    /// Commands that the user follows while the run waits for them.
    #[serde(skip)]
    pub foreground: ForegroundCommands,
    /// In a conversation: what it has shown.
    #[serde(skip)]
    pub chat: Option<ChatMemory>,
    /// In a conversation: what the user has allowed for all of it.
    #[serde(skip)]
    pub allowed: Option<Rc<agent_engine::grants::Grants>>,
    /// Grants of an agent of a Hub, without which it calls no tool of an MCP server.
    pub grants: Option<Grants>,
    /// Tools of the program that requests the run, beside the tools of the agent.
    #[serde(skip)]
    pub tools: OwnTools,
}

type MakeTools = dyn Fn() -> Vec<Box<dyn Tool>>;

/// Makes the tools that a program adds to a run.
#[derive(Clone, Default)]
pub struct OwnTools(Option<Rc<MakeTools>>);

impl OwnTools {
    /// Adds the tools that `make` returns, which is called at the start of each run.
    pub fn new(make: impl Fn() -> Vec<Box<dyn Tool>> + 'static) -> Self {
        Self(Some(Rc::new(make)))
    }

    /// Returns the tools for a run.
    pub(crate) fn make(&self) -> Vec<Box<dyn Tool>> {
        self.0.as_ref().map(|make| make()).unwrap_or_default()
    }
}

impl std::fmt::Debug for OwnTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnTools").finish_non_exhaustive()
    }
}

/// A JSON Schema for the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum AnswerSchema {
    /// The schema in this file.
    File(PathBuf),
    /// This schema.
    Text(String),
    /// The schema of a review, with what decides how the review is shown.
    Review(ReviewOutcome),
}

/// The session of a run, and its next message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Task {
    /// A new session.
    New {
        /// The prompt.
        prompt: String,
        /// The file of an earlier conversation.
        history: Option<PathBuf>,
        /// The steps before the work on the task.
        preparation: Preparation,
    },
    /// An existing session.
    Resume {
        /// Its id; `None` for the newest.
        id: Option<String>,
        /// The next message of the user.
        prompt: Option<String>,
        /// The steps before the work on it.
        preparation: Preparation,
    },
}

impl Default for Task {
    fn default() -> Self {
        Self::new(String::new())
    }
}

impl Task {
    /// Returns the task of a new session.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self::New { prompt: prompt.into(), history: None, preparation: Preparation::default() }
    }

    /// Returns the next message of session `id`.
    pub fn resume(id: impl Into<String>, prompt: impl Into<String>) -> Self {
        let (id, prompt) = (Some(id.into()), Some(prompt.into()));
        Self::Resume { id, prompt, preparation: Preparation::default() }
    }

    /// Returns the task with data that follow the prompt.
    #[must_use]
    pub fn with_data(self, data: Vec<PromptData>) -> Self {
        self.with_preparation(Preparation { data, ..Preparation::default() })
    }

    /// Returns the steps before the work on the task.
    pub fn preparation(&self) -> &Preparation {
        match self {
            Self::New { preparation, .. } | Self::Resume { preparation, .. } => preparation,
        }
    }

    /// Returns the task with other steps before the work on it.
    #[must_use]
    pub fn with_preparation(mut self, steps: Preparation) -> Self {
        match &mut self {
            Self::New { preparation, .. } | Self::Resume { preparation, .. } => *preparation = steps,
        }
        self
    }
}

impl RunRequest {
    /// Returns this request with another task.
    #[must_use]
    pub fn with_task(&self, task: Task) -> Self {
        Self { task, ..self.clone() }
    }

    /// Returns the verbosity on standard error: of the request, else of the configuration.
    pub fn detail(&self, settings: &Settings) -> Verbosity {
        let configured = Some(settings.logging.level).filter(|level| *level != Verbosity::Human);
        let (level, for_programs) = (self.log_level.or(configured), self.format != OutputFormat::Text);
        Verbosity::choose(self.quiet, self.verbose, level, for_programs)
    }

    /// Returns the overrides, without streaming where nothing receives the pieces of an answer.
    pub fn effective_overrides(&self) -> Overrides {
        let takes_deltas = match &self.client {
            Some(client) => client.takes_deltas,
            None => self.format != OutputFormat::Json && !self.quiet,
        };
        Overrides { no_stream: self.overrides.no_stream || !takes_deltas, ..self.overrides.clone() }
    }

    /// Returns how the answer is shown if it is a review.
    pub fn review(&self) -> Option<&ReviewOutcome> {
        match &self.schema {
            Some(AnswerSchema::Review(outcome)) => Some(outcome),
            _ => None,
        }
    }
}
