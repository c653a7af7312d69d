//! Questions of a run as requests to the client: permission for a call, and the client's text of a file.

use super::files::SessionFiles;
use super::updates::{UpdateStream, kind, text_block, title};
use crate::json_rpc::outbox::Outbox;
use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, PermissionOption, PermissionOptionKind, ReadTextFileRequest, ReadTextFileResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use agent_core::language::Language;
use agent_engine::approver::{ApproverAnswer, Question};
use agent_messages as messages;
use agent_run::client::{ClientQuestion, UnsavedQuestion};
use agent_terminal::sanitize;
use agent_text::fence::fenced;
use serde_json::Value;
use std::time::Duration;

/// Ids of the answers.
const ALLOW: &str = "allow";
const ALWAYS: &str = "allow_always";
const REFUSE: &str = "refuse";

/// Time for the client to return the text of a file.
const FILE_TIME: Duration = Duration::from_secs(10);

/// Asks the client for permission. Without an answer the call is refused.
pub async fn ask(
    outbox: &Outbox,
    session: &str,
    updates: &UpdateStream,
    language: Language,
    question: ClientQuestion,
) {
    let ClientQuestion { question, mut reply } = question;
    let call_id = updates.call_id(&question.call);
    let request = permission_request(session, call_id, &question, language);
    let answer = outbox.request(CLIENT_METHOD_NAMES.session_request_permission, &request);
    tokio::select! {
        // The run no longer waits.
        () = reply.closed() => {}
        answer = answer => {
            let answer = answer.ok().and_then(Result::ok).map_or(ApproverAnswer::No(None), permission);
            let _sent = reply.send(answer);
        }
    }
}

fn permission_request(
    session: &str,
    call_id: String,
    question: &Question,
    language: Language,
) -> RequestPermissionRequest {
    let Question { tool, summary, reason, notes, preview, always_scope, .. } = question;
    let mut text = vec![sanitize(reason).into_owned()];
    text.extend(notes.iter().map(|note| sanitize(note).into_owned()));
    text.extend(preview.as_ref().map(|preview| fenced("", &sanitize(preview))));
    let fields = ToolCallUpdateFields::new()
        .title(title(tool, summary))
        .kind(kind(tool))
        .status(ToolCallStatus::Pending)
        .content(vec![text_block(&text.join("\n\n")).into()]);
    let [allow, always, refuse] = messages::permission_names(always_scope, language);
    let options = vec![
        PermissionOption::new(ALLOW, allow, PermissionOptionKind::AllowOnce),
        PermissionOption::new(ALWAYS, always, PermissionOptionKind::AllowAlways),
        PermissionOption::new(REFUSE, refuse, PermissionOptionKind::RejectOnce),
    ];
    let call = ToolCallUpdate::new(call_id, fields);
    RequestPermissionRequest::new(session.to_owned(), call, options)
}

/// Returns the answer of the client. What is not clearly an approval is a refusal.
fn permission(response: Value) -> ApproverAnswer {
    let outcome = serde_json::from_value(response).map(|it: RequestPermissionResponse| it.outcome);
    match outcome {
        Ok(RequestPermissionOutcome::Selected(selected)) if &*selected.option_id.0 == ALLOW => {
            ApproverAnswer::Yes
        }
        Ok(RequestPermissionOutcome::Selected(selected)) if &*selected.option_id.0 == ALWAYS => {
            ApproverAnswer::Always
        }
        _ => ApproverAnswer::No(None),
    }
}

/// Asks the client for its text of a file. Without an answer in time, or with one that contains no text, the file counts as unsaved;
/// an error of the client means that it has no such file open.
pub async fn ask_unsaved(outbox: &Outbox, session: &str, files: &SessionFiles, question: UnsavedQuestion) {
    let UnsavedQuestion { path, mut reply } = question;
    let request = ReadTextFileRequest::new(SessionId::new(session), files.absolute(&path));
    let answer = outbox.request(CLIENT_METHOD_NAMES.fs_read_text_file, &request);
    let answer = tokio::time::timeout(FILE_TIME, answer);
    let is_unsaved = tokio::select! {
        () = reply.closed() => return,
        answer = answer => match answer {
            Ok(Ok(Ok(response))) => !serde_json::from_value(response)
                .is_ok_and(|file: ReadTextFileResponse| !files.differs(&path, &file.content)),
            Ok(Ok(Err(_))) => false,
            Ok(Err(_)) | Err(_) => true,
        },
    };
    let _sent = reply.send(is_unsaved);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_clear_approval_is_one() {
        let of = |outcome: Value| permission(json!({ "outcome": outcome }));
        let selected = |id: &str| json!({"outcome": "selected", "optionId": id});
        assert_eq!(of(selected(ALLOW)), ApproverAnswer::Yes);
        assert_eq!(of(selected(ALWAYS)), ApproverAnswer::Always);
        for outcome in [
            selected(REFUSE),
            selected("Allow"),
            json!({"outcome": "selected"}),
            json!({"outcome": "cancelled"}),
            json!({"outcome": "cancelled", "optionId": ALLOW}),
            json!("allow"),
            Value::Null,
        ] {
            assert_eq!(of(outcome.clone()), ApproverAnswer::No(None), "{outcome}");
        }
    }
}
