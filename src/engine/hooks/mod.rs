//! Hooks: programs of the user that run around tools and model calls.

mod protocol;
mod rule;

pub use protocol::HookInput;
pub use rule::{HookEvent, HookFailureAction, HookRule};

use crate::core::event::HookVerdict;
use crate::process::launch::{CommandOutcome, CommandSpec, ExitReason, LaunchError, Launcher};
use crate::process::shell;
use crate::tools::sandbox_messages;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use protocol::HookOutput;
use regex::{Regex, RegexBuilder};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The exit code that blocks (spec.md 1.9).
const BLOCK_EXIT_CODE: i32 = 2;

/// The exit codes with which a shell says that a program is not executable and not there.
const CANNOT_START_EXIT_CODES: [i32; 2] = [126, 127];

/// Bytes that one compiled matcher may take; a regex from a file must not eat the memory.
const MAX_MATCHER_BYTES: usize = 1024 * 1024;

/// Characters of a hook's output that the log gets.
const MAX_LOGGED_CHARS: usize = 2000;

/// A rule that cannot work.
#[derive(Debug, thiserror::Error)]
#[error("hooks.{event}[{index}].{field}: {reason}")]
pub struct HookRuleError {
    /// The event's name.
    pub event: &'static str,
    /// The rule's place in the list, from 0.
    pub index: usize,
    /// The field of the rule.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: String,
}

/// One hook that ran to its end, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRun {
    /// Its name, or its command.
    pub name: String,
    /// What it decided.
    pub verdict: HookVerdict,
    /// What it wrote or why it failed, bounded.
    pub output: String,
    /// How long it took.
    pub duration: Duration,
}

/// What the hooks of one event did and want.
#[derive(Debug, Default, PartialEq)]
pub struct HookOutcome {
    /// The hooks that ran, in order; those in the background are not among them.
    pub runs: Vec<HookRun>,
    /// Why the action is blocked, in the hook's words; later hooks did not run.
    pub block: Option<String>,
    /// Texts for the model.
    pub context: Vec<String>,
    /// New arguments for the tool (`pre_tool_use` only); they have to be decided on again.
    pub updated_input: Option<Value>,
    /// The result of a call that therefore does not run (`pre_tool_use`), or in place of an error (`on_error`); later
    /// hooks did not run.
    pub result: Option<String>,
}

impl HookOutcome {
    /// What the model reads where there is nothing to block any more: all that was said, the reason of a block last.
    pub fn into_model_texts(self) -> impl Iterator<Item = String> {
        self.context.into_iter().chain(self.block)
    }

    /// Adds what the hook called `name` wants.
    fn record(&mut self, name: &str, answer: HookAnswer, duration: Duration) {
        let (verdict, output) = match answer {
            HookAnswer::Allow { said, note } => {
                let updated = said.updated_input.as_ref().map(|input| format!("new arguments: {input}"));
                let given = said.result.as_ref().map(|result| format!("gave the result: {result}"));
                let output = [updated, given, note.or(said.context.clone())].into_iter().flatten();
                let output = output.collect::<Vec<_>>().join("\n");
                self.context.extend(said.context);
                self.result = said.result;
                if said.updated_input.is_some() {
                    self.updated_input = said.updated_input;
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
}

/// One rule, compiled.
#[derive(Debug)]
struct Hook {
    rule: HookRule,
    matcher: Option<Regex>,
    files: Option<GlobSet>,
}

/// What one hook wants.
enum HookAnswer {
    Allow { said: HookOutput, note: Option<String> },
    Block(String),
    Stop(String),
    Warn { text: String, for_model: Option<String> },
}

impl Hooks {
    /// Compiles `rules`; their commands run in `workspace`.
    ///
    /// # Errors
    /// When a matcher is no regex, a pattern no glob, a timeout out of range or a command empty.
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
        Ok(Self { rules, workspace, launcher, background_tasks: RefCell::default() })
    }

    /// Whether a hook could run at `event`, so that its input need not be made otherwise.
    pub fn has(&self, event: HookEvent) -> bool {
        self.rules.get(&event).is_some_and(|hooks| !hooks.is_empty())
    }

    /// Runs the hooks of `event` that match `input`, in order and once for each of its files, until one blocks or gives a result. Never fails: what goes wrong with a
    /// hook is a warning, or for a guard a block. Background hooks are started on the current tokio runtime and end
    /// with `cancel` or [`end`](Self::end).
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
        outcome
    }

    fn start(&self, spec: CommandSpec, cancel: CancellationToken) {
        let (launcher, token) = (self.launcher.clone(), cancel.clone());
        // What a hook says that nobody waits for is not heard.
        let task = tokio::spawn(async move { drop(launcher.launch(spec, &token).await) });
        let mut running = self.background_tasks.borrow_mut();
        running.retain(|(_, task)| !task.is_finished());
        running.push((cancel, task));
    }

    /// Ends the hooks in the background with everything they started, and waits until that is gone.
    pub async fn end(&self) {
        let running = self.background_tasks.take();
        for (cancel, _) in &running {
            cancel.cancel();
        }
        for (_, task) in running {
            // A task that panicked has been told on standard error, and its end has ended the hook.
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
    /// Compiles `rule`, or says which field is wrong and how.
    fn new(rule: HookRule) -> Result<Self, (&'static str, String)> {
        if rule.command.trim().is_empty() {
            return Err(("command", "is empty".to_owned()));
        }
        if !(1..=300).contains(&rule.timeout) {
            return Err(("timeout", format!("{} is not between 1 and 300 seconds", rule.timeout)));
        }
        let matcher = (rule.matcher != "*").then(|| {
            let anchored = format!("^(?:{})$", rule.matcher);
            RegexBuilder::new(&anchored).size_limit(MAX_MATCHER_BYTES).build()
        });
        let matcher = matcher.transpose().map_err(|error| ("matcher", error.to_string()))?;
        let files = (!rule.file_patterns.is_empty()).then(|| globs(&rule.file_patterns)).transpose();
        let files = files.map_err(|error| ("file_patterns", error.to_string()))?;
        Ok(Self { rule, matcher, files })
    }

    /// Whether it is meant for this tool and this file. A filter on what an event does not have matches nothing.
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

    /// What it wants, from how it ended.
    fn read(&self, event: HookEvent, exit: Result<CommandOutcome, LaunchError>) -> HookAnswer {
        let exit = match exit {
            Ok(exit) => exit,
            Err(error) => return self.failed(event, &error.to_string()),
        };
        if let Some(disturbance) = sandbox_messages::protected_files_text(&exit.protected_changes) {
            return self.failed(event, &disturbance);
        }
        let (stdout, stderr) = (protocol::text(&exit.stdout), protocol::text(&exit.stderr));
        match exit.reason {
            ExitReason::Code(0) => {
                let said = HookOutput::read(event, &exit.stdout);
                match said.stop {
                    Some(reason) => HookAnswer::Stop(reason),
                    None => HookAnswer::Allow { said, note: stderr },
                }
            }
            ExitReason::Code(BLOCK_EXIT_CODE) if event.can_block() => {
                let reason = stderr.or(stdout).unwrap_or_else(|| "the hook gave no reason".to_owned());
                HookAnswer::Block(reason)
            }
            ExitReason::Code(code) if CANNOT_START_EXIT_CODES.contains(&code) => {
                self.failed(event, &stderr.unwrap_or_else(|| format!("exit code {code}")))
            }
            ExitReason::Code(code) => {
                let said: Vec<String> = [stdout, stderr].into_iter().flatten().collect();
                let colon = if said.is_empty() { "" } else { ":\n" };
                let said = said.join("\n");
                let text = format!("Hook '{}' exited with {code}{colon}{said}", self.rule.label());
                let for_model = event.reports_findings().then(|| text.clone());
                HookAnswer::Warn { text, for_model }
            }
            ExitReason::Signal(signal) => self.failed(event, &format!("it was ended by signal {signal}")),
            ExitReason::TimedOut => {
                self.failed(event, &format!("it did not finish within {} s", self.rule.timeout))
            }
            ExitReason::Idle => self.failed(event, "it wrote nothing for too long"),
            ExitReason::Exceeded(excess) => self.failed(event, excess.advice()),
            ExitReason::Cancelled => self.failed(event, "the run was interrupted or out of time"),
        }
    }

    /// The answer of a hook that gave none.
    fn failed(&self, event: HookEvent, why: &str) -> HookAnswer {
        let text = format!("Hook '{}' failed: {why}", self.rule.label());
        match self.rule.on_error(event) {
            HookFailureAction::Block if event.can_block() => HookAnswer::Block(text),
            HookFailureAction::Block | HookFailureAction::Allow => HookAnswer::Warn { text, for_model: None },
        }
    }
}

/// Globs in which `*` crosses directories, so that `*.py` means every Python file.
fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(GlobBuilder::new(pattern).literal_separator(false).build()?);
    }
    set.build()
}

#[cfg(test)]
mod tests;
