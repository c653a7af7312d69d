//! Images of a conversation: format, size and content hash, and the limits that servers set. The bytes are stored beside the journal.

use crate::image_header::{ImageFormat, format_of, size_of};
use agent_text::lines::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::io;

/// Maximum bytes of an image: the limit of Anthropic, the lowest of all
/// (<https://platform.claude.com/docs/en/build-with-claude/vision>).
pub const MAX_IMAGE_BYTES: u64 = 5 << 20;

/// Maximum width and height of an image in pixels, also Anthropic's limit.
pub const MAX_IMAGE_SIDE: u32 = 8_000;

/// Maximum number of images in a request. From 21 on, Anthropic accepts only images of at most 2,000 pixels.
pub const MAX_REQUEST_IMAGES: usize = 20;

/// Maximum bytes of all images in a request. In base64 they take a third more, and servers refuse bodies above 32 MB.
pub const MAX_REQUEST_IMAGE_BYTES: u64 = 20 << 20;

/// Number of images that leave a conversation together when there are too many: a change of earlier messages makes the
/// provider's prompt cache useless, so it must be rare.
const DROPPED_TOGETHER: usize = 10;

/// Characters of a name in messages.
const NAME_CHARS: usize = 100;

/// A checked image. Its bytes are in the [`ImageStore`] of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Image {
    /// Name of its file or source: one line without control characters.
    pub name: String,
    /// Format according to its content; the type that a sender declares is ignored.
    pub media_type: ImageFormat,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of its content, hexadecimal.
    pub hash: String,
}

/// Why bytes are not an image that can be sent to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The magic bytes belong to no known format.
    #[error("it is not a PNG, JPEG, GIF or WebP image")]
    UnknownFormat,
    /// The header does not contain a size.
    #[error("its {} header is damaged", .0.name())]
    Damaged(ImageFormat),
    /// It has too many bytes.
    #[error(
        "it has {0} bytes, more than the {MAX_IMAGE_BYTES} that model servers accept; scale it down or compress it"
    )]
    TooLarge(u64),
    /// It is too wide or too high, in pixels.
    #[error(
        "it has {0}x{1} pixels, more than {MAX_IMAGE_SIDE} on a side; scale it down or cut out the relevant part"
    )]
    TooWide(u32, u32),
}

impl Image {
    /// Checks `bytes`, which a user, a tool or a server sent under `name`.
    ///
    /// # Errors
    /// When they are no image, or one above the limits.
    pub fn check(name: &str, bytes: &[u8]) -> Result<Self, ImageError> {
        let media_type = format_of(bytes).ok_or(ImageError::UnknownFormat)?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if length > MAX_IMAGE_BYTES {
            return Err(ImageError::TooLarge(length));
        }
        let (width, height) = size_of(media_type, bytes).ok_or(ImageError::Damaged(media_type))?;
        if width.max(height) > MAX_IMAGE_SIDE {
            return Err(ImageError::TooWide(width, height));
        }
        let (name, hash) = (one_line(name, NAME_CHARS), blake3::hash(bytes).to_hex().to_string());
        Ok(Self { name, media_type, width, height, bytes: length, hash })
    }

    /// Returns an upper bound on the tokens of the image. Servers count patches of 28 to 32 pixels, some of them up to 2.5 times,
    /// or tiles (Gemini: 1,120 tokens for a small image); the most that any of them counts is 16,384 (Qwen-VL), with one
    /// exception: `gpt-4o-mini` counts up to 48,169 at a price per token that makes an image cost what it costs with `gpt-4o`.
    pub fn max_tokens(&self) -> u64 {
        const PATCH_SIDE: u32 = 28;
        const PATCH_TOKENS: u64 = 3;
        let patches = |side: u32| u64::from(side.div_ceil(PATCH_SIDE));
        let tokens = patches(self.width).saturating_mul(patches(self.height)).saturating_mul(PATCH_TOKENS);
        tokens.clamp(1_120, 16_384)
    }
}

/// Returns how many images, from the oldest on, a conversation must lose to fit into a request. `sizes` are the bytes of its images,
/// oldest first; those from `new` on were just added and are removed only if the others do not suffice.
pub fn excess_images(sizes: &[u64], new: usize) -> usize {
    let fits = |dropped: &usize| {
        let rest = sizes.get(*dropped..).unwrap_or_default();
        let bytes = rest.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        rest.len() <= MAX_REQUEST_IMAGES && bytes <= MAX_REQUEST_IMAGE_BYTES
    };
    let least = (0..=sizes.len()).find(fits).unwrap_or(sizes.len());
    least.next_multiple_of(DROPPED_TOGETHER).min(new).max(least)
}

/// Loads the bytes of images.
pub trait ImageSource: Debug {
    /// Returns the content of `image`.
    ///
    /// # Errors
    /// When it is missing or does not match its hash.
    fn load(&self, image: &Image) -> io::Result<Vec<u8>>;
}

/// Stores images. An image must be stored before an event contains it.
pub trait ImageStore: ImageSource {
    /// Stores `bytes`, the content of `image`, durably.
    ///
    /// # Errors
    /// When they cannot be written.
    fn store(&self, image: &Image, bytes: &[u8]) -> io::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image_header::tests::png;

    #[test]
    fn images_above_a_limit_are_refused_with_advice() {
        let image = Image::check("a\u{1b}.jpg", &png(640, 480)).unwrap();
        assert_eq!(
            (image.media_type, image.width, image.height, image.bytes),
            (ImageFormat::Png, 640, 480, 29)
        );
        assert_eq!(image.name, "a\\u{1b}.jpg");
        assert_eq!(Image::check("x", b"<svg/>"), Err(ImageError::UnknownFormat));
        assert_eq!(Image::check("x", &png(640, 480)[..20]), Err(ImageError::Damaged(ImageFormat::Png)));
        assert_eq!(Image::check("x", &png(8_000, 8_001)), Err(ImageError::TooWide(8_000, 8_001)));
        let mut large = png(1, 1);
        large.resize((5 << 20) + 1, 0);
        assert_eq!(Image::check("x", &large), Err(ImageError::TooLarge((5 << 20) + 1)));
        large.pop();
        assert_eq!(Image::check("x", &large).unwrap().bytes, 5 << 20);
    }

    #[test]
    fn images_leave_a_conversation_ten_at_a_time_and_new_ones_last() {
        assert_eq!(excess_images(&[1; 20], 19), 0);
        assert_eq!(excess_images(&[1; 21], 20), 10);
        assert_eq!(excess_images(&[1; 31], 30), 20);
        assert_eq!(excess_images(&[1; 25], 5), 5);
        assert_eq!(excess_images(&[1; 25], 0), 5);
        assert_eq!(excess_images(&[5 << 20; 5], 4), 4);
        assert_eq!(excess_images(&[5 << 20; 6], 0), 2);
        assert_eq!(excess_images(&[], 0), 0);
    }

    #[test]
    fn images_count_at_least_as_many_tokens_as_any_server_counts() {
        let tokens = |width, height| Image::check("x", &png(width, height)).unwrap().max_tokens();
        assert_eq!((tokens(1, 1), tokens(8_000, 8_000)), (1_120, 16_384));
        // A screenshot: 2,765 tokens at Anthropic.
        assert_eq!(tokens(1920, 1080), 3 * 69 * 39);
    }
}
