//! Requests approval for a call from the approver, and handles its answer.

use crate::approver::{ApproverAnswer, NoApprover, Question};
use crate::call::{Approval, CallOutcome, PRE_TOOL_USE_RULE, Pending, pending_outcome, refusal_outcome};
use crate::call_plan::PlannedCall;
use crate::policy::{DECLINED_RULE, MODE_RULE_PREFIX};
use crate::{Engine, links};
use agent_core::message::CallKey;
use agent_mcp::definition::visit_texts;
use agent_messages as messages;
use agent_text::lines::{QUOTE_CHARS, one_line};
use agent_tools::{ToolContext, ToolOutput};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

impl Engine {
    /// Requests approval while the run has time. A call that is certain to fail is not asked about.
    /// An approval becomes invalid when the targets of links change before the answer.
    pub(super) async fn ask_approver(
        &self,
        planned: &PlannedCall<'_>,
        cx: &ToolContext,
        reason: String,
        rule: String,
        interrupt: &CancellationToken,
    ) -> Approval {
        let tool = planned.tool.name();
        let preview = match planned.tool.preview(&planned.args, cx) {
            Ok(preview) => preview.or_else(|| hidden_arguments(&planned.args, &planned.plan.summary)),
            Err(problem) => return ToolOutput::error(problem).into(),
        };
        let (links, grant) = (self.links(&planned.plan), self.grant(planned, &rule));
        let redactor = self.emitter.redactor();
        let question = Question {
            call: CallKey::new(self.subagent.as_deref(), &cx.call_id),
            tool: tool.to_owned(),
            arguments: self.redacted(&planned.args),
            summary: redactor.text(&planned.plan.summary).into_owned(),
            reason: redactor.text(&reason).into_owned(),
            rule: rule.clone(),
            notes: links::notes(&links, self.policy.language())
                .iter()
                .map(|note| redactor.text(note).into_owned())
                .collect(),
            preview: preview.map(|preview| redactor.text(&preview).into_owned()),
            always_scope: redactor.text(&grant.description(self.policy.language())).into_owned(),
            rule_for_good: grant.rule().filter(|_| rule.starts_with(MODE_RULE_PREFIX)),
        };
        let asked = self.source.elapsed();
        let answer = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return self.not_executed(interrupt).into(),
            answer = self.approver.ask(&question) => answer,
        };
        let waited = self.source.elapsed().saturating_sub(asked);
        self.answering.set(self.answering.get().saturating_add(waited));
        match answer {
            ApproverAnswer::Yes | ApproverAnswer::Always if self.links(&planned.plan) != links => {
                ToolOutput::error(messages::links_changed(self.policy.language())).into()
            }
            ApproverAnswer::Yes => Approval::Granted,
            ApproverAnswer::YesWith(args) => Approval::GrantedWith(args),
            ApproverAnswer::Always => {
                self.grants.add(grant);
                Approval::Granted
            }
            ApproverAnswer::No(reason) => {
                let reason = messages::declined(reason.as_deref(), self.policy.language());
                refusal_outcome(planned, reason, DECLINED_RULE.to_owned()).into()
            }
            ApproverAnswer::NoApprover => self.without_approver(planned, &question, rule, &cx.call_id).into(),
            ApproverAnswer::Abort => {
                interrupt.cancel();
                self.not_executed(interrupt).into()
            }
        }
    }

    /// Refuses a call without an approver or makes it pending, depending on the settings.
    fn without_approver(
        &self,
        planned: &PlannedCall<'_>,
        question: &Question,
        rule: String,
        call_id: &str,
    ) -> CallOutcome {
        let by_hook = (rule == PRE_TOOL_USE_RULE).then(|| format!("{rule}: {}", question.reason));
        let reason = self.policy.no_approver_message(planned.tool.name(), by_hook.as_ref().unwrap_or(&rule));
        if self.options.no_approver == NoApprover::Refuse {
            return refusal_outcome(planned, reason, rule);
        }
        match self.pending_approval(planned.view(call_id), question) {
            Some(approval) => pending_outcome(Pending::Answer(Box::new(approval))),
            None => {
                refusal_outcome(planned, messages::cannot_be_pending(&reason, self.policy.language()), rule)
            }
        }
    }

    /// Returns arguments without secrets.
    fn redacted(&self, args: &Value) -> Value {
        let mut args = args.clone();
        visit_texts(&mut args, &mut |text| self.emitter.redactor().redact(text));
        args
    }
}

/// Returns the arguments of a call as the preview of a tool that has none, unless its summary shows each text among them.
fn hidden_arguments(args: &Value, summary: &str) -> Option<String> {
    let mut is_hidden = false;
    visit_texts(&mut args.clone(), &mut |text| {
        let shown = one_line(text, usize::MAX);
        is_hidden |= shown.len() > QUOTE_CHARS || !summary.contains(&shown);
    });
    is_hidden.then(|| serde_json::to_string_pretty(args).unwrap_or_default())
}
