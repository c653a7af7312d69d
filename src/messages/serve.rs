//! Texts of the commands whose runs other programs request.

/// Error for a run when `--budget-total` has nothing left.
pub const TOTAL_BUDGET_USED: &str =
    "the budget of all runs (--budget-total) is used up, or reserved by runs that are working";

/// Warning when a client counts as gone because it does not read.
pub const CLIENT_DOES_NOT_READ: &str =
    "the client did not read 64 MiB of messages: all runs were interrupted; the sessions can be resumed";

/// Error for a call when too many wait.
pub const TOO_MANY_CALLS: &str =
    "too many calls wait, or their texts are longer than 64 MiB together: call again later";
