//! Runs one tool call, from the arguments of the model to its result.

use crate::call_arguments::effective_call;
use crate::call_plan::{PlannedCall, PreparedCall};
use crate::command_class::{CommandClass, CommandVerdict, Risk, classify, read_targets};
use crate::grants::Grant;
use crate::hook_dispatch::append_paragraph;
use crate::policy::is_of_confirm_sensitive;
use crate::{Engine, ResultFormat, links, with_time_limit};
use agent_core::approval::ApprovalRequest;
use agent_core::decision::{Decision, Denial, DenialReason};
use agent_core::event::Event;
use agent_core::guardrail::CallCounts;
use agent_core::language::Language;
use agent_core::message::{ToolCall, ToolResult};
use agent_messages as messages;
use agent_runtime::emitter::EmitError;
use agent_text::{diff, invisible};
use agent_tools::TypedTool;
use agent_tools::ask_user::AskUser;
use agent_tools::toolbox::DISPATCH_SUBAGENT;
use agent_tools::{Access, ChangeAnnouncer, Plan, Tool, ToolContext, ToolOutput, TouchedFile};
use agent_workspace::error::FileError;
use serde_json::Value;
use std::rc::Rc;
use tokio_util::sync::CancellationToken;

/// Name of hooks before calls as a rule that refuses a call or requires approval.
pub(super) const PRE_TOOL_USE_RULE: &str = "hooks.pre_tool_use";

/// Outcome of a call.
#[derive(Default)]
pub(super) struct CallOutcome {
    output: ToolOutput,
    denial: Option<Denial>,
    simulated: bool,
    guardrail_counts: CallCounts,
    /// Summary of the call after a hook changed its arguments.
    summary: Option<String>,
    pending: Option<Pending>,
}

/// Why a call is pending.
pub(super) enum Pending {
    /// An earlier call is pending.
    EarlierCalls,
    /// It needs the user's approval.
    Answer(Box<ApprovalRequest>),
}

impl From<ToolOutput> for CallOutcome {
    fn from(output: ToolOutput) -> Self {
        Self { output, ..Self::default() }
    }
}

/// Answer to a request for approval.
pub(super) enum Approval {
    /// The call may run.
    Granted,
    /// The call may run with these arguments.
    GrantedWith(Value),
    /// It does not run.
    Refused(Box<CallOutcome>),
}

impl<T: Into<CallOutcome>> From<T> for Approval {
    fn from(outcome: T) -> Self {
        Self::Refused(Box::new(outcome.into()))
    }
}

impl Engine {
    /// Runs a prepared call and emits its result.
    ///
    /// # Errors
    /// When the journal can no longer be written.
    pub async fn run_call(
        &self,
        prepared: &PreparedCall<'_>,
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<(), EmitError> {
        let (started, answered) = (self.source.elapsed(), self.answering.get());
        let call = prepared.call;
        let summary = prepared.start_summary();
        self.emitter.emit(Event::ToolCallStart { call: call.clone(), summary })?;
        let outcome = match &prepared.planned {
            Err(problem) => ToolOutput::error(problem.clone()).into(),
            Ok(_) if cancel.is_cancelled() => self.not_executed(interrupt).into(),
            Ok(planned) => self.decide_and_run(call, planned, interrupt, cancel).await?,
        };
        let CallOutcome { mut output, denial, simulated, guardrail_counts, summary: done, pending } = outcome;
        if let Some(pending) = pending {
            return self.report_pending(call, pending);
        }
        let mut text = self.format_result(&call.name, &output);
        self.emitter.redactor().redact_for_model(&mut text);
        if let Some(note) = self.withheld_note(&text)? {
            (text, output.images) = (note, Vec::new());
            output.seen.drain(..).for_each(|seen| self.observed_files.forget(&seen.path));
        } else if let (Ok(planned), None, None, false) = (&prepared.planned, &denial, &done, simulated) {
            self.keep_result(call, planned, &output, &text)?;
        }
        if let (Ok(planned), None, false) = (&prepared.planned, &denial, simulated) {
            self.touch_instructions(planned, &output);
        }
        for seen in &output.seen {
            self.observed_files.record(&seen.path, &seen.hash);
            self.skills.touch(&seen.path);
        }
        output.changed.iter().for_each(|change| self.skills.touch(&change.path));
        if let Some(note) = invisible::note("this result", &text) {
            append_paragraph(&mut text, &note);
        }
        let text = self.outputs.fit(&call.id, text, self.options.max_result_tokens);
        let answering = self.answering.get().saturating_sub(answered);
        let took = self.source.elapsed().saturating_sub(started).saturating_sub(answering);
        let images = output.images;
        if let Some(checkpoints) = &self.checkpoints {
            checkpoints.record_changes(&output.changed);
        }
        let event = Event::ToolCallEnd {
            name: effective_call(call).name.clone(),
            summary: done.unwrap_or_else(|| prepared.summary().to_owned()),
            result: ToolResult { call_id: call.id.clone(), text, is_error: output.is_error, images },
            changed: output.changed,
            seen: output.seen,
            denial,
            simulated,
            guardrail_counts,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        };
        self.guardrails.note(&event);
        self.emitter.emit(event).map(drop)
    }

    /// Emits that a call is pending; no later call of the answer runs.
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
        planned: &PlannedCall<'_>,
        interrupt: &CancellationToken,
        cancel: &CancellationToken,
    ) -> Result<CallOutcome, EmitError> {
        if self.is_stopped_by_hook.get() {
            return Ok(ToolOutput::error(messages::stopped_by_hook(self.policy.language())).into());
        }
        if let Some(marker) = self.echoed_marker(planned) {
            return Ok(ToolOutput::error(messages::secret_marker_refused(&marker)).into());
        }
        let cx = self.context(&call.id, cancel);
        let decision = match self.decide(&call.id, planned) {
            Decision::Deny { reason, rule } => return Ok(refusal_outcome(planned, reason, rule)),
            Decision::Ask { .. } if self.options.dry_run => Decision::Allow,
            decision => decision,
        };
        if self.options.dry_run && planned.tool.access() != Access::Read {
            return Ok(dry_run_outcome(planned, &cx, self.policy.language()));
        }
        let before = self.fire_pre_tool_hooks(planned.view(&call.id), cancel).await?;
        if cancel.is_cancelled() {
            return Ok(self.not_executed(interrupt).into());
        }
        if let Some(reason) = before.block {
            let reason = messages::hook_blocked(&reason, self.policy.language());
            return Ok(refusal_outcome(planned, reason, PRE_TOOL_USE_RULE.to_owned()));
        }
        if let Some(text) = before.result {
            let mut output = ToolOutput::ok(text);
            before.context.iter().for_each(|text| append_paragraph(&mut output.text, text));
            return Ok(output.into());
        }
        let or_asked = |decision: Decision| match before.ask {
            Some(reason) => {
                let reason = messages::hook_asks(&reason, self.policy.language());
                decision.or_stricter(Decision::Ask { reason, rule: PRE_TOOL_USE_RULE.to_owned() })
            }
            None => decision,
        };
        let Some(args) = before.updated_input else {
            let decision = or_asked(with_hook_approval(decision, before.is_approved));
            return self.ask_and_execute(planned, decision, &cx, before.context, interrupt).await;
        };
        let plan = match planned.tool.plan(&args) {
            Ok(plan) => plan,
            Err(problem) => {
                return Ok(ToolOutput::error(format!("A hook's updatedInput: {problem}")).into());
            }
        };
        let updated = PlannedCall { tool: planned.tool, args, plan };
        let decision = or_asked(with_hook_approval(self.decide(&call.id, &updated), before.is_approved));
        let mut context = vec![messages::arguments_changed(&updated.args.to_string())];
        context.extend(before.context);
        let outcome = self.ask_and_execute(&updated, decision, &cx, context, interrupt).await?;
        Ok(CallOutcome { summary: Some(updated.plan.summary), ..outcome })
    }

    /// Returns the redaction marker in the arguments of a call that would write the marker instead of the secret.
    fn echoed_marker(&self, planned: &PlannedCall<'_>) -> Option<String> {
        let changes = planned.tool.access() != Access::Read;
        changes.then(|| self.emitter.redactor().echoed_marker(&planned.args)).flatten()
    }

    /// Requests approval if needed, and runs the call if allowed. `context` is text that hooks add to the result.
    async fn ask_and_execute(
        &self,
        planned: &PlannedCall<'_>,
        decision: Decision,
        cx: &ToolContext,
        context: Vec<String>,
        interrupt: &CancellationToken,
    ) -> Result<CallOutcome, EmitError> {
        match self.apply_answer(planned.view(&cx.call_id), decision) {
            Decision::Deny { reason, rule } => Ok(refusal_outcome(planned, reason, rule)),
            Decision::Allow if self.has_pending_call.get() => Ok(pending_outcome(Pending::EarlierCalls)),
            Decision::Allow => self.execute(planned, cx, context).await,
            Decision::Ask { reason, rule } => {
                match self.ask_approver(planned, cx, reason, rule, interrupt).await {
                    Approval::Granted => self.execute(planned, cx, context).await,
                    Approval::GrantedWith(args) => self.execute_with(planned, args, cx, context).await,
                    Approval::Refused(outcome) => Ok(*outcome),
                }
            }
        }
    }

    /// Runs a call that was approved with other arguments, unless these are refused.
    async fn execute_with(
        &self,
        planned: &PlannedCall<'_>,
        args: Value,
        cx: &ToolContext,
        mut context: Vec<String>,
    ) -> Result<CallOutcome, EmitError> {
        let plan = match planned.tool.plan(&args) {
            Ok(plan) => plan,
            Err(problem) => {
                return Ok(ToolOutput::error(messages::approved_arguments_invalid(&problem)).into());
            }
        };
        let updated = PlannedCall { tool: planned.tool, args, plan };
        if let Some(marker) = self.echoed_marker(&updated) {
            return Ok(ToolOutput::error(messages::secret_marker_refused(&marker)).into());
        }
        if let Decision::Deny { reason, rule } = self.decide(&cx.call_id, &updated) {
            return Ok(refusal_outcome(&updated, reason, rule));
        }
        context.push(messages::arguments_changed(&updated.args.to_string()));
        let outcome = self.execute(&updated, cx, context).await?;
        Ok(CallOutcome { summary: Some(updated.plan.summary), ..outcome })
    }

    /// Runs an allowed call. The journal is synced to disk before a call that may have an effect.
    async fn execute(
        &self,
        planned: &PlannedCall<'_>,
        cx: &ToolContext,
        context: Vec<String>,
    ) -> Result<CallOutcome, EmitError> {
        // Hooks or the user may have changed files since the decision.
        let mut passed = match self.check_guardrails(planned.tool, Some(&planned.args), &planned.plan) {
            Ok(passed) => passed,
            Err(DenialReason { reason, rule }) => return Ok(refusal_outcome(planned, reason, rule)),
        };
        if let Some(path) = self.unsaved_file(planned, cx).await {
            let text = messages::unsaved_in_editor(&path, self.policy.language());
            return Ok(ToolOutput::error(text).into());
        }
        let mut output = match planned.tool.access() {
            Access::Read => self.call_with_time_limit(planned, cx).await,
            Access::Write | Access::Network | Access::Mcp => {
                self.emitter.sync()?;
                let output = self.call_with_time_limit(planned, cx).await;
                self.set_scan_outdated().await;
                output
            }
            Access::Execute | Access::McpWrite { .. } => self.run_and_list_changes(planned, cx).await?,
        };
        if let Some(text) = output.warning.take() {
            self.warn(text)?;
        }
        let guardrail_counts = self.count_effects(&planned.plan, &output, &passed).await;
        let remarks = passed.remarks.drain(..).filter(|_| !output.is_error);
        for text in context.into_iter().chain(remarks) {
            append_paragraph(&mut output.text, &text);
        }
        self.emitter.redactor().redact_for_model(&mut output.text);
        self.fire_post_tool_hooks(planned.view(&cx.call_id), &mut output, &cx.cancel).await?;
        Ok(CallOutcome { guardrail_counts, ..output.into() })
    }

    /// Runs a call with the time limit of calls, except for subagents, which have their own. At the limit, the result is what
    /// the call produced so far.
    pub(super) async fn call_with_time_limit(
        &self,
        planned: &PlannedCall<'_>,
        cx: &ToolContext,
    ) -> ToolOutput {
        let is_unlimited = [DISPATCH_SUBAGENT, AskUser::NAME].contains(&planned.tool.name());
        let time = self.options.timeout.filter(|_| !is_unlimited);
        let Some(time) = time else { return planned.tool.call(&planned.args, cx).await };
        let context = self.context(&cx.call_id, &cx.cancel.child_token());
        let own = ToolContext { launcher: Rc::clone(&cx.launcher), ..context };
        let output = with_time_limit(Some(time), &own.cancel, planned.tool.call(&planned.args, &own)).await;
        if !own.cancel.is_cancelled() || cx.cancel.is_cancelled() {
            return output;
        }
        let text = format!("{}\n{}", messages::call_timed_out(time), output.text);
        ToolOutput { text, is_error: true, images: Vec::new(), ..output }
    }

    /// Decides on a call, including earlier answers of the user.
    fn decide(&self, call_id: &str, planned: &PlannedCall<'_>) -> Decision {
        match self.judge(planned.tool, Some(&planned.args), &planned.plan) {
            refusal @ Decision::Deny { .. } => refusal,
            decision => self.recorded_denial(call_id).unwrap_or_else(|| self.apply_grants(decision, planned)),
        }
    }

    /// Turns a question into `Allow` if the user has allowed similar calls.
    fn apply_grants(&self, decision: Decision, planned: &PlannedCall<'_>) -> Decision {
        match &decision {
            Decision::Ask { rule, .. } if self.grants.contains(&self.grant(planned, rule)) => Decision::Allow,
            _ => decision,
        }
    }

    /// Returns the grant that covers calls similar to this one, about which `rule` asks.
    pub(super) fn grant(&self, planned: &PlannedCall<'_>, rule: &str) -> Grant {
        let resolved = self.resolved(&planned.plan);
        let verdict = resolved.command.as_deref().map(|command| self.verdict(command, &resolved));
        let class = verdict.as_ref().map(|verdict| &verdict.class);
        Grant::of(planned.tool.name(), &planned.args, &resolved, rule, class)
    }

    /// Decides on a call of `tool` with the effects `plan`, by refusals, guardrails, rules and mode. Without `args`, changes of
    /// file contents are not checked.
    pub fn judge(&self, tool: &dyn Tool, args: Option<&Value>, plan: &Plan) -> Decision {
        let resolved = self.resolved(plan);
        let command = resolved.command.as_deref().map(|command| self.verdict(command, &resolved));
        match self.policy.decide(tool.name(), tool.access(), &resolved, command.as_ref()) {
            refused @ Decision::Deny { .. } => refused,
            decision => self.check_guardrails(tool, args, plan).map_or_else(Decision::from, |_| decision),
        }
    }

    /// Returns the plan with all files that it names, each as written and with resolved links.
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

    /// Classifies a command. A command that could show files that the file tools refuse needs approval.
    fn verdict(&self, command: &str, plan: &Plan) -> CommandVerdict {
        let verdict = classify(command, &self.commands);
        if verdict.class < CommandClass::Ask && self.may_read_protected(command, plan) {
            return CommandVerdict::asked(Risk::Protected);
        }
        verdict
    }

    /// Checks whether a read-only command may follow a link out of the workspace or read sensitive files.
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

    /// Checks whether a call needs approval in the current state.
    pub(super) fn needs_approval(&self, prepared: &PreparedCall<'_>) -> bool {
        let decided = prepared.planned.as_ref().map(|planned| self.decide(&prepared.call.id, planned));
        !self.options.dry_run && matches!(decided, Ok(Decision::Ask { .. }))
    }

    pub(super) fn not_executed(&self, interrupt: &CancellationToken) -> ToolOutput {
        ToolOutput::error(messages::not_executed(interrupt.is_cancelled(), self.policy.language()))
    }

    pub(super) fn context(&self, call_id: &str, cancel: &CancellationToken) -> ToolContext {
        ToolContext {
            workspace: Rc::clone(&self.workspace),
            launcher: Rc::clone(&self.launcher),
            observed_files: Rc::clone(&self.observed_files),
            background: Rc::clone(&self.background),
            foreground: self.foreground.clone(),
            outputs: Rc::clone(&self.outputs),
            images: self.images.clone(),
            hidden: self.sensitive_filter(),
            cancel: cancel.clone(),
            call_id: call_id.to_owned(),
            announce: self.announcer(call_id.to_owned()),
        }
    }

    /// Creates the callback that emits the planned file changes of a call.
    fn announcer(&self, call_id: String) -> ChangeAnnouncer {
        let emitter = Rc::clone(&self.emitter);
        Box::new(move |changes| {
            emitter.emit(Event::FileChangesPlanned { call_id: call_id.clone(), changes }).map(drop)
        })
    }

    /// Formats a result for the model in the configured form.
    fn format_result(&self, tool: &str, output: &ToolOutput) -> String {
        match (self.options.result_format, output.is_error) {
            (ResultFormat::Tagged, _) => output.tagged(tool),
            (ResultFormat::Plain, true) => format!("Error: {}", output.text),
            (ResultFormat::Plain, false) => output.text.clone(),
        }
    }
}

/// Allows a call that the hooks of the client have approved, where nothing but the mode `confirm-sensitive` requires approval.
fn with_hook_approval(decision: Decision, is_approved: bool) -> Decision {
    match decision {
        Decision::Ask { rule, .. } if is_approved && is_of_confirm_sensitive(&rule) => Decision::Allow,
        decision => decision,
    }
}

pub(super) fn pending_outcome(pending: Pending) -> CallOutcome {
    CallOutcome { pending: Some(pending), ..CallOutcome::default() }
}

pub(super) fn refusal_outcome(planned: &PlannedCall<'_>, reason: String, rule: String) -> CallOutcome {
    let tool = planned.tool.name().to_owned();
    let denial = Denial { tool, summary: planned.plan.summary.clone(), reason: reason.clone(), rule };
    CallOutcome { denial: Some(denial), ..ToolOutput::error(reason).into() }
}

fn dry_run_outcome(planned: &PlannedCall<'_>, cx: &ToolContext, language: Language) -> CallOutcome {
    let mut text = messages::would_execute(planned.tool.name(), &planned.plan.summary, language);
    match planned.tool.preview(&planned.args, cx) {
        Ok(Some(preview)) => append_paragraph(&mut text, &diff::truncate(&preview)),
        Ok(None) => {}
        // The call may depend on effects of earlier simulated calls, so this is not an error.
        Err(problem) => append_paragraph(&mut text, &messages::would_fail(&problem, language)),
    }
    CallOutcome { simulated: true, ..ToolOutput::ok(text).into() }
}
