//! Classes of failures of the model or the run; the class decides about retry, fallback and exit code.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Class of a failure; the name appears as `error.kind` in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum FailureKind {
    /// HTTP status 401 or 403, or a missing key.
    Auth,
    /// HTTP status 429 without a sign of an exhausted quota.
    RateLimit,
    /// The provider is overloaded (503, 529), or a request conflicts with another one (409).
    Overloaded,
    /// Another 5xx, or an error inside a 200 stream.
    Server,
    /// No connection, or a broken connection.
    Network,
    /// One of the four deadlines of a call passed.
    Timeout,
    /// Credit or quota is used up; waiting does not help.
    Quota,
    /// The prompt is larger than the model's context window.
    ContextOverflow,
    /// The model or the provider refused to answer.
    Refusal,
    /// The response does not follow the wire format.
    Malformed,
    /// Two responses in a row without text and without tool calls.
    EmptyAnswer,
    /// The server could not parse a tool call of its own model, several times.
    ToolUseFailed,
    /// The stream ended without a finish reason.
    CutStream,
    /// The server rejected the request as invalid (other 4xx).
    Request,
    /// The answer does not fit the requested schema, even after repairs.
    OutputSchema,
    /// A flag, key or file of the configuration is wrong.
    Config,
    /// Wrong use of the command line.
    Usage,
    /// A session that does not exist, is busy, or cannot be read.
    Session,
    /// A bug, or the journal cannot be written to disk.
    Internal,
}

crate::impl_name!(FailureKind);

/// An error that has a class.
pub trait Classified: std::error::Error + Send + Sync + 'static {
    /// Returns its class.
    fn kind(&self) -> FailureKind;
}

impl FailureKind {
    /// Returns a description of the class.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Auth => "the key is missing or was refused (401, 403)",
            Self::RateLimit => "too many requests for now (429)",
            Self::Overloaded => "the provider is overloaded (503, 529), or requests conflict (409)",
            Self::Server => "another error of the server (5xx), or one inside a stream",
            Self::Network => "no connection, or a broken connection",
            Self::Timeout => "one of the four deadlines of a call passed, or one of the server's (408)",
            Self::Quota => "credit or quota is used up; waiting does not help",
            Self::ContextOverflow => "the conversation is longer than the model's window",
            Self::Refusal => "the model or the provider refused to answer",
            Self::Malformed => "the response does not follow the wire format",
            Self::EmptyAnswer => "an answer with neither text nor a tool call",
            Self::ToolUseFailed => "the model wrote a tool call that its server could not read",
            Self::CutStream => "the stream ended without a finish reason",
            Self::Request => "the request was refused as invalid (other 4xx)",
            Self::OutputSchema => "the answer does not fit the schema of `--output-schema`, repairs included",
            Self::Config => "a flag, key or file of the configuration is wrong",
            Self::Usage => "the command line is wrong",
            Self::Session => "a session that does not exist, is busy or cannot be read",
            Self::Internal => "a bug, or the journal cannot be written",
        }
    }

    /// Checks whether the provider may have processed and billed a request that failed this way without reporting its
    /// usage.
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
}

/// A failure as the result reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Class of the failure.
    pub kind: FailureKind,
    /// What happened and what to do; never contains a key.
    pub message: String,
    /// Whether the same run could succeed later without a change.
    pub retryable: bool,
}
