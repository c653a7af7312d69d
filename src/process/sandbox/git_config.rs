//! Finds the paths that a repository's configuration refers to: included files, hook directories, attribute files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Longest configuration to read, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// Maximum depth of includes. Git has the same limit.
const MAX_DEPTH: usize = 10;

/// Maximum number of paths from one configuration, because an included file can come from the workspace.
const MAX_NAMED: usize = 64;

/// Keys, in any section, whose relative path starts at the working tree.
const TREE_RELATIVE_KEYS: [&str; 2] = ["attributesfile", "hookspath"];

/// Key of an included configuration. A relative path starts at the including file.
const INCLUDE_KEY: &str = "path";

/// Returns the paths in `config` and in the configurations that it includes, without links. `tree` is the repository's working
/// tree.
pub fn referenced_paths(config: &Path, tree: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    collect(config, tree, MAX_DEPTH, &mut found);
    found
}

/// Returns the working tree that `config`, a file in the repository's directory, names.
pub(super) fn working_tree(config: &Path) -> Option<PathBuf> {
    let bytes = read(config, MAX_BYTES)?;
    let mut values = bytes.split(|byte| *byte == b'\n').filter_map(key_and_value);
    let (_, value) = values.rfind(|(key, _)| key.eq_ignore_ascii_case(b"worktree"))?;
    config.parent()?.join(OsStr::from_bytes(&value)).canonicalize().ok()
}

fn collect(config: &Path, tree: &Path, depth: usize, found: &mut BTreeSet<PathBuf>) {
    let Some(bytes) = read(config, MAX_BYTES).filter(|_| depth > 0) else { return };
    for (key, value) in bytes.split(|byte| *byte == b'\n').filter_map(key_and_value) {
        let is = |known: &str| key.eq_ignore_ascii_case(known.as_bytes());
        let base = if is(INCLUDE_KEY) {
            config.parent()
        } else {
            Some(tree).filter(|_| TREE_RELATIVE_KEYS.into_iter().any(is))
        };
        let path = base.and_then(|base| real(&base.join(OsStr::from_bytes(&value))));
        let Some(path) = path.filter(|path| found.len() < MAX_NAMED && found.insert(path.clone())) else {
            continue;
        };
        if is(INCLUDE_KEY) {
            collect(&path, tree, depth - 1, found);
        }
    }
}

/// Resolves links in a path whose last part may not exist.
fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)))
}

/// Reads at most the first `most` bytes of the file at `path`.
pub(super) fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    // Opening a fifo must not block.
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Parses the key of a line and its value, without quotes and comment.
fn key_and_value(line: &[u8]) -> Option<(&[u8], Vec<u8>)> {
    let line = after_section(line);
    let (key, value) = line.split_at_checked(line.iter().position(|byte| *byte == b'=')?)?;
    let mut bytes = value.trim_ascii().iter().skip(1);
    let (mut value, mut quoted) = (Vec::new(), false);
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => quoted = !quoted,
            b'\\' => value.extend(bytes.next()),
            b';' | b'#' if !quoted => break,
            _ => value.push(*byte),
        }
    }
    Some((key.trim_ascii(), value.trim_ascii().to_vec()))
}

/// Returns the rest of a line after a section name, or all of a line without one.
fn after_section(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    let mut quoted = false;
    let end = line.iter().position(|byte| {
        quoted ^= *byte == b'"';
        *byte == b']' && !quoted
    });
    end.filter(|_| line.starts_with(b"[")).and_then(|end| line.get(end + 1..)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_key_and_a_value_as_git_reads_it() {
        for (line, key, value) in [
            ("\thooksPath = .githooks\r", "hooksPath", ".githooks"),
            ("[core] hooksPath=\"a b\" # of the team", "hooksPath", "a b"),
            ("[includeIf \"gitdir:x=y\"] path = ../\\\"z", "path", "../\"z"),
            ("path = a=b", "path", "a=b"),
        ] {
            let read = key_and_value(line.as_bytes());
            assert_eq!(read, Some((key.as_bytes(), value.as_bytes().to_vec())), "{line}");
        }
        assert_eq!(key_and_value(b"[core]"), None);
    }
}
