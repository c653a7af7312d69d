//! Asks the user the questions of MCP servers at the terminal.

use crate::app::App;
use agent_core::language::Language;
use agent_mcp::client::ServerQuestion;
use agent_mcp::definition::harmless;
use agent_mcp::elicitation::{Field, FieldKind};
use agent_messages as messages;
use agent_terminal::{Style, Terminal};
use agent_text::lines::one_line;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Attempts at a field before the question is declined.
const MAX_TRIES: usize = 3;

/// Starts a task that asks one question after another until `until` fires, and returns the channel for the questions.
pub fn answer_in_background(
    app: &App,
    language: Language,
    until: CancellationToken,
) -> mpsc::UnboundedSender<ServerQuestion> {
    let (questions, mut asked) = mpsc::unbounded_channel::<ServerQuestion>();
    let terminal = Arc::clone(&app.terminal);
    tokio::spawn(async move {
        while let Some(question) = asked.recv().await {
            let answer = ask(&terminal, language, &question, &until).await;
            // The server may have given up waiting.
            let _sent = question.reply.send(answer);
        }
    });
    questions
}

/// Shows a question and asks for each field; `None` declines.
async fn ask(
    terminal: &Terminal,
    language: Language,
    question: &ServerQuestion,
    until: &CancellationToken,
) -> Option<Value> {
    let message = one_line(&harmless(&question.message), usize::MAX);
    terminal.eprintln(Style::Bold, &messages::mcp_question(&question.server, &message, language)).ok()?;
    let mut answer = Map::new();
    if question.fields.is_empty() {
        let is_confirmed = ask_field(terminal, &confirmation(language), until).await? == Some(true.into());
        return is_confirmed.then_some(Value::Object(answer));
    }
    for field in &question.fields {
        if let Some(value) = ask_field(terminal, field, until).await? {
            answer.insert(field.key.clone(), value);
        }
    }
    Some(Value::Object(answer))
}

/// Returns the field of a question that has none: an empty answer accepts what the server asks.
fn confirmation(language: Language) -> Field {
    let label = messages::mcp_confirmation(language).to_owned();
    Field { key: String::new(), label, kind: FieldKind::Bool, default: None, required: true }
}

/// Asks for one field. `None` declines the question; `Some(None)` leaves the field out.
async fn ask_field(terminal: &Terminal, field: &Field, until: &CancellationToken) -> Option<Option<Value>> {
    let default = field.default.as_ref().map(|default| format!(" [{default}]")).unwrap_or_default();
    let label = one_line(&format!("{}{}", field.label, harmless(&default)), usize::MAX);
    for _ in 0..MAX_TRIES {
        let typed = terminal.ask_text(&format!("   {label}: "), until).await?;
        match field.parse(&typed) {
            Ok(value) => return Some(value),
            Err(expected) => terminal.eprintln(Style::Warning, &format!("   {expected}")).ok()?,
        }
    }
    None
}
