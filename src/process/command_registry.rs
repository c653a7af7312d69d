//! Registry of the running process trees, with a way to end each from any thread.

use super::launch_protocol::LaunchReply;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

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
pub struct CommandRegistry(Arc<Mutex<BTreeMap<u64, KillHandle>>>);

impl CommandRegistry {
    /// Ends all trees without waiting.
    pub fn kill_all(&self) {
        for handle in self.0.lock().unwrap_or_else(PoisonError::into_inner).values() {
            handle.end();
        }
    }

    pub(super) fn add(&self, handle: KillHandle) -> Registration {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = running.last_key_value().map_or(0, |(key, _)| key + 1);
        running.insert(key, handle);
        Registration { running: self.clone(), key }
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
        if let Some(handle) = self.running.0.lock().unwrap_or_else(PoisonError::into_inner).get(&self.key) {
            handle.terminate();
        }
    }

    /// Ends the tree and removes its entry.
    pub(super) fn end(&self) {
        if let Some(handle) = self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key)
        {
            handle.end();
        }
    }
}
