//! Tests of the content store on real files.

#![expect(clippy::disallowed_methods, reason = "tests make and damage files of their own")]

use super::*;
use crate::Workspace;
use crate::path::RelPath;
use crate::replace::Expected;
use agent_core::secret::Secret;
use agent_redactor::NamedSecret;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt;

fn open(dir: &Path) -> ContentStore {
    let secret = NamedSecret { name: "X_TOKEN".to_owned(), value: Secret::new("correct-horse-battery") };
    ContentStore::new(dir.join("contents"), Arc::new(Redactor::new([secret])))
}

fn contents() -> (tempfile::TempDir, ContentStore) {
    let dir = tempfile::tempdir().unwrap();
    let contents = open(dir.path());
    (dir, contents)
}

fn try_store(contents: &ContentStore, bytes: &[u8]) -> Result<String, StoreError> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    contents.store(&File::open(file.path()).unwrap())
}

fn store(contents: &ContentStore, bytes: &[u8]) -> String {
    try_store(contents, bytes).unwrap()
}

fn pack(contents: &ContentStore) -> PathBuf {
    let mut packs = files(&contents.dir, PACK);
    assert_eq!(packs.len(), 1);
    packs.remove(0)
}

fn pack_of(contents: &ContentStore, hash: &str) -> PathBuf {
    let hash = ContentHash::parse(hash).unwrap();
    contents.with_packs(|packs| packs.paths[packs.locations[&hash].pack].clone())
}

#[test]
fn what_was_kept_is_found_by_its_hash_by_later_processes_too_and_is_private() {
    let (dir, contents) = contents();
    assert_eq!(contents.get(&hash(b"a")), None);
    for bytes in [&b"a"[..], b"", b"other"] {
        let stored = store(&contents, bytes);
        assert_eq!(stored, hash(bytes));
        assert_eq!(store(&contents, bytes), stored, "once more");
        for contents in [&contents, &open(dir.path())] {
            assert_eq!(contents.get(&stored), Some(bytes.to_vec()));
        }
    }
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let pack = pack(&contents);
    assert_eq!((mode(&contents.dir), mode(&pack), mode(&pack.with_extension(INDEX))), (0o700, 0o600, 0o600));
    assert_eq!(std::fs::read(pack).unwrap(), b"aother");
}

#[test]
fn what_an_earlier_process_kept_is_not_kept_again() {
    let (dir, contents) = contents();
    let stored = store(&contents, b"a");
    let next = open(dir.path());
    assert_eq!(store(&next, b"a"), stored);
    assert_eq!(files(&contents.dir, PACK).len(), 1);
}

#[test]
fn what_is_damaged_torn_or_a_link_is_none_and_hides_nothing_else() {
    let (dir, contents) = contents();
    let (first, second) = (store(&contents, b"abc"), store(&contents, b"second"));
    let pack = pack(&contents);
    std::fs::write(&pack, b"abdsecond").unwrap();
    let again = open(dir.path());
    assert_eq!((again.get(&first), again.get(&second)), (None, Some(b"second".to_vec())));
    std::fs::write(&pack, b"abcsec").unwrap();
    let again = open(dir.path());
    assert_eq!((again.get(&first), again.get(&second)), (Some(b"abc".to_vec()), None));
    assert_eq!(store(&again, b"second"), second, "what is torn is stored anew");
    assert_eq!(again.get(&second), Some(b"second".to_vec()));
    std::fs::write(dir.path().join("other"), b"abcsecond").unwrap();
    std::fs::remove_file(&pack).unwrap();
    std::os::unix::fs::symlink(dir.path().join("other"), &pack).unwrap();
    assert_eq!(open(dir.path()).get(&first), None);
}

#[test]
fn an_index_that_breaks_off_tells_what_is_whole() {
    let (dir, contents) = contents();
    let (first, second) = (store(&contents, b"first"), store(&contents, b"second"));
    let index = File::options().write(true).open(pack(&contents).with_extension(INDEX)).unwrap();
    for cut in 0..=LINE_BYTES as u64 {
        index.set_len(2 * LINE_BYTES as u64 - cut).unwrap();
        let again = open(dir.path());
        assert!(again.get(&first).is_some());
        assert_eq!(again.get(&second).is_some(), cut == 0);
    }
}

#[test]
fn a_file_that_is_too_large_and_a_secret_are_not_kept() {
    let (dir, contents) = contents();
    let file = File::create_new(dir.path().join("large")).unwrap();
    file.set_len(MAX_FILE_BYTES + 1).unwrap();
    let file = File::open(dir.path().join("large")).unwrap();
    assert!(matches!(contents.store(&file), Err(StoreError::TooLarge)));
    assert!(matches!(try_store(&contents, b"token: correct-horse-battery"), Err(StoreError::Secret)));
    assert!(!contents.dir.exists());
}

// Large trees: contents that are stored together are stored as one by one, but for those that may not be.
#[test]
fn contents_are_stored_together() {
    let (dir, contents) = contents();
    let first = store(&contents, b"first");
    let texts: [&[u8]; 5] = [b"first", b"", b"token: correct-horse-battery", b"other", b"other"];
    let batch = texts.map(|text| (ContentHash::of(text), text));
    assert_eq!(contents.store_all(&batch), [true, true, false, true, true]);
    let again = open(dir.path());
    let got = texts.map(|text| again.get(&hash(text)));
    let some = |text: &[u8]| Some(text.to_vec());
    assert_eq!(got, [some(b"first"), some(b""), None, some(b"other"), some(b"other")]);
    assert_eq!((std::fs::read(pack(&contents)).unwrap(), first), (b"firstother".to_vec(), hash(b"first")));
    contents.with_packs(|packs| packs.added = MAX_RUN_BYTES - 1);
    assert_eq!(
        contents.store_all(&[(ContentHash::of(b"ab"), b"ab"), (ContentHash::of(b"other"), b"other")]),
        [false, true]
    );
}

// Large trees: what could not be written is not taken for stored.
#[test]
fn contents_whose_write_fails_are_not_stored() {
    let (dir, contents) = contents();
    let before = store(&contents, b"before");
    let read_only = File::open(pack(&contents)).unwrap();
    contents.with_packs(|packs| packs.own.as_mut().unwrap().pack = read_only);
    let batch: Vec<(ContentHash, &[u8])> =
        [&b"before"[..], b"new"].map(|text| (ContentHash::of(text), text)).to_vec();
    assert_eq!(contents.store_all(&batch), [true, false]);
    assert_eq!((contents.get(&hash(b"new")), contents.get(&before)), (None, Some(b"before".to_vec())));
    assert_eq!(contents.store_all(&batch), [true, true], "in another pack");
    assert_eq!(open(dir.path()).get(&hash(b"new")), Some(b"new".to_vec()));
}

#[test]
fn a_run_keeps_no_more_than_it_may() {
    let (_dir, contents) = contents();
    contents.with_packs(|packs| packs.added = MAX_RUN_BYTES - 1);
    assert!(matches!(try_store(&contents, b"ab"), Err(StoreError::Full)));
}

#[test]
fn the_packs_that_were_used_longest_ago_go_when_there_are_too_many() {
    let (dir, old) = contents();
    let (stored, other) = (store(&old, b"old"), open(dir.path()));
    let new = store(&other, b"new");
    let file = File::options().append(true).open(pack_of(&old, &stored));
    file.unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(store(&open(dir.path()), b"old"), stored, "which makes it one of the newest");
    prune(&old.dir, 6, 2);
    assert!(open(dir.path()).get(&stored).is_some() && open(dir.path()).get(&new).is_some());
    let file = File::options().append(true).open(pack_of(&other, &new));
    file.unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    prune(&old.dir, 5, 2);
    assert!(open(dir.path()).get(&stored).is_some() && open(dir.path()).get(&new).is_none());
    prune(&old.dir, 6, 0);
    assert_eq!(std::fs::read_dir(&old.dir).unwrap().count(), 0, "with their indexes");
    let mut packs = old.packs.lock().unwrap().take().unwrap();
    packs.used.clear();
    assert!(!packs.touch(ContentHash::parse(&stored).unwrap()), "one that has gone meanwhile");
}

/// Creates a workspace with the file `a`, which contains `old`.
fn a_file_whose_content_is_kept() -> (tempfile::TempDir, ContentStore, Workspace, RelPath) {
    let (dir, contents) = contents();
    let root = dir.path().join("ws");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("a"), "old").unwrap();
    let workspace = Workspace::open(&root).unwrap();
    workspace.set_content_store(contents.clone());
    let path = workspace.path("a").unwrap();
    (dir, contents, workspace, path)
}

#[test]
fn a_content_is_kept_before_it_is_displaced() {
    let (_dir, contents, workspace, path) = a_file_whose_content_is_kept();
    workspace.replace_with_mode(&path, &Expected::Hash(hash(b"other")), b"new", None).unwrap_err();
    assert_eq!(
        contents.get(&hash(b"old")),
        Some(b"old".to_vec()),
        "although nothing was displaced in the end"
    );
    std::os::unix::fs::symlink("a", workspace.root().join("link")).unwrap();
    let removed = workspace.remove(&workspace.path("link").unwrap(), &Expected::Any).unwrap();
    assert_eq!(
        (removed.store_error, contents.get(&hash(b"a"))),
        (None, Some(b"a".to_vec())),
        "what it points to"
    );
}

#[test]
fn what_is_kept_already_is_kept_of_an_expected_change_and_of_no_other() {
    let (_dir, contents, workspace, path) = a_file_whose_content_is_kept();
    contents.store_hashed(HashedContent { bytes: b"old", hash: &hash(b"old") }).unwrap();
    assert!(contents.contains(&hash(b"old")) && !contents.contains(&hash(b"new")));
    let done = workspace.replace_with_mode(&path, &Expected::Hash(hash(b"old")), b"new", None).unwrap();
    assert_eq!((done.store_error, contents.get(&hash(b"old"))), (None, Some(b"old".to_vec())));
    let done = workspace.replace_with_mode(&path, &Expected::Any, b"newer", None).unwrap();
    assert_eq!((done.store_error, contents.get(&hash(b"new"))), (None, Some(b"new".to_vec())));
}

proptest! {
    #[test]
    fn whatever_is_written_made_and_removed_the_bytes_can_be_had_back(
        before in proptest::collection::vec(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9)), 3),
        changes in proptest::collection::vec(
            (0usize..3, proptest::option::of(proptest::collection::vec(any::<u8>(), 0..9))), 0..12),
    ) {
        let (dir, contents) = contents();
        let root = dir.path().join("ws");
        std::fs::create_dir(&root).unwrap();
        let names = ["a", "b", "c"];
        for (name, bytes) in names.iter().zip(&before) {
            if let Some(bytes) = bytes {
                std::fs::write(root.join(name), bytes).unwrap();
            }
        }
        let workspace = Workspace::open(&root).unwrap();
        workspace.set_content_store(contents);
        let mut done = Vec::new();
        for (file, bytes) in changes {
            let path = workspace.path(names[file]).unwrap();
            let changed = match bytes {
                Some(bytes) => workspace.replace_with_mode(&path, &Expected::Any, &bytes, None),
                None => workspace.remove(&path, &Expected::Any),
            };
            done.extend(changed);
        }
        let later = open(dir.path());
        for displaced in done.into_iter().rev() {
            prop_assert_eq!(&displaced.store_error, &None);
            let (path, was) = (&displaced.path, &displaced.was);
            match was.hash() {
                Some(hash) => {
                    let bytes = later.get(hash).unwrap();
                    workspace.restore(path, &displaced.became, &bytes, was).unwrap();
                }
                None => drop(workspace.remove_current(path, &displaced.became).unwrap()),
            }
        }
        for (name, bytes) in names.iter().zip(before) {
            prop_assert_eq!(std::fs::read(root.join(name)).ok(), bytes);
        }
    }
}
