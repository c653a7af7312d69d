//! The state of a conversation: each message is a run on its session.

use super::completion::InForce;
use super::keyboard::Keyboard;
use super::slash_commands;
use crate::commands::tools::{self, SingleCall};
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::event::{Event, Record};
use agent_core::language::Language;
use agent_core::message::ToolCall;
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_engine::policy::Mode;
use agent_journal::prompts::{last_prompts, prompts};
use agent_llm::effort::Effort;
use agent_messages as messages;
use agent_process::sandbox::repositories::branch;
use agent_report::call_view::CommandOutput;
use agent_report::chat_log::{Viewed, show_again};
use agent_report::{self as report, OutputFormat};
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::perform::{FinishedRun, catch_panic, perform};
use agent_run::preparation::Preparation;
use agent_run::request::{RunRequest, Task};
use agent_run::run::RunOutcome;
use agent_run::session::{LockedSession, use_state_with};
use agent_run::user_commands::UserCommands;
use agent_runtime::interrupt::{Interrupt, SignalHandlers};
use agent_terminal::line_editor::Input;
use agent_terminal::{Style, one_line};
use agent_tools::foreground::{ForegroundCommands, OutputTail};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempPath;
use tokio::runtime::Runtime;

/// Maximum bytes of one message; a longer one should be a file of the workspace.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;

/// Characters shown of a model's name.
pub const NAME_CHARS: usize = 60;

/// Exit code of a conversation that two interrupts end: 128 + SIGINT, as for an interrupted run.
pub const INTERRUPTED: u8 = 130;

/// Time between two updates of the queue and of a command's output on the screen.
const QUEUE_TICK: Duration = Duration::from_millis(200);
/// Rows shown of the output of a running command.
const TAIL_ROWS: usize = 4;
/// Characters shown of a command that runs.
const COMMAND_CHARS: usize = 200;
/// Maximum number of queued messages that are shown, and of characters of each.
const QUEUED_ROWS: usize = 3;
const QUEUED_CHARS: usize = 200;

/// Tools of an agent that only reads.
const READING_TOOLS: [&str; 7] =
    ["read_file", "list_files", "search_code", "grep", "find_files", "ask_user", "todo"];

/// Fewest lines of a plan; a shorter answer of the agent `plan` is conversation.
const MIN_PLAN_LINES: usize = 3;

/// The agent that makes plans, and the agent that carries them out.
pub const PLAN: &str = "plan";
pub const BUILD: &str = "build";

/// Number of messages that are shown of a session that is continued.
const SHOWN_EXCHANGES: usize = 3;

/// Returns the result of the last run; `None` if it was killed.
fn last_result(records: &[Record]) -> Option<RunResult> {
    let mut ends = records.iter().rev().filter_map(|record| match &record.event {
        Event::RunEnd { result } => Some(Some(RunResult::clone(result))),
        Event::RunStart { .. } => Some(None),
        _ => None,
    });
    ends.next().flatten()
}

/// What follows an input of the user.
pub enum Next {
    /// The next prompt.
    Prompt,
    /// A message to the model.
    Message(String),
    /// A message to the model that was typed while it worked.
    Queued(String),
    /// A message that begins with this text, from the user's editor.
    Edit(String),
    /// The question whether the plan is carried out.
    PlanIsReady,
    /// The end of the conversation, with its exit code.
    Exit(u8),
}

/// A conversation.
pub struct Conversation<'a> {
    /// The application context.
    pub app: &'a App,
    /// One runtime for the whole conversation, because the signal handlers are bound to it.
    pub runtime: &'a Runtime,
    /// The request of the next message.
    pub request: RunRequest,
    /// The session; none before the first message.
    pub session: Option<String>,
    /// Money left of `--budget-total`.
    pub left: Option<Usd>,
    /// What the request leaves to the session that is continued: its agent, its model, whether it pauses for approvals.
    session_defaults: Overrides,
    /// Number of steps of the session before each message of this conversation, for `/undo`.
    pub undo_points: Vec<u32>,
    /// The points that were undone, for `/redo`.
    pub undone_points: Vec<u32>,
    /// Whether the conversation is compacted before the next message.
    pub compact: bool,
    /// The user's own slash commands.
    pub user_commands: UserCommands,
    /// Time of the last interrupt, and whether it interrupted a run.
    pub interrupted: Option<(Duration, bool)>,
    /// The last result, for `/cost`.
    pub result: Option<RunResult>,
    /// Whether the next message is the text of a command's file.
    pub is_from_file: bool,
    /// The file with the text of the next message from the editor, until its run has begun.
    pub draft: Option<TempPath>,
    /// Text that stands at the next prompt: it was typed while the model worked, and not sent.
    pub typed: String,
    /// Commands that the user ran since the last message, and their results.
    pub ran: Vec<(String, String)>,
    /// `chat.queue`: whether a line that is typed during a run is queued for the next step.
    queues: bool,
    /// Lines that are queued for the end of the run.
    pub later: VecDeque<String>,
    /// The row below the input.
    pub footer: String,
    /// What is in force for the next message, for the menus.
    in_force: Rc<RefCell<InForce>>,
    /// The running command that the user typed after `!`.
    own_commands: ForegroundCommands,
}

impl<'a> Conversation<'a> {
    /// Creates a conversation without a session.
    pub fn new(
        app: &'a App,
        runtime: &'a Runtime,
        request: RunRequest,
        user_commands: UserCommands,
        in_force: Rc<RefCell<InForce>>,
    ) -> Self {
        Self {
            app,
            runtime,
            request,
            session: None,
            left: None,
            session_defaults: Overrides::default(),
            undo_points: Vec::new(),
            undone_points: Vec::new(),
            compact: false,
            user_commands,
            interrupted: None,
            result: None,
            is_from_file: false,
            draft: None,
            typed: String::new(),
            ran: Vec::new(),
            queues: false,
            later: VecDeque::new(),
            footer: String::new(),
            in_force,
            own_commands: ForegroundCommands::followed(),
        }
    }

    /// Continues `session`, or begins a new one: nothing of the session before applies to it. Returns the records of the last messages of the session.
    ///
    /// # Errors
    /// When the session cannot be opened.
    pub fn change_session(&mut self, session: Option<String>) -> AppResult<Vec<Record>> {
        let (mut exchanges, mut result, mut undo_points) = (Vec::new(), None, Vec::new());
        let defaults = match &session {
            None => Overrides::default(),
            Some(id) => {
                let mut loaded = self.app.load(&self.request.effective_overrides())?;
                use_state_with(&mut loaded.settings, Some(id));
                let opened = LockedSession::open(&loaded.settings, Some(id))?;
                let flags = opened.with_session_defaults(Overrides::default(), &loaded);
                let Overrides { agent, model, approvals, .. } = flags;
                // What was asked about before is not allowed by the way.
                let mode = opened.mode().filter(|mode| *mode < loaded.settings.agent.mode);
                let mut records = opened.contents.records;
                result = last_result(&records);
                undo_points = prompts(&records).iter().map(|prompt| prompt.steps_before).collect();
                exchanges = records.split_off(last_prompts(&records, SHOWN_EXCHANGES));
                let redactor = self.app.redactor(&loaded.settings);
                for record in &mut exchanges {
                    redactor.redact_event(&mut record.event);
                }
                Overrides { agent, approvals, mode, model, ..Overrides::default() }
            }
        };
        (self.session, self.session_defaults) = (session, defaults);
        if let Some(memory) = &self.request.chat {
            memory.begin_session(self.session.as_deref());
        }
        self.undo_points = undo_points;
        self.undone_points.clear();
        self.ran.clear();
        (self.compact, self.result) = (false, result);
        self.request.allowed = Some(Rc::default());
        Ok(exchanges)
    }

    /// Shows what is in force for the next message, and where it works.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub fn show_status(&mut self) -> AppResult<()> {
        let settings = self.refresh_footer()?;
        self.show_header(&settings);
        Ok(())
    }

    /// Shows what of `settings` is in force, and where the agent works.
    pub fn show_header(&self, settings: &Settings) {
        let [model, agent, place] = self.header_parts(settings);
        self.app.notify(Style::Dim, &messages::chat_start(&model, &agent, &place, self.session.as_deref()));
        let workspace = settings.workspace.as_path();
        if self.app.environment.home() == Some(workspace) || workspace.parent().is_none() {
            self.app.notify(Style::Warning, &messages::chat_wide_place(&workspace.display().to_string()));
        }
    }

    /// Stores the settings that stay the same for the whole conversation.
    pub fn begin(&mut self, settings: &Settings) {
        self.queues = settings.chat.queue;
        self.show_in_force(settings);
    }

    /// Shows what is in force for the next message below the input, and returns these settings.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub fn refresh_footer(&mut self) -> AppResult<Settings> {
        let settings = self.app.load(&self.request_in_force().effective_overrides())?.settings;
        self.show_in_force(&settings);
        Ok(settings)
    }

    /// Shows in the row below the input and in the menus what of `settings` is in force.
    pub fn show_in_force(&mut self, settings: &Settings) {
        let [model, agent, place] = self.header_parts(settings);
        let spent = self.result.as_ref().map(messages::chat_spent).unwrap_or_default();
        self.footer = messages::chat_footer(&model, &agent, &place, &spent);
        self.in_force.replace(InForce {
            session: self.session.clone(),
            model: settings.llm.model.clone().unwrap_or_default(),
            agent: settings.agent.name.clone(),
            mode: settings.agent.mode.name().to_owned(),
            effort: settings.llm.effort.map_or("", Effort::name).to_owned(),
        });
    }

    /// Returns the model, the agent with its mode, and the directory with its branch.
    pub(super) fn header_parts(&self, settings: &Settings) -> [String; 3] {
        let short = |text: &str| one_line(text, NAME_CHARS);
        let only_reads = settings.agent.mode != Mode::ConfirmAll
            && !settings.agent.allowed_tools.is_empty()
            && settings.agent.allowed_tools.iter().all(|tool| READING_TOOLS.contains(&tool.as_str()));
        let mode = if only_reads { None } else { Some(settings.agent.mode.name()) };
        let agent = messages::chat_agent_and_mode(&short(&settings.agent.name), mode);
        let mut place = self.app.environment.shown_path(&settings.workspace).display().to_string();
        if let Some(branch) = branch(&settings.workspace) {
            place = format!("{place} ({})", short(&branch));
        }
        [short(settings.llm.model.as_deref().unwrap_or_default()), agent, place]
    }

    /// Shows the last messages of a session, as they were shown at first.
    pub fn show(&self, records: &[Record]) {
        if let Some(memory) = &self.request.chat {
            // A terminal that is gone is noticed by the next prompt.
            drop(show_again(&self.app.terminal, memory, Language::En, records));
        }
    }

    /// Returns the request of the next message, with the defaults of the session.
    pub fn request_in_force(&self) -> RunRequest {
        let defaults = self.session_defaults.clone();
        let mut request = self.request.clone();
        let own = &mut request.overrides;
        own.agent = own.agent.take().or(defaults.agent);
        own.model = own.model.take().or(defaults.model);
        own.approvals = own.approvals.or(defaults.approvals);
        own.mode = own.mode.or(defaults.mode);
        request
    }

    /// Runs a shell command of the user, who is not asked about it; the model receives its result with the next message.
    pub fn run_command(&mut self, command: &str, keyboard: &mut Keyboard) -> Next {
        if command.is_empty() {
            return Next::Prompt;
        }
        let arguments = serde_json::json!({ "command": command }).to_string();
        let id = format!("user_{}", self.app.source.short_id());
        let call = ToolCall::new(id, "run_command", arguments);
        let request = self.request_in_force();
        let (app, runtime, session) = (self.app, self.runtime, self.session.clone());
        let single = SingleCall {
            call,
            flags: Overrides { mode: Some(Mode::Yolo), ..request.effective_overrides() },
            dry_run: request.dry_run,
            session: session.as_deref(),
            foreground: self.own_commands.clone(),
        };
        self.app.terminal.show_status(&messages::spinner_tool("$", &one_line(command, COMMAND_CHARS)));
        let work = tools::run_one(app, single);
        match catch_panic(|| runtime.block_on(self.while_typing(keyboard, work))) {
            Ok(result) => {
                self.app.terminal.hide_status();
                let output = CommandOutput::of(&result);
                self.app.notify(Style::Plain, &output.lines.join("\n"));
                if let Some(why) = output.failure {
                    self.app.notify(Style::Error, &messages::call_failed(&why, Duration::ZERO));
                }
                self.ran.push((command.to_owned(), result.text));
            }
            Err(error) => {
                self.app.terminal.hide_status();
                self.app.report_error(&error);
            }
        }
        let was_interrupted = self.app.interrupt().is_ok_and(Interrupt::is_pressed);
        if was_interrupted {
            self.interrupted = Some((self.app.source.elapsed(), true));
        }
        self.what_waits(was_interrupted, keyboard)
    }

    /// Sends a message: one run on the session.
    pub fn send(&mut self, text: String, keyboard: &mut Keyboard) -> Next {
        if text.len() > MAX_MESSAGE_BYTES {
            self.app.notify(Style::Error, messages::CHAT_MESSAGE_TOO_LONG);
            return self.not_sent();
        }
        let mut request = self.request_in_force();
        request.prompt_is_data = std::mem::take(&mut self.is_from_file);
        if self.left == Some(Usd::ZERO) {
            self.app.notify(Style::Error, messages::CHAT_BUDGET_USED);
            return self.not_sent();
        }
        request.bounds.budget = self.left;
        let preparation =
            Preparation { user_commands: self.ran.clone(), compact: self.compact, ..Preparation::default() };
        let task = match &self.session {
            Some(id) => Task::resume(id, text),
            None => Task::new(text),
        };
        request.task = task.with_preparation(preparation);
        let (app, runtime, images) = (self.app, self.runtime, request.images.len());
        let work = self.while_typing(keyboard, Box::pin(perform(app, &request)));
        match catch_panic(|| runtime.block_on(work)) {
            Ok(finished) => self.finish(finished, images, keyboard),
            Err(error) => {
                self.app.report_error(&error);
                keyboard.put_back(&self.take_waiting().join("\n"));
                self.not_sent()
            }
        }
    }

    /// Asks whether the plan is carried out: yes, no, or what to change.
    pub fn ask_about_plan(&mut self) -> Next {
        let Ok(interrupt) = self.app.interrupt() else { return Next::Prompt };
        let until = interrupt.arm(SignalHandlers::silent());
        let answers = messages::CHAT_DO_PLAN_ANSWERS.map(str::to_owned);
        let asked = self.app.terminal.ask_choice(messages::CHAT_DO_PLAN, &answers, &until);
        let typed = self.runtime.block_on(asked);
        interrupt.disarm();
        self.app.terminal.set_title("");
        let typed = typed.unwrap_or_default().trim().to_owned();
        match typed.to_lowercase().as_str() {
            "" | "n" | "no" => Next::Prompt,
            "y" | "yes" => {
                let changed = self.set(|flags| {
                    flags.agent = Some(BUILD.to_owned());
                    Ok(())
                });
                match changed {
                    Ok(()) => Next::Message(messages::CHAT_CARRY_OUT.to_owned()),
                    Err(error) => {
                        self.app.report_error(&error);
                        Next::Prompt
                    }
                }
            }
            _ => Next::Message(typed),
        }
    }

    /// Sends a message that was typed while the model worked; if that fails, it stands at the next prompt.
    pub fn send_queued(&mut self, text: String, keyboard: &mut Keyboard) -> Next {
        let sent = self.undo_points.len();
        let next = self.send(text.clone(), keyboard);
        if self.undo_points.len() == sent {
            self.typed = text;
        }
        next
    }

    /// Waits for the end of `work`, and handles what the user types meanwhile.
    async fn while_typing<T>(&mut self, keyboard: &mut Keyboard, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut tick = tokio::time::interval(QUEUE_TICK);
        self.app.terminal.set_title(messages::TITLE_WORKS);
        self.app.terminal.forget_call();
        let done = 'work: loop {
            let input = {
                let mut typing = pin!(keyboard.while_working());
                loop {
                    self.show_queued();
                    self.show_tail();
                    tokio::select! {
                        biased;
                        done = &mut work => break 'work done,
                        input = &mut typing => break input,
                        _tick = tick.tick() => {}
                    }
                }
            };
            self.handle_while_working(input, keyboard);
        };
        self.app.terminal.show_queued(Vec::new());
        self.app.terminal.show_tail(Vec::new());
        self.app.terminal.set_title("");
        self.app.terminal.call_user(messages::CALL_END);
        done
    }

    fn handle_while_working(&mut self, input: Input, keyboard: &mut Keyboard) {
        match input {
            Input::Line(line) | Input::Later(line) if slash_commands::is_for_work(line.trim()) => {
                // These commands leave the conversation as it is.
                let _prompt = self.slash_command(line.trim());
                keyboard.set_footer(self.footer.clone());
            }
            Input::Line(line) if self.queues && !line.trim().starts_with(['/', '!']) => {
                if self.request.queue.push(&line) && keyboard.is_plain() {
                    self.app.notify(Style::Dim, &messages::chat_waits(line.trim(), true));
                }
            }
            Input::Line(line) | Input::Later(line) => {
                let line = line.trim();
                if !line.is_empty() {
                    self.later.push_back(line.to_owned());
                }
            }
            Input::TakeBack => {
                if let Some(line) = self.later.pop_back().or_else(|| self.request.queue.take_last()) {
                    keyboard.put_back(&line);
                }
            }
            Input::ShowOutput => {
                if let Err(error) = self.show_output(Viewed::Earlier) {
                    self.app.report_error(&error);
                }
            }
            Input::Image(path) => {
                self.attach_dropped(path, keyboard);
            }
            Input::ChangeMode => {
                self.change_mode();
                keyboard.set_footer(self.footer.clone());
            }
            Input::Leave => {
                if !self.request.foreground.leave_last() {
                    self.app.notify(Style::Dim, messages::CHAT_NOTHING_TO_LEAVE);
                }
            }
            Input::Stop | Input::Interrupted => {
                // Only a second Ctrl+C, which is a signal, ends the program at once.
                if let Ok(interrupt) = self.app.interrupt()
                    && !interrupt.is_pressed()
                {
                    interrupt.press();
                }
            }
            Input::OpenEditor(_) | Input::End => {}
        }
    }

    /// Returns the queued messages, each with true if it is for the next step.
    pub fn waiting(&self) -> Vec<(String, bool)> {
        let next = self.request.queue.texts().into_iter().map(|text| (text, true));
        next.chain(self.later.iter().map(|text| (text.clone(), false))).collect()
    }

    /// Removes and returns all queued messages.
    pub fn take_waiting(&mut self) -> Vec<String> {
        self.request.queue.take().into_iter().chain(self.later.drain(..)).collect()
    }

    /// Shows the last lines of the command that runs.
    fn show_tail(&self) {
        // A command of the agent can be left in the background, one of the user cannot.
        let commands = [(&self.request.foreground, true), (&self.own_commands, false)];
        let tail = commands.iter().find_map(|(commands, can_be_left)| {
            Some((commands.tail(TAIL_ROWS, |text| self.app.redact(text))?, *can_be_left))
        });
        let mut rows = Vec::new();
        if let Some((OutputTail { lines, before }, can_be_left)) =
            tail.filter(|(tail, _)| !tail.lines.is_empty())
        {
            if before > 0 || can_be_left {
                rows.push(vec![(Style::Dim, messages::tail_begin(before, can_be_left))]);
            }
            rows.extend(lines.iter().map(|line| vec![(Style::Dim, messages::tail_line(line))]));
        }
        self.app.terminal.show_tail(rows);
    }

    fn show_queued(&self) {
        let row = |(text, is_for_step): (String, bool)| {
            vec![(Style::Dim, messages::chat_waits(&one_line(&text, QUEUED_CHARS), is_for_step))]
        };
        let waiting = self.waiting();
        let first = waiting.len().saturating_sub(QUEUED_ROWS);
        self.app.terminal.show_queued(waiting.into_iter().skip(first).map(row).collect());
    }

    /// Keeps the text of the editor, whose message was not sent.
    pub fn not_sent(&mut self) -> Next {
        match self.draft.take().map(TempPath::keep) {
            Some(Ok(path)) => {
                let hint = messages::chat_draft_kept(&path.to_string_lossy());
                self.app.notify(Style::Warning, &hint);
            }
            Some(Err(error)) => self.app.notify(Style::Error, &error.to_string()),
            None => {}
        }
        Next::Prompt
    }

    /// Prints the rest of a run's output, and updates the conversation. The run had the first `images` images.
    fn finish(&mut self, finished: FinishedRun, images: usize, keyboard: &mut Keyboard) -> Next {
        let FinishedRun { outcome, shown, telemetry } = finished;
        let RunOutcome { result, settings, spent, first_step, .. } = outcome;
        self.ran.clear();
        (self.draft, self.compact) = (None, false);
        // The answers are removed once, not before each message.
        self.request.clear_cache = false;
        // Others were attached while it worked.
        self.request.images.drain(..images.min(self.request.images.len()));
        self.undo_points.push(first_step);
        self.undone_points.clear();
        self.session.clone_from(&result.session_id);
        self.left = self.left.map(|left| left.saturating_sub(spent));
        // A failure is reported there.
        let _written = report::write_result(&self.app.terminal, OutputFormat::Text, &result, &shown);
        let model = settings.llm.model.clone().unwrap_or_default();
        let status = messages::chat_status(&one_line(&model, NAME_CHARS), &result, self.left);
        self.app.notify(Style::Dim, &status);
        if let Some(telemetry) = telemetry {
            // A panic in it has been reported and does not end the conversation.
            let _reported = catch_panic(|| {
                self.runtime.block_on(telemetry.export(&self.app.terminal));
                Ok(())
            });
        }
        let was_interrupted = result.stop_reason == Some(StopReason::UserInterrupt);
        if was_interrupted {
            self.interrupted = Some((self.app.source.elapsed(), true));
        }
        let is_long = result.output.text().lines().count() >= MIN_PLAN_LINES;
        let is_planned = is_long && settings.agent.name == PLAN && result.status == Status::Success;
        self.result = Some(result);
        // An option of the next message may have changed meanwhile.
        if let Err(error) = self.refresh_footer() {
            self.app.report_error(&error);
        }
        match self.what_waits(was_interrupted, keyboard) {
            Next::Prompt if is_planned && self.later.is_empty() && !was_interrupted => Next::PlanIsReady,
            next => next,
        }
    }

    /// Handles the queue at the end of a run. Messages that no step has sent become the next message. After an interrupt, all queued messages return to the
    /// input.
    fn what_waits(&mut self, was_interrupted: bool, keyboard: &mut Keyboard) -> Next {
        if was_interrupted {
            keyboard.put_back(&self.take_waiting().join("\n"));
            return Next::Prompt;
        }
        let typed = self.request.queue.take().join("\n");
        if typed.is_empty() { Next::Prompt } else { Next::Queued(typed) }
    }
}
