//! Messages that tell workers to look at the record of a task. A worker holds the message while it does the task.

use crate::error::QueueError;
use crate::nats::buckets::{Buckets, away};
use agent_core::fleet::{AttemptKey, TaskRecord};
use agent_core::hub::Lane;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{DeleteMessageErrorKind, LastRawMessageErrorKind};
use async_nats::jetstream::{AckKind, Message};
use futures_util::stream::StreamExt;
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// Error of a server which has a message about the task already.
const HAS_ONE: &str = "maximum messages per subject exceeded";

/// Longest wait for a message.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Messages that are published before the server has confirmed the first one.
const MAX_UNCONFIRMED: usize = 256;

/// The messages of a worker.
#[derive(Default)]
pub(super) struct Hints {
    consumers: OnceCell<Vec<PullConsumer>>,
    /// Those about the attempts of this worker.
    held: RefCell<HashMap<AttemptKey, Message>>,
}

impl Hints {
    /// Returns the next message of the most urgent tasks of `lane` with one. A worker has one lane.
    pub(super) async fn next(&self, buckets: &Buckets, lane: Lane) -> Result<Option<Message>, QueueError> {
        for consumer in self.consumers.get_or_try_init(|| buckets.consumers(lane)).await? {
            let mut batch = consumer.fetch().max_messages(1).messages().await.map_err(away)?;
            // Without a message the server answers at once; version 2.9 does not answer at all if its count of them is wrong.
            if let Ok(Some(message)) = timeout(MAX_WAIT, batch.next()).await {
                return message.map(Some).map_err(away);
            }
        }
        Ok(None)
    }

    /// Holds the message about a task while an attempt is made.
    pub(super) fn hold(&self, attempt: AttemptKey, message: Message) {
        self.held.borrow_mut().insert(attempt, message);
    }

    /// Forgets the message about an attempt that another one has replaced.
    pub(super) fn forget(&self, attempt: AttemptKey) {
        self.held.borrow_mut().remove(&attempt);
    }

    /// Keeps the server from giving the message of an attempt to another worker.
    pub(super) async fn renew(&self, attempt: AttemptKey) -> Result<(), QueueError> {
        let message = self.held.borrow().get(&attempt).cloned();
        match message {
            Some(message) => message.ack_with(AckKind::Progress).await.map_err(away),
            None => Ok(()),
        }
    }

    /// Removes the message of an attempt that has ended; returns whether this worker had one.
    pub(super) async fn release(&self, attempt: AttemptKey) -> Result<bool, QueueError> {
        let message = self.held.borrow_mut().remove(&attempt);
        match message {
            Some(message) => message.double_ack().await.map_err(away).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Lets the server deliver a message again after `wait`.
pub(super) async fn postpone(message: &Message, wait: Duration) -> Result<(), QueueError> {
    message.ack_with(AckKind::Nak(Some(wait))).await.map_err(away)
}

impl Buckets {
    /// Publishes messages about tasks, in this order, in place of others about them.
    pub(super) async fn publish_again(&self, tasks: &[&TaskRecord]) -> Result<(), QueueError> {
        for task in tasks {
            self.remove_hint(task).await?;
        }
        self.publish_missing(tasks).await
    }

    /// Publishes messages about tasks that were published earlier, in this order, unless there are some.
    pub(super) async fn publish_missing(&self, tasks: &[&TaskRecord]) -> Result<(), QueueError> {
        self.publish(tasks, |_| PublishMessage::build()).await
    }

    /// Publishes the first messages about new tasks, in this order. Only these have an id (`Nats-Msg-Id`): the server drops another one with
    /// the same id for two minutes, and one that is published again must not be dropped.
    pub(super) async fn publish_new(&self, tasks: &[&TaskRecord]) -> Result<(), QueueError> {
        let with_id = |task: &TaskRecord| {
            // A later task with the same id has another number.
            PublishMessage::build().message_id(format!("{}-{}-{}", task.id, task.number, task.attempt))
        };
        self.publish(tasks, with_id).await
    }

    /// Removes the message about a task. A purge would do so too, but lets consumers of version 2.9 pass over the messages of other tasks.
    pub(super) async fn remove_hint(&self, task: &TaskRecord) -> Result<(), QueueError> {
        let subject = self.subject(task);
        let message = match self.hints.get_last_raw_message_by_subject(&subject).await {
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(()),
            message => message.map_err(away)?,
        };
        match self.hints.delete_message(message.sequence).await {
            // It was acknowledged meanwhile.
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), DeleteMessageErrorKind::JetStream(_)) => Ok(()),
            Err(error) => Err(away(error)),
        }
    }

    async fn publish(
        &self,
        tasks: &[&TaskRecord],
        build: impl Fn(&TaskRecord) -> PublishMessage,
    ) -> Result<(), QueueError> {
        for tasks in tasks.chunks(MAX_UNCONFIRMED) {
            let mut confirmations = Vec::with_capacity(tasks.len());
            for task in tasks {
                let message = build(task).payload(task.id.clone().into());
                let subject = self.subject(task);
                confirmations.push(self.context.send_publish(subject, message).await.map_err(away)?);
            }
            for confirmation in confirmations {
                match confirmation.await {
                    Ok(_) => {}
                    Err(error) if error.to_string().contains(HAS_ONE) => {}
                    Err(error) => return Err(away(error)),
                }
            }
        }
        Ok(())
    }
}
