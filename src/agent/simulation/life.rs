//! The life of a session in a world: its runs, from process to process, to an end.

use super::around::Around;
use super::checks::{Checks, Watch};
use super::journal::{Disk, Journal};
use super::model::Model;
use super::random::Random;
use super::shared::{Samples, Shared};
use super::world::{Fault, SCHEMA, World, tools};
use crate::agent::known::Known;
use crate::agent::replay::{Outcome, replay};
use crate::agent::session::{Session, unknown_outcome};
use crate::agent::structured::OutputSchema;
use crate::agent::{Agent, Fold, run};
use crate::approval::Answer;
use crate::emit::{EmitError, Emitter};
use crate::event::{Event, EventSink, Origin};
use crate::guardrail::Counted;
use crate::limits::{Bounds, Chain};
use crate::llm::LlmClient;
use crate::llm::prefix::Prefix;
use crate::messages;
use crate::redactor::{NamedSecret, Redactor};
use crate::result::RunResult;
use crate::secret::Secret;
use crate::source::Source;
use crate::stop_reason::StopReason;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The wall clock at the beginning of a world: 2026-01-01.
const WALL: Duration = Duration::from_hours(490_896);

/// Runs of a session at most.
const MAX_RUNS: usize = 6;

/// How a session ended that was let live to its end.
#[derive(Debug, PartialEq)]
pub struct End {
    /// The last answer.
    pub answer: String,
    /// The workspace.
    pub items: BTreeMap<u64, String>,
    /// The checksum of its journal.
    pub journal: u32,
}

/// A session and what survives its processes.
pub struct Life {
    /// What is shared.
    pub shared: Rc<Shared>,
    /// The journal.
    pub disk: Rc<RefCell<Disk>>,
    /// Steps of each run.
    pub steps: RefCell<Vec<u32>>,
    checks: Rc<RefCell<Checks>>,
    random: Random,
    schema: Option<Rc<OutputSchema>>,
}

impl Life {
    /// A session in `world` to which nothing has happened yet.
    pub fn new(world: World, samples: Samples) -> Self {
        let random = Random::new(world.seed, 2);
        let schema = world.schema.then(|| Rc::new(OutputSchema::parse(SCHEMA).unwrap()));
        let shared = Shared::new(Rc::new(world), samples);
        let checks = Rc::new(RefCell::new(Checks::new(Rc::clone(&shared))));
        Self { shared, disk: Rc::default(), steps: RefCell::default(), checks, random, schema }
    }

    /// Lives it to its end.
    pub async fn live(&self) -> End {
        let mut result = None;
        for number in 0..MAX_RUNS {
            let faults = &self.shared.world.faults;
            result = self.run(number, faults.get(number).copied()).await;
            self.steps.borrow_mut().push(self.checks.borrow().steps());
            let over = match &result {
                None => false,
                Some(_) if self.shared.world.exact => true,
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
        End { answer, items: self.shared.place.all(), journal }
    }

    /// The person answers what was asked, or some of it; whether there was anything.
    fn answer(&self) -> bool {
        let session = self.known(false).session;
        let asked: Vec<_> = session.approvals().open().cloned().collect();
        let source = Rc::new(Source::simulated(1, WALL));
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
            let answer = if self.random.one_in(3) { Answer::Deny { reason: None } } else { Answer::Approve };
            emitter.emit(Event::ApprovalAnswered { id: approval.id, answer, seal: String::new() }).unwrap();
        }
        self.checks.borrow_mut().resume_later(&self.known(false).session);
        true
    }

    fn journal(&self, fault: Option<Fault>, interrupt: &CancellationToken) -> Journal {
        Journal {
            disk: Rc::clone(&self.disk),
            fault,
            secret: self.shared.world.secret.clone(),
            told: String::new(),
            gone: CancellationToken::new(),
            is_broken: false,
            read_back: self.shared.samples.read_back,
            interrupt: interrupt.clone(),
        }
    }

    /// What the journal tells; `kept` when a part of it comes from a state that was kept beside it.
    fn known(&self, kept: bool) -> Known {
        let disk = self.disk.borrow();
        let mut known = Known::default();
        let at =
            if kept { usize::try_from(self.random.below(disk.records.len() as u64 + 1)).unwrap() } else { 0 };
        let (before, after) = disk.records.split_at(at);
        known.session = known.session.within(self.shared.world.limits.clone());
        for record in before {
            known.add(record);
        }
        if kept {
            let json = serde_json::to_vec(&known).unwrap();
            known = serde_json::from_slice(&json).unwrap();
            known.session = known.session.within(self.shared.world.limits.clone());
        }
        for record in after {
            known.add(record);
        }
        known
    }

    /// One run in a process of its own; its result, unless the process died.
    async fn run(&self, number: usize, fault: Option<Fault>) -> Option<RunResult> {
        self.shared.begin();
        let known = self.known(self.random.one_in(2));
        let fold = Session::replay(self.shared.world.limits.clone(), &self.disk.borrow().records);
        self.checks.borrow_mut().resume(&known.session, fold.demanding(self.schema.clone()));
        let interrupt = CancellationToken::new();
        let journal = self.journal(fault, &interrupt);
        let gone = journal.gone.clone();
        let agent = self.agent(number, &known, journal, &interrupt);
        let late = match fault {
            Some(Fault::InterruptAfter(time)) => time,
            _ => Duration::MAX,
        };
        let work = async {
            self.open(&agent, &known)?;
            run::run(&agent, async { Ok(()) }).await
        };
        tokio::pin!(work);
        let verdict = tokio::select! {
            biased;
            () = gone.cancelled() => None,
            verdict = &mut work => Some(verdict),
            () = tokio::time::sleep(late) => {
                interrupt.cancel();
                Some(work.await)
            }
        };
        self.shared.count("run", "processes");
        if gone.is_cancelled() {
            self.shared.count("fault", "crash");
            return None;
        }
        let result = match verdict.expect("only a process that is gone has none") {
            Ok(verdict) => agent.session.borrow().result(verdict, agent.elapsed()),
            Err(error) => {
                self.shared.count("fault", "disk full");
                let result = agent.broken(&error);
                self.shared.count("reason", result.stop_reason.unwrap().name());
                return None;
            }
        };
        let result = agent.tell_end(result).ok().filter(|_| !gone.is_cancelled())?;
        if interrupt.is_cancelled() {
            self.shared.count("fault", "interrupt");
        }
        let reason = result.stop_reason.unwrap();
        self.shared.count("reason", reason.name());
        self.shared.count("end", &format!("{:?} {}", self.shared.world.kinds[0], reason.name()));
        Some(result)
    }

    fn agent(
        &self,
        number: usize,
        known: &Known,
        journal: Journal,
        interrupt: &CancellationToken,
    ) -> Agent<Around> {
        let world = &self.shared.world;
        let source = Rc::new(Source::simulated(world.seed ^ number as u64, WALL));
        let began = source.stamp();
        let session = known.session.clone().demanding(self.schema.clone());
        let prefix = session.prefix().cloned();
        let approvals = session.approvals().clone();
        let session = Rc::new(RefCell::new(session));
        let watch = Watch { checks: Rc::clone(&self.checks), session: Rc::clone(&session) };
        let sinks: Vec<Box<dyn EventSink>> =
            vec![Box::new(journal), Box::new(Fold(Rc::clone(&session))), Box::new(watch)];
        let secrets = world
            .secret
            .iter()
            .map(|secret| NamedSecret { name: "KEY".to_owned(), value: Secret::new(secret.as_str()) });
        let emitter = Emitter::new(Rc::clone(&source), format!("run-{number}"), known.about.next_seq, sinks);
        let emitter = Rc::new(emitter.redacting(Arc::new(Redactor::new(secrets))));
        let mut models =
            world.kinds.iter().zip(world.limits.models.iter()).enumerate().map(|(place, (kind, terms))| {
                self.shared.count("model", &format!("{kind:?}"));
                let random = Random::new(world.seed, 100 + (number * 10 + place) as u64);
                let (shared, source, terms) = (Rc::clone(&self.shared), Rc::clone(&source), terms.clone());
                Rc::new(Model { kind: *kind, terms, shared, source, random }) as Rc<dyn LlmClient>
            });
        Agent {
            models: Chain { first: models.next().unwrap(), fallbacks: models.collect() },
            engine: Rc::new(Around {
                shared: Rc::clone(&self.shared),
                emitter: Rc::clone(&emitter),
                source: Rc::clone(&source),
                random: Random::new(world.seed, 200 + number as u64),
                approvals,
                stopped: Cell::default(),
                holds: Cell::default(),
                running: RefCell::default(),
                begun: RefCell::default(),
                changed: Cell::default(),
            }),
            definitions: tools(),
            session,
            emitter,
            keeper: None,
            prefix: RefCell::new(Prefix::new(prefix)),
            digest: RefCell::default(),
            source,
            interrupt: interrupt.clone(),
            name: "coder".to_owned(),
            task: "work".to_owned(),
            stream: world.stream,
            began,
        }
    }

    /// Tells how a run begins, in the order of the command line.
    fn open(&self, agent: &Agent<Around>, known: &Known) -> Result<(), EmitError> {
        let (emitter, world) = (&agent.emitter, &self.shared.world);
        let resumed = known.about.next_seq > 0;
        if !resumed {
            let (workspace, program) = ("/work".to_owned(), "agent".to_owned());
            let session_id = format!("session-{}", world.seed);
            emitter.emit(Event::SessionStart { session_id, workspace, program, brought_from: None })?;
        }
        let began_us = u64::try_from(agent.began.as_micros()).unwrap();
        let schema = self.schema.as_ref().map(|schema| schema.text().to_owned());
        emitter.emit(Event::RunStart {
            agent: agent.name.clone(),
            model: agent.models.first.model().to_owned(),
            mode: "auto".to_owned(),
            tools: agent.definitions.iter().map(|tool| tool.name.clone()).collect(),
            max_steps: world.limits.max_steps,
            resumed,
            sandbox: "none".to_owned(),
            bounds: Some(Box::new(Bounds { began_us, limits: world.limits.clone(), schema })),
        })?;
        self.end_calls(agent)?;
        if !known.commands.gone.is_empty() {
            let text = messages::background_gone(&known.commands.gone);
            emitter.emit(Event::UserMessage { text, origin: Origin::Background })?;
        }
        let words = {
            let session = agent.session.borrow();
            let words = match resumed {
                true if session.has_task() && world.exact => {
                    session.waits_for_words().then(|| messages::GO_ON.to_owned())
                }
                true if session.has_task() && self.random.one_in(2) => {
                    session.waits_for_words().then(|| messages::GO_ON.to_owned())
                }
                _ => Some(format!("Write {} items.", world.items)),
            };
            session.with_schema(words)
        };
        if let Some(text) = words {
            emitter.emit(Event::UserMessage { text, origin: Origin::Prompt })?;
        }
        if !known.about.has_system {
            emitter.emit(Event::System { text: "Be good.".to_owned() })?;
        }
        Ok(())
    }

    /// Ends the calls that a process left that died.
    fn end_calls(&self, agent: &Agent<Around>) -> Result<(), EmitError> {
        let cut_off = agent.session.borrow().cut_off();
        for call in cut_off {
            self.shared.count("around", "a call cut off");
            agent.emitter.emit(Event::ToolEnd {
                name: call.name,
                summary: String::new(),
                result: unknown_outcome(call.id),
                changed: Vec::new(),
                seen: Vec::new(),
                denial: None,
                simulated: false,
                counted: Counted::default(),
                duration_ms: 0,
            })?;
        }
        Ok(())
    }

    /// Does the session again from its journal: every run must go as it went.
    async fn replay(&self) {
        let records = self.disk.borrow().records.clone();
        for replayed in replay(&records, None).await {
            assert!(
                matches!(replayed.outcome, Outcome::Same(_) | Outcome::CutOff),
                "a replay goes otherwise: {:?}",
                replayed.outcome
            );
            self.shared.count("run", "replayed");
        }
    }
}
