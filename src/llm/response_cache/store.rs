//! Cached answers on disk: one file per answer, protected by a hash, in a directory of limited size.

use agent_core::event::FinishReason;
use agent_core::message::Message;
use agent_runtime::private_file::{self, create_private_dir};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Version of the file format; files of other versions are ignored.
const VERSION: u32 = 1;
/// Suffix of a file name, after the key.
const ENDING: &str = ".json";
/// Suffix of a file name during writing, after the key and a random part.
const TEMPORARY_SUFFIX: &str = ".tmp";
/// Limit on a file, in bytes; no answer that the decoders accept is longer.
const FILE_BYTES: u64 = 64 << 20;
/// Limit on all files together, in bytes.
const ALL_BYTES: u64 = 200_000_000;
/// Limit on the number of files.
const ALL_FILES: usize = 1_000;

/// A cached answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CachedResponse {
    /// The assistant message.
    pub message: Message,
    /// Finish reason.
    pub finish: FinishReason,
}

/// Content of a file, including the key of its request and its time.
#[derive(Serialize, Deserialize)]
struct Entry<K> {
    version: u32,
    key: String,
    /// Milliseconds since the Unix epoch.
    saved_ms: u64,
    answer: K,
}

/// A directory of cached answers.
#[derive(Debug, Clone)]
pub struct ResponseStore {
    dir: PathBuf,
    ttl: Duration,
    max_bytes: u64,
    max_files: usize,
}

/// A file of the cache.
struct CacheFile {
    path: PathBuf,
    modified: SystemTime,
    bytes: u64,
}

impl ResponseStore {
    /// Opens the store in `dir`, whose answers are valid for `ttl`; creates the directory.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn open(dir: PathBuf, ttl: Duration) -> io::Result<Self> {
        create_private_dir(&dir)?;
        Ok(Self { dir, ttl, max_bytes: ALL_BYTES, max_files: ALL_FILES })
    }

    /// Returns the answer stored under `key`; `None` if it is damaged, expired, or may have been written by another user.
    pub fn get(&self, key: &str, now: Duration) -> Option<CachedResponse> {
        let bytes = read(&self.path(key)).ok()?;
        let (hash, json) = bytes.split_at_checked(blake3::OUT_LEN * 2)?;
        if blake3::hash(json).to_hex().as_bytes() != hash {
            return None;
        }
        let entry: Entry<CachedResponse> = serde_json::from_slice(json).ok()?;
        let age = now.checked_sub(Duration::from_millis(entry.saved_ms))?;
        (entry.version == VERSION && entry.key == key && age < self.ttl).then_some(entry.answer)
    }

    /// Stores `answer` under `key` and removes the oldest answers above the limits. Write errors are ignored:
    /// the model is then requested again.
    pub fn put(&self, key: &str, answer: &CachedResponse, now: Duration) {
        let saved_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let entry = Entry { version: VERSION, key: key.to_owned(), saved_ms, answer };
        let written = serde_json::to_vec(&entry).map_err(io::Error::from).and_then(|json| {
            let guarded = [blake3::hash(&json).to_hex().as_bytes(), &json].concat();
            self.replace(key, &guarded)
        });
        if written.is_ok() {
            self.prune();
        }
    }

    /// Removes all answers.
    ///
    /// # Errors
    /// When an answer cannot be removed.
    pub fn clear(&self) -> io::Result<()> {
        self.files()?.iter().try_for_each(|file| remove(&file.path))
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}{ENDING}"))
    }

    /// Writes a file under a unique name with access for the owner only, and renames it to that of `key`.
    fn replace(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file =
            tempfile::Builder::new().prefix(key).suffix(TEMPORARY_SUFFIX).tempfile_in(&self.dir)?;
        file.write_all(bytes)?;
        file.persist(self.path(key))?;
        Ok(())
    }

    /// Removes the oldest files above the limits.
    fn prune(&self) {
        let Ok(mut files) = self.files() else { return };
        files.sort_by_key(|file| std::cmp::Reverse(file.modified));
        let mut bytes = 0u64;
        for (number, file) in files.iter().enumerate() {
            bytes = bytes.saturating_add(file.bytes);
            if number >= self.max_files || bytes > self.max_bytes {
                // A file that cannot be removed is tried again at the next call.
                let _ = remove(&file.path);
            }
        }
    }

    /// Returns the files that are the cache's by their names, including unfinished ones.
    fn files(&self) -> io::Result<Vec<CacheFile>> {
        let mut files = Vec::new();
        for entry in self.dir.read_dir()? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let (key, rest) = name.split_at_checked(blake3::OUT_LEN * 2).unwrap_or_default();
            let ours = key.bytes().all(|byte| byte.is_ascii_hexdigit())
                && (rest == ENDING || rest.ends_with(TEMPORARY_SUFFIX));
            let Ok(metadata) = entry.metadata() else { continue };
            if ours && metadata.is_file() {
                let modified = metadata.modified()?;
                files.push(CacheFile { path: entry.path(), modified, bytes: metadata.len() });
            }
        }
        Ok(files)
    }
}

/// Reads a regular file that belongs to the current user and that only its owner may write.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let (file, metadata) = private_file::open(path)?;
    if !private_file::is_own(&metadata, 0o022) || metadata.len() > FILE_BYTES {
        return Err(io::Error::from(io::ErrorKind::PermissionDenied));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[expect(clippy::disallowed_methods, reason = "removes files of the response cache")]
fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make and damage files of their own")]
mod tests {
    use super::*;
    use agent_core::message::Role;
    use std::fs::{File, Permissions, set_permissions};
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::fs::PermissionsExt;

    const HOUR: Duration = Duration::from_hours(1);
    const NOW: Duration = Duration::from_hours(500_000);

    fn store() -> (tempfile::TempDir, ResponseStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = ResponseStore::open(dir.path().join("answers"), HOUR).unwrap();
        (dir, store)
    }

    fn answer(text: &str) -> CachedResponse {
        CachedResponse { message: Message::text(Role::Assistant, text), finish: FinishReason::Stop }
    }

    fn key(name: &str) -> String {
        blake3::hash(name.as_bytes()).to_hex().to_string()
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn lc_what_was_kept_is_found_until_it_is_too_old() {
        let (_dir, store) = store();
        store.put(&key("a"), &answer("hi"), NOW);
        assert_eq!(store.get(&key("a"), NOW), Some(answer("hi")));
        assert_eq!(store.get(&key("a"), NOW + HOUR / 2), Some(answer("hi")));
        assert_eq!(store.get(&key("a"), NOW + HOUR), None);
        assert_eq!(store.get(&key("a"), HOUR), None, "from the future");
        assert_eq!(store.get(&key("b"), NOW), None);
        assert_eq!((mode(&store.path(&key("a"))), mode(&store.dir)), (0o600, 0o700));
        store.clear().unwrap();
        assert_eq!(store.get(&key("a"), NOW), None);
    }

    #[test]
    fn lc_a_file_that_is_damaged_foreign_or_a_link_is_no_answer() {
        let (dir, store) = store();
        let path = store.path(&key("a"));
        store.put(&key("a"), &answer("hi"), NOW);
        let whole = std::fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[..10], b"", b"{}"] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(store.get(&key("a"), NOW), None, "{damaged:?}");
        }
        let other = String::from_utf8(whole.clone()).unwrap().replace("hi", "no");
        std::fs::write(&path, other).unwrap();
        assert_eq!(store.get(&key("a"), NOW), None, "another text under the old hash");
        std::fs::write(store.path(&key("b")), &whole).unwrap();
        set_permissions(store.path(&key("b")), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(store.get(&key("b"), NOW), None, "the answer to another request");
        std::fs::write(&path, &whole).unwrap();
        set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        assert_eq!(store.get(&key("a"), NOW), None, "anybody may have written it");
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(store.get(&key("a"), NOW).is_some());
        std::fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &path).unwrap();
        assert_eq!(store.get(&key("a"), NOW), None, "a link");
    }

    #[test]
    fn lc_the_oldest_go_and_what_is_not_ours_stays() {
        let (_dir, store) = store();
        let store = ResponseStore { max_files: 2, ..store };
        std::fs::write(store.dir.join("notes.json"), "mine").unwrap();
        for (age, name) in ["a", "b", "c"].into_iter().enumerate() {
            store.put(&key(name), &answer(name), NOW);
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(age as u64);
            File::options().write(true).open(store.path(&key(name))).unwrap().set_modified(modified).unwrap();
        }
        store.put(&key("c"), &answer("c"), NOW);
        let there = ["a", "b", "c"].map(|name| store.get(&key(name), NOW).is_some());
        assert!(there[2] && there.iter().filter(|kept| **kept).count() == 2, "{there:?}");
        let small = ResponseStore { max_bytes: 1, ..store.clone() };
        small.put(&key("d"), &answer("d"), NOW);
        assert_eq!(store.files().unwrap().len(), 0);
        store.clear().unwrap();
        assert!(store.dir.join("notes.json").exists());
    }
}
