//! Results of calls as text for the model.

use super::definition::harmless;
use crate::text::lines::{QUOTE_CHARS, one_line};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// Returns the text of a result. What is no text is described in a line.
pub fn text(result: &CallToolResult) -> String {
    let parts: Vec<String> = result.content.iter().map(block_text).collect();
    match &result.structured_content {
        // Servers repeat it as text for clients that do not know it.
        Some(structured) if result.content.is_empty() => structured.to_string(),
        _ => parts.join("\n"),
    }
}

fn block_text(block: &ContentBlock) -> String {
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
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Describes content in base64 that is left out.
fn left_out(what: &str, base64_bytes: usize) -> String {
    format!("[{what}, about {} bytes, not shown]", base64_bytes / 4 * 3)
}
