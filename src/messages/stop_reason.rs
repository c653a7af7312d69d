//! Texts for each stop reason, in every language: instructions for the closing answer, and explanations for users.

use super::numbers::counted;
use agent_core::language::Language;
use agent_core::stop_reason::{LimitReached, ReachedLimit, StopReason};

/// Returns the instruction to write a closing summary without tools; `None` for stop reasons without a closing call.
pub fn closing_instruction(reason: StopReason, language: Language) -> Option<String> {
    let why = no_more_tools(reason, language)?;
    Some(format!("[SYSTEM] {why} {}", summary_instruction(reason, language)))
}

/// Returns why no more tools can be called.
fn no_more_tools(reason: StopReason, language: Language) -> Option<&'static str> {
    Some(match reason {
        StopReason::MaxSteps => language.pick(
            "The step limit of this run is reached and no more tools can be called.",
            "Se alcanzó el límite de pasos de esta ejecución y ya no se puede llamar a ninguna herramienta.",
        ),
        StopReason::BudgetExceeded => language.pick(
            "The budget of this run is used up and no more tools can be called.",
            "Se agotó el presupuesto de esta ejecución y ya no se puede llamar a ninguna herramienta.",
        ),
        StopReason::Timeout => language.pick(
            "The time of this run is up and no more tools can be called.",
            "Se agotó el tiempo de esta ejecución y ya no se puede llamar a ninguna herramienta.",
        ),
        StopReason::RepeatedCall => language.pick(
            "You made the same tool calls again and again, so the run ends and no more tools can be called.",
            "Se repitieron una y otra vez las mismas llamadas a herramientas, así que la ejecución termina y ya no se puede \
             llamar a ninguna herramienta.",
        ),
        StopReason::ConsecutiveErrors => language.pick(
            "Too many of your tool calls in a row failed, so the run ends and no more tools can be called.",
            "Fallaron demasiadas llamadas a herramientas seguidas, así que la ejecución termina y ya no se puede llamar a \
             ninguna herramienta.",
        ),
        StopReason::NoProgress => language.pick(
            "Your last steps made no progress, so the run ends and no more tools can be called.",
            "Los últimos pasos no lograron ningún avance, así que la ejecución termina y ya no se puede llamar a ninguna \
             herramienta.",
        ),
        StopReason::ContextFull => language.pick(
            "The conversation fills the model's window and could not be made short enough, so no more tools can be called.",
            "La conversación llena la ventana del modelo y no se pudo acortar lo suficiente, así que ya no se puede llamar a \
             ninguna herramienta.",
        ),
        StopReason::LlmDone
        | StopReason::Truncated
        | StopReason::Guardrail
        | StopReason::ContentFilter
        | StopReason::AwaitingApproval
        | StopReason::UserInterrupt
        | StopReason::LlmError
        | StopReason::AuthError
        | StopReason::InternalError => return None,
    })
}

/// Returns what the closing summary must contain.
fn summary_instruction(reason: StopReason, language: Language) -> &'static str {
    match reason {
        StopReason::BudgetExceeded | StopReason::Timeout => language.pick(
            "Answer now and briefly, in text: what is done, what was checked, what is still missing, and the next thing to \
             do. Claim nothing that the tool results above do not show.",
            "Responder ahora y con brevedad, en texto: qué está hecho, qué se comprobó, qué falta todavía y qué toca hacer a \
             continuación. No afirmar nada que no muestren los resultados de herramientas anteriores.",
        ),
        StopReason::ContextFull => language.pick(
            "Answer now and briefly, in text: what is done, what was checked, what is still missing, and the next thing to \
             do. Claim nothing that the conversation above does not show.",
            "Responder ahora y con brevedad, en texto: qué está hecho, qué se comprobó, qué falta todavía y qué toca hacer a \
             continuación. No afirmar nada que no muestre la conversación anterior.",
        ),
        StopReason::RepeatedCall => language.pick(
            "Answer now, in text: what is done, what you were trying to find or do, what prevented it, and what is still \
             missing.",
            "Responder ahora, en texto: qué está hecho, qué se intentaba encontrar o hacer, qué lo impidió y qué falta \
             todavía.",
        ),
        StopReason::ConsecutiveErrors => language.pick(
            "Answer now, in text: what is done, what you were trying to do last, why it failed, and what is still missing.",
            "Responder ahora, en texto: qué está hecho, qué fue lo último que se intentó, por qué falló y qué falta todavía.",
        ),
        StopReason::NoProgress => language.pick(
            "Answer now, in text: what is done, what you tried, what prevented it, and what is still missing.",
            "Responder ahora, en texto: qué está hecho, qué se intentó, qué lo impidió y qué falta todavía.",
        ),
        _ => language.pick(
            "Answer now, in text: what is done, what was checked, what is still missing, and the next thing to do. Claim \
             nothing that the tool results above do not show.",
            "Responder ahora, en texto: qué está hecho, qué se comprobó, qué falta todavía y qué toca hacer a continuación. \
             No afirmar nada que no muestren los resultados de herramientas anteriores.",
        ),
    }
}

/// Returns the answer of a run that ended early without a closing summary.
pub fn fixed_closing(
    reason: StopReason,
    limit: Option<LimitReached>,
    steps: u32,
    language: Language,
) -> String {
    let why = stop_reason_text(reason, limit, language);
    let after = counted(steps, ["step", "steps"], ["paso", "pasos"], language);
    let resume_advice = resume_advice(reason, steps, language);
    match language {
        Language::En => format!(
            "The run ended early ({reason}: {why}) after {after}. Completed work is kept; there is no summary \
             of it.{resume_advice}"
        ),
        Language::Es => format!(
            "La ejecución terminó antes de tiempo ({reason}: {why}) tras {after}. Lo hecho hasta entonces se mantiene; no \
             hay un resumen de ello.{resume_advice}"
        ),
    }
}

/// Returns how to continue when a plain resume would end the same way.
fn resume_advice(reason: StopReason, steps: u32, language: Language) -> &'static str {
    match (reason, steps) {
        // The conversation is still empty, so a new session would be as long.
        (StopReason::ContextFull, 0) => language.pick(
            " Instructions, tools and task alone are too long: resume with a model that has a larger window (`agent resume --last \
             --model …`), or enlarge the window on its server.",
            " Instrucciones, herramientas y tarea por sí solas son demasiado largas: conviene reanudar con un modelo de ventana \
             mayor (`agent resume --last --model …`) o ampliar la ventana en su servidor.",
        ),
        (StopReason::ContextFull, _) => language.pick(
            " To continue, give the rest of the task to a new session (`agent run`), or resume this one with a model that \
             has a larger window (`agent resume --last --model …`).",
            " Para continuar, dar el resto de la tarea a una sesión nueva (`agent run`) o reanudar esta con un modelo de \
             ventana mayor (`agent resume --last --model …`).",
        ),
        (StopReason::AwaitingApproval, _) => language.pick(
            " `agent approvals list` shows the pending calls; answer with `agent approve ID` or `agent deny ID`, then \
             continue with `agent resume`.",
            " `agent approvals list` muestra las llamadas en espera; se responde con `agent approve ID` o `agent deny ID` y \
             se continúa con `agent resume`.",
        ),
        _ => "",
    }
}

/// Returns why a run ended, for users, with the value of the limit that ended it.
pub fn stop_reason_text(reason: StopReason, limit: Option<LimitReached>, language: Language) -> String {
    let why = match limit.map(|reached| reached.limit) {
        Some(ReachedLimit::StepTime) => language.pick(
            "a model call reached the time limit of a step",
            "una llamada al modelo alcanzó el límite de tiempo de un paso",
        ),
        _ => reason_text(reason, language),
    };
    match limit.and_then(|reached| limit_value(reached, language)) {
        Some(value) => format!("{why} ({value})"),
        None => why.to_owned(),
    }
}

/// Returns the value of a limit with its unit.
fn limit_value(LimitReached { limit, value }: LimitReached, language: Language) -> Option<String> {
    let value = value?;
    Some(match limit {
        ReachedLimit::Usd => format!("${value}"),
        ReachedLimit::Tokens | ReachedLimit::Window => format!("{value} tokens"),
        ReachedLimit::ToolCalls => {
            format!("{value} {}", language.pick("tool calls", "llamadas a herramientas"))
        }
        ReachedLimit::Steps => format!("{value}"),
        ReachedLimit::Time | ReachedLimit::StepTime => format!("{value} s"),
    })
}

fn reason_text(reason: StopReason, language: Language) -> &'static str {
    match reason {
        StopReason::LlmDone => {
            language.pick("the model decided it was done", "el modelo decidió que había terminado")
        }
        StopReason::MaxSteps => language.pick("the step limit was reached", "se alcanzó el límite de pasos"),
        StopReason::BudgetExceeded => language.pick(
            "the remaining budget is too small for another call",
            "lo que queda del presupuesto no alcanza para otra llamada",
        ),
        StopReason::ContextFull => language.pick(
            "the conversation no longer fits into the model's window",
            "la conversación ya no cabe en la ventana del modelo",
        ),
        StopReason::Timeout => language.pick("the time limit was reached", "se alcanzó el límite de tiempo"),
        StopReason::RepeatedCall => language.pick(
            "the same tool calls were made again and again",
            "se repitieron una y otra vez las mismas llamadas a herramientas",
        ),
        StopReason::ConsecutiveErrors => language.pick(
            "too many tool calls in a row failed",
            "fallaron demasiadas llamadas a herramientas seguidas",
        ),
        StopReason::NoProgress => {
            language.pick("the last steps made no progress", "los últimos pasos no lograron ningún avance")
        }
        StopReason::Guardrail => language.pick(
            "a guardrail or a hook ended the run",
            "una regla de protección o un hook terminó la ejecución",
        ),
        StopReason::ContentFilter => language.pick(
            "the model refused, or its provider filtered the answer",
            "el modelo se negó, o su proveedor filtró la respuesta",
        ),
        StopReason::Truncated => language.pick(
            "the answer was cut off by the output limit",
            "la respuesta quedó cortada por el límite de salida",
        ),
        StopReason::AwaitingApproval => language
            .pick("a tool call waits for your answer", "una llamada a una herramienta espera respuesta"),
        StopReason::UserInterrupt => language.pick("it was interrupted", "fue interrumpida"),
        StopReason::LlmError => language.pick("the model could not be used", "no se pudo usar el modelo"),
        StopReason::AuthError => language.pick(
            "the provider refused the key, or there is none",
            "el proveedor rechazó la clave, o no hay ninguna",
        ),
        StopReason::InternalError => language.pick(
            "an internal error, or the session can no longer be written",
            "un error interno, o la sesión ya no se puede escribir",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Language::{En, Es};
    use std::collections::BTreeSet;
    use strum::VariantArray;

    #[test]
    fn closing_instructions_are_distinct_and_have_the_system_prefix() {
        let instructions: Vec<_> = [En, Es]
            .into_iter()
            .flat_map(|language| {
                StopReason::VARIANTS.iter().filter_map(move |&reason| closing_instruction(reason, language))
            })
            .collect();
        assert!(instructions.iter().all(|text| text.starts_with("[SYSTEM] ")));
        let different: BTreeSet<_> = instructions.iter().collect();
        assert_eq!((different.len(), instructions.len()), (14, 14));
    }

    #[test]
    fn a_fixed_closing_names_the_reason_and_the_steps() {
        assert_eq!(
            fixed_closing(StopReason::MaxSteps, None, 1, En),
            "The run ended early (max_steps: the step limit was reached) after 1 step. Completed work is kept; \
             there is no summary of it."
        );
        assert_eq!(
            fixed_closing(StopReason::MaxSteps, None, 2, Es),
            "La ejecución terminó antes de tiempo (max_steps: se alcanzó el límite de pasos) tras 2 pasos. Lo hecho \
             hasta entonces se mantiene; no hay un resumen de ello."
        );
    }

    #[test]
    fn o23_every_reason_has_words_of_its_own_in_each_language() {
        let words = |language| StopReason::VARIANTS.iter().map(move |&reason| reason_text(reason, language));
        let different: BTreeSet<_> = words(En).chain(words(Es)).filter(|text| !text.is_empty()).collect();
        assert_eq!(different.len(), 2 * StopReason::VARIANTS.len());
    }

    // Fault B8: the limits of a step and of the run had one text, and none its value.
    #[test]
    fn a_limit_is_named_with_its_value() {
        let text = |reason, limit, value| {
            stop_reason_text(reason, Some(LimitReached { limit, value: Some(value) }), En)
        };
        assert_eq!(text(StopReason::MaxSteps, ReachedLimit::Steps, 40.0), "the step limit was reached (40)");
        assert_eq!(
            text(StopReason::Timeout, ReachedLimit::Time, 900.0),
            "the time limit was reached (900 s)"
        );
        assert_eq!(
            text(StopReason::Timeout, ReachedLimit::StepTime, 1.0),
            "a model call reached the time limit of a step (1 s)"
        );
        assert_eq!(
            text(StopReason::BudgetExceeded, ReachedLimit::Usd, 0.5),
            "the remaining budget is too small for another call ($0.5)"
        );
    }

    #[test]
    fn new_session_is_advised_only_if_it_would_help() {
        let advised =
            |steps| fixed_closing(StopReason::ContextFull, None, steps, En).contains("to a new session");
        assert_eq!((advised(0), advised(1)), (false, true));
    }
}
