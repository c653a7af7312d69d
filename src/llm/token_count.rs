//! Reads a token count from a server's usage report.

use serde_json::Value;

/// Returns the count at the path `names`; anything but a non-negative integer is treated as missing.
pub fn token_count(usage: &Value, names: &[&str]) -> Option<u64> {
    names.iter().try_fold(usage, |value, name| value.get(name))?.as_u64()
}
