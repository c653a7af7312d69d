//! How much the human log tells.

use crate::messages;

/// How much is told; each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// Failures only (`--quiet`, `--log-level error`), and what was refused.
    Error,
    /// And what did not go as asked (`--json`, `--log-level warn`).
    Warn,
    /// And the steps, tools and hooks, and the text as it arrives.
    Human,
    /// And tokens, tools offered, reasoning (`-v`, `--log-level info`).
    Info,
    /// And requests and messages (`-vv`, `--log-level debug`).
    Debug,
}

impl Verbosity {
    /// What the flags ask for: `--quiet` wins over `-v`, which wins over `--log-level`, which wins over what
    /// `--json` and the like mean, which are for programs.
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
