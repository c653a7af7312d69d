//! Runs the session of a scenario: run after run, each in a new process, to its end.

use super::context::{SampleRates, SimulationContext};
use super::invariants::{InvariantChecker, InvariantSink};
use super::memory_journal::{Disk, Journal};
use super::model::Model;
use super::random::Random;
use super::scenario::{Fault, SCHEMA, Scenario, tools};
use super::services::SimulatedServices;
use crate::output_schema::OutputSchema;
use crate::replay::{ReplayOutcome, replay};
use crate::session::SessionSink;
use crate::session::{Session, unknown_outcome};
use crate::session_state::SessionState;
use crate::{Agent, agent_loop};
use agent_core::approval::ApprovalAnswer;
use agent_core::event::{Event, MessageOrigin};
use agent_core::event_sink::EventSink;
use agent_core::limits::{FallbackChain, RunLimits};
use agent_core::run_result::RunResult;
use agent_core::secret::Secret;
use agent_core::stop_reason::StopReason;
use agent_llm::LlmClient;
use agent_llm::prompt_prefix::PromptPrefix;
use agent_messages as messages;
use agent_redactor::{NamedSecret, Redactor};
use agent_runtime::clock::Clock;
use agent_runtime::emitter::{EmitError, Emitter};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Wall-clock time at the start of a scenario: 2026-01-01.
const WALL: Duration = Duration::from_hours(490_896);

/// Largest number of runs of a session.
const MAX_RUNS: usize = 6;

/// The outcome of a session.
#[derive(Debug, PartialEq)]
pub struct SessionOutcome {
    /// The last answer.
    pub answer: String,
    /// The items in the workspace.
    pub items: BTreeMap<u64, String>,
    /// Checksum of its journal.
    pub journal: u32,
}

/// A session, and the state that survives its processes.
pub struct SimulatedSession {
    /// Shared state of the scenario.
    pub shared: Rc<SimulationContext>,
    /// The journal.
    pub disk: Rc<RefCell<Disk>>,
    /// Steps of each run.
    pub steps: RefCell<Vec<u32>>,
    checks: Rc<RefCell<InvariantChecker>>,
    random: Random,
    schema: Option<Rc<OutputSchema>>,
}

impl SimulatedSession {
    /// Creates an empty session in `scenario`.
    pub fn new(scenario: Scenario, samples: SampleRates) -> Self {
        let random = Random::new(scenario.seed, 2);
        let schema = scenario.schema.then(|| Rc::new(OutputSchema::parse(SCHEMA).unwrap()));
        let shared = SimulationContext::new(Rc::new(scenario), samples);
        let checks = Rc::new(RefCell::new(InvariantChecker::new(Rc::clone(&shared))));
        Self { shared, disk: Rc::default(), steps: RefCell::default(), checks, random, schema }
    }

    /// Runs the session to its end.
    pub async fn run_to_end(&self) -> SessionOutcome {
        let mut result = None;
        for number in 0..MAX_RUNS {
            let faults = &self.shared.scenario.faults;
            result = Box::pin(self.run(number, faults.get(number).copied())).await;
            self.steps.borrow_mut().push(self.checks.borrow().steps());
            let over = match &result {
                None => false,
                Some(_) if self.shared.scenario.is_deterministic => true,
                Some(result) if result.stop_reason == Some(StopReason::AwaitingApproval) => !self.answer(),
                Some(_) => self.random.below(5) < 3,
            };
            if over {
                break;
            }
        }
        if self.random.one_in(self.shared.samples.replays) {
            self.replay().await;
        }
        let answer = result.map(|result| result.output.text().into_owned()).unwrap_or_default();
        let journal = self.disk.borrow().checksum.clone().finalize();
        SessionOutcome { answer, items: self.shared.workspace.all(), journal }
    }

    /// Lets the user answer some or all open approvals.
    fn answer(&self) -> bool {
        let session = self.load_state().session;
        let asked: Vec<_> = session.approvals().unanswered().cloned().collect();
        let source = Rc::new(Clock::simulated(1, WALL));
        let next = self.disk.borrow().records.len() as u64;
        let emitter = Emitter::new(
            source,
            "approve".to_owned(),
            next,
            vec![Box::new(self.journal(None, &CancellationToken::new()))],
        );
        for approval in asked {
            if self.random.one_in(5) {
                continue;
            }
            let answer = if self.random.one_in(3) {
                ApprovalAnswer::Deny { reason: None }
            } else {
                ApprovalAnswer::Approve
            };
            emitter
                .emit(Event::ApprovalAnswered { id: approval.id, answer, signature: String::new() })
                .unwrap();
        }
        self.checks.borrow_mut().resume_later(&self.load_state().session);
        true
    }

    fn journal(&self, fault: Option<Fault>, interrupt: &CancellationToken) -> Journal {
        Journal {
            disk: Rc::clone(&self.disk),
            fault,
            secret: self.shared.scenario.secret.clone(),
            emitted_text: String::new(),
            crashed: CancellationToken::new(),
            is_broken: false,
            read_back: self.shared.samples.read_back,
            interrupt: interrupt.clone(),
        }
    }

    /// Returns the state of the session from its journal.
    fn load_state(&self) -> SessionState {
        let mut state = SessionState::default();
        state.session = state.session.with_limits(self.shared.scenario.limits.clone());
        for record in &self.disk.borrow().records {
            state.apply(record);
        }
        state
    }

    /// Executes one run in its own process. Returns `None` when the process died.
    async fn run(&self, number: usize, fault: Option<Fault>) -> Option<RunResult> {
        self.shared.start_run();
        let state = self.load_state();
        let fold = Session::from_records(self.shared.scenario.limits.clone(), &self.disk.borrow().records);
        let resumed = state.session.clone().with_output_schema(self.schema.clone());
        self.checks.borrow_mut().resume(&resumed, fold.with_output_schema(self.schema.clone()));
        let interrupt = CancellationToken::new();
        let journal = self.journal(fault, &interrupt);
        let crashed = journal.crashed.clone();
        let agent = self.agent(number, &state, journal, &interrupt);
        let interrupt_after = match fault {
            Some(Fault::InterruptAfter(time)) => time,
            _ => Duration::MAX,
        };
        let work = async {
            self.open(&agent, &state)?;
            agent_loop::run_to_end(&agent, self.prepare(&agent, &state)).await
        };
        tokio::pin!(work);
        let outcome = tokio::select! {
            biased;
            () = crashed.cancelled() => None,
            outcome = &mut work => Some(outcome),
            () = tokio::time::sleep(interrupt_after) => {
                interrupt.cancel();
                Some(work.await)
            }
        };
        self.shared.count("run", "processes");
        if crashed.is_cancelled() {
            self.shared.count("fault", "crash");
            return None;
        }
        let result = match outcome.expect("only a crashed process has no outcome") {
            Ok(outcome) => agent.session.borrow().result(outcome, agent.elapsed()),
            Err(error) => {
                self.shared.count("fault", "disk full");
                let result = agent.end_without_journal(&error);
                self.shared.count("reason", result.stop_reason.unwrap().name());
                return None;
            }
        };
        let result = agent.emit_run_end(result).ok().filter(|_| !crashed.is_cancelled())?;
        if interrupt.is_cancelled() {
            self.shared.count("fault", "interrupt");
        }
        let reason = result.stop_reason.unwrap();
        self.shared.count("reason", reason.name());
        self.shared.count("end", &format!("{:?} {}", self.shared.scenario.kinds[0], reason.name()));
        Some(result)
    }

    fn agent(
        &self,
        number: usize,
        state: &SessionState,
        journal: Journal,
        interrupt: &CancellationToken,
    ) -> Agent<SimulatedServices> {
        let scenario = &self.shared.scenario;
        let source = Rc::new(Clock::simulated(scenario.seed ^ number as u64, WALL));
        let began = source.next_event_time();
        let session = state.session.clone().with_output_schema(self.schema.clone());
        let prefix = session.prefix().cloned();
        let approvals = session.approvals().clone();
        let session = Rc::new(RefCell::new(session));
        let watch = InvariantSink { checks: Rc::clone(&self.checks), session: Rc::clone(&session) };
        let sinks: Vec<Box<dyn EventSink>> =
            vec![Box::new(journal), Box::new(SessionSink(Rc::clone(&session))), Box::new(watch)];
        let secrets = scenario
            .secret
            .iter()
            .map(|secret| NamedSecret { name: "KEY".to_owned(), value: Secret::new(secret.as_str()) });
        let emitter = Emitter::new(Rc::clone(&source), format!("run-{number}"), state.about.next_seq, sinks);
        let emitter = Rc::new(emitter.with_redactor(Arc::new(Redactor::new(secrets))));
        let mut models = scenario.kinds.iter().zip(scenario.limits.models.iter()).enumerate().map(
            |(index, (kind, terms))| {
                self.shared.count("model", &format!("{kind:?}"));
                let random = Random::new(scenario.seed, 100 + (number * 10 + index) as u64);
                let (shared, source, terms) = (Rc::clone(&self.shared), Rc::clone(&source), terms.clone());
                Rc::new(Model { kind: *kind, terms, shared, source, random }) as Rc<dyn LlmClient>
            },
        );
        Agent {
            models: FallbackChain { first: models.next().unwrap(), fallbacks: models.collect() },
            engine: Rc::new(SimulatedServices {
                shared: Rc::clone(&self.shared),
                emitter: Rc::clone(&emitter),
                source: Rc::clone(&source),
                random: Random::new(scenario.seed, 200 + number as u64),
                approvals,
                stopped: Cell::default(),
                has_pending_call: Cell::default(),
                running: RefCell::default(),
                unreported: RefCell::default(),
                changed: Cell::default(),
            }),
            definitions: tools(),
            session,
            emitter,
            total_budget: None,
            prefix: RefCell::new(PromptPrefix::new(prefix)),
            digest: RefCell::default(),
            source,
            interrupt: interrupt.clone(),
            name: "coder".to_owned(),
            task: "work".to_owned(),
            stream: scenario.stream,
            started_at: began,
        }
    }

    /// Emits the start of a run, in the order of the command line.
    fn open(&self, agent: &Agent<SimulatedServices>, state: &SessionState) -> Result<(), EmitError> {
        let (emitter, scenario) = (&agent.emitter, &self.shared.scenario);
        let resumed = state.about.next_seq > 0;
        if !resumed {
            let (workspace, program) = ("/work".to_owned(), "agent".to_owned());
            let session_id = format!("session-{}", scenario.seed);
            emitter.emit(Event::SessionStart {
                session_id,
                workspace,
                program,
                imported_from: None,
                work_id: None,
            })?;
        }
        let began_us = u64::try_from(agent.started_at.as_micros()).unwrap();
        let schema = self.schema.as_ref().map(|schema| schema.text().to_owned());
        emitter.emit(Event::RunStart {
            agent: agent.name.clone(),
            model: agent.models.first.model().to_owned(),
            mode: "auto".to_owned(),
            tools: agent.definitions.iter().map(|tool| tool.name.clone()).collect(),
            mcp_tools: BTreeMap::new(),
            max_steps: scenario.limits.max_steps,
            resumed,
            sandbox: "none".to_owned(),
            bounds: Some(Box::new(RunLimits { began_us, limits: scenario.limits.clone(), schema })),
        })?;
        self.end_calls(agent)?;
        if !state.commands.gone.is_empty() {
            let text = messages::background_commands_lost(&state.commands.gone);
            emitter.emit(Event::user_message(text, MessageOrigin::Background))?;
        }
        let prompt = {
            let session = agent.session.borrow();
            let prompt = match resumed {
                true if session.has_task() && scenario.is_deterministic => {
                    session.needs_user_message().then(|| messages::RESUME_MESSAGE.to_owned())
                }
                true if session.has_task() && self.random.one_in(2) => {
                    session.needs_user_message().then(|| messages::RESUME_MESSAGE.to_owned())
                }
                _ => Some(format!("Write {} items.", scenario.items)),
            };
            session.with_schema(prompt)
        };
        if let Some(text) = prompt {
            emitter.emit(Event::user_message(text, MessageOrigin::Prompt))?;
        }
        if !state.about.has_system {
            emitter.emit(Event::System { text: "Be good.".to_owned() })?;
        }
        Ok(())
    }

    /// Does what a person may request before the work on the next prompt.
    async fn prepare(&self, agent: &Agent<SimulatedServices>, state: &SessionState) -> Result<(), EmitError> {
        let resumed = state.about.next_seq > 0;
        if resumed && !self.shared.scenario.is_deterministic && self.random.one_in(8) {
            let tokens = agent.session.borrow().prompt_tokens();
            self.shared.count("compaction", "requested");
            agent.start_compaction(tokens, tokens, true).await?;
        }
        Ok(())
    }

    /// Records the end of calls that were interrupted by a crash.
    fn end_calls(&self, agent: &Agent<SimulatedServices>) -> Result<(), EmitError> {
        let interrupted = agent.session.borrow().interrupted_calls();
        for call in interrupted {
            self.shared.count("event", "call interrupted by a crash");
            let result = unknown_outcome(call.id);
            agent.emitter.emit(Event::tool_not_run(call.name, String::new(), result, Vec::new()))?;
        }
        Ok(())
    }

    /// Replays the session from its journal: every run must repeat equally.
    async fn replay(&self) {
        let records = self.disk.borrow().records.clone();
        for replayed in replay(&records, None).await {
            assert!(
                matches!(replayed.outcome, ReplayOutcome::Same(_) | ReplayOutcome::Incomplete),
                "a replay differs: {:?}",
                replayed.outcome
            );
            self.shared.count("run", "replayed");
        }
    }
}
