//! The umask: what we make stays usable for us whatever the user has set, and what commands make follows what he has set.

use rustix::fs::Mode;
use std::sync::OnceLock;

/// What the user has set; nothing where [`save_user_umask`] was not called.
static USER_UMASK: OnceLock<u32> = OnceLock::new();

/// Keeps the user's umask for children, and of our own what it takes from others: a file that its owner may not open is one
/// that we could not go on with. What is private says so when it is made, because a umask can only take rights away.
pub fn save_user_umask() {
    let user_umask = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    rustix::process::umask(user_umask & (Mode::RWXG | Mode::RWXO));
    // A second call finds our own, which is not the user's.
    let _kept_before = USER_UMASK.set(user_umask.as_raw_mode());
}

/// What the user has set, for what starts a command.
pub(super) fn user_umask() -> Option<u32> {
    USER_UMASK.get().copied()
}

/// What `start` gives back, with the user's umask for what it starts: for children that no launcher process starts.
pub(super) fn with_user_umask<T>(start: impl FnOnce() -> T) -> T {
    let ours = user_umask().map(|umask| rustix::process::umask(Mode::from_raw_mode(umask)));
    let started = start();
    set(ours.map(Mode::as_raw_mode));
    started
}

/// Makes `umask` that of this process, which is about to become or to start a command.
pub(super) fn set(umask: Option<u32>) {
    if let Some(umask) = umask {
        rustix::process::umask(Mode::from_raw_mode(umask));
    }
}
