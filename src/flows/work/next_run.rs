//! What a run does whose session may have begun before: it starts, goes on, or has ended.

use agent_core::budget_share::Amount;
use agent_core::event::{Event, Record};
use agent_core::message_origin::MessageOrigin;
use agent_core::run_result::RunResult;
use agent_core::usage::Usage;
use agent_journal::read;
use agent_journal::session_store::{SessionError, SessionStore};
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::preparation::Preparation;
use agent_run::request::Task;
use std::collections::BTreeSet;

/// What a run does next.
pub enum NextRun {
    /// Nothing: it ended with this result.
    Ended(Box<RunResult>),
    /// It performs `task` as the session `session_id`, which has used `spent` before.
    Start {
        /// Id of the session.
        session_id: String,
        /// A new session, or the rest of an interrupted one.
        task: Task,
        /// Known cost and tokens of its recorded model calls.
        spent: Amount,
    },
}

impl NextRun {
    /// Returns what the run of `task`, a new session, does next; `session_id` is the id of its session, if the session may exist in `sessions`.
    /// A run with a result that `goes_on` is resumed too.
    ///
    /// # Errors
    /// Fails when the journal of the session cannot be read.
    pub fn of(
        app: &App,
        sessions: &SessionStore,
        session_id: Option<&str>,
        goes_on: fn(&RunResult) -> bool,
        task: &Task,
    ) -> AppResult<Self> {
        let interrupted = match session_id {
            Some(id) => Some((id, Interrupted::read(sessions, id, goes_on)?)),
            None => None,
        };
        let (id, has_task, spent) = match interrupted {
            Some((_, Interrupted::Ended(result))) => return Ok(Self::Ended(result)),
            Some((id, Interrupted::Within { has_task, spent })) => (id.to_owned(), has_task, spent),
            None | Some((_, Interrupted::Before)) => {
                let (session_id, task) = (app.source.session_id(), task.clone());
                return Ok(Self::Start { session_id, task, spent: Amount::default() });
            }
        };
        let task = match task {
            Task::New { prompt, preparation, .. } if !has_task => {
                Task::resume(&id, prompt).with_preparation(preparation.clone())
            }
            // What follows the prompt was recorded with it.
            _ => Task::Resume { id: Some(id.clone()), prompt: None, preparation: Preparation::default() },
        };
        Ok(Self::Start { session_id: id, task, spent })
    }
}

/// Checks whether a run ended within the calls of its first answer: another one costs one answer, and has no call with an unknown outcome.
///
/// # Errors
/// Fails when the journal of the session cannot be read.
pub fn is_cut_in_first_calls(sessions: &SessionStore, session_id: &str) -> AppResult<bool> {
    let Some(records) = records_of(sessions, session_id)? else { return Ok(false) };
    let (mut answers, mut open) = (0, BTreeSet::new());
    for record in &records {
        match &record.event {
            Event::ModelResponse { message, .. } => {
                answers += 1;
                open.extend(message.tool_calls().map(|call| &call.id));
            }
            Event::ToolCallEnd { result, .. } => drop(open.remove(&result.call_id)),
            _ => {}
        }
    }
    Ok(answers == 1 && !open.is_empty())
}

/// Returns the records of a session, if there is one.
fn records_of(sessions: &SessionStore, session_id: &str) -> AppResult<Option<Vec<Record>>> {
    let path = match sessions.journal_path(session_id) {
        Ok(path) => path,
        Err(SessionError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match read::read(&path) {
        Ok(contents) => Ok(Some(contents.records)),
        Err(error) => Err(SessionError::Unreadable(session_id.to_owned(), error.to_string()).into()),
    }
}

/// How far the session of an interrupted run came.
enum Interrupted {
    /// Its run ended.
    Ended(Box<RunResult>),
    /// It was not created, or its journal has no record.
    Before,
    /// Its run has no end.
    Within { has_task: bool, spent: Amount },
}

impl Interrupted {
    fn read(sessions: &SessionStore, session_id: &str, goes_on: fn(&RunResult) -> bool) -> AppResult<Self> {
        let Some(records) = records_of(sessions, session_id)?.filter(|records| !records.is_empty()) else {
            return Ok(Self::Before);
        };
        let (mut has_task, mut end, mut spent) = (false, None, Amount::default());
        for record in records {
            spent = spent + used(&record.event);
            match record.event {
                Event::UserMessage { origin: MessageOrigin::Prompt, .. } => has_task = true,
                Event::RunStart { .. } => end = None,
                Event::RunEnd { result } => end = Some(result),
                _ => {}
            }
        }
        Ok(match end {
            Some(result) if !goes_on(&result) => Self::Ended(result),
            _ => Self::Within { has_task, spent },
        })
    }
}

/// Returns the known cost and tokens of a recorded model call, also of one by a subagent.
fn used(event: &Event) -> Amount {
    match event {
        Event::ModelResponse { cost_usd, usage, .. } => {
            Amount { usd: cost_usd.unwrap_or_default(), tokens: usage.map_or(0, tokens) }
        }
        Event::Subagent { event, .. } => used(event),
        _ => Amount::default(),
    }
}

/// Returns the tokens of a model call that count for a budget.
pub fn tokens(usage: Usage) -> u64 {
    usage.prompt_tokens().saturating_add(usage.output)
}
