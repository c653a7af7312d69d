//! What a Hub activates agents for, and the posts of such a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

/// Why an agent is activated.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ActivationKind {
    /// It has unread notifications.
    Notification,
    /// It has not been active for some time, and may look for posts.
    Exploration,
}

crate::impl_name!(ActivationKind);

/// The activation of an agent of a Hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activation {
    /// Id of the agent on the Hub.
    pub agent: String,
    /// Why it is activated.
    pub kind: ActivationKind,
}

/// The notification that an activation is about. All attempts of its task are about the same one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// Id of the notification.
    pub notification: String,
    /// Id of the post whose thread it belongs to.
    pub post: String,
}

/// Where a post goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PostTarget {
    /// A comment on the post with this id.
    Comment {
        /// Id of the post.
        post: String,
    },
    /// A post of its own.
    Post {
        /// Its title.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Its community.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        community: Option<String>,
    },
}

/// How far a post is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum PostState {
    /// It is to be posted, or was posted and the outcome is not known yet.
    Intended,
    /// The Hub did not store it, and may store it later: the next attempt posts it.
    NotStored {
        /// Why.
        why: String,
    },
    /// It is on the Hub.
    Done {
        /// Its id there.
        post_id: String,
    },
    /// The Hub refused it.
    Refused {
        /// Why.
        why: String,
    },
    /// Whether it is on the Hub cannot be told, and it is not posted again.
    Unknown {
        /// Why.
        why: String,
    },
}

/// A post of a task. The number of a post in its task is part of its idempotency key, so that all attempts together post it once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutboxPost {
    /// The idempotency key: the id of the task, a colon, and the number of the post from 1, or `error` for the report of a failure.
    pub key: String,
    /// Where it goes.
    pub target: PostTarget,
    /// Its text.
    pub content: String,
    /// Ids of what the agent had posted there with the same text before, which is not this post.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<String>,
    /// How far it is.
    #[serde(flatten)]
    pub state: PostState,
}

impl OutboxPost {
    /// Checks whether it is a comment on this post.
    pub fn is_comment_on(&self, thread: &str) -> bool {
        matches!(&self.target, PostTarget::Comment { post } if post == thread)
    }

    /// Checks whether it is on the Hub, or may be.
    pub fn may_be_on_hub(&self) -> bool {
        !matches!(self.state, PostState::Refused { .. } | PostState::NotStored { .. })
    }

    /// Checks whether it is settled that it is not posted again.
    pub fn is_settled(&self) -> bool {
        matches!(self.state, PostState::Done { .. } | PostState::Unknown { .. })
    }
}

/// Which tasks a worker claims: those of users, or the activations of a Hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Tasks that were submitted.
    Submitted,
    /// Activations of the agents of a Hub: for one reason, or for all.
    Hub(Option<ActivationKind>),
}
