//! The activations of one agent (`agent worker --hub --agent ID`): the worker itself feeds the queue with them.

use crate::commands::context::WorkerContext;
use crate::commands::hub::context::HubContext;
use crate::hub::feed::{Fed, feed};
use agent_core::fleet::TaskRecord;
use agent_core::hub::{Activation, ActivationKind, Lane};
use agent_messages as messages;
use agent_run::error::AppResult;
use agent_terminal::Style;

/// Claims the activation of `agent` for the worker called `name`: for a notification if it has one, else to look for posts. With `is_asked_for`
/// it does not wait for the time between two looks for posts.
///
/// # Errors
/// Fails when the queue cannot be used, and when the Hub refuses.
pub async fn claim(
    worker: &WorkerContext<'_>,
    hub: &HubContext,
    agent: &str,
    is_asked_for: bool,
    name: &str,
) -> AppResult<Option<TaskRecord>> {
    let definition = hub.definition(agent, |text| worker.log(Style::Warning, text))?;
    let unread = match worker.lane {
        Lane::Hub(None | Some(ActivationKind::Notification)) => match hub.client.notifications(agent).await {
            Err(error) if error.may_pass() && !is_asked_for => {
                worker.log(Style::Warning, &messages::hub_away(&error.to_string(), worker.language));
                return Ok(None);
            }
            unread => unread?.len() as u64,
        },
        _ => 0,
    };
    let min_interval = if is_asked_for { 0 } else { hub.settings.min_activation_interval.into() };
    let fed_with = async |kind: ActivationKind, unread: Option<u64>| {
        let activation = Activation { agent: agent.to_owned(), kind };
        worker.or_later(feed(&worker.queue, activation, unread, min_interval, worker.now()).await)
    };
    let mut fed = Some(Fed::Nothing);
    if unread > 0 {
        fed = fed_with(ActivationKind::Notification, Some(unread)).await?;
    }
    let may_explore = !matches!(worker.lane, Lane::Hub(Some(ActivationKind::Notification)));
    if fed == Some(Fed::Nothing) && may_explore && definition.explores {
        fed = fed_with(ActivationKind::Exploration, None).await?;
    }
    match fed {
        Some(Fed::Submitted(id) | Fed::Open(id)) => {
            let open = worker.or_later(worker.queue.record(&id).await)?;
            if !open.is_some_and(|task| task.spec.is_of(worker.lane)) {
                return Ok(None);
            }
            let claimed = worker.queue.claim_activation(&id, name, worker.now()).await;
            Ok(worker.or_later(claimed)?.flatten())
        }
        Some(Fed::Unusable) => {
            worker.log(Style::Warning, &messages::hub_unusable_agent(agent, worker.language));
            Ok(None)
        }
        Some(Fed::Waits(until)) => {
            let seconds = until.saturating_sub(worker.now());
            worker.log(Style::Warning, &messages::hub_agent_waits(agent, seconds, worker.language));
            Ok(None)
        }
        Some(Fed::Nothing) | None => Ok(None),
    }
}
