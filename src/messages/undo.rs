//! What is said about undoing: what cannot be, and what stands in its way.

use crate::text::lines::one_line;

/// Characters of a path that is named.
const PATH_CHARS: usize = 200;
/// Paths that are named.
const NAMED: usize = 10;

/// A change of a file tool whose content before was not kept.
pub fn cannot_be_undone(path: &str, why: &str) -> String {
    format!("the change of {} cannot be undone: {why}", one_line(path, PATH_CHARS))
}

/// Changes of a command whose contents before were not kept.
pub fn commands_not_undone(paths: &[&str], mebibytes: u64) -> String {
    format!(
        "what the command did to these files cannot be undone, because they are sensitive, larger than {mebibytes} MiB, or too \
         many to be kept: {}",
        named(paths)
    )
}

/// Changes of a command beyond those that are listed.
pub fn changes_left_out(more: usize) -> String {
    format!("the command changed {more} more files, which are not listed and cannot be undone")
}

/// `paths` on one line, as many as a person reads.
fn named(paths: &[&str]) -> String {
    let mut names: Vec<String> = paths.iter().take(NAMED).map(|path| one_line(path, PATH_CHARS)).collect();
    if paths.len() > NAMED {
        names.push(format!("{} more", paths.len() - NAMED));
    }
    names.join(", ")
}
