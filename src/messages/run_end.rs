//! The lines of the human log at the end of a run, in every form and language: how it ended, what it took, what waits
//! and what was refused.

use super::costs::{money_with_help, tokens};
use super::human_log::LogStyle;
use super::numbers::{counted, duration, thousands};
use super::stop_reason::stop_reason_text;
use crate::core::language::Language;
use crate::core::price::Usd;
use crate::core::stop_reason::{Status, StopReason};
use crate::core::usage::Usage;
use std::time::Duration;

/// What the last lines of a run say.
#[derive(Debug, Clone, Copy)]
pub struct RunEndSummary {
    /// The three-way summary.
    pub status: Status,
    /// Why it ended; nothing when it never began.
    pub reason: Option<StopReason>,
    /// Steps of the agent.
    pub steps: u32,
    /// Tool calls of the model.
    pub tool_calls: u32,
    /// Tokens, summed.
    pub usage: Usage,
    /// US dollars, where known.
    pub cost: Option<Usd>,
    /// Wall time.
    pub duration: Duration,
}

impl LogStyle {
    fn reason_name(self, reason: Option<StopReason>) -> &'static str {
        let never = self.language().pick("not started", "no comenzó");
        reason.map_or(never, StopReason::name)
    }

    /// The run ended: the headline.
    pub fn run_ended(self, summary: &RunEndSummary) -> String {
        let steps = counted(summary.steps, ["step", "steps"], ["paso", "pasos"], self.language());
        let reason = self.reason_name(summary.reason);
        let (icon, words, steps) = match (summary.status, summary.reason) {
            (Status::Success, _) => ("\n✅ ", self.translate("Agent completed", "El agente terminó"), steps),
            (Status::Partial, Some(StopReason::LlmDone)) => (
                "\n⚠️ ",
                self.translate(
                    "Agent completed, not everything passed",
                    "El agente terminó, pero no pasó todas las comprobaciones",
                ),
                steps,
            ),
            (Status::Partial, _) => {
                ("\n⚡ ", self.translate("Stopped", "Detenido"), format!("{reason}, {steps}"))
            }
            (Status::Failed, _) => ("\n❌ ", self.translate("Failed", "Falló"), format!("{reason}, {steps}")),
        };
        format!("{}{words} ({steps})", self.pick(icon, ""))
    }

    /// The run ended: why.
    pub fn run_end_reason(self, reason: StopReason) -> String {
        format!("   {}: {}", self.translate("Reason", "Motivo"), stop_reason_text(reason, self.language()))
    }

    /// The run ended: what went wrong.
    pub fn error(self, message: &str) -> String {
        format!("   Error: {message}")
    }

    /// The run ended: the figures.
    pub fn figures(self, summary: &RunEndSummary) -> String {
        let (status, reason) = (summary.status.name(), self.reason_name(summary.reason));
        let RunEndSummary { steps, tool_calls, .. } = summary;
        let tokens = tokens(summary.usage, self.language());
        let (cost, time) = (money_with_help(summary.cost, self.language()), duration(summary.duration));
        match self.language() {
            Language::En => format!(
                "   Status: {status} ({reason}) | Steps: {steps} | Tool calls: {tool_calls} | Tokens: {tokens} | Cost: \
                 {cost} | {time}"
            ),
            Language::Es => format!(
                "   Estado: {status} ({reason}) | Pasos: {steps} | Llamadas a herramientas: {tool_calls} | Tokens: {tokens} \
                 | Costo: {cost} | {time}"
            ),
        }
    }

    /// How to go on with a run that ended early.
    pub fn resume(self, session: &str) -> String {
        format!("   {}: agent resume {session}", self.translate("Continue with", "Continuar con"))
    }

    /// How many calls wait for an answer.
    pub fn pending_calls(self, number: usize) -> String {
        let what = self.counted(
            number,
            ["call waits for your answer", "calls wait for your answer"],
            ["llamada espera respuesta", "llamadas esperan respuesta"],
        );
        format!("{}{what}:", self.warning())
    }

    /// One call that waits.
    pub fn pending_call(self, id: &str, tool: &str, summary: &str) -> String {
        format!("   {id}  {tool}{}{summary}", self.arrow(summary))
    }

    /// What to do about calls that wait, the first of them under `id`.
    pub fn how_to_answer(self, id: &str) -> String {
        match self.language() {
            Language::En => format!(
                "   Look with: agent approvals list\n   Answer with: agent approve {id} (or: agent deny {id} --reason \"…\")"
            ),
            Language::Es => format!(
                "   Ver con: agent approvals list\n   Responder con: agent approve {id} (o: agent deny {id} --reason \"…\")"
            ),
        }
    }

    /// How many actions were refused.
    pub fn refusals(self, number: usize) -> String {
        let what = self.counted(
            number,
            ["action was refused", "actions were refused"],
            ["acción fue rechazada", "acciones fueron rechazadas"],
        );
        format!("{}{what}:", self.warning())
    }

    /// One refused action.
    pub fn refusal(self, tool: &str, summary: &str, reason: &str) -> String {
        format!("   {tool}{}{summary}: {reason}", self.arrow(summary))
    }

    /// Refused actions that are not listed.
    pub fn more_refusals(self, number: usize) -> String {
        match self.language() {
            Language::En => format!("   … and {number} more"),
            Language::Es => format!("   … y {number} más"),
        }
    }

    /// What to do about actions that nobody could be asked about.
    pub fn remedies(self) -> &'static str {
        self.language().pick(
            "   What to do: run it at a terminal to be asked, add --approvals pause to be asked later, --mode yolo to allow \
             what would be asked, or look first with --dry-run.",
            "   Qué hacer: ejecutarlo en una terminal para que se pregunte, añadir --approvals pause para que se pregunte más \
             tarde o --mode yolo para permitir lo que se preguntaría, o mirar antes con --dry-run.",
        )
    }

    /// What to do about actions that a rule refused in every mode.
    pub fn about_rules(self) -> &'static str {
        self.language().pick(
            "   What to do: `agent help permissions` tells which rules refuse and where they are set.",
            "   Qué hacer: `agent help permissions` dice qué reglas rechazan y dónde se definen.",
        )
    }
}

/// The heading of the list at the end of a dry run.
pub fn dry_run_plan(language: Language) -> &'static str {
    language.pick("## Dry Run Plan", "## Plan de la simulación")
}

/// The list of a dry run in which nothing would have been changed or run.
pub fn nothing_planned(language: Language) -> &'static str {
    language.pick("No write actions were planned.", "No se planeó ninguna acción de escritura.")
}

/// Actions of a dry run that are not listed.
pub fn more_planned(number: usize, language: Language) -> String {
    let number = thousands(u64::try_from(number).unwrap_or(u64::MAX));
    language.pick(format!("… and {number} more"), format!("… y {number} más"))
}
