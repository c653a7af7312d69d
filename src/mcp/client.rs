//! What the agent answers to requests of a server: its questions, and nothing else. No sampling, no roots.

use super::elicitation::{Field, defaults, fields};
use rmcp::ClientHandler;
use rmcp::ClientLifecycleMode;
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, ProtocolVersion,
};
use rmcp::service::{RequestContext, RoleClient};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// Returns the handshake of the newest protocol, or of the older one if the server does not know that.
pub fn newest_or_older() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

/// How questions of servers are answered.
#[derive(Debug, Clone)]
pub enum Answers {
    /// They are declined.
    Decline,
    /// With the defaults in the question.
    Defaults,
    /// By the user, who gets them through this channel; declined if it is closed.
    Ask(mpsc::UnboundedSender<ServerQuestion>),
}

/// A question for the user.
#[derive(Debug)]
pub struct ServerQuestion {
    /// Name of the server.
    pub server: String,
    /// What the server says.
    pub message: String,
    /// The fields of the form.
    pub fields: Vec<Field>,
    /// Takes the answer; `None` declines.
    pub reply: oneshot::Sender<Option<Value>>,
}

/// Answers the requests of one server.
#[derive(Debug, Clone)]
pub struct Client {
    /// Name of the server.
    pub server: String,
    /// How its questions are answered.
    pub answers: Answers,
}

impl Client {
    async fn answer(&self, request: ElicitRequestParams) -> Option<Value> {
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
            return None;
        };
        let fields = fields(&serde_json::to_value(requested_schema).ok()?);
        match &self.answers {
            Answers::Decline => None,
            Answers::Defaults => defaults(&fields),
            Answers::Ask(user) => {
                let (reply, answer) = oneshot::channel();
                let question = ServerQuestion { server: self.server.clone(), message, fields, reply };
                user.send(question).ok()?;
                answer.await.ok()?
            }
        }
    }
}

impl ClientHandler for Client {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(match self.answer(request).await {
            Some(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if !matches!(self.answers, Answers::Decline) {
            let form = FormElicitationCapability::new();
            capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        }
        ClientConfig::new(capabilities, Implementation::new("agent", env!("CARGO_PKG_VERSION")))
    }
}
