//! Verbosity levels of the human-readable log.

use agent_messages as messages;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Log level on standard error.
// Each level includes those after it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, strum::EnumString,
)]
#[schemars(rename = "LogLevel")]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown_level)]
pub enum Verbosity {
    /// Everything.
    Debug,
    /// The human log and details.
    Info,
    /// The agent's actions, in readable form.
    Human,
    /// Warnings and errors.
    Warn,
    /// Errors.
    Error,
}

impl Verbosity {
    /// Chooses the level from the flags: `--quiet` takes precedence over `-v`, that over `--log-level`, and that over the
    /// level of `--json` and other output for programs.
    pub fn choose(quiet: bool, verbose: u8, log_level: Option<Self>, for_programs: bool) -> Self {
        match (quiet, verbose, log_level) {
            (true, _, _) => Self::Error,
            (false, 1, _) => Self::Info,
            (false, 2.., _) => Self::Debug,
            (false, 0, Some(level)) => level,
            (false, 0, None) if for_programs => Self::Warn,
            (false, 0, None) => Self::Human,
        }
    }
}

fn unknown_level(_: &str) -> String {
    messages::LOG_LEVELS.to_owned()
}
