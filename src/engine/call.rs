//! One tool call, from the model's words to its result.

use crate::core::approval::ApprovalRequest;
use crate::core::decision::{Decision, Denial, DenialReason};
use crate::core::event::Event;
use crate::core::guardrail::CallCounts;
use crate::core::language::Language;
use crate::core::message::{ToolCall, ToolResult};
use crate::engine::approver::{ApproverAnswer, NoApprover, Question};
use crate::engine::call_arguments;
use crate::engine::command_class::{CommandClass, CommandVerdict, classify, read_targets};
use crate::engine::grants::Grant;
use crate::engine::hook_dispatch::{CallView, append_paragraph};
use crate::engine::policy::DECLINED_RULE;
use crate::engine::{Engine, ResultFormat, links, with_time_limit};
use crate::messages;
use crate::runtime::emitter::EmitError;
use crate::text::{diff, invisible};
use crate::tools::toolbox::DISPATCH_SUBAGENT;
use crate::tools::{Access, ChangeAnnouncer, Plan, Tool, ToolContext, ToolOutput, TouchedFile};
use crate::workspace::error::FileError;
use serde_json::Value;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// A call whose arguments were read and planned, or why they could not be.
pub struct PreparedCall<'a> {
    /// The call as the model made it.
    pub call: &'a ToolCall,
    /// The tool's kind of effect; the most careful one when there is no such tool.
    pub access: Access,
    /// The tool, its arguments and its plan; or what the model is told.
    ready: Result<PlannedCall<'a>, String>,
}

/// A call that can be decided on.
#[derive(Clone)]
pub(super) struct PlannedCall<'a> {
    tool: &'a dyn Tool,
    args: Value,
    plan: Plan,
}

/// What became of a call.
#[derive(Default)]
struct CallOutcome {
    output: ToolOutput,
    denial: Option<Denial>,
    simulated: bool,
    counted: CallCounts,
    /// What it did instead of what was asked, one line, where a hook changed the arguments.
    summary: Option<String>,
    pending: Option<Pending>,
}

/// What a call waits for.
enum Pending {
    /// The calls before it.
    EarlierCalls,
    /// A person's answer.
    Answer(Box<ApprovalRequest>),
}

impl From<ToolOutput> for CallOutcome {
    fn from(output: ToolOutput) -> Self {
        Self { output, ..Self::default() }
    }
}

impl PlannedCall<'_> {
    fn view(&self) -> CallView<'_> {
        CallView { tool: self.tool.name(), access: self.tool.access(), args: &self.args, plan: &self.plan }
    }
}

impl PreparedCall<'_> {
    /// The paths the call would change.
    pub fn written_paths(&self) -> impl Iterator<Item = &str> {
        let touched_files =
            self.ready.as_ref().map(|ready| ready.plan.touched_files.as_slice()).unwrap_or_default();
        touched_files.iter().filter(|touch| touch.write).map(|touch| touch.path.as_str())
    }

    fn summary(&self) -> &str {
        self.ready.as_ref().map(|ready| ready.plan.summary.as_str()).unwrap_or_default()
    }
}

impl Engine {
    /// Looks the tool up and reads the arguments; has no effect.
    pub fn prepare<'a>(&'a self, call: &'a ToolCall) -> PreparedCall<'a> {
        let tool = self.toolbox.get(&call.name);
        let access = tool.as_ref().map_or(Access::Execute, |tool| tool.access());
        let ready = tool.and_then(|tool| {
            let args = call_arguments::parse(&call.arguments)?;
            Ok(PlannedCall { tool, plan: tool.plan(&args)?, args })
        });
        PreparedCall { call, access, ready }
    }

    /// Runs a prepared call and tells its result.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub async fn run_call(
        &self,
        prepared: &PreparedCall<'_>,
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let started = self.source.elapsed();
        let call = prepared.call;
        let summary = prepared.summary().to_owned();
        self.emitter.emit(Event::ToolCallStart { call: call.clone(), summary: summary.clone() })?;
        let outcome = match &prepared.ready {
            Err(problem) => ToolOutput::error(problem.clone()).into(),
            Ok(_) if cancel.is_cancelled() => self.not_executed(interrupt).into(),
            Ok(ready) => self.decide_and_run(call, ready, interrupt, cancel).await?,
        };
        let CallOutcome { mut output, denial, simulated, counted, summary: done, pending } = outcome;
        if let Some(pending) = pending {
            return self.report_pending(call, pending);
        }
        let mut text = self.format_result(&call.name, &output);
        self.emitter.redactor().redact_for_model(&mut text);
        if let Some(note) = self.withheld_note(&text)? {
            text = note;
            output.seen.drain(..).for_each(|seen| self.observed_files.forget(&seen.path));
        }
        for seen in &output.seen {
            self.observed_files.record(&seen.path, &seen.hash);
        }
        if let Some(note) = invisible::note("this result", &text) {
            append_paragraph(&mut text, &note);
        }
        let text = self.outputs.fit(&call.id, text, self.options.max_result_tokens);
        let took = self.source.elapsed().saturating_sub(started);
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.record_changes(&output.changed);
        }
        let event = Event::ToolCallEnd {
            name: call.name.clone(),
            summary: done.unwrap_or(summary),
            result: ToolResult { call_id: call.id.clone(), text, is_error: output.is_error },
            changed: output.changed,
            seen: output.seen,
            denial,
            simulated,
            counted,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        self.guardrails.note(&event);
        self.emitter.emit(event).map(drop)
    }

    /// Tells that a call waits: from here on no call of the answer runs.
    fn report_pending(&self, call: &ToolCall, pending: Pending) -> Result<(), EmitError> {
        self.has_pending_call.set(true);
        let approval = match pending {
            Pending::EarlierCalls => None,
            Pending::Answer(approval) => Some(*approval),
        };
        self.emitter.emit(Event::ToolCallPending { call_id: call.id.clone(), approval }).map(drop)
    }

    async fn decide_and_run(
        &self,
        call: &ToolCall,
        ready: &PlannedCall<'_>,
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, EmitError> {
        if self.is_stopped_by_hook.get() {
            return Ok(ToolOutput::error(messages::stopped_by_hook(self.policy.language())).into());
        }
        if let Some(marker) = self.echoed_marker(ready) {
            return Ok(ToolOutput::error(messages::secret_marker_refused(&marker)).into());
        }
        let cx = self.context(&call.id, cancel);
        let decision = match self.decide(&call.id, ready) {
            Decision::Deny { reason, rule } => return Ok(refusal_outcome(ready, reason, rule)),
            Decision::Ask { .. } if self.options.dry_run => Decision::Allow,
            decision => decision,
        };
        if self.options.dry_run && ready.tool.access() != Access::Read {
            return Ok(dry_run_outcome(ready, &cx, self.policy.language()));
        }
        let before = self.fire_pre_tool_hooks(ready.view(), cancel).await?;
        if cancel.is_cancelled() {
            return Ok(self.not_executed(interrupt).into());
        }
        if let Some(reason) = before.block {
            let reason = messages::hook_blocked(&reason, self.policy.language());
            return Ok(refusal_outcome(ready, reason, "hooks.pre_tool_use".to_owned()));
        }
        if let Some(text) = before.result {
            let mut output = ToolOutput::ok(text);
            before.context.iter().for_each(|said| append_paragraph(&mut output.text, said));
            return Ok(output.into());
        }
        let Some(args) = before.updated_input else {
            return self.ask_and_execute(ready, decision, &cx, before.context, interrupt).await;
        };
        let plan = match ready.tool.plan(&args) {
            Ok(plan) => plan,
            Err(problem) => {
                return Ok(ToolOutput::error(format!("A hook's updatedInput: {problem}")).into());
            }
        };
        let updated = PlannedCall { tool: ready.tool, args, plan };
        let decision = self.decide(&call.id, &updated);
        let mut context = vec![messages::arguments_changed(&updated.args.to_string())];
        context.extend(before.context);
        let outcome = self.ask_and_execute(&updated, decision, &cx, context, interrupt).await?;
        Ok(CallOutcome { summary: Some(updated.plan.summary), ..outcome })
    }

    /// The marker of a secret in a call that would put it where the secret stands.
    fn echoed_marker(&self, ready: &PlannedCall<'_>) -> Option<String> {
        let changes = ready.tool.access() != Access::Read;
        changes.then(|| self.emitter.redactor().echoed_marker(&ready.args)).flatten()
    }

    /// Asks where that is the decision, and runs what may run. `context` is what hooks add to the result.
    async fn ask_and_execute(
        &self,
        ready: &PlannedCall<'_>,
        decision: Decision,
        cx: &ToolContext,
        context: Vec<String>,
        interrupt: &CancellationToken,
    ) -> Result<CallOutcome, EmitError> {
        match self.apply_answer(&cx.call_id, ready.view(), decision) {
            Decision::Deny { reason, rule } => Ok(refusal_outcome(ready, reason, rule)),
            Decision::Allow if self.has_pending_call.get() => Ok(pending_outcome(Pending::EarlierCalls)),
            Decision::Allow => self.execute(ready, cx, context).await,
            Decision::Ask { reason, rule } => {
                match self.ask_approver(ready, cx, (reason, rule), interrupt).await {
                    Some(outcome) => Ok(outcome),
                    None => self.execute(ready, cx, context).await,
                }
            }
        }
    }

    /// Runs a call that may run. The journal is durable before anything that may have an effect.
    async fn execute(
        &self,
        ready: &PlannedCall<'_>,
        cx: &ToolContext,
        context: Vec<String>,
    ) -> Result<CallOutcome, EmitError> {
        // Hooks, and the person who was asked, may have changed files since the decision.
        let mut passed = match self.check_guardrails(ready.tool, Some(&ready.args), &ready.plan) {
            Ok(passed) => passed,
            Err(DenialReason { reason, rule }) => return Ok(refusal_outcome(ready, reason, rule)),
        };
        let mut output = match ready.tool.access() {
            Access::Read => self.call_with_time_limit(ready, cx).await,
            Access::Write | Access::Network => {
                self.emitter.sync()?;
                self.call_with_time_limit(ready, cx).await
            }
            Access::Execute => self.run_and_list_changes(ready, cx).await?,
        };
        if let Some(text) = output.warning.take() {
            self.warn(text)?;
        }
        let counted = self.count_effects(&ready.plan, &output, &passed).await;
        let remarks = passed.remarks.drain(..).filter(|_| !output.is_error);
        for text in context.into_iter().chain(remarks) {
            append_paragraph(&mut output.text, &text);
        }
        self.emitter.redactor().redact_for_model(&mut output.text);
        self.fire_post_tool_hooks(ready.view(), &mut output, &cx.cancel).await?;
        Ok(CallOutcome { counted, ..output.into() })
    }

    /// Runs a call within the time that each has but a subagent, which has its own. One that is ended says what it has.
    pub(super) async fn call_with_time_limit(&self, ready: &PlannedCall<'_>, cx: &ToolContext) -> ToolOutput {
        let time = self.options.timeout.filter(|_| ready.tool.name() != DISPATCH_SUBAGENT);
        let Some(time) = time else { return ready.tool.call(&ready.args, cx).await };
        let context = self.context(&cx.call_id, &cx.cancel.child_token());
        let own = ToolContext { launcher: Rc::clone(&cx.launcher), ..context };
        let output = with_time_limit(Some(time), &own.cancel, ready.tool.call(&ready.args, &own)).await;
        if !own.cancel.is_cancelled() || cx.cancel.is_cancelled() {
            return output;
        }
        let text = format!("{}\n{}", messages::call_timed_out(time), output.text);
        ToolOutput { text, is_error: true, ..output }
    }

    /// What may happen to a call, what the person has answered before included.
    fn decide(&self, call_id: &str, ready: &PlannedCall<'_>) -> Decision {
        match self.judge(ready.tool, Some(&ready.args), &ready.plan) {
            refusal @ Decision::Deny { .. } => refusal,
            decision => self.recorded_denial(call_id).unwrap_or_else(|| self.apply_grants(decision, ready)),
        }
    }

    /// The decision, where the person has not allowed the call until the run ends.
    fn apply_grants(&self, decision: Decision, ready: &PlannedCall<'_>) -> Decision {
        let is_asked = matches!(decision, Decision::Ask { .. });
        if is_asked && self.grants.contains(&self.grant(ready)) { Decision::Allow } else { decision }
    }

    /// The calls like this one.
    fn grant(&self, ready: &PlannedCall<'_>) -> Grant {
        Grant::of(ready.tool.name(), &ready.args, &self.resolved(&ready.plan))
    }

    /// What may happen to a call of `tool` that would do what `plan` says, by refusals, guardrails, rules and mode. What
    /// it would make of files is known only with its arguments.
    pub fn judge(&self, tool: &dyn Tool, args: Option<&Value>, plan: &Plan) -> Decision {
        let resolved = self.resolved(plan);
        let command = resolved.command.as_deref().map(|command| self.verdict(command, &resolved));
        match self.policy.decide(tool.name(), tool.access(), &resolved, command.as_ref()) {
            refused @ Decision::Deny { .. } => refused,
            decision => self.check_guardrails(tool, args, plan).map_or_else(Decision::from, |_| decision),
        }
    }

    /// The plan with all files that it names, each by its name and by where its links lead.
    pub fn resolved(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        plan.touched_files = links::touched_files(&plan);
        for touch in plan.touched_files.clone() {
            if let Some(real) = self.real_path(&touch.path).filter(|real| real.as_str() != touch.path) {
                plan.touched_files.push(TouchedFile { path: real.as_str().to_owned(), write: touch.write });
            }
        }
        plan
    }

    /// What is known of a command. One that would show more than the file tools do is asked.
    fn verdict(&self, command: &str, plan: &Plan) -> CommandVerdict {
        let verdict = classify(command, &self.commands);
        if verdict.class < CommandClass::Ask && self.may_read_protected(command, plan) {
            return CommandVerdict { class: CommandClass::Ask, is_known: false };
        }
        verdict
    }

    /// Whether one of the commands that only read goes through a link that leads out, or through files that may be
    /// sensitive.
    fn may_read_protected(&self, command: &str, plan: &Plan) -> bool {
        read_targets(command).iter().any(|reading| {
            let is_beyond = |word: &String| {
                let Ok(path) = self.workspace.path(&plan.path_from_root(word)) else { return false };
                match self.workspace.resolve(&path) {
                    Ok(real) => reading.follows_links && self.workspace.is_directory(&real),
                    Err(error) => !matches!(error, FileError::Missing(_) | FileError::NotDirectory(_)),
                }
            };
            (reading.is_recursive && self.policy.has_sensitive_files()) || reading.words.iter().any(is_beyond)
        })
    }

    /// Whether a person would be asked about a call, as things stand.
    pub(super) fn needs_approval(&self, prepared: &PreparedCall<'_>) -> bool {
        let decided = prepared.ready.as_ref().map(|ready| self.decide(&prepared.call.id, ready));
        !self.options.dry_run && matches!(decided, Ok(Decision::Ask { .. }))
    }

    /// Asks, for as long as the run has time; `None` means yes. Nobody is asked about a call that could only fail, and
    /// a yes is for the files that the paths led to when it was asked.
    async fn ask_approver(
        &self,
        ready: &PlannedCall<'_>,
        cx: &ToolContext,
        (reason, rule): (String, String),
        interrupt: &CancellationToken,
    ) -> Option<CallOutcome> {
        let tool = ready.tool.name();
        let preview = match ready.tool.preview(&ready.args, cx) {
            Ok(preview) => preview,
            Err(problem) => return Some(ToolOutput::error(problem).into()),
        };
        let (links, grant) = (self.links(&ready.plan), self.grant(ready));
        let redactor = self.emitter.redactor();
        let question = Question {
            tool: tool.to_owned(),
            summary: redactor.text(&ready.plan.summary).into_owned(),
            reason: redactor.text(&reason).into_owned(),
            notes: links::notes(&links, self.policy.language())
                .iter()
                .map(|note| redactor.text(note).into_owned())
                .collect(),
            preview: preview.map(|preview| redactor.text(&preview).into_owned()),
            always_scope: redactor.text(&grant.description(self.policy.language())).into_owned(),
        };
        let answer = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Some(self.not_executed(interrupt).into()),
            answer = self.approver.ask(&question) => answer,
        };
        match answer {
            ApproverAnswer::Yes | ApproverAnswer::Always if self.links(&ready.plan) != links => {
                Some(ToolOutput::error(messages::links_changed(self.policy.language())).into())
            }
            ApproverAnswer::Yes => None,
            ApproverAnswer::Always => {
                self.grants.add(grant);
                None
            }
            ApproverAnswer::No(reason) => {
                let reason = messages::declined(reason.as_deref(), self.policy.language());
                Some(refusal_outcome(ready, reason, DECLINED_RULE.to_owned()))
            }
            ApproverAnswer::NoApprover => Some(self.without_approver(ready, &question, rule, &cx.call_id)),
            ApproverAnswer::Abort => {
                interrupt.cancel();
                Some(self.not_executed(interrupt).into())
            }
        }
    }

    /// What becomes of a call that nobody could be asked about.
    fn without_approver(
        &self,
        ready: &PlannedCall<'_>,
        question: &Question,
        rule: String,
        call_id: &str,
    ) -> CallOutcome {
        let reason = self.policy.no_approver_message(ready.tool.name(), &rule);
        if self.options.no_approver == NoApprover::Refuse {
            return refusal_outcome(ready, reason, rule);
        }
        match self.pending_approval(call_id, ready.view(), question) {
            Some(approval) => pending_outcome(Pending::Answer(Box::new(approval))),
            None => {
                refusal_outcome(ready, messages::cannot_be_pending(&reason, self.policy.language()), rule)
            }
        }
    }

    fn not_executed(&self, interrupt: &CancellationToken) -> ToolOutput {
        ToolOutput::error(messages::not_executed(interrupt.is_cancelled(), self.policy.language()))
    }

    pub(super) fn context(&self, call_id: &str, cancel: &CancellationToken) -> ToolContext {
        ToolContext {
            workspace: Rc::clone(&self.workspace),
            launcher: Rc::clone(&self.launcher),
            observed_files: Rc::clone(&self.observed_files),
            background: Rc::clone(&self.background),
            outputs: Rc::clone(&self.outputs),
            hidden: self.sensitive_filter(),
            cancel: cancel.clone(),
            call_id: call_id.to_owned(),
            announce: self.announcer(call_id.to_owned()),
        }
    }

    /// Tells what a call is about to do to files.
    fn announcer(&self, call_id: String) -> ChangeAnnouncer {
        let emitter = Rc::clone(&self.emitter);
        Box::new(move |changes| emitter.emit(Event::Changing { call_id: call_id.clone(), changes }).map(drop))
    }

    /// The text the model reads, in the configured form.
    fn format_result(&self, tool: &str, output: &ToolOutput) -> String {
        match (self.options.result_format, output.is_error) {
            (ResultFormat::Tagged, _) => output.tagged(tool),
            (ResultFormat::Plain, true) => format!("Error: {}", output.text),
            (ResultFormat::Plain, false) => output.text.clone(),
        }
    }
}

fn pending_outcome(pending: Pending) -> CallOutcome {
    CallOutcome { pending: Some(pending), ..CallOutcome::default() }
}

fn refusal_outcome(ready: &PlannedCall<'_>, reason: String, rule: String) -> CallOutcome {
    let tool = ready.tool.name().to_owned();
    let denial = Denial { tool, summary: ready.plan.summary.clone(), reason: reason.clone(), rule };
    CallOutcome { denial: Some(denial), ..ToolOutput::error(reason).into() }
}

fn dry_run_outcome(ready: &PlannedCall<'_>, cx: &ToolContext, language: Language) -> CallOutcome {
    let mut text = messages::would_execute(ready.tool.name(), &ready.plan.summary, language);
    match ready.tool.preview(&ready.args, cx) {
        Ok(Some(preview)) => append_paragraph(&mut text, &diff::truncate(&preview)),
        Ok(None) => {}
        // What earlier calls only pretended to do may be what it lacks, so this is no error.
        Err(problem) => append_paragraph(&mut text, &messages::would_fail(&problem, language)),
    }
    CallOutcome { simulated: true, ..ToolOutput::ok(text).into() }
}
