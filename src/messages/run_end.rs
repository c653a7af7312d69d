//! Lines of the human log at the end of a run: result, usage, pending calls and refusals.

use super::costs::{money_with_help, tokens};
use super::gates::gate_outcome;
use super::human_log::LogStyle;
use super::numbers::{counted, duration, thousands};
use super::stop_reason::stop_reason_text;
use agent_core::file_change::ChangeAction;
use agent_core::language::Language;
use agent_core::price::Usd;
use agent_core::quality_gate::GateResult;
use agent_core::run_result::{ChangedLines, ModifiedFile, RunResult};
use agent_core::stop_reason::{LimitReached, Status, StopReason};
use agent_core::usage::Usage;
use std::time::Duration;

/// Content of the last lines of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunEndSummary {
    /// Overall status.
    pub status: Status,
    /// Reason for the end; `None` if the run did not start.
    pub reason: Option<StopReason>,
    /// Number of steps.
    pub steps: u32,
    /// Number of tool calls.
    pub tool_calls: u32,
    /// Total tokens.
    pub usage: Usage,
    /// Total cost in US dollars, if known.
    pub cost: Option<Usd>,
    /// Wall time.
    pub duration: Duration,
}

impl LogStyle {
    fn reason_name(self, reason: Option<StopReason>) -> &'static str {
        let never = self.language().pick("not started", "no comenzó");
        reason.map_or(never, StopReason::name)
    }

    /// Headline of an ended run.
    pub fn run_ended(self, summary: &RunEndSummary) -> String {
        let steps = counted(summary.steps, ["step", "steps"], ["paso", "pasos"], self.language());
        let reason = self.reason_name(summary.reason);
        let (icon, words, steps) = match (summary.status, summary.reason) {
            (Status::Success, _) => ("\n✅ ", self.translate("Agent completed", "El agente terminó"), steps),
            (Status::Partial, Some(StopReason::LlmDone)) => (
                "\n⚠️ ",
                self.translate(
                    "Agent completed, but not all checks passed",
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

    /// Reason why the run ended.
    pub fn run_end_reason(self, reason: StopReason, limit: Option<LimitReached>) -> String {
        let why = stop_reason_text(reason, limit, self.language());
        format!("   {}: {why}", self.translate("Reason", "Motivo"))
    }

    /// Error that ended the run.
    pub fn error(self, message: &str) -> String {
        format!("   Error: {message}")
    }

    /// Status, steps, tool calls, tokens, cost and duration of the run.
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

    /// Heading of the changed files, with the lines that were added and removed, if they are known of all files.
    pub fn changed_files(self, files: &[ModifiedFile]) -> String {
        let what = self.counted(
            files.len(),
            ["file changed", "files changed"],
            ["archivo cambiado", "archivos cambiados"],
        );
        let all: Option<ChangedLines> = files.iter().map(|file| file.lines).sum();
        let lines = all.filter(|_| files.len() > 1).map(|all| format!(" ({})", self.changed_lines(all)));
        format!("   {what}{}:", lines.unwrap_or_default())
    }

    /// One changed file, with what happened to it.
    pub fn changed_file(self, path: &str, file: &ModifiedFile) -> String {
        let action = match file.action {
            ChangeAction::Created => Some(self.translate("new", "nuevo")),
            ChangeAction::Deleted => Some(self.translate("deleted", "borrado")),
            ChangeAction::Modified => None,
        };
        let lines = file.lines.map(|lines| self.changed_lines(lines));
        let notes: Vec<String> = action.map(str::to_owned).into_iter().chain(lines).collect();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        format!("      {path}{notes}")
    }

    fn changed_lines(self, lines: ChangedLines) -> String {
        let minus = self.pick("−", "-");
        match lines {
            ChangedLines { added, removed: 0 } => format!("+{added}"),
            ChangedLines { added: 0, removed } => format!("{minus}{removed}"),
            ChangedLines { added, removed } => format!("+{added} {minus}{removed}"),
        }
    }

    /// The checks that ran, with their outcome; `None` if there were none.
    pub fn checks(self, gates: &[GateResult]) -> Option<String> {
        if gates.is_empty() {
            return None;
        }
        let outcome = |gate: &GateResult| {
            self.pick(if gate.passed { "✓" } else { "✗" }, gate_outcome(gate, self.language()))
        };
        let gates = gates.iter().map(|gate| format!("{} {}", gate.name, outcome(gate)));
        let gates: Vec<String> = gates.collect();
        Some(format!("   {}: {}", self.translate("Checks", "Comprobaciones"), gates.join(", ")))
    }

    /// Commands that a person can type next; `None` if there are none, and for a log without icons, which scripts read.
    pub fn next(self, result: &RunResult) -> Option<String> {
        let changes = ["agent diff", "agent undo"].into_iter().filter(|_| !result.files_modified.is_empty());
        let talk = self.translate("agent -c (a conversation about it)", "agent -c (conversar sobre ello)");
        let talk = (result.status == Status::Success).then_some(talk);
        let commands: Vec<&str> = changes.chain(talk).collect();
        if commands.is_empty() || matches!(self, Self::Plain(_)) {
            return None;
        }
        Some(format!("   {}: {}", self.translate("Next", "Siguiente"), commands.join(", ")))
    }

    /// Command that resumes a run that ended early.
    pub fn resume(self, session: &str) -> String {
        format!("   {}: agent resume {session}", self.translate("Continue with", "Continuar con"))
    }

    /// Number of pending calls.
    pub fn pending_calls(self, number: usize) -> String {
        let what = self.counted(
            number,
            ["call waits for your answer", "calls wait for your answer"],
            ["llamada espera respuesta", "llamadas esperan respuesta"],
        );
        format!("{}{what}:", self.warning())
    }

    /// One pending call.
    pub fn pending_call(self, id: &str, tool: &str, summary: &str) -> String {
        format!("   {id}  {tool}{}{summary}", self.arrow(summary))
    }

    /// Commands that list and answer pending calls; `id` is the first one.
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

    /// Number of refused actions.
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

    /// Number of entries of a list that are not shown.
    pub fn more(self, number: usize) -> String {
        match self.language() {
            Language::En => format!("   … and {number} more"),
            Language::Es => format!("   … y {number} más"),
        }
    }

    /// Advice about actions refused because no one could confirm them.
    pub fn remedies(self) -> &'static str {
        self.language().pick(
            "   What to do: run it at a terminal to be asked, add --approvals pause to be asked later or --mode yolo to allow \
             everything that needs a confirmation, or preview it with --dry-run.",
            "   Qué hacer: ejecutarlo en una terminal para que se pregunte, añadir --approvals pause para que se pregunte más \
             tarde o --mode yolo para permitir todo lo que necesita confirmación, o previsualizarlo con --dry-run.",
        )
    }

    /// Advice about actions that a rule refuses in every mode.
    pub fn about_rules(self) -> &'static str {
        self.language().pick(
            "   What to do: see `agent help permissions` for the rules that refuse actions and where they are set.",
            "   Qué hacer: ver en `agent help permissions` qué reglas rechazan acciones y dónde se definen.",
        )
    }
}

/// Heading of the list at the end of a dry run.
pub fn dry_run_plan(language: Language) -> &'static str {
    language.pick("## Dry Run Plan", "## Plan de la simulación")
}

/// List of a dry run without planned actions.
pub fn nothing_planned(language: Language) -> &'static str {
    language.pick("No write actions were planned.", "No se planeó ninguna acción de escritura.")
}

/// Number of planned actions that are not listed.
pub fn more_planned(number: usize, language: Language) -> String {
    let number = thousands(u64::try_from(number).unwrap_or(u64::MAX));
    language.pick(format!("… and {number} more"), format!("… y {number} más"))
}
