//! The figures in a server's report of its usage.

use serde_json::Value;

/// The count under these names, each in the object of the one before; anything that is not a whole number of zero or more is
/// taken as not said.
pub fn token_count(usage: &Value, names: &[&str]) -> Option<u64> {
    names.iter().try_fold(usage, |value, name| value.get(name))?.as_u64()
}
