//! The prompt of a client, and how its run ended, in terms of the protocol.

use super::message::{failed, invalid_params};
use crate::core::language::Language;
use crate::core::run_result::RunResult;
use crate::core::stop_reason::{Status, StopReason};
use crate::messages;
use crate::text::fence::fenced;
use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, Error, StopReason as ClientStopReason,
};
use serde_json::json;
use std::fmt::Write as _;

/// Returns the text of a prompt. Files are given by their address or with their text.
///
/// # Errors
/// When it is empty, or contains what was not announced: images, audio or binary files.
pub fn prompt_text(blocks: &[ContentBlock]) -> Result<String, Error> {
    let mut text = String::new();
    for block in blocks {
        match block {
            ContentBlock::Text(part) => text.push_str(&part.text),
            ContentBlock::ResourceLink(link) => {
                let _infallible = write!(text, "[{}]({})", link.name, link.uri);
            }
            ContentBlock::Resource(part) => match &part.resource {
                EmbeddedResourceResource::TextResourceContents(file) => {
                    let _infallible = write!(text, "\n\n{}:\n{}\n", file.uri, fenced("", &file.text));
                }
                _ => return Err(invalid_params("embedded files must be text")),
            },
            _ => return Err(invalid_params("prompts take texts, links and embedded texts only")),
        }
    }
    if text.trim().is_empty() {
        return Err(invalid_params("the prompt is empty"));
    }
    Ok(text)
}

/// How a prompt ended.
pub struct PromptEnd {
    /// The stop reason of the protocol.
    pub reason: ClientStopReason,
    /// A message for the user that explains it.
    pub message: Option<String>,
}

/// Returns how a prompt ended whose run had this `result`.
///
/// # Errors
/// When the run failed.
pub fn prompt_end(result: &RunResult, is_cancelled: bool, language: Language) -> Result<PromptEnd, Error> {
    let end = |reason| PromptEnd { reason, message: None };
    let detail = result.error.as_ref().map(|error| error.message.as_str());
    match (result.status, result.stop_reason) {
        (Status::Success, _) => Ok(end(ClientStopReason::EndTurn)),
        (_, Some(StopReason::UserInterrupt)) => Ok(end(ClientStopReason::Cancelled)),
        _ if is_cancelled => Ok(end(ClientStopReason::Cancelled)),
        (Status::Failed, reason) => {
            let why = detail.map_or_else(|| reason.map_or("", StopReason::name).to_owned(), str::to_owned);
            let about =
                json!({"status": result.status, "stop_reason": reason, "session_id": result.session_id});
            Err(failed(&why).data(about))
        }
        (Status::Partial, reason) => {
            let client_reason = match reason {
                Some(StopReason::Truncated) => ClientStopReason::MaxTokens,
                Some(StopReason::ContentFilter) => ClientStopReason::Refusal,
                _ => ClientStopReason::MaxTurnRequests,
            };
            let guardrail = result.guardrails.last().map(|triggered| triggered.message.as_str());
            let message = messages::ended_early(reason, detail.or(guardrail), language);
            Ok(PromptEnd { reason: client_reason, message: Some(message) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    fn end(reason: StopReason, status: Status) -> Result<PromptEnd, Error> {
        let result = RunResult { status, stop_reason: Some(reason), ..RunResult::default() };
        prompt_end(&result, false, Language::En)
    }

    #[test]
    fn only_a_success_ends_the_turn_and_every_other_end_has_its_reason() {
        for reason in StopReason::VARIANTS.iter().copied() {
            for status in [Status::Partial, Status::Failed] {
                match end(reason, status) {
                    Ok(end) => {
                        assert_ne!(end.reason, ClientStopReason::EndTurn, "{reason} {status:?}");
                        let is_told = end.message.is_some_and(|text| text.contains(reason.name()));
                        assert_eq!(is_told, end.reason != ClientStopReason::Cancelled, "{reason} {status:?}");
                    }
                    Err(error) => assert_eq!(i32::from(error.code), -32603, "{reason}"),
                }
            }
        }
        assert_eq!(end(StopReason::LlmDone, Status::Success).unwrap().reason, ClientStopReason::EndTurn);
        assert_eq!(end(StopReason::Truncated, Status::Partial).unwrap().reason, ClientStopReason::MaxTokens);
        assert_eq!(
            end(StopReason::ContentFilter, Status::Partial).unwrap().reason,
            ClientStopReason::Refusal
        );
        assert_eq!(
            end(StopReason::MaxSteps, Status::Partial).unwrap().reason,
            ClientStopReason::MaxTurnRequests
        );
    }

    #[test]
    fn a_prompt_of_texts_links_and_embedded_texts_is_one_text() {
        let blocks: Vec<ContentBlock> = serde_json::from_value(json!([
            {"type": "text", "text": "Read "},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs"},
            {"type": "resource", "resource": {"uri": "file:///w/b.rs", "text": "```\nx"}}]))
        .unwrap();
        assert_eq!(
            prompt_text(&blocks).unwrap(),
            "Read [a.rs](file:///w/a.rs)\n\nfile:///w/b.rs:\n````\n```\nx\n````\n\n"
        );
        for block in [
            json!({"type": "image", "data": "", "mimeType": "image/png"}),
            json!({"type": "resource", "resource": {"uri": "file:///w/b", "blob": "AA=="}}),
            json!({"type": "text", "text": " "}),
        ] {
            let blocks = vec![serde_json::from_value(block.clone()).unwrap()];
            assert_eq!(i32::from(prompt_text(&blocks).unwrap_err().code), -32602, "{block}");
        }
    }
}
