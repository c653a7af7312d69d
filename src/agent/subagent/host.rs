//! Runs subagents for the run that asks them.

use super::event_forwarder::EventForwarder;
use super::shared_budget::SharedBudget;
use crate::agent::run::run_subagent;
use crate::agent::session::{RunOutcome, Session, SubagentLimits};
use crate::agent::{Agent, SessionSink};
use crate::core::budget_share::BudgetShare;
use crate::core::event::{Event, EventSink, MessageOrigin};
use crate::core::file_change::Change;
use crate::core::limits::FallbackChain;
use crate::core::stop_reason::StopReason;
use crate::engine::Engine;
use crate::llm::prompt_prefix::PromptPrefix;
use crate::llm::{LlmClient, ToolDefinition};
use crate::runtime::clock::Clock;
use crate::runtime::emitter::{EmitError, Emitter};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// Subagents that work at once, however many are asked in one answer.
const MAX_AT_ONCE: usize = 4;

/// What a subagent knows when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubagentContext {
    /// Its own instructions and the task.
    Clean,
    /// All that was said in the session that asks it.
    Fork,
}

/// What a subagent is asked.
#[derive(Debug, Clone, Copy)]
pub struct SubagentRequest<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The task, whole.
    pub task: &'a str,
    /// What it knows.
    pub memory: SubagentContext,
    /// The call that asks it.
    pub call_id: &'a str,
}

/// What a subagent works with.
pub struct SubagentSetup {
    /// What runs its calls.
    pub engine: Engine,
    /// The tools that it is offered.
    pub definitions: Vec<ToolDefinition>,
    /// What it is told first: its system message, or its instructions where it goes on in a conversation that has one.
    pub opening: String,
    /// How far it may go.
    pub room: SubagentLimits,
    /// Whether it may do more than look: then no other such subagent works beside it.
    pub can_write: bool,
}

/// Makes what the agent that is asked works with, beside the engine of the run, as a subagent that tells the emitter.
pub type SetupFn = Box<dyn Fn(&Engine, SubagentRequest<'_>, Rc<Emitter>) -> Result<SubagentSetup, String>>;

/// A run that may ask subagents.
pub struct SubagentHost {
    /// What runs the calls of the run: it owns the tool that holds this.
    pub engine: Weak<Engine>,
    /// The models of the run.
    pub models: FallbackChain<Rc<dyn LlmClient>>,
    /// Where the run tells what happens.
    pub emitter: Rc<Emitter>,
    /// The clock.
    pub source: Rc<Clock>,
    /// Fires when the person asks to stop.
    pub interrupt: CancellationToken,
    /// Whether answers are streamed.
    pub stream: bool,
    /// When the run began.
    pub started_at: Duration,
    equip: SetupFn,
    most: u32,
    asked: Cell<u32>,
    session: Rc<RefCell<Session>>,
    shared_budget: Rc<SharedBudget>,
    /// Held by the subagent that does more than look.
    write_lock: Mutex<()>,
    /// Those that may work at once.
    concurrency: Semaphore,
}

impl SubagentHost {
    /// The run that `agent` does, which may ask subagents `most` times; `equip` makes what each works with.
    pub fn new(agent: &Agent, equip: SetupFn, most: u32) -> Self {
        Self {
            engine: Rc::downgrade(&agent.engine),
            models: agent.models.clone(),
            emitter: Rc::clone(&agent.emitter),
            source: Rc::clone(&agent.source),
            interrupt: agent.interrupt.clone(),
            stream: agent.stream,
            started_at: agent.started_at,
            equip,
            most,
            asked: Cell::new(0),
            shared_budget: Rc::new(SharedBudget::of(&agent.session)),
            session: Rc::clone(&agent.session),
            write_lock: Mutex::new(()),
            concurrency: Semaphore::new(MAX_AT_ONCE),
        }
    }

    /// Counts a subagent that the model asks for.
    ///
    /// # Errors
    /// A text for the model when it has asked as many as it may.
    pub(super) fn count(&self) -> Result<(), String> {
        if self.asked.get() >= self.most {
            let most = self.most;
            return Err(format!(
                "This run has asked as many subagents as it may ({most}): do the rest yourself."
            ));
        }
        self.asked.set(self.asked.get().saturating_add(1));
        Ok(())
    }

    /// Asks a subagent and waits for its outcome.
    ///
    /// # Errors
    /// Why there is none, in words for the model.
    pub async fn ask(
        &self,
        ask: SubagentRequest<'_>,
        cancel: &CancellationToken,
    ) -> Result<RunOutcome, String> {
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
            let limits = run.subagent_limits(elapsed, room);
            *session.borrow_mut() = match ask.memory {
                SubagentContext::Clean => run.new_subagent(limits, ask.call_id),
                SubagentContext::Fork => run.fork_for_subagent(limits),
            };
        }
        let agent = Agent {
            models: self.models.starting_at(self.session.borrow().model_in_use()),
            engine: Rc::new(own),
            definitions,
            session: Rc::clone(&session),
            emitter,
            state_saver: None,
            prefix: RefCell::new(PromptPrefix::new(None)),
            digest: RefCell::default(),
            source: Rc::clone(&self.source),
            interrupt: cancel.child_token(),
            name: ask.agent.to_owned(),
            task: ask.task.to_owned(),
            stream: self.stream,
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
        // A person has ended it, whose question it was: the run ends too.
        if outcome.reason == StopReason::UserInterrupt && !cancel.is_cancelled() {
            self.interrupt.cancel();
        }
        Ok(outcome)
    }

    /// What a subagent tells: its own session, and then the run.
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

    /// Waits for a place, and for one that `can_write` until no other does more than look.
    async fn acquire_slot(
        &self,
        can_write: bool,
        cancel: &CancellationToken,
    ) -> Result<(Option<MutexGuard<'_, ()>>, Option<SemaphorePermit<'_>>), String> {
        let turn = async {
            let turn = if can_write { Some(self.write_lock.lock().await) } else { None };
            // Nobody closes it.
            (turn, self.concurrency.acquire().await.ok())
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err("not executed: the run ended before its turn".to_owned()),
            turn = turn => Ok(turn),
        }
    }
}

/// Tells the beginning, works, tells the end.
async fn work(agent: &Agent, ask: SubagentRequest<'_>, opening: String) -> Result<RunOutcome, EmitError> {
    let emitter = &agent.emitter;
    let max_steps = agent.session.borrow().limits().max_steps;
    emitter.emit(Event::RunStart {
        agent: ask.agent.to_owned(),
        model: agent.models.first.model().to_owned(),
        mode: agent.engine.policy.mode().name().to_owned(),
        tools: agent.definitions.iter().map(|tool| tool.name.clone()).collect(),
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
        // The conversation keeps its beginning, which a provider has cached.
        SubagentContext::Fork => format!("[SYSTEM] From here on:\n{opening}\n\nYour task:\n{}", ask.task),
    };
    emitter.emit(Event::UserMessage { text, origin: MessageOrigin::Prompt })?;
    let outcome = run_subagent(agent).await?;
    let result = agent.session.borrow().result(outcome.clone(), agent.elapsed());
    agent.emit_run_end(result)?;
    Ok(outcome)
}
