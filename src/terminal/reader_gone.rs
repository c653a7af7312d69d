//! Detects that standard output has no reader any more.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// Calls `then` from another thread when the reader of standard output closes its end of the pipe, also while nothing is written.
pub fn when_reader_is_gone(then: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        let stdout = std::io::stdout();
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        while poll(&mut watched, None) == Err(Errno::INTR) {}
        let [watched] = watched;
        if watched.revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            then();
        }
    });
}
