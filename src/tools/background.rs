//! Background commands of a run: started, read and stopped while the work goes on, ended with the run.

use crate::core::event::Event;
use crate::process::capture::StoredOutput;
use crate::process::launch::{CommandSpec, ExitReason, LaunchError, Launcher, OutputOptions};
use crate::process::protected::ProtectedChange;
use crate::process::recent_output::RecentOutput;
use crate::text::lines::{QUOTE_CHARS, one_line};
use crate::tools::outputs::Outputs;
use crate::tools::sandbox_messages;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Commands that run in the background at the same time: a few servers and watchers; more are forgotten ones.
pub const MAX_RUNNING: usize = 8;

/// Commands that are remembered with their latest output, the running ones among them.
const MAX_REMEMBERED: usize = 24;

/// What the ids begin with.
const ID_PREFIX: &str = "bg";

/// The background commands of one run.
#[derive(Debug, Default)]
pub struct BackgroundCommands {
    commands: RefCell<Vec<Rc<BackgroundCommand>>>,
    started: Cell<u32>,
}

/// The background commands of a session's earlier runs: the fold of its journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviousCommands {
    started: u32,
    /// Id and command of those that the latest run took along when it ended, in whatever way.
    pub gone: Vec<(String, String)>,
}

impl PreviousCommands {
    /// Takes note of an event.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::RunStart { .. } => self.gone.clear(),
            Event::BackgroundStart { id, command } => {
                self.started = self.started.saturating_add(1);
                self.gone.push((id.clone(), command.clone()));
            }
            Event::BackgroundEnd { id, with_run: false, .. } => self.gone.retain(|(other, _)| other != id),
            _ => {}
        }
    }
}

/// One background command.
#[derive(Debug)]
pub struct BackgroundCommand {
    /// What the model calls it.
    pub id: String,
    /// The command, one line.
    pub text: String,
    /// The call that started it, by which a long output is kept.
    pub call_id: String,
    /// Its output so far.
    pub recent: RecentOutput,
    /// Up to which byte the model has read the output.
    pub read: Cell<u64>,
    /// The time limit that the call named.
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
    /// How, or why it did not start.
    pub result: Result<ExitReason, LaunchError>,
    /// What the file of a long output holds.
    pub stored: StoredOutput,
    /// The protected files that it did not leave as they were.
    pub protected_changes: Vec<ProtectedChange>,
    /// How long it ran.
    pub duration: Duration,
}

impl CommandEnd {
    /// What people are told of protected files that it changed, in one line.
    pub fn warning(&self) -> Option<String> {
        sandbox_messages::protected_files_line(&self.protected_changes)
    }
}

/// Something that happened to a background command and was not told yet.
#[derive(Debug)]
pub enum CommandUpdate {
    /// It began.
    Started(Rc<BackgroundCommand>),
    /// It ended.
    Ended {
        /// Which.
        command: Rc<BackgroundCommand>,
        /// Whether the model has been told by a tool.
        is_known_to_model: bool,
    },
}

impl BackgroundCommand {
    /// How it ended; `None` while it runs.
    pub fn end(&self) -> Option<&CommandEnd> {
        self.end.get()
    }

    /// How long it has run, or ran.
    pub fn age(&self) -> Duration {
        self.end().map_or_else(|| self.started_at.elapsed(), |end| end.duration)
    }

    /// Takes note that the model was told of the end.
    pub fn mark_end_reported(&self) {
        self.is_end_known_to_model.set(true);
    }

    /// Ends it with everything it started, and waits until that is gone.
    pub async fn stop(&self) {
        self.stop.cancel();
        let task = self.task.borrow_mut().take();
        if let Some(task) = task {
            // A task that panicked has been told on standard error, and dropping it has ended the command.
            let _panicked = task.await;
        }
    }
}

impl BackgroundCommands {
    /// Goes on counting behind the commands of earlier runs, because an id means one command of a session.
    pub fn resume(&self, earlier: &PreviousCommands) {
        self.started.set(earlier.started);
    }

    /// Starts `spec` for the call `call_id`.
    ///
    /// # Errors
    /// A text for the model when too many run already.
    pub fn start(
        &self,
        launcher: &Launcher,
        spec: CommandSpec,
        limit: Option<Duration>,
        (outputs, call_id): (&Rc<Outputs>, &str),
    ) -> Result<Rc<BackgroundCommand>, String> {
        self.make_room()?;
        self.started.set(self.started.get().saturating_add(1));
        let (recent, stop, end) =
            (RecentOutput::default(), CancellationToken::new(), Arc::new(OnceLock::new()));
        let command = Rc::new(BackgroundCommand {
            id: format!("{ID_PREFIX}{}", self.started.get()),
            text: one_line(spec.argv.last().map(String::as_str).unwrap_or_default(), QUOTE_CHARS),
            call_id: call_id.to_owned(),
            recent: recent.clone(),
            read: Cell::new(0),
            limit,
            started_at: Instant::now(),
            end: Arc::clone(&end),
            stop: stop.clone(),
            task: RefCell::new(None),
            is_start_unreported: Cell::new(true),
            is_end_unreported: Cell::new(true),
            is_end_known_to_model: Cell::new(false),
        });
        let file = (Outputs::clone(outputs), call_id.to_owned());
        let keeping = OutputOptions {
            open_file: Some(move || file.0.writer(&file.1)),
            idle_timeout: None,
            recent: Some(recent.clone()),
        };
        let (launcher, started_at) = (launcher.clone(), command.started_at);
        let task = tokio::spawn(async move {
            let exit = launcher.launch_with_output(spec, keeping, &stop).await;
            let duration = started_at.elapsed();
            let _only_here = end.set(match exit {
                Ok(exit) => CommandEnd {
                    result: Ok(exit.reason),
                    stored: exit.stored,
                    protected_changes: exit.protected_changes,
                    duration,
                },
                Err(error) => CommandEnd {
                    result: Err(error),
                    stored: StoredOutput::NoFile,
                    protected_changes: Vec::new(),
                    duration,
                },
            });
            recent.finish();
        });
        command.task.replace(Some(task));
        self.commands.borrow_mut().push(Rc::clone(&command));
        Ok(command)
    }

    /// Refuses one command too many, and forgets the oldest that ended.
    fn make_room(&self) -> Result<(), String> {
        let running = self.list().iter().filter(|command| command.end().is_none()).count();
        if running >= MAX_RUNNING {
            return Err(format!(
                "{running} background commands run already, which is the most. End one with stop_command; \
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

    /// All that are remembered, in the order of their start.
    pub fn list(&self) -> Vec<Rc<BackgroundCommand>> {
        self.commands.borrow().clone()
    }

    /// The command with this id.
    ///
    /// # Errors
    /// A text for the model that says which there are.
    pub fn get(&self, id: &str) -> Result<Rc<BackgroundCommand>, String> {
        let commands = self.commands.borrow();
        let found = commands.iter().find(|command| command.id == id);
        found.cloned().ok_or_else(|| {
            let ids: Vec<&str> = commands.iter().map(|command| command.id.as_str()).collect();
            let there = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            format!("There is no background command '{}'. There are: {there}.", one_line(id, QUOTE_CHARS))
        })
    }

    /// What happened since the last call, in the order of the commands.
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

    /// Ends all that run, and waits until they are gone.
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
