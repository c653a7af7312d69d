//! Cache breakpoints of Anthropic's API: `cache_control` on a block or on a whole request.
//!
//! A request may contain at most four breakpoints. They are not part of the cached data, so they may move. A prompt below the
//! model's minimum (1024 to 4096 tokens) is not cached and costs nothing extra; a cache write costs 1.25 times the price of
//! the tokens, a read a tenth of it: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>.

use serde::Serialize;

/// A breakpoint with the default lifetime of five minutes, which each read renews; a step takes less.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CacheControl {
    r#type: &'static str,
}

impl Default for CacheControl {
    fn default() -> Self {
        Self { r#type: "ephemeral" }
    }
}

/// A breakpoint as the last member of an object.
const MEMBER: &[u8] = b",\"cache_control\":{\"type\":\"ephemeral\"}";

/// Appends `blocks` to `out` and adds a breakpoint to the object that ends at each offset of `ends`, which are sorted. An offset
/// at which no object ends is ignored.
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
