//! Messages of the commands whose runs work in worktrees of their own.

use super::costs::money;
use super::numbers::{counted, duration};
use super::undo::list_paths;
use agent_core::language::Language;
use agent_core::work::{LeftOut, WorkResult, WorkRun};
use agent_text::lines::one_line;
use std::fmt::Write as _;
use std::time::Duration;

/// Characters of a task in a line.
const TASK_CHARS: usize = 70;

/// Error that a worktree cannot be used.
pub fn no_worktrees(why: &str) -> String {
    format!("the worktree was not usable: {why}")
}

/// Error that no worktree can be created in a repository.
pub fn no_repository_for_worktrees(why: &str) -> String {
    format!("the repository was not usable: {why} (tasks in worktrees need a git repository with a commit)")
}

/// Error about tasks that would change nothing.
pub const PARALLEL_NEEDS_CHANGES: &str = "tasks at the same time change files on branches, so there is no `--dry-run`; `agent run --dry-run` shows what one task would do";

/// Warnings of what the worktrees lack.
pub fn worktree_lacks(lacks: &LeftOut, language: Language) -> Vec<String> {
    let files = |count: usize| {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        counted(count, ["file", "files"], ["archivo", "archivos"], language)
    };
    let mut warnings = Vec::new();
    if lacks.uncommitted > 0 {
        let (en, es) = (
            "without a commit: the worktrees lack the changes (`--include-uncommitted` takes them along)",
            "sin commit: los worktrees no tienen los cambios (`--include-uncommitted` los incluye)",
        );
        warnings.push(format!("{} {}", files(lacks.uncommitted), language.pick(en, es)));
    }
    if lacks.filtered > 0 {
        let (en, es) = (
            "with a filter such as Git LFS, which is not run: the worktrees contain what the repository stores",
            "con un filtro como Git LFS, que no se ejecuta: los worktrees contienen lo que guarda el repositorio",
        );
        warnings.push(format!("{} {}", files(lacks.filtered), language.pick(en, es)));
    }
    if lacks.submodules > 0 {
        let count = u32::try_from(lacks.submodules).unwrap_or(u32::MAX);
        let count = counted(count, ["submodule", "submodules"], ["submódulo", "submódulos"], language);
        let is_empty = language.pick("empty in the worktrees", "sin contenido en los worktrees");
        warnings.push(format!("{count}: {is_empty}"));
    }
    warnings
}

/// Error that a record is removed whose worktrees exist.
pub fn has_worktrees(id: &str) -> String {
    format!("record {id} has worktrees: remove them first with `agent parallel-cleanup {id}`")
}

/// Changes that a commit lacks, and that the worktree has.
pub fn left_out(paths: &[String], language: Language) -> String {
    let (en, es) = (
        "not in the commit (submodules, ignored files, files with a filter)",
        "no están en el commit (submódulos, archivos ignorados, archivos con un filtro)",
    );
    format!("{}: {}", language.pick(en, es), list_paths(paths))
}

/// Uncommitted files that the worktrees lack, because their filters are not run.
pub fn uncommitted_left_out(paths: &[String], language: Language) -> String {
    let (en, es) = (
        "changed files with a filter such as Git LFS or git-crypt, which is not run: the worktrees lack the changes of",
        "archivos cambiados con un filtro como Git LFS o git-crypt, que no se ejecuta: los worktrees no tienen los cambios de",
    );
    format!("{} {}", language.pick(en, es), list_paths(paths))
}

/// Lines about a worktree that is not removed, for this reason.
pub fn worktree_kept(branch: &str, path: &str, why: &str, language: Language) -> String {
    match language {
        Language::En => format!("kept {branch}\n  {why}\n  its files are in {path}; `--force` removes it\n"),
        Language::Es => {
            format!("conservado {branch}\n  {why}\n  sus archivos están en {path}; `--force` lo elimina\n")
        }
    }
}

/// Why changes are not on a branch.
pub fn not_committed(why: &str) -> String {
    format!("the changes could not be committed: {why}")
}

/// Why a branch is not merged.
pub fn not_merged(why: &str) -> String {
    format!("the branch could not be merged: {why}")
}

/// The tasks of a command in a list of records.
pub fn tasks(tasks: &[&str]) -> String {
    let first = tasks.first().copied().unwrap_or_default();
    match tasks.len() {
        0 | 1 => first.to_owned(),
        count => format!("{count} tasks: {first}"),
    }
}

/// Log line about the branch of all runs.
pub fn works_on(branch: &str, language: Language) -> String {
    format!("{} {branch}", language.pick("Works on the branch", "Trabaja en la rama"))
}

/// Log line at the start of a run.
pub fn worker_started(name: &str, task: &str, branch: &str, language: Language) -> String {
    let on = language.pick("on", "en");
    format!("{name} {on} {branch}: {}", one_line(task, TASK_CHARS))
}

/// Log line at the end of a run.
pub fn worker_ended(run: &WorkRun, language: Language) -> String {
    let result = &run.result;
    let reason = result.stop_reason.map(|reason| format!(" ({})", reason.name())).unwrap_or_default();
    let steps = counted(result.steps, ["step", "steps"], ["paso", "pasos"], language);
    let (cost, time) =
        (money(result.cost.total_usd, language), duration(Duration::from_secs_f64(result.duration_seconds)));
    let status = result.status.name();
    let mut text = format!("{}: {status}{reason} | {steps} | {cost} | {time}", run.name);
    if !run.checks.is_empty() {
        let passed = run.checks.iter().filter(|check| check.passed).count();
        let checks = language.pick("checks passed", "comprobaciones superadas");
        let _infallible = write!(text, " | {checks}: {passed}/{}", run.checks.len());
    }
    let problem = run.worktree.as_ref().and_then(|worktree| worktree.problem.clone());
    for why in result.error.iter().map(|error| error.message.clone()).chain(problem) {
        let _infallible = write!(text, "\n   {}", one_line(&why, 200));
    }
    if let Some(worktree) = run.worktree.as_ref().filter(|worktree| !worktree.left_out.is_empty()) {
        let _infallible = write!(text, "\n   {}", left_out(&worktree.left_out, language));
    }
    text
}

/// Log lines about the branches of a command that has ended.
pub fn branches(result: &WorkResult, language: Language) -> String {
    let mut text = String::new();
    let of_runs = result.runs.iter().map(|run| (run.name.as_str(), &run.worktree));
    for (name, worktree) in of_runs.chain([(result.command.as_str(), &result.worktree)]) {
        let Some(worktree) = worktree else { continue };
        // A repository of its own can be one of many.
        if worktree.base.is_some() {
            continue;
        }
        let state = if worktree.merged.is_some() {
            language.pick("merged", "fusionada").to_owned()
        } else if !worktree.conflicts.is_empty() {
            let files = one_line(&worktree.conflicts.join(", "), 200);
            format!("{}: {files}", language.pick("not merged, conflicts in", "sin fusionar, conflictos en"))
        } else if let Some(problem) = &worktree.problem {
            one_line(problem, 200)
        } else if worktree.commit.is_some() {
            format!("git merge {}", worktree.branch)
        } else {
            language.pick("no changes", "sin cambios").to_owned()
        };
        let _infallible = writeln!(text, "   {name}  {}  {state}", worktree.branch);
        if !worktree.left_out.is_empty() {
            let where_they_are = language.pick("they are in", "están en");
            let what = left_out(&worktree.left_out, language);
            let _infallible = writeln!(text, "      {what}; {where_they_are} {}", worktree.path);
        }
    }
    let has_tasks =
        result.runs.iter().filter_map(|run| run.worktree.as_ref()).any(|tree| tree.base.is_some());
    if let (true, Some(id)) = (has_tasks || !text.is_empty(), &result.work_id) {
        let remove = if has_tasks {
            language.pick("Remove the directories of the runs", "Quitar los directorios de las ejecuciones")
        } else {
            language.pick("Remove worktrees and branches", "Quitar worktrees y ramas")
        };
        let _infallible = write!(text, "   {remove}: agent parallel-cleanup {id}");
    }
    text
}

/// The answers of the runs, each under its name.
pub fn worker_answers(runs: &[WorkRun]) -> String {
    let mut text = String::new();
    for run in runs {
        let answer = run.result.output.text();
        if !answer.is_empty() {
            let _infallible = write!(text, "## {}\n\n{}\n\n", run.name, answer.trim_end());
        }
    }
    text.trim_end().to_owned()
}
