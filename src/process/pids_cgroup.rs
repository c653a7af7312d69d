//! Pids cgroup for one command, whose limit the kernel enforces for root too (resource limits do not bind root).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Cgroup below that of the process that created it. Dropping it removes it if it is empty.
#[derive(Debug)]
pub struct PidsCgroup(PathBuf);

impl PidsCgroup {
    /// Creates a cgroup for at most `most` processes and threads. `None` if this process has no cgroup with the pids controller
    /// or may not create one below it.
    pub(super) fn new(most: u64) -> Option<Self> {
        let directory = own()?.join(name(rustix::process::getpid()));
        // A killed process with the same id may have left its cgroup behind.
        let _missing_or_in_use = fs::remove_dir(&directory);
        fs::create_dir(&directory).ok()?;
        let made = Self(directory);
        // In the unified hierarchy the file is missing unless the parent delegates the controller.
        made.write("pids.max", most).ok()?;
        Some(made)
    }

    /// Moves this process, which has one thread, and everything that it starts, into the cgroup.
    ///
    /// # Errors
    /// Fails if the kernel refuses.
    pub(super) fn enter(&self) -> io::Result<()> {
        self.move_this_process("")
    }

    /// Moves this process, which has one thread, back to the parent cgroup.
    pub(super) fn leave(&self) {
        let _best_effort = self.move_this_process("../");
    }

    /// Moves this process to `relative`, a path that is empty or ends with `/`. The file `tasks`, which only hierarchies of version 1 have, takes
    /// single threads: unlike for a whole process, the kernel does not wait for all processors first (8 ms).
    fn move_this_process(&self, relative: &str) -> io::Result<()> {
        match self.write(&format!("{relative}tasks"), 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.write(&format!("{relative}cgroup.procs"), 0)
            }
            moved => moved,
        }
    }

    /// Checks whether the kernel has refused a process since the cgroup was created.
    pub(super) fn was_full(&self) -> bool {
        let events = read(&self.0.join("pids.events")).unwrap_or_default();
        events.lines().any(|line| line.strip_prefix("max ").is_some_and(|refused| refused != "0"))
    }

    /// Removes the cgroup of the killed guard `pid`.
    pub(super) fn remove_of(pid: rustix::process::Pid) {
        drop(own().map(|own| Self(own.join(name(pid)))));
    }

    fn write(&self, file: &str, number: u64) -> io::Result<()> {
        let mut file = File::options().write(true).open(self.0.join(file))?;
        io::Write::write_all(&mut file, number.to_string().as_bytes())
    }
}

impl Drop for PidsCgroup {
    fn drop(&mut self) {
        let _may_not_be_empty = fs::remove_dir(&self.0);
    }
}

/// Returns the name of the cgroup of the guard `pid`.
fn name(pid: rustix::process::Pid) -> String {
    format!("agent-{}", pid.as_raw_nonzero())
}

/// Returns the directory of this process's cgroup in the hierarchy with the pids controller.
fn own() -> Option<PathBuf> {
    let [cgroups, mounts] =
        ["/proc/self/cgroup", "/proc/self/mountinfo"].map(|file| read(Path::new(file)).ok());
    own_in(&cgroups?, &mounts?)
}

#[expect(clippy::disallowed_methods, reason = "small files of the kernel")]
fn read(file: &Path) -> io::Result<String> {
    fs::read_to_string(file)
}

/// Finds that directory in the texts of `/proc/self/cgroup` and `/proc/self/mountinfo` (cgroups(7)). Prefers the pids controller's
/// own hierarchy to the unified one.
fn own_in(cgroups: &str, mounts: &str) -> Option<PathBuf> {
    let find = |is_pids: fn(&str) -> bool| {
        cgroups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            is_pids(controllers).then_some(path)
        })
    };
    let has_pids = |list: &str| list.split(',').any(|word| word == "pids");
    let (path, kind) =
        find(has_pids).map(|path| (path, "cgroup")).or(find(str::is_empty).map(|path| (path, "cgroup2")))?;
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut file_system = file_system.split(' ');
        let is_of_kind = file_system.next() == Some(kind);
        let is_mount = is_of_kind && (kind == "cgroup2" || has_pids(file_system.nth(1)?));
        let below = Path::new(path).strip_prefix(root).ok().filter(|_| is_mount)?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_cgroup_is_found_in_either_hierarchy_and_below_the_root_of_a_mount() {
        let unified = "25 30 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let pids = "31 30 0:27 /box /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids\n";
        let cpu = "32 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        let found = |cgroups: &str, mounts: &[&str]| own_in(cgroups, &mounts.concat());
        assert_eq!(found("0::/a/b\n", &[cpu, unified]), Some("/sys/fs/cgroup/a/b".into()));
        assert_eq!(
            found("8:pids:/box/a\n0::/\n", &[unified, cpu, pids]),
            Some("/sys/fs/cgroup/pids/a".into())
        );
        assert_eq!(found("8:cpu,pids:/box\n0::/\n", &[pids]), Some("/sys/fs/cgroup/pids".into()));
        assert_eq!((found("8:pids:/\n", &[cpu, unified]), found("", &[unified])), (None, None));
        assert_eq!(found("8:pids:/outside\n", &[pids]), None);
    }
}
