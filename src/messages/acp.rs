//! Texts of `agent acp`: what an editor shows, and the refusal of an edit of a file that is open and unsaved in it.

use super::stop_reason_text;
use agent_core::language::Language;
use agent_core::run_result::RunResult;
use agent_core::stop_reason::StopReason;

/// Names of the answers to a question: once, always and no. `always_scope` describes the calls that `always` allows.
pub fn permission_names(always_scope: &str, language: Language) -> [String; 3] {
    match language {
        Language::En => {
            ["Allow once".to_owned(), format!("Allow for this prompt: {always_scope}"), "Refuse".to_owned()]
        }
        Language::Es => [
            "Permitir una vez".to_owned(),
            format!("Permitir en esta petición: {always_scope}"),
            "Rechazar".to_owned(),
        ],
    }
}

/// Message after an answer whose run ended early. `detail` is the error or the guardrail, if there is one.
pub fn ended_early(result: &RunResult, detail: Option<&str>, language: Language) -> String {
    let reason = result.stop_reason;
    let why =
        reason.map_or_else(String::new, |reason| stop_reason_text(reason, result.limit_reached(), language));
    let name = reason.map_or("", StopReason::name);
    let detail = detail.map_or_else(String::new, |detail| format!(". {detail}"));
    let words = language.pick(
        "This is not complete. The run ended early",
        "Esto no está completo. La ejecución terminó antes",
    );
    format!("\n\n**{words}** ({name}: {why}){detail}")
}

/// Message in place of the part of an answer that was shown and is requested again.
pub fn answer_requested_again(language: Language) -> &'static str {
    language.pick(
        "\n\n[The answer broke off and is requested again.]\n\n",
        "\n\n[La respuesta se cortó y se solicita de nuevo.]\n\n",
    )
}

/// Message in place of the rest of a session that is too long to be shown.
pub fn replay_cut(language: Language) -> &'static str {
    language.pick(
        "[The session is too long to be shown. The model still has it.]",
        "[La sesión es demasiado larga para mostrarla. El modelo la conserva.]",
    )
}

/// Notice that a server of the client is not used because `name` is configured already, or named twice.
pub fn client_server_ignored(name: &str, language: Language) -> String {
    match language {
        Language::En => {
            format!("The MCP server `{name}` of the editor is not used: another one has that name.")
        }
        Language::Es => format!("El servidor MCP `{name}` del editor no se usa: ya hay otro con ese nombre."),
    }
}

/// Error for the model: the file is open in the user's editor, with changes that are not saved.
pub fn unsaved_in_editor(path: &str, language: Language) -> String {
    match language {
        Language::En => format!(
            "{path} has unsaved changes in the user's editor, which this call would overwrite. It was not run. Ask the user \
             to save the file, then read it again."
        ),
        Language::Es => format!(
            "{path} tiene cambios sin guardar en el editor del usuario, que esta llamada sobrescribiría. No se ejecutó. \
             Conviene pedir al usuario que guarde el archivo y volver a leerlo."
        ),
    }
}
