//! The trees that run at this moment, and how each is ended from anywhere.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

/// How to end one tree from anywhere.
#[derive(Debug)]
pub(super) enum KillHandle {
    /// Closing it tells the launcher to end everything.
    Control(UnixStream),
    /// The group to kill.
    Group(rustix::process::Pid),
}

impl KillHandle {
    fn end(&self) {
        let _already_gone = match self {
            Self::Control(control) => control.shutdown(std::net::Shutdown::Write),
            Self::Group(group) => rustix::process::kill_process_group(*group, rustix::process::Signal::KILL)
                .map_err(io::Error::from),
        };
    }
}

/// All trees that run at this moment; may be sent to another thread.
#[derive(Debug, Clone, Default)]
pub struct CommandRegistry(Arc<Mutex<BTreeMap<u64, KillHandle>>>);

impl CommandRegistry {
    /// Ends all of them without waiting.
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

/// The entry of one tree among the running ones.
pub(super) struct Registration {
    running: CommandRegistry,
    key: u64,
}

impl Registration {
    /// Ends the tree and forgets it.
    pub(super) fn end(&self) {
        if let Some(handle) = self.running.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key)
        {
            handle.end();
        }
    }
}
