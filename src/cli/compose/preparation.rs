//! What a run is given besides its task before it begins to work: what has changed in the repository (`--context-git-diff`), and
//! what another agent plans (`--mixed`).

use crate::agent::Agent;
use crate::agent::session::RunOutcome;
use crate::agent::subagent::{SubagentContext, SubagentHost, SubagentRequest};
use crate::core::event::{Event, MessageOrigin, NoticeLevel};
use crate::core::stop_reason::{Status, StopReason};
use crate::engine::git::changes_since;
use crate::messages;
use crate::runtime::emitter::EmitError;
use crate::text::delimiter::Delimiter;
use std::cell::OnceCell;

/// The agent that plans.
const PLANNER: &str = "plan";

/// What the events of the planning agent name as the call that asked it.
const PLAN_CALL: &str = "plan";

/// What is wanted before the work.
#[derive(Debug, Clone, Default)]
pub struct Preparation {
    /// Whether `plan` makes a plan first.
    pub plan: bool,
    /// What the working tree is compared with.
    pub git_diff: Option<String>,
}

impl Preparation {
    /// Gives it to the model of `agent`; `host` asks the agent that plans.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub async fn run(&self, agent: &Agent, host: &OnceCell<SubagentHost>) -> Result<(), EmitError> {
        if let Some(reference) = &self.git_diff {
            show_changes(agent, reference).await?;
        }
        match host.get().filter(|_| self.plan) {
            Some(host) => plan(agent, host).await,
            None => Ok(()),
        }
    }
}

/// Shows what differs from the commit `reference`; what a repository holds is data, between marks that it cannot write.
async fn show_changes(agent: &Agent, reference: &str) -> Result<(), EmitError> {
    let engine = &agent.engine;
    let hidden = |path: &str| engine.policy.is_sensitive(path);
    match changes_since(&engine.launcher, engine.workspace.root(), reference, hidden).await {
        Ok(Some(changes)) => {
            let mark = Delimiter::for_session(agent.session.borrow().id());
            let text = messages::git_diff(reference, &mark.wrap(&changes));
            agent.emitter.emit(Event::UserMessage { text, origin: MessageOrigin::GitDiff })?;
        }
        Ok(None) => say(agent, NoticeLevel::Info, messages::no_git_diff(reference))?,
        Err(why) => say(agent, NoticeLevel::Warn, messages::git_diff_unknown(reference, &why))?,
    }
    Ok(())
}

/// Lets the planning agent plan, and tells what it says. Without a plan the work begins all the same: what kept the plan from
/// being made ends the work too, if it lasts.
async fn plan(agent: &Agent, host: &SubagentHost) -> Result<(), EmitError> {
    let ask = SubagentRequest {
        agent: PLANNER,
        task: &agent.task,
        memory: SubagentContext::Clean,
        call_id: PLAN_CALL,
    };
    let cancel = agent.interrupt.child_token();
    match Box::pin(host.ask(ask, &cancel)).await {
        Ok(RunOutcome { reason: StopReason::UserInterrupt, .. }) => Ok(()),
        Ok(RunOutcome { status: Status::Failed, error, reason, .. }) => {
            let why = error.map_or_else(|| reason.name().to_owned(), |error| error.message);
            say(agent, NoticeLevel::Warn, messages::no_plan(&why))
        }
        Ok(RunOutcome { output, status, reason, .. }) => {
            let unfinished = (status == Status::Partial).then_some(reason);
            let mark = Delimiter::for_session(agent.session.borrow().id());
            let text = messages::plan(&mark.wrap(output.text().trim()), unfinished);
            agent.emitter.emit(Event::UserMessage { text, origin: MessageOrigin::Plan }).map(drop)
        }
        Err(why) => say(agent, NoticeLevel::Warn, messages::no_plan(&why)),
    }
}

fn say(agent: &Agent, level: NoticeLevel, text: String) -> Result<(), EmitError> {
    agent.emitter.emit(Event::Notice { level, text }).map(drop)
}
