//! Results of calls as text and images for the model. Content that is not of the protocol is read block by block: the call has run, and its
//! model would repeat it if the rest were lost.

use super::definition::harmless;
use agent_text::lines::{QUOTE_CHARS, one_line};
use agent_tools::{ToolContext, ToolOutput};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CallToolResult, ContentBlock, CustomResult, ImageContent, JsonRpcMessage, ResourceContents, ServerResult,
};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::borrow::Cow;

/// Stands for a block that is not of the protocol and contains no text.
const UNKNOWN: &str = "[content of an unknown kind]";

/// Returns a result for the model. Images are stored for the conversation; other content that is no text is described in a line.
pub fn output(result: &CallToolResult, tool: &str, cx: &ToolContext) -> ToolOutput {
    let is_error = result.is_error == Some(true);
    let (mut parts, mut images) = (Vec::new(), Vec::new());
    for block in &result.content {
        match block {
            ContentBlock::Image(content) if !is_error => match image_bytes(content) {
                Some(bytes) => match cx.store_image(tool, &bytes) {
                    Ok(image) => images.push(image),
                    Err(why) => parts.push(format!("[an image that cannot be shown: {why}]")),
                },
                None => parts.push("[an image that is not valid base64]".to_owned()),
            },
            block => parts.push(text(block)),
        }
    }
    let structured = result.structured_content.iter().filter(|structured| !structured.is_null());
    // Servers repeat it as text for clients that do not know it.
    parts.extend(structured.filter(|structured| !repeats(result, structured)).map(Value::to_string));
    let text = parts.join("\n");
    if is_error && text.trim().is_empty() {
        return ToolOutput::error("the tool reports an error without a description");
    }
    ToolOutput { is_error, images, ..ToolOutput::ok(text) }
}

/// Checks whether a text of `result` is the same JSON as `structured`.
fn repeats(result: &CallToolResult, structured: &Value) -> bool {
    let texts = result.content.iter().filter_map(ContentBlock::as_text);
    let mut values = texts.filter_map(|text| serde_json::from_str::<Value>(&text.text).ok());
    values.any(|value| value == *structured)
}

/// A transport that reads results of calls whose content is not of the protocol, which `rmcp` would drop.
pub struct LenientTransport<T>(pub T);

impl<T: Transport<RoleClient>> Transport<RoleClient> for LenientTransport<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.0.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut message = self.0.receive().await?;
        if let JsonRpcMessage::Response(response) = &mut message
            && let Some(result) = lenient(&response.result)
        {
            response.result = ServerResult::CallToolResult(result);
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.close()
    }
}

/// Returns the result of a call that `rmcp` has not recognised; `None` if it is none.
fn lenient(result: &ServerResult) -> Option<CallToolResult> {
    let fields = match result {
        ServerResult::CustomResult(CustomResult(Value::Object(fields))) => fields,
        ServerResult::CustomResult(CustomResult(other)) if !other.is_null() => return Some(of_blocks(other)),
        _ => return None,
    };
    // The result of the first version of the protocol is any value.
    let old =
        fields.get("toolResult").map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let content = fields.get("content").cloned().or_else(|| old.map(Value::String));
    let (structured, is_error) = (fields.get("structuredContent"), fields.get("isError"));
    if content.is_none() && structured.is_none() && is_error.is_none() {
        return None;
    }
    let mut result = of_blocks(&content.unwrap_or_default());
    result.structured_content = structured.cloned();
    result.is_error = is_error.and_then(Value::as_bool);
    Some(result)
}

/// Returns a result with this content: a list of blocks, or one.
fn of_blocks(content: &Value) -> CallToolResult {
    CallToolResult::success(match content {
        Value::Null => Vec::new(),
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        other => vec![block(other)],
    })
}

/// Returns a block, or the text in it.
fn block(value: &Value) -> ContentBlock {
    if let Ok(block) = serde_json::from_value(value.clone()) {
        return block;
    }
    let text = if value.is_object() { value.get("text").unwrap_or(&Value::Null) } else { value };
    ContentBlock::text(match text {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => text.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => UNKNOWN.to_owned(),
    })
}

fn image_bytes(content: &ImageContent) -> Option<Vec<u8>> {
    STANDARD.decode(&content.data).ok()
}

fn text(block: &ContentBlock) -> String {
    let short = |text: &str| one_line(&harmless(text), QUOTE_CHARS);
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => left_out(&short(&image.mime_type), image.data.len()),
        ContentBlock::Audio(audio) => left_out(&short(&audio.mime_type), audio.data.len()),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {}]\n{text}", short(uri))
            }
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                left_out(&format!("resource {}", short(uri)), blob.len())
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            format!("[link to the resource {}: {}]", short(&link.uri), short(&link.name))
        }
        _ => UNKNOWN.to_owned(),
    }
}

/// Describes content in base64 that is left out.
fn left_out(what: &str, base64_bytes: usize) -> String {
    format!("[{what}, about {} bytes, not shown]", base64_bytes / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The text of the blocks of a result that a server sends, and whether it is an error.
    fn read(result: &Value) -> Option<(String, bool)> {
        let sent: ServerResult = serde_json::from_value(result.clone()).unwrap();
        let result = match sent {
            ServerResult::CallToolResult(result) => result,
            other => lenient(&other)?,
        };
        let texts: Vec<String> = result.content.iter().map(text).collect();
        Some((texts.join("|"), result.is_error == Some(true)))
    }

    // Fault A10: such answers were reported as calls that did not run, so the model repeated them.
    #[test]
    fn a_result_is_read_block_by_block() {
        for (sent, expected) in [
            (
                json!({"content": [{"text": "created 42"}, {"type": "card"}]}),
                "created 42|[content of an unknown kind]",
            ),
            (json!({"content": [{"type": "text", "text": 42}, {"type": "text", "text": true}]}), "42|true"),
            (
                json!({"content": [{"type": "text", "text": null}, null]}),
                "[content of an unknown kind]|[content of an unknown kind]",
            ),
            (json!({"content": ["a", {"type": "text", "text": "b"}]}), "a|b"),
            (json!({"content": "created"}), "created"),
            (json!({"content": {"type": "text", "text": "a"}}), "a"),
            (json!({"content": null, "isError": false}), ""),
            (json!({"toolResult": "created"}), "created"),
            (json!({"toolResult": {"id": 42}}), "{\"id\":42}"),
            (json!("created"), "created"),
            (json!(42), "42"),
            (json!({"resultType": "complete", "content": [{"type": "card"}]}), UNKNOWN),
        ] {
            assert_eq!(read(&sent), Some((expected.to_owned(), false)), "{sent}");
        }
        let failed = json!({"content": [{"type": "card", "text": "no"}], "isError": true});
        assert_eq!(read(&failed), Some(("no".to_owned(), true)));
        assert_eq!(read(&json!({"tools": [1]})), None);
        assert_eq!(read(&Value::Null), None);
    }

    // Fault A9: the model read "2 items." and none of them.
    #[test]
    fn structured_content_is_repeated_by_a_text_of_the_same_json_only() {
        let with = |text: &str| {
            let result =
                json!({"content": [{"type": "text", "text": text}], "structuredContent": {"a": 1, "b": [2]}});
            let result: CallToolResult = serde_json::from_value(result).unwrap();
            repeats(&result, result.structured_content.as_ref().unwrap())
        };
        assert!(with("{ \"b\": [2], \"a\": 1 }"));
        assert!(!with("2 items.") && !with("{\"a\": 1}"));
    }
}
