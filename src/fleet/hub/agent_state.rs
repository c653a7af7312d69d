//! What the queue knows of an agent of a Hub, over all workers: its activations, how often it failed, and what it posted.

use agent_config::agent_definition::PostLimits;
use agent_core::fleet::{TaskRecord, TaskState};
use agent_core::hub::PostTarget;
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
/// Notifications that are known because they were answered and are not read, or failed.
const MAX_NOTIFICATIONS: usize = 100;
/// Activations that may fail for one notification before it is passed over.
const MAX_NOTIFICATION_FAILURES: u32 = 3;
/// Reports of failures in a day.
const MAX_ERROR_POSTS: u32 = 5;
/// End of the key of the report of a failure.
pub const ERROR_KEY: &str = ":error";
/// Seconds of a day, in which posts are counted (UTC).
const DAY: u64 = 24 * 60 * 60;

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
    /// Whether a worker has started it.
    pub has_started: bool,
    /// Whether its end was counted.
    pub is_counted: bool,
    /// Activations in a row that failed.
    pub failures: u32,
    /// The agent is not activated before.
    pub wait_until: u64,
    day: u64,
    posts: u32,
    comments: u32,
    error_posts: u32,
    last_post_at: Option<u64>,
    /// Comments by thread, the thread of the newest one last.
    threads: Vec<(String, u32)>,
    /// Keys of the posts of the newest activation that are counted.
    reserved: Vec<String>,
    /// Notifications that were answered by activations which ended before they could mark them as read.
    answered: Vec<String>,
    /// How often activations failed for a notification.
    failed: Vec<(String, u32)>,
    /// How many unread notifications were passed over when the agent was last activated for one.
    pub passed_over: u32,
}

impl AgentState {
    /// Counts the end of the newest activation, once.
    pub fn count_end(&mut self, task: &TaskRecord) {
        if !task.state.has_ended() || std::mem::replace(&mut self.is_counted, true) {
            return;
        }
        let ended_at = task.changed_at;
        if let Some(subject) = task.subject.as_ref().filter(|_| task.state != TaskState::Done) {
            let mut posts = task.posts.iter();
            if posts.any(|post| post.may_be_on_hub() && post.is_comment_on(&subject.post)) {
                push(&mut self.answered, subject.notification.clone(), MAX_NOTIFICATIONS);
            } else if task.state != TaskState::Cancelled {
                count(&mut self.failed, &subject.notification, MAX_NOTIFICATIONS);
            }
        }
        match task.state {
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
            TaskState::Queued | TaskState::Claimed => {}
        }
    }

    /// Begins the next activation, and returns its number.
    pub fn begin(&mut self, now: u64) -> u64 {
        self.activation += 1;
        self.begun_at = now;
        (self.has_started, self.is_counted) = (false, false);
        self.reserved.clear();
        self.activation
    }

    /// Checks whether an earlier activation has answered a notification.
    pub fn has_answered(&self, notification: &str) -> bool {
        self.answered.iter().any(|known| known == notification)
    }

    /// Checks whether activations for a notification have failed so often that it is passed over.
    pub fn passes_over(&self, notification: &str) -> bool {
        let mut failed = self.failed.iter();
        failed.any(|(known, count)| known == notification && *count >= MAX_NOTIFICATION_FAILURES)
    }

    /// Gives back what [`reserve`](Self::reserve) or [`reserve_error_post`](Self::reserve_error_post) has counted for a post that the Hub did not
    /// store.
    pub fn release(&mut self, key: &str, target: &PostTarget) {
        let Some(at) = self.reserved.iter().position(|known| known == key) else { return };
        self.reserved.remove(at);
        match target {
            PostTarget::Post { .. } if key.ends_with(ERROR_KEY) => {
                self.error_posts = self.error_posts.saturating_sub(1);
            }
            PostTarget::Post { .. } => self.posts = self.posts.saturating_sub(1),
            PostTarget::Comment { post } => {
                self.comments = self.comments.saturating_sub(1);
                if let Some((_, count)) = self.threads.iter_mut().find(|(known, _)| known == post) {
                    *count = count.saturating_sub(1);
                }
            }
        }
    }

    /// Counts the report of a failure; returns whether the limit of a day allows it.
    pub fn reserve_error_post(&mut self, key: &str, now: u64) -> bool {
        if self.reserved.iter().any(|known| known == key) {
            return true;
        }
        self.begin_day(now);
        let is_allowed = self.error_posts < MAX_ERROR_POSTS;
        if is_allowed {
            self.error_posts += 1;
            self.reserved.push(key.to_owned());
        }
        is_allowed
    }

    /// Begins to count anew if it is a later day. A clock that was set back changes nothing.
    fn begin_day(&mut self, now: u64) {
        if now / DAY > self.day {
            (self.day, self.posts, self.comments, self.error_posts) = (now / DAY, 0, 0, 0);
        }
    }

    /// Notes that the agent has this number of comments in the thread of `post` on the Hub, which this queue need not have posted.
    pub fn count_on_hub(&mut self, post: &str, comments: u32) {
        let known = self.threads.iter().find(|(known, _)| known == post).map_or(0, |(_, count)| *count);
        if comments > known {
            self.threads.retain(|(known, _)| known != post);
            push(&mut self.threads, (post.to_owned(), comments), MAX_THREADS);
        }
    }

    /// Checks whether the agent may post to `target`.
    ///
    /// # Errors
    /// Which limit refuses it.
    pub fn check_post(&self, target: &PostTarget, limits: &PostLimits, now: u64) -> Result<(), PostRefusal> {
        let is_later = now / DAY > self.day;
        let (posts, comments) = if is_later { (0, 0) } else { (self.posts, self.comments) };
        let tomorrow = (self.day.max(now / DAY) + 1) * DAY;
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
        self.begin_day(now);
        match target {
            PostTarget::Post { .. } => self.posts += 1,
            PostTarget::Comment { post } => {
                self.comments += 1;
                count(&mut self.threads, post, MAX_THREADS);
            }
        }
        self.last_post_at = Some(now);
        self.reserved.push(key.to_owned());
        Ok(())
    }
}

/// Adds an item; of more than `most` the oldest ones go.
fn push<T>(items: &mut Vec<T>, item: T, most: usize) {
    items.push(item);
    items.drain(..items.len().saturating_sub(most));
}

/// Adds one to the count of `name`, which becomes the newest one.
fn count(counts: &mut Vec<(String, u32)>, name: &str, most: usize) {
    let known = counts.iter().position(|(known, _)| known == name);
    let count = known.map_or(0, |at| counts.remove(at).1);
    push(counts, (name.to_owned(), count.saturating_add(1)), most);
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::fleet::{Priority, TaskSpec};
    use agent_core::hub::{OutboxPost, PostState, Subject};

    fn ended(state: TaskState, at: u64) -> TaskRecord {
        let mut task = TaskRecord::new(
            "hub-a-1",
            1,
            &TaskSpec { priority: Priority::High, ..TaskSpec::new("x", "/", 2) },
            at,
        );
        task.state = state;
        task
    }

    fn comment(post: &str) -> PostTarget {
        PostTarget::Comment { post: post.to_owned() }
    }

    #[test]
    fn b10_five_failures_pause_an_agent_for_a_minute_and_each_further_one_doubles_that() {
        let mut state = AgentState::default();
        let mut pauses = Vec::new();
        for now in (10_000..).step_by(10_000).take(12) {
            state.begin(now);
            state.count_end(&ended(TaskState::Dead, now));
            state.count_end(&ended(TaskState::Dead, now));
            pauses.push(state.wait_until.saturating_sub(now));
        }
        assert_eq!(pauses, [0, 0, 0, 0, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
        state.begin(1);
        state.count_end(&ended(TaskState::Done, 1));
        assert_eq!(state.failures, 0);
    }

    #[test]
    fn a_notification_that_was_answered_or_failed_often_is_known_after_its_activation() {
        let mut state = AgentState::default();
        let mut task = ended(TaskState::Failed, 1);
        task.subject = Some(Subject { notification: "n1".to_owned(), post: "p1".to_owned() });
        for _ in 0..3 {
            assert!(!state.passes_over("n1"));
            state.begin(1);
            state.count_end(&task);
        }
        assert!(state.passes_over("n1") && !state.has_answered("n1"));
        for (outcome, is_answered) in [
            (PostState::Refused { why: "x".to_owned() }, false),
            (PostState::NotStored { why: "x".to_owned() }, false),
            (PostState::Done { post_id: "c1".to_owned() }, true),
        ] {
            task.posts = vec![OutboxPost {
                key: "hub-a-1:1".to_owned(),
                target: comment("p1"),
                content: "x".to_owned(),
                earlier: Vec::new(),
                state: outcome,
            }];
            state.begin(1);
            state.count_end(&task);
            assert_eq!(state.has_answered("n1"), is_answered);
        }
    }

    #[test]
    fn failures_are_reported_five_times_a_day_and_a_clock_that_is_set_back_begins_no_new_day() {
        let mut state = AgentState::default();
        let days = [DAY, DAY + 1, DAY + 2, DAY + 3, DAY + 4, DAY + 5, 5, DAY + 6, 2 * DAY];
        let allowed: Vec<bool> =
            days.iter().map(|now| state.reserve_error_post(&format!("{now}:error"), *now)).collect();
        assert_eq!(allowed, [true, true, true, true, true, false, false, false, true]);
        assert!(state.reserve_error_post(&format!("{}:error", 2 * DAY), 2 * DAY), "another attempt");
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
        state.release("7", &comment("c"));
        state.release("7", &comment("c"));
        assert_eq!(state.reserve("8", &comment("c"), &limits, DAY + 60), Ok(()));
        assert_eq!((state.comments, state.threads.last()), (1, Some(&("c".to_owned(), 1))));
    }
}
