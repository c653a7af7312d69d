//! Reads format and size of an image from its first bytes, without a decoder: PNG, JPEG, GIF and WebP.
//!
//! Formats: PNG (<https://www.w3.org/TR/png-3/>), JPEG (ITU-T T.81, annex B), GIF (<https://www.w3.org/Graphics/GIF/spec-gif89a.txt>),
//! WebP (<https://developers.google.com/speed/webp/docs/riff_container>).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes from the start of a file that [`format_of`] needs.
pub const MAGIC_BYTES: usize = 12;

const PNG_MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG_MAGIC: &[u8] = b"\xff\xd8\xff";

/// Format of an image, serialized as its media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ImageFormat {
    /// PNG.
    #[serde(rename = "image/png")]
    Png,
    /// JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// GIF.
    #[serde(rename = "image/gif")]
    Gif,
    /// WebP.
    #[serde(rename = "image/webp")]
    Webp,
}

impl ImageFormat {
    /// Returns the media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the name for users.
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::Webp => "WebP",
        }
    }
}

/// Returns the format of a file by its magic bytes; `None` for any other file.
pub fn format_of(bytes: &[u8]) -> Option<ImageFormat> {
    let is_webp = || bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    match bytes {
        _ if bytes.starts_with(PNG_MAGIC) => Some(ImageFormat::Png),
        _ if bytes.starts_with(JPEG_MAGIC) => Some(ImageFormat::Jpeg),
        _ if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") => Some(ImageFormat::Gif),
        _ if is_webp() => Some(ImageFormat::Webp),
        _ => None,
    }
}

/// Returns width and height in pixels of an image in `format`; `None` if its header is damaged. Reads at most the headers of the
/// segments before the size.
pub fn size_of(format: ImageFormat, bytes: &[u8]) -> Option<(u32, u32)> {
    let (width, height) = match format {
        ImageFormat::Png => png_size(bytes)?,
        ImageFormat::Jpeg => jpeg_size(bytes)?,
        ImageFormat::Gif => (little_endian(bytes, 6, 2)?, little_endian(bytes, 8, 2)?),
        ImageFormat::Webp => webp_size(bytes)?,
    };
    (width > 0 && height > 0).then_some((width, height))
}

fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.get(12..16)? == b"IHDR").then_some(())?;
    Some((big_endian(bytes, 16, 4)?, big_endian(bytes, 20, 4)?))
}

/// Finds the frame header, which follows segments such as those of a camera.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2_usize;
    loop {
        (*bytes.get(at)? == 0xff).then_some(())?;
        let marker = *bytes.get(at.checked_add(1)?)?;
        match marker {
            // A fill byte before a marker.
            0xff => at = at.checked_add(1)?,
            // Markers without a segment.
            0x01 | 0xd0..=0xd8 => at = at.checked_add(2)?,
            // Frame headers; the others in this range are tables.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                let height = big_endian(bytes, at.checked_add(5)?, 2)?;
                return Some((big_endian(bytes, at.checked_add(7)?, 2)?, height));
            }
            // The image data starts, or the image ends, before any frame header.
            0xd9 | 0xda => return None,
            _ => {
                let length = usize::try_from(big_endian(bytes, at.checked_add(2)?, 2)?).ok()?;
                at = at.checked_add(2)?.checked_add(length.max(2))?;
            }
        }
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    /// Bits of a side in the formats without an extended header.
    const SIDE_BITS: u32 = 0x3fff;
    match bytes.get(12..16)? {
        b"VP8 " if bytes.get(23..26)? == b"\x9d\x01\x2a" => {
            Some((little_endian(bytes, 26, 2)? & SIDE_BITS, little_endian(bytes, 28, 2)? & SIDE_BITS))
        }
        b"VP8L" if *bytes.get(20)? == 0x2f => {
            let bits = little_endian(bytes, 21, 4)?;
            Some(((bits & SIDE_BITS) + 1, ((bits >> 14) & SIDE_BITS) + 1))
        }
        b"VP8X" => Some((little_endian(bytes, 24, 3)? + 1, little_endian(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

/// Returns the number in `length` bytes, at most four, from offset `at`.
fn big_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
}

fn little_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the header of a PNG file.
    pub fn png(width: u32, height: u32) -> Vec<u8> {
        let ihdr = [b"\0\0\0\x0dIHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes()].concat();
        [PNG_MAGIC, &ihdr, b"\x08\x02\0\0\0"].concat()
    }

    fn jpeg(before: &[u8], width: u16, height: u16) -> Vec<u8> {
        let frame = [b"\xff\xc2\0\x11\x08".as_slice(), &height.to_be_bytes(), &width.to_be_bytes()].concat();
        [b"\xff\xd8".as_slice(), before, &frame].concat()
    }

    fn webp(chunk: &[u8], rest: &[u8]) -> Vec<u8> {
        [b"RIFF\0\0\0\0WEBP".as_slice(), chunk, b"\0\0\0\0", rest].concat()
    }

    fn read(bytes: &[u8]) -> Option<(ImageFormat, Option<(u32, u32)>)> {
        format_of(bytes).map(|format| (format, size_of(format, bytes)))
    }

    #[test]
    fn images_format_and_size_are_read_from_the_header() {
        assert_eq!(read(&png(640, 480)), Some((ImageFormat::Png, Some((640, 480)))));
        let segments = b"\xff\xe0\0\x04ab\xff\xff\xc4\0\x03x\xff\x01";
        assert_eq!(read(&jpeg(segments, 3, 2)), Some((ImageFormat::Jpeg, Some((3, 2)))));
        let gif = b"GIF89a\x02\x01\x03\0";
        assert_eq!(read(gif), Some((ImageFormat::Gif, Some((258, 3)))));
        let lossy = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x10\x40\x20\0");
        assert_eq!(read(&lossy), Some((ImageFormat::Webp, Some((16, 32)))));
        let lossless = webp(b"VP8L", &[0x2f, 0x0f, 0xc0, 0x07, 0]);
        assert_eq!(read(&lossless), Some((ImageFormat::Webp, Some((16, 32)))));
        let extended = webp(b"VP8X", &[0, 0, 0, 0, 15, 0, 0, 31, 0, 0]);
        assert_eq!(read(&extended), Some((ImageFormat::Webp, Some((16, 32)))));
    }

    #[test]
    fn images_with_a_damaged_header_have_no_size() {
        assert_eq!(read(b"%PDF-1.7"), None);
        assert_eq!(read(&png(0, 5)), Some((ImageFormat::Png, None)));
        assert_eq!(read(&jpeg(b"\xff\xda", 3, 2)), Some((ImageFormat::Jpeg, None)));
        assert_eq!(read(&jpeg(b"\xff\xe0\0\0", 3, 2)), Some((ImageFormat::Jpeg, Some((3, 2)))));
        assert_eq!(read(&webp(b"ALPH", b"0123456789")), Some((ImageFormat::Webp, None)));
    }

    proptest! {
        #[test]
        fn images_of_any_bytes_are_read_without_a_panic(
            magic in prop::sample::select(vec![PNG_MAGIC, JPEG_MAGIC, b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 ", b"RIFF\0\0\0\0WEBPVP8X", b""]),
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let bytes = [magic, &rest].concat();
            for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::Webp] {
                prop_assert!(size_of(format, &bytes).is_none_or(|(width, height)| width > 0 && height > 0));
            }
            read(&bytes);
        }
    }
}
