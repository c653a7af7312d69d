//! What the calls of a session are done again with (`agent replay --live-tools`): a copy of the workspace as it was, and an engine
//! whose commands can change nothing else.

use crate::agent::replay::{Calls, Files, LastEnd, Live, Places};
use crate::cli::app::App;
use crate::cli::compose::{self, Bench, Manner};
use crate::cli::earlier::store;
use crate::cli::error::{CliError, CliResult};
use crate::cli::kept;
use crate::config::environment::Directories;
use crate::config::settings::Settings;
use crate::emit::Emitter;
use crate::engine::Engine;
use crate::event::{Event, EventSink, Record};
use crate::failure::ErrorKind;
use crate::language::Language;
use crate::messages;
use crate::process::environment::child_environment;
use crate::process::launch::Launcher;
use crate::process::scratch::{Scratch, make_private};
use crate::terminal::{Style, Terminal};
use crate::tools::outputs::Outputs;
use crate::workspace::Workspace;
use crate::workspace::duplicate::{Copied, duplicate};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Says on standard error which call is being made: it may take a while.
struct Saying(Arc<Terminal>);

impl EventSink for Saying {
    fn emit(&mut self, record: &Record) -> io::Result<()> {
        match &record.event {
            Event::ToolStart { call, summary } => {
                self.0.say(Style::Plain, &messages::replay_call(&call.name, summary))
            }
            Event::Notice { text, .. } => self.0.say(Style::Caution, text),
            _ => Ok(()),
        }
    }
}

/// The copy, and what works in it.
pub struct Stage {
    /// What the calls are done again with.
    pub live: Live,
    /// Where the copy is; gone with this, after everything that works in it.
    _scratch: Scratch,
}

impl Stage {
    /// The one for session `id`, which holds `records`; tells what is in the copy and what is not.
    ///
    /// # Errors
    /// When the workspace cannot be copied, or the configuration does not let tools run.
    pub fn set(app: &App, settings: &Settings, id: &str, records: &[Record]) -> CliResult<Self> {
        let scratch = scratch(settings)?;
        let root = scratch.path().canonicalize().map_err(|error| no_copy(settings, &error))?;
        let (copy, copied) = copied(app, settings, &root)?;
        let open = |root: &Path| Workspace::open(root).map_err(|error| no_copy(settings, &error));
        let files = Files::new(open(&copy)?, open(&settings.workspace)?, kept::contents(app, settings));
        files.rewind(records);
        tell(app, settings, &copied, &files.lost(), brought_from(records));
        let places = places(settings, &copy, records);
        let outputs =
            Outputs { dir: store(settings).outputs_dir(id)?, above: None, redactor: app.redactor(settings) };
        let mut own = in_copy(app, settings, &root, copy);
        own.language = language(records);
        own.policy.language = own.language;
        let launcher = compose::launcher(app, &own)?;
        for text in compose::about_sandbox(&own, &launcher) {
            app.tell(Style::Caution, &text);
        }
        let interrupt = compose::listen(app, &launcher, settings.language)?.token().clone();
        let (engine, ends) = engine(app, own, launcher)?;
        let live = Live { engine, ends, files, places, outputs, interrupt, calls: Calls::default() };
        Ok(Self { live, _scratch: scratch })
    }
}

/// The engine that works in the copy, and what it tells. It can ask no server, and where commands have no view of their own it can
/// run neither them nor hooks.
fn engine(app: &App, mut own: Settings, launcher: Rc<Launcher>) -> CliResult<(Engine, LastEnd)> {
    own.web.enabled = false;
    if !launcher.tier().has_own_view() {
        own.commands.enabled = false;
        own.hooks.clear();
    }
    let (ends, saying) = (LastEnd::default(), Saying(Arc::clone(&app.terminal)));
    let told: Vec<Box<dyn EventSink>> = vec![Box::new(ends.clone()), Box::new(saying)];
    let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), 0, told);
    let emitter = Rc::new(emitter.redacting(app.redactor(&own)));
    let (outputs, toolbox) = (own.state.join("outputs"), compose::toolbox(&own));
    let bench = Bench { launcher, emitter, outputs, kept: None, toolbox };
    Ok((compose::engine(app, &own, bench, Manner::of_one_call(None))?, ends))
}

/// A copy of the workspace below `root`, under its own name, which programs tell.
fn copied(app: &App, settings: &Settings, root: &Path) -> CliResult<(PathBuf, Copied)> {
    let name = settings.workspace.file_name().unwrap_or(OsStr::new("workspace"));
    let copy = root.join("copy").join(name);
    make_private(&copy).map_err(|error| no_copy(settings, &error))?;
    let unseen = compose::unseen(app, settings);
    let copied = duplicate(&settings.workspace, &copy, &app.redactor(settings), &unseen);
    Ok((copy, copied.map_err(|error| no_copy(settings, &error))?))
}

/// The language of the runs that are gone through again: that of the last one.
fn language(records: &[Record]) -> Language {
    let spoken = records.iter().rev().find_map(|record| match &record.event {
        Event::RunStart { bounds, .. } => bounds.as_ref().map(|bounds| bounds.limits.language),
        _ => None,
    });
    spoken.unwrap_or_default()
}

/// A directory for the copy: where everything lies that can be made again, and never in the workspace.
fn scratch(settings: &Settings) -> CliResult<Scratch> {
    let cache = &settings.directories.cache;
    make_private(cache).map_err(|error| no_copy(settings, &error))?;
    let real = cache.canonicalize().map_err(|error| no_copy(settings, &error))?;
    if real.starts_with(&settings.workspace) {
        let message =
            messages::replay_inside(&settings.workspace.display().to_string(), &real.display().to_string());
        return Err(CliError::new(ErrorKind::Config, message));
    }
    Scratch::new(&real.join("replay")).map_err(|error| no_copy(settings, &error))
}

fn no_copy(settings: &Settings, why: &impl ToString) -> CliError {
    let workspace = settings.workspace.display().to_string();
    CliError::new(ErrorKind::Session, messages::replay_no_copy(&workspace, &why.to_string()))
}

/// `settings` for tools that work in `copy`: everything that commands can change lies below `root`. What they do not see of the
/// user's own directories stays hidden.
fn in_copy(app: &App, settings: &Settings, root: &Path, copy: PathBuf) -> Settings {
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
    own.sandbox.hidden.extend(hidden.iter().map(|place| place.to_string_lossy().into_owned()));
    // Programs of the workspace itself are none of the copy's either.
    let variables =
        child_environment(app.environment.variables(), &BTreeMap::new(), &settings.workspace, &[]);
    if let Some(path) = variables.get("PATH") {
        own.commands.env.entry("PATH".to_owned()).or_insert_with(|| path.clone());
    }
    own.workspace = copy;
    own
}

/// The names of the workspace, by what the session says of itself.
fn places(settings: &Settings, copy: &Path, records: &[Record]) -> Places {
    let began = records.iter().find_map(|record| match &record.event {
        Event::SessionStart { workspace, .. } => Some(workspace.as_str()),
        _ => None,
    });
    let present = settings.workspace.to_string_lossy().into_owned();
    let recorded = brought_from(records).or(began).unwrap_or(&present).to_owned();
    Places { recorded, copy: copy.to_string_lossy().into_owned(), present }
}

fn brought_from(records: &[Record]) -> Option<&str> {
    records.iter().find_map(|record| match &record.event {
        Event::SessionStart { brought_from, .. } => brought_from.as_deref(),
        _ => None,
    })
}

/// Tells what the tools work on, before they do.
fn tell(app: &App, settings: &Settings, copied: &Copied, lost: &[String], brought_from: Option<&str>) {
    let redactor = app.redactor(settings);
    let say = |style, text: &str| app.tell(style, &redactor.text(text));
    let workspace = settings.workspace.display().to_string();
    say(Style::Plain, &messages::replay_copy(&workspace, copied.files));
    if let Some(from) = brought_from {
        say(Style::Caution, &messages::replay_brought(from));
    }
    if !copied.caches.is_empty() {
        say(Style::Caution, &messages::replay_caches(&copied.caches));
    }
    if !copied.left_out.is_empty() {
        say(Style::Caution, &messages::replay_left_out(&copied.left_out));
    }
    if !lost.is_empty() {
        say(Style::Caution, &messages::replay_lost(lost));
    }
}
