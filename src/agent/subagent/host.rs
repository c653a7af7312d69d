//! Runs subagents for the run that asks them.

use super::nested::Nested;
use super::purses::Purses;
use crate::agent::run::assist;
use crate::agent::session::{Session, SubagentRoom, Verdict};
use crate::agent::{Agent, Fold};
use crate::change::Change;
use crate::emit::{EmitError, Emitter};
use crate::engine::Engine;
use crate::event::{Event, EventSink, Origin};
use crate::limits::Chain;
use crate::llm::prefix::Prefix;
use crate::llm::{LlmClient, ToolDefinition};
use crate::purse::Purse;
use crate::source::Source;
use crate::stop_reason::StopReason;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard, Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

/// Subagents that work at once, however many are asked in one answer.
const MAX_AT_ONCE: usize = 4;

/// What a subagent knows when it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Its own instructions and the task.
    Clean,
    /// All that was said in the session that asks it.
    Fork,
}

/// What a subagent is asked.
#[derive(Debug, Clone, Copy)]
pub struct Ask<'a> {
    /// The agent.
    pub agent: &'a str,
    /// The task, whole.
    pub task: &'a str,
    /// What it knows.
    pub memory: Memory,
    /// The call that asks it.
    pub call_id: &'a str,
}

/// What a subagent works with.
pub struct Equipped {
    /// What runs its calls.
    pub engine: Engine,
    /// The tools that it is offered.
    pub definitions: Vec<ToolDefinition>,
    /// What it is told first: its system message, or its instructions where it goes on in a conversation that has one.
    pub opening: String,
    /// How far it may go.
    pub room: SubagentRoom,
    /// Whether it may do more than look: then no other such subagent works beside it.
    pub acts: bool,
}

/// Makes what the agent that is asked works with, beside the engine of the run, as a subagent that tells the emitter.
pub type Equip = Box<dyn Fn(&Engine, Ask<'_>, Rc<Emitter>) -> Result<Equipped, String>>;

/// A run that may ask subagents.
pub struct Host {
    /// What runs the calls of the run: it owns the tool that holds this.
    pub engine: Weak<Engine>,
    /// The models of the run.
    pub models: Chain<Rc<dyn LlmClient>>,
    /// Where the run tells what happens.
    pub emitter: Rc<Emitter>,
    /// The clock.
    pub source: Rc<Source>,
    /// Fires when the person asks to stop.
    pub interrupt: CancellationToken,
    /// Whether answers are streamed.
    pub stream: bool,
    /// When the run began.
    pub began: Duration,
    equip: Equip,
    most: u32,
    asked: Cell<u32>,
    session: Rc<RefCell<Session>>,
    purses: Rc<Purses>,
    /// Held by the subagent that does more than look.
    acting: Mutex<()>,
    /// Those that may work at once.
    at_once: Semaphore,
}

impl Host {
    /// The run that `agent` does, which may ask subagents `most` times; `equip` makes what each works with.
    pub fn new(agent: &Agent, equip: Equip, most: u32) -> Self {
        Self {
            engine: Rc::downgrade(&agent.engine),
            models: agent.models.clone(),
            emitter: Rc::clone(&agent.emitter),
            source: Rc::clone(&agent.source),
            interrupt: agent.interrupt.clone(),
            stream: agent.stream,
            began: agent.began,
            equip,
            most,
            asked: Cell::new(0),
            purses: Rc::new(Purses::of(&agent.session)),
            session: Rc::clone(&agent.session),
            acting: Mutex::new(()),
            at_once: Semaphore::new(MAX_AT_ONCE),
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

    /// Asks a subagent and waits for its verdict.
    ///
    /// # Errors
    /// Why there is none, in words for the model.
    pub async fn ask(&self, ask: Ask<'_>, cancel: &CancellationToken) -> Result<Verdict, String> {
        let engine = self.engine.upgrade().ok_or("The run is over.")?;
        let session = Rc::new(RefCell::new(Session::default()));
        let changed = Rc::default();
        let emitter = self.emitter_of(ask.call_id, &session, &changed);
        let Equipped { engine: own, definitions, opening, room, acts } =
            (self.equip)(&engine, ask, Rc::clone(&emitter))?;
        let (_turn, _place) = self.turn(acts, cancel).await?;
        {
            let run = self.session.borrow();
            let elapsed = self.source.stamped().saturating_sub(self.began);
            let limits = run.limits_of_subagent(elapsed, room);
            *session.borrow_mut() = match ask.memory {
                Memory::Clean => run.with_subagent(limits, ask.call_id),
                Memory::Fork => run.forked(limits),
            };
        }
        let agent = Agent {
            models: self.models.beginning_with(self.session.borrow().model_in_use()),
            engine: Rc::new(own),
            definitions,
            session: Rc::clone(&session),
            emitter,
            keeper: None,
            prefix: RefCell::new(Prefix::new(None)),
            digest: RefCell::default(),
            source: Rc::clone(&self.source),
            interrupt: cancel.child_token(),
            name: ask.agent.to_owned(),
            task: ask.task.to_owned(),
            stream: self.stream,
            began: self.source.stamped(),
        };
        self.purses.join(ask.call_id, session);
        let worked = work(&agent, ask, opening).await;
        self.purses.leave(ask.call_id);
        if let Some(checkpoints) = &engine.checkpoints {
            checkpoints.note(&changed.borrow());
        }
        let verdict = worked.map_err(|error| error.to_string())?;
        engine.stopped.set(engine.stopped.get() || agent.engine.stopped.get());
        // A person has ended it, whose question it was: the run ends too.
        if verdict.reason == StopReason::UserInterrupt && !cancel.is_cancelled() {
            self.interrupt.cancel();
        }
        Ok(verdict)
    }

    /// What a subagent tells: its own session, and then the run.
    fn emitter_of(
        &self,
        call_id: &str,
        session: &Rc<RefCell<Session>>,
        changed: &Rc<RefCell<Vec<Change>>>,
    ) -> Rc<Emitter> {
        let nested = Nested {
            call_id: call_id.to_owned(),
            emitter: Rc::clone(&self.emitter),
            purses: Rc::clone(&self.purses),
            told: Purse::default(),
            changed: Rc::clone(changed),
        };
        let sinks: Vec<Box<dyn EventSink>> = vec![Box::new(Fold(Rc::clone(session))), Box::new(nested)];
        let emitter = Emitter::new(Rc::clone(&self.source), self.source.short_id(), 0, sinks);
        Rc::new(emitter.redacting(std::sync::Arc::clone(self.emitter.redactor())))
    }

    /// Waits for a place, and for one that `acts` until no other does more than look.
    async fn turn(
        &self,
        acts: bool,
        cancel: &CancellationToken,
    ) -> Result<(Option<MutexGuard<'_, ()>>, Option<SemaphorePermit<'_>>), String> {
        let turn = async {
            let turn = if acts { Some(self.acting.lock().await) } else { None };
            // Nobody closes it.
            (turn, self.at_once.acquire().await.ok())
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err("not executed: the run ended before its turn".to_owned()),
            turn = turn => Ok(turn),
        }
    }
}

/// Tells the beginning, works, tells the end.
async fn work(agent: &Agent, ask: Ask<'_>, opening: String) -> Result<Verdict, EmitError> {
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
        Memory::Clean => {
            emitter.emit(Event::System { text: opening })?;
            ask.task.to_owned()
        }
        // The conversation keeps its beginning, which a provider has cached.
        Memory::Fork => format!("[SYSTEM] From here on:\n{opening}\n\nYour task:\n{}", ask.task),
    };
    emitter.emit(Event::UserMessage { text, origin: Origin::Prompt })?;
    let verdict = assist(agent).await?;
    let result = agent.session.borrow().result(verdict.clone(), agent.elapsed());
    agent.tell_end(result)?;
    Ok(verdict)
}
