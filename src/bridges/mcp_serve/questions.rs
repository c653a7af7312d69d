//! Questions of a run as questions of MCP to the client (elicitation).

use agent_engine::approver::{ApproverAnswer, Question};
use agent_terminal::sanitize;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value, json};

const ALLOW: &str = "allow";
const ALWAYS: &str = "allow until the run ends";
const REFUSE: &str = "refuse";

/// Returns the form for a question.
pub fn form(question: &Question) -> Result<ElicitRequestParams, serde_json::Error> {
    let Question { tool, summary, reason, notes, preview, always_scope, .. } = question;
    let mut message = format!("{tool} {summary}\n{reason}");
    for line in notes.iter().chain(preview) {
        message.push('\n');
        message.push_str(line);
    }
    let message = sanitize(&message).into_owned();
    let always = sanitize(&format!("`{ALWAYS}` covers {always_scope}")).into_owned();
    let requested_schema: ElicitationSchema = serde_json::from_value(json!({
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": [ALLOW, ALWAYS, REFUSE], "description": always},
            "reason": {"type": "string", "description": "Why it is refused; the model reads it"},
        },
        "required": ["decision"],
    }))?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Returns the answer of the client. What is not clearly an approval is a refusal.
pub fn answer(result: &ElicitResult) -> ApproverAnswer {
    let content = result.content.clone().unwrap_or_default();
    let decision = content["decision"].as_str().unwrap_or_default();
    match (&result.action, decision) {
        (ElicitationAction::Accept, ALLOW) => ApproverAnswer::Yes,
        (ElicitationAction::Accept, ALWAYS) => ApproverAnswer::Always,
        _ => ApproverAnswer::No(reason(&content)),
    }
}

fn reason(content: &Value) -> Option<String> {
    content["reason"].as_str().filter(|reason| !reason.trim().is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_approval_is_one() {
        let of = |action, content: Value| answer(&ElicitResult::new(action).with_content(content));
        assert_eq!(of(ElicitationAction::Accept, json!({"decision": "allow"})), ApproverAnswer::Yes);
        assert_eq!(of(ElicitationAction::Accept, json!({"decision": ALWAYS})), ApproverAnswer::Always);
        for (action, content) in [
            (ElicitationAction::Accept, json!({})),
            (ElicitationAction::Accept, json!({"decision": "Allow"})),
            (ElicitationAction::Decline, json!({"decision": "allow"})),
            (ElicitationAction::Cancel, json!({"decision": "allow"})),
        ] {
            assert_eq!(of(action, content), ApproverAnswer::No(None));
        }
        let why = of(ElicitationAction::Accept, json!({"decision": "refuse", "reason": "not now"}));
        assert_eq!(why, ApproverAnswer::No(Some("not now".to_owned())));
    }
}
