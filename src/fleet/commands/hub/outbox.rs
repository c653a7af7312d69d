//! The posts of an activation. Each has a key over all attempts, is recorded before it is sent, and its outcome after: a post whose answer was
//! lost is looked for on the Hub before it is sent once more.

use crate::commands::claim::Claim;
use crate::error::QueueError;
use crate::hub::agent_state::{AgentState, ERROR_KEY, PostRefusal};
use crate::hub::client::{HubClient, HubError};
use crate::hub::feed::state_key;
use agent_config::agent_definition::PostLimits;
use agent_core::fleet::TaskRecord;
use agent_core::hub::{OutboxPost, PostState, PostTarget};
use agent_messages as messages;
use agent_run::error::AppError;
use agent_terminal::Style;
use std::cell::RefCell;
use std::collections::BTreeSet;
use tokio::sync::Mutex;

/// Posts of an activation.
const MAX_POSTS: u32 = 10;
/// Maximum bytes of the text of a post; what is longer is cut.
const MAX_POST_BYTES: usize = 32 << 10;
/// Maximum bytes of a title, a community or the id of a post.
const MAX_NAME_BYTES: usize = 500;
/// Characters of a post by which it is searched for.
const SEARCH_CHARS: usize = 80;
/// Results of that search.
const SEARCH_RESULTS: u32 = 50;

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

impl From<AppError> for NotPosted {
    fn from(error: AppError) -> Self {
        Self::Later(error.to_string())
    }
}

/// What an agent has posted in one place before.
#[derive(Default)]
struct EarlierPosts {
    /// Ids of those with the text that is looked for.
    same_texts: Vec<String>,
    /// Number of its comments in the thread.
    comments: u32,
}

/// The posts of an attempt.
pub struct Outbox<'a> {
    claim: Claim<'a>,
    hub: &'a HubClient,
    agent: &'a str,
    limits: PostLimits,
    /// Numbers of the posts of this attempt.
    used: RefCell<BTreeSet<u32>>,
    /// Numbers of those of them whose outcome is not known yet.
    open: RefCell<BTreeSet<u32>>,
    turn: Mutex<()>,
}

impl<'a> Outbox<'a> {
    /// Creates the outbox of an attempt of `agent`.
    pub fn new(claim: Claim<'a>, hub: &'a HubClient, agent: &'a str, limits: PostLimits) -> Self {
        let (used, open) = Default::default();
        Self { claim, hub, agent, limits, used, open, turn: Mutex::default() }
    }

    /// Posts the next text of the attempt, unless another attempt has posted one with its number to the same place, and returns its id.
    ///
    /// # Errors
    /// Why it was not posted.
    pub async fn post(&self, target: PostTarget, content: &str) -> Result<String, NotPosted> {
        let _turn = self.turn.lock().await;
        let target = self.without_secrets(target);
        loop {
            let record = self.own_record().await?;
            let number = self.number(&record, &target);
            if number > MAX_POSTS {
                return Err(NotPosted::Refused(format!("an activation has at most {MAX_POSTS} posts")));
            }
            let key = self.key(number);
            let mut posts = record.posts.iter();
            let text = self.bounded(content, MAX_POST_BYTES);
            // What the attempt itself has sent before, and whose answer was lost.
            let is_other = self.open.borrow().contains(&number)
                && posts.any(|known| known.key == key && known.content != text);
            let posted = self.post_once(&record, key, target.clone(), content).await;
            match &posted {
                Err(NotPosted::Limit(_)) => {}
                Err(NotPosted::Later(_)) => drop(self.open.borrow_mut().insert(number)),
                _ => {
                    self.open.borrow_mut().remove(&number);
                    self.used.borrow_mut().insert(number);
                }
            }
            if !is_other || matches!(posted, Err(NotPosted::Later(_) | NotPosted::NotOwn)) {
                return posted;
            }
        }
    }

    /// Returns the number of the next post to `target`: that of one which an attempt has recorded for this place, and this attempt has not used
    /// yet, or a new one.
    fn number(&self, record: &TaskRecord, target: &PostTarget) -> u32 {
        let known = |number: u32| record.posts.iter().find(|post| post.key == self.key(number));
        let unused = (1..=MAX_POSTS).filter(|number| !self.used.borrow().contains(number));
        let mut of_place = unused.filter(|number| known(*number).is_some_and(|post| post.target == *target));
        of_place
            .next()
            .or_else(|| (1..=MAX_POSTS).find(|number| known(*number).is_none()))
            .unwrap_or(MAX_POSTS + 1)
    }

    fn key(&self, number: u32) -> String {
        format!("{}:{number}", self.claim.task.id)
    }

    /// Checks whether the attempt has posted, or tried to.
    pub fn has_posts(&self) -> bool {
        !self.used.borrow().is_empty() || !self.open.borrow().is_empty()
    }

    /// Posts the report of a failure, up to five times a day.
    ///
    /// # Errors
    /// Why it was not posted.
    pub async fn report(&self, community: &str, title: &str, content: &str) -> Result<String, NotPosted> {
        let target =
            PostTarget::Post { title: Some(title.to_owned()), community: Some(community.to_owned()) };
        let record = self.own_record().await?;
        self.post_once(&record, format!("{}{ERROR_KEY}", self.claim.task.id), target, content).await
    }

    /// Returns the record of the task, if it is still that of this attempt.
    async fn own_record(&self) -> Result<TaskRecord, NotPosted> {
        let Claim { worker, task, .. } = self.claim;
        let record = worker.until_answered(async || worker.queue.record(&task.id).await).await?;
        if record.belongs_to(task) { Ok(record) } else { Err(NotPosted::NotOwn) }
    }

    async fn post_once(
        &self,
        record: &TaskRecord,
        key: String,
        target: PostTarget,
        content: &str,
    ) -> Result<String, NotPosted> {
        if let Some(known) = record.posts.iter().find(|known| known.key == key) {
            match &known.state {
                PostState::Done { post_id } => return Ok(post_id.clone()),
                PostState::Refused { why } => return Err(NotPosted::Refused(why.clone())),
                PostState::Unknown { why } => return Err(NotPosted::Unknown(why.clone())),
                PostState::Intended => return self.resume(known).await,
                PostState::NotStored { .. } => {}
            }
        }
        let content = self.bounded(content, MAX_POST_BYTES);
        let earlier = match self.earlier_posts(&target, &content).await {
            Err(error) if error.may_pass() => return Err(NotPosted::Later(error.to_string())),
            // A place that does not exist is refused when the post is sent.
            found => found.unwrap_or_default(),
        };
        self.reserve(&key, &target, earlier.comments).await?;
        let earlier = earlier.same_texts;
        let post = OutboxPost { key, target, content, earlier, state: PostState::Intended };
        self.record(&post).await?;
        match self.send(&post).await {
            Err(HubError::Lost(_) | HubError::Unreadable(_)) => self.resume(&post).await,
            sent => self.settle(&post, sent).await,
        }
    }

    /// Counts a post for the limits of the agent, which has `comments` in its thread on the Hub.
    async fn reserve(&self, key: &str, target: &PostTarget, comments: u32) -> Result<(), NotPosted> {
        let (worker, now) = (self.claim.worker, self.claim.worker.now());
        let reserve = |state: &mut AgentState| {
            if let PostTarget::Comment { post } = target {
                state.count_on_hub(post, comments);
            }
            if !key.ends_with(ERROR_KEY) {
                return state.reserve(key, target, &self.limits, now);
            }
            let why = || PostRefusal::Thread("the limit of reports a day is reached".to_owned());
            if state.reserve_error_post(key, now) { Ok(()) } else { Err(why()) }
        };
        let state = state_key(self.agent);
        let reserved =
            worker.until_answered(async || worker.queue.change_value(&state, reserve).await).await?;
        reserved.map_err(NotPosted::Limit)
    }

    /// Returns a text without secrets, and not too long.
    fn bounded(&self, content: &str, most: usize) -> String {
        let mut text = self.claim.worker.app.redact(content.trim());
        if text.len() > most {
            text.truncate(text.floor_char_boundary(most));
            text.push_str("\n[cut]");
        }
        text
    }

    /// Returns a place that the model has named, without secrets.
    fn without_secrets(&self, target: PostTarget) -> PostTarget {
        let bounded = |text: String| self.bounded(&text, MAX_NAME_BYTES);
        match target {
            PostTarget::Comment { post } => PostTarget::Comment { post: bounded(post) },
            PostTarget::Post { title, community } => {
                PostTarget::Post { title: title.map(bounded), community: community.map(bounded) }
            }
        }
    }

    /// Finds a post whose outcome is not known, or sends it once more.
    async fn resume(&self, post: &OutboxPost) -> Result<String, NotPosted> {
        if let Some(id) = self.find(post).await? {
            return self.settle(post, Ok(id)).await;
        }
        let why = match self.send(post).await {
            Ok(id) => return self.settle(post, Ok(id)).await,
            Err(error @ (HubError::NotStored(_) | HubError::Busy(_))) => {
                return Err(NotPosted::Later(error.to_string()));
            }
            // The first one may have been stored late, and what the Hub refuses now be the second one.
            Err(error) => error.to_string(),
        };
        match self.find(post).await? {
            Some(id) => self.settle(post, Ok(id)).await,
            None => Err(self.give_up(post, why).await),
        }
    }

    /// Looks for a post on the Hub.
    async fn find(&self, post: &OutboxPost) -> Result<Option<String>, NotPosted> {
        match self.earlier_posts(&post.target, &post.content).await {
            Ok(found) => Ok(found.same_texts.into_iter().find(|id| !post.earlier.contains(id))),
            Err(error) if error.may_pass() => Err(NotPosted::Later(error.to_string())),
            Err(error) => Err(self.give_up(post, error.to_string()).await),
        }
    }

    /// Returns what the agent has posted in this place; `content` is the text that is looked for.
    async fn earlier_posts(&self, target: &PostTarget, content: &str) -> Result<EarlierPosts, HubError> {
        let is_same = |author: &str, text: &str| author == self.agent && text.trim() == content;
        Ok(match target {
            PostTarget::Comment { post } => {
                let thread = self.hub.thread(post).await?;
                let comments = thread.comments_of(self.agent);
                let same = thread.comments.into_iter().filter(|one| is_same(&one.author.id, &one.content));
                EarlierPosts { same_texts: same.map(|one| one.id).collect(), comments }
            }
            PostTarget::Post { title, community } => {
                let text: String = title.as_deref().unwrap_or(content).chars().take(SEARCH_CHARS).collect();
                let community = community.as_deref();
                let posts =
                    self.hub.search(&text, SEARCH_RESULTS, community, Some(self.agent)).await?.into_iter();
                let same = posts.filter(|one| is_same(&one.author.id, &one.content));
                EarlierPosts { same_texts: same.map(|one| one.id).collect(), comments: 0 }
            }
        })
    }

    async fn send(&self, post: &OutboxPost) -> Result<String, HubError> {
        self.hub.create(self.agent, &post.target, &post.content, &post.key).await
    }

    /// Records the outcome of a post.
    async fn settle(&self, post: &OutboxPost, sent: Result<String, HubError>) -> Result<String, NotPosted> {
        let (state, outcome) = match sent {
            Ok(id) => (PostState::Done { post_id: id.clone() }, Ok(id)),
            Err(error) if error.may_pass() => {
                let why = error.to_string();
                (PostState::NotStored { why: why.clone() }, Err(NotPosted::Later(why)))
            }
            Err(error) => {
                let why = error.to_string();
                (PostState::Refused { why: why.clone() }, Err(NotPosted::Refused(why)))
            }
        };
        let key = state_key(self.agent);
        if outcome.is_err() {
            let worker = self.claim.worker;
            let release = |state: &mut AgentState| state.release(&post.key, &post.target);
            worker.until_answered(async || worker.queue.change_value(&key, release).await).await?;
        }
        self.record(&OutboxPost { state, ..post.clone() }).await?;
        outcome
    }

    /// Records the outcome of a post as unknown, and returns the error for its caller.
    async fn give_up(&self, post: &OutboxPost, why: String) -> NotPosted {
        let worker = self.claim.worker;
        worker.log(Style::Warning, &messages::hub_post_unknown(&post.key, &why, worker.language));
        let state = PostState::Unknown { why: why.clone() };
        let recorded = self.record(&OutboxPost { state, ..post.clone() }).await;
        recorded.err().unwrap_or(NotPosted::Unknown(why))
    }

    async fn record(&self, post: &OutboxPost) -> Result<(), NotPosted> {
        let Claim { worker, task, .. } = self.claim;
        let set = async || -> Result<bool, QueueError> { worker.queue.set_post(task, post).await };
        if worker.until_answered(set).await? { Ok(()) } else { Err(NotPosted::NotOwn) }
    }
}
