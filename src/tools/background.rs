//! Background commands of a run: starts, lists and stops them; all end with the run.

use crate::outputs::Outputs;
use crate::{ToolContext, sandbox_messages};
use agent_core::event::Event;
use agent_process::capture::StoredOutput;
use agent_process::launch::{CommandOutcome, CommandSpec, ExitReason, LaunchError, Launcher, OutputOptions};
use agent_process::protected::ProtectedChange;
use agent_process::recent_output::RecentOutput;
use agent_text::lines::{QUOTE_CHARS, one_line};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Maximum number of background commands that run at the same time.
pub const MAX_RUNNING: usize = 8;

/// Maximum number of commands, running or ended, whose latest output is retained.
const MAX_REMEMBERED: usize = 24;

/// Prefix of command ids.
const ID_PREFIX: &str = "bg";

/// The background commands of one run.
#[derive(Debug, Default)]
pub struct BackgroundCommands {
    commands: RefCell<Vec<Rc<BackgroundCommand>>>,
    started: Cell<u32>,
}

/// Background commands of a session's previous runs, folded from its journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreviousCommands {
    started: u32,
    /// Id and command line of each command that was still running when the latest run ended.
    pub gone: Vec<(String, String)>,
}

impl PreviousCommands {
    /// Applies an event.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::RunStart { .. } => self.gone.clear(),
            Event::BackgroundStart { id, command } => {
                self.started = self.started.saturating_add(1);
                self.gone.push((id.clone(), command.clone()));
            }
            Event::BackgroundEnd { id, ended_by_run_end: false, .. } => {
                self.gone.retain(|(other, _)| other != id);
            }
            _ => {}
        }
    }
}

/// One background command.
#[derive(Debug)]
pub struct BackgroundCommand {
    /// The id that the model uses.
    pub id: String,
    /// The command line, shortened to one line.
    pub text: String,
    /// Id of the call that started the command; long output is stored under it.
    pub call_id: String,
    /// Latest part of the output.
    pub recent: RecentOutput,
    /// Offset in bytes up to which the model has read the output.
    pub read: Cell<u64>,
    /// Time limit requested by the call.
    pub limit: Option<Duration>,
    started_at: Instant,
    end: Arc<OnceLock<CommandEnd>>,
    stop: CancellationToken,
    task: RefCell<Option<JoinHandle<()>>>,
    is_start_unreported: Cell<bool>,
    is_end_unreported: Cell<bool>,
    is_end_known_to_model: Cell<bool>,
}

/// How a background command ended.
#[derive(Debug)]
pub struct CommandEnd {
    /// The exit reason, or why the command did not start.
    pub result: Result<ExitReason, LaunchError>,
    /// Whether and how a long output was stored.
    pub stored: StoredOutput,
    /// Changes it made to protected files.
    pub protected_changes: Vec<ProtectedChange>,
    /// Time it ran.
    pub duration: Duration,
}

impl CommandEnd {
    /// Returns a one-line warning about changed protected files, if there are any.
    pub fn warning(&self) -> Option<String> {
        sandbox_messages::protected_files_line(&self.protected_changes)
    }
}

/// A start or end of a background command that has not been reported yet.
#[derive(Debug)]
pub enum CommandUpdate {
    /// The command started.
    Started(Rc<BackgroundCommand>),
    /// The command ended.
    Ended {
        /// The command.
        command: Rc<BackgroundCommand>,
        /// Whether a tool result has already reported the end to the model.
        is_known_to_model: bool,
    },
}

/// A command that runs on a task of its own, until it ends or this is dropped.
pub(crate) struct RunningCommand {
    text: String,
    call_id: String,
    recent: RecentOutput,
    started_at: Instant,
    stop: DropGuard,
    task: JoinHandle<Result<CommandOutcome, LaunchError>>,
}

impl RunningCommand {
    /// Starts `spec` for the call of `cx`; `recent` receives its output.
    pub(crate) fn launch(
        launcher: &Launcher,
        spec: CommandSpec,
        recent: RecentOutput,
        cx: &ToolContext,
    ) -> Self {
        let text = one_line(spec.argv.last().map(String::as_str).unwrap_or_default(), QUOTE_CHARS);
        let (outputs, call_id) = (Outputs::clone(&cx.outputs), cx.call_id.clone());
        let open_file = Some(move || outputs.writer(&call_id));
        let output_options = OutputOptions { open_file, idle_timeout: None, recent: Some(recent.clone()) };
        let (launcher, stop) = (launcher.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let task =
            tokio::spawn(async move { launcher.launch_with_output(spec, output_options, &stopped).await });
        let started_at = Instant::now();
        Self { text, call_id: cx.call_id.clone(), recent, started_at, stop: stop.drop_guard(), task }
    }

    /// Waits for the end. A wait that is abandoned loses nothing.
    pub(crate) async fn end(&mut self) -> Result<CommandOutcome, String> {
        let end = (&mut self.task).await;
        // A panic was printed to standard error already.
        end.map_err(|error| error.to_string())?.map_err(|error| format!("{error}."))
    }

    /// Ends the command and all its processes, and waits until they are gone.
    pub(crate) async fn stop(self) -> Result<CommandOutcome, String> {
        let Self { stop, task, .. } = self;
        stop.disarm().cancel();
        task.await.map_err(|error| error.to_string())?.map_err(|error| format!("{error}."))
    }
}

impl BackgroundCommand {
    /// Returns how the command ended, or `None` while it runs.
    pub fn end(&self) -> Option<&CommandEnd> {
        self.end.get()
    }

    /// Returns the running time, up to now or up to the end.
    pub fn age(&self) -> Duration {
        self.end().map_or_else(|| self.started_at.elapsed(), |end| end.duration)
    }

    /// Records that the end was reported to the model.
    pub fn mark_end_reported(&self) {
        self.is_end_known_to_model.set(true);
    }

    /// Ends the command and all its processes, and waits until they are gone.
    pub async fn stop(&self) {
        self.stop.cancel();
        let task = self.task.borrow_mut().take();
        if let Some(task) = task {
            // A panic was already printed to standard error, and dropping the task ended the command.
            let _panicked = task.await;
        }
    }
}

impl BackgroundCommands {
    /// Continues the numbering of previous runs, so that ids are unique in a session.
    pub fn resume(&self, earlier: &PreviousCommands) {
        self.started.set(earlier.started);
    }

    /// Starts `spec` for the call of `cx`.
    ///
    /// # Errors
    /// A message for the model when too many commands are running.
    pub fn start(
        &self,
        launcher: &Launcher,
        spec: CommandSpec,
        limit: Option<Duration>,
        cx: &ToolContext,
    ) -> Result<Rc<BackgroundCommand>, String> {
        self.make_room()?;
        let running = RunningCommand::launch(launcher, spec, RecentOutput::default(), cx);
        Ok(self.add(running, limit))
    }

    /// Takes over a command that a call has waited for; gives it back if too many commands are running.
    pub(crate) fn take_over(&self, running: RunningCommand) -> Result<Rc<BackgroundCommand>, RunningCommand> {
        match self.make_room() {
            Ok(()) => Ok(self.add(running, None)),
            Err(_) => Err(running),
        }
    }

    fn add(&self, running: RunningCommand, limit: Option<Duration>) -> Rc<BackgroundCommand> {
        self.started.set(self.started.get().saturating_add(1));
        let RunningCommand { text, call_id, recent, started_at, stop, task } = running;
        let (stop, end) = (stop.disarm(), Arc::new(OnceLock::new()));
        let command = Rc::new(BackgroundCommand {
            id: format!("{ID_PREFIX}{}", self.started.get()),
            text,
            call_id,
            recent: recent.clone(),
            read: Cell::new(0),
            limit,
            started_at,
            end: Arc::clone(&end),
            stop,
            task: RefCell::new(None),
            is_start_unreported: Cell::new(true),
            is_end_unreported: Cell::new(true),
            is_end_known_to_model: Cell::new(false),
        });
        let task = tokio::spawn(async move {
            // A panic was printed to standard error already.
            let Ok(exit) = task.await else { return };
            let duration = started_at.elapsed();
            let (result, stored, protected_changes) = match exit {
                Ok(exit) => (Ok(exit.reason), exit.stored, exit.protected_changes),
                Err(error) => (Err(error), StoredOutput::NoFile, Vec::new()),
            };
            let _set_once = end.set(CommandEnd { result, stored, protected_changes, duration });
            recent.finish();
        });
        command.task.replace(Some(task));
        self.commands.borrow_mut().push(Rc::clone(&command));
        command
    }

    /// Checks the limit of running commands, and drops the oldest ended commands beyond the retained number.
    fn make_room(&self) -> Result<(), String> {
        let running = self.list().iter().filter(|command| command.end().is_none()).count();
        if running >= MAX_RUNNING {
            return Err(format!(
                "{running} background commands are running, which is the maximum. Stop one with stop_command; \
                 command_output without an id lists them."
            ));
        }
        let mut commands = self.commands.borrow_mut();
        while commands.len() >= MAX_REMEMBERED {
            let oldest = commands
                .iter()
                .position(|command| command.end().is_some() && !command.is_end_unreported.get());
            let Some(oldest) = oldest else { break };
            commands.remove(oldest);
        }
        Ok(())
    }

    /// Returns all retained commands in the order of their start.
    pub fn list(&self) -> Vec<Rc<BackgroundCommand>> {
        self.commands.borrow().clone()
    }

    /// Returns the command with this id.
    ///
    /// # Errors
    /// A message for the model that lists the known ids.
    pub fn get(&self, id: &str) -> Result<Rc<BackgroundCommand>, String> {
        let commands = self.commands.borrow();
        let found = commands.iter().find(|command| command.id == id);
        found.cloned().ok_or_else(|| {
            let ids: Vec<&str> = commands.iter().map(|command| command.id.as_str()).collect();
            let known = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            format!("There is no background command '{}'. There are: {known}.", one_line(id, QUOTE_CHARS))
        })
    }

    /// Returns the starts and ends since the last call, in the order of the commands.
    pub fn take_updates(&self) -> Vec<CommandUpdate> {
        let mut updates = Vec::new();
        for command in self.list() {
            if command.is_start_unreported.replace(false) {
                updates.push(CommandUpdate::Started(Rc::clone(&command)));
            }
            if command.end().is_some() && command.is_end_unreported.replace(false) {
                let is_known_to_model = command.is_end_known_to_model.get();
                updates.push(CommandUpdate::Ended { command, is_known_to_model });
            }
        }
        updates
    }

    /// Ends all running commands and waits until their processes are gone.
    pub async fn end_all(&self) {
        let running: Vec<_> = self.list().into_iter().filter(|command| command.end().is_none()).collect();
        for command in &running {
            command.stop.cancel();
        }
        for command in &running {
            command.mark_end_reported();
            command.stop().await;
        }
    }
}

impl Drop for BackgroundCommands {
    fn drop(&mut self) {
        for command in self.commands.get_mut() {
            command.stop.cancel();
        }
    }
}
