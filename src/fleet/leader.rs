//! The leader: of several processes that could feed a queue, the one that does.
//!
//! The leader counts up a value of the queue again and again. Another process takes over when the value has not changed for some time of its
//! own clock: no two clocks are compared, and none that is set changes anything. On NATS the value is a lease, which the server removes too.

use crate::error::QueueError;
use crate::queue::Queue;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::time::Duration;
use tokio::time::Instant;

/// The key of the value.
pub const KEY: &str = "leader";
/// Time after which a leader that does not count up is replaced: others look each few seconds, so that it takes less than 30.
pub const MAX_SILENCE: Duration = Duration::from_secs(20);

/// The value: the name of the leader, empty without one, and how often it has counted up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Leader {
    name: String,
    count: u64,
}

/// A process that can be the leader.
pub struct Candidate {
    name: String,
    /// The leader that was seen last, and since when it has not counted up.
    seen: RefCell<(Leader, Instant)>,
}

impl Candidate {
    /// Creates a candidate, whose `name` no other one has.
    pub fn new(name: String) -> Self {
        Self { name, seen: RefCell::new((Leader::default(), Instant::now())) }
    }

    /// Becomes the leader if there is none, or counts up if it is the leader; returns whether it is.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn lead(&self, queue: &Queue) -> Result<bool, QueueError> {
        let (seen, since) = self.seen.borrow().clone();
        let is_silent = since.elapsed() >= MAX_SILENCE;
        let lead = |leader: &mut Leader| {
            let leads = leader.name.is_empty() || leader.name == self.name || is_silent && *leader == seen;
            if leads {
                *leader = Leader { name: self.name.clone(), count: leader.count.wrapping_add(1) };
            }
            (leads, leader.clone())
        };
        let (leads, leader) = queue.change_value(KEY, lead).await?;
        if leader != seen {
            self.seen.replace((leader, Instant::now()));
        }
        Ok(leads)
    }

    /// Lets another process be the leader, if this one is.
    ///
    /// # Errors
    /// Fails when the store cannot be used.
    pub async fn resign(&self, queue: &Queue) -> Result<(), QueueError> {
        let resign = |leader: &mut Leader| {
            if leader.name == self.name {
                leader.name.clear();
            }
        };
        queue.change_value(KEY, resign).await
    }
}
