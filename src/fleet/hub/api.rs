//! The documents of the interface of a Hub. Fields that are not listed are ignored, and those that are missing are empty.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The answer with notifications.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Notifications {
    /// Those of the agent.
    pub notifications: Vec<Notification>,
}

/// A notification.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Notification {
    /// Its id.
    #[serde(deserialize_with = "text")]
    pub id: String,
    /// `mention`, `reply`, `follow` or `like`.
    #[serde(rename = "type", deserialize_with = "text")]
    pub kind: String,
    /// The post whose thread it belongs to.
    #[serde(deserialize_with = "text")]
    pub post_id: String,
    /// Who caused it.
    pub from_agent: Author,
    /// Its text.
    #[serde(deserialize_with = "text")]
    pub content: String,
    /// When it was created: a time in RFC 3339, or seconds.
    #[serde(deserialize_with = "text")]
    pub created_at: String,
    /// Whether it was read.
    pub read: bool,
}

/// An agent as the author of something.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Author {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

impl<'de> Deserialize<'de> for Author {
    /// Reads an object, or the id alone.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let part = |name: &str| value.get(name).map(plain).unwrap_or_default();
        Ok(match &value {
            Value::Object(_) => Self { id: part("id"), name: part("name") },
            other => Self { id: plain(other), name: String::new() },
        })
    }
}

impl Author {
    /// Returns the name, or the id where there is none.
    pub fn shown(&self) -> &str {
        if self.name.is_empty() { &self.id } else { &self.name }
    }
}

/// The answer with agents.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Agents {
    /// The agents.
    pub agents: Vec<AgentInfo>,
}

/// An agent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentInfo {
    /// Its id.
    #[serde(deserialize_with = "text")]
    pub id: String,
    /// Its name.
    #[serde(deserialize_with = "text")]
    pub name: String,
    /// Unread notifications.
    pub notification_count: u64,
    /// When it was last activated: a time in RFC 3339, or seconds; empty: never.
    #[serde(deserialize_with = "text")]
    pub last_activated_at: String,
}

/// The answers with posts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Posts {
    /// The posts; a search calls them `results`.
    #[serde(alias = "results")]
    pub posts: Vec<Post>,
}

/// A post.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Post {
    /// Its id.
    #[serde(deserialize_with = "text")]
    pub id: String,
    /// Who wrote it.
    pub author: Author,
    /// Its title.
    #[serde(deserialize_with = "text")]
    pub title: String,
    /// Its text.
    #[serde(deserialize_with = "text")]
    pub content: String,
    /// Its community.
    #[serde(deserialize_with = "text")]
    pub community: String,
    /// When it was created.
    #[serde(deserialize_with = "text")]
    pub created_at: String,
    /// The comments, if they were asked for.
    pub comments: Vec<Comment>,
}

impl Post {
    /// Returns the number of comments of an agent.
    pub fn comments_of(&self, agent: &str) -> u32 {
        let own = self.comments.iter().filter(|comment| comment.author.id == agent);
        u32::try_from(own.count()).unwrap_or(u32::MAX)
    }
}

/// A comment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Comment {
    /// Its id.
    #[serde(deserialize_with = "text")]
    pub id: String,
    /// Who wrote it.
    pub author: Author,
    /// Its text.
    #[serde(deserialize_with = "text")]
    pub content: String,
    /// When it was created.
    #[serde(deserialize_with = "text")]
    pub created_at: String,
}

/// The answer to a new post or comment.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Created {
    /// Its id.
    #[serde(deserialize_with = "text")]
    pub id: String,
}

/// The budget of an agent, in US dollars.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetHealth {
    /// Limit of a day.
    pub daily_limit: Option<f64>,
    /// What was used of it.
    pub daily_used: Option<f64>,
    /// Limit of a month.
    pub monthly_limit: Option<f64>,
    /// What was used of it.
    pub monthly_used: Option<f64>,
    /// Whether the agent may be activated.
    pub healthy: bool,
}

impl Default for BudgetHealth {
    fn default() -> Self {
        Self { daily_limit: None, daily_used: None, monthly_limit: None, monthly_used: None, healthy: true }
    }
}

impl BudgetHealth {
    /// Returns what is used of each limit, as text; `None` without limits.
    pub fn used_of_limits(&self) -> Option<String> {
        let used = |limit: Option<f64>, used: Option<f64>, period: &str| {
            Some(format!("{:.2} of {:.2} US dollars are used {period}", used.unwrap_or_default(), limit?))
        };
        let day = used(self.daily_limit, self.daily_used, "today");
        let month = used(self.monthly_limit, self.monthly_used, "this month");
        let periods: Vec<String> = day.into_iter().chain(month).collect();
        (!periods.is_empty()).then(|| periods.join(", "))
    }

    /// Returns why the agent may not be activated.
    pub fn refusal(&self) -> Option<String> {
        let is_used_up = |limit: Option<f64>, used: Option<f64>| {
            let (limit, used) = (limit?, used?);
            (used >= limit).then(|| format!("{used:.2} of {limit:.2} US dollars are used"))
        };
        let day = is_used_up(self.daily_limit, self.daily_used).map(|used| format!("{used} today"));
        let month =
            is_used_up(self.monthly_limit, self.monthly_used).map(|used| format!("{used} this month"));
        let unhealthy = (!self.healthy).then(|| "the Hub says that its budget is not healthy".to_owned());
        day.or(month).or(unhealthy)
    }
}

/// Reads a document of a Hub, in which null is the same as a missing field.
///
/// # Errors
/// For what is no JSON, or has values of another type.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, serde_json::Error> {
    let mut document: Value = serde_json::from_slice(body)?;
    remove_nulls(&mut document);
    serde_json::from_value(document)
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

/// Reads a text or a number.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Value::deserialize(deserializer).map(|value| plain(&value))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn b01_missing_fields_are_empty_others_are_ignored_and_ids_may_be_numbers() {
        let text = json!({"notifications": [{"id": 7, "type": "mention", "from_agent": null, "content": null, "more": 1}], "x": []});
        let Notifications { notifications } = serde_json::from_value(text).unwrap();
        let Notification { id, kind, post_id, from_agent, .. } = &notifications[0];
        assert_eq!(
            (id.as_str(), kind.as_str(), post_id.as_str(), from_agent.shown()),
            ("7", "mention", "", "")
        );
        let Posts { posts } =
            serde_json::from_value(json!({"results": [{"id": "p", "author": "a1"}]})).unwrap();
        assert_eq!(posts[0].author.shown(), "a1");
        let nulls = br#"{"id": "p", "author": null, "title": null, "comments": null}"#;
        let post: Post = parse(nulls).unwrap();
        assert_eq!((post.id.as_str(), post.comments.len()), ("p", 0));
        let agents: Agents = parse(br#"{"agents": [{"id": 1, "notification_count": null}]}"#).unwrap();
        assert_eq!(agents.agents[0].notification_count, 0);
    }

    #[test]
    fn b04_a_budget_is_healthy_unless_it_is_used_up_or_the_hub_says_otherwise() {
        let of = |value| serde_json::from_value::<BudgetHealth>(value).unwrap().refusal();
        assert_eq!(of(json!({})), None);
        assert_eq!(of(json!({"daily_limit": 2.0, "daily_used": 1.0, "healthy": true})), None);
        assert!(of(json!({"daily_limit": 2.0, "daily_used": 2.0})).unwrap().contains("today"));
        assert!(of(json!({"monthly_limit": 2, "monthly_used": 3})).unwrap().contains("this month"));
        assert!(of(json!({"healthy": false})).is_some());
    }

    // Fault B6.
    #[test]
    fn what_is_used_of_a_budget_is_told_for_each_limit() {
        let of = |value| serde_json::from_value::<BudgetHealth>(value).unwrap().used_of_limits();
        assert_eq!(of(json!({"daily_used": 1})), None);
        let both = json!({"daily_limit": 2, "daily_used": 0.5, "monthly_limit": 20});
        let text = "0.50 of 2.00 US dollars are used today, 0.00 of 20.00 US dollars are used this month";
        assert_eq!(of(both).as_deref(), Some(text));
    }
}
