//! Opens files below an open directory without ever leaving it, even if the tree changes concurrently.
//!
//! Links are read and resolved here, by name. The resolved path is then opened with every link refused. A link that appears
//! between the two steps makes the open fail and cannot redirect it.

use crate::path::RelPath;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of symbolic links followed for one file (the kernel's own limit).
const MAX_LINKS: usize = 40;

/// Maximum attempts if the kernel reports that the tree changed while it resolved a path.
const MAX_TRIES: usize = 16;

/// Handling of a link that is the last part of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLink {
    /// The link's target is used.
    Follow,
    /// The link itself is used.
    NoFollow,
}

/// Reasons why a path below the directory could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResolveError {
    /// A link leads out.
    Escape,
    /// There are too many links.
    LinkLoop,
    /// The operating system returned an error.
    Io(Errno),
}

impl From<Errno> for ResolveError {
    fn from(error: Errno) -> Self {
        Self::Io(error)
    }
}

/// Open directory.
#[derive(Debug)]
pub struct RootDir {
    dir: OwnedFd,
    openat2: AtomicBool,
    renameat2: AtomicBool,
}

impl RootDir {
    /// Creates a root from `dir`.
    pub fn new(dir: OwnedFd) -> Self {
        Self { dir, openat2: AtomicBool::new(cfg!(target_os = "linux")), renameat2: AtomicBool::new(true) }
    }

    /// Opens `path`, following links that stay inside. Also returns the real path.
    ///
    /// # Errors
    /// Fails if a link leads out or in a circle, or the system refuses.
    pub fn open(&self, path: &RelPath, flags: OFlags) -> Result<(OwnedFd, RelPath), ResolveError> {
        match self.open_plain(path, flags, Mode::empty()) {
            Ok(file) => return Ok((file, path.clone())),
            // A link in the middle fails as not a directory, and one at the end as a loop (O_NOFOLLOW).
            Err(Errno::LOOP | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
        let real = self.resolve(path, LastLink::Follow)?;
        Ok((self.open_plain(&real, flags, Mode::empty())?, real))
    }

    /// Opens the directory `path`, which must contain no link.
    ///
    /// # Errors
    /// Fails if the system refuses or a part of it is a link.
    pub fn open_directory(&self, path: &RelPath) -> Result<OwnedFd, Errno> {
        self.open_plain(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// Opens the directory `path`, which must contain no link, and creates missing parts. Also returns their number.
    ///
    /// # Errors
    /// Fails if the system refuses or a part of it is a link.
    pub fn make_directory(&self, path: &RelPath) -> Result<(OwnedFd, u32), Errno> {
        match self.open_directory(path) {
            Err(Errno::NOENT) => {}
            other => return other.map(|dir| (dir, 0)),
        }
        let (mut dir, mut made) = (self.open_directory(&RelPath::root())?, 0);
        for part in path.parts() {
            match rustix::fs::mkdirat(&dir, part, Mode::from_raw_mode(0o777)) {
                Ok(()) => made += 1,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            dir = step(dir.as_fd(), part, OFlags::RDONLY)?;
        }
        Ok((dir, made))
    }

    /// Returns `path` with every link replaced by its target. Missing parts remain.
    ///
    /// # Errors
    /// Fails if a link is absolute, leads out or in a circle, or the system refuses.
    pub fn resolve(&self, path: &RelPath, last: LastLink) -> Result<RelPath, ResolveError> {
        let mut pending: VecDeque<String> = path.parts().map(str::to_owned).collect();
        let (mut real, mut dirs, mut links) = (Vec::<String>::new(), Vec::<OwnedFd>::new(), 0_usize);
        while let Some(part) = pending.pop_front() {
            if part == ".." {
                real.pop().ok_or(ResolveError::Escape)?;
                dirs.pop();
                continue;
            }
            let here = dirs.last().unwrap_or(&self.dir).as_fd();
            if pending.is_empty() && last == LastLink::NoFollow {
                real.push(part);
                break;
            }
            match rustix::fs::readlinkat(here, part.as_str(), Vec::new()) {
                Ok(target) => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(ResolveError::LinkLoop);
                    }
                    follow(target.to_str().map_err(|_| Errno::ILSEQ)?, &mut pending)?;
                }
                Err(Errno::INVAL) if pending.is_empty() => real.push(part),
                Err(Errno::INVAL) => {
                    dirs.push(step(here, &part, search_only())?);
                    real.push(part);
                }
                Err(Errno::NOENT) => {
                    real.push(part);
                    return missing_path(real, pending);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(RelPath::from_parts(&real))
    }

    /// Checks whether `path` exists, including as a dangling link.
    pub fn exists(&self, path: &RelPath) -> bool {
        rustix::fs::statat(&self.dir, path.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Renames within the open directory `dir`, with flags that not every system and file system supports.
    ///
    /// # Errors
    /// `NOSYS` or `INVAL` if the flags are not supported, else the error of the system.
    pub fn rename(&self, dir: &OwnedFd, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
        if !self.renameat2.load(Ordering::Relaxed) {
            return Err(Errno::NOSYS);
        }
        rustix::fs::renameat_with(dir, from, dir, to, flags)
    }

    /// Opens `path` with every link refused.
    fn open_plain(&self, path: &RelPath, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        #[cfg(target_os = "linux")]
        if self.openat2.load(Ordering::Relaxed) {
            match self.open_by_kernel(path, flags, mode) {
                Err(Errno::NOSYS) => self.openat2.store(false, Ordering::Relaxed),
                // A seccomp filter returns this error. The walk distinguishes it from a refusal of the file itself.
                Err(Errno::PERM) => {}
                other => return other,
            }
        }
        self.open_by_walk(path, flags, mode)
    }

    #[cfg(target_os = "linux")]
    fn open_by_kernel(&self, path: &RelPath, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        use rustix::fs::ResolveFlags;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let name = if path.is_root() { "." } else { path.as_str() };
        for _ in 1..MAX_TRIES {
            match rustix::fs::openat2(&self.dir, name, flags, mode, resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
        rustix::fs::openat2(&self.dir, name, flags, mode, resolve)
    }

    fn open_by_walk(&self, path: &RelPath, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        let Some((parent, name)) = path.split_last() else {
            return rustix::fs::openat(&self.dir, ".", flags, mode);
        };
        let mut held: Option<OwnedFd> = None;
        for part in parent.parts() {
            held = Some(step(held.as_ref().unwrap_or(&self.dir).as_fd(), part, search_only())?);
        }
        rustix::fs::openat(held.as_ref().unwrap_or(&self.dir), name, flags, mode)
    }

    /// Disables openat2 and renameat2, for tests.
    #[cfg(test)]
    pub fn disable_new_syscalls(&self) {
        self.openat2.store(false, Ordering::Relaxed);
        self.renameat2.store(false, Ordering::Relaxed);
    }
}

/// Puts the parts of a link's target in front of the pending parts.
fn follow(target: &str, pending: &mut VecDeque<String>) -> Result<(), ResolveError> {
    if target.starts_with('/') {
        return Err(ResolveError::Escape);
    }
    for part in target.rsplit('/').filter(|part| !matches!(*part, "" | ".")) {
        pending.push_front(part.to_owned());
    }
    Ok(())
}

/// Returns the path of something that does not exist yet.
fn missing_path(mut real: Vec<String>, pending: VecDeque<String>) -> Result<RelPath, ResolveError> {
    if pending.iter().any(|part| part == "..") {
        return Err(ResolveError::Io(Errno::NOENT));
    }
    real.extend(pending);
    Ok(RelPath::from_parts(&real))
}

/// Opens the directory `part` in `dir`, which must not be a link.
fn step(dir: BorrowedFd<'_>, part: &str, access: OFlags) -> Result<OwnedFd, Errno> {
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, part, flags, Mode::empty())
}

/// Returns flags to open a directory for traversal. On Linux that needs no permission to list it.
fn search_only() -> OFlags {
    #[cfg(target_os = "linux")]
    return OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    OFlags::RDONLY
}
