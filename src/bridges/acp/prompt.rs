//! The prompt of a client, and how its run ended, in terms of the protocol.

use crate::json_rpc::message::{failed, invalid_params};
use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, Error, StopReason as ClientStopReason,
};
use agent_core::language::Language;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::{Status, StopReason};
use agent_messages as messages;
use agent_run::input_images::InputImages;
use agent_text::fence::fenced;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::fmt::Write as _;

/// A prompt of a client.
pub struct Prompt {
    /// Its text. Files are given by their address or with their text, images by their address or number.
    pub text: String,
    /// Its images.
    pub images: InputImages,
}

impl Prompt {
    /// Parses the blocks of a prompt.
    ///
    /// # Errors
    /// When it is empty, contains what was not announced (audio or binary files), or an image that cannot be used.
    pub fn parse(blocks: &[ContentBlock]) -> Result<Self, Error> {
        let (mut text, mut images) = (String::new(), Vec::new());
        for block in blocks {
            match block {
                ContentBlock::Text(part) => text.push_str(&part.text),
                ContentBlock::Image(image) => {
                    let bytes = STANDARD.decode(&image.data);
                    let bytes = bytes.map_err(|error| invalid_params(&format!("an image: {error}")))?;
                    let number = images.len().saturating_add(1).to_string();
                    let name = image.uri.clone().unwrap_or(number);
                    let _infallible = write!(text, "[image {name}]");
                    images.push((name, bytes));
                }
                ContentBlock::ResourceLink(link) => {
                    let _infallible = write!(text, "[{}]({})", link.name, link.uri);
                }
                ContentBlock::Resource(part) => match &part.resource {
                    EmbeddedResourceResource::TextResourceContents(file) => {
                        let _infallible = write!(text, "\n\n{}:\n{}\n", file.uri, fenced("", &file.text));
                    }
                    _ => return Err(invalid_params("embedded files must be text")),
                },
                _ => return Err(invalid_params("prompts take texts, images, links and embedded texts only")),
            }
        }
        if text.trim().is_empty() {
            return Err(invalid_params("the prompt is empty"));
        }
        let images = InputImages::from_client(images.into_iter()).map_err(|error| invalid_params(&error))?;
        Ok(Self { text, images })
    }
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
            let message = messages::ended_early(result, detail.or(guardrail), language);
            Ok(PromptEnd { reason: client_reason, message: Some(message) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::image_header::ImageFormat;
    use strum::VariantArray;

    /// A GIF of 2x1 pixels.
    const GIF: &[u8] = b"GIF89a\x02\0\x01\0\0\0\0";

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
    fn a_prompt_of_texts_links_images_and_embedded_texts_is_one_text() {
        let blocks: Vec<ContentBlock> = serde_json::from_value(json!([
            {"type": "text", "text": "Read "},
            {"type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs"},
            {"type": "image", "data": STANDARD.encode(GIF), "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///w/b.rs", "text": "```\nx"}}]))
        .unwrap();
        let prompt = Prompt::parse(&blocks).unwrap();
        let images: Vec<_> = prompt.images.images().map(|image| (image.width, image.media_type)).collect();
        assert_eq!(images, [(2, ImageFormat::Gif)], "the content tells the format, not the declared type");
        assert_eq!(
            prompt.text,
            "Read [a.rs](file:///w/a.rs)[image 1]\n\nfile:///w/b.rs:\n````\n```\nx\n````\n\n"
        );
        for block in [
            json!({"type": "image", "data": "", "mimeType": "image/png"}),
            json!({"type": "image", "data": "!", "mimeType": "image/png"}),
            json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
            json!({"type": "resource", "resource": {"uri": "file:///w/b", "blob": "AA=="}}),
            json!({"type": "text", "text": " "}),
        ] {
            let blocks = vec![serde_json::from_value(block.clone()).unwrap()];
            assert_eq!(i32::from(Prompt::parse(&blocks).err().unwrap().code), -32602, "{block}");
        }
    }
}
