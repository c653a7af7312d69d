//! Which tasks a store returns.

use agent_core::fleet::TaskState;

/// Which tasks a store returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// Those in a state.
    InState(TaskState),
    /// The ended ones that have no branch yet, or of whose newest attempt something is left; of cancelled ones, those whose worker can no longer
    /// be at work.
    Unsettled {
        /// Only tasks whose state changed by then, in seconds since the Unix epoch.
        until: u64,
    },
}
