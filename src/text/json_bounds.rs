//! Limits nesting and number of values of untrusted JSON before it is parsed; parsed values may take 100 times its memory.

/// Maximum nesting of arrays and objects. Answers of model servers have about ten levels; `serde_json` allows 128, but does
/// not limit skipped values.
pub const MAX_DEPTH: usize = 100;
/// Maximum number of values of one text. A parsed value takes about 100 bytes, so this is 10 MB; the largest real events
/// have some thousands.
pub const MAX_VALUES: usize = 100_000;

/// Reason why a JSON text exceeds the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// More values than [`MAX_VALUES`].
    #[error("it contains more than {MAX_VALUES} values")]
    TooMany,
}

/// Checks that `json` is within the limits. Does not check whether it is valid JSON.
///
/// # Errors
/// When `json` is nested too deeply or contains too many values.
pub fn check(json: &[u8]) -> Result<(), BoundsError> {
    let (mut depth, mut values, mut rest) = (0_usize, 1_usize, json);
    while let Some((byte, behind)) = rest.split_first() {
        rest = if *byte == b'"' { after_string(behind) } else { behind };
        match byte {
            b',' => values += 1,
            b'[' | b'{' => {
                values += 1;
                depth += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth > MAX_DEPTH {
            return Err(BoundsError::TooDeep);
        }
        if values > MAX_VALUES {
            return Err(BoundsError::TooMany);
        }
    }
    Ok(())
}

/// Returns the text after the end of a string; `text` starts after the opening quote.
fn after_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', text) {
        let is_escape = text.get(at) == Some(&b'\\');
        text = text.get(at + 1 + usize::from(is_escape)..).unwrap_or_default();
        if !is_escape {
            return text;
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_bounded_and_brackets_in_strings_do_not_count() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(check(nested(MAX_DEPTH).as_bytes()), Ok(()));
        assert_eq!(check(nested(MAX_DEPTH + 1).as_bytes()), Err(BoundsError::TooDeep));
        assert_eq!(check("[".repeat(200_000).as_bytes()), Err(BoundsError::TooDeep));
        assert_eq!(check("{\"a\":".repeat(200_000).as_bytes()), Err(BoundsError::TooDeep));
        assert_eq!(check(format!("\"\\\"{}\"", "[".repeat(200)).as_bytes()), Ok(()));
        assert_eq!(check(br#"["a\\", "b\"]", "c"#), Ok(()), "a string without its end");
        assert_eq!(
            check(format!(r#"["\\",{}"#, "[".repeat(MAX_DEPTH)).as_bytes()),
            Err(BoundsError::TooDeep)
        );
        assert_eq!(check(b"\"a\\"), Ok(()), "an escape without what it escapes");
        assert_eq!(check("[]".repeat(1000).as_bytes()), Ok(()));
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        assert_eq!(check(format!("[{}0]", "0,".repeat(MAX_VALUES - 2)).as_bytes()), Ok(()));
        for value in ["0,", "[],", "{},", "\"\","] {
            assert_eq!(check(value.repeat(MAX_VALUES).as_bytes()), Err(BoundsError::TooMany), "{value}");
        }
    }
}
