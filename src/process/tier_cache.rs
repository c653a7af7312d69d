//! Cache of the probed tier, valid as long as kernel, program and own confinement stay the same.

use super::launch_protocol::BUBBLEWRAP;
use super::tier::Tier;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// File with an id that changes at each boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Namespaces on which the kernel's permissions depend.
const NAMESPACES: [&str; 4] = ["user", "mnt", "pid", "net"];
/// Lines of `/proc/self/status` with this process's own confinement.
const OWN_CONFINEMENT: [&str; 4] = ["CapEff:", "NoNewPrivs:", "Seccomp:", "Seccomp_filters:"];
/// Longest cache file, in bytes. Usual ones have a few hundred.
const MAX_BYTES: u64 = 16 * 1024;

/// Conditions on which the result of a probe depends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TierCacheKey {
    boot: String,
    program: (u64, u64, i64, u64),
    bubblewrap: Option<(u64, i64)>,
    user: u32,
    namespaces: Vec<String>,
    confinement: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct CachedTier {
    circumstances: TierCacheKey,
    tier: Tier,
}

impl TierCacheKey {
    #[expect(clippy::disallowed_methods, reason = "small files of the kernel")]
    fn now(program: &Path) -> io::Result<Self> {
        let file = std::fs::metadata(program)?;
        let status = std::fs::read_to_string("/proc/self/status")?;
        let namespace = |name: &str| std::fs::read_link(format!("/proc/self/ns/{name}"));
        let namespaces = NAMESPACES.into_iter().map(namespace).collect::<io::Result<Vec<_>>>()?;
        Ok(Self {
            boot: std::fs::read_to_string(BOOT)?,
            program: (file.dev(), file.ino(), file.mtime_nsec().wrapping_add(file.mtime()), file.len()),
            bubblewrap: std::fs::metadata(BUBBLEWRAP).ok().map(|file| (file.ino(), file.ctime())),
            user: rustix::process::geteuid().as_raw(),
            namespaces: namespaces.iter().map(|link| link.to_string_lossy().into_owned()).collect(),
            confinement: status
                .lines()
                .filter(|line| OWN_CONFINEMENT.iter().any(|name| line.starts_with(name)))
                .map(str::to_owned)
                .collect(),
        })
    }
}

/// Returns the tier stored in `file` if its conditions still hold.
pub(super) fn load(file: &Path, program: &Path) -> Option<Tier> {
    let mut json = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(std::fs::File::open(file).ok()?, MAX_BYTES), &mut json).ok()?;
    let remembered: CachedTier = serde_json::from_slice(&json).ok()?;
    (remembered.circumstances == TierCacheKey::now(program).ok()?).then_some(remembered.tier)
}

/// Stores `tier` in `file`. Ignores failures, because the next run probes again.
pub(super) fn store(file: &Path, program: &Path, tier: Tier) {
    let save = || -> io::Result<()> {
        let remembered = CachedTier { circumstances: TierCacheKey::now(program)?, tier };
        let parent = file.parent().unwrap_or(Path::new("."));
        let mut written = tempfile::NamedTempFile::new_in(parent)?;
        serde_json::to_writer(&mut written, &remembered)?;
        written.persist(file)?;
        Ok(())
    };
    let _probed_again = save();
}

/// Removes the cached tier, because the kernel has just refused it.
#[expect(clippy::disallowed_methods, reason = "state of this module")]
pub(super) fn clear(file: &Path) {
    let _was_not_there = std::fs::remove_file(file);
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files of a test")]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_tier_is_recalled_for_the_same_program_only() {
        let dir = tempfile::tempdir().unwrap();
        let [file, program, other] = ["tier", "a", "b"].map(|name| dir.path().join(name));
        std::fs::write(&program, "1").unwrap();
        std::fs::write(&other, "2").unwrap();
        store(&file, &program, Tier::Rules);
        assert_eq!(load(&file, &program), Some(Tier::Rules));
        assert_eq!(load(&file, &other), None);
        std::fs::write(&file, "{").unwrap();
        assert_eq!(load(&file, &program), None);
        clear(&file);
        assert_eq!(load(&file, &program), None);
    }
}
