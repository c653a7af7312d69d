//! What a launcher process leaves when something kills it: the agent adopts it and ends it.
//!
//! Where no namespace holds a command, nothing keeps it from killing or stopping the launcher process that would end its
//! tree. What the tree has detached then becomes a child of the agent, whose other children are all launcher processes.

use super::running::Running;
use super::tree;
use std::time::Duration;

/// Makes this process the parent of what launcher processes leave.
pub(super) fn adopt() {
    // Every kernel that we run on can.
    let _supported = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Ends everything below this process that is below no launcher process.
pub(super) async fn end(running: &Running) {
    for _ in 0..tree::MAX_ROUNDS {
        if !tree::kill_others(&running.launchers()) {
            return;
        }
        let round = u64::try_from(tree::ROUND.tv_nsec).unwrap_or_default();
        tokio::time::sleep(Duration::from_nanos(round)).await;
    }
}
