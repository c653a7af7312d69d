//! Images in a conversation: how a user message contains them, and the lines that remain when they leave it.

use agent_core::image::Image;
use agent_core::message::{Message, Part, ToolResult};
use agent_messages as messages;
use agent_text::delimiter::Delimiter;
use std::sync::Arc;

/// Returns the parts of a user message: each image after a line that describes it, then the text.
pub fn user_parts(text: &str, images: &[Image]) -> Vec<Part> {
    let text_part = |text: String| Part::Text { text };
    let described =
        images.iter().flat_map(|image| [text_part(messages::image_line(image)), Part::Image(image.clone())]);
    described.chain([text_part(text.to_owned())]).collect()
}

/// Removes the first `count` images of `messages`. A line remains of each; in results it stands between the tags of `delimiter`.
pub fn remove_images(messages: &mut [Arc<Message>], mut count: usize, delimiter: &Delimiter) {
    for message in messages {
        let images = message.images().count().min(count);
        if images > 0 {
            count -= images;
            remove_from_message(Arc::make_mut(message), images, delimiter);
        }
    }
}

fn remove_from_message(message: &mut Message, mut count: usize, delimiter: &Delimiter) {
    let mut parts: Vec<Part> = Vec::with_capacity(message.parts.len());
    for mut part in message.parts.drain(..) {
        match &mut part {
            Part::Image(image) if count > 0 => {
                count -= 1;
                let line = messages::image_line(image);
                // The new line replaces the one before the image.
                parts.pop_if(|before| matches!(before, Part::Text { text } if *text == line));
                part = Part::Text { text: format!("{}\n", messages::image_not_sent(image)) };
            }
            Part::ToolResult(result) => count -= remove_from_result(result, count, delimiter),
            Part::Text { .. } | Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) => {}
        }
        parts.push(part);
    }
    message.parts = parts;
}

/// Removes the first `most` images of a result, and returns how many. A line remains of each.
pub fn remove_from_result(result: &mut ToolResult, most: usize, delimiter: &Delimiter) -> usize {
    let count = result.images.len().min(most);
    if count > 0 {
        let lines =
            result.images.drain(..count).map(|image| format!("\n{}", messages::image_not_sent(&image)));
        let text: String = [delimiter.strip(&result.text).to_owned()].into_iter().chain(lines).collect();
        result.text = delimiter.wrap(&text);
    }
    count
}

/// Returns `note`, which replaces messages with these `images`, with a line for each image.
pub fn with_lines<'a>(note: Arc<Message>, images: impl Iterator<Item = &'a Image>) -> Arc<Message> {
    let lines: String = images.flat_map(|image| ["\n".to_owned(), messages::image_not_sent(image)]).collect();
    if lines.is_empty() {
        return note;
    }
    Arc::new(Message::text(note.role, note.joined_text() + &lines))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use agent_core::message::Role;

    /// Returns the header of a PNG file.
    pub fn png(width: u32, height: u32) -> Vec<u8> {
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &size, b"\x08\x02\0\0\0"].concat()
    }

    fn image(name: &str) -> Image {
        Image::check(name, &png(2, 3)).unwrap()
    }

    #[test]
    fn images_that_leave_a_conversation_leave_a_line() {
        let delimiter = Delimiter::for_session("s");
        let parts = user_parts("look", &[image("a"), image("b")]);
        let result = ToolResult {
            text: delimiter.wrap("read"),
            images: vec![image("c"), image("d")],
            ..ToolResult::default()
        };
        let mut messages =
            [Arc::new(Message { role: Role::User, parts }), Arc::new(Message::tool_results(vec![result]))];
        assert_eq!(
            messages[0].joined_text(),
            "[image a (PNG, 2x3, 29 bytes)]\n[image b (PNG, 2x3, 29 bytes)]\nlook"
        );
        remove_images(&mut messages, 3, &delimiter);
        let left: Vec<&str> =
            messages.iter().flat_map(|message| message.images()).map(|image| image.name.as_str()).collect();
        assert_eq!(left, ["d"]);
        let not_sent = |name: &str| format!("[image {name} (PNG, 2x3, 29 bytes), no longer sent]");
        assert_eq!(messages[0].joined_text(), format!("{}\n{}\nlook", not_sent("a"), not_sent("b")));
        let Part::ToolResult(result) = &messages[1].parts[0] else { panic!() };
        assert_eq!(delimiter.strip(&result.text), format!("read\n{}", not_sent("c")));
    }
}
