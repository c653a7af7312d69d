//! Steps before the work on a task: showing the changes of the repository (`--context-git-diff`), and planning (`--mixed`).

use agent_core::event::{Event, MessageOrigin, NoticeLevel};
use agent_core::stop_reason::{Status, StopReason};
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_session::Agent;
use agent_session::session::RunEnd;
use agent_session::subagent::{SubagentContext, SubagentHost, SubagentRequest};
use agent_text::delimiter::Delimiter;
use agent_workspace::git::changes_since;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;

/// The planning agent.
const PLANNER: &str = "plan";

/// The call id in the events of the planning agent.
const PLAN_CALL: &str = "plan";

/// The steps before the work on a task.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Preparation {
    /// Whether the agent `plan` makes a plan first.
    pub plan: bool,
    /// The commit or branch with which the working tree is compared.
    pub git_diff: Option<String>,
    /// Data that belong to the task, such as the diff of `agent review`.
    pub data: Vec<PromptData>,
    /// Commands that the user ran in `agent chat` before the prompt, and their results.
    pub user_commands: Vec<(String, String)>,
    /// Whether the user requested a compaction of the conversation before the prompt (`/compact`).
    pub compact: bool,
}

/// Data that the model receives after the prompt, between untrusted-data delimiters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PromptData {
    /// What it is.
    pub heading: String,
    /// The data.
    pub text: String,
    /// The origin of its message.
    pub origin: MessageOrigin,
}

impl PromptData {
    /// Creates data from outside the conversation.
    pub fn background(heading: String, text: String) -> Self {
        Self { heading, text, origin: MessageOrigin::Background }
    }
}

impl Preparation {
    /// Runs the steps and sends their results to the model of `agent`; `host` runs the planning agent.
    ///
    /// # Errors
    /// Fails when the journal cannot be written.
    pub async fn run(&self, agent: &Agent, host: &OnceCell<SubagentHost>) -> Result<(), EmitError> {
        if self.compact {
            let tokens = agent.session.borrow().prompt_tokens();
            agent.start_compaction(tokens, tokens, true).await?;
        }
        for (command, output) in &self.user_commands {
            let delimiter = Delimiter::for_session(agent.session.borrow().id());
            let text = messages::user_command(command, &delimiter.wrap(output));
            agent.emitter.emit(Event::user_message(text, MessageOrigin::UserCommand))?;
        }
        agent.engine.load_skills_for_prompt(&agent.task)?;
        for PromptData { heading, text, origin } in &self.data {
            let delimiter = Delimiter::for_session(agent.session.borrow().id());
            let text = format!("## {heading}\n{}", delimiter.wrap(text));
            agent.emitter.emit(Event::user_message(text, *origin))?;
        }
        if let Some(reference) = &self.git_diff {
            show_changes(agent, reference).await?;
        }
        match host.get().filter(|_| self.plan) {
            Some(host) => plan(agent, host).await,
            None => Ok(()),
        }
    }
}

/// Sends the model the differences from the commit `reference`, between untrusted-data delimiters.
async fn show_changes(agent: &Agent, reference: &str) -> Result<(), EmitError> {
    let engine = &agent.engine;
    let hidden = |path: &str| engine.policy.is_sensitive(path);
    match changes_since(&engine.launcher, engine.workspace.root(), reference, hidden).await {
        Ok(Some(changes)) => {
            let delimiter = Delimiter::for_session(agent.session.borrow().id());
            let text = messages::git_diff(reference, &delimiter.wrap(&changes));
            agent.emitter.emit(Event::user_message(text, MessageOrigin::GitDiff))?;
        }
        Ok(None) => notify(agent, NoticeLevel::Info, messages::no_git_diff(reference))?,
        Err(why) => notify(agent, NoticeLevel::Warn, messages::git_diff_unknown(reference, &why))?,
    }
    Ok(())
}

/// Runs the planning agent and sends its plan to the model. Without a plan the work starts all the same; if the cause lasts,
/// it ends the work too.
async fn plan(agent: &Agent, host: &SubagentHost) -> Result<(), EmitError> {
    let ask = SubagentRequest {
        agent: PLANNER,
        task: &agent.task,
        memory: SubagentContext::Clean,
        call_id: PLAN_CALL,
        read_only: false,
        model: None,
        stream: false,
    };
    let cancel = agent.interrupt.child_token();
    match Box::pin(host.ask(ask, &cancel)).await {
        Ok(RunEnd { reason: StopReason::UserInterrupt, .. }) => Ok(()),
        Ok(RunEnd { status: Status::Failed, error, reason, .. }) => {
            let problem = error.map_or_else(|| reason.name().to_owned(), |error| error.message);
            notify(agent, NoticeLevel::Warn, messages::no_plan(&problem))
        }
        Ok(RunEnd { output, status, reason, .. }) => {
            let unfinished = (status == Status::Partial).then_some(reason);
            let delimiter = Delimiter::for_session(agent.session.borrow().id());
            let text = messages::plan(&delimiter.wrap(output.text().trim()), unfinished);
            agent.emitter.emit(Event::user_message(text, MessageOrigin::Plan)).map(drop)
        }
        Err(why) => notify(agent, NoticeLevel::Warn, messages::no_plan(&why)),
    }
}

fn notify(agent: &Agent, level: NoticeLevel, text: String) -> Result<(), EmitError> {
    agent.emitter.emit(Event::Notice { level, text }).map(drop)
}
