//! A task that another program does (`fleet.executors`): confined like a command, with a home directory of its own and the variables that are
//! mapped for it.

use crate::commands::attempt_directory::remove_directory;
use crate::commands::context::may_pass;
use agent_config::agent_definition::OWN;
use agent_config::executors::{Executor, ExecutorInputs, FigurePlaces, OutputFormat, PromptInput, executor};
use agent_config::settings::Settings;
use agent_core::failure::{Failure, FailureKind};
use agent_core::fleet::TaskSpec;
use agent_core::price::Usd;
use agent_core::run_result::{Cost, ExecutorUse, RESULT_SCHEMA_VERSION, RunResult};
use agent_core::stop_reason::{Status, StopReason};
use agent_core::usage::Usage;
use agent_engine::policy::Mode;
use agent_flows::work::checks::run_gates;
use agent_messages as messages;
use agent_process::capture::Captured;
use agent_process::exec::find_in_path;
use agent_process::launch::{CommandOutcome, CommandSpec, ExitReason, ended_by_signal};
use agent_run::app::App;
use agent_run::assemble;
use agent_run::error::{AppError, AppResult};
use agent_run::request::RunRequest;
use agent_runtime::private_file::{create_new, create_private_dir};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Most bytes of an argument: Linux allows 128 KiB (`MAX_ARG_STRLEN`), and the path of the home directory is not known yet.
const MAX_ARG_BYTES: usize = 127 << 10;

/// Bytes of the end of standard error in the cause of a failure.
const CAUSE_BYTES: usize = 500;

/// A task that an executor does.
pub struct ExecutorRun<'a> {
    app: &'a App,
    name: &'a str,
    executor: Executor,
    spec: &'a TaskSpec,
    prompt: String,
    /// That of an agent of a Hub, if the executor gets it apart from the prompt.
    system_prompt: String,
    /// Commands that must succeed, besides the configured gates.
    checks: Vec<String>,
}

impl<'a> ExecutorRun<'a> {
    /// Prepares the executor of a task, or of an agent of a Hub with a `system_prompt`; `None` for a task that the agent itself does.
    ///
    /// # Errors
    /// Fails if the user has not allowed the executor, and if the task or the worker has limits that it would not keep.
    pub fn new(
        app: &'a App,
        settings: &Settings,
        request: &RunRequest,
        spec: &'a TaskSpec,
        system_prompt: &str,
    ) -> AppResult<Option<Self>> {
        let Some(name) = spec.executor.as_deref().filter(|name| *name != OWN) else { return Ok(None) };
        let wrong = |why: String| Err(AppError::new(FailureKind::Config, why));
        let mut executor = match executor(&settings.fleet.executors, name) {
            Ok(executor) => executor,
            Err(why) => return wrong(why),
        };
        let (prompt, system_prompt) = if system_prompt.is_empty() || executor.takes_system_prompt() {
            (spec.prompt.clone(), system_prompt.to_owned())
        } else {
            ([system_prompt, &spec.prompt].join("\n\n"), String::new())
        };
        let (model, home) = (spec.model.as_deref(), "");
        let inputs = ExecutorInputs { prompt: &prompt, system_prompt: &system_prompt, model, home };
        if executor.argv(&inputs).iter().any(|word| word.len() > MAX_ARG_BYTES) {
            return wrong(messages::executor_prompt_too_long(name, MAX_ARG_BYTES >> 10));
        }
        if request.bounds.no_network {
            (executor.network, executor.allowed_hosts) = (None, None);
        }
        // Its calls cannot be decided on one by one.
        let task_mode = spec.mode.as_deref().and_then(|mode| mode.parse().ok());
        if settings.policy.mode != Mode::Yolo || task_mode.is_some_and(|mode: Mode| mode != Mode::Yolo) {
            return wrong(messages::executor_needs_yolo(name));
        }
        let costs = &settings.costs;
        let has_steps = spec.max_steps.or(request.overrides.max_steps).is_some();
        let has_bounds = has_steps || spec.budget.is_some() || request.total_budget.is_some();
        if has_bounds || costs.budget_usd.is_some() || costs.max_tokens.is_some() {
            return wrong(messages::executor_has_no_budget(name));
        }
        if spec.agent.is_some() {
            return wrong(messages::executor_has_no_agent(name));
        }
        let checks = request.checks.iter().chain(&spec.checks).cloned().collect();
        Ok(Some(Self { app, name, executor, spec, prompt, system_prompt, checks }))
    }

    /// Runs the executor in `directory` of a worktree, with `home` as its home directory, and then the quality gates and the checks.
    ///
    /// # Errors
    /// Fails if it is not installed, or cannot be started.
    pub async fn run(
        &self,
        mut settings: Settings,
        directory: &Path,
        home: &Path,
        interrupt: &CancellationToken,
    ) -> AppResult<RunResult> {
        let program = program_of(self.app, &self.executor, self.name, directory)
            .map_err(|why| AppError::new(FailureKind::Config, why))?;
        let home_text = home.to_string_lossy();
        let inputs = ExecutorInputs {
            prompt: &self.prompt,
            system_prompt: &self.system_prompt,
            model: self.spec.model.as_deref(),
            home: &home_text,
        };
        remove_directory(home).map_err(|why| may_pass(&why))?;
        self.create_home(home, &inputs).map_err(|error| may_pass(&format!("{home_text}: {error}")))?;
        let commands = assemble::launcher(self.app, &settings)?;
        settings.guardrails.set_gates(&self.checks, false);
        let gates = settings.guardrails.quality_gates.clone();
        settings.sandbox.network = self.executor.network.unwrap_or_default();
        settings.sandbox.allowed_hosts = self.executor.allowed_hosts.clone().unwrap_or_default();
        settings.sandbox.writable.push(home_text.to_string());
        let launcher = assemble::launcher(self.app, &settings)?;
        let variable = |name: &str| self.app.environment.get(name).map(str::to_owned);
        let variables = self.executor.variables(&inputs, variable);
        let launcher = launcher.as_ref().clone().with_mapped_variables(variables);
        let mut argv = self.executor.argv(&inputs);
        if let Some(first) = argv.first_mut() {
            *first = program;
        }
        let is_stdin = self.executor.prompt.unwrap_or_default() == PromptInput::Stdin;
        let stdin = if is_stdin { self.prompt.clone().into_bytes() } else { Vec::new() };
        let limits = [self.spec.timeout.map(Duration::from_secs), settings.timeout];
        let limit = Duration::from_secs(self.executor.timeout());
        let limit = limits.into_iter().flatten().fold(limit, Duration::min);
        let env = home_variables(home);
        let command = CommandSpec { argv, cwd: directory.to_owned(), env, stdin, timeout: limit };
        let ended =
            launcher.launch(command, interrupt).await.map_err(|error| may_pass(&error.to_string()))?;
        let mut result = self.result(&ended, limit)?;
        result.sandbox = Some(launcher.tier().name().to_owned());
        if result.status == Status::Success {
            let runs = run_gates(&commands, directory, &gates, &BTreeMap::new(), interrupt).await;
            result.quality_gates = runs.into_iter().map(|run| run.result).collect();
            if interrupt.is_cancelled() {
                (result.status, result.stop_reason) = (Status::Partial, Some(StopReason::UserInterrupt));
            } else if result.quality_gates.iter().any(|gate| gate.required && !gate.passed) {
                result.status = Status::Partial;
            }
        }
        Ok(result)
    }

    /// Creates its home directory, with its files.
    fn create_home(&self, home: &Path, inputs: &ExecutorInputs<'_>) -> io::Result<()> {
        create_private_dir(home)?;
        for (path, text) in self.executor.files(inputs) {
            let path = home.join(path);
            path.parent().map_or(Ok(()), create_private_dir)?;
            create_new(&path, true)?.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    fn result(&self, ended: &CommandOutcome, limit: Duration) -> AppResult<RunResult> {
        let stdout = text(&ended.stdout);
        let (format, places) = (self.executor.output.unwrap_or_default(), &self.executor.patterns);
        let figures = Figures::read(&stdout, format, places)
            .map_err(|why| AppError::new(FailureKind::Config, messages::executor_figures(self.name, &why)))?;
        let (stop_reason, exit_code, cause) = match ended.reason {
            ExitReason::Code(0) => (Some(StopReason::LlmDone), Some(0), None),
            ExitReason::Code(code) => (None, Some(code), Some(format!("exited with code {code}"))),
            ExitReason::Signal(signal) => (None, None, Some(format!("was {}", ended_by_signal(signal)))),
            ExitReason::TimedOut | ExitReason::Idle => {
                (Some(StopReason::Timeout), None, Some(messages::executor_timed_out(limit.as_secs())))
            }
            ExitReason::Exceeded(excess) => (None, None, Some(format!("was ended: {}", excess.advice()))),
            ExitReason::Cancelled => (Some(StopReason::UserInterrupt), None, None),
        };
        let failure = cause.map(|cause: String| {
            let has_network = self.executor.network.unwrap_or_default()
                || self.executor.allowed_hosts.iter().any(|hosts| !hosts.is_empty());
            let message =
                messages::executor_failed(self.name, &cause, &end(&ended.stderr, &stdout), has_network);
            Failure { kind: FailureKind::Request, message: self.app.redact(&message), retryable: false }
        });
        let output = figures.answer.unwrap_or(stdout);
        Ok(RunResult {
            schema_version: RESULT_SCHEMA_VERSION,
            status: stop_reason.map_or(Status::Failed, StopReason::status),
            stop_reason,
            output: self.app.redact(output.trim_end()).into(),
            duration_seconds: ended.duration.as_secs_f64(),
            model: self.spec.model.clone(),
            usage: Usage {
                input: figures.tokens_input.unwrap_or_default(),
                output: figures.tokens_output.unwrap_or_default(),
                ..Usage::default()
            },
            cost: Cost { total_usd: figures.cost, ..Cost::default() },
            executor: Some(Box::new(ExecutorUse {
                name: self.name.to_owned(),
                exit_code,
                tokens_input: figures.tokens_input,
                tokens_output: figures.tokens_output,
            })),
            error: failure,
            ..RunResult::default()
        })
    }
}

/// Returns the path of the program of the executor `name`, which is not in `directory`: a repository does not decide which program gets the key.
///
/// # Errors
/// Says how it is installed if it is not.
pub fn program_of(app: &App, executor: &Executor, name: &str, directory: &Path) -> Result<String, String> {
    let command = executor.command.as_deref().unwrap_or_default();
    let path = app.environment.get("PATH").unwrap_or_default();
    let is_usable = |found: &PathBuf| found.is_absolute() && found.is_file() && !found.starts_with(directory);
    let found = find_in_path(command, path).filter(is_usable);
    let found = found.and_then(|found| found.to_str().map(str::to_owned));
    found.ok_or_else(|| messages::executor_not_installed(name, command, executor.install.as_deref()))
}

/// Returns the variables that let a program keep its files in `home`.
fn home_variables(home: &Path) -> BTreeMap<String, String> {
    let below = |part: &str| home.join(part).to_string_lossy().into_owned();
    let variables = [
        ("HOME", home.to_string_lossy().into_owned()),
        ("XDG_CONFIG_HOME", below(".config")),
        ("XDG_CACHE_HOME", below(".cache")),
        ("XDG_DATA_HOME", below(".local/share")),
        ("XDG_STATE_HOME", below(".local/state")),
        ("TERM", "xterm-256color".to_owned()),
        ("LANG", "en_US.UTF-8".to_owned()),
    ];
    variables.map(|(name, value)| (name.to_owned(), value)).into()
}

fn text(captured: &Captured) -> String {
    let bytes: Vec<u8> = captured.head.iter().chain(&captured.tail).copied().collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the end of standard error, or of standard output if that is empty.
fn end(stderr: &Captured, stdout: &str) -> String {
    let stderr = text(stderr);
    let text = if stderr.trim().is_empty() { stdout } else { &stderr }.trim();
    text[text.ceil_char_boundary(text.len().saturating_sub(CAUSE_BYTES))..].to_owned()
}

/// What the output of an executor tells.
#[derive(Debug, Default, PartialEq)]
struct Figures {
    answer: Option<String>,
    tokens_input: Option<u64>,
    tokens_output: Option<u64>,
    cost: Option<Usd>,
}

impl Figures {
    /// Reads the figures; what is not found is absent.
    ///
    /// # Errors
    /// Fails for a pattern that is none.
    fn read(output: &str, format: OutputFormat, places: &FigurePlaces) -> Result<Self, String> {
        let document: Option<Value> = match format {
            OutputFormat::Json => serde_json::from_str(output.trim()).ok(),
            OutputFormat::Text => None,
        };
        let find = |place: &Option<String>| -> Result<Option<String>, String> {
            match (place, format) {
                (None, _) => Ok(None),
                (Some(pointer), OutputFormat::Json) => {
                    let value = document.as_ref().and_then(|document| document.pointer(pointer));
                    Ok(value
                        .filter(|value| !value.is_null())
                        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
                }
                (Some(pattern), OutputFormat::Text) => {
                    let pattern = Regex::new(pattern).map_err(|error| format!("{pattern}: {error}"))?;
                    // A program that sums up says the last word.
                    let found = pattern.captures_iter(output).last();
                    Ok(found.and_then(|found| found.get(1).map(|group| group.as_str().to_owned())))
                }
            }
        };
        Ok(Self {
            answer: find(&places.answer)?,
            tokens_input: find(&places.tokens_input)?.as_deref().and_then(count),
            tokens_output: find(&places.tokens_output)?.as_deref().and_then(count),
            cost: find(&places.cost_usd)?
                .and_then(|text| text.parse::<f64>().ok())
                .and_then(|usd| usd.try_into().ok()),
        })
    }
}

/// Parses a number such as `1234`, `1,234`, `2.1k` or `1M`.
fn count(text: &str) -> Option<u64> {
    let text = text.replace(',', "");
    let (number, unit) = match text.strip_suffix('k') {
        Some(number) => (number, 1_000.0),
        None => text.strip_suffix('M').map_or((text.as_str(), 1.0), |number| (number, 1_000_000.0)),
    };
    let number: f64 = number.parse().ok()?;
    let count = (number * unit).round();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range")]
    (0.0..1e15).contains(&count).then_some(count as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(names: [&str; 3]) -> FigurePlaces {
        let [tokens_input, tokens_output, cost_usd] = names.map(|name| Some(name.to_owned()));
        FigurePlaces { answer: None, tokens_input, tokens_output, cost_usd }
    }

    #[test]
    fn a20_figures_are_found_by_patterns_or_pointers_and_absent_otherwise() {
        let text =
            places([r"Tokens: ([\d.,]+[kM]?) sent", r"sent, ([\d.,]+[kM]?) received", r"Cost: \$([\d.]+)"]);
        let read = |output| Figures::read(output, OutputFormat::Text, &text).unwrap();
        let found =
            read("Tokens: 9 sent, 1 received\nTokens: 2.1k sent, 1,345 received. Cost: $0.25 message");
        assert_eq!((found.tokens_input, found.tokens_output), (Some(2_100), Some(1_345)));
        assert_eq!(found.cost, Usd::try_from(0.25).ok());
        assert_eq!(read("nothing"), Figures::default());
        let json =
            FigurePlaces { answer: Some("/result".to_owned()), ..places(["/u/in", "/u/out", "/cost"]) };
        let read = |output| Figures::read(output, OutputFormat::Json, &json).unwrap();
        let found = read("{\"result\": \"done\", \"u\": {\"in\": 5, \"out\": null}, \"cost\": 0.5}\n");
        assert_eq!(
            (found.answer.as_deref(), found.tokens_input, found.tokens_output),
            (Some("done"), Some(5), None)
        );
        assert_eq!(read("no JSON"), Figures::default());
        assert!(Figures::read("", OutputFormat::Text, &places(["(", "", ""])).is_err());
    }
}
