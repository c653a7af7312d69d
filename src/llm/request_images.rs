//! Images of earlier turns in a form that servers accept: base64, or a line of text where an image cannot be sent.

use crate::Images;
use crate::request_parts::tool_name;
use agent_core::image::Image;
use agent_core::message::{Message, Part};
use agent_messages as messages;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use std::sync::Arc;

/// A part of a message that may contain images.
pub enum Piece<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// An image.
    Image {
        /// The media type of its content.
        media_type: &'static str,
        /// Its content.
        base64: String,
    },
}

impl Piece<'_> {
    /// Creates the piece of `image`: a line if it is not sent.
    pub fn of_image(image: &Image, images: Images<'_>) -> Self {
        let Some(images) = images else { return Self::Text(messages::image_not_accepted(image).into()) };
        match images.load(image) {
            Ok(bytes) => {
                Self::Image { media_type: image.media_type.media_type(), base64: STANDARD.encode(bytes) }
            }
            Err(_) => Self::Text(messages::image_missing(image).into()),
        }
    }
}

/// Returns an image as a `data:` URL.
pub fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}

/// Returns the texts and images of a user message, in order.
pub fn user_pieces<'a>(message: &'a Message, images: Images<'_>) -> Vec<Piece<'a>> {
    let piece = |part: &'a Part| match part {
        Part::Text { text } => Some(Piece::Text(Cow::Borrowed(text))),
        Part::Image(image) => Some(Piece::of_image(image, images)),
        Part::Thinking { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
    };
    message.parts.iter().filter_map(piece).collect()
}

/// Returns the text of `pieces` if none of them is an image, else `pieces`.
///
/// # Errors
/// When there is an image.
pub fn joined_text(mut pieces: Vec<Piece<'_>>) -> Result<Cow<'_, str>, Vec<Piece<'_>>> {
    match pieces.pop() {
        None => Ok(Cow::Borrowed("")),
        Some(Piece::Text(text)) if pieces.is_empty() => Ok(text),
        last => {
            pieces.extend(last);
            let text = |piece: &Piece<'_>| match piece {
                Piece::Text(text) => Some(text.clone().into_owned()),
                Piece::Image { .. } => None,
            };
            let texts: Option<String> = pieces.iter().map(text).collect();
            texts.map(Cow::Owned).ok_or(pieces)
        }
    }
}

/// Returns the images of the results in `message`, each after a line that names the tool, for formats whose results are text: they
/// follow as a user message. `earlier` contains the calls. Empty if there are no images.
pub fn result_pieces(message: &Message, earlier: &[Arc<Message>], images: Images<'_>) -> Vec<Piece<'static>> {
    let results = message.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => Some(result),
        Part::Text { .. } | Part::Image(_) | Part::Thinking { .. } | Part::ToolCall(_) => None,
    });
    let pieces = results.flat_map(|result| {
        let mut calls = earlier.iter().rev().flat_map(|message| message.tool_calls());
        let name = calls.find(|call| call.id == result.call_id).map_or(Cow::Borrowed("a call"), tool_name);
        result.images.iter().flat_map(move |image| {
            let line = format!("{}\n", messages::image_of_result(image, &name));
            [Piece::Text(line.into()), Piece::of_image(image, images)]
        })
    });
    pieces.collect()
}
