//! Replays the runs of a journal without model, tools and network, and checks that they decide the same again.
//!
//! With [`LiveTools`] the tool calls are repeated too.
//!
//! The loop and the session are the real ones. The `playback::Playback` supplies everything external (answers, results, hooks, guardrail
//! verdicts, interrupts, times) in the recorded order, and compares the events of the loop with the recorded ones.

mod divergence;
mod live_tools;
mod playback;
mod recorded_services;
mod replayed_files;
mod workspace_paths;

use crate::Agent;
use crate::agent_loop;
use crate::output_schema::OutputSchema;
use crate::session::Session;
use agent_core::event::{Event, Record};
use agent_core::limits::{FallbackChain, RunLimits};
use agent_core::stop_reason::StopReason;
use agent_llm::LlmClient;
use agent_runtime::clock::Clock;
use agent_runtime::emitter::Emitter;
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

/// The result of one replayed run.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedRun {
    /// Sequence number of its first record.
    pub from_seq: u64,
    /// Number of records played back or compared.
    pub records: usize,
    /// Number of requests whose digest was compared.
    pub digests: usize,
    /// Number of requests.
    pub requests: usize,
    /// How the replay ended.
    pub outcome: ReplayOutcome,
}

/// How the replay of a run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayOutcome {
    /// Equal to the journal up to the end of the run, with its stop reason.
    Same(Option<StopReason>),
    /// Equal to the journal, which ends before the run: the process was killed.
    Incomplete,
    /// Equal to the journal up to the missing record with this number.
    MissingRecord(u64),
    /// Different from the journal.
    Differs(Box<Divergence>),
    /// Not replayed, because the journal does not contain the limits of the run, for this reason.
    Unknown(String),
    /// Equal to the journal until the user interrupted the replay.
    Interrupted,
}

/// Replays the runs of a journal in order, up to the first that differs; with `live`, repeats their calls.
pub async fn replay(records: &[Record], live: Option<&LiveTools>) -> Vec<ReplayedRun> {
    let mut replayed = Vec::new();
    let begins = |record: &Record| matches!(record.event, Event::RunStart { .. });
    for (at, _) in records.iter().enumerate().filter(|(_, record)| begins(record)) {
        let (before, rest) = records.split_at(first_of_run(records, at));
        let one = replay_run(before, rest, live).await;
        let is_unchanged = matches!(one.outcome, ReplayOutcome::Same(_) | ReplayOutcome::Incomplete);
        replayed.push(one);
        if !is_unchanged {
            break;
        }
    }
    replayed
}

/// Returns the position of the first record of the run that starts at `at`.
fn first_of_run(records: &[Record], at: usize) -> usize {
    let before = at.checked_sub(1).and_then(|before| records.get(before));
    let is_session_start = |record: &Record| matches!(record.event, Event::SessionStart { .. });
    at.saturating_sub(usize::from(before.is_some_and(is_session_start)))
}

/// Returns the records of the first run in `rest`, and the number of a record that is missing in or before them.
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
        // Internal requests are derived from the conversation, whose other requests have a digest.
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
        (None | Some(None), _) => ReplayOutcome::Unknown("its limits are not in the journal".to_owned()),
        (Some(Some(bounds)), lacks) => match (replay_bounded(before, own, bounds, live).await, lacks) {
            (Ok(ReplayOutcome::Incomplete), Some(seq)) => ReplayOutcome::MissingRecord(seq),
            (Ok(outcome), _) => outcome,
            (Err(reason), _) => ReplayOutcome::Unknown(reason),
        },
    };
    replayed
}

/// Replays a run that was limited by `bounds`.
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
        total_budget: None,
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
        // Events of planning and preview, which follow the hooks of the start.
        playback.skip_startup();
        Ok(())
    };
    if let Ok(outcome) = agent_loop::run_to_end(&agent, given).await {
        let mut result = agent.session.borrow().result(outcome, agent.elapsed());
        playback.copy_file_findings(&mut result);
        // The end of the playback reports whether this event was recorded.
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
