//! What every command stands on: the terminal, the environment, and settings made from them.

use crate::cli::commands::common_args::CommonArgs;
use crate::cli::compose::secrets;
use crate::cli::error::{CliError, CliResult};
use crate::config::environment::Environment;
use crate::config::flags::Flags;
use crate::config::load::{LoadedConfig, load};
use crate::config::settings::Settings;
use crate::core::failure::FailureKind;
use crate::redactor::Redactor;
use crate::runtime::clock::Clock;
use crate::terminal::{Style, Terminal, TerminalEnvironment};
use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

/// The process as the commands see it.
pub struct App {
    /// Standard streams.
    pub terminal: Arc<Terminal>,
    /// The environment, read once.
    pub environment: Arc<Environment>,
    /// Clock, random numbers, ids.
    pub source: Rc<Clock>,
    /// Made when it is first needed.
    redactor: Arc<OnceLock<Arc<Redactor>>>,
}

impl App {
    /// The app of this process.
    pub fn new(environment: Environment) -> Self {
        let variable = |name: &str| environment.get(name).map(str::to_owned);
        let wishes = TerminalEnvironment {
            no_color: variable("NO_COLOR"),
            term: variable("TERM"),
            clicolor_force: variable("CLICOLOR_FORCE"),
        };
        let (terminal, source) = (Arc::new(Terminal::new(&wishes)), Rc::new(Clock::new()));
        Self { terminal, environment: Arc::new(environment), source, redactor: Arc::default() }
    }

    /// Settings for `flags`.
    ///
    /// # Errors
    /// When the configuration is wrong.
    pub fn load(&self, flags: &Flags) -> CliResult<LoadedConfig> {
        load(flags, &self.environment)
            .map_err(|error| CliError { kind: FailureKind::Config, cause: error.into() })
    }

    /// What keeps secrets out of everything that is told, those among the settings too.
    pub fn redactor(&self, settings: &Settings) -> Arc<Redactor> {
        let make = || Arc::new(Redactor::new(secrets::known(&self.environment, settings)));
        Arc::clone(self.redactor.get_or_init(make))
    }

    /// `text` without secrets, as far as they are known by now: before there are settings, those of the environment.
    pub fn redact(&self, text: &str) -> String {
        self.redact_fn()(text)
    }

    /// [`redact`](Self::redact) for whoever outlives this, in any thread.
    pub fn redact_fn(&self) -> impl Fn(&str) -> String + Send + Sync + 'static {
        let (environment, redactor) = (Arc::clone(&self.environment), Arc::clone(&self.redactor));
        move |text| match redactor.get() {
            Some(redactor) => redactor.text(text).into_owned(),
            None => Redactor::new(secrets::in_environment(&environment)).text(text).into_owned(),
        }
    }

    /// Settings for a command that only has a place; tells what was ignored.
    ///
    /// # Errors
    /// When the configuration is wrong.
    pub fn load_settings(&self, common: &CommonArgs) -> CliResult<LoadedConfig> {
        self.load_and_notify(&common_flags(common))
    }

    /// Settings for `flags`; tells what was ignored.
    ///
    /// # Errors
    /// When the configuration is wrong.
    pub fn load_and_notify(&self, flags: &Flags) -> CliResult<LoadedConfig> {
        let loaded = self.load(flags)?;
        for notice in &loaded.notices {
            self.notify(Style::Warning, &self.redact(notice));
        }
        Ok(loaded)
    }

    /// Says something on standard error; without one there is nobody to tell.
    pub fn notify(&self, style: Style, text: &str) {
        drop(self.terminal.eprintln(style, text));
    }

    /// Says what went wrong.
    pub fn report_error(&self, error: &CliError) {
        self.notify(Style::Error, &format!("error: {}", self.redact(&error.to_string())));
    }

    /// Runs `work` on this thread, the one that children are bound to.
    ///
    /// # Errors
    /// When the operating system refuses what a runtime needs, and what `work` says.
    pub fn block_on<T>(&self, work: impl Future<Output = CliResult<T>>) -> CliResult<T> {
        // Deadlines are looked at after each poll of a task: a server that floods the connection keeps one task busy for
        // tens of megabytes, and by default sixty such polls would pass.
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build().map_err(
                |error| CliError::new(FailureKind::Internal, format!("cannot start the runtime: {error}")),
            )?;
        let done = runtime.block_on(work);
        runtime.shutdown_background();
        done
    }
}

/// The flags of a command that only has a place.
pub fn common_flags(common: &CommonArgs) -> Flags {
    Flags { config: common.config.clone(), workspace: common.workspace.clone(), ..Flags::default() }
}
