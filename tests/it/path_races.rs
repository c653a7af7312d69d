//! Writes while somebody exchanges the directories, links and files on their way: what is reported is what happened, and
//! none of it happens outside.
//!
//! `AGENT_TEST_SWAPPED_WRITES=1000000` tries that many writes instead of those of two seconds: some minutes, in memory.
//! `AGENT_TEST_SEED` repeats the choices of a run, not the order of its threads.

use crate::support::kernel;
use crate::support::random::Random;
use agent_workspace::Workspace;
use agent_workspace::error::FileError;
use agent_workspace::file::{HashedContent, hash};
use agent_workspace::path::RelPath;
use agent_workspace::replace::{AppliedChange, Expected, TEMPORARY_PREFIX};
use agent_workspace::search::Query;
use agent_workspace::walk::FindQuery;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, symlinkat, unlinkat};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What stands in the files outside, which nobody may read.
const CANARY: &[u8] = b"canary-5e1c";

/// What stands in the file outside that has hard links inside: its content is inside, too.
const SHARED: &[u8] = b"one file with names on both sides";

/// How long writes go on where no number is asked for.
const SHORT: Duration = Duration::from_secs(2);

/// Writes to one name before the next name is taken.
const WRITES_OF_ONE_NAME: u64 = 8;

/// Names that lead to directories of the workspace, and now and then out of it.
const WAYS: [&str; 8] = ["", "d0/", "d1/", "d0/s/", "d1/s/", "evil0/", "lnk/", "d0/../d1/"];

/// What a file outside is; its number of links may change.
type Look = (u64, u32, (i64, i64), Vec<u8>);

/// A workspace, the same names outside of it, and links between them.
struct Place {
    dir: tempfile::TempDir,
    /// Every directory that the workspace has: its root, `d0`, `d1`, `d0/s` and `d1/s`, wherever they are just now.
    inside: Vec<OwnedFd>,
    outside: BTreeMap<PathBuf, Look>,
}

impl Place {
    fn new() -> Self {
        // Each write is synced, so a disk would be what is tested.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let (ws, out) = (dir.path().join("ws"), dir.path().join("outside"));
        for path in ["d/s", "d/m/deep"] {
            fs::create_dir_all(out.join(path)).unwrap();
        }
        for path in ["d/f", "d/s/f", "d/only-outside", "d/m/deep/f"] {
            fs::write(out.join(path), CANARY).unwrap();
        }
        fs::write(out.join("shared"), SHARED).unwrap();
        for (name, other) in [("d0", "evil0"), ("d1", "evil1")] {
            fs::create_dir_all(ws.join(name).join("s")).unwrap();
            fs::create_dir(ws.join(name).join("standing")).unwrap();
            symlink("../outside/d", ws.join(other)).unwrap();
            symlink("../../outside/d/s", ws.join(name).join("evil")).unwrap();
        }
        symlink("d0", ws.join("lnk")).unwrap();
        let open = |path: &str| -> OwnedFd { fs::File::open(ws.join(path)).unwrap().into() };
        let inside = ["", "d0", "d1", "d0/s", "d1/s"].map(open).into();
        let mut place = Self { dir, inside, outside: BTreeMap::new() };
        place.outside = place.look_outside();
        place
    }

    fn ws(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    fn look_outside(&self) -> BTreeMap<PathBuf, Look> {
        let mut looks = BTreeMap::new();
        walk(&self.dir.path().join("outside"), &mut |path, metadata| {
            let content = if metadata.is_file() { fs::read(path).unwrap() } else { Vec::new() };
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            looks.insert(path.to_owned(), (metadata.ino(), metadata.mode(), modified, content));
        });
        looks
    }

    /// Where in the workspace a file called `name` is, by directory, and what it holds.
    fn holders(&self, name: &str) -> BTreeMap<usize, Vec<u8>> {
        let content = |dir: &OwnedFd| {
            let file = openat(dir, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
            let mut bytes = Vec::new();
            fs::File::from(file.ok()?).read_to_end(&mut bytes).unwrap();
            Some(bytes)
        };
        (0..).zip(&self.inside).filter_map(|(at, dir)| Some((at, content(dir)?))).collect()
    }

    /// Exchanges and replaces what is on the way of writes until `over`; returns how often.
    fn swap(&self, number: usize, mut random: Random, over: &AtomicBool) -> u64 {
        let [root, d0, d1, ..] = self.inside.as_slice() else { panic!() };
        let spare = format!("spare{number}");
        let mut swaps = 0;
        while !over.load(Ordering::Relaxed) {
            let dir = random.of(&[d0, d1]);
            let done = match random.below(8) {
                0 | 1 => {
                    let (one, other) = (random.of(&["d0", "d1"]), random.of(&["d0", "d1", "evil0", "evil1"]));
                    exchange_and_back(root.as_fd(), one, other)
                }
                2 => exchange_and_back(dir.as_fd(), "s", "evil"),
                3 => {
                    let target = random.of(&["d0", "d1", "../outside/d", "d1/s", "d0/..", "../outside"]);
                    put(root.as_fd(), &spare, "lnk", |name| symlinkat(target, root, name))
                }
                4 => {
                    let target = random.of(&["../../outside/d/f", "../outside/d/f", "s/f", "f"]);
                    put(dir.as_fd(), &spare, "f", |name| symlinkat(target, dir, name))
                }
                5 => put(dir.as_fd(), &spare, "f", |name| {
                    let shared = self.dir.path().join("outside/shared");
                    rustix::fs::linkat(rustix::fs::CWD, shared, dir, name, AtFlags::empty())
                }),
                6 => renameat_with(dir, "f", dir, "standing", RenameFlags::EXCHANGE),
                // Directories that writes make, taken away while they are made.
                _ => {
                    remove(dir.as_fd(), &spare);
                    let buried = renameat(dir, "m", dir, &spare);
                    let planted = symlinkat("../../outside/d/m", dir, "m");
                    // A writer may be in it, and may make more there.
                    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    if let Ok(grave) = openat(dir, spare.as_str(), flags, Mode::empty()) {
                        remove(grave.as_fd(), "deep/f");
                        remove(grave.as_fd(), "deep");
                    }
                    if random.below(2) == 0 {
                        remove(dir.as_fd(), "m");
                    }
                    buried.or(planted)
                }
            };
            swaps += u64::from(done.is_ok());
        }
        swaps
    }
}

/// Most of the time everything is in its place; two that do this at once leave it where they found it, or elsewhere.
fn exchange_and_back(dir: BorrowedFd<'_>, one: &str, other: &str) -> rustix::io::Result<()> {
    renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE)?;
    renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE)
}

/// Gives `name` to what `make` makes, at once.
fn put(
    dir: BorrowedFd<'_>,
    spare: &str,
    name: &str,
    make: impl Fn(&str) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    remove(dir, spare);
    make(spare)?;
    renameat(dir, spare, dir, name)
}

/// Removes a file, a link or an empty directory, if it is there.
fn remove(dir: BorrowedFd<'_>, path: &str) {
    let _absent = unlinkat(dir, path, AtFlags::empty()).or_else(|_| unlinkat(dir, path, AtFlags::REMOVEDIR));
}

fn walk(dir: &Path, each: &mut impl FnMut(&Path, &fs::Metadata)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        each(&path, &metadata);
        if metadata.is_dir() {
            walk(&path, each);
        }
    }
}

/// What became of the writes.
#[derive(Default)]
struct Tally {
    done: u64,
    refused: BTreeMap<String, u64>,
    /// Names under which content was kept that two programs wrote at once; each was reported.
    kept: BTreeSet<String>,
    reads: u64,
}

impl Tally {
    fn refused(&mut self, error: &FileError) {
        let text = error.to_string();
        assert!(!text.is_empty());
        let kind = match error {
            FileError::Escape(_) => "leads out",
            FileError::LinkLoop(_) => "too many links",
            FileError::Missing(_) | FileError::NotDirectory(_) => "not there",
            FileError::Directory(_) | FileError::Exists(_) | FileError::Special(_) => {
                "something else is there"
            }
            FileError::Changed { .. } => "changed",
            _ => text.rsplit(": ").next().unwrap_or_default(),
        };
        *self.refused.entry(kind.to_owned()).or_default() += 1;
        if let FileError::Changed { other_version: Some(kept), .. } = error {
            self.kept.insert(kept.split_last().unwrap().1.to_owned());
        }
    }

    fn add(&mut self, other: Self) {
        self.done += other.done;
        self.reads += other.reads;
        self.kept.extend(other.kept);
        for (kind, count) in other.refused {
            *self.refused.entry(kind).or_default() += count;
        }
    }
}

/// One thread that writes, and what it knows about the files that are its own.
struct Writer<'a> {
    place: &'a Place,
    workspace: Workspace,
    random: Random,
    number: usize,
    tally: Tally,
}

impl Writer<'_> {
    fn path(&self, way: &str, name: &str) -> RelPath {
        self.workspace.path(&format!("{way}{name}")).unwrap()
    }

    /// The `at`-th write of this thread.
    fn write(&mut self, at: u64) {
        match self.random.below(8) {
            0 => self.write_what_others_touch(at),
            1 => self.read(),
            _ => {}
        }
        self.write_own(at);
    }

    /// Creates, replaces or removes a file that only this thread touches, and compares all directories with what it says.
    fn write_own(&mut self, at: u64) {
        let name = format!("w{}-{}", self.number, at / WRITES_OF_ONE_NAME);
        let way = self.random.of(&WAYS);
        let path = self.path(way, &name);
        let before = self.place.holders(&name);
        let some = before.values().next().map(|content| (content, hash(content)));
        let known = some.as_ref().map(|(bytes, hash)| HashedContent { bytes, hash });
        let by_hash = known.map_or(Expected::Absent, |known| Expected::Hash(known.hash.to_owned()));
        let all = known.map_or(Expected::Absent, Expected::Content);
        let expected = self.random.of(&[0, 1, 2, 3]);
        let expected = [Expected::Any, Expected::Absent, by_hash, all][expected].clone();
        let content = format!("{at} of {}", self.number).into_bytes();
        let removes = self.random.below(4) == 0;
        let done = if removes {
            self.workspace.remove(&path, &expected)
        } else {
            self.workspace.replace_with_mode(&path, &expected, &content, None)
        };
        let after = self.place.holders(&name);
        match done {
            Ok(displaced) => {
                self.tally.done += 1;
                let content = if removes { None } else { Some(content) };
                check(&before, &after, &displaced, &expected, content);
            }
            Err(error) => {
                assert_eq!(before, after, "{error}, but something happened at {path}");
                self.tally.refused(&error);
            }
        }
        if at % WRITES_OF_ONE_NAME == WRITES_OF_ONE_NAME - 1 {
            self.place.inside.iter().for_each(|dir| remove(dir.as_fd(), &name));
        }
    }

    /// Writes where others put links and directories in place of files, and makes directories where they do, too.
    fn write_what_others_touch(&mut self, at: u64) {
        let way = self.random.of(&WAYS);
        let name = self.random.of(&["f", "m/deep/f", "standing"]);
        let path = self.path(way, name);
        let content = format!("{at} of {}", self.number).into_bytes();
        let done = match self.random.below(3) {
            0 => self.workspace.remove(&path, &Expected::Any),
            1 => self.workspace.replace_with_mode(&path, &Expected::Any, &content, None),
            _ => match self.workspace.read(&path, 100) {
                Ok(seen) => {
                    self.workspace.replace_with_mode(&path, &Expected::Hash(seen.hash), &content, None)
                }
                Err(error) => Err(error),
            },
        };
        match done {
            Ok(_) => self.tally.done += 1,
            Err(error) => self.tally.refused(&error),
        }
    }

    fn read(&mut self) {
        let way = self.random.of(&WAYS);
        let name = self.random.of(&["f", "s/f", "m/deep/f", "only-outside"]);
        let path = self.path(way, name);
        if let Ok(content) = self.workspace.read(&path, 100) {
            assert_ne!(content.bytes, CANARY, "{path} was read outside");
        }
        self.tally.reads += 1;
    }
}

/// Exactly one directory changed, as was reported and as was allowed.
fn check(
    before: &BTreeMap<usize, Vec<u8>>,
    after: &BTreeMap<usize, Vec<u8>>,
    displaced: &AppliedChange,
    expected: &Expected<'_>,
    content: Option<Vec<u8>>,
) {
    let all: BTreeSet<usize> = before.keys().chain(after.keys()).copied().collect();
    let changed: Vec<usize> = all.into_iter().filter(|at| before.get(at) != after.get(at)).collect();
    let [at] = changed.as_slice() else { panic!("{displaced:?} happened in {changed:?}") };
    let old = before.get(at).map(|content| hash(content));
    assert_eq!(after.get(at), content.as_ref(), "{displaced:?}");
    let new = content.map(|content| hash(&content));
    assert_eq!((displaced.was.hash(), displaced.became.hash()), (old.as_deref(), new.as_deref()));
    match expected {
        Expected::Any => {}
        Expected::Absent => assert_eq!(old, None),
        Expected::Hash(known) => assert_eq!(old.as_ref(), Some(known)),
        Expected::Content(known) => assert_eq!(old.as_deref(), Some(known.hash)),
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// Sets a flag when dropped, so that threads end with the test that needs them, however that ends.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What ends the threads of a test.
struct Ending {
    began: Instant,
    /// Writes of all threads, where a number was asked for.
    most: Option<u64>,
    begun: AtomicU64,
    over: AtomicBool,
}

/// One thread's writes; one that is `old` knows neither `openat2` nor `renameat2`, as on older kernels.
fn write_until(place: &Place, number: usize, old: bool, random: Random, ending: &Ending) -> Tally {
    let _over = SetOnDrop(&ending.over);
    if old {
        kernel::without(&[libc::SYS_openat2, libc::SYS_renameat2]);
    }
    let workspace = Workspace::open(&place.ws()).unwrap();
    let mut writer = Writer { place, workspace, random, number, tally: Tally::default() };
    for at in 0.. {
        let all = ending.begun.fetch_add(1, Ordering::Relaxed);
        let enough = ending.most.map_or(ending.began.elapsed() > SHORT, |most| all >= most);
        if enough || ending.over.load(Ordering::Relaxed) {
            break;
        }
        writer.write(at);
    }
    writer.tally
}

/// Two threads that write, one of them old, and two that exchange what is on their way; also how often they did.
fn write_under_a_swapper(place: &Place, seed: u64, most: Option<u64>) -> (Tally, u64) {
    let random = |number: u64| Random(seed ^ number);
    let ending =
        Ending { began: Instant::now(), most, begun: AtomicU64::new(0), over: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let over = &ending.over;
        let swappers =
            [scope.spawn(|| place.swap(0, random(1), over)), scope.spawn(|| place.swap(1, random(2), over))];
        let writers = [
            scope.spawn(|| write_until(place, 0, false, random(3), &ending)),
            scope.spawn(|| write_until(place, 1, true, random(4), &ending)),
        ];
        let mut tally = Tally::default();
        for writer in writers {
            tally.add(writer.join().unwrap());
        }
        (tally, swappers.into_iter().map(|swapper| swapper.join().unwrap()).sum())
    })
}

#[test]
fn class_06_no_write_escapes_a_path_swapper_and_each_is_where_it_was_reported() {
    let seed = number("AGENT_TEST_SEED").unwrap_or_else(|| u64::from(std::process::id()) << 20);
    let place = Place::new();
    eprintln!("AGENT_TEST_SEED={seed}");
    let began = Instant::now();
    let (tally, swaps) = write_under_a_swapper(&place, seed, number("AGENT_TEST_SWAPPED_WRITES"));
    let refused: u64 = tally.refused.values().sum();
    eprintln!(
        "{} writes done, {refused} refused {:?}, {} reads, {swaps} swaps, {:?}",
        tally.done,
        tally.refused,
        tally.reads,
        began.elapsed()
    );
    assert_eq!(place.look_outside(), place.outside, "something outside was changed");
    assert!(tally.done > 0 && tally.refused.contains_key("leads out") && swaps > 0, "nothing was tried");
    nothing_is_left(&place, &tally.kept);
}

/// No temporary file is in the workspace but those that were reported.
#[track_caller]
fn nothing_is_left(place: &Place, kept: &BTreeSet<String>) {
    walk(&place.ws(), &mut |path, _| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let is_left = name.starts_with(TEMPORARY_PREFIX) && !kept.contains(name);
        assert!(!is_left, "{} was left and not reported", path.display());
    });
}

#[test]
fn class_06_a_removal_leaves_nothing_behind_where_names_cannot_be_moved_to_a_free_one() {
    let place = Place::new();
    let (dir, over) = (&place.inside[1], AtomicBool::new(false));
    let kept = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let make = |name: &str| openat(dir, name, OFlags::CREATE, Mode::RWXU).map(drop);
                let _ = renameat_with(dir, "f", dir, "standing", RenameFlags::EXCHANGE)
                    .or_else(|_| put(dir.as_fd(), "spare", "f", make));
            }
        });
        let remover = scope.spawn(|| {
            let _over = SetOnDrop(&over);
            kernel::without(&[libc::SYS_renameat2]);
            let workspace = Workspace::open(&place.ws()).unwrap();
            let (path, began, mut tally) =
                (workspace.path("d0/f").unwrap(), Instant::now(), Tally::default());
            while began.elapsed() < SHORT {
                match workspace.remove(&path, &Expected::Any) {
                    Ok(_) => tally.done += 1,
                    Err(error) => tally.refused(&error),
                }
            }
            eprintln!("{} removed, refused {:?}", tally.done, tally.refused);
            assert!(tally.done > 0);
            tally.kept
        });
        remover.join().unwrap()
    });
    nothing_is_left(&place, &kept);
}

#[test]
fn class_06_no_search_or_listing_shows_what_is_outside_while_directories_are_exchanged() {
    let place = Place::new();
    let over = AtomicBool::new(false);
    let workspace = Workspace::open(&place.ws()).unwrap();
    let root = RelPath::root();
    let query = Query {
        pattern: String::from_utf8(CANARY.to_vec()).unwrap(),
        literal: true,
        case_sensitive: true,
        base: root.clone(),
        glob: None,
        context: 0,
        most: 100,
        hidden: Arc::new(|_| false),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| place.swap(0, Random(1), &over));
        let _over = SetOnDrop(&over);
        let began = Instant::now();
        while began.elapsed() < SHORT {
            let found = workspace.search(&query, &AtomicBool::new(false)).unwrap();
            assert_eq!(found.hits, 0, "{found:?}");
            let wanted = FindQuery { base: &root, glob: None, directories: true, most: 1000 };
            let listed = workspace.find(&wanted, &AtomicBool::new(false)).unwrap();
            let direct = ["d0", "d1", "lnk"].map(|way| {
                workspace.list(&workspace.path(way).unwrap(), None, 1000).unwrap_or_default().entries
            });
            for entry in listed.entries.iter().chain(direct.iter().flatten()) {
                assert!(!entry.path.as_str().contains("only-outside"), "{entry:?} was listed");
            }
        }
    });
}
