//! Feeds the queue with activations: at most one task of an agent waits or is done at a time.

use crate::error::QueueError;
use crate::hub::agent_state::AgentState;
use crate::queue::Queue;
use agent_core::fleet::{TaskSpec, check_id};
use agent_core::hub::{Activation, ActivationKind};

/// Attempts of an activation.
const MAX_ATTEMPTS: u32 = 3;
/// Time in which another process may be about to submit a task, in seconds. A later submission has no effect: see [`start`].
const SUBMISSION: u64 = 10;
/// Most characters of the id of an agent, which is a part of the ids of its tasks.
const MAX_AGENT_CHARS: usize = 40;
/// Activations of an agent whose records are kept: a queue has a limit of tasks.
const KEPT: u64 = 3;
/// Characters of the queue's id in the ids of its activations.
const QUEUE_CHARS: usize = 8;

/// What became of an activation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fed {
    /// Its task was submitted.
    Submitted(String),
    /// The agent has a task that has not ended, with this id.
    Open(String),
    /// Its only unread notifications are passed over.
    Nothing,
    /// The agent waits until this time, in seconds since the Unix epoch.
    Waits(u64),
    /// The id of the agent cannot be a part of the id of a task.
    Unusable,
}

/// Returns the key of the state of an agent.
pub fn state_key(agent: &str) -> String {
    format!("agent.{agent}")
}

/// Submits an activation, unless the agent has one, or waits, and removes the record of an old one. An agent explores again only `min_interval`
/// seconds after its last activation. `unread`: the number of its unread notifications, if it is known.
///
/// # Errors
/// Fails when the queue cannot be used.
pub async fn feed(
    queue: &Queue,
    activation: Activation,
    unread: Option<u64>,
    min_interval: u64,
    now: u64,
) -> Result<Fed, QueueError> {
    let agent = &activation.agent.clone();
    // In a key of the configuration a dot would separate two names.
    if check_id(agent).is_err() || agent.contains('.') || agent.len() > MAX_AGENT_CHARS {
        return Ok(Fed::Unusable);
    }
    let key = state_key(agent);
    let known: AgentState = queue.change_value(&key, |state: &mut AgentState| state.clone()).await?;
    let explores = activation.kind == ActivationKind::Exploration;
    if !explores && unread.is_some_and(|unread| unread <= known.passed_over.into()) {
        return Ok(Fed::Nothing);
    }
    let newest = task_id(queue, agent, known.activation);
    let mut end = None;
    if known.activation > 0 && !known.is_counted {
        match queue.record(&newest).await {
            Ok(task) if !task.state.has_ended() => return Ok(Fed::Open(newest)),
            Ok(task) => end = Some(task),
            Err(QueueError::Unknown(_)) if now < known.begun_at.saturating_add(SUBMISSION) => {
                return Ok(Fed::Open(newest));
            }
            // Its process was killed before it could submit the task.
            Err(QueueError::Unknown(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let begun = queue
        .change_value(&key, |state: &mut AgentState| {
            let has_just_started = state.has_started != known.has_started;
            if state.activation != known.activation || has_just_started {
                return Err(Fed::Open(task_id(queue, agent, state.activation)));
            }
            if let Some(task) = &end {
                state.count_end(task);
            }
            let next = if explores { state.begun_at.saturating_add(min_interval) } else { 0 };
            let until = if state.activation > 0 { state.wait_until.max(next) } else { 0 };
            if now < until { Err(Fed::Waits(until)) } else { Ok(state.begin(now)) }
        })
        .await?;
    match begun {
        Err(fed) => Ok(fed),
        Ok(number) => {
            let id = task_id(queue, agent, number);
            let spec = TaskSpec::of_activation(activation, MAX_ATTEMPTS);
            queue.submit(&[(id.clone(), spec)], now).await?;
            if let Some(old) = number.checked_sub(KEPT).filter(|old| *old > 0) {
                match queue.remove(&[task_id(queue, agent, old)]).await {
                    Ok(()) | Err(QueueError::Unknown(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(Fed::Submitted(id))
        }
    }
}

/// Records that `task` starts, if it is the newest activation of the agent; returns whether it is. An earlier one may be submitted late, by a
/// process that was stopped meanwhile.
///
/// # Errors
/// Fails when the queue cannot be used.
pub async fn start(queue: &Queue, agent: &str, task: &str) -> Result<bool, QueueError> {
    let start = |state: &mut AgentState| {
        let is_newest = task_id(queue, agent, state.activation) == task;
        state.has_started |= is_newest;
        is_newest
    };
    queue.change_value(&state_key(agent), start).await
}

/// Returns the id of an activation. It begins the keys of its posts, which the Hub remembers: in it is a part of the queue's random id, so that
/// another queue has other keys.
fn task_id(queue: &Queue, agent: &str, number: u64) -> String {
    let id = queue.id().replace('-', "");
    let part = id.get(id.len().saturating_sub(QUEUE_CHARS)..).unwrap_or(&id);
    format!("hub-{agent}-{part}-{number}")
}
