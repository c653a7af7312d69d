//! Worktrees and branches for runs beside the user's working tree: made, committed, merged and removed without hooks, filters,
//! submodules and signatures.

use crate::git::{command, commit_id, error_text, stdout_text, whole_output_of, without_filters};
use agent_core::file_change::{ChangeAction, ChangedBy};
use agent_core::run_result::ModifiedFile;
use agent_core::work::LeftOut;
use agent_process::launch::{CommandOutcome, CommandSpec, ExitReason, Launcher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Time limit of one git call: a checkout of a large repository takes a while.
const MAX_TIME: Duration = Duration::from_mins(5);

/// Author and committer if the user has not configured any.
const IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "agent"),
    ("GIT_AUTHOR_EMAIL", "agent@localhost"),
    ("GIT_COMMITTER_NAME", "agent"),
    ("GIT_COMMITTER_EMAIL", "agent@localhost"),
];

/// Settings without signatures, editors and programs in the background; commits and references survive a power failure.
const SETTINGS: [(&str, &str); 5] = [
    ("commit.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("core.editor", "false"),
    ("core.fsync", "committed,reference"),
];

/// How often, and after which pauses, a lock on a branch is looked at: a git process that works holds it for milliseconds.
const LOCK_TRIES: u32 = 30;
const LOCK_PAUSE: Duration = Duration::from_millis(100);
/// Pause between two calls of git while another process creates a worktree, at most as many as for a lock.
const UNFINISHED_PAUSE: Duration = Duration::from_millis(20);

/// A repository with the user's working tree.
pub struct Repository<'a> {
    /// Starts git.
    pub launcher: &'a Launcher,
    /// The workspace, which may be a directory within the working tree.
    pub(super) workspace: PathBuf,
    /// The settings of each call.
    pub(super) settings: Vec<(String, &'static str)>,
    /// Path of the workspace in the working tree: empty, or with a `/` at its end.
    pub prefix: String,
}

/// How a merge ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Merge {
    /// The branch is merged; the new commit of the user's branch.
    Merged(String),
    /// Both sides have changed these files; nothing was changed.
    Conflict(Vec<String>),
    /// Not merged, for this reason; nothing was changed.
    Refused(String),
}

impl<'a> Repository<'a> {
    /// Opens the repository that contains `workspace`. `launcher` must be able to write to all its directories.
    ///
    /// # Errors
    /// The message of git, also if there is no repository.
    pub async fn open(launcher: &'a Launcher, workspace: &Path) -> Result<Self, String> {
        let mut opened = Self {
            launcher,
            workspace: workspace.to_owned(),
            settings: SETTINGS.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            prefix: String::new(),
        };
        let words = ["rev-parse", "--show-prefix"];
        let (prefix, programs) =
            tokio::join!(opened.line(workspace, &words), without_filters(launcher, workspace));
        opened.prefix = prefix?;
        opened.settings.extend(programs?);
        Ok(opened)
    }

    pub(super) async fn run(
        &self,
        directory: &Path,
        words: &[&str],
        env: &[(&str, &str)],
    ) -> Result<CommandOutcome, String> {
        let spec = self.command(directory, words, env, Vec::new());
        // An interrupt does not leave half a worktree or commit.
        let outcome = self.launcher.launch(spec, &CancellationToken::new()).await;
        outcome.map_err(|error| error.to_string())
    }

    /// Returns the call of git with these arguments, variables and standard input.
    pub(super) fn command(
        &self,
        directory: &Path,
        words: &[&str],
        env: &[(&str, &str)],
        stdin: Vec<u8>,
    ) -> CommandSpec {
        let mut spec = command(directory, words, stdin, &self.settings);
        spec.env.extend(env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        CommandSpec { timeout: MAX_TIME, ..spec }
    }

    pub(super) async fn line(&self, directory: &Path, words: &[&str]) -> Result<String, String> {
        let call = async || -> Result<String, String> {
            Ok(stdout_text(&self.run(directory, words, &[]).await?)?.trim_end().to_owned())
        };
        for _ in 1..LOCK_TRIES {
            match call().await {
                // Git reads the data of all worktrees, and gives up at one that another process is creating: its `commondir` is empty.
                Err(why) if why.contains("/commondir: ") => sleep(UNFINISHED_PAUSE).await,
                done => return done,
            }
        }
        call().await
    }

    /// Creates a commit, by the user or, if git knows none, by this program.
    pub(super) async fn commit_tree(&self, directory: &Path, words: &[&str]) -> Result<String, String> {
        let is_known = self.line(&self.workspace, &["var", "GIT_COMMITTER_IDENT"]).await.is_ok();
        let identity: &[_] = if is_known { &[] } else { &IDENTITY };
        let commit = self.run(directory, &[&["commit-tree"], words].concat(), identity).await?;
        Ok(stdout_text(&commit)?.trim().to_owned())
    }

    /// Returns the commit that `reference` names.
    ///
    /// # Errors
    /// The message of git.
    pub async fn commit_of(&self, reference: &str) -> Result<String, String> {
        commit_id(self.launcher, &self.workspace, reference).await
    }

    /// Counts what a worktree lacks in comparison with the user's working tree.
    ///
    /// # Errors
    /// The message of git.
    pub async fn left_out(&self) -> Result<LeftOut, String> {
        let status = [
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--ignore-submodules=all",
            "--untracked-files=all",
        ];
        Ok(LeftOut {
            uncommitted: self.listed(&status, &[]).await?.len(),
            ..self.not_checked_out(&[]).await?
        })
    }

    /// Counts what a checkout of an index without filters and submodules lacks. `env` may name the file of the index.
    ///
    /// # Errors
    /// The message of git.
    pub(super) async fn not_checked_out(&self, env: &[(&str, &str)]) -> Result<LeftOut, String> {
        let modes = self.listed(&["ls-files", "--full-name", "-s", "-z", ":/"], env).await?;
        let filtered = self.listed(&["ls-files", "-z", "--", ":(top,exclude,attr:!filter)"], env).await?;
        let submodules = modes.iter().filter(|entry| entry.starts_with("160000 ")).count();
        Ok(LeftOut { uncommitted: 0, filtered: filtered.len(), submodules })
    }

    /// Returns the entries that git lists with `-z`; of a long list, those that are captured.
    async fn listed(&self, words: &[&str], env: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let exit = self.run(&self.workspace, words, env).await?;
        let is_cut = exit.stdout.total > exit.stdout.head.len() as u64;
        let text = stdout_text(&exit)?;
        let mut entries: Vec<String> =
            text.split('\0').filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
        if is_cut {
            entries.pop();
        }
        Ok(entries)
    }

    /// Checks that neither the branch nor the directory of a new worktree exists.
    ///
    /// # Errors
    /// Names what exists.
    pub async fn check_new(&self, path: &Path, branch: &str) -> Result<(), String> {
        if path.symlink_metadata().is_ok() {
            return Err(format!("{} exists", path.display()));
        }
        match self.commit_of(&format!("refs/heads/{branch}")).await {
            Ok(_) => Err(format!("the branch {branch} exists")),
            Err(_) => self.check_branch(branch).await,
        }
    }

    /// Checks that `branch` can be created, and creates nothing. A branch `agent`, for example, excludes `agent/x`.
    ///
    /// # Errors
    /// The message of git.
    pub async fn check_branch(&self, branch: &str) -> Result<(), String> {
        let commit = self.commit_of("HEAD").await?;
        let try_it = format!("start\ncreate refs/heads/{branch} {commit}\nprepare\nabort\n");
        self.change_branch(branch, &try_it).await
    }

    /// Removes the locks on the worktree `path`, and on its `branch` if it has one, that a git process has left which was killed. Nobody else may
    /// use them.
    ///
    /// # Errors
    /// The message of git, or of the system.
    pub async fn remove_locks(&self, path: &Path, branch: Option<&str>) -> Result<(), String> {
        let repository = self.common_directory().await?;
        // A clone has no worktree but its own.
        let is_clone = path.join(".git").is_dir();
        let own = repository.join("worktrees").join(path.file_name().unwrap_or_default());
        let own = if is_clone { repository.clone() } else { own };
        let reference = branch.map(|branch| lock_of(&repository, branch));
        let locks = [own.join("index.lock"), own.join("HEAD.lock")];
        locks.iter().chain(&reference).try_for_each(|lock| remove(lock))
    }

    /// Returns the directory that all worktrees share.
    async fn common_directory(&self) -> Result<PathBuf, String> {
        let words = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
        Ok(PathBuf::from(self.line(&self.workspace, &words).await?))
    }

    /// Creates the worktree `path` with the new branch `branch`, or with none, at `base`.
    ///
    /// # Errors
    /// The message of git, also if the branch or the directory exists.
    pub async fn add(&self, path: &Path, branch: Option<&str>, base: &str) -> Result<(), String> {
        let target = path.to_str().ok_or("the state directory is no text")?;
        // Twice: one that git was killed in stays locked. The checkout of `git worktree add` locks `packed-refs`, which belongs to the user, and
        // leaves the lock when it is killed.
        let mut words = vec!["worktree", "add", "--force", "--force", "--quiet", "--no-checkout"];
        match branch {
            Some(branch) => {
                // Not with `-b`: a second call would find the branch of the first one.
                self.create_branch(branch, base).await?;
                words.extend([target, branch]);
            }
            None => words.extend(["--detach", target, base]),
        }
        self.line(&self.workspace, &words).await?;
        self.line(path, &["read-tree", "-u", "--reset", "--no-recurse-submodules", "HEAD"]).await.map(drop)
    }

    /// Creates `branch` at `commit`; one that is there already stays.
    ///
    /// # Errors
    /// The message of git, also if the branch is at another commit.
    pub async fn create_branch(&self, branch: &str, commit: &str) -> Result<(), String> {
        let reference = format!("refs/heads/{branch}");
        match self.change_branch(branch, &format!("create {reference} {commit}\n")).await {
            Err(why) if self.commit_of(&reference).await.as_deref() != Ok(commit) => Err(why),
            _ => Ok(()),
        }
    }

    /// Moves `branch` to `commit`, which a run may have made on another branch, or on none.
    ///
    /// # Errors
    /// When the branch has commits that `commit` lacks; the message of git.
    pub async fn forward_branch(&self, branch: &str, commit: &str) -> Result<(), String> {
        let reference = format!("refs/heads/{branch}");
        let Ok(now) = self.commit_of(&reference).await else {
            return self.create_branch(branch, commit).await;
        };
        if now == commit {
            return Ok(());
        }
        let is_ancestor = self.line(&self.workspace, &["merge-base", "--is-ancestor", &now, commit]).await;
        is_ancestor
            .map_err(|_| format!("the worktree has left the branch {branch}, which has other commits"))?;
        self.line(&self.workspace, &["update-ref", &reference, commit, &now]).await.map(drop)
    }

    /// Gives `git update-ref` these commands about `branch`. A lock on it that does not go away is one that a killed git process has left, and is
    /// removed.
    async fn change_branch(&self, branch: &str, commands: &str) -> Result<(), String> {
        let change = async || {
            let words = ["update-ref", "--stdin"];
            let spec = self.command(&self.workspace, &words, &[], commands.as_bytes().to_vec());
            whole_output_of(self.launcher, spec, &[0]).await.map(drop)
        };
        let changed = change().await;
        if changed.is_ok() {
            return changed;
        }
        let lock = lock_of(&self.common_directory().await?, branch);
        for _ in 0..LOCK_TRIES {
            if lock.symlink_metadata().is_err() {
                break;
            }
            sleep(LOCK_PAUSE).await;
        }
        if lock.symlink_metadata().is_ok() {
            remove(&lock)?;
        }
        change().await
    }

    /// Returns the files that differ between two commits.
    ///
    /// # Errors
    /// The message of git.
    pub async fn changed_files(&self, base: &str, commit: &str) -> Result<Vec<ModifiedFile>, String> {
        let words = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", base, commit];
        let text = self.line(&self.workspace, &words).await?;
        // The last part is empty, or cut.
        let (whole, _) = text.rsplit_once('\0').unwrap_or_default();
        let parts: Vec<&str> = whole.split('\0').collect();
        let files = parts.chunks_exact(2).map(|pair| {
            let (kind, path) = (pair.first().copied(), pair.last().copied().unwrap_or_default());
            let action = match kind {
                Some("A") => ChangeAction::Created,
                Some("D") => ChangeAction::Deleted,
                _ => ChangeAction::Modified,
            };
            ModifiedFile { path: path.to_owned(), action, by: ChangedBy::Command, lines: None }
        });
        Ok(files.collect())
    }

    /// Merges `branch` into the branch of the user's working tree, completely or not at all.
    ///
    /// # Errors
    /// The message of git.
    pub async fn merge(&self, branch: &str, message: &str) -> Result<Merge, String> {
        let root = &self.workspace;
        let (ours, theirs) = (self.commit_of("HEAD").await?, self.commit_of(branch).await?);
        let merged =
            self.run(root, &["merge-tree", "--write-tree", "--name-only", "-z", &ours, &theirs], &[]).await?;
        let tree = match merged.reason {
            ExitReason::Code(0) => stdout_text(&merged)?.trim_end_matches('\0').trim().to_owned(),
            ExitReason::Code(1) => {
                // The tree, the files in conflict, an empty name, then messages.
                let text = String::from_utf8_lossy(&merged.stdout.head).into_owned();
                let files = text.split('\0').skip(1).take_while(|name| !name.is_empty());
                return Ok(Merge::Conflict(files.map(str::to_owned).collect()));
            }
            _ => return Err(error_text(&merged)),
        };
        let commit = self.commit_tree(root, &["-p", &ours, "-p", &theirs, "-m", message, &tree]).await?;
        let forward = self.run(root, &["merge", "--ff-only", "--quiet", &commit], &[]).await?;
        Ok(match forward.reason {
            ExitReason::Code(0) => Merge::Merged(commit),
            _ => Merge::Refused(error_text(&forward)),
        })
    }

    /// Removes the worktree `path`, if it exists, with all that is in it.
    ///
    /// # Errors
    /// The message of git, or of the system.
    #[expect(clippy::disallowed_methods, reason = "this module owns the worktrees")]
    pub async fn remove(&self, path: &Path) -> Result<(), String> {
        let target = path.to_str().ok_or("the state directory is no text")?;
        if path.symlink_metadata().is_ok() {
            let words = ["worktree", "remove", "--force", "--force", target];
            if self.line(&self.workspace, &words).await.is_ok() {
                return Ok(());
            }
            // git refuses one that it was killed in.
            std::fs::remove_dir_all(path).map_err(|error| format!("{target}: {error}"))?;
        }
        // One whose creation was interrupted stays locked, which would keep it.
        let own = self.common_directory().await?.join("worktrees").join(path.file_name().unwrap_or_default());
        remove(&own.join("locked"))?;
        self.line(&self.workspace, &["worktree", "prune"]).await.map(drop)
    }

    /// Deletes `branch`, if it exists. If its commits are on no other branch, tag or remote branch, `kept` becomes a reference to them,
    /// unless `force`; returns whether it did.
    ///
    /// # Errors
    /// The message of git.
    pub async fn delete_branch(&self, branch: &str, kept: &str, force: bool) -> Result<bool, String> {
        let root = &self.workspace;
        let reference = format!("refs/heads/{branch}");
        let Ok(commit) = self.commit_of(&reference).await else { return Ok(false) };
        let exclude = format!("--exclude={branch}");
        let words = [
            "rev-list",
            "--max-count=1",
            &commit,
            "--not",
            &exclude,
            "--branches",
            "--tags",
            "--remotes",
            "HEAD",
        ];
        let keeps = !force && !self.line(root, &words).await?.is_empty();
        if keeps {
            self.line(root, &["update-ref", kept, &commit]).await?;
        }
        self.line(root, &["update-ref", "-d", &reference, &commit]).await?;
        Ok(keeps)
    }
}

/// Returns the path of the lock on a branch.
fn lock_of(repository: &Path, branch: &str) -> PathBuf {
    repository.join("refs/heads").join(format!("{branch}.lock"))
}

/// Removes a file, if it exists.
#[expect(clippy::disallowed_methods, reason = "this module owns the worktrees")]
pub(super) fn remove(file: &Path) -> Result<(), String> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("{}: {error}", file.display())),
        _ => Ok(()),
    }
}
