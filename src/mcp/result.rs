//! Results of calls as text and images for the model.

use super::definition::harmless;
use crate::text::lines::{QUOTE_CHARS, one_line};
use crate::tools::{ToolContext, ToolOutput};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ImageContent, ResourceContents};

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
    let text = match &result.structured_content {
        // Servers repeat it as text for clients that do not know it.
        Some(structured) if result.content.is_empty() => structured.to_string(),
        _ => parts.join("\n"),
    };
    ToolOutput { is_error, images, ..ToolOutput::ok(text) }
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
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Describes content in base64 that is left out.
fn left_out(what: &str, base64_bytes: usize) -> String {
    format!("[{what}, about {} bytes, not shown]", base64_bytes / 4 * 3)
}
