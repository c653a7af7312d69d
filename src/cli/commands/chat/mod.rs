//! `agent chat`: a conversation at the terminal. Each message is a run on one session.

pub mod args;
mod completion;
mod context;
mod conversation;
mod keyboard;
mod rewind;
mod slash_commands;

use crate::commands::client_run::parse_total;
use crate::commands::run_args::RunOptions;
use agent_config::load::LoadedConfig;
use agent_core::failure::FailureKind;
use agent_engine::policy::Mode;
use agent_messages as messages;
use agent_process::launch::Tier;
use agent_process::sandbox::repositories::is_in_own_work_tree;
use agent_report::OutputFormat;
use agent_report::chat_log::{ChatMemory, Viewed};
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_run::exit_code::ExitCode;
use agent_run::request::RunRequest;
use agent_run::session::session_store;
use agent_run::user_commands::UserCommands;
use agent_runtime::interrupt::Interrupt;
use agent_terminal::Style;
use agent_terminal::line_editor::Input;
use agent_tools::foreground::ForegroundCommands;
use args::ChatArgs;
use conversation::{Conversation, INTERRUPTED, Next};
use keyboard::Keyboard;
use std::rc::Rc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Time after an interrupt in which a second Ctrl+C ends the conversation with exit code 130.
const SECOND_INTERRUPT: Duration = Duration::from_secs(2);

/// Runs a conversation and returns the exit code.
///
/// # Errors
/// Fails without a terminal, and when the configuration or the session to continue is unusable.
pub fn chat(app: &App, args: ChatArgs) -> AppResult<u8> {
    if !app.terminal.can_ask() {
        let message = "`agent chat` needs a terminal; in scripts use `agent run \"what to do\"`";
        return Err(AppError::new(FailureKind::Usage, message));
    }
    if args.options.format() != OutputFormat::Text {
        let message = "`agent chat` has no JSON output; use `agent run … --json`";
        return Err(AppError::new(FailureKind::Usage, message));
    }
    let RunOptions { report, report_file, exit_code_on_partial, .. } = &args.options;
    if report.is_some() || report_file.is_some() || exit_code_on_partial.is_some() {
        let message = "--report, --report-file and --exit-code-on-partial are for one run; in a conversation use `/report`";
        return Err(AppError::new(FailureKind::Usage, message));
    }
    let runtime = app.runtime()?;
    let code = Chat::start(app, args, &runtime)?.run();
    runtime.shutdown_background();
    code
}

/// The beginning of the command that continues a session, whose menu lists them.
const RESUME: &str = "/resume ";

/// Returns the mode of a conversation where none is configured: `auto` where the sandbox confines commands, they reach no network, and git shows what was changed.
fn default_mode(app: &App, request: &RunRequest, loaded: &LoadedConfig) -> Option<Mode> {
    let settings = &loaded.settings;
    let is_contained = is_in_own_work_tree(&settings.workspace) && assemble::is_offline(settings);
    if request.overrides.mode.is_some() || !is_contained {
        return None;
    }
    // A sandbox that is required and missing is reported by the first message.
    let tier = assemble::launcher(app, settings).map(|launcher| launcher.tier());
    let confines = settings.commands.trust_sandbox && tier.is_ok_and(Tier::has_own_view);
    confines.then_some(Mode::Auto)
}

/// A conversation and its keyboard.
struct Chat<'a> {
    conversation: Conversation<'a>,
    keyboard: Keyboard,
}

impl<'a> Chat<'a> {
    fn start(app: &'a App, args: ChatArgs, runtime: &'a Runtime) -> AppResult<Self> {
        runtime.block_on(async { app.end_on_quit() })?;
        let ChatArgs { message, last, resume, budget_total, options } = args;
        let mut request = options.request();
        let mut loaded = app.load_and_notify(&request.effective_overrides())?;
        request.overrides.default_mode = default_mode(app, &request, &loaded);
        if request.overrides.default_mode.is_some() {
            loaded = app.load(&request.effective_overrides())?;
        }
        let shown: ChatMemory = loaded.notices.iter().map(|notice| app.redact(notice)).collect();
        request.chat = Some(shown);
        request.has_person = true;
        request.foreground = ForegroundCommands::followed();
        let settings = &loaded.settings;
        let chooses = resume.as_deref() == Some("");
        let resume = resume.filter(|id| !id.is_empty());
        let session = if last { Some(session_store(settings).id_or_newest_own(None)?) } else { resume };
        let budget = budget_total.map(parse_total).transpose()?;
        let user_commands = UserCommands::find(app, &loaded);
        let in_force = Rc::default();
        let mut keyboard = Keyboard::open(app, settings, &user_commands, Rc::clone(&in_force))?;
        if chooses {
            keyboard.begin_with(RESUME);
        }
        let mut conversation = Conversation::new(app, runtime, request, user_commands, in_force);
        // Fails now, not at the first message, if the session is unusable.
        let exchanges = conversation.change_session(session)?;
        conversation.left = budget;
        conversation.begin(settings);
        // A session brings its own agent and model.
        if conversation.session.is_some() {
            conversation.show_status()?;
        } else {
            conversation.show_header(settings);
        }
        conversation.show(&exchanges);
        conversation.later.extend(message);
        Ok(Self { conversation, keyboard })
    }

    /// Reads inputs until the user ends the conversation, and returns the exit code.
    fn run(&mut self) -> AppResult<u8> {
        loop {
            let input = match self.conversation.later.pop_front() {
                Some(line) => Input::Line(line),
                None => self.read()?,
            };
            if self.is_terminated() {
                return Ok(INTERRUPTED);
            }
            let mut next = self.handle(input);
            next = loop {
                next = match next {
                    Next::Message(text) => self.conversation.send(text, &mut self.keyboard),
                    Next::Queued(text) => {
                        self.keyboard.show_sent(&text);
                        self.conversation.send_queued(text, &mut self.keyboard)
                    }
                    Next::Edit(text) => {
                        self.keyboard.release();
                        self.conversation.write_message(&text)
                    }
                    Next::PlanIsReady => self.conversation.ask_about_plan(),
                    next => break next,
                }
            };
            if self.is_terminated() {
                return Ok(INTERRUPTED);
            }
            if let Next::Exit(code) = next {
                if let Some(session) = &self.conversation.session {
                    self.conversation.app.notify(Style::Dim, &messages::chat_end(session));
                }
                return Ok(code);
            }
        }
    }

    /// Reads the next input. A signal meanwhile restores the terminal and ends the process.
    fn read(&mut self) -> AppResult<Input> {
        let app = self.conversation.app;
        let typed = std::mem::take(&mut self.conversation.typed);
        self.keyboard.set_footer(self.conversation.footer.clone());
        let keyboard = &mut self.keyboard;
        self.conversation.runtime.block_on(async {
            let interrupt = app.interrupt()?;
            // A command of the program has run without the runtime: its signals arrive now, before the modes change.
            for _turn in 0..2 {
                tokio::task::yield_now().await;
            }
            if interrupt.ends_process() {
                return Ok(Input::End);
            }
            interrupt.arm_exit(!keyboard.is_plain());
            let input = keyboard.at_prompt(app, &typed).await;
            interrupt.disarm();
            input
        })
    }

    /// Checks whether SIGTERM or SIGHUP was received.
    fn is_terminated(&self) -> bool {
        self.conversation.app.interrupt().is_ok_and(Interrupt::ends_process)
    }

    /// Handles Ctrl+C at the prompt: the second one ends the conversation.
    fn interrupt(&mut self) -> Next {
        let now = self.conversation.app.source.elapsed();
        let before = self.conversation.interrupted.replace((now, false));
        let is_soon = |at: Duration| now.saturating_sub(at) <= SECOND_INTERRUPT;
        match before {
            Some((at, true)) if is_soon(at) => Next::Exit(INTERRUPTED),
            Some((at, false)) if is_soon(at) => Next::Exit(ExitCode::Success.code()),
            _ => {
                self.conversation.app.notify(Style::Dim, messages::CHAT_INTERRUPT_AGAIN);
                Next::Prompt
            }
        }
    }

    fn handle(&mut self, input: Input) -> Next {
        match input {
            Input::End => Next::Exit(ExitCode::Success.code()),
            Input::Interrupted => self.interrupt(),
            Input::ShowOutput => {
                if let Err(error) = self.conversation.show_output(Viewed::Earlier) {
                    self.conversation.app.report_error(&error);
                }
                Next::Prompt
            }
            Input::OpenEditor(text) => {
                self.keyboard.release();
                self.conversation.write_input(&text)
            }
            Input::Line(line) | Input::Later(line) => {
                self.keyboard.show_sent(line.trim());
                self.handle_line(line.trim())
            }
            Input::Image(path) => {
                self.conversation.attach_dropped(path, &mut self.keyboard);
                Next::Prompt
            }
            Input::ChangeMode => {
                self.conversation.change_mode();
                Next::Prompt
            }
            Input::Stop | Input::TakeBack | Input::Leave => Next::Prompt,
        }
    }

    /// Handles a line: a slash command, a shell command after `!`, or a message.
    fn handle_line(&mut self, line: &str) -> Next {
        self.conversation.interrupted = None;
        match line.chars().next() {
            None => Next::Prompt,
            // Words of a person who wants to leave, or to know how, cost no request.
            Some(_) if ["exit", "quit"].contains(&line) => Next::Exit(ExitCode::Success.code()),
            Some(_) if line == "?" => self.conversation.slash_command(line),
            Some('/') => self.conversation.slash_command(line),
            Some('!') => {
                let command = line.trim_start_matches('!').trim();
                self.conversation.run_command(command, &mut self.keyboard)
            }
            Some(_) => Next::Message(line.to_owned()),
        }
    }
}
