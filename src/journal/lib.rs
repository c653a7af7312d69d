//! Persistent state of sessions: the append-only journal with its reader, lock, blobs and saved state, and the session store.

pub mod answer_signature;
pub mod approvals;
pub mod blobs;
pub mod checkpoint_refs;
pub mod copy;
pub mod file_history;
pub mod images;
pub mod interrupted_calls;
pub mod kept_results;
pub mod labels;
pub mod memory;
pub mod offered_tools;
pub mod played_turns;
pub mod prompts;
pub mod read;
pub mod retention;
pub mod scan;
pub mod session_store;
pub mod step_counter;
pub mod summary;
pub mod write;
