//! `agent parallel-cleanup`: removes the worktrees and branches of commands that have ended.

use crate::cli::commands::eval::directories;
use crate::cli::commands::parallel::args::CleanupArgs;
use crate::cli::commands::work::record::{RecordedWork, WorkRecord, work_store};
use crate::cli::commands::work::worktrees::{git_launcher, open_repository, unusable};
use crate::cli::compose::app::App;
use crate::cli::compose::output::print;
use crate::cli::error::CliResult;
use crate::config::settings::Settings;
use crate::core::work::Worktree;
use crate::engine::worktree::Repository;
use crate::messages;
use crate::terminal::Style;
use std::fmt::Write as _;
use std::path::Path;

/// Removes the worktrees and branches of one record or of all, and prints what was removed and kept.
///
/// # Errors
/// Fails for an unknown record, one whose command is under way, and when git fails.
pub fn clean_up(app: &App, args: &CleanupArgs) -> CliResult<()> {
    let settings = app.load_settings(&args.common)?.settings;
    let store = work_store(&settings);
    let ids = match &args.id {
        Some(id) => vec![id.clone()],
        None => store.list()?.collect(),
    };
    let text = app.block_on(async {
        let mut removed = Removed { app, settings: &settings, force: args.force, text: String::new() };
        for id in &ids {
            let known = RecordedWork::read(&store, id).map(|(work, _)| work);
            if args.id.is_none() && known.as_ref().map_or(true, |work| work.worktrees().next().is_none()) {
                continue;
            }
            // Opened, because a command that is under way has locked its record.
            match WorkRecord::open(app, &settings, id) {
                Ok(_locked) => removed.worktrees_of(&known?).await?,
                Err(error) if args.id.is_none() => app.notify(Style::Warning, &error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(removed.text)
    })?;
    print(&app.terminal, if text.is_empty() { "There are no worktrees.\n" } else { &text })
}

/// What was removed so far.
struct Removed<'a> {
    app: &'a App,
    settings: &'a Settings,
    force: bool,
    text: String,
}

impl Removed<'_> {
    /// Removes the worktrees of a record; those of the tasks of `agent eval --tasks` are repositories of their own.
    async fn worktrees_of(&mut self, work: &RecordedWork) -> CliResult<()> {
        let is_task = |worktree: &&Worktree| worktree.branch == directories::BRANCH;
        let (tasks, others): (Vec<&Worktree>, Vec<&Worktree>) =
            work.worktrees().map(|(_, worktree)| worktree).partition(is_task);
        for worktree in tasks {
            self.text.push_str(&remove_task(worktree)?);
        }
        if others.is_empty() {
            return Ok(());
        }
        let launcher = git_launcher(self.app, self.settings)?;
        let repository = open_repository(&launcher, self.settings).await?;
        for worktree in others {
            self.text.push_str(&remove(&repository, worktree, self.force).await?);
        }
        Ok(())
    }
}

/// Removes the directory of a task of `agent eval --tasks`, and returns the line about it.
fn remove_task(worktree: &Worktree) -> CliResult<String> {
    let path = Path::new(&worktree.path);
    if path.symlink_metadata().is_err() {
        return Ok(String::new());
    }
    directories::remove(path).map_err(|error| unusable(&format!("{}: {error}", path.display())))?;
    Ok(format!("removed {}\n", worktree.path))
}

/// Removes a worktree and its branch, and returns the lines about it. Changes without a commit are committed first.
async fn remove(repository: &Repository<'_>, worktree: &Worktree, force: bool) -> CliResult<String> {
    let Worktree { branch, path, .. } = worktree;
    let (directory, reference) = (Path::new(path), format!("refs/heads/{branch}"));
    let exists = directory.symlink_metadata().is_ok();
    if !exists && repository.commit_of(&reference).await.is_err() {
        return Ok(String::new());
    }
    let failed = |why: String| unusable(&why);
    if exists && !force {
        let committed = repository.commit_all(directory, "", "agent: uncommitted changes").await;
        committed.map_err(|why| unusable(&messages::not_committed(&why)))?;
    }
    let kept = format!("refs/agent/kept/{}", branch.trim_start_matches("agent/"));
    repository.remove(directory).await.map_err(failed)?;
    let is_kept = repository.delete_branch(branch, &kept, force).await.map_err(failed)?;
    let mut text = format!("removed {branch}\n");
    if is_kept {
        let _infallible = writeln!(text, "  its commits are on no other branch: kept as {kept}");
    }
    Ok(text)
}
