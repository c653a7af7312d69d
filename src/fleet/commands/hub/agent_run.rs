//! The run of an activation: the agent within its definition, or another program, and the answers to its requests to the Hub.

use crate::commands::executor::ExecutorRun;
use crate::commands::hub::activation::ActivationRun;
use crate::commands::hub::prompt::{posts_text, thread_text};
use crate::commands::hub::skills;
use crate::commands::hub::workspace::Workspace;
use crate::commands::stored_session::store_session;
use crate::hub::tools::{HubAccess, HubQuestion, HubRequest};
use agent_config::agent_definition::{COMMAND_TIMEOUT, MAX_OUTPUT_TOKENS};
use agent_core::failure::FailureKind;
use agent_core::fleet::TaskSpec;
use agent_core::hub::PostTarget;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::Status;
use agent_engine::approver::NoApprover;
use agent_engine::rules::PolicyRule;
use agent_flows::work::workers::concurrent_request;
use agent_run::error::{AppError, AppResult};
use agent_run::perform::run_for_client;
use agent_run::request::{OwnTools, RunRequest, Task};
use agent_run::run::RunOutcome;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Tokens of an activation.
const MAX_TOKENS: u64 = 100_000;
/// Time limit of the run of an activation.
const TIMEOUT: Duration = Duration::from_mins(5);

impl ActivationRun<'_> {
    /// Runs the agent in an empty directory with the skills for a text and its community, and answers its requests to the Hub. Returns also
    /// whether its output is an answer: it was done, or has summed up at a limit.
    pub(super) async fn run(
        &self,
        prompt: String,
        text: &str,
        community: &str,
        interrupt: &CancellationToken,
    ) -> AppResult<(&RunResult, bool)> {
        let workspace = Workspace::create(self.claim, &self.activation.agent)?;
        let (result, has_summary) = match &self.definition.executor {
            Some(name) => (Box::pin(self.run_executor(name, &workspace, prompt, interrupt)).await?, false),
            None => Box::pin(self.run_in(&workspace.path(), prompt, text, community, interrupt)).await?,
        };
        let result = self.claim.run.end(result);
        if let Some(fault) = self.claim.worker.key_fault(result) {
            return Err(fault);
        }
        Ok((result, has_summary || result.status == Status::Success))
    }

    /// Lets another program do it (`fleet.executors`); its text is the answer.
    async fn run_executor(
        &self,
        name: &str,
        workspace: &Workspace,
        prompt: String,
        interrupt: &CancellationToken,
    ) -> AppResult<RunResult> {
        let (mut request, directory) = (self.claim.worker.request.clone(), workspace.path());
        request.overrides.workspace = Some(directory.clone());
        request.bounds.no_network = !self.definition.has_network;
        let app = self.claim.worker.app.for_worker();
        let settings = app.load(&request.effective_overrides())?.settings;
        let system_prompt = self.definition.prompt.as_deref().unwrap_or_default();
        let spec = TaskSpec {
            executor: Some(name.to_owned()),
            model: request.overrides.model.clone().or_else(|| self.definition.model.clone()),
            timeout: Some(TIMEOUT.as_secs()),
            ..TaskSpec::new(prompt, directory.to_string_lossy(), 1)
        };
        let executor = ExecutorRun::new(&app, &settings, &request, &spec, system_prompt)?;
        let executor =
            executor.ok_or_else(|| AppError::new(FailureKind::Internal, "an executor has no name"))?;
        executor.run(settings, &directory, &workspace.home(), interrupt).await
    }

    async fn run_in(
        &self,
        directory: &Path,
        prompt: String,
        text: &str,
        community: &str,
        interrupt: &CancellationToken,
    ) -> AppResult<(RunResult, bool)> {
        let (questions, mut asked) = mpsc::unbounded_channel();
        let may_read = self.grants.has("hub:read");
        let mut request =
            self.request(directory, HubAccess { questions, may_post: self.may_post(), may_read });
        let app = self.claim.worker.app.for_worker();
        let worker = app.load(&self.claim.worker.request.effective_overrides())?.settings;
        let (timeout, tokens) =
            (worker.commands.default_timeout, worker.llm.max_output_tokens.map(u64::from));
        narrow(&mut request.overrides.definition, timeout, tokens);
        let settings = app.load(&request.effective_overrides())?.settings;
        let withheld = skills::withheld(&app, &settings, &self.definition, &self.grants, text, community);
        if !withheld.is_empty() {
            request.overrides.definition.push(("skills.disabled".to_owned(), withheld.into()));
        }
        let request = concurrent_request(request, interrupt);
        let request = RunRequest { task: Task::new(prompt), ..request };
        let ended = CancellationToken::new();
        self.claim.run.begin();
        let run = async {
            let finished = Box::pin(run_for_client(&app, &request)).await;
            ended.cancel();
            finished
        };
        let serve = async {
            loop {
                tokio::select! {
                    biased;
                    Some(question) = asked.recv() => self.reply(question).await,
                    () = ended.cancelled() => break,
                }
            }
        };
        let (finished, ()) = tokio::join!(run, serve);
        let RunOutcome { result, has_summary, .. } = finished?.outcome;
        self.claim.run.end(result.clone());
        store_session(self.claim.worker, self.claim.task, &settings, &result).await?;
        Ok((result, has_summary))
    }

    /// Answers a request of the model.
    async fn reply(&self, HubQuestion { request, reply }: HubQuestion) {
        let client = &self.hub.client;
        let answer = match request {
            HubRequest::Post(PostTarget::Post { .. }, _) if !self.definition.may_post => {
                Err("this agent may only comment: name a post with reply_to".to_owned())
            }
            HubRequest::Post(target, content) => {
                self.outbox.post(target, &content).await.map_err(|error| error.why().to_owned())
            }
            HubRequest::Search { query, community, limit } => {
                let found = client.search(&query, limit, community.as_deref(), None).await;
                found.map(|posts| posts_text(&posts)).map_err(|error| error.to_string())
            }
            HubRequest::Thread(post) => {
                let thread = client.thread(&post).await;
                thread.map(|thread| thread_text(&thread)).map_err(|error| error.to_string())
            }
        };
        // A run that has ended needs no answer.
        let _sent = reply.send(answer);
    }

    /// Returns the request of the run: the request of the worker, narrowed by the definition.
    fn request(&self, directory: &Path, hub: HubAccess) -> RunRequest {
        let (worker, definition, agent) = (self.claim.worker, &self.definition, &self.activation.agent);
        let mut request = worker.request.clone();
        request.overrides.workspace = Some(directory.to_owned());
        request.overrides.agent =
            definition.prompt.as_ref().map(|_| agent.clone()).or(request.overrides.agent);
        request.overrides.definition.clone_from(&definition.settings);
        // Its prompts are texts of the Hub, not of the user.
        request.overrides.definition.push(("memory.enabled".to_owned(), false.into()));
        request.overrides.model = request.overrides.model.or_else(|| definition.model.clone());
        request.overrides.approvals = Some(NoApprover::Refuse);
        request.overrides.no_commands |= !definition.has_commands;
        let bounds = &mut request.bounds;
        bounds.max_steps = Some(definition.max_steps);
        bounds.tokens = Some(MAX_TOKENS);
        bounds.timeout = Some(TIMEOUT);
        bounds.no_network = !definition.has_network;
        bounds.offline_tools = !definition.has_network;
        bounds.rules.blocked_commands.extend(definition.blocked_commands.iter().cloned());
        bounds.rules.allowances.push(PolicyRule::allow("hub_*"));
        request.grants = Some(self.grants.clone());
        request.tools = OwnTools::new(move || hub.tools());
        request
    }
}

/// Lowers what a definition sets to the limits of the worker: the time of a command, and the tokens of an answer.
fn narrow(definition: &mut [(String, Value)], timeout: u64, tokens: Option<u64>) {
    for (key, value) in definition {
        let most = match key.as_str() {
            MAX_OUTPUT_TOKENS => tokens,
            COMMAND_TIMEOUT => Some(timeout),
            _ => None,
        };
        if let (Some(most), Some(asked)) = (most, value.as_u64()) {
            *value = asked.min(most).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_lowers_the_limits_of_the_worker_and_never_raises_them() {
        let set = |timeout: u64, tokens: u64| {
            [(COMMAND_TIMEOUT.to_owned(), timeout.into()), (MAX_OUTPUT_TOKENS.to_owned(), tokens.into())]
        };
        let mut wide = set(60, 9_000);
        narrow(&mut wide, 20, Some(4_000));
        assert_eq!(wide, set(20, 4_000));
        let mut small = set(5, 100);
        narrow(&mut small, 20, None);
        assert_eq!(small, set(5, 100));
    }
}
