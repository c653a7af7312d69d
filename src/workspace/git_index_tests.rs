//! Tests of git's index, made by hand: well-formed in every version, and hostile.

#![expect(clippy::disallowed_methods, reason = "tests make files of their own")]

use super::*;
use std::path::PathBuf;

/// Entry of an index: mode, stage, whether a sparse checkout leaves it out, and path.
type Entry<'a> = (u32, u16, bool, &'a str);

const FILE: u32 = 0o100_644;

/// Creates an index of `version` with these entries and ids of `hash_bytes`.
fn index(version: u32, hash_bytes: usize, entries: &[Entry<'_>], extensions: &[u8]) -> Vec<u8> {
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    let mut before = "";
    for (mode, stage, is_skipped, path) in entries {
        let mut entry = vec![0; STAT_BYTES + hash_bytes];
        entry[24..28].copy_from_slice(&mode.to_be_bytes());
        entry[36..40].copy_from_slice(&7_u32.to_be_bytes());
        let length = u16::try_from(path.len().min(0xfff)).unwrap();
        let extended = if *is_skipped { EXTENDED } else { 0 };
        entry.extend((length | stage << 12 | extended).to_be_bytes());
        if *is_skipped {
            entry.extend(SKIP_WORKTREE.to_be_bytes());
        }
        if version == 4 {
            let shared = path.bytes().zip(before.bytes()).take_while(|(a, b)| a == b).count();
            let removed = before.len() - shared;
            if removed > 127 {
                entry.push(0x80 | u8::try_from((removed >> 7) - 1).unwrap());
            }
            entry.push(u8::try_from(removed & 127).unwrap());
            entry.extend(&path.as_bytes()[shared..]);
            entry.push(0);
        } else {
            entry.extend(path.as_bytes());
            entry.resize(entry.len() / 8 * 8 + 8, 0);
        }
        bytes.extend(entry);
        before = path;
    }
    bytes.extend(extensions);
    bytes.resize(bytes.len() + hash_bytes, 0xab);
    bytes
}

fn repository(index: &[u8]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join(".git")).unwrap();
    std::fs::write(dir.path().join(".git/index"), index).unwrap();
    dir
}

fn read(root: &Path, hash_bytes: usize) -> Option<Vec<String>> {
    let mut found = Vec::new();
    GitIndex::open(root)?.visit(hash_bytes, &mut |path, size| {
        assert_eq!(size, 7);
        found.push(String::from_utf8(path.to_vec()).unwrap());
        true
    })?;
    Some(found)
}

fn read_bytes(bytes: &[u8]) -> Option<Vec<String>> {
    read(repository(bytes).path(), 20)
}

// Large trees: every version of the format, with both kinds of ids.
#[test]
fn regular_files_are_listed_in_every_version() {
    let long = format!("long/{}", "x".repeat(4_090));
    let deep = format!("sub/{}/f", "d".repeat(300));
    let entries = [
        (FILE, 0, false, "a"),
        (FILE, 0, false, "a.b"),
        (0o120_000, 0, false, "link"),
        (FILE, 0, false, &long),
        (FILE, 1, false, "merged"),
        (FILE, 2, false, "merged"),
        (0o160_000, 0, false, "module"),
        (0o040_000, 0, false, "sparse/"),
        (0o100_755, 0, false, &deep),
        (FILE, 0, false, "sub/f"),
    ];
    let expected = ["a", "a.b", &long, "merged", &deep, "sub/f"];
    for version in 2..=4 {
        for hash_bytes in HASH_BYTES {
            let dir = repository(&index(version, hash_bytes, &entries, b"TREE\0\0\0\x02ab"));
            assert_eq!(read(dir.path(), hash_bytes).unwrap(), expected, "{version}, {hash_bytes}");
            let other = HASH_BYTES.into_iter().find(|other| *other != hash_bytes).unwrap();
            assert_eq!(read(dir.path(), other), None, "{version}, {hash_bytes}");
            std::fs::create_dir(dir.path().join("sub")).unwrap();
            let below = [deep.strip_prefix("sub/").unwrap(), "f"];
            assert_eq!(read(&dir.path().join("sub"), hash_bytes).unwrap(), below);
        }
        let skipped = [(FILE, 0, true, "a"), (FILE, 0, false, "b")];
        let found = read_bytes(&index(version, 20, &skipped, b""));
        assert_eq!(found, (version > 2).then(|| vec!["b".to_owned()]), "version 2 has no such flag");
    }
}

// Large trees: an index from anybody is refused as a whole, wherever it is wrong.
#[test]
fn an_index_that_is_not_well_formed_is_refused() {
    let entries = [(FILE, 0, false, "a"), (FILE, 0, false, "b/c"), (FILE, 0, false, "d")];
    for version in [2, 4] {
        let extension = b"TREE\0\0\0\x02ab";
        let good = index(version, 20, &entries, extension);
        assert!(read_bytes(&good).is_some());
        // Cut by the length of the extension, it is a whole index with another checksum, which is not verified.
        for length in (0..good.len()).filter(|length| length + extension.len() != good.len()) {
            assert_eq!(read_bytes(&good[..length]), None, "{version}: cut after {length} bytes");
        }
        for at in 0..12 {
            let mut bytes = good.clone();
            bytes[at] ^= 0x40;
            assert_eq!(read_bytes(&bytes), None, "{version}: another byte {at}");
        }
        assert_eq!(read_bytes(&[&good[..], b"x"].concat()), None);
        for extension in [&b"link\0\0\0\0"[..], b"TREE\xff\xff\xff\xff", b"TREE"] {
            assert_eq!(read_bytes(&index(version, 20, &entries, extension)), None);
        }
        for path in ["", "/etc/passwd", "../x", "x/../../y", "./x", "x//y", "x/", ".git/config", "sub/.GIT/x"]
        {
            assert_eq!(read_bytes(&index(version, 20, &[(FILE, 0, false, path)], b"")), None, "{path}");
        }
        for paths in [["b", "a"], ["a", "a"]] {
            let entries = paths.map(|path| (FILE, 0, false, path));
            assert_eq!(read_bytes(&index(version, 20, &entries, b"")), None, "{paths:?}");
        }
        let endless = "x".repeat(2 * MAX_PATH_BYTES);
        assert_eq!(read_bytes(&index(version, 20, &[(FILE, 0, false, &endless)], b"")), None);
    }
}

// Large trees: a pipe or a link in the place of an index is refused without waiting.
#[test]
fn an_index_that_is_a_pipe_a_link_or_too_large_is_refused() {
    let dir = repository(b"");
    let path: PathBuf = dir.path().join(".git/index");
    File::options().write(true).open(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
    assert!(GitIndex::open(dir.path()).is_none());
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    assert!(GitIndex::open(dir.path()).is_none());
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(GitIndex::open(dir.path()).is_none());
}
