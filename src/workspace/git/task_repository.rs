//! Repositories that each hold the files of one task: created from a directory or from a commit of a clone, and with their tests restored.

use crate::git::worktree::Repository;
use crate::git::worktree_commit::Committed;
use crate::git::{command, commit_id, git, listed_paths, stdout_text};
use agent_core::work::LeftOut;
use agent_process::launch::Launcher;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Reference to the state that a run left, before tests were restored.
const LEFT_BY_RUN: &str = "refs/agent/left-by-run";

/// Reference to a list in JSON: the changes that the commit [`LEFT_BY_RUN`] does not contain.
const LEFT_OUT: &str = "refs/agent/left-out";

/// Creates a repository of all files in `root`, ignored ones too, and returns its commit.
///
/// # Errors
/// The message of git.
pub async fn create(launcher: &Launcher, root: &Path) -> Result<String, String> {
    let words = ["init", "--quiet", "--template=", "--initial-branch=main"];
    let init = launcher.launch(command(root, &words, Vec::new(), &[]), &CancellationToken::new()).await;
    stdout_text(&init.map_err(|error| error.to_string())?)?;
    let repository = Repository::open(launcher, root).await?;
    repository.line(root, &["add", "--all", "--force"]).await?;
    let tree = repository.line(root, &["write-tree"]).await?;
    let commit = repository.commit_tree(root, &["-m", "agent: the task", &tree]).await?;
    repository.line(root, &["update-ref", "HEAD", &commit]).await?;
    Ok(commit)
}

/// Writes the files of `commit` of the repository with the working tree `clone` to the directory `to`, through an index of its own at `index`. The
/// history of the repository, which may contain the solution, is not written. Returns what is missing of the files.
///
/// # Errors
/// The message of git.
pub async fn extract(
    launcher: &Launcher,
    clone: &Path,
    commit: &str,
    to: &Path,
    index: &Path,
) -> Result<LeftOut, String> {
    let repository = Repository::open(launcher, clone).await?;
    if !repository.prefix.is_empty() {
        return Err(format!("{} is not the top directory of a git repository", clone.display()));
    }
    let commit = repository.commit_of(commit).await?;
    let index = index.to_str().ok_or("the state directory is no text")?;
    let prefix = format!("--prefix={}/", to.to_str().ok_or("the state directory is no text")?);
    for words in [["read-tree", commit.as_str()].as_slice(), &["checkout-index", "--all", &prefix]] {
        stdout_text(&repository.run(clone, words, &[("GIT_INDEX_FILE", index)]).await?)?;
    }
    repository.not_checked_out(&[("GIT_INDEX_FILE", index)]).await
}

/// Commits what a run has changed in the repository `root`, which began with the commit `base`. After [`prepare_checks`] it returns the commit of
/// then.
///
/// # Errors
/// The message of git.
pub async fn commit_run(
    launcher: &Launcher,
    root: &Path,
    base: &str,
    message: &str,
) -> Result<Committed, String> {
    if let Ok(commit) = commit_id(launcher, root, LEFT_BY_RUN).await {
        let list = git(launcher, root, &["cat-file", "blob", LEFT_OUT], Vec::new(), &[]).await?;
        let left_out = serde_json::from_str(&stdout_text(&list)?).map_err(|error| error.to_string())?;
        return Ok(Committed { commit: (commit != base).then_some(commit), left_out });
    }
    Repository::open(launcher, root).await?.commit_all(root, base, message, &[]).await
}

/// Commits what a run that has ended has changed in `root`. Then restores `tests` and the files of `patch` to the commit `base`, even if
/// the run has changed or deleted them, and applies `patch`.
///
/// # Errors
/// The message of git.
pub async fn prepare_checks(
    launcher: &Launcher,
    root: &Path,
    base: &str,
    message: &str,
    tests: &[String],
    patch: &str,
) -> Result<(), String> {
    let repository = Repository::open(launcher, root).await?;
    if repository.commit_of(LEFT_BY_RUN).await.is_err() {
        let Committed { commit, left_out } = repository.commit_all(root, base, message, &[]).await?;
        let list = serde_json::to_vec(&left_out).map_err(|error| error.to_string())?;
        let list = git(launcher, root, &["hash-object", "-w", "--stdin"], list, &repository.settings).await?;
        repository.line(root, &["update-ref", LEFT_OUT, stdout_text(&list)?.trim()]).await?;
        repository.line(root, &["update-ref", LEFT_BY_RUN, commit.as_deref().unwrap_or(base)]).await?;
    }
    let apply = async |words: &[&str]| {
        git(launcher, root, words, patch.as_bytes().to_vec(), &repository.settings).await
    };
    let mut files = tests.to_vec();
    if !patch.is_empty() {
        let counts = listed_paths(&apply(&["apply", "--numstat", "-z", "-"]).await?)?;
        files.extend(counts.iter().filter_map(|line| Some(line.splitn(3, '\t').nth(2)?.to_owned())));
    }
    if files.is_empty() {
        return Ok(());
    }
    let literal = |file: &String| format!(":(top,literal){file}");
    let with_files = |words: &[&str], files: &[String]| {
        words.iter().map(|word| (*word).to_owned()).chain(files.iter().map(literal)).collect::<Vec<_>>()
    };
    let call = async |words: &[&str], files: &[String]| {
        let words = with_files(words, files);
        repository.run(root, &words.iter().map(String::as_str).collect::<Vec<_>>(), &[]).await
    };
    let with_tree = format!("--with-tree={base}");
    let known = listed_paths(&call(&["ls-files", "-z", "--full-name", &with_tree, "--"], &files).await?)?;
    if !known.is_empty() {
        let source = format!("--source={base}");
        let words = ["restore", "--quiet", &source, "--staged", "--worktree", "--"];
        stdout_text(&call(&words, &known).await?)?;
    }
    stdout_text(&call(&["clean", "--quiet", "--force", "-d", "-x", "--"], &files).await?)?;
    if !patch.is_empty() {
        stdout_text(&apply(&["apply", "--whitespace=nowarn", "-"]).await?)?;
    }
    Ok(())
}
