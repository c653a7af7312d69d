//! Verbosity levels of the human-readable log.

use crate::messages;

/// Verbosity of the log; each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Failures and refused calls (`--quiet`, `--log-level error`).
    Error,
    /// Warnings, such as retries (`--json`, `--log-level warn`).
    Warn,
    /// Steps, tools, hooks, and streamed text; the default.
    Human,
    /// Tokens, tools offered, reasoning (`-v`, `--log-level info`).
    Info,
    /// Requests and messages (`-vv`, `--log-level debug`).
    Debug,
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

impl std::str::FromStr for Verbosity {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "human" => Ok(Self::Human),
            "info" => Ok(Self::Info),
            "debug" => Ok(Self::Debug),
            _ => Err(messages::LOG_LEVELS.to_owned()),
        }
    }
}
