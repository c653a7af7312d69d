//! Starts and runs subagents.

use super::event_forwarder::EventForwarder;
use super::shared_budget::SharedBudget;
use crate::Agent;
use crate::agent_loop::run_subagent;
use crate::session::SessionSink;
use crate::session::{RunEnd, Session, SubagentLimits};
use crate::total_budget::TotalShare;
use agent_core::budget_share::BudgetShare;
use agent_core::event::{Event, MessageOrigin};
use agent_core::event_sink::EventSink;
use agent_core::file_change::Change;
use agent_core::limits::{FallbackChain, ModelTerms};
use agent_core::stop_reason::StopReason;
use agent_engine::Engine;
use agent_llm::prompt_prefix::PromptPrefix;
use agent_llm::{LlmClient, ToolDefinition};
use agent_runtime::clock::Clock;
use agent_runtime::emitter::{EmitError, Emitter};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// Number of subagents that run at the same time.
const MAX_AT_ONCE: usize = 4;

/// The conversation that a subagent starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubagentContext {
    /// Only its own instructions and the task.
    Clean,
    /// The whole conversation of the session that starts it.
    Fork,
}

/// A request to run a subagent.
#[derive(Debug, Clone, Copy)]
pub struct SubagentRequest<'a> {
    /// Name of the agent.
    pub agent: &'a str,
    /// The complete task.
    pub task: &'a str,
    /// The conversation it starts with.
    pub memory: SubagentContext,
    /// The id of the call that requests it.
    pub call_id: &'a str,
    /// Whether it gets only tools that read the workspace.
    pub read_only: bool,
    /// Its model; `None` for those of the run.
    pub model: Option<&'a SubagentModel>,
    /// Whether its answers may be streamed.
    pub stream: bool,
}

/// A model that only a subagent uses.
#[derive(Clone)]
pub struct SubagentModel {
    /// The client.
    pub client: Rc<dyn LlmClient>,
    /// Price and limits.
    pub terms: ModelTerms,
}

impl fmt::Debug for SubagentModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SubagentModel").field("terms", &self.terms).finish_non_exhaustive()
    }
}

/// Engine, tools and limits of a subagent.
pub struct SubagentSetup {
    /// Runs the tool calls of the subagent.
    pub engine: Engine,
    /// The tools offered to the subagent.
    pub definitions: Vec<ToolDefinition>,
    /// The system message, or the new instructions when the subagent continues a conversation that has one.
    pub opening: String,
    /// Limits on its steps and tools.
    pub room: SubagentLimits,
    /// Whether it may do more than read. Only one such subagent runs at a time.
    pub can_write: bool,
}

/// Builds the setup of a subagent from the engine of the run, the request and the emitter of the subagent.
pub type SetupFn = Box<dyn Fn(&Engine, SubagentRequest<'_>, Rc<Emitter>) -> Result<SubagentSetup, String>>;

/// Runs the subagents of one run.
pub struct SubagentHost {
    /// The engine of the run. It owns the tool that holds this host, hence the weak reference.
    pub engine: Weak<Engine>,
    /// The models of the run.
    pub models: FallbackChain<Rc<dyn LlmClient>>,
    /// The emitter of the run.
    pub emitter: Rc<Emitter>,
    /// The clock.
    pub source: Rc<Clock>,
    /// Fires when the user interrupts the run.
    pub interrupt: CancellationToken,
    /// The budget that the run shares with other runs.
    pub total_budget: Option<TotalShare>,
    /// Whether answers are streamed.
    pub stream: bool,
    /// Time at which the run started.
    pub started_at: Duration,
    equip: SetupFn,
    max_subagents: u32,
    started: Cell<u32>,
    session: Rc<RefCell<Session>>,
    shared_budget: Rc<SharedBudget>,
    /// Held by the subagent that may write.
    write_lock: Mutex<()>,
    /// Limits the number of subagents that run at the same time.
    concurrency: Semaphore,
}

impl SubagentHost {
    /// Creates the host for the run of `agent`, with at most `max_subagents` subagents; `equip` builds the setup of each.
    pub fn new(agent: &Agent, equip: SetupFn, max_subagents: u32) -> Self {
        Self {
            engine: Rc::downgrade(&agent.engine),
            models: agent.models.clone(),
            emitter: Rc::clone(&agent.emitter),
            source: Rc::clone(&agent.source),
            interrupt: agent.interrupt.clone(),
            total_budget: agent.total_budget.clone(),
            stream: agent.stream,
            started_at: agent.started_at,
            equip,
            max_subagents,
            started: Cell::new(0),
            shared_budget: Rc::new(SharedBudget::of(&agent.session)),
            session: Rc::clone(&agent.session),
            write_lock: Mutex::new(()),
            concurrency: Semaphore::new(MAX_AT_ONCE),
        }
    }

    /// Counts a requested subagent.
    ///
    /// # Errors
    /// A message for the model when the limit on subagents is reached.
    pub(super) fn count(&self) -> Result<(), String> {
        if self.started.get() >= self.max_subagents {
            let max_subagents = self.max_subagents;
            return Err(format!(
                "This run has reached its limit on subagents ({max_subagents}): do the rest yourself."
            ));
        }
        self.started.set(self.started.get().saturating_add(1));
        Ok(())
    }

    /// Runs a subagent and returns its outcome.
    ///
    /// # Errors
    /// A message for the model that gives the reason.
    pub async fn ask(&self, ask: SubagentRequest<'_>, cancel: &CancellationToken) -> Result<RunEnd, String> {
        let engine = self.engine.upgrade().ok_or("The run is over.")?;
        let session = Rc::new(RefCell::new(Session::default()));
        let changed = Rc::default();
        let emitter = self.emitter_of(ask.call_id, &session, &changed);
        let SubagentSetup { engine: own, definitions, opening, room, can_write } =
            (self.equip)(&engine, ask, Rc::clone(&emitter))?;
        let (_turn, _place) = self.acquire_slot(can_write, cancel).await?;
        {
            let run = self.session.borrow();
            let elapsed = self.source.last_event_time().saturating_sub(self.started_at);
            let mut limits = run.subagent_limits(elapsed, room);
            if let Some(model) = ask.model {
                limits.models = FallbackChain { first: model.terms.clone(), fallbacks: Vec::new() };
            }
            *session.borrow_mut() = match ask.memory {
                SubagentContext::Clean => run.new_subagent(limits, ask.call_id),
                SubagentContext::Fork => run.fork_for_subagent(limits),
            };
        }
        let agent = Agent {
            models: self.models_of(ask),
            engine: Rc::new(own),
            definitions,
            session: Rc::clone(&session),
            emitter,
            total_budget: self.total_budget.clone(),
            prefix: RefCell::new(PromptPrefix::new(None)),
            digest: RefCell::default(),
            source: Rc::clone(&self.source),
            interrupt: cancel.child_token(),
            name: ask.agent.to_owned(),
            task: ask.task.to_owned(),
            stream: self.stream && ask.stream,
            started_at: self.source.last_event_time(),
        };
        self.shared_budget.join(ask.call_id, session);
        let worked = work(&agent, ask, opening).await;
        self.shared_budget.leave(ask.call_id);
        if let Some(checkpoints) = &engine.checkpoints {
            checkpoints.record_changes(&changed.borrow());
        }
        let outcome = worked.map_err(|error| error.to_string())?;
        engine
            .is_stopped_by_hook
            .set(engine.is_stopped_by_hook.get() || agent.engine.is_stopped_by_hook.get());
        // The user interrupted the subagent, so the run ends too.
        if outcome.reason == StopReason::UserInterrupt && !cancel.is_cancelled() {
            self.interrupt.cancel();
        }
        Ok(outcome)
    }

    /// Returns the models of a subagent.
    fn models_of(&self, ask: SubagentRequest<'_>) -> FallbackChain<Rc<dyn LlmClient>> {
        match ask.model {
            Some(model) => FallbackChain { first: Rc::clone(&model.client), fallbacks: Vec::new() },
            None => self.models.starting_at(self.session.borrow().model_in_use()),
        }
    }

    /// Creates the emitter of a subagent: its events go to its own session and then to the run.
    fn emitter_of(
        &self,
        call_id: &str,
        session: &Rc<RefCell<Session>>,
        changed: &Rc<RefCell<Vec<Change>>>,
    ) -> Rc<Emitter> {
        let nested = EventForwarder {
            call_id: call_id.to_owned(),
            emitter: Rc::clone(&self.emitter),
            shared_budget: Rc::clone(&self.shared_budget),
            last_reported: BudgetShare::default(),
            changed: Rc::clone(changed),
        };
        let sinks: Vec<Box<dyn EventSink>> =
            vec![Box::new(SessionSink(Rc::clone(session))), Box::new(nested)];
        let emitter = Emitter::new(Rc::clone(&self.source), self.source.short_id(), 0, sinks);
        Rc::new(emitter.with_redactor(std::sync::Arc::clone(self.emitter.redactor())))
    }

    /// Waits for a free slot and, with `can_write`, for the write lock.
    async fn acquire_slot(
        &self,
        can_write: bool,
        cancel: &CancellationToken,
    ) -> Result<(Option<MutexGuard<'_, ()>>, Option<SemaphorePermit<'_>>), String> {
        let turn = async {
            let turn = if can_write { Some(self.write_lock.lock().await) } else { None };
            // The semaphore is never closed.
            (turn, self.concurrency.acquire().await.ok())
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err("not executed: the run ended before its turn".to_owned()),
            turn = turn => Ok(turn),
        }
    }
}

/// Emits the start of the subagent's run, drives it, and emits its end.
async fn work(agent: &Agent, ask: SubagentRequest<'_>, opening: String) -> Result<RunEnd, EmitError> {
    let emitter = &agent.emitter;
    let max_steps = agent.session.borrow().limits().max_steps;
    emitter.emit(Event::RunStart {
        agent: ask.agent.to_owned(),
        model: agent.models.first.model().to_owned(),
        mode: agent.engine.policy.mode().name().to_owned(),
        tools: agent.definitions.iter().map(|tool| tool.name.clone()).collect(),
        mcp_tools: BTreeMap::new(),
        max_steps,
        resumed: false,
        sandbox: agent.engine.launcher.tier().name().to_owned(),
        bounds: None,
    })?;
    let text = match ask.memory {
        SubagentContext::Clean => {
            emitter.emit(Event::System { text: opening })?;
            ask.task.to_owned()
        }
        // The system message of the conversation stays as it is, because the provider has cached it.
        SubagentContext::Fork => {
            format!("[SYSTEM] Instructions from here on:\n{opening}\n\nYour task:\n{}", ask.task)
        }
    };
    emitter.emit(Event::user_message(text, MessageOrigin::Prompt))?;
    let outcome = run_subagent(agent).await?;
    let result = agent.session.borrow().result(outcome.clone(), agent.elapsed());
    agent.emit_run_end(result)?;
    Ok(outcome)
}
