//! Separates the agent's umask, which keeps its files usable by their owner, from the user's umask, which commands get.

use rustix::fs::Mode;
use std::sync::OnceLock;

/// Umask of the user. Unset before [`save_user_umask`] is called.
static USER_UMASK: OnceLock<u32> = OnceLock::new();

/// Saves the user's umask for children. The agent's own umask then only restricts group and others, because it must be able to
/// open its own files. Private files are created with explicit modes, because a umask can only remove permissions.
pub fn save_user_umask() {
    let user_umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(user_umask & (Mode::RWXG | Mode::RWXO));
    // A second call would read the agent's umask instead of the user's.
    let _may_be_set = USER_UMASK.set(user_umask.as_raw_mode());
}

/// Returns the user's umask, for starting a command.
pub(super) fn user_umask() -> Option<u32> {
    USER_UMASK.get().copied()
}

/// Runs `start` with the user's umask and returns its result. For children without a launcher process.
pub(super) fn with_user_umask<T>(start: impl FnOnce() -> T) -> T {
    let ours = user_umask().map(|umask| rustix::process::umask(Mode::from_raw_mode(umask)));
    let started = start();
    set(ours.map(Mode::as_raw_mode));
    started
}

/// Sets `umask` for this process, which is about to become or start a command.
pub(super) fn set(umask: Option<u32>) {
    if let Some(umask) = umask {
        rustix::process::umask(Mode::from_raw_mode(umask));
    }
}
