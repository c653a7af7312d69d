//! The session of a run: restored or created, and connected to the sinks of its events.

use crate::app::App;
use crate::error::CliResult;
use crate::interrupted_calls::InterruptedCalls;
use crate::notices;
use crate::request::RunRequest;
use crate::run_setup::RunSetup;
use crate::session::{LockedSession, session_store};
use crate::undo_store::UndoStore;
use agent_core::event_sink::EventSink;
use agent_core::image::Image;
use agent_core::limits::{Limits, RunLimits};
use agent_journal::images::ImageDir;
use agent_messages as messages;
use agent_redactor::Redactor;
use agent_runtime::emitter::Emitter;
use agent_session::SessionSink;
use agent_session::output_schema::OutputSchema;
use agent_session::session::Session;
use agent_session::session_state::{SessionInfo, SessionState};
use agent_session::state_saver::StateSaver;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The session of the run, opened and connected to the sinks.
pub struct OpenedSession {
    /// Its id.
    pub id: String,
    /// Its workspace and its last run.
    pub about: SessionInfo,
    /// Why the saved state of the session is unusable.
    pub state_problem: Option<String>,
    /// Saves its state.
    pub state_saver: StateSaver,
    /// The limits of the run.
    pub bounds: RunLimits,
    /// The state restored from the journal, except the conversation, which is in `session`.
    pub state: SessionState,
    /// The conversation.
    pub session: Rc<RefCell<Session>>,
    /// Emits the events.
    pub emitter: Rc<Emitter>,
    /// Storage for undo.
    pub undo_store: UndoStore,
    /// The calls that were running when the previous run was killed.
    pub interrupted_calls: InterruptedCalls,
    /// The directory of stored outputs.
    pub outputs: PathBuf,
    /// The directory of its images.
    pub image_dir: ImageDir,
    /// The images of the prompt.
    pub images: Vec<Image>,
}

impl OpenedSession {
    /// Restores the resumed session or creates a new one, and adds the notices on it to those of `setup`.
    ///
    /// # Errors
    /// Fails when the session cannot be created or written.
    pub fn open(
        app: &App,
        request: &RunRequest,
        setup: &mut RunSetup,
        sinks: Vec<Box<dyn EventSink>>,
    ) -> CliResult<Self> {
        let settings = &setup.settings;
        let resumed_session = setup.resumed_session.take();
        let LockedSession { id, journal, opened, about } = resumed_session.map_or_else(
            || LockedSession::create(app, &session_store(settings), request.session_id.clone()),
            Ok,
        )?;
        let state_problem = opened.problem.as_deref().map(messages::state_unusable);
        let state_saver = StateSaver::new(session_store(settings).journal_path(&id)?, &opened);
        let bounds = bounds(setup.started_at, &setup.limits, setup.schema.as_deref());
        let tools = setup.toolbox.names();
        let notices = notices::startup_notices(settings, &setup.launcher, &setup.limits, setup.window, tools);
        setup.notices.extend(notices);
        let mut state = opened.into_state(setup.limits.clone());
        setup.notices.extend(notices::journal_problems(&state));
        let session = std::mem::take(&mut state.session).with_output_schema(setup.schema.clone());
        let session = Rc::new(RefCell::new(session));
        let first: [Box<dyn EventSink>; 2] = [Box::new(journal), Box::new(SessionSink(Rc::clone(&session)))];
        let sinks = first.into_iter().chain(sinks).collect();
        let emitter = emitter(app, Arc::clone(&setup.redactor), sinks, about.next_seq);
        let undo_store = UndoStore::new(app, settings, &id, &state.history)?;
        let unfinished = std::mem::take(&mut state.unfinished);
        let interrupted_calls = InterruptedCalls::new(unfinished, undo_store.baseline.clone());
        let outputs = session_store(settings).outputs_dir(&id)?;
        let (image_dir, images) = setup.images.store_in(session_store(settings).images_dir(&id)?)?;
        Ok(Self {
            id,
            about,
            state_problem,
            state_saver,
            bounds,
            state,
            session,
            emitter,
            undo_store,
            interrupted_calls,
            outputs,
            image_dir,
            images,
        })
    }
}

/// Creates the emitter of events to `sinks`, the journal first, with record numbers from `next` on.
fn emitter(app: &App, redactor: Arc<Redactor>, sinks: Vec<Box<dyn EventSink>>, next: u64) -> Rc<Emitter> {
    let emitter = Emitter::new(Rc::clone(&app.source), app.source.short_id(), next, sinks);
    Rc::new(emitter.with_redactor(redactor))
}

/// Returns the limits of the run in the form that is recorded for a replay.
fn bounds(started_at: Duration, limits: &Limits, schema: Option<&OutputSchema>) -> RunLimits {
    let began_us = u64::try_from(started_at.as_micros()).unwrap_or(u64::MAX);
    RunLimits { began_us, limits: limits.clone(), schema: schema.map(|schema| schema.text().to_owned()) }
}
