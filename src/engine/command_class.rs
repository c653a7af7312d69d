//! How dangerous a shell command is, from its text.

/// The class of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandClass {
    /// Only looks.
    Safe,
    /// Builds, tests or checks.
    Dev,
    /// Anything else.
    Dangerous,
    /// Never runs.
    Blocked {
        /// The pattern that blocks it.
        pattern: String,
    },
}
