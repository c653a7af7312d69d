//! Splits a Markdown file into its front matter, YAML between two lines `---`, and its body.

use super::error::ConfigError;

/// Maximum size of its front matter in bytes.
pub const MAX_FRONT_MATTER_BYTES: usize = 16 << 10;

/// Returns front matter, body and the line number of the body's start.
///
/// # Errors
/// Fails when the front matter has no end.
pub fn split(text: &str) -> Result<(&str, &str, u64), ConfigError> {
    let mut lines = text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let Some(opening) = lines.next().filter(|line| is_fence(line)) else { return Ok(("", text, 1)) };
    let mut end = opening.len();
    for (line, number) in lines.zip(3..) {
        if is_fence(line) {
            let head = text.get(opening.len()..end).unwrap_or_default();
            let body = text.get(end + line.len()..).unwrap_or_default();
            return Ok((head, body, number));
        }
        end += line.len();
        if end > MAX_FRONT_MATTER_BYTES {
            break;
        }
    }
    let limit = MAX_FRONT_MATTER_BYTES;
    Err(ConfigError::new(format!("the front matter does not end within {limit} bytes"))
        .line(1)
        .hint("close it with a line `---`"))
}
