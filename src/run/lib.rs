//! One run of the agent: a [`RunRequest`] becomes a [`Run`], and a run ends with a [`RunOutcome`].
//!
//! Every way to use the agent goes through here: the command line, editors, servers, commands of several runs, the workers of the queue.
//! A program of your own can do the same. It needs three steps:
//!
//! 1. **Request.** [`RunRequest`] says what to do: the [`Task`] (a new session, or the next message of an existing one), the settings that
//!    precede configuration files and environment ([`Overrides`]), limits that no setting exceeds ([`RunBounds`]), checks, images, a JSON Schema for the
//!    answer, tools of your own ([`OwnTools`]), and who is asked for approval ([`RunClient`]; without one, the user at the terminal).
//! 2. **Prepare.** [`Run::prepare`] loads the settings, locks the session to resume, connects the models and builds the tools. What is wrong with
//!    configuration, session or model is an error now, before anything is sent. [`Run::settings`] shows what is in force; [`Run::add_sink`]
//!    adds a receiver of events.
//! 3. **Perform.** [`Run::perform`] works until the model is done or a limit is reached. Neither is an error: the [`RunOutcome`] has the result with
//!    its status and its stop reason. The session is on disk all the time, so a killed run can be resumed.
//!
//! [`App`] is the context of both: terminal, environment, clock, secrets. A run stays on the thread that performs it; [`App::block_on`] provides the
//! runtime. To interrupt a run, cancel the token of its [`RunClient`], or let a signal do it. [`App::embedded`] is for programs that keep their streams and
//! their signals to themselves, and for several runs at once on threads of their own.
//!
//! | function | for | what it adds |
//! |---|---|---|
//! | [`Run::perform`] | programs | nothing: events go to the client and to the sinks that were added |
//! | [`perform::perform`] | commands | log on standard error, JSON stream, log file, telemetry |
//! | [`perform::run_task`] | commands that are one run | the same, and result, report and exit code |
//!
//! Sessions are stored below `~/.local/state/agent`, and the user's configuration is read; `AGENT_HOME` names another directory for both.
//!
//! # A run with its events
//!
//! The script plays the model; without the line `model`, the configured one answers. The program needs the crate `agent-run` alone; the other
//! examples also need `serde` (with `derive`), `schemars` 1, `tokio` (with `macros` and `sync`) and `tokio-util`.
//!
//! ```no_run
#![doc = include_str!("examples/scripted_run.rs")]
//! ```
//!
//! A script is the list of the model's turns. Its path is relative to the current directory; a session that is resumed goes on at the turn after
//! those that it has used. All keys are in `agent help scripted`.
//!
//! ```yaml
#![doc = include_str!("examples/script.yaml")]
//! ```
//!
//! # A tool of your own
//!
//! A tool whose access is [`Access::Read`] runs without approval, but for the mode [`Mode::ConfirmAll`]. An `Err` is a message for the model: what was
//! wrong, and what to try.
//!
//! ```no_run
#![doc = include_str!("examples/own_tool.rs")]
//! ```
//!
//! # Approvals and interruption
//!
//! A [`RunClient`] is asked instead of the user at the terminal, and interrupts the run. The run waits for each answer, so questions are answered while
//! it works.
//!
//! ```no_run
#![doc = include_str!("examples/approvals.rs")]
//! ```

pub mod app;
pub mod approver;
mod ask_user;
pub mod assemble;
pub mod change_review;
pub mod client;
pub mod code_health;
pub mod config_file;
pub mod costs;
pub mod deciding_engine;
pub mod directories;
pub mod error;
pub mod exit_code;
pub mod file_diff;
pub mod input_history;
pub mod input_images;
pub mod interrupted_calls;
pub mod mcp;
pub mod memory;
pub mod model_chain;
pub mod notices;
pub mod output;
pub mod output_schema;
pub mod panic_hook;
pub mod perform;
pub mod preparation;
pub mod program;
pub mod prompt;
pub mod report_file;
pub mod request;
pub mod requested_report;
pub mod restore;
pub mod review_outcome;
mod rule_store;
pub mod run;
pub mod secrets;
pub mod server_questions;
pub mod session;
pub mod session_history;
pub mod session_list;
pub mod skills;
pub mod startup;
pub mod subagents;
pub mod system_message;
pub mod telemetry;
pub mod toolbox;
pub mod undo_store;
pub mod user_commands;

pub use agent_config::overrides::Overrides;
pub use agent_core::decision::Denial;
pub use agent_core::event::{Event, Record};
pub use agent_core::event_sink::EventSink;
pub use agent_core::failure::{Failure, FailureKind};
pub use agent_core::message::{ToolCall, ToolResult};
pub use agent_core::price::Usd;
pub use agent_core::run_result::{Cost, ModifiedFile, Output, RunResult};
pub use agent_core::stop_reason::{Status, StopReason};
pub use agent_core::usage::Usage;
pub use agent_engine::approver::{ApproverAnswer, Question};
pub use agent_engine::policy::Mode;
pub use agent_report::OutputFormat;
pub use agent_tools::{Access, Plan, Tool, ToolContext, ToolOutput, TypedTool};
pub use app::App;
pub use client::{ClientQuestion, RunBounds, RunClient};
pub use error::{AppError, AppResult};
pub use request::{AnswerSchema, OwnTools, RunRequest, Task};
pub use run::{Run, RunOutcome};
pub use tokio_util::sync::CancellationToken;
