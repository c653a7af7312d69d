//! Lines of the human log during a run, with icons or as plain text, in every language.

use super::costs::tokens;
use super::images::image_label;
use super::numbers::{counted, duration};
use super::stop_reason::stop_reason_text;
use agent_core::event::{Event, FinishReason, HookVerdict, NoticeLevel};
use agent_core::failure::FailureKind;
use agent_core::image::Image;
use agent_core::language::Language;
use agent_core::price::Usd;
use agent_core::stop_reason::{LimitReached, StopReason};
use agent_core::usage::Usage;
use std::time::Duration;

/// Style and language of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStyle {
    /// Lines with icons, for a terminal.
    Icons(Language),
    /// Lines without icons, for a pipe or a file.
    Plain(Language),
}

/// Retry of a failed request.
#[derive(Debug, Clone, Copy)]
pub struct RetryLine<'a> {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Message of the failure, one line.
    pub message: &'a str,
    /// Whether text of the discarded answer was already shown.
    pub discarded: bool,
    /// Number of this retry, from 1; 0 if unknown.
    pub number: u32,
    /// Maximum number of retries.
    pub max: u32,
}

impl<'a> RetryLine<'a> {
    /// Returns the retry of an `Event::Retry` with a printable `message`; `shown`: whether parts of the answer were shown.
    pub fn of(event: &Event, message: &'a str, shown: bool) -> Option<Self> {
        let Event::Retry { retry, max_retries, answer_discarded, kind, .. } = event else { return None };
        let discarded = *answer_discarded && shown;
        Some(Self { kind: *kind, message, discarded, number: *retry, max: *max_retries })
    }
    fn headline(self, language: Language) -> &'static str {
        let (en, es) = match self.kind {
            FailureKind::Network | FailureKind::CutStream => ("connection lost", "conexión perdida"),
            FailureKind::Timeout => ("no answer in time", "sin respuesta a tiempo"),
            FailureKind::Malformed => ("unreadable answer", "respuesta ilegible"),
            FailureKind::RateLimit => ("rate limit reached", "límite de peticiones alcanzado"),
            FailureKind::Overloaded => ("server overloaded", "servidor sobrecargado"),
            FailureKind::Server => ("server error", "error del servidor"),
            FailureKind::EmptyAnswer => ("empty answer", "respuesta vacía"),
            FailureKind::ToolUseFailed => ("unreadable tool call", "llamada ilegible"),
            _ => ("request failed", "la petición falló"),
        };
        language.pick(en, es)
    }

    /// Returns the line without indentation: the failure, the number of the retry and the message.
    pub fn text(self, delay: Option<Duration>, language: Language) -> String {
        let discarded = match (self.discarded, language) {
            (false, _) => "",
            (true, Language::En) => ", the text above is discarded",
            (true, Language::Es) => ", el texto anterior se descarta",
        };
        let again = language.pick("asking again", "reintento");
        let of = language.pick("of", "de");
        let which =
            if self.number == 0 { String::new() } else { format!(" {} {of} {}", self.number, self.max) };
        let wait = delay
            .filter(|delay| !delay.is_zero())
            .map_or_else(String::new, |delay| format!(" {} {}", language.pick("in", "en"), duration(delay)));
        let (headline, kind, message) = (self.headline(language), self.kind.name(), self.message);
        format!("{headline} ({kind}){discarded}, {again}{which}{wait}: {message}")
    }
}

/// Content of the first line of a run.
#[derive(Debug, Clone, Copy)]
pub struct SessionHeader<'a> {
    /// Session id.
    pub id: &'a str,
    /// `provider/model`.
    pub model: &'a str,
    /// Agent name.
    pub agent: &'a str,
    /// Permission mode.
    pub mode: &'a str,
    /// Sandbox tier.
    pub sandbox: &'a str,
    /// Whether the session is resumed.
    pub resumed: bool,
}

impl LogStyle {
    /// Returns the language of the lines.
    pub fn language(self) -> Language {
        match self {
            Self::Icons(language) | Self::Plain(language) => language,
        }
    }

    pub(super) fn pick<'a>(self, icons: &'a str, words: &'a str) -> &'a str {
        match self {
            Self::Icons(_) => icons,
            Self::Plain(_) => words,
        }
    }

    /// Returns the text in the language of the lines.
    pub(super) fn translate<'a>(self, english: &'a str, spanish: &'a str) -> &'a str {
        self.language().pick(english, spanish)
    }

    pub(super) fn counted(self, number: usize, english: [&str; 2], spanish: [&str; 2]) -> String {
        counted(u64::try_from(number).unwrap_or(u64::MAX), english, spanish, self.language())
    }

    /// Returns the prefix of a warning.
    pub(super) fn warning(self) -> &'static str {
        self.pick("⚠️ ", self.language().pick("warning: ", "aviso: "))
    }

    /// First line of a run.
    pub fn session(self, session: SessionHeader<'_>) -> String {
        let SessionHeader { id, model, agent, mode, sandbox, resumed } = session;
        let body = match self.language() {
            Language::En => {
                let label = if resumed { "resumed session" } else { "session" };
                format!("{label} {id} · {model} · agent {agent} · mode {mode} · sandbox {sandbox}")
            }
            Language::Es => {
                let label = if resumed { "sesión reanudada" } else { "sesión" };
                format!("{label} {id} · {model} · agente {agent} · modo {mode} · sandbox {sandbox}")
            }
        };
        match self {
            Self::Icons(_) => format!("─── {body} ───"),
            Self::Plain(_) => body.replace(" · ", ", "),
        }
    }

    /// Step and its model call.
    pub fn step(self, step: u32, messages: usize) -> String {
        let messages = self.counted(messages, ["message", "messages"], ["mensaje", "mensajes"]);
        let (icon, arrow) = (self.pick("\n🔄 ", ""), self.pick(" →", ":"));
        let (name, call) =
            (self.translate("Step", "Paso"), self.translate("model call", "llamada al modelo"));
        format!("{icon}{name} {step}{arrow} {call} ({messages})")
    }

    /// Answer of the model.
    pub fn responded(self, tool_calls: usize, finish: &FinishReason) -> String {
        let what = match tool_calls {
            0 => self.translate("final text", "texto final").to_owned(),
            calls => self.counted(
                calls,
                ["tool call", "tool calls"],
                ["llamada a herramientas", "llamadas a herramientas"],
            ),
        };
        let cut = match finish {
            FinishReason::Stop | FinishReason::ToolCalls => "",
            FinishReason::Length => {
                self.translate(" (cut by the output limit)", " (cortado por el límite de salida)")
            }
            FinishReason::ContentFilter | FinishReason::Filtered(_) => {
                self.translate(" (filtered by the provider)", " (filtrado por el proveedor)")
            }
            FinishReason::Refusal => self.translate(" (the model refused)", " (el modelo se negó)"),
            FinishReason::WindowFull => {
                self.translate(" (cut by the model's window)", " (cortado por la ventana del modelo)")
            }
            FinishReason::Paused => {
                self.translate(" (paused by the provider)", " (pausado por el proveedor)")
            }
            FinishReason::Other(_) => {
                self.translate(" (interrupted by the provider)", " (interrumpido por el proveedor)")
            }
        };
        let verb = self.translate("Model responded with", "El modelo respondió con");
        format!("   {}{verb} {what}{cut}", self.pick("✓ ", ""))
    }

    /// Start of a tool call.
    pub fn tool(self, name: &str, summary: &str, mcp_server: Option<String>) -> String {
        let icon = if mcp_server.is_some() { "🌐 " } else { "🔧 " };
        let word = self.pick(icon, self.language().pick("Tool ", "Herramienta "));
        let origin = mcp_server.map_or_else(String::new, |server| format!(" (MCP: {server})"));
        format!("   {word}{name}{}{summary}{origin}", self.arrow(summary))
    }

    /// Successful tool call; `call` (name, summary) is set when the line above belongs to another call. `note` says what came of it.
    pub fn tool_ok(self, call: Option<(&str, &str)>, simulated: bool, note: &str) -> String {
        let dry = if simulated {
            self.translate(" (dry run: nothing was done)", " (simulación: no se hizo nada)")
        } else {
            ""
        };
        let note = if note.is_empty() { String::new() } else { format!(": {note}") };
        format!("      {}OK{}{dry}{note}", self.pick("✓ ", ""), self.named(call))
    }

    /// Failed tool call.
    pub fn tool_error(self, call: Option<(&str, &str)>, error: &str) -> String {
        format!("      {}ERROR{}: {error}", self.pick("✗ ", ""), self.named(call))
    }

    /// Refused tool call.
    pub fn tool_refused(self, call: Option<(&str, &str)>, reason: &str) -> String {
        let word = self.translate("REFUSED", "RECHAZADO");
        format!("      {}{word}{}: {reason}", self.pick("✗ ", ""), self.named(call))
    }

    /// Tool call that waits for an approval, with its id and reason.
    pub fn tool_call_waits(self, id: &str, reason: &str) -> String {
        let words = self.translate("WAITS for an answer", "ESPERA respuesta");
        format!("      {}{words} ({id}): {reason}", self.pick("⏸ ", ""))
    }

    /// Tool call that waits for the calls before it.
    pub fn tool_waits_its_turn(self) -> String {
        let words = self.translate("WAITS for the calls before it", "ESPERA a las llamadas anteriores");
        format!("      {}{words}", self.pick("⏸ ", ""))
    }

    fn named(self, call: Option<(&str, &str)>) -> String {
        call.map_or_else(String::new, |(name, summary)| format!(" ({name}{}{summary})", self.arrow(summary)))
    }

    pub(super) fn arrow(self, summary: &str) -> &'static str {
        match self {
            _ if summary.is_empty() => "",
            Self::Icons(_) => " → ",
            Self::Plain(_) => ": ",
        }
    }

    /// Verdict of a hook.
    pub fn hook(self, name: &str, verdict: HookVerdict) -> String {
        let verdict = match verdict {
            HookVerdict::Allow => self.pick("✓", "OK"),
            HookVerdict::Block => {
                self.pick(self.translate("✗ blocked", "✗ bloqueó"), self.translate("blocked", "bloqueó"))
            }
            HookVerdict::Stop => self.pick(
                self.translate("✗ ends the run", "✗ termina la ejecución"),
                self.translate("ends the run", "termina la ejecución"),
            ),
            HookVerdict::Warn => self.pick("⚠️", self.translate("warning", "aviso")),
        };
        format!("      {}Hook {name}: {verdict}", self.pick("🔍 ", ""))
    }

    /// Indented line of a hook's output or of an answer.
    pub fn detail(self, line: &str) -> String {
        format!("         {line}")
    }

    /// Failed request and its retry after `delay`.
    pub fn retry(self, retry: RetryLine<'_>, delay: Duration) -> String {
        let text = retry.text(Some(delay), self.language());
        let mut characters = text.chars();
        let first = characters.next().map(char::to_uppercase).into_iter().flatten();
        format!("   {}{}{}", self.pick("⏳ ", ""), first.collect::<String>(), characters.as_str())
    }

    /// Notice with the prefix of its level.
    pub fn notice(self, level: NoticeLevel, text: &str) -> String {
        let mark = match level {
            NoticeLevel::Debug => self.pick("   · ", "debug: "),
            NoticeLevel::Info => self.pick("   ", "info: "),
            NoticeLevel::Warn => self.warning(),
            NoticeLevel::Error => self.pick("❌ ", "error: "),
        };
        format!("{mark}{text}")
    }

    /// Image of a message.
    pub fn image(self, image: &Image) -> String {
        self.notice(NoticeLevel::Info, &image_label(image, self.language()))
    }

    /// Failure of the model.
    pub fn model_failed(self, kind: FailureKind, message: &str) -> String {
        let words = self.translate("Model error", "Error del modelo");
        format!("{}{words} ({}): {message}", self.pick("❌ ", ""), kind.name())
    }

    /// Warning that a limit ends the run.
    pub fn watchdog(
        self,
        reason: StopReason,
        limit: Option<LimitReached>,
        steps: u32,
        max_steps: u32,
    ) -> String {
        let (icon, language) = (self.warning(), self.language());
        let (words, steps) = match reason {
            StopReason::BudgetExceeded => (
                self.translate(
                    "The remaining budget is too small for another call",
                    "Lo que queda del presupuesto no alcanza para otra llamada",
                ),
                format!(" ({steps}/{max_steps} {})", self.translate("steps", "pasos")),
            ),
            StopReason::MaxSteps => (
                self.translate("Step limit reached", "Límite de pasos alcanzado"),
                format!(" ({steps}/{max_steps})"),
            ),
            reason => (
                self.translate("The run ends early:", "La ejecución termina antes de tiempo:"),
                format!(" {}", stop_reason_text(reason, limit, language)),
            ),
        };
        format!("{icon}{words}{steps}")
    }

    /// Start of the closing model call.
    pub fn closing(self, reason: StopReason, steps: u32) -> String {
        let steps = counted(steps, ["step", "steps"], ["paso", "pasos"], self.language());
        format!("{}{} ({reason}, {steps})", self.pick("🔄 ", ""), self.translate("Closing", "Cierre"))
    }

    /// Additional indented line about a run.
    pub fn indented(self, line: &str) -> String {
        format!("   {line}")
    }

    /// Tokens, cost and duration of one model call.
    pub fn usage(self, usage: Option<Usage>, cost: Option<Usd>, latency: Duration) -> String {
        let unknown = || self.translate("tokens unknown", "tokens desconocidos").to_owned();
        let tokens = usage.map_or_else(unknown, |usage| tokens(usage, self.language()));
        let cost = cost.map_or_else(String::new, |cost| format!(", {cost}"));
        format!("   {tokens}{cost}, {}", duration(latency))
    }
}
