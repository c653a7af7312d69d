//! The client of a Hub. What is read may be repeated; what is posted is sent once, and its caller decides what a lost answer means.

use crate::hub::api::{
    self, AgentInfo, Agents, BudgetHealth, Created, Notification, Notifications, Post, Posts,
};
use agent_core::failure::{Classified, FailureKind};
use agent_core::hub::PostTarget;
use agent_http::{Deadlines, Delivery, Endpoint, HttpError, HttpResponse, RequestBody, own_origin};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time that the Hub may hold a poll, and by which the request takes longer.
const POLL_SECONDS: u64 = 30;
const POLL_MARGIN: Duration = Duration::from_secs(10);
/// Agents of one poll.
pub const POLL_AGENTS: usize = 100;
/// Tries of a request that reads.
const TRIES: u32 = 3;
/// Waits between them: the first one, and the longest one.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Maximum bytes of an answer.
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Characters of an error of the Hub in a message.
const ERROR_CHARS: usize = 200;

/// The header with the key of a post, by which a Hub that knows it stores the post once.
const KEY_HEADER: &str = "idempotency-key";

/// Why the Hub did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// It refuses the request, with this status.
    #[error("the Hub answers {0}: {1}")]
    Refused(u16, String),
    /// There is no connection: nothing was stored.
    #[error("{0}")]
    NotStored(String),
    /// The Hub asks to wait: nothing was stored.
    #[error("{0}")]
    Busy(String),
    /// The answer was lost: what was posted may be stored.
    #[error("{0}")]
    Lost(String),
    /// The answer cannot be read.
    #[error("the Hub sends an answer that cannot be read: {0}")]
    Unreadable(String),
    /// The address or the key is invalid.
    #[error("{0}")]
    Setup(String),
}

impl HubError {
    /// Checks whether the Hub does not have what was asked for.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(404, _))
    }

    /// Checks whether a later try may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NotStored(_) | Self::Busy(_) | Self::Lost(_) | Self::Unreadable(_))
    }
}

/// A connection to a Hub.
pub struct HubClient {
    endpoint: Endpoint,
    poll: Endpoint,
}

impl HubClient {
    /// Creates the client of the Hub at `url`; it connects with the first request. The key is sent nowhere else.
    ///
    /// # Errors
    /// When the address is neither https nor on this machine, or the key contains invalid characters.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self, HubError> {
        let setup = |error: HttpError| HubError::Setup(format!("hub.url: {error}"));
        own_origin::address(url).map_err(setup)?;
        let headers: Vec<_> = key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect();
        let within = |whole: Duration| {
            let deadlines = Deadlines { first_byte: whole, silence: whole, whole, ..Deadlines::default() };
            Endpoint::new(url, &headers, deadlines).map_err(setup)
        };
        Ok(Self {
            endpoint: within(TIMEOUT)?,
            poll: within(Duration::from_secs(POLL_SECONDS) + POLL_MARGIN)?,
        })
    }

    /// Returns the unread notifications of an agent, the oldest first.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn notifications(&self, agent: &str) -> Result<Vec<Notification>, HubError> {
        let path = format!("/api/v1/notifications?agent_id={}&unread=true", encoded(agent));
        let Notifications { mut notifications } = self.read(&path).await?;
        notifications.retain(|notification| !notification.read && !notification.id.is_empty());
        notifications.sort_by(|one, other| one.created_at.cmp(&other.created_at));
        Ok(notifications)
    }

    /// Waits for agents with unread notifications, up to 30 seconds, and returns them; `None` if the Hub cannot wait.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn poll(&self) -> Result<Option<Vec<AgentInfo>>, HubError> {
        let path = format!("/api/v1/notifications/poll?timeout={POLL_SECONDS}&batch_size={POLL_AGENTS}");
        match once(&self.poll, &path).await {
            Ok(Agents { agents }) => Ok(Some(agents)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the agents with unread notifications.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn with_notifications(&self) -> Result<Vec<AgentInfo>, HubError> {
        let Agents { agents } = self.read("/api/v1/agents?has_notifications=true").await?;
        Ok(agents)
    }

    /// Returns the agents that were not activated for so many seconds.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn stale(&self, seconds: u32) -> Result<Vec<AgentInfo>, HubError> {
        let Agents { agents } =
            self.read(&format!("/api/v1/agents?stale=true&min_staleness={seconds}")).await?;
        Ok(agents)
    }

    /// Returns a post with its comments.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn thread(&self, post: &str) -> Result<Post, HubError> {
        self.read(&format!("/api/v1/posts/{}?include_comments=true", encoded(post))).await
    }

    /// Searches posts.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn search(
        &self,
        text: &str,
        limit: u32,
        community: Option<&str>,
        author: Option<&str>,
    ) -> Result<Vec<Post>, HubError> {
        let mut path = format!("/api/v1/search?q={}&limit={limit}", encoded(text));
        for (name, value) in [("community", community), ("author", author)] {
            path.extend(value.map(|value| format!("&{name}={}", encoded(value))));
        }
        let Posts { posts } = self.read(&path).await?;
        Ok(posts)
    }

    /// Returns up to `limit` posts that the agent may want to answer.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn discover(
        &self,
        agent: &str,
        limit: u32,
        communities: &[String],
        keywords: &[String],
    ) -> Result<Vec<Post>, HubError> {
        let agent = encoded(agent);
        let mut path = format!("/api/v1/feed/discover?agent_id={agent}&exclude_responded=true&limit={limit}");
        for (name, values) in [("communities", communities), ("keywords", keywords)] {
            if !values.is_empty() {
                path.extend(["&", name, "=", &encoded(&values.join(","))]);
            }
        }
        let Posts { mut posts } = self.read(&path).await?;
        posts.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(posts)
    }

    /// Returns the budget of an agent.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn budget(&self, agent: &str) -> Result<BudgetHealth, HubError> {
        self.read(&format!("/api/v1/system/budget-health?agent_id={}", encoded(agent))).await
    }

    /// Posts a comment or a post, and returns its id.
    ///
    /// # Errors
    /// When the Hub refuses it, or whether it was stored is not known.
    pub async fn create(
        &self,
        agent: &str,
        target: &PostTarget,
        content: &str,
        key: &str,
    ) -> Result<String, HubError> {
        let mut body = json!({"agent_id": agent, "content": content});
        let path = match target {
            PostTarget::Comment { post } => format!("/api/v1/posts/{}/comments", encoded(post)),
            PostTarget::Post { title, community } => {
                for (name, value) in [("title", title), ("community", community)] {
                    if let Some(value) = value {
                        body[name] = value.clone().into();
                    }
                }
                "/api/v1/posts".to_owned()
            }
        };
        let Created { id } = read_answer(self.send(&path, &body, key).await?).await?;
        // Without an id it cannot be told what was stored.
        if id.is_empty() { Err(HubError::Lost("the Hub answers without an id".to_owned())) } else { Ok(id) }
    }

    /// Marks notifications as read, which may be repeated.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn mark_read(&self, notifications: &[&str], key: &str) -> Result<(), HubError> {
        self.tell("/api/v1/notifications/read", &json!({"notification_ids": notifications}), key).await
    }

    /// Tells the Hub that an agent was activated.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn activated(&self, agent: &str, key: &str) -> Result<(), HubError> {
        self.tell(&format!("/api/v1/agents/{}/activated", encoded(agent)), &json!({}), key).await
    }

    /// Posts something without an answer that matters, once.
    ///
    /// # Errors
    /// When the Hub does not answer, or refuses.
    pub async fn tell(&self, path: &str, body: &Value, key: &str) -> Result<(), HubError> {
        self.send(path, body, key).await.map(drop)
    }

    async fn send(&self, path: &str, body: &Value, key: &str) -> Result<HttpResponse, HubError> {
        let payload = RequestBody::from(body.to_string().into_bytes());
        let delivery = Delivery::Whole { thinks: false };
        let answer = self.endpoint.post_with_header(path, &payload, (KEY_HEADER, key), delivery).await;
        accepted(answer.map_err(http_error)?).await
    }

    /// Reads a document; a request that was lost, or failed on the side of the Hub, is repeated.
    async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, HubError> {
        let mut wait = FIRST_WAIT;
        for _ in 1..TRIES {
            match once(&self.endpoint, path).await {
                Err(HubError::NotStored(_) | HubError::Lost(_)) => sleep(wait).await,
                done => return done,
            }
            wait = (wait * 2).min(MAX_WAIT);
        }
        once(&self.endpoint, path).await
    }
}

async fn once<T: DeserializeOwned>(endpoint: &Endpoint, path: &str) -> Result<T, HubError> {
    read_answer(accepted(endpoint.get(path).await.map_err(http_error)?).await?).await
}

/// Returns the answer if its status is one of success.
async fn accepted(answer: HttpResponse) -> Result<HttpResponse, HubError> {
    let (status, line) = (answer.status(), answer.status_line());
    if (200..300).contains(&status) {
        return Ok(answer);
    }
    let body = answer.error_body().await;
    let text = agent_text::lines::one_line(&String::from_utf8_lossy(&body), ERROR_CHARS);
    let why = format!("the Hub answers {line}: {text}");
    Err(match status {
        429 => HubError::Busy(why),
        400..500 => HubError::Refused(status, if text.is_empty() { line } else { text }),
        _ => HubError::Lost(why),
    })
}

async fn read_answer<T: DeserializeOwned>(mut answer: HttpResponse) -> Result<T, HubError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(http_error)? {
        body.extend_from_slice(chunk.as_ref());
        if body.len() > MAX_ANSWER_BYTES {
            return Err(HubError::Unreadable(format!("it has more than {} MiB", MAX_ANSWER_BYTES >> 20)));
        }
    }
    api::parse(&body).map_err(|error| HubError::Unreadable(error.to_string()))
}

#[expect(clippy::needless_pass_by_value, reason = "used with `map_err`")]
fn http_error(error: HttpError) -> HubError {
    let why = format!("the Hub: {error}");
    match error {
        HttpError::Address(_) | HttpError::Key | HttpError::Setup(_) | HttpError::Redirect(_) => {
            HubError::Setup(why)
        }
        HttpError::Connect(_) | HttpError::Tls(_) => HubError::NotStored(why),
        HttpError::Timeout(..) | HttpError::Broken(_) | HttpError::TooLarge(_) => HubError::Lost(why),
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

impl Classified for HubError {
    fn kind(&self) -> FailureKind {
        match self {
            Self::Setup(_) => FailureKind::Config,
            Self::Refused(401 | 403, _) => FailureKind::Auth,
            Self::Refused(..) => FailureKind::Request,
            _ => FailureKind::Network,
        }
    }
}
