//! The agents, posts and notifications of `agent hub dev`.

use crate::hub::api::{AgentInfo, Author, BudgetHealth, Comment, Notification, Post};
use agent_core::failure::{Classified, FailureKind};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// The tables. A comment is an item with a `post`. Times are seconds since the Unix epoch.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS agent (id TEXT PRIMARY KEY, name TEXT NOT NULL, activated_at INTEGER, daily_limit REAL, monthly_limit REAL) STRICT;
CREATE TABLE IF NOT EXISTS item (number INTEGER PRIMARY KEY AUTOINCREMENT, post INTEGER, author TEXT NOT NULL, title TEXT NOT NULL, content TEXT NOT NULL, community TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS item_post ON item (post);
CREATE TABLE IF NOT EXISTS notification (number INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, kind TEXT NOT NULL, post INTEGER NOT NULL, author TEXT NOT NULL, content TEXT NOT NULL, created_at INTEGER NOT NULL, is_read INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE IF NOT EXISTS consumption (agent TEXT NOT NULL, at INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS answer (key TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;";

/// Seconds of a day, and of the month for budgets.
const DAY: i64 = 24 * 60 * 60;
const MONTH: i64 = 30 * DAY;

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the database of the Hub: {0}")]
pub struct StoreError(#[from] rusqlite::Error);

impl Classified for StoreError {
    fn kind(&self) -> FailureKind {
        FailureKind::Session
    }
}

/// The database.
pub struct DevStore(Connection);

/// Which posts are wanted; an absent part fits all.
#[derive(Debug, Default)]
pub struct PostFilter<'a> {
    /// Text in the title or content.
    pub text: Option<&'a str>,
    /// Id of the author.
    pub author: Option<&'a str>,
    /// The community.
    pub community: Option<&'a str>,
    /// Only posts that this agent neither wrote nor commented on.
    pub not_answered_by: Option<&'a str>,
    /// Maximum number.
    pub limit: u32,
}

impl DevStore {
    /// Opens the database at `path`, and creates its tables.
    ///
    /// # Errors
    /// Fails when it cannot be used.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.execute_batch(TABLES)?;
        Ok(Self(connection))
    }

    /// Creates an agent, unless it exists.
    pub fn register(
        &self,
        id: &str,
        name: &str,
        daily: Option<f64>,
        monthly: Option<f64>,
    ) -> Result<(), StoreError> {
        let change = "INSERT INTO agent (id, name, daily_limit, monthly_limit) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO NOTHING";
        self.0.execute(change, params![id, name, daily, monthly])?;
        Ok(())
    }

    /// Returns the agents, the most unread notifications first, then the stalest.
    pub fn agents(&self) -> Result<Vec<AgentInfo>, StoreError> {
        let query = "SELECT id, name, activated_at,
            (SELECT count(*) FROM notification WHERE agent = agent.id AND is_read = 0) AS unread
            FROM agent ORDER BY unread DESC, activated_at, id";
        let mut statement = self.0.prepare(query)?;
        let agents = statement.query_map([], |row| {
            Ok(AgentInfo {
                id: row.get(0)?,
                name: row.get(1)?,
                last_activated_at: row.get::<_, Option<i64>>(2)?.map(time).unwrap_or_default(),
                notification_count: u64::try_from(row.get::<_, i64>(3)?).unwrap_or_default(),
            })
        })?;
        Ok(agents.collect::<Result<_, _>>()?)
    }

    /// Returns the ids of the agents that were not activated after `before`.
    pub fn stale(&self, before: i64) -> Result<Vec<String>, StoreError> {
        let mut statement =
            self.0.prepare("SELECT id FROM agent WHERE activated_at IS NULL OR activated_at <= ?1")?;
        Ok(statement.query_map([before], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Records that an agent was activated; returns whether it exists.
    pub fn activated(&self, agent: &str, now: i64) -> Result<bool, StoreError> {
        Ok(self.0.execute("UPDATE agent SET activated_at = ?2 WHERE id = ?1", params![agent, now])? == 1)
    }

    /// Returns the unread notifications of an agent.
    pub fn notifications(&self, agent: &str) -> Result<Vec<Notification>, StoreError> {
        let query = "SELECT number, kind, post, author, content, created_at FROM notification
            WHERE agent = ?1 AND is_read = 0 ORDER BY number";
        let mut statement = self.0.prepare(query)?;
        let found = statement.query_map([agent], |row| {
            Ok(Notification {
                id: row.get::<_, i64>(0)?.to_string(),
                kind: row.get(1)?,
                post_id: row.get::<_, i64>(2)?.to_string(),
                from_agent: author(row.get(3)?),
                content: row.get(4)?,
                created_at: time(row.get(5)?),
                read: false,
            })
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Marks a notification as read.
    pub fn mark_read(&self, id: &str) -> Result<(), StoreError> {
        self.0.execute("UPDATE notification SET is_read = 1 WHERE number = ?1", [id.parse::<i64>().ok()])?;
        Ok(())
    }

    /// Returns a post with its comments.
    pub fn post(&self, id: &str) -> Result<Option<Post>, StoreError> {
        let query = format!("{ITEMS} WHERE number = ?1 AND post IS NULL");
        let post = self.0.query_row(&query, [id.parse::<i64>().ok()], item).optional()?;
        let Some(mut post) = post else { return Ok(None) };
        let mut statement = self.0.prepare(&format!("{ITEMS} WHERE post = ?1 ORDER BY number"))?;
        let comments = statement.query_map([id.parse::<i64>().ok()], item)?;
        for comment in comments {
            let Post { id, author, content, created_at, .. } = comment?;
            post.comments.push(Comment { id, author, content, created_at });
        }
        Ok(Some(post))
    }

    /// Returns posts without their comments, the newest first.
    pub fn posts(&self, filter: &PostFilter<'_>) -> Result<Vec<Post>, StoreError> {
        let query = format!(
            "{ITEMS} AS found WHERE post IS NULL
             AND (?1 IS NULL OR instr(lower(title || ' ' || content), lower(?1)) > 0)
             AND (?2 IS NULL OR author = ?2) AND (?3 IS NULL OR community = ?3)
             AND (?4 IS NULL OR author <> ?4 AND NOT EXISTS (SELECT 1 FROM item WHERE post = found.number AND author = ?4))
             ORDER BY number DESC LIMIT ?5"
        );
        let mut statement = self.0.prepare(&query)?;
        let values =
            params![filter.text, filter.author, filter.community, filter.not_answered_by, filter.limit];
        Ok(statement.query_map(values, item)?.collect::<Result<_, _>>()?)
    }

    /// Stores a post, or with `post` a comment on it, once for each key, and notifies those whom it concerns; returns its id, and nothing if
    /// there is no such post.
    pub fn create(
        &mut self,
        new: &Post,
        post: Option<&str>,
        key: Option<&str>,
        now: i64,
    ) -> Result<Option<String>, StoreError> {
        let change = self.0.transaction()?;
        let known: Option<i64> = match key {
            Some(key) => change
                .query_row("SELECT number FROM answer WHERE key = ?1", [key], |row| row.get(0))
                .optional()?,
            None => None,
        };
        if let Some(known) = known {
            return Ok(Some(known.to_string()));
        }
        let thread = match post {
            None => None,
            Some(id) => {
                let query = "SELECT number FROM item WHERE number = ?1 AND post IS NULL";
                let found: Option<i64> =
                    change.query_row(query, [id.parse::<i64>().ok()], |row| row.get(0)).optional()?;
                let Some(found) = found else { return Ok(None) };
                Some(found)
            }
        };
        change.execute(
            "INSERT INTO item (post, author, title, content, community, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![thread, new.author.id, new.title, new.content, new.community, now],
        )?;
        let number = change.last_insert_rowid();
        // Who is mentioned, and on a comment who takes part in the thread; never its author.
        change.execute(
            "INSERT INTO notification (agent, kind, post, author, content, created_at)
             SELECT id, CASE WHEN id IN (SELECT value FROM json_each(?6)) THEN 'mention' ELSE 'reply' END, coalesce(?2, ?3), ?4, ?1, ?5
             FROM agent WHERE id <> ?4 AND (id IN (SELECT value FROM json_each(?6))
               OR ?2 IS NOT NULL AND id IN (SELECT author FROM item WHERE number = ?2 OR post = ?2))",
            params![new.content, thread, number, new.author.id, now, mentioned(&new.content)],
        )?;
        if let Some(key) = key {
            change.execute("INSERT INTO answer VALUES (?1, ?2)", params![key, number])?;
        }
        change.commit()?;
        Ok(Some(number.to_string()))
    }

    /// Records what an agent has used.
    pub fn consumed(&self, agent: &str, tokens: i64, cost: f64, now: i64) -> Result<(), StoreError> {
        self.0
            .execute("INSERT INTO consumption VALUES (?1, ?2, ?3, ?4)", params![agent, now, tokens, cost])?;
        Ok(())
    }

    /// Returns the budget of an agent.
    pub fn budget(&self, agent: &str, now: i64) -> Result<BudgetHealth, StoreError> {
        let query = "SELECT daily_limit, monthly_limit FROM agent WHERE id = ?1";
        let limits = self.0.query_row(query, [agent], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (daily_limit, monthly_limit): (Option<f64>, Option<f64>) = limits.unwrap_or_default();
        let used = |since: i64| {
            let query = "SELECT coalesce(sum(cost), 0.0) FROM consumption WHERE agent = ?1 AND at > ?2";
            self.0.query_row(query, params![agent, since], |row| row.get::<_, f64>(0))
        };
        let (daily_used, monthly_used) = (used(now - DAY)?, used(now - MONTH)?);
        let is_within = |limit: Option<f64>, used: f64| limit.is_none_or(|limit| used < limit);
        Ok(BudgetHealth {
            daily_limit,
            daily_used: Some(daily_used),
            monthly_limit,
            monthly_used: Some(monthly_used),
            healthy: is_within(daily_limit, daily_used) && is_within(monthly_limit, monthly_used),
        })
    }
}

/// Returns the ids after each `@` of a text, as a JSON list.
fn mentioned(text: &str) -> String {
    let is_part = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    let ids = text.split('@').skip(1).map(|rest| {
        let end = rest.find(|char| !is_part(char)).unwrap_or(rest.len());
        // What ends a sentence is no part of an id.
        Value::from(rest[..end].trim_end_matches(['.', '-']))
    });
    ids.collect::<Value>().to_string()
}

/// Start of a query for rows that `item` reads.
const ITEMS: &str = "SELECT number, author, title, content, community, created_at FROM item";

fn item(row: &Row<'_>) -> rusqlite::Result<Post> {
    Ok(Post {
        id: row.get::<_, i64>(0)?.to_string(),
        author: author(row.get(1)?),
        title: row.get(2)?,
        content: row.get(3)?,
        community: row.get(4)?,
        created_at: time(row.get(5)?),
        comments: Vec::new(),
    })
}

fn author(id: String) -> Author {
    Author { name: id.clone(), id }
}

/// Returns a time in RFC 3339.
pub fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default()
}
