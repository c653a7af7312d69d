//! A run of a client: its events and result as notifications, its questions, and what interrupts it.

use super::protocol::{ApprovalQuestion, Approve, Decision, Notification};
use crate::json_rpc::message::invalid_params;
use crate::json_rpc::outbox::Outbox;
use agent_client_protocol_schema::v1::Error;
use agent_core::event::Record;
use agent_core::run_result::RunResult;
use agent_engine::approver::{ApproverAnswer, Question};
use agent_report::json_stream::SlowReader;
use agent_run::app::App;
use agent_run::client::{ClientQuestion, RunClient};
use agent_run::input_images::InputImages;
use agent_run::perform::run_for_client;
use agent_run::request::RunRequest;
use agent_terminal::sanitize;
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// A run that is working.
pub struct WorkingRun {
    session_id: String,
    outbox: Rc<Outbox>,
    interrupt: CancellationToken,
    /// The questions that wait for an answer, by their ids.
    questions: RefCell<HashMap<String, oneshot::Sender<ApproverAnswer>>>,
}

impl WorkingRun {
    /// Creates the run of a session, which `interrupt` ends.
    pub fn new(session_id: String, outbox: Rc<Outbox>, interrupt: CancellationToken) -> Self {
        Self { session_id, outbox, interrupt, questions: RefCell::default() }
    }

    /// Interrupts the run.
    pub fn interrupt(&self) {
        self.interrupt.cancel();
    }

    /// Performs the task and returns its result. The client receives the events and the questions.
    pub async fn perform(self: &Rc<Self>, app: &App, request: RunRequest) -> RunResult {
        let (questions, mut asked) = mpsc::unbounded_channel();
        let (session_id, client) = (Some(self.session_id.clone()), Some(self.client(questions)));
        let request = RunRequest { session_id, client, ..request };
        let approvals = async {
            while let Some(question) = asked.recv().await {
                self.ask(app.source.short_id(), question);
            }
            std::future::pending::<Infallible>().await
        };
        let done = tokio::select! {
            done = run_for_client(app, &request) => done,
            never = approvals => match never {},
        };
        done.map_or_else(|error| app.not_started(&error), |finished| finished.outcome.result)
    }

    /// Sends the result of the run.
    pub fn finish(&self, result: &RunResult) {
        self.outbox.notify(&Notification::Finished { session_id: &self.session_id, result });
    }

    fn client(self: &Rc<Self>, questions: mpsc::UnboundedSender<ClientQuestion>) -> RunClient {
        let (this, reader) = (Rc::clone(self), RefCell::new(SlowReader::default()));
        RunClient {
            listener: Rc::new(move |record: &Record| {
                for event in reader.borrow_mut().lines(record, this.outbox.output.queued()) {
                    this.outbox.notify(&Notification::Event { session_id: &this.session_id, event });
                }
            }),
            questions,
            unsaved: None,
            interrupt: self.interrupt.clone(),
            takes_deltas: true,
            images: InputImages::default(),
            hooks: None,
            servers: Vec::new(),
        }
    }

    fn ask(&self, id: String, ClientQuestion { question, reply }: ClientQuestion) {
        let mut questions = self.questions.borrow_mut();
        questions.retain(|_, reply| !reply.is_closed());
        questions.insert(id.clone(), reply);
        let question = shown(id, &question);
        self.outbox.notify(&Notification::Approval { session_id: &self.session_id, question });
    }

    /// Answers a question.
    ///
    /// # Errors
    /// When no such question waits for an answer.
    pub fn approve(&self, Approve { question_id, decision, reason, .. }: Approve) -> Result<(), Error> {
        let answer = match decision {
            Decision::Allow => ApproverAnswer::Yes,
            Decision::AllowAlways => ApproverAnswer::Always,
            Decision::Deny => ApproverAnswer::No(reason.filter(|reason| !reason.trim().is_empty())),
            Decision::Stop => ApproverAnswer::Abort,
        };
        let reply = self.questions.borrow_mut().remove(&question_id);
        let is_answered = reply.is_some_and(|reply| reply.send(answer).is_ok());
        if is_answered { Ok(()) } else { Err(invalid_params("no such question waits for an answer")) }
    }
}

fn shown(id: String, question: &Question) -> ApprovalQuestion {
    let Question { call, tool, summary, reason, notes, preview, always_scope, .. } = question;
    let text = |text: &String| sanitize(text).into_owned();
    ApprovalQuestion {
        id,
        call_id: call.id.clone(),
        subagent: call.subagent.clone(),
        tool: text(tool),
        summary: text(summary),
        reason: text(reason),
        notes: notes.iter().map(text).collect(),
        preview: preview.as_ref().map(text),
        always_scope: text(always_scope),
    }
}
