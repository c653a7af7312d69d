//! The interface of `agent hub dev`: that of a Hub (`hub::api`), and a page.

use crate::commands::hub::dev::page::hub_page;
use crate::commands::hub::dev::store::{DevStore, PostFilter, StoreError, time};
use crate::hub::api::{AgentInfo, Author, Post};
use agent_core::fleet::check_id;
use agent_http::server::{AsyncAnswer, HttpAnswer, HttpRequest};
use agent_runtime::clock::Clock;
use futures_util::future::LocalBoxFuture;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Posts of the page.
const PAGE_POSTS: u32 = 50;
/// Posts of a list that names no number.
const LIST_POSTS: u32 = 10;
/// Most posts of a list.
const MAX_POSTS: u32 = 100;
/// Longest time for which a poll is held, in seconds.
const MAX_POLL: u64 = 60;
/// Maximum bytes of a post.
const MAX_POST_BYTES: usize = 64 << 10;

/// The Hub.
pub struct DevHub {
    store: RefCell<DevStore>,
    key: String,
    clock: Rc<Clock>,
    /// Wakes the polls that are held.
    changed: Notify,
}

/// Why a request has no document as its answer.
enum Refusal {
    NotFound,
    Invalid(&'static str),
}

type Answered = Result<Result<Value, Refusal>, StoreError>;

impl AsyncAnswer for DevHub {
    fn answer(&self, request: HttpRequest) -> LocalBoxFuture<'_, HttpAnswer> {
        Box::pin(async move {
            let done = match (request.method.as_str(), request.path.as_str()) {
                ("GET", "/") => return self.page(),
                _ if request.token.as_deref() != Some(self.key.as_str()) => {
                    return HttpAnswer::error(401, "the key is missing or wrong");
                }
                ("GET", "/api/v1/notifications/poll") => self.poll(&request).await,
                ("GET", _) => self.read(&request),
                ("POST", _) => self.write(&request),
                _ => return HttpAnswer::error(405, "only GET and POST are answered"),
            };
            match done {
                Ok(Ok(document)) => HttpAnswer::json(&document),
                Ok(Err(Refusal::NotFound)) => HttpAnswer::error(404, "not found"),
                Ok(Err(Refusal::Invalid(why))) => HttpAnswer::error(422, why),
                Err(error) => HttpAnswer::error(500, &error.to_string()),
            }
        })
    }
}

impl DevHub {
    /// Creates the Hub; requests need `key`.
    pub fn new(store: DevStore, key: String, clock: Rc<Clock>) -> Self {
        Self { store: RefCell::new(store), key, clock, changed: Notify::new() }
    }

    /// Creates an agent, unless it exists.
    ///
    /// # Errors
    /// Fails when the database cannot be used.
    pub fn register(&self, id: &str) -> Result<(), StoreError> {
        self.store.borrow().register(id, id, None, None)
    }

    fn now(&self) -> i64 {
        i64::try_from(self.clock.unix_time().as_secs()).unwrap_or(i64::MAX)
    }

    fn page(&self) -> HttpAnswer {
        let store = self.store.borrow();
        let posts =
            store.posts(&PostFilter { limit: PAGE_POSTS, ..PostFilter::default() }).and_then(|posts| {
                posts
                    .into_iter()
                    .map(|post| Ok(store.post(&post.id)?.unwrap_or(post)))
                    .collect::<Result<Vec<_>, StoreError>>()
            });
        match posts {
            Ok(posts) => HttpAnswer::html(hub_page(&posts)),
            Err(error) => HttpAnswer::error(500, &error.to_string()),
        }
    }

    /// Waits until an agent has unread notifications.
    async fn poll(&self, request: &HttpRequest) -> Answered {
        let wait = number(request, "timeout").unwrap_or(0).min(MAX_POLL);
        let most = usize::try_from(number(request, "batch_size").unwrap_or(100)).unwrap_or(usize::MAX);
        let until = Instant::now() + Duration::from_secs(wait);
        loop {
            let changed = self.changed.notified();
            let mut agents: Vec<AgentInfo> = self.store.borrow().agents()?;
            agents.retain(|agent| agent.notification_count > 0);
            agents.truncate(most);
            if !agents.is_empty() || timeout_at(until, changed).await.is_err() {
                return Ok(Ok(json!({"agents": agents})));
            }
        }
    }

    fn read(&self, request: &HttpRequest) -> Answered {
        let (store, query) = (self.store.borrow(), &request.query);
        let text = |name: &str| query.get(name).map(String::as_str).filter(|text| !text.is_empty());
        let limit = number(request, "limit").and_then(|limit| u32::try_from(limit).ok());
        let limit = limit.unwrap_or(LIST_POSTS).min(MAX_POSTS);
        let agent = text("agent_id").unwrap_or_default();
        Ok(Ok(match request.parts().as_slice() {
            ["api", "v1", "notifications"] => json!({"notifications": store.notifications(agent)?}),
            ["api", "v1", "posts" | "feed"] => {
                let filter = PostFilter { limit, community: text("community"), ..PostFilter::default() };
                json!({"posts": documents(&store.posts(&filter)?)})
            }
            ["api", "v1", "posts", id] => match store.post(id)? {
                Some(post) => document(&post),
                None => return Ok(Err(Refusal::NotFound)),
            },
            ["api", "v1", "search"] => {
                let (author, community) = (text("author"), text("community"));
                let filter = PostFilter { text: text("q"), author, community, limit, not_answered_by: None };
                json!({"results": documents(&store.posts(&filter)?)})
            }
            ["api", "v1", "system", "budget-health"] => json!(store.budget(agent, self.now())?),
            ["api", "v1", "agents"] => json!({"agents": self.agents(&store, request)?}),
            ["api", "v1", "agents", "me"] => {
                match store.agents()?.into_iter().find(|known| known.id == agent) {
                    Some(agent) => json!(agent),
                    None => return Ok(Err(Refusal::NotFound)),
                }
            }
            ["api", "v1", "feed", "discover"] => {
                let filter =
                    PostFilter { not_answered_by: Some(agent), limit: u32::MAX, ..PostFilter::default() };
                let found = wanted(store.posts(&filter)?, text("communities"), text("keywords"));
                let most = usize::try_from(limit).unwrap_or(usize::MAX).min(found.len());
                json!({"posts": documents(&found[..most])})
            }
            _ => return Ok(Err(Refusal::NotFound)),
        }))
    }

    fn agents(&self, store: &DevStore, request: &HttpRequest) -> Result<Vec<AgentInfo>, StoreError> {
        let mut agents = store.agents()?;
        if request.query.contains_key("has_notifications") {
            agents.retain(|agent| agent.notification_count > 0);
        }
        if request.query.contains_key("stale") {
            let age = number(request, "min_staleness").and_then(|age| i64::try_from(age).ok()).unwrap_or(900);
            let stale = store.stale(self.now().saturating_sub(age))?;
            agents.retain(|agent| stale.contains(&agent.id));
        }
        Ok(agents)
    }

    fn write(&self, request: &HttpRequest) -> Answered {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        match request.parts().as_slice() {
            ["api", "v1", "posts"] => self.create(request, &body, None),
            ["api", "v1", "posts", id, "comments"] => self.create(request, &body, Some(id)),
            ["api", "v1", "notifications", "read"] => {
                let ids = body.get("notification_ids").and_then(Value::as_array);
                for id in ids.into_iter().flatten().filter_map(Value::as_str) {
                    self.store.borrow().mark_read(id)?;
                }
                Ok(Ok(json!({})))
            }
            ["api", "v1", "system", "consumption"] => {
                let tokens = |name: &str| body.get(name).and_then(Value::as_i64).unwrap_or_default();
                let cost = body.get("cost_usd").and_then(Value::as_f64).unwrap_or_default();
                let tokens = tokens("tokens_input").saturating_add(tokens("tokens_output"));
                self.store.borrow().consumed(text("agent_id"), tokens, cost, self.now())?;
                Ok(Ok(json!({})))
            }
            ["api", "v1", "agents", "register"] => {
                let id = text("id");
                if check_id(id).is_err() {
                    return Ok(Err(Refusal::Invalid("`id` is not the id of an agent")));
                }
                let name = Some(text("name")).filter(|name| !name.is_empty()).unwrap_or(id);
                let limit = |name: &str| body.get(name).and_then(Value::as_f64);
                let (daily, monthly) = (limit("daily_limit"), limit("monthly_limit"));
                self.store.borrow().register(id, name, daily, monthly)?;
                Ok(Ok(json!({"id": id, "name": name})))
            }
            ["api", "v1", "agents", id, "activated"] => {
                let is_known = self.store.borrow().activated(id, self.now())?;
                Ok(if is_known { Ok(json!({})) } else { Err(Refusal::NotFound) })
            }
            _ => Ok(Err(Refusal::NotFound)),
        }
    }

    fn create(&self, request: &HttpRequest, body: &Value, post: Option<&str>) -> Answered {
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (author, content) = (text("agent_id"), text("content"));
        if author.is_empty() || content.trim().is_empty() || content.len() > MAX_POST_BYTES {
            return Ok(Err(Refusal::Invalid("`agent_id` and `content` of up to 64 KiB are needed")));
        }
        let author = Author { name: author.clone(), id: author };
        let (title, community) = (text("title"), text("community"));
        let new = Post { author, title, content, community, ..Post::default() };
        let now = self.now();
        let created = self.store.borrow_mut().create(&new, post, request.key.as_deref(), now)?;
        let Some(id) = created else { return Ok(Err(Refusal::NotFound)) };
        self.changed.notify_waiters();
        Ok(Ok(json!({"id": id, "author": new.author, "created_at": time(now)})))
    }
}

/// Returns a post as the Hub sends it: it has fields that no client of this program reads.
fn document(post: &Post) -> Value {
    let mut document = json!(post);
    document["parent_id"] = Value::Null;
    document["updated_at"] = json!(post.created_at);
    for comment in document["comments"].as_array_mut().into_iter().flatten() {
        comment["parent_id"] = json!(post.id);
    }
    document
}

fn documents(posts: &[Post]) -> Vec<Value> {
    posts.iter().map(document).collect()
}

/// Returns the posts of one of the communities or with one of the keywords, both separated by commas; without any, all.
fn wanted(posts: Vec<Post>, communities: Option<&str>, keywords: Option<&str>) -> Vec<Post> {
    if communities.is_none() && keywords.is_none() {
        return posts;
    }
    let parts = |list: Option<&str>| -> Vec<String> {
        list.unwrap_or_default()
            .split(',')
            .map(|part| part.trim().to_lowercase())
            .filter(|part| !part.is_empty())
            .collect()
    };
    let (communities, keywords) = (parts(communities), parts(keywords));
    let fits = |post: &Post| {
        let text = format!("{} {}", post.title, post.content).to_lowercase();
        communities.contains(&post.community.to_lowercase())
            || keywords.iter().any(|word| text.contains(word))
    };
    posts.into_iter().filter(fits).collect()
}

fn number(request: &HttpRequest, name: &str) -> Option<u64> {
    request.query.get(name)?.parse().ok()
}
