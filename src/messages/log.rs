//! The lines of the human log, each in two forms: for a terminal and in plain words.

use super::closing::reason_in_words;
use super::figures::{bytes, count, duration, thousands};
use crate::event::{FinishReason, HookVerdict, Level, Origin, Teller};
use crate::failure::ErrorKind;
use crate::price::Usd;
use crate::result::Cost;
use crate::stop_reason::{Status, StopReason};
use crate::usage::Usage;
use std::fmt::Write as _;
use std::time::Duration;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// With icons, for a terminal.
    Icons,
    /// The same lines in plain words, for a pipe or a file.
    Words,
}

/// What the first line of a run says.
#[derive(Debug, Clone, Copy)]
pub struct Session<'a> {
    /// The session.
    pub id: &'a str,
    /// `provider/model`.
    pub model: &'a str,
    /// The agent.
    pub agent: &'a str,
    /// The permission mode.
    pub mode: &'a str,
    /// What confines commands.
    pub sandbox: &'a str,
    /// Whether it goes on with an earlier run.
    pub resumed: bool,
}

/// What the last lines of a run say.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
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

impl Form {
    fn pick<'a>(self, icons: &'a str, words: &'a str) -> &'a str {
        match self {
            Self::Icons => icons,
            Self::Words => words,
        }
    }

    /// The first line.
    pub fn session(self, session: Session<'_>) -> String {
        let Session { id, model, agent, mode, sandbox, resumed } = session;
        let begins = if resumed { "resumed session" } else { "session" };
        let body = format!("{begins} {id} · {model} · agent {agent} · mode {mode} · sandbox {sandbox}");
        match self {
            Self::Icons => format!("─── {body} ───"),
            Self::Words => body.replace(" · ", ", "),
        }
    }

    /// The model is about to be asked.
    pub fn step(self, step: u32, messages: usize) -> String {
        let messages = count(u64::try_from(messages).unwrap_or(u64::MAX), "message");
        let (icon, arrow) = (self.pick("\n🔄 ", ""), self.pick(" →", ":"));
        format!("{icon}Step {step}{arrow} LLM call ({messages})")
    }

    /// The model answered.
    pub fn responded(self, tool_calls: usize, finish: &FinishReason) -> String {
        let what = match tool_calls {
            0 => "final text".to_owned(),
            calls => count(u64::try_from(calls).unwrap_or(u64::MAX), "tool call"),
        };
        let cut = match finish {
            FinishReason::Stop | FinishReason::ToolCalls => "",
            FinishReason::Length => " (cut by the output limit)",
            FinishReason::ContentFilter | FinishReason::Filtered(_) => " (filtered by the provider)",
            FinishReason::Refusal => " (the model refused)",
            FinishReason::WindowFull => " (cut by the model's window)",
            FinishReason::Paused => " (paused by the provider)",
            FinishReason::Other(_) => " (broken off by the provider)",
        };
        format!("   {}LLM responded with {what}{cut}", self.pick("✓ ", ""))
    }

    /// A tool call begins.
    pub fn tool(self, name: &str, summary: &str) -> String {
        format!("   {}{name}{}{summary}", self.pick("🔧 ", "Tool "), self.arrow(summary))
    }

    /// How a tool call ended; `call` names it where its own line is not the one above.
    pub fn tool_ok(self, call: Option<(&str, &str)>, simulated: bool) -> String {
        let dry = if simulated { " (dry run: nothing was done)" } else { "" };
        format!("      {}OK{}{dry}", self.pick("✓ ", ""), self.named(call))
    }

    /// A tool call failed.
    pub fn tool_error(self, call: Option<(&str, &str)>, error: &str) -> String {
        format!("      {}ERROR{}: {error}", self.pick("✗ ", ""), self.named(call))
    }

    /// A tool call was refused.
    pub fn tool_refused(self, call: Option<(&str, &str)>, reason: &str) -> String {
        format!("      {}REFUSED{}: {reason}", self.pick("✗ ", ""), self.named(call))
    }

    /// A tool call waits for an answer, under this id and for this reason.
    pub fn tool_call_waits(self, id: &str, reason: &str) -> String {
        format!("      {}WAITS for an answer ({id}): {reason}", self.pick("⏸ ", ""))
    }

    /// A tool call waits for those before it.
    pub fn tool_waits_its_turn(self) -> String {
        format!("      {}WAITS for the calls before it", self.pick("⏸ ", ""))
    }

    fn named(self, call: Option<(&str, &str)>) -> String {
        call.map_or_else(String::new, |(name, summary)| format!(" ({name}{}{summary})", self.arrow(summary)))
    }

    pub(super) fn arrow(self, summary: &str) -> &'static str {
        match self {
            _ if summary.is_empty() => "",
            Self::Icons => " → ",
            Self::Words => ": ",
        }
    }

    /// A hook ran.
    pub fn hook(self, name: &str, verdict: HookVerdict) -> String {
        let verdict = match verdict {
            HookVerdict::Allow => self.pick("✓", "OK"),
            HookVerdict::Block => self.pick("✗ blocked", "blocked"),
            HookVerdict::Stop => self.pick("✗ ends the run", "ends the run"),
            HookVerdict::Warn => self.pick("⚠️", "warning"),
        };
        format!("      {}Hook {name}: {verdict}", self.pick("🔍 ", ""))
    }

    /// A line of what a hook or an answer said.
    pub fn detail(self, line: &str) -> String {
        format!("         {line}")
    }

    /// A request will be repeated.
    pub fn retry(self, attempt: u32, delay: Duration, kind: ErrorKind, message: &str) -> String {
        let (icon, kind, delay) = (self.pick("⏳ ", ""), kind.name(), duration(delay));
        format!("   {icon}Attempt {attempt} failed ({kind}), next in {delay}: {message}")
    }

    /// Something worth telling.
    pub fn notice(self, level: Level, text: &str) -> String {
        let mark = match level {
            Level::Debug => self.pick("   · ", "debug: "),
            Level::Info => self.pick("   ", "info: "),
            Level::Warn => self.pick("⚠️ ", "warning: "),
            Level::Error => self.pick("❌ ", "error: "),
        };
        format!("{mark}{text}")
    }

    /// The model could not be used.
    pub fn model_failed(self, kind: ErrorKind, message: &str) -> String {
        format!("{}LLM error ({}): {message}", self.pick("❌ ", ""), kind.name())
    }

    /// A watchdog ends the run.
    pub fn watchdog(self, reason: StopReason, steps: u32, max_steps: u32) -> String {
        let icon = self.pick("⚠️ ", "warning: ");
        match reason {
            StopReason::BudgetExceeded => {
                format!(
                    "{icon}The rest of the budget does not pay for another call ({steps}/{max_steps} steps)"
                )
            }
            StopReason::MaxSteps => format!("{icon}Step limit reached ({steps}/{max_steps})"),
            reason => format!("{icon}The run ends early: {}", reason_in_words(reason)),
        }
    }

    /// The closing call begins.
    pub fn closing(self, reason: StopReason, steps: u32) -> String {
        format!("{}Closing ({reason}, {})", self.pick("🔄 ", ""), count(steps, "step"))
    }

    /// The run ended: the headline.
    pub fn ended(self, ending: &Ending) -> String {
        let steps = count(ending.steps, "step");
        let reason = ending.reason.map_or("not started", StopReason::name);
        match (ending.status, ending.reason) {
            (Status::Success, _) => format!("{}Agent completed ({steps})", self.pick("\n✅ ", "")),
            (Status::Partial, Some(StopReason::LlmDone)) => {
                format!("{}Agent completed, not everything passed ({steps})", self.pick("\n⚠️ ", ""))
            }
            (Status::Partial, _) => format!("{}Stopped ({reason}, {steps})", self.pick("\n⚡ ", "")),
            (Status::Failed, _) => format!("{}Failed ({reason}, {steps})", self.pick("\n❌ ", "")),
        }
    }

    /// The run ended: why.
    pub fn why(self, reason: StopReason) -> String {
        format!("   Reason: {}", reason_in_words(reason))
    }

    /// The run ended: what went wrong.
    pub fn error(self, message: &str) -> String {
        format!("   Error: {message}")
    }

    /// One more thing about a run that ended.
    pub fn indented(self, line: &str) -> String {
        format!("   {line}")
    }

    /// The run ended: the figures.
    pub fn figures(self, ending: &Ending) -> String {
        format!(
            "   Status: {} ({}) | Steps: {} | Tool calls: {} | Tokens: {} | Cost: {} | {}",
            ending.status.name(),
            ending.reason.map_or("not started", StopReason::name),
            ending.steps,
            ending.tool_calls,
            tokens(ending.usage),
            explained(ending.cost),
            duration(ending.duration)
        )
    }

    /// Tokens, cost and time of one model call.
    pub fn usage(self, usage: Option<Usage>, cost: Option<Usd>, latency: Duration) -> String {
        let tokens = usage.map_or_else(|| "tokens unknown".to_owned(), tokens);
        let cost = cost.map_or_else(String::new, |cost| format!(", {cost}"));
        format!("   {tokens}{cost}, {}", duration(latency))
    }

    /// How to go on with a run that ended early.
    pub fn resume(self, session: &str) -> String {
        format!("   Continue with: agent resume {session}")
    }

    /// How many calls wait for an answer.
    pub fn waiting(self, number: usize) -> String {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let verb = if number == 1 { "waits" } else { "wait" };
        format!("{}{} {verb} for your answer:", self.pick("⚠️ ", "warning: "), count(number, "call"))
    }

    /// One call that waits.
    pub fn awaited(self, id: &str, tool: &str, summary: &str) -> String {
        format!("   {id}  {tool}{}{summary}", self.arrow(summary))
    }

    /// What to do about calls that wait, the first of them under `id`.
    pub fn how_to_answer(self, id: &str) -> String {
        format!(
            "   Look with: agent approvals list\n   Answer with: agent approve {id} (or: agent deny {id} --reason \"…\")"
        )
    }

    /// How many actions were refused.
    pub fn refusals(self, number: usize) -> String {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let were = if number == 1 { "was" } else { "were" };
        format!("{}{} {were} refused:", self.pick("⚠️ ", "warning: "), count(number, "action"))
    }

    /// One refused action.
    pub fn refusal(self, tool: &str, summary: &str, reason: &str) -> String {
        format!("   {tool}{}{summary}: {reason}", self.arrow(summary))
    }

    /// Refused actions that are not listed.
    pub fn more(self, number: usize) -> String {
        format!("   … and {number} more")
    }

    /// What to do about actions that nobody could be asked about.
    pub fn remedies(self) -> &'static str {
        "   What to do: run it at a terminal to be asked, add --approvals pause to be asked later, --mode yolo to allow \
         what would be asked, or look first with --dry-run."
    }

    /// What to do about actions that a rule refused in every mode.
    pub fn about_rules(self) -> &'static str {
        "   What to do: `agent help permissions` tells which rules refuse and where they are set."
    }
}

/// What a session cost: in all, with its tokens, and by what it was spent for.
pub fn costs(cost: &Cost, usage: Usage) -> String {
    let mut text = format!(
        "Cost: {} ({} in / {} out / {} cached)",
        explained(cost.total_usd),
        thousands(usage.prompt()),
        thousands(usage.output),
        thousands(usage.cached_read)
    );
    for (source, cost) in &cost.by_source {
        let _ = write!(text, "\n   {source}: {cost}");
    }
    text
}

/// Said once when a run has cost what one wanted to be told of.
pub fn budget_warning(spent: Usd, at: Usd) -> String {
    format!("this run has cost {spent}; you wanted to be told at {at} (costs.warn_at_usd)")
}

/// The answer comes from the development cache.
pub const KEPT_ANSWER: &str = "a kept answer: no request was made";

/// Requests no longer begin as they did.
pub fn prefix_changed(changed: &[String]) -> String {
    format!("requests begin otherwise than before ({}): the provider's cache starts anew", changed.join(", "))
}

/// The provider read nothing from its cache, which held `tokens` of the prompt before.
pub fn cache_lost(tokens: u64) -> String {
    format!(
        "the provider's cache gave {} tokens of the last prompt and none of this one, which begins the same",
        thousands(tokens)
    )
}

/// An amount, and where it is said why nobody knows it.
fn explained(amount: Option<Usd>) -> String {
    let shown = money(amount);
    if amount.is_some() { shown } else { shown + " (agent help costs)" }
}

/// An amount, or that nobody knows it.
pub fn money(amount: Option<Usd>) -> String {
    amount.map_or_else(|| "unknown".to_owned(), |amount| amount.to_string())
}

/// `12,450 in (300 cached), 3,200 out`.
pub fn tokens(usage: Usage) -> String {
    let cached = match usage.cached_read {
        0 => String::new(),
        cached => format!(" ({} cached)", thousands(cached)),
    };
    format!("{} in{cached}, {} out", thousands(usage.prompt()), thousands(usage.output))
}

/// The heading of the list at the end of a dry run.
pub const DRY_RUN_PLAN: &str = "## Dry Run Plan";

/// The list of a dry run in which nothing would have been changed or run.
pub const NOTHING_PLANNED: &str = "No write actions were planned.";

/// Actions of a dry run that are not listed.
pub fn more_planned(number: usize) -> String {
    format!("… and {} more", thousands(u64::try_from(number).unwrap_or(u64::MAX)))
}

/// The names of the levels, where another name was given.
pub const LOG_LEVELS: &str = "one of debug, info, human, warn, error";

/// Where a session works, and with what program.
pub fn session_place(workspace: &str, program: &str) -> String {
    format!("workspace {workspace}, program {program}")
}

/// What a run may use.
pub fn offered(max_steps: u32, tools: &[String]) -> String {
    format!("at most {}; tools: {}", count(max_steps, "step"), tools.join(", "))
}

/// The system message was set.
pub fn system_message(size: usize) -> String {
    format!("system message, {}", bytes(size))
}

/// An earlier conversation was given to the session.
pub fn history_given(messages: usize) -> String {
    let messages = count(u64::try_from(messages).unwrap_or(u64::MAX), "message");
    format!("the task follows {messages} of an earlier conversation")
}

/// A user message entered the conversation.
pub fn user_message(origin: Origin, text: &str) -> String {
    let from = match origin.teller() {
        Teller::Person => "prompt",
        Teller::Loop => "the loop says",
        Teller::Hook => "a hook adds",
    };
    format!("{from}: {text}")
}

/// A request went out.
pub fn request_sent(attempt: u32) -> String {
    format!("request sent, attempt {attempt}")
}

/// What the spinner says while the model works; `tokens` counts the run's so far.
pub fn spinner_model(step: u32, tokens: u64) -> String {
    match tokens {
        0 => format!("step {step}: waiting for the LLM"),
        tokens => format!("step {step}: waiting for the LLM · {} tokens so far", thousands(tokens)),
    }
}

/// What the spinner says while a tool works.
pub fn spinner_tool(name: &str, summary: &str) -> String {
    format!("{name} {summary}").trim_end().to_owned()
}

/// Said at the first interrupt.
pub fn interrupting() -> &'static str {
    "Interrupted: ending the step and saving the session. Press Ctrl+C again to exit at once."
}

/// Said when the answer could not be written to standard output.
pub fn answer_not_written(error: &std::io::Error) -> String {
    format!("The answer could not be written to standard output: {error}. It is kept in the session.")
}

/// Said once when the log file can no longer be written.
pub fn log_file_lost(path: &std::path::Path, error: &std::io::Error) -> String {
    format!("The log file {} is given up: {error}. The run goes on without it.", path.display())
}

/// Said when a resumed journal holds lines that a crash or a disk has damaged.
pub fn journal_damaged(lines: &[usize]) -> String {
    format!(
        "{} of the session's journal damaged and left out ({})",
        count(lines.len() as u64, "record"),
        numbers(lines)
    )
}

/// The first of these line numbers.
fn numbers(lines: &[usize]) -> String {
    let shown: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    let more = if lines.len() > shown.len() { ", …" } else { "" };
    format!("line {}{more}", shown.join(", "))
}

/// Said when records of a resumed journal lack a text that was kept beside it.
pub fn journal_incomplete(lines: &[usize]) -> String {
    let (records, numbers) = (count(lines.len() as u64, "record"), numbers(lines));
    format!(
        "{records} of the session's journal without a text that was kept beside it: the model reads a note in its place ({numbers})"
    )
}

/// What stands in the place of a text that is not beside the journal any more, after its beginning.
pub fn text_missing(hash: &str) -> String {
    format!(
        "\n[The rest is missing beside the journal of this session: texts/{}.json]",
        hash.escape_default()
    )
}

/// Said when a state that was kept of a resumed session is of no use.
pub fn state_unusable(why: &str) -> String {
    format!("the whole journal of the session was read: of the state that was kept beside it, {why}")
}

/// Said when the state of a session could not be kept beside its journal.
pub fn state_not_kept(error: &std::io::Error) -> String {
    format!(
        "the state of the session could not be kept beside its journal, so that a resume reads more: {error}"
    )
}

/// A panic, told where it happened.
pub fn panicked(place: &str, message: &str) -> String {
    format!("error: agent panicked at {place}, which is a bug: {message}")
}
