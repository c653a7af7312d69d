//! Hooks: user programs that run before and after tool calls, model calls and runs.

mod client_hooks;
mod protocol;
mod rule;

pub use client_hooks::{ClientHookAnswer, ClientHooks};
pub use protocol::{HookInput, Refusal};
pub use rule::{HookEvent, HookFailureAction, HookRule};

use agent_core::event::HookVerdict;
use agent_process::launch::{
    CommandOutcome, CommandSpec, ExitReason, LaunchError, Launcher, ended_by_signal,
};
use agent_process::shell;
use agent_tools::sandbox_messages;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use protocol::HookOutput;
use regex::{Regex, RegexBuilder};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The exit code that blocks.
const BLOCK_EXIT_CODE: i32 = 2;

/// The exit codes of a shell for a program that is not executable or not found.
const CANNOT_START_EXIT_CODES: [i32; 2] = [126, 127];

/// Maximum bytes of one compiled matcher.
const MAX_MATCHER_BYTES: usize = 1024 * 1024;

/// Name of the hooks of a client in the log.
const CLIENT_HOOK: &str = "client";

/// Reason of a block when the run is interrupted while a client is asked.
const CLIENT_INTERRUPTED: &str = "the run was interrupted or out of time";

/// Maximum characters of a hook's output in the log.
const MAX_LOGGED_CHARS: usize = 2000;

/// An invalid hook rule.
#[derive(Debug, thiserror::Error)]
#[error("hooks.{event}[{index}].{field}: {reason}")]
pub struct HookRuleError {
    /// The event's name.
    pub event: &'static str,
    /// The rule's index in the list, from 0.
    pub index: usize,
    /// The field of the rule.
    pub field: &'static str,
    /// Why the field is invalid.
    pub reason: String,
}

/// A finished hook, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRun {
    /// Its name, or its command.
    pub name: String,
    /// Its verdict.
    pub verdict: HookVerdict,
    /// Its output or why it failed, of limited length.
    pub output: String,
    /// Time it took.
    pub duration: Duration,
}

/// Combined outcome of the hooks of one event.
#[derive(Debug, Default, PartialEq)]
pub struct HookOutcome {
    /// The hooks that ran, in order, without those in the background.
    pub runs: Vec<HookRun>,
    /// Reason of a hook that blocked the action; later hooks did not run.
    pub block: Option<String>,
    /// Whether the client's hooks have approved the call with the arguments that it has after all hooks (`pre_tool_use` only).
    pub is_approved: bool,
    /// Reason of a hook that wants the user to approve the call (`pre_tool_use` only).
    pub ask: Option<String>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// New arguments for the tool (`pre_tool_use` only), which need a new permission decision.
    pub updated_input: Option<Value>,
    /// Result that replaces the call (`pre_tool_use`) or its error (`on_error`); later hooks did not run.
    pub result: Option<String>,
}

impl HookOutcome {
    /// Returns all texts for the model, with the reason of a block last, for events after which nothing can be blocked.
    pub fn into_model_texts(self) -> impl Iterator<Item = String> {
        self.context.into_iter().chain(self.block)
    }

    /// Adds the answer of the hook `name`.
    fn record(&mut self, name: &str, answer: HookAnswer, duration: Duration) {
        let (verdict, output) = match answer {
            HookAnswer::Allow(answer) => {
                let ask = answer.refusal.as_ref().map(|refusal| refusal.reason().to_owned());
                let asked = ask.as_ref().map(|reason| format!("asks for approval: {reason}"));
                let updated = answer.updated_input.as_ref().map(|input| format!("new arguments: {input}"));
                let result = answer.result.as_ref().map(|result| format!("result: {result}"));
                let note = answer.note.or(answer.context.clone());
                let output = [asked, updated, result, note].into_iter().flatten();
                let output = output.collect::<Vec<_>>().join("\n");
                self.ask = self.ask.take().or(ask);
                self.context.extend(answer.context);
                self.result = answer.result;
                if answer.updated_input.is_some() {
                    self.updated_input = answer.updated_input;
                }
                (HookVerdict::Allow, output)
            }
            HookAnswer::Block(reason) => {
                self.block = Some(reason.clone());
                (HookVerdict::Block, reason)
            }
            HookAnswer::Stop(reason) => {
                self.block = Some(reason.clone());
                (HookVerdict::Stop, reason)
            }
            HookAnswer::Warn { text, for_model } => {
                self.context.extend(for_model);
                (HookVerdict::Warn, text)
            }
        };
        let output = output.chars().take(MAX_LOGGED_CHARS).collect();
        self.runs.push(HookRun { name: name.to_owned(), verdict, output, duration });
    }
}

/// All hooks of a run, compiled.
#[derive(Debug)]
pub struct Hooks {
    rules: BTreeMap<HookEvent, Vec<Hook>>,
    workspace: PathBuf,
    launcher: Launcher,
    background_tasks: RefCell<Vec<(CancellationToken, JoinHandle<()>)>>,
    client: Option<Rc<dyn ClientHooks>>,
}

/// One rule, compiled.
#[derive(Debug)]
struct Hook {
    rule: HookRule,
    matcher: Option<Regex>,
    files: Option<GlobSet>,
}

/// Answer of one hook.
enum HookAnswer {
    /// The action may proceed; `refusal` is at most that it needs approval.
    Allow(HookOutput),
    Block(String),
    Stop(String),
    Warn {
        text: String,
        for_model: Option<String>,
    },
}

impl From<ClientHookAnswer> for HookAnswer {
    fn from(ClientHookAnswer { stop, block, context, updated_input, .. }: ClientHookAnswer) -> Self {
        match (stop, block) {
            (Some(reason), _) => Self::Stop(reason),
            (None, Some(reason)) => Self::Block(reason),
            (None, None) => Self::Allow(HookOutput { updated_input, context, ..HookOutput::default() }),
        }
    }
}

impl Hooks {
    /// Compiles `rules`; their commands run in `workspace`.
    ///
    /// # Errors
    /// When a matcher or pattern is invalid, a timeout is out of range or a command is empty.
    pub fn new(
        rules: BTreeMap<HookEvent, Vec<HookRule>>,
        workspace: &Path,
        launcher: &Launcher,
    ) -> Result<Self, HookRuleError> {
        let compile = |(event, rules): (HookEvent, Vec<HookRule>)| {
            let compiled =
                rules.into_iter().enumerate().filter(|(_, rule)| rule.enabled).map(|(index, rule)| {
                    Hook::new(rule).map_err(|(field, reason)| HookRuleError {
                        event: event.name(),
                        index,
                        field,
                        reason,
                    })
                });
            Ok((event, compiled.collect::<Result<Vec<_>, _>>()?))
        };
        let rules = rules.into_iter().map(compile).collect::<Result<_, _>>()?;
        let (workspace, launcher) = (workspace.to_owned(), launcher.clone());
        Ok(Self { rules, workspace, launcher, background_tasks: RefCell::default(), client: None })
    }

    /// Adds the hooks of the program that drives the run.
    #[must_use]
    pub fn with_client(self, client: Option<Rc<dyn ClientHooks>>) -> Self {
        Self { client, ..self }
    }

    /// Returns the client, if it has hooks for `event`.
    fn client(&self, event: HookEvent) -> Option<&Rc<dyn ClientHooks>> {
        self.client.as_ref().filter(|client| client.has(event))
    }

    /// Checks whether there are no hooks at all.
    pub fn are_none(&self) -> bool {
        self.rules.is_empty() && self.client.is_none()
    }

    /// Checks whether there are hooks for `event`; without any, callers need not build their input.
    pub fn has(&self, event: HookEvent) -> bool {
        self.client(event).is_some() || self.rules.get(&event).is_some_and(|hooks| !hooks.is_empty())
    }

    /// Runs the hooks of `event` that match `input`, in order and once for each of its files, until one blocks or returns a
    /// result. It does not fail: an error of a hook becomes a warning or a block, as configured. Background hooks are started
    /// on the current tokio runtime and end with `cancel` or [`end`](Self::end).
    pub async fn fire(
        &self,
        event: HookEvent,
        mut input: HookInput,
        cancel: &CancellationToken,
    ) -> HookOutcome {
        let mut outcome = HookOutcome::default();
        let others = std::mem::take(&mut input.other_files);
        let files: Vec<_> =
            std::iter::once(input.file_path.clone()).chain(others.into_iter().map(Some)).collect();
        let hooks = self.rules.get(&event).into_iter().flatten();
        for (hook, file) in hooks.flat_map(|hook| files.iter().map(move |file| (hook, file))) {
            input.file_path.clone_from(file);
            if !hook.matches(&input) {
                continue;
            }
            let spec = self.spec(&hook.rule, event, &input);
            if hook.rule.background && !event.is_run_end() {
                self.start(spec, cancel.child_token());
                continue;
            }
            let exit = self.launcher.launch(spec, cancel).await;
            let duration = exit.as_ref().map(|exit| exit.duration).unwrap_or_default();
            outcome.record(hook.rule.label(), hook.read(event, exit), duration);
            if outcome.block.is_some() || outcome.result.is_some() {
                break;
            }
            if outcome.updated_input.is_some() {
                input.tool_input.clone_from(&outcome.updated_input);
            }
        }
        if let Some(client) =
            self.client(event).filter(|_| outcome.block.is_none() && outcome.result.is_none())
        {
            let answer = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    let block = Some(CLIENT_INTERRUPTED.to_owned());
                    ClientHookAnswer { block, ..ClientHookAnswer::default() }
                }
                answer = client.call(event, &input) => answer,
            };
            let duration = answer.duration;
            outcome.is_approved = answer.is_approved;
            outcome.record(CLIENT_HOOK, answer.into(), duration);
        }
        outcome
    }

    fn start(&self, spec: CommandSpec, cancel: CancellationToken) {
        let (launcher, token) = (self.launcher.clone(), cancel.clone());
        // The output of background hooks is ignored.
        let task = tokio::spawn(async move { drop(launcher.launch(spec, &token).await) });
        let mut running = self.background_tasks.borrow_mut();
        running.retain(|(_, task)| !task.is_finished());
        running.push((cancel, task));
    }

    /// Ends the background hooks and all their processes, and waits until they are gone.
    pub async fn end(&self) {
        let running = self.background_tasks.take();
        for (cancel, _) in &running {
            cancel.cancel();
        }
        for (_, task) in running {
            // A panic was already printed to standard error, and the end of the task ended the hook.
            let _panicked = task.await;
        }
    }

    fn spec(&self, rule: &HookRule, event: HookEvent, input: &HookInput) -> CommandSpec {
        CommandSpec {
            argv: shell::argv(&input.fill_placeholder(&rule.command)),
            cwd: self.workspace.clone(),
            env: input.variables(event, &self.workspace.to_string_lossy()),
            stdin: input.document(event),
            timeout: Duration::from_secs(rule.timeout),
        }
    }
}

impl Hook {
    /// Compiles `rule`; an error is the invalid field and the reason.
    fn new(rule: HookRule) -> Result<Self, (&'static str, String)> {
        if rule.command.trim().is_empty() {
            return Err(("command", "is empty".to_owned()));
        }
        if !(1..=300).contains(&rule.timeout) {
            return Err(("timeout", format!("{} is not between 1 and 300 seconds", rule.timeout)));
        }
        let matcher = (rule.matcher != "*").then(|| matcher(&rule.matcher));
        let matcher = matcher.transpose().map_err(|error| ("matcher", error.to_string()))?;
        let files = (!rule.file_patterns.is_empty()).then(|| globs(&rule.file_patterns)).transpose();
        let files = files.map_err(|error| ("file_patterns", error.to_string()))?;
        Ok(Self { rule, matcher, files })
    }

    /// Checks whether the hook applies to this tool and file. A filter does not match an event without a tool or file.
    fn matches(&self, input: &HookInput) -> bool {
        let tool = self
            .matcher
            .as_ref()
            .is_none_or(|matcher| input.tool_name.as_deref().is_some_and(|name| matcher.is_match(name)));
        let file = self.files.as_ref().is_none_or(|files| {
            let path = input.file_path.as_deref().map(Path::new);
            path.is_some_and(|path| {
                files.is_match(path) || path.file_name().is_some_and(|name| files.is_match(name))
            })
        });
        tool && file
    }

    /// Determines the hook's answer from how it ended.
    fn read(&self, event: HookEvent, exit: Result<CommandOutcome, LaunchError>) -> HookAnswer {
        let exit = match exit {
            Ok(exit) => exit,
            Err(error) => return self.failed(event, &error.to_string()),
        };
        if let Some(damage) = sandbox_messages::protected_files_text(&exit.protected_changes) {
            return self.failed(event, &damage);
        }
        let (stdout, stderr) = (protocol::text(&exit.stdout), protocol::text(&exit.stderr));
        match exit.reason {
            ExitReason::Code(0) => match HookOutput::read(event, &exit.stdout) {
                Ok(output) => {
                    let note =
                        [stderr, output.note.clone()].into_iter().flatten().reduce(|a, b| a + "\n" + &b);
                    self.answer(event, HookOutput { note, ..output })
                }
                Err(why) => self.failed(event, &why),
            },
            ExitReason::Code(BLOCK_EXIT_CODE) if event.can_block() => {
                let reason = stderr.or(stdout).unwrap_or_else(|| protocol::NO_REASON.to_owned());
                HookAnswer::Block(reason)
            }
            ExitReason::Code(code) if CANNOT_START_EXIT_CODES.contains(&code) => {
                self.failed(event, &stderr.unwrap_or_else(|| format!("exit code {code}")))
            }
            ExitReason::Code(code) => {
                if event == HookEvent::PreToolUse
                    && let Ok(output @ HookOutput { refusal: Some(_), .. }) =
                        HookOutput::read(event, &exit.stdout)
                {
                    return self.answer(event, output);
                }
                let output: Vec<String> = [stdout, stderr].into_iter().flatten().collect();
                let colon = if output.is_empty() { "" } else { ":\n" };
                let output = output.join("\n");
                let text = format!("Hook '{}' exited with {code}{colon}{output}", self.rule.label());
                let for_model = event.reports_findings().then(|| text.clone());
                HookAnswer::Warn { text, for_model }
            }
            ExitReason::Signal(signal) => self.failed(event, &format!("it was {}", ended_by_signal(signal))),
            ExitReason::TimedOut => {
                self.failed(event, &format!("it did not finish within {} s", self.rule.timeout))
            }
            ExitReason::Idle => self.failed(event, "it wrote nothing for too long"),
            ExitReason::Exceeded(excess) => self.failed(event, excess.advice()),
            ExitReason::Cancelled => self.failed(event, "the run was interrupted or out of time"),
        }
    }

    /// Returns the answer of a hook with this output.
    fn answer(&self, event: HookEvent, output: HookOutput) -> HookAnswer {
        let Some(refusal) = &output.refusal else { return HookAnswer::Allow(output) };
        let reason = refusal.reason().to_owned();
        if !event.can_block() {
            let text =
                format!("Hook '{}' refuses, which has no effect at this event: {reason}", self.rule.label());
            return HookAnswer::Warn { text, for_model: None };
        }
        match refusal {
            Refusal::Stop(_) => HookAnswer::Stop(reason),
            Refusal::Ask(_) if event == HookEvent::PreToolUse => HookAnswer::Allow(output),
            Refusal::Ask(_) | Refusal::Block(_) => {
                let texts = output.context.into_iter().chain([reason]);
                HookAnswer::Block(texts.collect::<Vec<_>>().join("\n"))
            }
        }
    }

    /// Returns the answer of a hook that failed.
    fn failed(&self, event: HookEvent, why: &str) -> HookAnswer {
        let text = format!("Hook '{}' failed: {why}", self.rule.label());
        match self.rule.on_error(event) {
            HookFailureAction::Block if event.can_block() => HookAnswer::Block(text),
            HookFailureAction::Block | HookFailureAction::Allow => HookAnswer::Warn { text, for_model: None },
        }
    }
}

/// Compiles the matcher of a rule, which must match a whole name.
///
/// # Errors
/// For an invalid regular expression.
pub fn matcher(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!("^(?:{text})$")).size_limit(MAX_MATCHER_BYTES).build()
}

/// Compiles globs in which `*` also matches `/`, so that `*.py` matches every Python file.
fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(pattern).literal_separator(false).build()?);
    }
    set.build()
}

#[cfg(test)]
mod tests;
