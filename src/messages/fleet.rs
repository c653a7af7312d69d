//! Messages of `agent worker`.

use crate::core::fleet::TaskRecord;
use crate::core::language::Language;
use crate::text::lines::one_line;

/// Characters of a prompt in a line.
const PROMPT_CHARS: usize = 60;
/// Characters of a cause in a line.
const CAUSE_CHARS: usize = 300;

/// A task begins.
pub fn task_started(id: &str, attempt: u32, prompt: &str, language: Language) -> String {
    let prompt = one_line(prompt, PROMPT_CHARS);
    match language {
        Language::En => format!("task {id}, attempt {attempt}: {prompt}"),
        Language::Es => format!("tarea {id}, intento {attempt}: {prompt}"),
    }
}

/// The attempt of a task ended.
pub fn task_ended(task: &TaskRecord, language: Language) -> String {
    let (id, state) = (&task.id, task.state.name());
    let task_word = language.pick("task", "tarea");
    let more = match (&task.cause, &task.branch) {
        (Some(cause), _) => format!(": {}", one_line(cause, CAUSE_CHARS)),
        (None, Some(branch)) => format!(", {branch}"),
        (None, None) => String::new(),
    };
    format!("{task_word} {id}: {state}{more}")
}

/// The worktree or branch of an attempt could not be removed.
pub fn attempt_not_removed(branch: &str, why: &str, language: Language) -> String {
    match language {
        Language::En => format!("the worktree of {branch} could not be removed: {why}"),
        Language::Es => format!("no se pudo eliminar el worktree de {branch}: {why}"),
    }
}

/// A signal ends the worker.
pub fn worker_ends(grace: u64, language: Language) -> String {
    match language {
        Language::En => format!("ending: no more tasks; those under way have {grace} s"),
        Language::Es => format!("terminando: no más tareas; las que están en curso tienen {grace} s"),
    }
}

/// The worktree of an attempt does not exist, whose worker was killed.
pub const ATTEMPT_IS_GONE: &str = "the worktree of the interrupted attempt does not exist";

/// The branch of a task exists before the task is done.
pub fn branch_exists(branch: &str) -> String {
    format!("the branch {branch} exists: delete it, or submit the task with another id")
}

/// A task names an agent, and its worker was started with another one.
pub fn worker_has_agent(agent: &str) -> String {
    format!("the worker was started with `--agent {agent}`, which no task replaces")
}
