//! How deep and how manifold a JSON text of a stranger may be: looked at before it is parsed, because a parser may use
//! a hundred bytes of memory for one of text.

/// How deep arrays and objects may stand in each other. Answers of model servers have about ten levels; `serde_json`
/// itself follows 128, but not where it only skips.
pub const MAX_DEPTH: usize = 100;
/// The most values of one text. A parsed value takes about a hundred bytes, so this is ten MB; the largest real events
/// have some thousands.
pub const MAX_VALUES: usize = 100_000;

/// A text that is not worth parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BoundsError {
    /// Above [`MAX_DEPTH`].
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Above [`MAX_VALUES`].
    #[error("it holds more than {MAX_VALUES} values")]
    TooMany,
}

/// Whether `json` is within bounds; whether it is JSON at all is for the parser to say.
///
/// # Errors
/// When it is nested too deep or holds too many values.
pub fn check(json: &[u8]) -> Result<(), BoundsError> {
    let (mut depth, mut values, mut rest) = (0_usize, 1_usize, json);
    while let Some((byte, behind)) = rest.split_first() {
        rest = if *byte == b'"' { behind_string(behind) } else { behind };
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

/// What follows on a string whose opening quote stands before `text`.
fn behind_string(mut text: &[u8]) -> &[u8] {
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
