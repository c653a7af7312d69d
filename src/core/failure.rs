//! What went wrong with the model or the run, in classes that decide what happens next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class of a failure; the names appear as `error.kind` in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// 401 or 403, or no key where one is needed.
    Auth,
    /// 429 without a sign of an exhausted quota.
    RateLimit,
    /// The provider says that it is overloaded (503, 529), or busy with a request that conflicts (409).
    Overloaded,
    /// Another 5xx, or an error inside a 200 stream.
    Server,
    /// No connection, or one that broke.
    Network,
    /// One of the four deadlines of a call passed.
    Timeout,
    /// Credit or quota is used up; waiting does not help.
    Quota,
    /// The prompt is larger than the model's window.
    ContextOverflow,
    /// The model or the provider refused to answer.
    Refusal,
    /// The answer is not what the wire format promises.
    Malformed,
    /// An answer without text and without tool calls, twice.
    EmptyAnswer,
    /// A tool call of the model that its own server could not read, several times.
    ToolUseFailed,
    /// The stream ended without a finish reason.
    CutStream,
    /// The request was refused as invalid (other 4xx).
    Request,
    /// The answer does not fit the schema it was asked for, repairs included.
    OutputSchema,
    /// A flag, key or file of the configuration is wrong.
    Config,
    /// Command line misuse.
    Usage,
    /// A session that does not exist, is busy, or cannot be read.
    Session,
    /// A bug, or a disk that no longer takes the journal.
    Internal,
}

impl FailureKind {
    /// Every class.
    pub const ALL: [Self; 19] = [
        Self::Auth,
        Self::RateLimit,
        Self::Overloaded,
        Self::Server,
        Self::Network,
        Self::Timeout,
        Self::Quota,
        Self::ContextOverflow,
        Self::Refusal,
        Self::Malformed,
        Self::EmptyAnswer,
        Self::ToolUseFailed,
        Self::CutStream,
        Self::Request,
        Self::OutputSchema,
        Self::Config,
        Self::Usage,
        Self::Session,
        Self::Internal,
    ];

    /// What it is, in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Auth => "the key is missing or was refused (401, 403)",
            Self::RateLimit => "too many requests for now (429)",
            Self::Overloaded => {
                "the provider says that it is overloaded (503, 529) or that requests conflict (409)"
            }
            Self::Server => "another error of the server (5xx), or one inside a stream",
            Self::Network => "no connection, or one that broke",
            Self::Timeout => "one of the four deadlines of a call passed, or one of the server's (408)",
            Self::Quota => "credit or quota is used up; waiting does not help",
            Self::ContextOverflow => "the conversation is longer than the model's window",
            Self::Refusal => "the model or the provider refused to answer",
            Self::Malformed => "the answer is not what the wire format promises",
            Self::EmptyAnswer => "an answer with neither text nor a tool call",
            Self::ToolUseFailed => "the model wrote a tool call that its server could not read",
            Self::CutStream => "the stream ended without its end",
            Self::Request => "the request was refused as invalid (other 4xx)",
            Self::OutputSchema => "the answer does not fit the schema of `--output-schema`, repairs included",
            Self::Config => "a flag, key or file of the configuration is wrong",
            Self::Usage => "the command line was misused",
            Self::Session => "a session that does not exist, is busy or cannot be read",
            Self::Internal => "a bug, or a disk that no longer takes the journal",
        }
    }

    /// Whether a request that failed so may have been worked on, and be billed although its usage was never seen.
    pub fn may_be_billed(self) -> bool {
        match self {
            Self::Server
            | Self::Network
            | Self::Timeout
            | Self::Refusal
            | Self::Malformed
            | Self::EmptyAnswer
            | Self::ToolUseFailed
            | Self::CutStream
            | Self::Internal => true,
            Self::Auth
            | Self::RateLimit
            | Self::Overloaded
            | Self::Quota
            | Self::ContextOverflow
            | Self::Request
            | Self::OutputSchema
            | Self::Config
            | Self::Usage
            | Self::Session => false,
        }
    }

    /// The name used in JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Server => "server",
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::Quota => "quota",
            Self::ContextOverflow => "context_overflow",
            Self::Refusal => "refusal",
            Self::Malformed => "malformed",
            Self::EmptyAnswer => "empty_answer",
            Self::ToolUseFailed => "tool_use_failed",
            Self::CutStream => "cut_stream",
            Self::Request => "request",
            Self::OutputSchema => "output_schema",
            Self::Config => "config",
            Self::Usage => "usage",
            Self::Session => "session",
            Self::Internal => "internal",
        }
    }
}

/// A failure as the result reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Its class.
    pub kind: FailureKind,
    /// What happened and what to do, in words; never holds a key.
    pub message: String,
    /// Whether the same run could succeed later without a change.
    pub retryable: bool,
}
