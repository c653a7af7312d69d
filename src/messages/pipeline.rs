//! Messages of `agent pipeline`.

use crate::undo::list_paths;
use agent_core::language::Language;
use agent_text::lines::escape_controls;
use std::fmt::Write as _;

/// Error for a file that is no pipeline; `errors` have positions, and stand on one line each.
pub fn pipeline_errors(file: &str, errors: &[String]) -> String {
    let count = errors.len();
    let mut text = format!("{file} is no pipeline: {count} {}", if count == 1 { "error" } else { "errors" });
    for error in errors {
        let _infallible = write!(text, "\n  {file}:{error}");
    }
    text
}

/// Error for a pipeline of the workspace that the user has not trusted.
pub fn pipeline_untrusted(path: &str) -> String {
    let path = escape_controls(path);
    format!(
        "{path} belongs to this workspace and is not trusted: read it, then run `agent trust --pipeline {path}`; in CI pass \
         `--trust-workspace=HASH` with the hash that `agent trust --show --pipeline {path}` prints"
    )
}

/// Error for the review of a pipeline that does not belong to the workspace.
pub fn pipeline_needs_no_trust(file: &str) -> String {
    format!(
        "{} is not in this workspace or its repository: it is your own file and needs no trust",
        escape_controls(file)
    )
}

/// Error for a hash of the command line that is not `hash`, that of the project's configuration with the pipeline at `path`.
pub fn pipeline_hash_mismatch(hash: &str, path: &str) -> String {
    let path = escape_controls(path);
    format!(
        "the hash of the project's configuration and the pipeline is {hash}, not the one given: review them with \
         `agent trust --show --pipeline {path}`"
    )
}

/// Error for a resumed pipeline whose file has changed.
pub fn pipeline_changed(file: &str, changed: &[String]) -> String {
    format!(
        "{file} has changed since the pipeline began: {}. Restore the file, or start anew, with `--from-step` if you like",
        changed.join(", ")
    )
}

/// Error for an unknown name after `--from-step`.
pub fn unknown_step(name: &str, steps: &[&str]) -> String {
    format!("--from-step: no step is called `{name}`; the steps are {}", steps.join(", "))
}

/// Error for a value of `--var` that is not `NAME=VALUE`.
pub fn not_a_variable(text: &str, why: &str) -> String {
    format!("--var {text}: {why}")
}

/// Heading of the answer of the agent before in a chain.
pub const CHAIN_ANSWER: &str = "Answer of the agent before";

/// Log line at the start of a step. `number` counts from 1.
pub fn step(number: usize, of: usize, name: &str, language: Language) -> String {
    format!("\n{} {number}/{of}: {name}", language.pick("Step", "Paso"))
}

/// Log line at the start of a step of the `parallel` step `outer`.
pub fn inner_step(outer: &str, name: &str, language: Language) -> String {
    format!("{} {outer}: {name}", language.pick("Step", "Paso"))
}

/// Log line about a step that is skipped.
pub fn step_skipped(name: &str, why: &str, language: Language) -> String {
    format!("{} {name}: {why}", language.pick("Skipped", "Omitido"))
}

/// Reason of a step before that of `--from-step`.
pub const BEFORE_FROM_STEP: &str = "it is before --from-step";

/// Warning that only a part of an output is in a variable.
pub fn output_cut(step: &str, bytes: usize, kept: usize, language: Language) -> String {
    match language {
        Language::En => {
            format!("the output of step {step} has {bytes} bytes; its variable has the first {kept}")
        }
        Language::Es => {
            format!("la salida del paso {step} tiene {bytes} bytes; su variable contiene los primeros {kept}")
        }
    }
}

/// Log line about a checkpoint.
pub fn checkpoint_written(reference: &str, commit: &str, is_on_branch: bool, language: Language) -> String {
    let place = if is_on_branch { language.pick("the current branch", "la rama actual") } else { reference };
    format!("{}: {place}, {commit}", language.pick("Checkpoint", "Punto de control"))
}

/// Warning about files that a checkpoint does not contain.
pub fn checkpoint_left_out(files: &str, language: Language) -> String {
    let text = language.pick(
        "not in the checkpoint (changed before the step, with a filter such as git-crypt, hidden, too large, or with a secret)",
        "no están en el punto de control (cambiados antes del paso, con un filtro como git-crypt, ocultos, demasiado grandes o con un secreto)",
    );
    format!("{text}: {files}")
}

/// Stands for the files that are not known, in the lists of [`command_not_undone`].
pub const UNKNOWN_FILES: &str = "(not all files are known)";

/// Warning that the changes of an interrupted command of a step are undone; copies of the files are in `copies`.
pub fn command_undone(files: &[String], copies: &str, language: Language) -> String {
    let text = language.pick(
        "The command of this step was interrupted. These files are as they were before it, and it runs again",
        "El comando de este paso fue interrumpido. Estos archivos están como antes de él, y se ejecuta de nuevo",
    );
    let kept = language.pick("Copies of the replaced files", "Copias de los archivos reemplazados");
    format!("{text}: {}. {kept}: {}", list_paths(files), escape_controls(copies))
}

/// Warning about files that an interrupted command of a step may have changed, and that could not be restored.
pub fn command_not_undone(files: &[String], language: Language) -> String {
    let text = language.pick(
        "The command of this step was interrupted, and runs again. Its changes to these files were not undone",
        "El comando de este paso fue interrumpido, y se ejecuta de nuevo. Sus cambios en estos archivos no se han deshecho",
    );
    format!("{text}: {}", list_paths(files))
}
