//! Messages about the directories that contain the program's own files.

/// Advice for a user without a home directory, or without write permission there.
pub const AGENT_HOME_HINT: &str = "set AGENT_HOME=DIR to store agent's files below DIR";

/// Error for a directory of the program's own files that is not writable.
pub fn directory_not_writable(directory: &str, error: &std::io::Error) -> String {
    format!("cannot write to {directory}, where agent stores its files: {error}; {AGENT_HOME_HINT}")
}
