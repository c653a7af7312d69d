//! The trees that run at this moment, and how each is ended from anywhere.

use rustix::process::{Pid, Signal};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How to end one tree from anywhere.
#[derive(Debug)]
pub(super) enum Handle {
    /// Closing it tells the launcher process with this id to end everything.
    Control(UnixStream, Pid),
    /// The group to kill.
    Group(Pid),
}

impl Handle {
    fn end(&self) {
        let _already_gone = match self {
            Self::Control(control, launcher) => {
                // A command that is not confined may have stopped it.
                let _not_stopped = rustix::process::kill_process(*launcher, Signal::CONT);
                control.shutdown(std::net::Shutdown::Write)
            }
            Self::Group(group) => {
                rustix::process::kill_process_group(*group, Signal::KILL).map_err(io::Error::from)
            }
        };
    }
}

/// All trees that run at this moment; may be sent to another thread.
#[derive(Debug, Clone, Default)]
pub struct Running(Arc<Mutex<Trees>>);

#[derive(Debug, Default)]
struct Trees {
    handles: BTreeMap<u64, Handle>,
    /// Those that were started and not reaped, also when their tree was told to end or is no longer waited for.
    launchers: BTreeSet<i32>,
}

impl Running {
    /// Ends all of them without waiting.
    pub fn kill_all(&self) {
        for handle in self.trees().handles.values() {
            handle.end();
        }
    }

    pub(super) fn add(&self, handle: Handle) -> Registration {
        let (Handle::Control(_, pid) | Handle::Group(pid)) = &handle;
        let launcher = pid.as_raw_nonzero().get();
        let mut trees = self.trees();
        let key = trees.handles.last_key_value().map_or(0, |(key, _)| key + 1);
        trees.handles.insert(key, handle);
        trees.launchers.insert(launcher);
        Registration { running: self.clone(), key, launcher }
    }

    /// The ids of all launcher processes that there may be.
    #[cfg(target_os = "linux")]
    pub(super) fn launchers(&self) -> BTreeSet<i32> {
        self.trees().launchers.clone()
    }

    fn trees(&self) -> MutexGuard<'_, Trees> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of one tree among the running ones.
pub(super) struct Registration {
    pub(super) running: Running,
    key: u64,
    launcher: i32,
}

impl Registration {
    /// Ends the tree and forgets it.
    pub(super) fn end(&self) {
        let handle = self.running.trees().handles.remove(&self.key);
        if let Some(handle) = handle {
            handle.end();
        }
    }

    /// Takes note that the launcher process was reaped: its id may be another's from now on.
    pub(super) fn reaped(&self) {
        self.running.trees().launchers.remove(&self.launcher);
    }
}
