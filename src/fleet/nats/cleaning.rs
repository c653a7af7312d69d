//! Removes old tasks from a server, and corrects which ones are open.

use crate::core::fleet::TaskState;
use crate::fleet::error::QueueError;
use crate::fleet::nats::NatsStore;
use crate::fleet::nats::open_tasks::is_open;
use crate::fleet::nats::records::Stored;

impl NatsStore {
    /// Removes tasks that ended before `oldest`, and corrects which ones are open.
    ///
    /// # Errors
    /// Fails when the server does not answer.
    pub(in crate::fleet) async fn clean(&self, oldest: u64) -> Result<(), QueueError> {
        let mut left_over = self.buckets.open_ids().await?;
        let (mut old, mut unmarked) = (Vec::new(), Vec::new());
        let mut sort = |stored: Stored| {
            let Stored { task, .. } = &stored;
            let is_old = task.state.has_ended() && task.changed_at < oldest;
            if is_old && (task.settled || task.state != TaskState::Done) {
                old.push(stored);
            } else if is_open(task) && !left_over.remove(&task.id) {
                unmarked.push(task.id.clone());
            }
        };
        self.buckets.each(&mut sort).await?;
        for stored in old {
            left_over.insert(stored.task.id.clone());
            self.buckets.remove(&stored).await?;
        }
        for id in &unmarked {
            self.buckets.mark_open(id).await?;
        }
        for id in &left_over {
            self.buckets.mark_closed(id).await?;
        }
        Ok(())
    }
}
