//! Diff for a review: the changes from a base commit to the working tree, untracked files included, within limits.

use crate::Workspace;
use crate::error::FileError;
use crate::git::{
    HEAD, SAFE_DIFF, commit_id, commit_or_empty_tree, git, has_no_commit, listed_paths, stdout_text,
    untracked_files, without_filters,
};
use agent_messages as messages;
use agent_process::launch::{CommandOutcome, Launcher};
use agent_text::diff::unified_full;
use agent_text::lines::{escape_controls, one_line};
use std::collections::{BTreeSet, HashMap};

/// Maximum bytes of the diff: about 50,000 tokens, a quarter of a usual context window.
const MAX_DIFF_BYTES: usize = 200_000;
/// Maximum bytes of the diff of one file, so that one generated file leaves room for the others.
const MAX_FILE_DIFF_BYTES: usize = 50_000;
/// Maximum number of files in the diff.
const MAX_FILES: usize = 300;

/// Characters of a reference in a message.
const MAX_REFERENCE_CHARS: usize = 100;

/// References to the default branch of a repository, in the order in which they are tried.
const DEFAULT_BRANCHES: [&str; 5] = [
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
];

/// The changes to review.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ReviewDiff {
    /// The commit from which the changes are counted.
    pub base: String,
    /// The diff. A list of `too_large` precedes it.
    pub text: String,
    /// All changed files, as paths from the workspace root.
    pub changed: BTreeSet<String>,
    /// Changed files that are missing in `text` because of its length.
    pub too_large: Vec<String>,
    /// Changed files that are never shown: hidden ones, and those that are not text.
    pub not_shown: Vec<String>,
}

impl ReviewDiff {
    /// Returns the changes in `workspace` since its common ancestor with the commit `reference`, by default with the default branch,
    /// or with HEAD if there is none. Files for which `hidden` is true are only named.
    ///
    /// # Errors
    /// The error message of git.
    pub async fn new(
        launcher: &Launcher,
        workspace: &Workspace,
        reference: Option<&str>,
        hidden: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        Self::since(launcher, workspace, base_commit(launcher, workspace, reference).await?, hidden).await
    }

    /// Returns the changes in `workspace` since the commit `base`. Files for which `hidden` is true are only named.
    ///
    /// # Errors
    /// The error message of git.
    pub async fn since(
        launcher: &Launcher,
        workspace: &Workspace,
        base: String,
        hidden: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let mut settings = without_filters(launcher, workspace.root()).await?;
        settings.push(("core.quotePath".to_owned(), "false"));
        let run = async |words: &[&str]| git(launcher, workspace.root(), words, Vec::new(), &settings).await;
        let against_base = |form: &[&'static str]| -> Vec<&str> {
            SAFE_DIFF.iter().chain(form).copied().chain([base.as_str(), "--"]).collect()
        };
        let words = [against_base(&["--name-only", "-z"]), vec!["."]].concat();
        let tracked = listed_paths(&run(&words).await?)?;
        let untracked = untracked_files(launcher, workspace.root()).await?;
        let mut diff = Self { base: base.clone(), ..Self::default() };
        let tracked: Vec<String> = tracked.into_iter().filter(|path| diff.accept(path, &hidden)).collect();
        diff.add_tracked(&tracked, async |paths| {
            let path_specs: Vec<String> = paths.iter().map(|path| format!(":(literal){path}")).collect();
            let path_specs = path_specs.iter().map(String::as_str).collect();
            run(&[against_base(&["--patch"]), path_specs].concat()).await
        })
        .await?;
        for path in untracked {
            if diff.accept(&path, &hidden) {
                let read = if diff.is_full() { FileDiff::TooLarge } else { new_file_diff(workspace, &path) };
                diff.add(&path, read);
            }
        }
        if !diff.too_large.is_empty() {
            let names: Vec<String> =
                diff.too_large.iter().map(|path| escape_controls(path).into_owned()).collect();
            diff.text.insert_str(0, &messages::review_files_left_out(&names));
        }
        Ok(diff)
    }

    /// Records a changed file and checks whether its diff is wanted: it is not hidden, and not one file too many.
    fn accept(&mut self, path: &str, hidden: impl Fn(&str) -> bool) -> bool {
        // An unmerged file is listed more than once.
        if !self.changed.insert(path.to_owned()) {
            return false;
        }
        if hidden(path) {
            self.not_shown.push(path.to_owned());
            return false;
        }
        if self.changed.len() > MAX_FILES {
            self.too_large.push(path.to_owned());
            return false;
        }
        true
    }

    /// Checks whether there is no room for another diff.
    fn is_full(&self) -> bool {
        self.text.len() >= MAX_DIFF_BYTES
    }

    /// Adds tracked files. `print` runs git on some of them: on all, or on half as many as long as the output is longer than its
    /// captured start.
    async fn add_tracked(
        &mut self,
        paths: &[String],
        print: impl AsyncFn(&[String]) -> Result<CommandOutcome, String>,
    ) -> Result<(), String> {
        let (mut rest, mut limit) = (paths, paths.len());
        while !rest.is_empty() && !self.is_full() {
            let count = rest.iter().take(limit).take_while(|path| !is_quoted_by_git(path)).count();
            let (batch, after) = rest.split_at(count.max(1));
            let exit = print(batch).await?;
            if let [path] = batch {
                self.add(path, file_diff(&exit)?);
            } else if is_cut(&exit) {
                limit = batch.len() / 2;
                continue;
            } else {
                let text = stdout_text(&exit)?;
                let sections = sections(&text);
                for path in batch {
                    self.add(path, section_of(path, &sections));
                }
            }
            (rest, limit) = (after, batch.len() * 2);
        }
        self.too_large.extend_from_slice(rest);
        Ok(())
    }

    /// Adds the diff of a file if there is room for it, else its name.
    fn add(&mut self, path: &str, diff: FileDiff) {
        match diff {
            FileDiff::Text(text)
                if text.len() <= MAX_FILE_DIFF_BYTES && self.text.len() + text.len() <= MAX_DIFF_BYTES =>
            {
                self.text.push_str(&text);
            }
            FileDiff::Text(_) | FileDiff::TooLarge => self.too_large.push(path.to_owned()),
            FileDiff::NoText => self.not_shown.push(path.to_owned()),
        }
    }
}

/// Diff of one file.
enum FileDiff {
    Text(String),
    TooLarge,
    NoText,
}

/// Returns the commit of the default branch, if the repository has one under a usual name.
async fn default_branch(launcher: &Launcher, workspace: &Workspace) -> Option<String> {
    for name in DEFAULT_BRANCHES {
        if let Ok(commit) = commit_id(launcher, workspace.root(), name).await {
            return Some(commit);
        }
    }
    None
}

/// Returns the common ancestor of HEAD and `reference`, by default the default branch. Without any commit, returns the empty tree.
///
/// # Errors
/// The error message of git.
pub async fn base_commit(
    launcher: &Launcher,
    workspace: &Workspace,
    reference: Option<&str>,
) -> Result<String, String> {
    let root = workspace.root();
    if reference.is_none_or(|it| it == HEAD) && has_no_commit(launcher, root).await? {
        return commit_or_empty_tree(launcher, root, HEAD).await;
    }
    let head = commit_id(launcher, root, HEAD).await.map_err(|why| messages::unknown_base(HEAD, &why))?;
    let other = if let Some(reference) = reference {
        let unknown = |why: String| messages::unknown_base(&one_line(reference, MAX_REFERENCE_CHARS), &why);
        commit_id(launcher, root, reference).await.map_err(unknown)?
    } else {
        default_branch(launcher, workspace).await.unwrap_or_else(|| head.clone())
    };
    let exit = git(launcher, root, &["merge-base", &head, &other], Vec::new(), &[]).await?;
    let common = stdout_text(&exit).map_err(|_| messages::no_common_ancestor(&other))?;
    Ok(common.trim().to_owned())
}

/// Checks whether git has printed more than was captured as its start.
fn is_cut(exit: &CommandOutcome) -> bool {
    exit.stdout.total > exit.stdout.head.len() as u64
}

/// Returns the diff that git has printed for one file.
fn file_diff(exit: &CommandOutcome) -> Result<FileDiff, String> {
    let text = stdout_text(exit)?;
    Ok(if is_cut(exit) { FileDiff::TooLarge } else { text_diff(text) })
}

/// Returns the diff `text` of one file.
fn text_diff(text: String) -> FileDiff {
    let is_binary = text.lines().any(|line| line.starts_with("Binary files "));
    if text.trim().is_empty() || is_binary { FileDiff::NoText } else { FileDiff::Text(text) }
}

/// Checks whether git writes a path in quotes, with `core.quotePath` off (git-config(1)).
fn is_quoted_by_git(path: &str) -> bool {
    path.chars().any(|char| char.is_ascii_control() || matches!(char, '"' | '\\'))
}

/// First lines of the part of a diff about one file; every other line of a diff begins otherwise.
const SECTION_STARTS: [&str; 2] = ["diff --git ", "* Unmerged path "];

/// Splits a diff into the parts that begin with the same first line.
fn sections(diff: &str) -> HashMap<&str, String> {
    let (mut sections, mut first) = (HashMap::<_, String>::new(), "");
    for line in diff.split_inclusive('\n') {
        if SECTION_STARTS.iter().any(|start| line.starts_with(start)) {
            first = line.trim_end_matches('\n');
        }
        sections.entry(first).or_default().push_str(line);
    }
    sections
}

/// Returns the parts of a diff about `path`, which git does not write in quotes. A file that became a link has two.
fn section_of(path: &str, sections: &HashMap<&str, String>) -> FileDiff {
    let first_lines = [format!("* Unmerged path {path}"), format!("diff --git a/{path} b/{path}")];
    let parts = first_lines.iter().filter_map(|line| sections.get(line.as_str()));
    text_diff(parts.map(String::as_str).collect())
}

/// Returns the diff of an untracked file, which is read without git.
fn new_file_diff(workspace: &Workspace, path: &str) -> FileDiff {
    let Ok(path_below_root) = workspace.path(path) else { return FileDiff::NoText };
    match workspace.content_of(&path_below_root, MAX_FILE_DIFF_BYTES as u64) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => {
                let name = escape_controls(path);
                let lines = unified_full(&name, "", &text);
                FileDiff::Text(format!("diff --git a/{name} b/{name}\nnew file, not tracked\n{lines}"))
            }
            _ => FileDiff::NoText,
        },
        Err(FileError::TooLarge { .. }) => FileDiff::TooLarge,
        Err(_) => FileDiff::NoText,
    }
}
