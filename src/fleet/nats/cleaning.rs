//! Removes old tasks from a server, and corrects which ones are open.

use crate::error::QueueError;
use crate::nats::NatsStore;
use crate::nats::open_tasks::is_open;
use crate::nats::records::Stored;
use agent_core::fleet::TaskState;

/// Time, in seconds, after which a mark is no longer that of a task that is about to be submitted.
const SUBMISSION: u64 = 3_600;

impl NatsStore {
    /// Removes tasks that ended before `oldest`, and corrects which ones are open. `now`, too, is in seconds since the Unix epoch.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub(crate) async fn clean(&self, now: u64, oldest: u64) -> Result<(), QueueError> {
        let mut left_over = self.buckets.open_ids().await?;
        let (mut old, mut unmarked) = (Vec::new(), Vec::new());
        let mut sort = |stored: Stored, revision: u64| {
            let task = &stored.task;
            let is_old = task.state.has_ended() && task.changed_at < oldest;
            if is_old && (task.settled || task.state != TaskState::Done) {
                old.push((stored, revision));
            } else if is_open(task) && !left_over.remove(&task.id) {
                unmarked.push(task.id.clone());
            }
        };
        self.buckets.each(&mut sort).await?;
        for (stored, revision) in &old {
            self.buckets.remove(stored, *revision).await?;
        }
        for id in &unmarked {
            self.buckets.mark_open(id).await?;
        }
        for id in &left_over {
            let mark = self.buckets.open_mark(id).await?;
            if let Some(mark) = mark.filter(|mark| mark.made_at.saturating_add(SUBMISSION) < now) {
                self.buckets.remove_mark(&mark).await?;
            }
        }
        Ok(())
    }
}
