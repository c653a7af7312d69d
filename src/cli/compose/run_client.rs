//! A program that drives runs instead of a user at the terminal: it receives the events, answers questions and interrupts.

use crate::config::settings::Settings;
use crate::core::event::Record;
use crate::core::event_sink::EventSink;
use crate::core::price::Usd;
use crate::engine::approver::{Approver, ApproverAnswer, Question};
use crate::engine::policy::Mode;
use futures_util::future::LocalBoxFuture;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// The client of a run.
#[derive(Clone)]
pub struct RunClient {
    /// Receives each event.
    pub listener: Rc<dyn Fn(&Record)>,
    /// Receives the questions of the run; they get no answer if its receiver is dropped.
    pub questions: mpsc::UnboundedSender<ClientQuestion>,
    /// Receives the files that a call is about to change; absent if the client is no editor.
    pub unsaved: Option<mpsc::UnboundedSender<UnsavedQuestion>>,
    /// Interrupts the run.
    pub interrupt: CancellationToken,
    /// Whether the listener receives the pieces of streamed answers.
    pub takes_deltas: bool,
}

impl std::fmt::Debug for RunClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunClient").finish_non_exhaustive()
    }
}

/// A question to the client.
#[derive(Debug)]
pub struct ClientQuestion {
    /// The question.
    pub question: Question,
    /// Takes the answer; dropped without one, the call is refused.
    pub reply: oneshot::Sender<ApproverAnswer>,
}

/// A question whether a file has unsaved changes in the client.
#[derive(Debug)]
pub struct UnsavedQuestion {
    /// Path of the file from the workspace root.
    pub path: String,
    /// Takes the answer.
    pub reply: oneshot::Sender<bool>,
}

/// Upper bounds of a run, besides those of the settings: they only lower them.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunBounds {
    /// Maximum cost.
    pub budget: Option<Usd>,
    /// Maximum number of steps.
    pub max_steps: Option<u32>,
    /// Maximum time.
    pub timeout: Option<Duration>,
    /// The most permissive mode.
    pub mode: Option<Mode>,
    /// Whether the run may change no file of the workspace.
    pub read_only: bool,
    /// Whether commands may reach no host.
    pub no_network: bool,
    /// Whether `web_search` is off.
    pub no_web_search: bool,
}

impl RunBounds {
    /// Lowers the limits in `settings` to these bounds.
    pub fn apply(&self, settings: &mut Settings) {
        if let Some(budget) = self.budget.map(f64::from) {
            let own = &mut settings.costs.budget_usd;
            *own = Some(own.map_or(budget, |own| own.min(budget)));
        }
        if let Some(steps) = self.max_steps {
            settings.agent.max_steps = settings.agent.max_steps.min(steps);
        }
        if let Some(timeout) = self.timeout {
            settings.timeout = Some(settings.timeout.map_or(timeout, |own| own.min(timeout)));
        }
        if let Some(mode) = self.mode {
            settings.agent.mode = settings.agent.mode.min(mode);
            settings.policy.mode = settings.policy.mode.min(mode);
        }
        if self.read_only {
            settings.read_only = true;
            settings.sandbox.writable.clear();
        }
        if self.no_network {
            settings.sandbox.network = false;
            settings.sandbox.allowed_hosts.clear();
        }
        if self.no_web_search {
            settings.web.search.provider = None;
        }
    }
}

/// Asks the client.
pub struct ClientApprover {
    questions: mpsc::UnboundedSender<ClientQuestion>,
    unsaved: Option<mpsc::UnboundedSender<UnsavedQuestion>>,
}

impl ClientApprover {
    /// Creates the approver that asks `client`.
    pub fn new(client: &RunClient) -> Self {
        Self { questions: client.questions.clone(), unsaved: client.unsaved.clone() }
    }
}

impl Approver for ClientApprover {
    fn ask<'a>(&'a self, question: &'a Question) -> LocalBoxFuture<'a, ApproverAnswer> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let question = ClientQuestion { question: question.clone(), reply };
            match self.questions.send(question) {
                Ok(()) => answer.await.unwrap_or(ApproverAnswer::NoApprover),
                Err(_) => ApproverAnswer::NoApprover,
            }
        })
    }

    fn unsaved_file<'a>(&'a self, paths: &'a [&'a str]) -> LocalBoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let editor = self.unsaved.as_ref()?;
            for path in paths {
                let (reply, answer) = oneshot::channel();
                // A client that has left interrupts the run, and edits no file any more.
                let _sent = editor.send(UnsavedQuestion { path: (*path).to_owned(), reply });
                if answer.await.unwrap_or(false) {
                    return Some((*path).to_owned());
                }
            }
            None
        })
    }
}

/// Passes events on to the client.
pub struct ClientSink(pub Rc<dyn Fn(&Record)>);

impl EventSink for ClientSink {
    fn emit(&mut self, record: &Record) -> std::io::Result<()> {
        (self.0)(record);
        Ok(())
    }
}
