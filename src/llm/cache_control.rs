//! Marks up to which Anthropic is to keep a prompt in its cache: `cache_control`, on a block or on a whole request.
//!
//! At most four marks; they are no part of what is cached, so they may move. A prompt shorter than what the model caches
//! at least (1024 to 4096 tokens) is not cached and costs nothing more; a write costs a quarter more than the tokens
//! do, a read a tenth: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>.

use serde::Serialize;

/// A mark with the usual life of five minutes, renewed by each read; a step takes less.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CacheControl {
    r#type: &'static str,
}

impl Default for CacheControl {
    fn default() -> Self {
        Self { r#type: "ephemeral" }
    }
}

/// A mark as the last member of an object.
const MEMBER: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}";

/// Appends `blocks` to `out`, with a mark in the object that ends at each of `ends`, which are in order. Where no object
/// ends there is no mark.
pub fn write_with_breakpoints(blocks: &[u8], ends: &[usize], out: &mut Vec<u8>) {
    out.reserve(blocks.len().saturating_add(ends.len().saturating_mul(MEMBER.len())));
    let mut written = 0;
    for end in ends {
        if let Some(object) = blocks.get(written..*end).and_then(|bytes| bytes.strip_suffix(b"}")) {
            out.extend_from_slice(object);
            out.extend_from_slice(MEMBER);
            out.push(b'}');
            written = *end;
        }
    }
    out.extend_from_slice(blocks.get(written..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(blocks: &str, ends: &[usize]) -> String {
        let mut out = Vec::new();
        write_with_breakpoints(blocks.as_bytes(), ends, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn k14_marks_stand_in_the_objects_that_end_there_and_nowhere_else() {
        let mark = serde_json::to_string(&CacheControl::default()).unwrap();
        let (a, b) = (r#"{"a":1}"#, r#"{"b":2}"#);
        let blocks = format!("{a},{b}");
        let expected = format!(r#"{{"a":1,"cache_control":{mark}}},{{"b":2,"cache_control":{mark}}}"#);
        assert_eq!(marked(&blocks, &[a.len(), blocks.len()]), expected);
        for ends in [&[][..], &[0], &[3], &[999], &[a.len() + 1]] {
            assert_eq!(marked(&blocks, ends), blocks, "{ends:?}");
        }
    }
}
