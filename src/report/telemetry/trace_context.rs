//! The trace that a run joins: `TRACEPARENT` in the form of W3C Trace Context, or a new trace.

use super::span::{SpanId, TraceId};

/// Position in a trace under which spans are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub(super) trace_id: TraceId,
    /// The span of another program that started this run.
    pub(super) parent: Option<SpanId>,
}

impl TraceContext {
    /// Creates a trace with an id made of two random numbers.
    pub fn new(high: u64, low: u64) -> Self {
        Self { trace_id: TraceId(u128::from(high) << 64 | u128::from(low)), parent: None }
    }

    /// Parses `version-trace_id-parent_id-flags`. A version after 00 may have more fields. `None` if the value is invalid.
    pub fn parse(value: &str) -> Option<Self> {
        let mut fields = value.split('-');
        let mut field = |digits: usize| {
            let text = fields.next().filter(|text| text.len() == digits)?;
            let is_lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            text.bytes().all(is_lower_hex).then(|| u128::from_str_radix(text, 16).ok()).flatten()
        };
        let (version, trace_id, parent, _flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
        let has_valid_end = version != 0 || fields.next().is_none();
        let parent = u64::try_from(parent).ok()?;
        (version != 0xff && has_valid_end && trace_id != 0 && parent != 0)
            .then_some(Self { trace_id: TraceId(trace_id), parent: Some(SpanId(parent)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o24_a_valid_traceparent_is_joined_and_an_invalid_one_is_not() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(valid).unwrap();
        assert_eq!(context.trace_id.hex(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.parent.unwrap().hex(), "00f067aa0ba902b7");
        assert_eq!(TraceContext::parse(&valid.replacen("00", "cc", 1)), Some(context));
        assert_eq!(TraceContext::parse(&format!("{}-later", valid.replacen("00", "01", 1))), Some(context));
        for invalid in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(invalid), None, "{invalid}");
        }
    }
}
