//! Registry of the running process trees, with a way to end each from any thread.

use super::launch_protocol::LaunchReply;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Handle that ends one process tree from any thread.
#[derive(Debug)]
pub(super) enum KillHandle {
    /// Control socket of the launcher process, which ends the tree when it is closed.
    Control(UnixStream),
    /// Process group to kill.
    Group(rustix::process::Pid),
}

impl KillHandle {
    fn terminate(&self) {
        let _already_gone = match self {
            Self::Control(control) => (&mut &*control).write_all(&[LaunchReply::TERMINATE]),
            Self::Group(group) => rustix::process::kill_process_group(*group, rustix::process::Signal::TERM)
                .map_err(io::Error::from),
        };
    }

    fn end(&self) {
        let _already_gone = match self {
            Self::Control(control) => control.shutdown(std::net::Shutdown::Write),
            Self::Group(group) => rustix::process::kill_process_group(*group, rustix::process::Signal::KILL)
                .map_err(io::Error::from),
        };
    }
}

/// All running process trees. Can be shared between threads.
#[derive(Debug, Clone, Default)]
pub struct CommandRegistry(Arc<Mutex<Entries>>);

/// The entries of a registry.
#[derive(Debug, Default)]
struct Entries {
    running: BTreeMap<u64, KillHandle>,
    /// Key of the next entry. No key is used twice, because a tree may be ended again after its entry was removed.
    next: u64,
}

impl CommandRegistry {
    /// Ends all trees without waiting.
    pub fn kill_all(&self) {
        self.entries().running.values().for_each(KillHandle::end);
    }

    pub(super) fn add(&self, handle: KillHandle) -> Registration {
        let mut entries = self.entries();
        let key = entries.next;
        entries.next += 1;
        entries.running.insert(key, handle);
        Registration { running: self.clone(), key }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Registered entry of one running tree.
#[derive(Clone)]
pub(super) struct Registration {
    running: CommandRegistry,
    key: u64,
}

impl Registration {
    /// Sends the processes of the tree SIGTERM.
    pub(super) fn terminate(&self) {
        if let Some(handle) = self.running.entries().running.get(&self.key) {
            handle.terminate();
        }
    }

    /// Ends the tree and removes its entry.
    pub(super) fn end(&self) {
        if let Some(handle) = self.running.entries().running.remove(&self.key) {
            handle.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_second_end_of_an_entry_does_not_end_the_next_one() {
        let registry = CommandRegistry::default();
        let pair = || UnixStream::pair().unwrap();
        let ((one, _first_guard), (two, second_guard)) = (pair(), pair());
        let first = registry.add(KillHandle::Control(one));
        first.end();
        let _second = registry.add(KillHandle::Control(two));
        first.end();
        second_guard.set_nonblocking(true).unwrap();
        let read = (&second_guard).read(&mut [0]);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::WouldBlock, "its control socket is open");
    }
}
