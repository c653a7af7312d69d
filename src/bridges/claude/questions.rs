//! Questions of a run as control requests: `can_use_tool`.

use super::outbox::Outbox;
use super::permissions::{Permissions, Permitted};
use agent_config::claude_names::names;
use agent_core::message::CallKey;
use agent_engine::approver::{ApproverAnswer, Question};
use agent_messages as messages;
use agent_report::claude::{ClaudeEvents, ShownCall};
use agent_run::client::ClientQuestion;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

/// Asks the client for permission.
#[derive(Clone)]
pub struct Questioner {
    /// The way to the client.
    pub outbox: Rc<Outbox>,
    /// What runs without asking.
    pub permissions: Rc<Permissions>,
    /// The calls that the client has seen.
    pub events: Rc<RefCell<ClaudeEvents>>,
    /// The workspace.
    pub root: PathBuf,
}

impl Questioner {
    /// Answers a question of the run.
    pub async fn answer(&self, question: ClientQuestion) {
        let ClientQuestion { question, mut reply } = question;
        let answer = async {
            match self.permissions.answer(&question) {
                Permitted::Yes => ApproverAnswer::Yes,
                Permitted::Unanswered => ApproverAnswer::NoApprover,
                Permitted::Ask => self.ask(&question).await,
            }
        };
        let answer = tokio::select! {
            // The run no longer waits.
            () = reply.closed() => return,
            answer = answer => answer,
        };
        let _sent = reply.send(answer);
    }

    async fn ask(&self, question: &Question) -> ApproverAnswer {
        let Question { call, tool, arguments, summary, reason, notes, .. } = question;
        let call = self.shown(call, tool, arguments);
        let reason = [reason].into_iter().chain(notes).map(String::as_str).collect::<Vec<_>>().join("\n");
        match self.outbox.request(request(&call, summary, &reason)).await {
            Ok(answer) => decision(tool, &call.input, &answer),
            Err(why) => ApproverAnswer::No(Some(why)),
        }
    }

    /// Returns a call with the names there and the id that the client knows.
    pub fn shown(&self, call: &CallKey, tool: &str, arguments: &Value) -> ShownCall {
        let (name, input) = names().call_there(tool, arguments, &self.root);
        let id = self.events.borrow().call(call).map_or_else(|| call.id.clone(), |call| call.id.clone());
        ShownCall { id, name, input }
    }

    /// Asks whether a call that needs no approval may run, because a hook of the client wants to be asked.
    ///
    /// # Errors
    /// Why it may not.
    pub async fn confirm(&self, call: &ShownCall, reason: &str) -> Result<(), String> {
        if !self.permissions.can_ask() {
            return Err(reason.to_owned());
        }
        let answer = self.outbox.request(request(call, &call.name, reason)).await?;
        match decision(&call.name, &call.input, &answer) {
            ApproverAnswer::Yes => Ok(()),
            ApproverAnswer::No(Some(why)) => Err(why),
            _ => Err(messages::CLAUDE_NO_ANSWER.to_owned()),
        }
    }
}

fn request(call: &ShownCall, title: &str, reason: &str) -> Value {
    json!({"subtype": "can_use_tool", "tool_name": call.name, "input": call.input, "tool_use_id": call.id,
        "title": title, "decision_reason": reason})
}

/// Returns the answer of the client. What is not clearly an approval is a refusal.
fn decision(tool: &str, input: &Value, answer: &Value) -> ApproverAnswer {
    match (answer["behavior"].as_str(), &answer["updatedInput"]) {
        (Some("allow"), Value::Null) => ApproverAnswer::Yes,
        (Some("allow"), updated) if updated == input => ApproverAnswer::Yes,
        (Some("allow"), updated @ Value::Object(_)) => {
            ApproverAnswer::YesWith(names().arguments_here(tool, updated))
        }
        (Some("deny"), _) if answer["interrupt"] == true => ApproverAnswer::Abort,
        (Some("deny"), _) => ApproverAnswer::No(answer["message"].as_str().map(str::to_owned)),
        _ => ApproverAnswer::No(Some(messages::CLAUDE_NO_ANSWER.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_approval_is_one() {
        let input = json!({"command": "ls"});
        let of = |answer: Value| decision("run_command", &input, &answer);
        assert_eq!(of(json!({"behavior": "allow"})), ApproverAnswer::Yes);
        assert_eq!(of(json!({"behavior": "allow", "updatedInput": {"command": "ls"}})), ApproverAnswer::Yes);
        let changed = json!({"behavior": "allow", "updatedInput": {"command": "pwd", "timeout": 1500}});
        assert_eq!(of(changed), ApproverAnswer::YesWith(json!({"command": "pwd", "timeout": 2})));
        assert_eq!(
            of(json!({"behavior": "deny", "message": "no"})),
            ApproverAnswer::No(Some("no".to_owned()))
        );
        assert_eq!(of(json!({"behavior": "deny", "interrupt": true})), ApproverAnswer::Abort);
        for answer in [
            json!(null),
            json!("allow"),
            json!({}),
            json!({"behavior": "Allow"}),
            json!({"behavior": true}),
            json!({"behavior": "allow", "updatedInput": "x"}),
        ] {
            assert!(matches!(of(answer.clone()), ApproverAnswer::No(_)), "{answer}");
        }
    }
}
