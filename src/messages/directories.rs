//! What is said about the directories in which this program keeps its own files.

/// How somebody who has no home, or may not write there, goes on.
pub const AGENT_HOME_HINT: &str = "AGENT_HOME=DIR has agent keep its files below DIR";

/// Why nothing begins where this program can keep nothing.
pub fn directory_not_writable(directory: &str, error: &std::io::Error) -> String {
    format!("cannot write to {directory}, where agent keeps its files: {error}; {AGENT_HOME_HINT}")
}
