//! The name of a worker in the records, which tells the machine on which it runs.

use agent_runtime::clock::Clock;
use agent_runtime::private_file::{create_private_dir, open, synced};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Maximum characters of the name of the machine.
const MAX_HOST_CHARS: usize = 20;
/// Characters of the random id of a machine.
const MACHINE_ID_CHARS: usize = 12;

/// The name of a worker: `HOST-MACHINE-PROCESS-RANDOM`. `MACHINE` is a random id in the state directory, because the name of a host may
/// change, and others may have the same.
pub struct WorkerName {
    /// The name.
    pub text: String,
    machine: String,
}

impl WorkerName {
    /// Returns a name for this process that no other one has; `fleet` is the directory with the id of the machine, which is created.
    ///
    /// # Errors
    /// Fails when the id cannot be read or written.
    pub fn new(fleet: &Path, clock: &Clock) -> io::Result<Self> {
        let machine = machine_id(&fleet.join("machine-id"), clock)?;
        let text = format!("{}-{machine}-{}-{}", host_name(), std::process::id(), clock.short_id());
        Ok(Self { text, machine })
    }

    /// Checks whether the worker `name` runs or ran on this machine.
    pub fn is_of_machine(&self, name: &str) -> bool {
        name.rsplit('-').nth(2).is_some_and(|machine| machine == self.machine)
    }
}

/// Returns the id in a file, which is created; another worker may do so at the same time.
fn machine_id(path: &Path, clock: &Clock) -> io::Result<String> {
    let read = || -> io::Result<String> {
        let mut id = String::new();
        open(path)?.0.take(MACHINE_ID_CHARS as u64).read_to_string(&mut id)?;
        Ok(id)
    };
    match read() {
        Ok(id) if id.len() == MACHINE_ID_CHARS => return Ok(id),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        // It does not exist, or was not written completely.
        Ok(_) => rustix::fs::unlink(path)?,
        Err(_) => {}
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    create_private_dir(directory)?;
    let mut file = NamedTempFile::new_in(directory)?;
    let id = clock.short_id();
    file.write_all(id.as_bytes())?;
    synced(file.as_file().sync_all())?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(id),
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => read(),
        Err(error) => Err(error.error),
    }
}

fn host_name() -> String {
    let machine = rustix::system::uname();
    let is_plain = |char: &char| char.is_ascii_alphanumeric() || "-_".contains(*char);
    let plain = machine.nodename().to_string_lossy();
    let plain: String = plain.chars().filter(is_plain).take(MAX_HOST_CHARS).collect();
    let name = plain.trim_start_matches('-');
    if name.is_empty() { "machine".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::fleet::check_id;

    #[test]
    fn a_worker_knows_the_workers_of_its_machine() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let clock = Clock::new();
        let [first, second] = [(); 2].map(|()| WorkerName::new(here.path(), &clock).unwrap());
        let other = WorkerName::new(there.path(), &clock).unwrap();
        assert_ne!(first.text, second.text);
        assert_eq!(check_id(&first.text), Ok(()));
        let known = |name: &str| first.is_of_machine(name);
        assert_eq!((known(&second.text), known(&other.text), known("x")), (true, false, false));
        drop(std::fs::File::create(here.path().join("machine-id")).unwrap());
        let renewed = WorkerName::new(here.path(), &clock).unwrap();
        assert!(renewed.machine.len() == MACHINE_ID_CHARS && !first.is_of_machine(&renewed.text));
    }
}
