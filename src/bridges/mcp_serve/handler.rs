//! The requests of an MCP client: lists the tools, and passes calls on to the thread of the runs.

use super::calls::{Call, tools};
use super::questions::{answer, form};
use agent_messages as messages;
use agent_run::client::ClientQuestion;
use agent_runtime::clock::Clock;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitResult,
    Implementation, InputRequest, InputRequiredResult, InputResponses, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Time for the client to call again with an answer, before its run is interrupted.
const ANSWER_TIME: Duration = Duration::from_mins(10);

/// Bytes of the texts of all calls that wait or are performed.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// Key of the question in a result that asks for input.
const QUESTION: &str = "approval";

/// A call for the thread of the runs.
pub struct Job {
    /// The call.
    pub call: Call,
    /// Interrupts it.
    pub cancel: CancellationToken,
    /// Takes lines about its progress.
    pub progress: mpsc::UnboundedSender<String>,
    /// Takes its questions.
    pub questions: mpsc::UnboundedSender<ClientQuestion>,
    /// Takes its outcome.
    pub outcome: oneshot::Sender<Outcome>,
    /// Its share of the memory for texts.
    pub room: OwnedSemaphorePermit,
}

/// The outcome of a call.
pub struct Outcome {
    /// The answer.
    pub text: String,
    /// The document of `--json`.
    pub document: Value,
    /// Whether it is anything but a success.
    pub is_error: bool,
}

/// A call that was passed on. Dropped, it is interrupted.
struct RunningCall {
    progress: mpsc::UnboundedReceiver<String>,
    questions: mpsc::UnboundedReceiver<ClientQuestion>,
    outcome: oneshot::Receiver<Outcome>,
    cancel: CancellationToken,
    _interrupt_if_dropped: DropGuard,
}

/// A call that waits for an answer of its client, which calls again with it.
struct WaitingCall {
    call: RunningCall,
    question: ClientQuestion,
}

/// The server.
pub struct Handler {
    jobs: mpsc::Sender<Job>,
    /// A permit for each byte of the texts.
    room: Arc<Semaphore>,
    /// The agent that the server was started with, which clients cannot change.
    agent: Option<String>,
    waiting: Arc<Mutex<HashMap<String, WaitingCall>>>,
}

impl Handler {
    /// Creates a server that sends its calls to `jobs`.
    pub fn new(jobs: mpsc::Sender<Job>, agent: Option<String>) -> Self {
        Self { jobs, room: Arc::new(Semaphore::new(MAX_TEXT_BYTES)), agent, waiting: Arc::default() }
    }

    fn begin(&self, request: CallToolRequestParams) -> Result<RunningCall, ErrorData> {
        let call = Call::parse(&request.name, request.arguments)?;
        if let (Call::Run(run), Some(agent)) = (&call, &self.agent)
            && run.agent.as_ref().is_some_and(|asked| asked != agent)
        {
            return Err(ErrorData::invalid_params(
                format!("this server runs the agent `{agent}` only"),
                None,
            ));
        }
        let too_many = || ErrorData::invalid_request(messages::TOO_MANY_CALLS, None);
        let bytes = u32::try_from(call.text_bytes()).map_err(|_| too_many())?;
        let room = Arc::clone(&self.room).try_acquire_many_owned(bytes).map_err(|_| too_many())?;
        let (progress, progress_receiver) = mpsc::unbounded_channel();
        let (questions, question_receiver) = mpsc::unbounded_channel();
        let (outcome, outcome_receiver) = oneshot::channel();
        let cancel = CancellationToken::new();
        let job = Job { call, cancel: cancel.clone(), progress, questions, outcome, room };
        self.jobs.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => too_many(),
            TrySendError::Closed(_) => ErrorData::internal_error("the server ends", None),
        })?;
        Ok(RunningCall {
            progress: progress_receiver,
            questions: question_receiver,
            outcome: outcome_receiver,
            _interrupt_if_dropped: cancel.clone().drop_guard(),
            cancel,
        })
    }

    /// Answers the question of a call that waits for it.
    fn resume(&self, state: &str, responses: Option<InputResponses>) -> Result<RunningCall, ErrorData> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(state);
        let WaitingCall { call, question } = waiting
            .ok_or_else(|| ErrorData::invalid_params("no call waits with this request state", None))?;
        let response = responses.unwrap_or_default().remove(QUESTION).unwrap_or_default();
        if let Ok(result) = serde_json::from_value::<ElicitResult>(response) {
            // Fails if the run has ended meanwhile; its outcome is the result then.
            let _sent = question.reply.send(answer(&result));
        }
        Ok(call)
    }

    /// Waits for the outcome of a call; its questions go to the client.
    async fn finish(
        &self,
        mut call: RunningCall,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let token = context.meta.get_progress_token();
        let mut count = 0_u32;
        loop {
            tokio::select! {
                biased;
                outcome = &mut call.outcome => {
                    let ended = |_| ErrorData::internal_error("the server ends", None);
                    return outcome.map(|outcome| outcome.into_result().into()).map_err(ended);
                }
                () = context.ct.cancelled(), if !call.cancel.is_cancelled() => call.cancel.cancel(),
                Some(question) = call.questions.recv() => match question_way(context) {
                    QuestionWay::Request => ask(question, &call.cancel, context).await,
                    QuestionWay::Result => return self.wait(call, question),
                    // Without a reply the call is refused.
                    QuestionWay::None => drop(question),
                },
                Some(text) = call.progress.recv() => if let Some(token) = &token {
                    count = count.saturating_add(1);
                    let progress = ProgressNotificationParam::new(token.clone(), f64::from(count)).with_message(text);
                    // A client that has left ends the call by itself.
                    let _sent = context.peer.notify_progress(progress).await;
                }
            }
        }
    }

    /// Stores the call until its client calls again with the answer.
    fn wait(&self, call: RunningCall, question: ClientQuestion) -> Result<CallToolResponse, ErrorData> {
        let form =
            form(&question.question).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let requests =
            BTreeMap::from([(QUESTION.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
        let state = format!("{:016x}", Clock::new().random());
        let waiting = WaitingCall { call, question };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(state.clone(), waiting);
        let (all, abandoned) = (Arc::clone(&self.waiting), state.clone());
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_TIME).await;
            drop(all.lock().unwrap_or_else(PoisonError::into_inner).remove(&abandoned));
        });
        Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
    }
}

/// How a question reaches the client.
enum QuestionWay {
    /// As a request of the server (until 2025-11-25).
    Request,
    /// As a result that asks for input (from 2026-07-28 on).
    Result,
    /// Not at all: the client takes no questions.
    None,
}

fn question_way(context: &RequestContext<RoleServer>) -> QuestionWay {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    let takes_forms = elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none());
    let is_newest = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::LATEST);
    match (takes_forms, is_newest) {
        (false, _) => QuestionWay::None,
        (true, true) => QuestionWay::Result,
        (true, false) => QuestionWay::Request,
    }
}

/// Asks the client by a request. Without an answer the call is refused.
async fn ask(mut question: ClientQuestion, cancel: &CancellationToken, context: &RequestContext<RoleServer>) {
    let Ok(form) = form(&question.question) else { return };
    let result = tokio::select! {
        // The run no longer waits.
        () = question.reply.closed() => return,
        () = context.ct.cancelled() => return cancel.cancel(),
        result = context.peer.create_elicitation(form) => result,
    };
    if let Ok(result) = result {
        let _sent = question.reply.send(answer(&result));
    }
}

impl Outcome {
    fn into_result(self) -> CallToolResult {
        let content = vec![ContentBlock::text(self.text)];
        let mut result =
            if self.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = Some(self.document);
        result
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("agent", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = match request.request_state.clone() {
            Some(state) => self.resume(&state, request.input_responses)?,
            None => self.begin(request)?,
        };
        self.finish(call, &context).await
    }
}
