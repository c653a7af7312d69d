//! The front matter of a Markdown file, YAML between two lines `---`, and its body.

use super::error::ConfigError;
use super::yaml::{self, Content, Node};
use serde_json::Value;

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

/// Parses front matter. Many descriptions are no YAML without quotes: they contain `: `, or begin with `[`, `*`, `@` or a backtick. Other
/// clients read them, so a description in one line is then taken as it is.
///
/// # Errors
/// Fails with the line of the problem.
pub fn parse(head: &str) -> Result<Node, ConfigError> {
    // An empty line in place of `---` keeps the line numbers of errors equal to those of the file.
    let parsed = yaml::parse(&format!("\n{head}"));
    if parsed.as_ref().is_ok_and(has_text_as_description) {
        return parsed;
    }
    yaml::parse(&format!("\n{}", with_quoted_description(head))).or(parsed)
}

/// Checks whether the description is a text or a number, if there is one.
fn has_text_as_description(node: &Node) -> bool {
    let Content::Map(entries) = &node.content else { return true };
    let description = entries.iter().find(|entry| entry.name == "description");
    let is_text = |node: &Node| matches!(node.content, Content::Scalar(Value::String(_) | Value::Number(_)));
    description.is_none_or(|entry| is_text(&entry.node))
}

/// Returns `head` with the description in quotes, if it is one line.
fn with_quoted_description(head: &str) -> String {
    let quoted = |line: &str| {
        let text = line.strip_prefix("description:")?.trim();
        (!text.is_empty()).then(|| format!("description: {}\n", Value::from(text)))
    };
    head.split_inclusive('\n').map(|line| quoted(line).unwrap_or_else(|| line.to_owned())).collect()
}
