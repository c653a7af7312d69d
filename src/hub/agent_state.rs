//! What the queue knows of an agent of a Hub, over all workers: its activations, how often it failed, and what it posted.

use crate::core::fleet::TaskState;
use crate::core::hub::PostTarget;
use serde::{Deserialize, Serialize};

/// Failures in a row after which an agent is not activated for a time.
const MAX_FAILURES: u32 = 5;
/// That time; each further failure doubles it, up to the longest one. In seconds.
const FIRST_PAUSE: u64 = 60;
const MAX_PAUSE: u64 = 3600;
/// Time until an agent that was not activated is tried again, in seconds.
const NOT_DONE_PAUSE: u64 = 60;
/// Threads whose answers are counted.
const MAX_THREADS: usize = 500;
/// Seconds of a day, in which posts are counted (UTC).
const DAY: u64 = 24 * 60 * 60;

/// How much an agent may post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostLimits {
    /// Posts of a day.
    pub daily_posts: u32,
    /// Comments of a day.
    pub daily_comments: u32,
    /// Comments in one thread.
    pub per_thread: u32,
    /// Least time between two posts or comments, in seconds.
    pub min_interval: u64,
}

impl Default for PostLimits {
    fn default() -> Self {
        Self { daily_posts: 5, daily_comments: 50, per_thread: 3, min_interval: 60 }
    }
}

/// Which limit refuses a post.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostRefusal {
    /// No post before this time, in seconds since the Unix epoch.
    Until(u64, String),
    /// No more comments in this thread.
    Thread(String),
}

impl PostRefusal {
    /// Returns the reason.
    pub fn why(&self) -> &str {
        match self {
            Self::Until(_, why) | Self::Thread(why) => why,
        }
    }
}

/// The state of an agent. Times are seconds since the Unix epoch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentState {
    /// Number of the newest activation, from 1.
    pub activation: u64,
    /// When it was submitted.
    pub begun_at: u64,
    /// Whether its end was counted.
    pub is_counted: bool,
    /// Activations in a row that failed.
    pub failures: u32,
    /// The agent is not activated before.
    pub wait_until: u64,
    day: u64,
    posts: u32,
    comments: u32,
    last_post_at: Option<u64>,
    /// Comments by thread, the thread of the newest one last.
    threads: Vec<(String, u32)>,
    /// Keys of the posts of the newest activation that are counted.
    reserved: Vec<String>,
}

impl AgentState {
    /// Counts the end of the newest activation, once.
    pub fn count_end(&mut self, state: TaskState, ended_at: u64) {
        if std::mem::replace(&mut self.is_counted, true) {
            return;
        }
        match state {
            TaskState::Done => self.failures = 0,
            TaskState::Failed | TaskState::Dead => {
                self.failures = self.failures.saturating_add(1);
                let more = self.failures.checked_sub(MAX_FAILURES);
                let pause = more.map(|more| FIRST_PAUSE.saturating_mul(1 << more.min(10)).min(MAX_PAUSE));
                self.wait_until =
                    self.wait_until.max(pause.map_or(0, |pause| ended_at.saturating_add(pause)));
            }
            TaskState::Cancelled => {
                self.wait_until = self.wait_until.max(ended_at.saturating_add(NOT_DONE_PAUSE));
            }
            TaskState::Queued | TaskState::Claimed => self.is_counted = false,
        }
    }

    /// Begins the next activation, and returns its number.
    pub fn begin(&mut self, now: u64) -> u64 {
        self.activation += 1;
        self.begun_at = now;
        self.is_counted = false;
        self.reserved.clear();
        self.activation
    }

    /// Checks whether the agent may post to `target`.
    ///
    /// # Errors
    /// Which limit refuses it.
    pub fn check_post(&self, target: &PostTarget, limits: &PostLimits, now: u64) -> Result<(), PostRefusal> {
        let today = now / DAY;
        let (posts, comments) = if self.day == today { (self.posts, self.comments) } else { (0, 0) };
        let tomorrow = (today + 1) * DAY;
        let (used, most, what) = match target {
            PostTarget::Post { .. } => (posts, limits.daily_posts, "posts"),
            PostTarget::Comment { .. } => (comments, limits.daily_comments, "comments"),
        };
        if used >= most {
            return Err(PostRefusal::Until(tomorrow, format!("the limit of {most} {what} a day is reached")));
        }
        if let PostTarget::Comment { post } = target {
            let used = self.threads.iter().find(|(known, _)| known == post).map_or(0, |(_, count)| *count);
            if used >= limits.per_thread {
                let why = format!("the limit of {} comments in a thread is reached", limits.per_thread);
                return Err(PostRefusal::Thread(why));
            }
        }
        let next = self.last_post_at.map_or(0, |last| last.saturating_add(limits.min_interval));
        // A time in the future is that of another clock.
        if now < next && self.last_post_at.is_some_and(|last| last <= now) {
            let why = format!("the next post is allowed in {} seconds", next - now);
            return Err(PostRefusal::Until(next, why));
        }
        Ok(())
    }

    /// Counts the post with the key `key`, once.
    ///
    /// # Errors
    /// Which limit refuses it.
    pub fn reserve(
        &mut self,
        key: &str,
        target: &PostTarget,
        limits: &PostLimits,
        now: u64,
    ) -> Result<(), PostRefusal> {
        if self.reserved.iter().any(|known| known == key) {
            return Ok(());
        }
        self.check_post(target, limits, now)?;
        if self.day != now / DAY {
            (self.day, self.posts, self.comments) = (now / DAY, 0, 0);
        }
        match target {
            PostTarget::Post { .. } => self.posts += 1,
            PostTarget::Comment { post } => {
                self.comments += 1;
                let known = self.threads.iter().position(|(known, _)| known == post);
                let (thread, count) = known.map_or((post.clone(), 0), |at| self.threads.remove(at));
                self.threads.push((thread, count + 1));
                let more = self.threads.len().saturating_sub(MAX_THREADS);
                self.threads.drain(..more);
            }
        }
        self.last_post_at = Some(now);
        self.reserved.push(key.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comment(post: &str) -> PostTarget {
        PostTarget::Comment { post: post.to_owned() }
    }

    #[test]
    fn b10_five_failures_pause_an_agent_for_a_minute_and_each_further_one_doubles_that() {
        let mut state = AgentState::default();
        let mut pauses = Vec::new();
        for now in (10_000..).step_by(10_000).take(12) {
            state.begin(now);
            state.count_end(TaskState::Dead, now);
            state.count_end(TaskState::Dead, now);
            pauses.push(state.wait_until.saturating_sub(now));
        }
        assert_eq!(pauses, [0, 0, 0, 0, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
        state.begin(1);
        state.count_end(TaskState::Done, 1);
        assert_eq!(state.failures, 0);
    }

    #[test]
    fn b17_posts_are_limited_by_day_thread_and_interval_and_a_key_counts_once() {
        let limits = PostLimits { daily_posts: 1, daily_comments: 3, per_thread: 2, min_interval: 60 };
        let mut state = AgentState::default();
        let mut reserve = |key: &str, target: &PostTarget, now| state.reserve(key, target, &limits, now);
        assert_eq!(reserve("1", &comment("a"), 1000), Ok(()));
        assert_eq!(reserve("1", &comment("a"), 1000), Ok(()), "another attempt");
        assert!(matches!(reserve("2", &comment("b"), 1059), Err(PostRefusal::Until(1060, _))));
        assert_eq!(reserve("2", &comment("a"), 1060), Ok(()));
        assert!(matches!(reserve("3", &comment("a"), 2000), Err(PostRefusal::Thread(_))));
        assert_eq!(reserve("3", &comment("b"), 2000), Ok(()));
        assert!(matches!(reserve("4", &comment("c"), 3000), Err(PostRefusal::Until(DAY, _))));
        let post = PostTarget::Post { title: None, community: None };
        assert_eq!(reserve("5", &post, 4000), Ok(()));
        assert!(reserve("6", &post, 5000).is_err());
        assert_eq!(reserve("7", &comment("c"), DAY), Ok(()), "the next day");
    }
}
