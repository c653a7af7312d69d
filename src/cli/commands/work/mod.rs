//! Commands of several runs: their record, limits and end, which all of them share, and `agent work`, which lists their records.

pub mod checks;
pub mod limits;
pub mod list;
pub mod outcome;
pub mod record;
pub mod resume;
pub mod step_record;
