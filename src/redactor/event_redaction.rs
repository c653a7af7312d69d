//! Removes secrets from events, messages and results.

use super::Redactor;
use super::unique_keys::unique_key;
use agent_core::approval::{ApprovalAnswer, ApprovalRequest};
use agent_core::change_review::{ChangeFinding, ChangeReview};
use agent_core::compaction::CompactionEvent;
use agent_core::decision::Denial;
use agent_core::evaluation::Evaluation;
use agent_core::event::Event;
use agent_core::health::CodeHealth;
use agent_core::image::Image;
use agent_core::message::{HistoryMessage, Message, Part};
use agent_core::quality_gate::GateResult;
use agent_core::run_result::{Output, RunResult};
use agent_core::work::{WorkEvent, WorkRun, Worktree};
use serde_json::{Map, Value};

impl Redactor {
    /// Replaces the secrets in all texts of `event`.
    pub fn redact_event(&self, event: &mut Event) {
        match event {
            Event::UserMessage { text, images, .. } => {
                self.redact_for_model(text);
                self.images(images);
            }
            Event::System { text } | Event::Compaction { part: CompactionEvent::Summary { text, .. } } => {
                self.redact_for_model(text);
            }
            Event::History { messages } => self.history(messages),
            Event::Notice { text, .. } | Event::Retry { message: text, .. } => self.redact(text),
            Event::ModelResponse { message, .. } => self.message(message),
            Event::ModelFailed { failure, .. } | Event::ModelSwitched { failure, .. } => {
                self.redact(&mut failure.message);
            }
            Event::ToolCallStart { call, summary } => {
                self.texts([&mut call.name, &mut call.arguments, summary].into_iter());
            }
            Event::ToolCallEnd { .. } => self.tool_end(event),
            Event::Subagent { event, .. } => self.redact_event(event),
            Event::ToolCallPending { approval: Some(approval), .. } => self.redact_approval(approval),
            Event::ApprovalAnswered { answer: ApprovalAnswer::Deny { reason: Some(reason) }, .. } => {
                self.redact(reason);
            }
            Event::Restored { changed, .. } | Event::FileChangesPlanned { changes: changed, .. } => {
                self.texts(changed.iter_mut().map(|change| &mut change.path));
            }
            Event::Checkpoint { omitted_files, .. } => self.texts(omitted_files.iter_mut()),
            Event::HookEnd { hook, output, .. } => {
                self.redact(hook);
                self.redact(output);
            }
            Event::Evaluation { result } => self.evaluation(result),
            Event::ChangeReview { result } => self.change_review(result),
            Event::QualityGates { results } => self.gates(results),
            Event::Guardrail { triggered } => self.redact(&mut triggered.message),
            Event::RunEnd { result } => self.result(result),
            Event::Work { part } => self.work(part),
            event @ (Event::BackgroundStart { .. } | Event::BackgroundEnd { .. }) => self.background(event),
            Event::RunStart { bounds: Some(bounds), .. } => self.texts(bounds.schema.iter_mut()),
            // Streamed text is buffered before it is searched: see [`PendingText`](super::PendingText).
            Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::SessionStart { .. }
            | Event::RunStart { .. }
            | Event::Instructions { .. }
            | Event::StepStart { .. }
            | Event::RequestSent { .. }
            | Event::RequestPrefix { .. }
            | Event::CachedAnswer
            | Event::ModelAbandoned { .. }
            | Event::BudgetCap(_)
            | Event::BudgetWarning { .. }
            | Event::Compaction { .. }
            | Event::StepEnd
            | Event::Imported
            | Event::ToolCallPending { .. }
            | Event::ApprovalAnswered { .. }
            | Event::Closing { .. } => {}
        }
    }

    fn texts<'a>(&self, texts: impl Iterator<Item = &'a mut String>) {
        texts.for_each(|text| self.redact(text));
    }

    /// Replaces the secrets in the names of images; their bytes are not searched.
    fn images(&self, images: &mut [Image]) {
        for image in images {
            self.redact(&mut image.name);
        }
    }

    fn history(&self, messages: &mut [HistoryMessage]) {
        for message in messages {
            self.redact_for_model(&mut message.content);
        }
    }

    fn gates(&self, results: &mut [GateResult]) {
        for result in results {
            self.redact(&mut result.name);
            self.redact_for_model(&mut result.output);
        }
    }

    fn work(&self, event: &mut WorkEvent) {
        match event {
            WorkEvent::Start { request, task, data, .. } => {
                self.value(request);
                self.texts(data.iter_mut());
                self.redact_for_model(task);
            }
            WorkEvent::RunStart { .. } | WorkEvent::StepEnd { .. } => {}
            WorkEvent::Worktree { worktree, .. } => self.worktree(worktree),
            WorkEvent::StepStart { changed_before, .. } => self.texts(changed_before.iter_mut()),
            WorkEvent::StepResult { run } => self.work_run(run),
            WorkEvent::RunEnd { result, .. } => self.result(result),
            WorkEvent::Checks { results, .. } => self.gates(results),
            WorkEvent::End { result } => {
                result.runs.iter_mut().for_each(|run| self.work_run(run));
                result.worktree.iter_mut().for_each(|worktree| self.worktree(worktree));
                self.redact_for_model(&mut result.output);
                result.error.iter_mut().for_each(|error| self.redact(&mut error.message));
            }
        }
    }

    fn worktree(&self, worktree: &mut Worktree) {
        self.texts(worktree.conflicts.iter_mut().chain(&mut worktree.problem));
    }

    fn work_run(&self, run: &mut WorkRun) {
        run.skipped.iter_mut().for_each(|why| self.redact_for_model(why));
        run.worktree.iter_mut().for_each(|worktree| self.worktree(worktree));
        self.gates(&mut run.checks);
        self.result(&mut run.result);
    }

    fn evaluation(&self, evaluation: &mut Evaluation) {
        let error = evaluation.error.iter_mut().map(|error| &mut error.message);
        for text in evaluation.issues.iter_mut().chain([&mut evaluation.suggestion]).chain(error) {
            self.redact_for_model(text);
        }
    }

    fn change_review(&self, review: &mut ChangeReview) {
        for ChangeFinding { file, problem, fix, .. } in &mut review.findings {
            self.redact(file);
            [problem].into_iter().chain(fix).for_each(|text| self.redact_for_model(text));
        }
        review.problem.iter_mut().for_each(|problem| self.redact(problem));
    }

    fn background(&self, event: &mut Event) {
        match event {
            Event::BackgroundStart { command, .. } => self.redact(command),
            Event::BackgroundEnd { command, outcome, .. } => {
                self.redact(command);
                self.redact(outcome);
            }
            _ => {}
        }
    }

    fn tool_end(&self, event: &mut Event) {
        let Event::ToolCallEnd {
            name,
            summary,
            result,
            changed,
            seen,
            denial,
            simulated: _,
            guardrail_counts: _,
            duration_ms: _,
        } = event
        else {
            return;
        };
        self.redact(name);
        self.redact(summary);
        let changed = changed.iter_mut().map(|change| &mut change.path);
        for path in changed.chain(seen.iter_mut().map(|seen| &mut seen.path)) {
            self.redact(path);
        }
        self.redact_for_model(&mut result.text);
        self.images(&mut result.images);
        if let Some(denial) = denial {
            self.denial(denial);
        }
    }

    /// Checks whether `message` contains a secret.
    pub fn contains_secret(&self, message: &Message) -> bool {
        let mut clean = message.clone();
        self.message(&mut clean);
        clean != *message
    }

    /// Replaces the secrets in a message.
    fn message(&self, message: &mut Message) {
        for part in &mut message.parts {
            match part {
                Part::Text { text } | Part::Thinking { text, .. } => self.redact(text),
                Part::ToolCall(call) => {
                    self.redact(&mut call.name);
                    call.redact_arguments(|arguments| self.redact(arguments));
                }
                Part::ToolResult(result) => {
                    self.redact(&mut result.text);
                    self.images(&mut result.images);
                }
                Part::Image(image) => self.redact(&mut image.name),
            }
        }
    }

    /// Replaces the secrets in an approval request.
    pub fn redact_approval(&self, approval: &mut ApprovalRequest) {
        let ApprovalRequest { tool, summary, reason, notes, preview, subject, .. } = approval;
        let paths = subject.files.iter_mut().map(|file| &mut file.path);
        for text in [tool, summary, reason].into_iter().chain(notes).chain(preview).chain(paths) {
            self.redact(text);
        }
    }

    fn denial(&self, denial: &mut Denial) {
        self.redact(&mut denial.summary);
        self.redact(&mut denial.reason);
    }

    fn result(&self, result: &mut RunResult) {
        match &mut result.output {
            Output::Text(text) => self.redact(text),
            Output::Value(value) => self.value(value),
        }
        for used in &mut result.tools_used {
            self.redact(&mut used.name);
            used.path.iter_mut().chain(&mut used.error).for_each(|text| self.redact(text));
        }
        result.files_modified.iter_mut().for_each(|file| self.redact(&mut file.path));
        result.executables.files.iter_mut().for_each(|path| self.redact(path));
        result.health.iter_mut().for_each(|health| self.redact_code_health(health));
        result.permission_denials.iter_mut().for_each(|denial| self.denial(denial));
        for call in &mut result.awaiting_approval {
            for text in [&mut call.tool, &mut call.summary, &mut call.reason] {
                self.redact(text);
            }
        }
        result.guardrails.iter_mut().for_each(|triggered| self.redact(&mut triggered.message));
        result.evaluation.iter_mut().for_each(|evaluation| self.evaluation(evaluation));
        result.review.iter_mut().for_each(|review| self.change_review(review));
        result.error.iter_mut().for_each(|failure| self.redact(&mut failure.message));
    }

    /// Replaces the secrets in paths and names of functions.
    pub fn redact_code_health(&self, health: &mut CodeHealth) {
        for function in &mut health.functions {
            self.redact(&mut function.path);
            self.redact(&mut function.name);
        }
        for block in &mut health.repeated_blocks {
            self.redact(&mut block.path);
            self.redact(&mut block.first_path);
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.redact(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => self.fields(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces the secrets in an object. Keys that become equal are numbered, so that no field is lost.
    fn fields(&self, fields: &mut Map<String, Value>) {
        for (mut key, mut item) in std::mem::take(fields) {
            self.redact(&mut key);
            self.value(&mut item);
            fields.insert(unique_key(fields, key), item);
        }
    }
}
