//! How long a queue keeps what is no longer needed.

use std::time::Duration;

/// Time after which ended tasks are removed.
pub const ENDED_TASKS: Duration = Duration::from_hours(30 * 24);
/// Time after which objects and the documents of runs are removed: longer than the records that name them.
pub const OBJECTS: Duration = Duration::from_hours(60 * 24);
