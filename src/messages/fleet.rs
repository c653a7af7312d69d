//! Messages of `agent worker`.

use super::parallel::left_out;
use agent_core::fleet::TaskRecord;
use agent_core::language::Language;
use agent_core::quality_gate::GateResult;
use agent_text::lines::one_line;

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

/// A killed worker has left a command of the first answer whose outcome is not known.
pub fn task_begins_anew(id: &str, language: Language) -> String {
    match language {
        Language::En => format!("task {id}: its worker was killed in the first command; it begins anew"),
        Language::Es => format!("tarea {id}: su worker murió en la primera orden; empieza de nuevo"),
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
    let mut text = format!("{task_word} {id}: {state}{more}");
    if !task.left_out.is_empty() {
        text = format!("{text}\n   {}", left_out(&task.left_out, language));
    }
    if let Some(path) = &task.worktree {
        let kept = language.pick("kept with its changes", "conservado con sus cambios");
        text = format!("{text}\n   {kept}: {path}");
    }
    text
}

/// The branch of a task that is done could not be made.
pub fn branch_not_made(id: &str, branch: &str, why: &str, language: Language) -> String {
    match language {
        Language::En => format!("the task {id} is done, but its branch {branch} could not be made: {why}"),
        Language::Es => format!("la tarea {id} está hecha, pero no se pudo crear su rama {branch}: {why}"),
    }
}

/// The worktree of an attempt could not be removed.
pub fn attempt_not_removed(path: &str, why: &str, language: Language) -> String {
    match language {
        Language::En => format!("the worktree {path} could not be removed: {why}"),
        Language::Es => format!("no se pudo eliminar el worktree {path}: {why}"),
    }
}

/// The directory of an attempt was removed whose worker was killed.
pub fn abandoned_removed(path: &str, language: Language) -> String {
    match language {
        Language::En => format!("removed the directory of a killed worker: {path}"),
        Language::Es => format!("eliminado el directorio de un trabajador que fue terminado: {path}"),
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

/// The branch of a task cannot be created.
pub fn branch_impossible(branch: &str, why: &str) -> String {
    format!("the branch {branch} cannot be created: {why}")
}

/// The branch of a task exists before the task is done.
pub fn branch_exists(branch: &str) -> String {
    format!("the branch {branch} exists: delete it, or submit the task with another id")
}

/// A task names an agent, and its worker was started with another one.
pub fn worker_has_agent(agent: &str) -> String {
    format!("the worker was started with `--agent {agent}`, which no task replaces")
}

/// A prompt is longer than the system allows for an argument.
pub fn executor_prompt_too_long(name: &str, most: usize) -> String {
    format!(
        "the executor {name} gets the prompt as an argument, which may have {most} KiB; `fleet.executors.{name}.prompt: stdin` has no such limit"
    )
}

/// The policy of the worker does not let a check of a task run.
pub fn check_refused(check: &str, why: &str) -> String {
    format!("the worker does not run the check `{check}`: {why}")
}

/// A check of a task failed.
pub fn check_failed(gate: &GateResult) -> String {
    format!("the check `{}` failed: {}", gate.name, gate.output.trim())
}

/// A task names an executor that acts without asking, and its worker or the task asks.
pub fn executor_needs_yolo(name: &str) -> String {
    format!(
        "the executor {name} acts without asking: start the worker with `--mode yolo`, and submit the task without another mode"
    )
}

/// A task or its worker has a limit that an executor would not keep.
pub fn executor_has_no_budget(name: &str) -> String {
    format!(
        "the executor {name} does not keep `--budget`, `--budget-total`, `--max-tokens` and `--max-steps`: leave them out, or submit the task without it"
    )
}

/// A task names an agent, and an executor that has none.
pub fn executor_has_no_agent(name: &str) -> String {
    format!("the executor {name} does not use the agents of this program: submit the task without `--agent`")
}

/// The program of an executor does not exist.
pub fn executor_not_installed(name: &str, command: &str, install: Option<&str>) -> String {
    let how = install.map_or_else(String::new, |install| format!(": {install}"));
    format!("the executor {name} is not installed, `{command}` is not on PATH{how}")
}

/// A pattern of an executor is none.
pub fn executor_figures(name: &str, why: &str) -> String {
    format!("fleet.executors.{name}.figures: {why}")
}

/// An executor exceeded its time limit.
pub fn executor_timed_out(seconds: u64) -> String {
    format!("execution timed out after {seconds} seconds")
}

/// An executor failed.
pub fn executor_failed(name: &str, cause: &str, end: &str, has_network: bool) -> String {
    let end = if end.is_empty() { String::new() } else { format!(": {end}") };
    let hint = if has_network {
        String::new()
    } else {
        format!(" (it had no network: set `fleet.executors.{name}.allowed_hosts` or `network: true`)")
    };
    format!("the executor {name} {cause}{hint}{end}")
}

/// The money of a day of all workers is used up or reserved.
pub fn day_budget_used(limit: f64, language: Language) -> String {
    match language {
        Language::En => format!(
            "no task is claimed: the {limit} US dollars of a day (fleet.budget_usd) are used or reserved"
        ),
        Language::Es => format!(
            "no se toma ninguna tarea: los {limit} dólares de un día (fleet.budget_usd) están usados o reservados"
        ),
    }
}
