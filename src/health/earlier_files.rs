//! The contents that changed files had in an earlier commit.

use crate::scope::MAX_FILE_BYTES;
use agent_process::launch::Launcher;
use agent_workspace::Workspace;
use agent_workspace::git::review_diff::base_commit;
use agent_workspace::git::{SAFE_DIFF, untracked_files, whole_output, without_filters};
use std::collections::BTreeMap;

/// Bytes of contents that are read with one call of git.
const BATCH_BYTES: u64 = 16 * 1024 * 1024;

/// The files that differ from a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EarlierFiles {
    /// The commit.
    pub commit: String,
    /// The changed files, as paths from the workspace root, with their earlier contents; `None` without one, or if it is larger
    /// than [`MAX_FILE_BYTES`] or is no regular file.
    pub changed: BTreeMap<String, Option<Vec<u8>>>,
}

impl EarlierFiles {
    /// Returns the files in `workspace` that have changed since its common ancestor with the commit `reference`. The contents of those
    /// for which `wanted` is false are not read.
    ///
    /// # Errors
    /// The error message of git.
    pub async fn read(
        launcher: &Launcher,
        workspace: &Workspace,
        reference: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let root = workspace.root();
        let commit = base_commit(launcher, workspace, Some(reference)).await?;
        let settings = without_filters(launcher, root).await?;
        let form = ["--raw", "--no-abbrev", "-z", commit.as_str(), "--", "."];
        let words = [&SAFE_DIFF[..], &form].concat();
        let entries = raw_entries(&whole_output(launcher, root, &words, Vec::new(), &settings).await?)?;
        let untracked = untracked_files(launcher, root).await?;
        let changed = entries.iter().map(|(path, _)| path.clone()).chain(untracked);
        let mut files = Self { commit, changed: changed.map(|path| (path, None)).collect() };
        let blobs: Vec<_> = entries.into_iter().filter(|(path, _)| wanted(path)).collect();
        let blobs = blobs.into_iter().filter_map(|(path, blob)| Some((path, blob?))).collect();
        for batch in batches(sizes(launcher, workspace, blobs).await?) {
            let ids: String = batch.iter().flat_map(|blob| [blob.id.as_str(), "\n"]).collect();
            let output =
                whole_output(launcher, root, &["cat-file", "--batch"], ids.into_bytes(), &[]).await?;
            let mut rest = output.as_slice();
            for blob in batch {
                let (content, after) = next_object(rest).ok_or("cat-file: unexpected output")?;
                files.changed.insert(blob.path, Some(content.to_vec()));
                rest = after;
            }
        }
        Ok(files)
    }
}

/// A content in the repository.
struct Blob {
    path: String,
    id: String,
    size: u64,
}

/// Parses `git diff --raw -z` into the changed paths with the ids of their earlier contents, if these were regular files.
fn raw_entries(output: &[u8]) -> Result<Vec<(String, Option<String>)>, String> {
    let output = String::from_utf8_lossy(output);
    let mut fields = output.split_terminator('\0');
    let mut entries = Vec::new();
    while let Some(change) = fields.next() {
        // `:100644 100644 ID ID M` (git-diff(1), "Raw output format").
        let words: Vec<&str> = change.split(' ').collect();
        let ([mode, _, id, ..], Some(path)) = (words.as_slice(), fields.next()) else {
            return Err("diff: unexpected output".to_owned());
        };
        let had_content = mode.starts_with(":100") && !id.bytes().all(|digit| digit == b'0');
        entries.push((path.to_owned(), had_content.then(|| (*id).to_owned())));
    }
    Ok(entries)
}

/// Returns the contents that are not too large, with their sizes.
async fn sizes(
    launcher: &Launcher,
    workspace: &Workspace,
    blobs: Vec<(String, String)>,
) -> Result<Vec<Blob>, String> {
    let ids: String = blobs.iter().flat_map(|(_, id)| [id.as_str(), "\n"]).collect();
    let words = ["cat-file", "--batch-check=%(objectsize)"];
    let output = whole_output(launcher, workspace.root(), &words, ids.into_bytes(), &[]).await?;
    let sizes = String::from_utf8_lossy(&output).into_owned();
    let sized = blobs.into_iter().zip(sizes.lines());
    // An object that a partial clone lacks has a text in place of its size.
    let blobs = sized.filter_map(|((path, id), size)| Some(Blob { path, id, size: size.parse().ok()? }));
    Ok(blobs.filter(|blob| blob.size <= MAX_FILE_BYTES).collect())
}

/// Splits contents into batches of limited size.
fn batches(blobs: Vec<Blob>) -> Vec<Vec<Blob>> {
    let (mut batches, mut bytes) = (Vec::<Vec<Blob>>::new(), 0_u64);
    for blob in blobs {
        bytes = bytes.saturating_add(blob.size);
        match batches.last_mut() {
            Some(batch) if bytes <= BATCH_BYTES => batch.push(blob),
            _ => {
                bytes = blob.size;
                batches.push(vec![blob]);
            }
        }
    }
    batches
}

/// Returns the content of the first object in the output of `git cat-file --batch`, and the output after it.
fn next_object(output: &[u8]) -> Option<(&[u8], &[u8])> {
    let header_end = output.iter().position(|byte| *byte == b'\n')?;
    let header = std::str::from_utf8(output.get(..header_end)?).ok()?;
    let size: usize = header.rsplit(' ').next()?.parse().ok()?;
    let content_start = header_end + 1;
    let content_end = content_start.checked_add(size)?;
    Some((output.get(content_start..content_end)?, output.get(content_end.checked_add(1)?..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_entries_name_the_earlier_content_of_regular_files() {
        let (zero, id) = ("0".repeat(40), "a".repeat(40));
        let output = format!(
            ":100644 100755 {id} {zero} M\0a b\n.rs\0:000000 100644 {zero} {zero} A\0new.rs\0:120000 000000 {id} {zero} D\0link\0"
        );
        let expected =
            [("a b\n.rs".to_owned(), Some(id)), ("new.rs".to_owned(), None), ("link".to_owned(), None)];
        assert_eq!(raw_entries(output.as_bytes()).unwrap(), expected);
        assert!(raw_entries(b":100644\0a\0").is_err() && raw_entries(b":1 2 3 4 M").is_err());
    }

    #[test]
    fn objects_are_read_by_their_size() {
        let output = b"aa blob 3\nx\ny\nbb blob 0\n\n";
        let (first, rest) = next_object(output).unwrap();
        assert_eq!((first, next_object(rest)), (&b"x\ny"[..], Some((&b""[..], &b""[..]))));
        for broken in
            [&b"aa missing\n"[..], b"aa blob 9\nx\n", b"aa blob 1\nx", b"aa blob 18446744073709551615\n", b""]
        {
            assert_eq!(next_object(broken), None);
        }
    }

    #[test]
    fn batches_are_limited_in_size() {
        let blob = |size| Blob { path: String::new(), id: String::new(), size };
        let sizes = |blobs: &[u64]| {
            let batches = batches(blobs.iter().map(|size| blob(*size)).collect());
            batches.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[1, BATCH_BYTES, 1, BATCH_BYTES - 1, 1]), [1, 1, 2, 1]);
    }
}
