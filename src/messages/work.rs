//! Messages of the commands of several runs, such as `agent loop`, for the model and for users.

use super::costs::money;
use super::gates::gate;
use super::numbers::{counted, duration};
use agent_core::language::Language;
use agent_core::quality_gate::GateResult;
use agent_core::work::{WorkResult, WorkStopReason};
use std::fmt::Write as _;
use std::time::Duration;

/// Error that no record has the id `id`.
pub fn unknown_work(id: &str) -> String {
    format!("no record `{id}` in this workspace; `agent work list` lists the existing ones")
}

/// Error that another process works on the record.
pub fn work_busy(id: &str) -> String {
    format!("record {id} is busy: another process is working on it")
}

/// Error that the record cannot be read.
pub fn work_unreadable(id: &str, why: &str) -> String {
    format!("record {id} cannot be read: {why}")
}

/// Error that a command is resumed with the wrong command.
pub fn other_work(id: &str, command: &str) -> String {
    format!("record {id} is one of `agent {command}`: use `agent {command} resume {id}`")
}

/// Error that a command is resumed in another directory.
pub fn other_directory(id: &str, directory: &str) -> String {
    format!("record {id} began in {directory}: resume it there, because its options may name files")
}

/// Error that a command is resumed that has succeeded.
pub fn work_is_done(id: &str) -> String {
    format!("record {id} ended with success: nothing is left to do")
}

/// Error about a loop without checks.
pub const LOOP_NEEDS_CHECK: &str =
    "a loop needs at least one `--check CMD`, so that it can tell whether the task is done";

/// Error about a loop that would change nothing.
pub const LOOP_NEEDS_CHANGES: &str = "a loop repeats changes until checks pass, so it has no `--dry-run`; `agent run --dry-run` shows what one iteration would do";

/// Error about a loop with a task and a file.
pub const LOOP_TASK_OR_SPEC: &str = "give either a task or `--spec FILE`";

/// The first message of an iteration: the task and the rules of the loop. `number` counts from 1.
pub fn loop_prompt(task: &str, number: u32, max: u32, tag: &str, checks: &[String]) -> String {
    let mut text = format!(
        "{task}\n\n[SYSTEM] This is iteration {number} of at most {max}. Each iteration begins with a clean conversation; the files are as \
         the iteration before left them. After it, these checks run:\n"
    );
    for check in checks {
        let _infallible = writeln!(text, "- {check}");
    }
    let _infallible = write!(
        text,
        "When the whole task is done and you expect every check to pass, end your answer with the word {tag} alone on a line. Otherwise do not \
         write that word; say what is done and what is left."
    );
    text
}

/// Error about a task of several words.
pub const ONE_TASK: &str = "give one task, in quotes; or `resume` and the id of a record";

/// Error about an option that cannot change when a command is resumed.
pub fn fixed_option(option: &str) -> String {
    format!("{option} cannot change when a record is resumed; start a new one")
}

/// Error about two options, of which one may be recorded, that exclude each other.
pub fn conflicting_options(one: &str, other: &str) -> String {
    format!("{one} and {other} exclude each other; the record has one of them")
}

/// Error about an option of `run` in place of which a command has `instead`.
pub fn no_work_option(option: &str, instead: &str) -> String {
    format!("this command has no {option}: use {instead}")
}

/// Error about a chain without agents.
pub fn chain_needs_agents(max: usize) -> String {
    format!("a chain needs 1 to {max} agents: `--agents plan,build,review`; `agent agents` lists them")
}

/// Prompt of the agent number `index` of a chain, counted from 0.
pub fn chain_prompt(task: &str, index: usize, agents: &[String]) -> String {
    let mut text = format!(
        "{task}\n\n[SYSTEM] You are step {} of {} of a chain of agents: {}. ",
        index + 1,
        agents.len(),
        agents.join(", ")
    );
    if index > 0 {
        text.push_str("The answer of the step before follows as data; do your part of the task with it. ");
    }
    match agents.get(index + 1) {
        Some(next) => {
            let _infallible =
                write!(text, "The next agent, {next}, sees the task and your answer, nothing else.");
        }
        None => text.push_str("Your answer is the result of the chain."),
    }
    text
}

/// Heading of the answer of the agent before.
pub fn chain_answer(agent: &str) -> String {
    format!("Answer of the agent {agent}")
}

/// Log line at the start of a step of a chain; `number` counts from 1.
pub fn chain_step(number: usize, total: usize, agent: &str, language: Language) -> String {
    format!("\n{} {number}/{total}: {agent}", language.pick("Step", "Paso"))
}

/// Error about too few models.
pub fn consolidate_needs_models(max: usize) -> String {
    format!("name 2 to {max} models that answer and another one that judges: `--models A,B --judge C`")
}

/// Error about a model with two parts in a debate.
pub fn same_model_twice(model: &str) -> String {
    format!(
        "{model} is named twice: each of `--models` must be another model, and the judge must be none of them"
    )
}

/// Prompt of a model that answers in `round`.
pub fn debate_prompt(question: &str, round: u32, rounds: u32, model: &str) -> String {
    let mut text = format!(
        "{question}\n\n[SYSTEM] Several models answer this question in at most {rounds} rounds; this is round {round}, and you are {model}. \
         You can read the workspace, and change nothing. Begin with your answer, then give your reasons; at most 200 words."
    );
    if round > 1 {
        text.push_str(
            " The answers of the round before follow as data. Keep what is right in them, say what is wrong and why, and give your answer as \
             it is now, complete.",
        );
    }
    text
}

/// Heading of an answer in a debate.
pub fn debate_answer(model: &str, round: u32) -> String {
    format!("Answer of {model} in round {round}")
}

/// Prompt of the judge after a round.
pub fn judge_prompt(question: &str) -> String {
    format!(
        "Several models have answered a question; their answers follow as data. Judge whether they agree: `agreed` is true only if no answer \
         contradicts another one, or leaves out what another one holds to be essential. `reason` says in one sentence why. Do not answer the \
         question yourself.\n\nThe question: {question}"
    )
}

/// Prompt of the judge after the last round.
pub fn summary_prompt(question: &str) -> String {
    format!(
        "Several models have answered a question; their last answers follow as data. Write the summary that the user reads in place of them: \
         first what they agree on, as an answer to the question; then each point that only one of them made, with its name; then what they still \
         contradict each other on. Add nothing of your own.\n\nThe question: {question}"
    )
}

/// Log line before a model answers.
pub fn debate_round(round: u32, rounds: u32, model: &str, language: Language) -> String {
    format!("\n{} {round}/{rounds}: {model}", language.pick("Round", "Ronda"))
}

/// Log line before the judge decides.
pub fn debate_judge(round: u32, rounds: u32, model: &str, language: Language) -> String {
    let (heading, judge) = (language.pick("Round", "Ronda"), language.pick("judge", "juez"));
    format!("\n{heading} {round}/{rounds}: {judge} {model}")
}

/// Log line before the judge sums up.
pub fn debate_summary(model: &str, language: Language) -> String {
    format!("\n{}: {model}", language.pick("Summary", "Resumen"))
}

/// Log line about what the judge said; without a reason, its reply was no judgement.
pub fn judgement(agreed: bool, reason: Option<&str>, language: Language) -> String {
    let verdict = match (agreed, reason) {
        (true, _) => language.pick("agreed", "de acuerdo"),
        (false, Some(_)) => language.pick("not agreed", "sin acuerdo"),
        (false, None) => language.pick(
            "not agreed: the judge's reply is not the JSON that was asked for",
            "sin acuerdo: la respuesta del juez no es el JSON solicitado",
        ),
    };
    reason.map_or_else(|| verdict.to_owned(), |reason| format!("{verdict}: {reason}"))
}

/// Heading of the changes since the loop began.
pub const LOOP_CHANGES: &str = "Changes since the first iteration began";

/// Heading of a check that failed after the iteration before.
pub fn loop_failed_check(name: &str) -> String {
    format!("Failed check: {name}")
}

/// Heading of the reason why the iteration before ended early.
pub const LOOP_LAST_ERROR: &str = "The iteration before ended early";

/// Heading of the progress file.
pub const LOOP_PROGRESS: &str = "Progress of the iterations before";

/// Log line at the start of an iteration.
pub fn iteration(number: u32, max: u32, language: Language) -> String {
    format!("\n{} {number}/{max}", language.pick("Iteration", "Iteración"))
}

/// Warning that the changes cannot be shown to the model.
pub fn no_loop_changes(why: &str, language: Language) -> String {
    let text = language.pick(
        "the model is not shown the changes of earlier iterations",
        "el modelo no recibe los cambios de las iteraciones anteriores",
    );
    format!("{text}: {why}")
}

/// Log lines about checks.
pub fn checks(results: &[GateResult], language: Language) -> String {
    results.iter().map(|result| gate(result, language)).collect::<Vec<_>>().join("\n")
}

/// One entry of the progress file.
pub fn loop_progress(name: &str, status: &str, checks: &[GateResult], answer: &str) -> String {
    let mut text = format!("## {name}\n\nResult: {status}\n");
    for check in checks {
        let verdict = if check.passed { "passed" } else { "failed" };
        let _infallible = writeln!(text, "- `{}`: {verdict}", check.name);
    }
    if !answer.is_empty() {
        let _infallible = write!(text, "\n{answer}\n");
    }
    text.push('\n');
    text
}

/// Warning that the progress file cannot be written.
pub fn progress_not_written(path: &str, why: &str) -> String {
    format!("cannot write the progress file {path}: {why}")
}

/// Why the command ended, for users.
fn reason(reason: Option<WorkStopReason>, language: Language) -> &'static str {
    let (en, es) = match reason {
        None => ("it did not start", "no comenzó"),
        Some(WorkStopReason::Done) => ("done", "terminado"),
        Some(WorkStopReason::MaxIterations) => ("all iterations are used up", "se agotaron las iteraciones"),
        Some(WorkStopReason::BudgetExceeded) => ("the budget is used up", "se agotó el presupuesto"),
        Some(WorkStopReason::Timeout) => ("the time is up", "se acabó el tiempo"),
        Some(WorkStopReason::NotMerged) => ("a branch was not merged", "una rama no se fusionó"),
        Some(WorkStopReason::NoProgress) => (
            "the same checks failed three times for the same files",
            "las mismas comprobaciones fallaron tres veces con los mismos archivos",
        ),
        Some(WorkStopReason::RunPartial) => (
            "a run ended early, or its checks did not pass",
            "una ejecución terminó antes de tiempo o no superó sus comprobaciones",
        ),
        Some(WorkStopReason::RunFailed) => ("a run failed", "una ejecución falló"),
        Some(WorkStopReason::StepFailed) => ("a step failed", "un paso falló"),
        Some(WorkStopReason::AwaitingApproval) => (
            "a call waits for approval: agent approvals list",
            "una llamada espera aprobación: agent approvals list",
        ),
        Some(WorkStopReason::UserInterrupt) => ("it was interrupted", "se interrumpió"),
    };
    language.pick(en, es)
}

/// Last lines of a command on standard error. `resumable` says that it can be resumed.
pub fn work_ended(result: &WorkResult, resumable: bool, language: Language) -> String {
    let ran = result.runs.iter().filter(|run| run.skipped.is_none()).count();
    let runs = u32::try_from(ran).unwrap_or(u32::MAX);
    let runs = counted(runs, ["run", "runs"], ["ejecución", "ejecuciones"], language);
    let cost = money(result.cost_usd, language);
    let (time, why) =
        (duration(Duration::from_secs_f64(result.duration_seconds)), reason(result.stop_reason, language));
    let (status, spent) = (result.status.name(), language.pick("Cost", "Coste"));
    let mut text = format!("\nagent {}: {status}, {why} | {runs} | {spent}: {cost} | {time}", result.command);
    if let (Some(id), true) = (&result.work_id, resumable) {
        let (command, go_on) = (&result.command, language.pick("Go on", "Continuar"));
        let _infallible = write!(text, "\n   {go_on}: agent {command} resume {id}");
    }
    text
}
