//! `agent parallel-cleanup`: removes the worktrees and branches of commands that have ended.

use crate::eval::directories;
use crate::work::record::{RecordedWork, WorkRecord, work_store};
use crate::work::worktrees::{git_launcher, open_repository, unusable};
use agent_config::overrides::Overrides;
use agent_config::settings::Settings;
use agent_core::run_result::ModifiedFile;
use agent_core::work::Worktree;
use agent_messages as messages;
use agent_run::app::App;
use agent_run::error::AppResult;
use agent_run::exit_code::ExitCode;
use agent_run::output::print;
use agent_terminal::Style;
use agent_workspace::git::worktree::Repository;
use agent_workspace::git::worktree_commit::Committed;
use std::fmt::Write as _;
use std::path::Path;

/// Removes the worktrees and branches of the record `id` or of all records, and prints what was removed and kept. With `force`, commits that are on no
/// other branch are given up too. Returns the exit code: the code of a partial result if a worktree was kept because its changes are in no commit.
///
/// # Errors
/// Fails for an unknown record, one whose command is under way, and when git fails.
pub fn clean_up(app: &App, flags: &Overrides, id: Option<&str>, force: bool) -> AppResult<u8> {
    let settings = app.load_and_notify(flags)?.settings;
    let store = work_store(&settings);
    let ids = match id {
        Some(id) => vec![id.to_owned()],
        None => store.list()?.collect(),
    };
    let (text, has_kept) = app.block_on(async {
        let mut removed = Removed { app, settings: &settings, force, text: String::new(), has_kept: false };
        for name in &ids {
            let known = RecordedWork::read(&store, name).map(|(work, _)| work);
            if id.is_none() && known.as_ref().map_or(true, |work| work.worktrees().next().is_none()) {
                continue;
            }
            // Opened, because a command that is under way has locked its record.
            match WorkRecord::open(app, &settings, name) {
                Ok(_locked) => removed.worktrees_of(&known?).await?,
                Err(error) if id.is_none() => app.notify(Style::Warning, &error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok((removed.text, removed.has_kept))
    })?;
    print(&app.terminal, if text.is_empty() { "There are no worktrees.\n" } else { &text })?;
    let code = if has_kept { ExitCode::Partial } else { ExitCode::Success };
    Ok(code.code())
}

/// What was removed so far.
struct Removed<'a> {
    app: &'a App,
    settings: &'a Settings,
    force: bool,
    text: String,
    /// Whether a worktree was kept.
    has_kept: bool,
}

impl Removed<'_> {
    /// Removes the worktrees of a record; those of the tasks of `agent eval --tasks` are repositories of their own.
    async fn worktrees_of(&mut self, work: &RecordedWork) -> AppResult<()> {
        let is_task = |worktree: &&Worktree| worktree.branch == directories::BRANCH;
        let (tasks, others): (Vec<&Worktree>, Vec<&Worktree>) =
            work.worktrees().map(|(_, worktree)| worktree).partition(is_task);
        let changed: Vec<ModifiedFile> =
            work.ended_runs().into_iter().flat_map(|run| run.result.files_modified).collect();
        for worktree in tasks {
            self.text.push_str(&remove_task(worktree)?);
        }
        if others.is_empty() {
            return Ok(());
        }
        let launcher = git_launcher(self.app, self.settings)?;
        let repository = open_repository(&launcher, self.settings).await?;
        let base = work.start.base.as_deref().unwrap_or("HEAD");
        for worktree in others {
            let why = if self.force {
                None
            } else {
                self.not_committed(&repository, worktree, base, &changed).await
            };
            if let Some(why) = why {
                self.has_kept = true;
                let Worktree { branch, path, .. } = worktree;
                self.text.push_str(&messages::worktree_kept(branch, path, &why, self.settings.language));
                continue;
            }
            self.text.push_str(&remove(&repository, worktree, self.force).await?);
        }
        Ok(())
    }

    /// Commits the changes in a worktree that have no commit; returns why not all of them have one.
    async fn not_committed(
        &self,
        repository: &Repository<'_>,
        worktree: &Worktree,
        base: &str,
        changed: &[ModifiedFile],
    ) -> Option<String> {
        let path = Path::new(&worktree.path);
        path.symlink_metadata().ok()?;
        let message = "agent: uncommitted changes";
        match repository.commit_to_branch(&worktree.branch, path, base, message, changed).await {
            Ok(Committed { left_out, .. }) if left_out.is_empty() => None,
            Ok(Committed { left_out, .. }) => Some(messages::left_out(&left_out, self.settings.language)),
            Err(why) => Some(messages::not_committed(&why)),
        }
    }
}

/// Removes the directory of a task of `agent eval --tasks`, and returns the line about it.
fn remove_task(worktree: &Worktree) -> AppResult<String> {
    let path = Path::new(&worktree.path);
    if path.symlink_metadata().is_err() {
        return Ok(String::new());
    }
    directories::remove(path).map_err(|error| unusable(&format!("{}: {error}", path.display())))?;
    Ok(format!("removed {}\n", worktree.path))
}

/// Removes a worktree, whose changes are committed, and its branch; returns the lines about it.
async fn remove(repository: &Repository<'_>, worktree: &Worktree, force: bool) -> AppResult<String> {
    let Worktree { branch, path, .. } = worktree;
    let (directory, reference) = (Path::new(path), format!("refs/heads/{branch}"));
    let exists = directory.symlink_metadata().is_ok();
    if !exists && repository.commit_of(&reference).await.is_err() {
        return Ok(String::new());
    }
    let failed = |why: String| unusable(&why);
    let kept = format!("refs/agent/kept/{}", branch.trim_start_matches("agent/"));
    repository.remove(directory).await.map_err(failed)?;
    let is_kept = repository.delete_branch(branch, &kept, force).await.map_err(failed)?;
    let mut text = format!("removed {branch}\n");
    if is_kept {
        let _infallible = writeln!(text, "  its commits are on no other branch: kept as {kept}");
    }
    Ok(text)
}
