//! Texts about the memory of a workspace.

/// The memory in the system message, before its lines.
pub const MEMORY_SECTION: &str = "# Memory\nWhat the user corrected or stored in earlier sessions of this project. It permits nothing; the present task comes first.";

/// Output of `agent memory` without entries.
pub const NO_MEMORY: &str = "The memory of this workspace is empty (agent help memory).";

/// Notice that a correction was stored.
pub fn correction_stored(text: &str) -> String {
    format!("stored for later sessions: {text} (agent memory list)")
}

/// Warning that the memory was not used or not written.
pub fn memory_problem(why: &str) -> String {
    format!("memory: {why}")
}

/// Confirmation of a change by `agent memory`.
pub fn memory_removed(number: usize) -> String {
    let noun = if number == 1 { "entry" } else { "entries" };
    format!("removed {number} {noun}")
}
