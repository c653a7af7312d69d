//! The application context of every command: the terminal, the environment, and loading of settings.

use crate::error::{AppError, AppResult};
use crate::secrets;
use agent_config::environment::Environment;
use agent_config::load::{LoadedConfig, load};
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::failure::FailureKind;
use agent_core::run_result::RunResult;
use agent_redactor::{NamedSecret, Redactor};
use agent_runtime::clock::Clock;
use agent_runtime::interrupt::Interrupt;
use agent_terminal::{Style, Terminal, TerminalEnvironment};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;

/// The application context: streams, environment, clock and redactor.
pub struct App {
    /// Standard streams.
    pub terminal: Arc<Terminal>,
    /// The environment, read once.
    pub environment: Arc<Environment>,
    /// Clock, random numbers and ids.
    pub source: Rc<Clock>,
    /// The program that starts commands; absent: this one.
    pub launcher: Option<PathBuf>,
    /// Secrets of the program that drives the runs.
    client_secrets: Vec<NamedSecret>,
    /// Created on first use.
    redactor: Arc<OnceLock<Arc<Redactor>>>,
    /// Installed with the first run.
    interrupt: OnceCell<Interrupt>,
    /// Texts that this process has reported and does not repeat.
    reported: Rc<RefCell<BTreeSet<String>>>,
}

impl App {
    /// Creates the context of this process, with its streams and its signals.
    pub fn new(environment: Environment) -> Self {
        let terminal = Terminal::new(&TerminalEnvironment::from_variables(environment.variables()));
        Self::with_terminal(environment, terminal)
    }

    /// Creates a context for runs inside another program: output goes to `terminal`, and no signal handler is installed. `launcher` starts commands: the path
    /// of a program whose `main` is [`program::main`](crate::program::main).
    pub fn embedded(environment: Environment, terminal: Terminal, launcher: PathBuf) -> Self {
        Self {
            launcher: Some(launcher),
            interrupt: OnceCell::from(Interrupt::without_signals()),
            ..Self::with_terminal(environment, terminal)
        }
    }

    fn with_terminal(environment: Environment, terminal: Terminal) -> Self {
        Self {
            client_secrets: Vec::new(),
            launcher: None,
            terminal: Arc::new(terminal),
            environment: Arc::new(environment),
            source: Rc::new(Clock::new()),
            redactor: Arc::default(),
            interrupt: OnceCell::new(),
            reported: Rc::default(),
        }
    }

    /// Checks whether `text` is reported for the first time in this process, and records it.
    pub fn is_first_report(&self, text: &str) -> bool {
        self.reported.borrow_mut().insert(text.to_owned())
    }

    /// Returns this context with a redactor of its own, for other settings and the secrets of a client.
    #[must_use]
    pub fn with_client_secrets(&self, client_secrets: Vec<NamedSecret>) -> Self {
        Self {
            client_secrets,
            launcher: self.launcher.clone(),
            terminal: Arc::clone(&self.terminal),
            environment: Arc::clone(&self.environment),
            source: Rc::clone(&self.source),
            redactor: Arc::default(),
            interrupt: self.interrupt.clone(),
            reported: Rc::clone(&self.reported),
        }
    }

    /// Returns the context of a run at the same time as others: with a clock of its own, because the time of a run is that of its last event.
    #[must_use]
    pub fn for_worker(&self) -> Self {
        Self { source: Rc::new(Clock::new()), ..self.with_client_secrets(self.client_secrets.clone()) }
    }

    /// Loads the settings for `flags`.
    ///
    /// # Errors
    /// Fails for an invalid configuration.
    pub fn load(&self, flags: &Overrides) -> AppResult<LoadedConfig> {
        load(flags, &self.environment)
            .map_err(|error| AppError { kind: FailureKind::Config, cause: error.into() })
    }

    /// Returns the redactor of secrets in all output, including the secrets among the settings.
    pub fn redactor(&self, settings: &Settings) -> Arc<Redactor> {
        let make = || {
            let mut known = secrets::known(&self.environment, settings);
            known.extend(self.client_secrets.iter().cloned());
            Arc::new(Redactor::new(known))
        };
        Arc::clone(self.redactor.get_or_init(make))
    }

    /// Returns the cancellation of runs by signals. Must be called inside the tokio runtime of the runs.
    ///
    /// # Errors
    /// Fails when the signal handlers cannot be installed.
    pub fn interrupt(&self) -> AppResult<&Interrupt> {
        if let Some(interrupt) = self.interrupt.get() {
            return Ok(interrupt);
        }
        let interrupt = Interrupt::install().map_err(|error| no_signals(&error))?;
        Ok(self.interrupt.get_or_init(|| interrupt))
    }

    /// Makes SIGQUIT end the process like SIGTERM. Must be called inside the tokio runtime of the runs.
    ///
    /// # Errors
    /// Fails when the signal handlers cannot be installed.
    pub fn end_on_quit(&self) -> AppResult<()> {
        self.interrupt()?.end_on_quit().map_err(|error| no_signals(&error))
    }

    /// Returns `text` without the secrets known so far; before settings are loaded, these are the ones of the environment.
    pub fn redact(&self, text: &str) -> String {
        self.redact_fn()(text)
    }

    /// Returns [`redact`](Self::redact) as a function that can be used in any thread and outlives this value.
    pub fn redact_fn(&self) -> impl Fn(&str) -> String + Send + Sync + 'static {
        let (environment, redactor) = (Arc::clone(&self.environment), Arc::clone(&self.redactor));
        move |text| match redactor.get() {
            Some(redactor) => redactor.text(text).into_owned(),
            None => Redactor::new(secrets::in_environment(&environment)).text(text).into_owned(),
        }
    }

    /// Loads the settings for `flags` and reports ignored settings.
    ///
    /// # Errors
    /// Fails for an invalid configuration.
    pub fn load_and_notify(&self, flags: &Overrides) -> AppResult<LoadedConfig> {
        let loaded = self.load(flags)?;
        for notice in &loaded.notices {
            self.notify(Style::Warning, &self.redact(notice));
        }
        Ok(loaded)
    }

    /// Writes a message to standard error; errors in writing are ignored.
    pub fn notify(&self, style: Style, text: &str) {
        drop(self.terminal.eprintln(style, text));
    }

    /// Reports an error on standard error.
    pub fn report_error(&self, error: &AppError) {
        self.notify(Style::Error, &format!("error: {}", self.redact(&error.to_string())));
    }

    /// Returns the result of a run that did not start because of `error`, without secrets.
    pub fn not_started(&self, error: &AppError) -> RunResult {
        let mut failure = error.failure();
        failure.message = self.redact(&failure.message);
        RunResult { sandbox: error.sandbox().map(str::to_owned), ..RunResult::not_started(failure, None) }
    }

    /// Runs `work` on this thread, to which child processes are bound.
    ///
    /// # Errors
    /// Fails when the operating system cannot provide a runtime, and with the error of `work`.
    pub fn block_on<T>(&self, work: impl Future<Output = AppResult<T>>) -> AppResult<T> {
        let runtime = self.runtime()?;
        let done = runtime.block_on(work);
        runtime.shutdown_background();
        done
    }

    /// Creates a tokio runtime on this thread.
    ///
    /// # Errors
    /// Fails when the operating system cannot provide one.
    pub fn runtime(&self) -> AppResult<Runtime> {
        // Deadlines are checked after each poll of a task: a server that floods the connection keeps one task busy for
        // tens of megabytes, and by default sixty such polls would pass.
        tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build().map_err(
            |error| AppError::new(FailureKind::Internal, format!("cannot start the runtime: {error}")),
        )
    }
}

fn no_signals(error: &io::Error) -> AppError {
    AppError::new(FailureKind::Internal, format!("cannot listen for signals: {error}"))
}
