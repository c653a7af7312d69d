//! Runs of a journal, done again without model, tools and network: what they decided must follow once more from what the
//! journal says that happened to them. With a [`LiveTools`] the tools are called again too.
//!
//! The loop is the real one, and so is the session. Around them stands the `playback::Playback`: it gives what came from outside
//! (answers, results, hooks, verdicts of guardrails, interrupts, times) when its turn has come, and compares what the loop
//! tells with what it told then.

mod divergence;
mod live_tools;
mod playback;
mod recorded_services;
mod replayed_files;
mod workspace_paths;

use crate::agent::Agent;
use crate::agent::output_schema::OutputSchema;
use crate::agent::run;
use crate::agent::session::Session;
use crate::core::event::{Event, Record};
use crate::core::limits::{FallbackChain, RunLimits};
use crate::core::stop_reason::StopReason;
use crate::llm::LlmClient;
use crate::runtime::clock::Clock;
use crate::runtime::emitter::Emitter;
pub use divergence::Divergence;
pub use live_tools::{LastToolEnd, LiveTools, RerunCounts};
use playback::{Playback, PlaybackEnd, PlaybackSink};
use recorded_services::{RecordedModel, RecordedServices};
pub use replayed_files::ReplayedFiles;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
pub use workspace_paths::WorkspacePaths;

/// What became of one run that was done again.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedRun {
    /// The number of its first record.
    pub from_seq: u64,
    /// How many of its records were given or compared.
    pub records: usize,
    /// How many of its requests could be compared with what was asked.
    pub digests: usize,
    /// How many requests there are.
    pub requests: usize,
    /// How it went.
    pub outcome: ReplayOutcome,
}

/// How a run went that was done again.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayOutcome {
    /// As the journal says, to its end for this reason.
    Same(Option<StopReason>),
    /// As the journal says, which ends before the run did: its process was killed.
    Incomplete,
    /// As the journal says up to a place where it lacks the record with this number.
    MissingRecord(u64),
    /// Otherwise than the journal says.
    Differs(Box<Divergence>),
    /// Not at all: the journal does not say what the run was held to, for this reason.
    Unknown(String),
    /// As the journal says until the person asked to stop.
    Interrupted,
}

/// Does the runs of a journal again, in order, up to the first that does not go as `records` say; their calls with `live`.
pub async fn replay(records: &[Record], live: Option<&LiveTools>) -> Vec<ReplayedRun> {
    let mut replayed = Vec::new();
    let begins = |record: &Record| matches!(record.event, Event::RunStart { .. });
    for (at, _) in records.iter().enumerate().filter(|(_, record)| begins(record)) {
        let (before, rest) = records.split_at(first_of_run(records, at));
        let one = replay_run(before, rest, live).await;
        let goes_on = matches!(one.outcome, ReplayOutcome::Same(_) | ReplayOutcome::Incomplete);
        replayed.push(one);
        if !goes_on {
            break;
        }
    }
    replayed
}

/// Where the records of the run begin whose start is at `at`.
fn first_of_run(records: &[Record], at: usize) -> usize {
    let before = at.checked_sub(1).and_then(|before| records.get(before));
    let is_session_start = |record: &Record| matches!(record.event, Event::SessionStart { .. });
    at.saturating_sub(usize::from(before.is_some_and(is_session_start)))
}

/// The records of the run that `rest` begins with, and the number of the one that is lacking in or before them.
fn first_run_records<'a>(before: &[Record], rest: &'a [Record]) -> (&'a [Record], Option<u64>) {
    let run = rest.first().map(|record| record.run.as_str());
    let own = rest.iter().take_while(|record| Some(record.run.as_str()) == run).count();
    let own = rest.get(..own).unwrap_or_default();
    let mut next = before.last().map_or(0, |record| record.seq.saturating_add(1));
    for (at, record) in own.iter().enumerate() {
        if record.seq != next {
            return (own.get(..at).unwrap_or_default(), Some(next));
        }
        next = next.saturating_add(1);
    }
    (own, None)
}

async fn replay_run(before: &[Record], rest: &[Record], live: Option<&LiveTools>) -> ReplayedRun {
    let (own, lacks) = first_run_records(before, rest);
    let digest_of = |record: &Record| match &record.event {
        // What is asked aside is made from the conversation, whose other requests show it.
        Event::StepStart { purpose, digest, .. } if !purpose.is_internal() => Some(digest.is_some()),
        _ => None,
    };
    let mut replayed = ReplayedRun {
        from_seq: rest.first().map_or(0, |record| record.seq),
        records: own.len(),
        digests: own.iter().filter_map(digest_of).filter(|has| *has).count(),
        requests: own.iter().filter_map(digest_of).count(),
        outcome: ReplayOutcome::Incomplete,
    };
    let bounds = own.iter().find_map(|record| match &record.event {
        Event::RunStart { bounds, .. } => Some(bounds.as_deref()),
        _ => None,
    });
    replayed.outcome = match (bounds, lacks) {
        (None, Some(seq)) => ReplayOutcome::MissingRecord(seq),
        (None | Some(None), _) => {
            ReplayOutcome::Unknown("an earlier version of agent has written it".to_owned())
        }
        (Some(Some(bounds)), lacks) => match (replay_bounded(before, own, bounds, live).await, lacks) {
            (Ok(ReplayOutcome::Incomplete), Some(seq)) => ReplayOutcome::MissingRecord(seq),
            (Ok(outcome), _) => outcome,
            (Err(why), _) => ReplayOutcome::Unknown(why),
        },
    };
    replayed
}

/// Does a run again that was held to `bounds`.
async fn replay_bounded(
    before: &[Record],
    own: &[Record],
    bounds: &RunLimits,
    live: Option<&LiveTools>,
) -> Result<ReplayOutcome, String> {
    let schema = bounds.schema.as_deref().map(OutputSchema::parse);
    let schema = schema.transpose().map_err(|error| format!("its schema {error}"))?.map(Rc::new);
    let session = Session::from_records(bounds.limits.clone(), before).with_output_schema(schema);
    let session = Rc::new(RefCell::new(session));
    let (source, interrupt) = (Rc::new(Clock::manual()), CancellationToken::new());
    let playback =
        Rc::new(Playback::new(own.to_vec(), Rc::clone(&session), Rc::clone(&source), interrupt.clone()));
    let teller = Box::new(PlaybackSink(Rc::clone(&playback)));
    let emitter = Rc::new(Emitter::new(Rc::clone(&source), String::new(), 0, vec![teller]));
    let model = |name: &str| -> Rc<dyn LlmClient> {
        Rc::new(RecordedModel { name: name.to_owned(), playback: Rc::clone(&playback) })
    };
    let FallbackChain { first, fallbacks } = &bounds.limits.models;
    playback.skip_startup();
    if let Some(live) = live {
        live.start_run(before, own);
    }
    let agent = Agent {
        models: FallbackChain {
            first: model(&first.model),
            fallbacks: fallbacks.iter().map(|terms| model(&terms.model)).collect(),
        },
        engine: Rc::new(RecordedServices { playback: Rc::clone(&playback), live }),
        definitions: Vec::new(),
        session: Rc::clone(&session),
        emitter,
        state_saver: None,
        prefix: RefCell::default(),
        digest: RefCell::default(),
        source,
        interrupt,
        name: String::new(),
        task: String::new(),
        stream: false,
        started_at: Duration::from_micros(bounds.began_us),
    };
    let given = async {
        // What was planned and shown before the work, behind the hooks of the beginning.
        playback.skip_startup();
        Ok(())
    };
    if let Ok(outcome) = run::run(&agent, given).await {
        let mut result = agent.session.borrow().result(outcome, agent.elapsed());
        result.executables = playback.executables();
        // Whether it was told then is what the end of the playback says.
        let _ = agent.emitter.emit(Event::RunEnd { result: Box::new(result) });
    }
    Ok(match playback.end() {
        PlaybackEnd::Same(reason) => ReplayOutcome::Same(reason),
        PlaybackEnd::Incomplete if live.is_some_and(|live| live.interrupt.is_cancelled()) => {
            ReplayOutcome::Interrupted
        }
        PlaybackEnd::Incomplete => ReplayOutcome::Incomplete,
        PlaybackEnd::Differs(divergence) => ReplayOutcome::Differs(divergence),
    })
}
