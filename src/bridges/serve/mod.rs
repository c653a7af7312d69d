//! `agent serve`: other programs drive runs by JSON-RPC 2.0 on standard input and output, with this program's events and results.

mod protocol;
#[cfg(test)]
mod schema;
mod stored_events;
mod working_run;

use crate::json_rpc::message::{OtherFields, failed, invalid_params, invalid_request};
use crate::json_rpc::outbox::Outbox;
use crate::json_rpc::session_page::session_page;
use crate::json_rpc::{self, Protocol, Reply, error_for};
use agent_client_protocol_schema::v1::{Error, RequestId};
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::file_change::RestoreDirection;
use agent_journal::session_store::SessionStore;
use agent_run::app::App;
use agent_run::client::RunBounds;
use agent_run::error::AppResult;
use agent_run::request::{RunRequest, Task};
use agent_run::restore::{RestoreRequest, Restored, restore_files};
use agent_run::session::session_store;
use agent_run::session_list::ListedSession;
use agent_terminal::one_line;
use futures_util::FutureExt;
use protocol::{
    Approve, Begun, Done, List, Request, Send, SessionState, Sessions, Start, State, Subscribe, Subscribed,
    Undo, Undone,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;
use working_run::WorkingRun;

/// Runs that work at the same time.
const MAX_RUNS: usize = 16;
/// Subscriptions whose stored events are being sent.
const MAX_SUBSCRIPTIONS: usize = 16;
/// Characters of a task in the list of sessions.
const TASK_CHARS: usize = 1_000;

/// Serves until the input ends or a signal arrives; then the runs are interrupted. Each run is `request` with a task.
///
/// # Errors
/// Fails for an invalid configuration, and when the signal handlers cannot be installed.
pub fn serve(app: &App, request: RunRequest) -> AppResult<()> {
    let settings = app.load_and_notify(&request.effective_overrides())?.settings;
    // A client selects agents and sessions, but no mode that the server does not have without it.
    let bounds = RunBounds { mode: Some(settings.policy.mode), ..request.bounds };
    let request = RunRequest { bounds, has_person: true, ..request };
    json_rpc::serve(app, |outbox, interrupt| Server {
        app,
        request,
        settings,
        outbox,
        interrupt,
        runs: Rc::default(),
        subscriptions: Rc::default(),
    })
}

/// The server.
struct Server<'a> {
    app: &'a App,
    /// The request of each run.
    request: RunRequest,
    settings: Settings,
    outbox: Rc<Outbox>,
    interrupt: CancellationToken,
    /// The runs that are working, by their sessions.
    runs: Rc<RefCell<HashMap<String, Rc<WorkingRun>>>>,
    /// Counts the subscriptions whose stored events are being sent.
    subscriptions: Rc<()>,
}

impl<'a> Protocol<'a> for Server<'a> {
    const OTHER_FIELDS: OtherFields = OtherFields::Refused;

    fn requested(&mut self, id: &RequestId, method: &str, params: Value) -> Result<Reply<'a>, Error> {
        match Request::parse(method, params)? {
            Request::Start(request) => self.start(request),
            Request::Send(request) => self.send(request),
            Request::Interrupt(request) => {
                self.run(&request.session_id)?.interrupt();
                Ok(result(&Done {}))
            }
            Request::Approve(request) => self.approve(request),
            Request::List(request) => self.list(&request),
            Request::Subscribe(request) => self.subscribe(id.clone(), request),
            Request::Undo(request) => self.undo(request),
        }
    }

    /// No notification of a client has an effect.
    fn notified(&mut self, _method: &str, _params: Value) {}
}

impl<'a> Server<'a> {
    fn start(&self, Start { task, agent, model, limits }: Start) -> Result<Reply<'a>, Error> {
        // The errors of a script quote its lines, so a client must not select a file.
        if model.as_ref().is_some_and(|model| model.starts_with("scripted:"))
            && model != self.request.overrides.model
        {
            return Err(invalid_params("only `--model` selects a script"));
        }
        let overrides = Overrides {
            agent: selected("agent", self.request.overrides.agent.as_ref(), agent)?,
            model: selected("model", self.request.overrides.model.as_ref(), model)?,
            ..self.request.overrides.clone()
        };
        let bounds = limits.within(self.request.bounds.clone());
        let request = RunRequest { overrides, bounds, ..self.request.with_task(Task::new(task)) };
        self.begin(self.app.source.session_id(), request)
    }

    fn send(&self, Send { session_id, prompt, limits }: Send) -> Result<Reply<'a>, Error> {
        self.journal(&session_id)?;
        let bounds = limits.within(self.request.bounds.clone());
        let task = Task::resume(&session_id, prompt);
        self.begin(session_id, RunRequest { bounds, ..self.request.with_task(task) })
    }

    fn begin(&self, session_id: String, request: RunRequest) -> Result<Reply<'a>, Error> {
        self.check_idle(&session_id)?;
        if self.runs.borrow().len() >= MAX_RUNS {
            return Err(invalid_request(&format!("at most {MAX_RUNS} runs work at the same time")));
        }
        let (outbox, interrupt) = (Rc::clone(&self.outbox), self.interrupt.child_token());
        let run = Rc::new(WorkingRun::new(session_id.clone(), outbox, interrupt));
        let (app, runs) = (self.app, Rc::clone(&self.runs));
        runs.borrow_mut().insert(session_id.clone(), Rc::clone(&run));
        let begun = json!(Begun { session_id: session_id.clone() });
        let work = async move {
            let result = run.perform(app, request).await;
            runs.borrow_mut().remove(&session_id);
            run.finish(&result);
        };
        Ok(Reply::Begun(begun, work.boxed_local()))
    }

    fn approve(&self, request: Approve) -> Result<Reply<'a>, Error> {
        self.run(&request.session_id)?.approve(request)?;
        Ok(result(&Done {}))
    }

    fn list(&self, List { cursor }: &List) -> Result<Reply<'a>, Error> {
        let (store, redactor) = (self.store(), self.app.redactor(&self.settings));
        let (sessions, next_cursor) = session_page(&store, cursor.as_deref(), |id| {
            let mut session = ListedSession::read(&store, &redactor, id).ok()?;
            session.task = one_line(&session.task, TASK_CHARS);
            let state = match session.status {
                _ if self.runs.borrow().contains_key(&session.id) => State::Working,
                Some(_) => State::Ended,
                None => State::Unfinished,
            };
            Some(SessionState { session, state })
        })?;
        Ok(result(&Sessions { sessions, next_cursor }))
    }

    fn subscribe(
        &self,
        id: RequestId,
        Subscribe { session_id, from_seq }: Subscribe,
    ) -> Result<Reply<'a>, Error> {
        let journal = self.journal(&session_id)?;
        let subscription = Rc::clone(&self.subscriptions);
        if Rc::strong_count(&subscription) > MAX_SUBSCRIPTIONS.saturating_add(1) {
            return Err(invalid_request(&format!(
                "at most {MAX_SUBSCRIPTIONS} subscriptions at the same time"
            )));
        }
        let (outbox, runs) = (Rc::clone(&self.outbox), Rc::clone(&self.runs));
        let redactor = self.app.redactor(&self.settings);
        let work = async move {
            let sent = stored_events::send(&outbox, &redactor, &session_id, journal, from_seq).await;
            let is_working = runs.borrow().contains_key(&session_id);
            drop(subscription);
            let subscribed = sent
                .map(|sent| json!(Subscribed { next_seq: sent.next_seq, damaged: sent.damaged, is_working }));
            outbox.respond(&id, subscribed.map_err(|error| failed(&error)));
        };
        Ok(Reply::Work(work.boxed_local()))
    }

    fn undo(&self, Undo { session_id, to_step, file, force }: Undo) -> Result<Reply<'a>, Error> {
        self.journal(&session_id)?;
        self.check_idle(&session_id)?;
        if self.request.dry_run {
            return Err(invalid_request("this server changes no files (--dry-run)"));
        }
        let Overrides { config, workspace, .. } = self.request.overrides.clone();
        let flags = Overrides { config, workspace, ..Overrides::default() };
        let (session, direction) = (Some(session_id), RestoreDirection::Undo);
        let restored =
            restore_files(self.app, &RestoreRequest { flags, session, file, force, direction, to_step });
        let Restored { changed, warnings, problem } =
            restored.map_err(|error| error_for(self.app, &error))?;
        match problem {
            Some(problem) => Err(failed(&problem).data(json!({ "changed": changed }))),
            None => Ok(result(&Undone { changed, warnings })),
        }
    }

    fn store(&self) -> SessionStore {
        session_store(&self.settings)
    }

    /// Returns the journal of a session on disk.
    fn journal(&self, session_id: &str) -> Result<PathBuf, Error> {
        self.store().journal_path(session_id).map_err(|error| invalid_params(&error))
    }

    fn run(&self, session_id: &str) -> Result<Rc<WorkingRun>, Error> {
        let runs = self.runs.borrow();
        runs.get(session_id).cloned().ok_or_else(|| invalid_request("no run of this session is working"))
    }

    fn check_idle(&self, session_id: &str) -> Result<(), Error> {
        match self.run(session_id) {
            Ok(_) => Err(invalid_request("a run of this session is working")),
            Err(_) => Ok(()),
        }
    }
}

fn result<'a>(result: &impl Serialize) -> Reply<'a> {
    Reply::Result(json!(result))
}

/// Returns the agent or model of a run: what the client has `asked` for, unless the server was started with another one.
fn selected(what: &str, own: Option<&String>, asked: Option<String>) -> Result<Option<String>, Error> {
    match (own, asked) {
        (Some(own), Some(asked)) if *own != asked => {
            Err(invalid_params(&format!("this server was started with the {what} `{own}`")))
        }
        (own, asked) => Ok(asked.or_else(|| own.cloned())),
    }
}
