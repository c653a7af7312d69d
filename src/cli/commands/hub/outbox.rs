//! The posts of an activation. Each has a key over all attempts, is recorded before it is sent, and its outcome after: a post whose answer was
//! lost is looked for on the Hub before it is sent once more.

use crate::cli::commands::fleet::claim::Claim;
use crate::cli::error::CliError;
use crate::core::hub::{OutboxPost, PostState, PostTarget};
use crate::fleet::error::QueueError;
use crate::hub::agent_state::{AgentState, PostLimits, PostRefusal};
use crate::hub::client::{HubClient, HubError};
use crate::hub::feed::state_key;
use std::cell::Cell;
use tokio::sync::Mutex;

/// Posts of an activation.
const MAX_POSTS: u32 = 10;
/// Maximum bytes of the text of a post; what is longer is cut.
const MAX_POST_BYTES: usize = 32 << 10;
/// Characters of a post by which it is searched for.
const SEARCH_CHARS: usize = 80;
/// Results of that search.
const SEARCH_RESULTS: u32 = 50;
/// Number of the report of a failure in its key.
const ERROR: &str = "error";

/// Why a text was not posted.
#[derive(Debug)]
pub enum NotPosted {
    /// The Hub refuses it, or there were too many.
    Refused(String),
    /// A limit of the agent refuses it.
    Limit(PostRefusal),
    /// Another attempt may post it.
    Later(String),
    /// Whether it was posted cannot be told.
    Unknown(String),
    /// The task is no longer that of this attempt.
    NotOwn,
}

impl NotPosted {
    /// Returns the reason.
    pub fn why(&self) -> &str {
        match self {
            Self::Refused(why) | Self::Later(why) | Self::Unknown(why) => why,
            Self::Limit(refusal) => refusal.why(),
            Self::NotOwn => "the activation was taken over",
        }
    }
}

impl From<CliError> for NotPosted {
    fn from(error: CliError) -> Self {
        Self::Later(error.to_string())
    }
}

/// The posts of an attempt.
pub struct Outbox<'a> {
    claim: Claim<'a>,
    hub: &'a HubClient,
    agent: &'a str,
    limits: PostLimits,
    /// Posts of this attempt so far.
    count: Cell<u32>,
    turn: Mutex<()>,
}

impl<'a> Outbox<'a> {
    /// Creates the outbox of an attempt of `agent`.
    pub fn new(claim: Claim<'a>, hub: &'a HubClient, agent: &'a str, limits: PostLimits) -> Self {
        Self { claim, hub, agent, limits, count: Cell::new(0), turn: Mutex::default() }
    }

    /// Posts the next text of the attempt, unless another attempt has posted one with its number, and returns its id.
    ///
    /// # Errors
    /// Why it was not posted.
    pub async fn post(&self, target: PostTarget, content: &str) -> Result<String, NotPosted> {
        let _turn = self.turn.lock().await;
        let number = self.count.get() + 1;
        if number > MAX_POSTS {
            return Err(NotPosted::Refused(format!("an activation has at most {MAX_POSTS} posts")));
        }
        let key = format!("{}:{number}", self.claim.task.id);
        let posted = self.post_once(key, target, content, true).await;
        if !matches!(posted, Err(NotPosted::Limit(_))) {
            self.count.set(number);
        }
        posted
    }

    /// Checks whether the attempt has posted, or tried to.
    pub fn has_posts(&self) -> bool {
        self.count.get() > 0
    }

    /// Posts the report of a failure.
    ///
    /// # Errors
    /// Why it was not posted.
    pub async fn report(&self, community: &str, title: &str, content: &str) -> Result<String, NotPosted> {
        let target =
            PostTarget::Post { title: Some(title.to_owned()), community: Some(community.to_owned()) };
        self.post_once(format!("{}:{ERROR}", self.claim.task.id), target, content, false).await
    }

    async fn post_once(
        &self,
        key: String,
        target: PostTarget,
        content: &str,
        is_limited: bool,
    ) -> Result<String, NotPosted> {
        let Claim { worker, task } = self.claim;
        let record = worker.until_answered(async || worker.queue.record(&task.id).await).await?;
        if !record.belongs_to(task) {
            return Err(NotPosted::NotOwn);
        }
        let others: Vec<&str> = record.posts.iter().filter_map(posted_id).collect();
        if let Some(known) = record.posts.iter().find(|known| known.key == key) {
            return match &known.state {
                PostState::Done { post_id } => Ok(post_id.clone()),
                PostState::Refused { why } => Err(NotPosted::Refused(why.clone())),
                PostState::Unknown { why } => Err(NotPosted::Unknown(why.clone())),
                PostState::Intended => self.resume(known, &others).await,
            };
        }
        if is_limited {
            self.reserve(&key, &target).await?;
        }
        let post = OutboxPost { key, target, content: self.bounded(content), state: PostState::Intended };
        self.record(&post).await?;
        match self.send(&post).await {
            Err(HubError::Lost(_) | HubError::Unreadable(_)) => self.resume(&post, &others).await,
            sent => self.settle(&post, sent).await,
        }
    }

    /// Counts a post for the limits of the agent.
    async fn reserve(&self, key: &str, target: &PostTarget) -> Result<(), NotPosted> {
        let (worker, now) = (self.claim.worker, self.claim.worker.now());
        let reserve = |state: &mut AgentState| state.reserve(key, target, &self.limits, now);
        let state = state_key(self.agent);
        let reserved =
            worker.until_answered(async || worker.queue.change_value(&state, reserve).await).await?;
        reserved.map_err(NotPosted::Limit)
    }

    /// Returns a text without secrets, and not too long.
    fn bounded(&self, content: &str) -> String {
        let mut text = self.claim.worker.app.redact(content.trim());
        if text.len() > MAX_POST_BYTES {
            text.truncate(text.floor_char_boundary(MAX_POST_BYTES));
            text.push_str("\n[cut]");
        }
        text
    }

    /// Finds a post whose outcome is not known, or sends it once more.
    async fn resume(&self, post: &OutboxPost, others: &[&str]) -> Result<String, NotPosted> {
        if let Some(id) = self.find(post, others).await? {
            return self.settle(post, Ok(id)).await;
        }
        let sent = self.send(post).await;
        let Err(HubError::Lost(why) | HubError::Unreadable(why)) = sent else {
            return self.settle(post, sent).await;
        };
        match self.find(post, others).await? {
            Some(id) => self.settle(post, Ok(id)).await,
            None => self.give_up(post, why).await,
        }
    }

    /// Looks for a post on the Hub.
    async fn find(&self, post: &OutboxPost, others: &[&str]) -> Result<Option<String>, NotPosted> {
        let is_it = |author: &str, content: &str, id: &str| {
            author == self.agent && content.trim() == post.content.trim() && !others.contains(&id)
        };
        let found = match &post.target {
            PostTarget::Comment { post: thread } => self.hub.thread(thread).await.map(|thread| {
                let mut comments = thread.comments.into_iter();
                comments.find(|one| is_it(&one.author.id, &one.content, &one.id)).map(|one| one.id)
            }),
            PostTarget::Post { title, community } => {
                let text: String =
                    title.as_deref().unwrap_or(&post.content).chars().take(SEARCH_CHARS).collect();
                let place = (community.as_deref(), Some(self.agent));
                self.hub.search(&text, SEARCH_RESULTS, place).await.map(|posts| {
                    let mut posts = posts.into_iter();
                    posts.find(|one| is_it(&one.author.id, &one.content, &one.id)).map(|one| one.id)
                })
            }
        };
        match found {
            Ok(found) => Ok(found),
            Err(error) if error.may_pass() => Err(NotPosted::Later(error.to_string())),
            Err(error) => self.give_up(post, error.to_string()).await.map(Some),
        }
    }

    async fn send(&self, post: &OutboxPost) -> Result<String, HubError> {
        self.hub.create(self.agent, &post.target, &post.content, &post.key).await
    }

    /// Records the outcome of a post.
    async fn settle(&self, post: &OutboxPost, sent: Result<String, HubError>) -> Result<String, NotPosted> {
        let (state, outcome) = match sent {
            Ok(id) => (PostState::Done { post_id: id.clone() }, Ok(id)),
            Err(error) if error.may_pass() => return Err(NotPosted::Later(error.to_string())),
            Err(error) => {
                let why = error.to_string();
                (PostState::Refused { why: why.clone() }, Err(NotPosted::Refused(why)))
            }
        };
        self.record(&OutboxPost { state, ..post.clone() }).await?;
        outcome
    }

    /// Records that it cannot be told whether a text was posted.
    async fn give_up(&self, post: &OutboxPost, why: String) -> Result<String, NotPosted> {
        let state = PostState::Unknown { why: why.clone() };
        self.record(&OutboxPost { state, ..post.clone() }).await?;
        Err(NotPosted::Unknown(why))
    }

    async fn record(&self, post: &OutboxPost) -> Result<(), NotPosted> {
        let Claim { worker, task } = self.claim;
        let set = async || -> Result<bool, QueueError> { worker.queue.set_post(task, post).await };
        if worker.until_answered(set).await? { Ok(()) } else { Err(NotPosted::NotOwn) }
    }
}

fn posted_id(post: &OutboxPost) -> Option<&str> {
    match &post.state {
        PostState::Done { post_id } => Some(post_id),
        _ => None,
    }
}
