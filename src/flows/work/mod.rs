//! Commands of several runs: what all of them share, from their arguments and record to their end, and `agent work`, which lists their records.

pub mod checks;
pub mod debate;
pub mod limits;
pub mod next_run;
pub mod outcome;
pub mod record;
pub mod request;
pub mod running;
pub mod step_record;
pub mod workers;
pub mod worktrees;
