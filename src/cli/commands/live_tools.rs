//! Workspace copy and engine for `agent replay --live-tools`: calls of a session are run again without changing anything else.

use agent_config::environment::Directories;
use agent_config::settings::Settings;
use agent_core::event::{Event, Record};
use agent_core::event_sink::EventSink;
use agent_core::failure::FailureKind;
use agent_core::language::Language;
use agent_engine::Engine;
use agent_engine::skill_set::SkillSet;
use agent_messages as messages;
use agent_process::environment::child_environment;
use agent_process::launch::Launcher;
use agent_process::scratch_dir::ScratchDir;
use agent_run::app::App;
use agent_run::approver::InteractionOptions;
use agent_run::assemble::{self, EngineParts};
use agent_run::error::{AppError, AppResult};
use agent_run::session::session_store;
use agent_run::toolbox::toolbox;
use agent_run::undo_store;
use agent_runtime::emitter::Emitter;
use agent_runtime::private_file::create_private_dir;
use agent_session::replay::{LastToolEnd, LiveTools, ReplayedFiles, RerunCounts, WorkspacePaths};
use agent_terminal::{Style, Terminal};
use agent_tools::outputs::Outputs;
use agent_workspace::Workspace;
use agent_workspace::copy::{CopySummary, copy_workspace};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Reports on standard error which call is running, because it may take a while.
struct CallReporter(Arc<Terminal>);

impl EventSink for CallReporter {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        match &record.event {
            Event::ToolCallStart { call, summary } => {
                self.0.eprintln(Style::Plain, &messages::replay_call(&call.name, summary))
            }
            Event::Notice { text, .. } => self.0.eprintln(Style::Warning, text),
            _ => Ok(()),
        }
    }
}

/// The workspace copy and the engine that works in it.
pub struct WorkspaceCopy {
    /// The tools that run the calls again.
    pub live: LiveTools,
    /// The directory of the copy; removed on drop, after everything that works in it.
    _scratch: ScratchDir,
}

impl WorkspaceCopy {
    /// Creates the copy for session `id` with `records`, and reports what it contains and what is missing.
    ///
    /// # Errors
    /// Fails when the workspace cannot be copied, or the configuration forbids tools.
    pub fn prepare(app: &App, settings: &Settings, id: &str, records: &[Record]) -> AppResult<Self> {
        let scratch = scratch(settings)?;
        let root = scratch.path().canonicalize().map_err(|error| copy_error(settings, &error))?;
        let (copy, copied) = copy_workspace_into(app, settings, &root)?;
        let open = |root: &Path| Workspace::open(root).map_err(|error| copy_error(settings, &error));
        let files = ReplayedFiles::new(
            open(&copy)?,
            open(&settings.workspace)?,
            undo_store::content_store(app, settings),
        );
        files.rewind(records);
        report_copy(app, settings, &copied, &files.lost(), imported_from(records));
        let paths = workspace_paths(settings, &copy, records);
        let outputs = Outputs {
            dir: session_store(settings).outputs_dir(id)?,
            parent: None,
            kept: None,
            redactor: app.redactor(settings),
        };
        let mut own = settings_for_copy(app, settings, &root, copy);
        own.language = language(records);
        own.policy.language = own.language;
        let launcher = assemble::launcher(app, &own)?;
        for text in assemble::sandbox_notices(&own, &launcher) {
            app.notify(Style::Warning, &text);
        }
        let interrupt = assemble::arm_interrupt(app, Some(&launcher), settings.language)?;
        let (engine, ends) = engine(app, own, launcher)?;
        let live =
            LiveTools { engine, ends, files, paths, outputs, interrupt, calls: RerunCounts::default() };
        Ok(Self { live, _scratch: scratch })
    }
}

/// Creates the engine that works in the copy, and the recorder of its results. It has no network tools; where commands have no
/// filesystem view of their own, it runs neither commands nor hooks.
fn engine(app: &App, mut own: Settings, launcher: Rc<Launcher>) -> AppResult<(Engine, LastToolEnd)> {
    own.web.enabled = false;
    own.web.search.provider = None;
    if !launcher.tier().has_own_view() {
        own.commands.enabled = false;
        own.hooks.clear();
    }
    let (ends, reporter) = (LastToolEnd::default(), CallReporter(Arc::clone(&app.terminal)));
    let sinks: Vec<Box<dyn EventSink>> = vec![Box::new(ends.clone()), Box::new(reporter)];
    let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), 0, sinks);
    let emitter = Rc::new(emitter.with_redactor(app.redactor(&own)));
    let (outputs, toolbox) = (own.state.join("outputs"), toolbox(&own));
    let parts = EngineParts {
        launcher,
        emitter,
        outputs,
        images: None,
        undo_store: None,
        toolbox,
        skills: SkillSet::default(),
        kept: None,
    };
    let engine = assemble::engine(app, &own, parts, InteractionOptions::for_single_call(None))?;
    // The instructions that the session got are in its journal.
    Ok((Engine { instructions: Rc::default(), ..engine }, ends))
}

/// Copies the workspace below `root`, under its own name, because programs may report that name.
fn copy_workspace_into(app: &App, settings: &Settings, root: &Path) -> AppResult<(PathBuf, CopySummary)> {
    let name = settings.workspace.file_name().unwrap_or(OsStr::new("workspace"));
    let copy = root.join("copy").join(name);
    create_private_dir(&copy).map_err(|error| copy_error(settings, &error))?;
    let unseen = assemble::hidden_in_workspace(app, settings);
    let copied = copy_workspace(&settings.workspace, &copy, &app.redactor(settings), &unseen);
    Ok((copy, copied.map_err(|error| copy_error(settings, &error))?))
}

/// Returns the language of the last run in the session.
fn language(records: &[Record]) -> Language {
    let spoken = records.iter().rev().find_map(|record| match &record.event {
        Event::RunStart { bounds, .. } => bounds.as_ref().map(|bounds| bounds.limits.language),
        _ => None,
    });
    spoken.unwrap_or_default()
}

/// Creates a directory for the copy in the cache directory, and never in the workspace.
fn scratch(settings: &Settings) -> AppResult<ScratchDir> {
    let cache = &settings.directories.cache;
    create_private_dir(cache).map_err(|error| copy_error(settings, &error))?;
    let real = cache.canonicalize().map_err(|error| copy_error(settings, &error))?;
    if real.starts_with(&settings.workspace) {
        let message = messages::replay_cache_in_workspace(
            &settings.workspace.display().to_string(),
            &real.display().to_string(),
        );
        return Err(AppError::new(FailureKind::Config, message));
    }
    ScratchDir::new(&real.join("replay")).map_err(|error| copy_error(settings, &error))
}

fn copy_error(settings: &Settings, why: &impl ToString) -> AppError {
    let workspace = settings.workspace.display().to_string();
    AppError::new(FailureKind::Session, messages::replay_no_copy(&workspace, &why.to_string()))
}

/// Returns `settings` for tools that work in `copy`: everything that commands can change is below `root`. The user's own
/// directories stay hidden from commands.
fn settings_for_copy(app: &App, settings: &Settings, root: &Path, copy: PathBuf) -> Settings {
    let mut own = settings.clone();
    let moved = |file: &PathBuf| {
        let below = file.strip_prefix(&settings.workspace);
        below.map_or_else(|_| file.clone(), |below| copy.join(below))
    };
    own.trusted_files = settings.trusted_files.iter().map(moved).collect();
    own.policy.root = copy.to_string_lossy().into_owned();
    own.state = root.join("state");
    own.directories = Directories { cache: root.join("cache"), ..settings.directories.clone() };
    own.sandbox.writable.clear();
    let hidden = [own.state.clone(), settings.directories.cache.join("answers")];
    own.sandbox.hidden.extend(hidden.iter().map(|path| path.to_string_lossy().into_owned()));
    // Programs of the workspace itself must not be found through PATH.
    let variables =
        child_environment(app.environment.variables(), &BTreeMap::new(), &settings.workspace, &[]);
    if let Some(path) = variables.get("PATH") {
        own.commands.env.entry("PATH".to_owned()).or_insert_with(|| path.clone());
    }
    own.workspace = copy;
    own
}

/// Returns the paths of the workspace: the recorded one, the current one and the copy.
fn workspace_paths(settings: &Settings, copy: &Path, records: &[Record]) -> WorkspacePaths {
    let began = records.iter().find_map(|record| match &record.event {
        Event::SessionStart { workspace, .. } => Some(workspace.as_str()),
        _ => None,
    });
    let present = settings.workspace.to_string_lossy().into_owned();
    let recorded = imported_from(records).or(began).unwrap_or(&present).to_owned();
    WorkspacePaths { recorded, copy: copy.to_string_lossy().into_owned(), present }
}

fn imported_from(records: &[Record]) -> Option<&str> {
    records.iter().find_map(|record| match &record.event {
        Event::SessionStart { imported_from, .. } => imported_from.as_deref(),
        _ => None,
    })
}

/// Reports the content of the copy before the tools run.
fn report_copy(
    app: &App,
    settings: &Settings,
    copied: &CopySummary,
    lost: &[String],
    imported_from: Option<&str>,
) {
    let redactor = app.redactor(settings);
    let say = |style, text: &str| app.notify(style, &redactor.text(text));
    let workspace = settings.workspace.display().to_string();
    say(Style::Plain, &messages::replay_copy(&workspace, copied.files));
    if let Some(from) = imported_from {
        say(Style::Warning, &messages::replay_imported(from));
    }
    if !copied.caches.is_empty() {
        say(Style::Warning, &messages::replay_caches(&copied.caches));
    }
    if !copied.left_out.is_empty() {
        say(Style::Warning, &messages::replay_left_out(&copied.left_out));
    }
    if !lost.is_empty() {
        say(Style::Warning, &messages::replay_contents_missing(lost));
    }
}
