//! Calls that wait for an answer which comes between runs: what is asked, and whether the answer is still for the call.

use crate::core::approval::{ApprovalAnswer, ApprovalRequest, ApprovalSubject, FileVersion};
use crate::core::decision::Decision;
use crate::engine::approver::Question;
use crate::engine::hook_dispatch::CallView;
use crate::engine::policy::DECLINED_RULE;
use crate::engine::{Engine, links};
use crate::journal::approvals::RecordedAnswer;
use crate::messages;
use crate::terminal;
use crate::workspace::file;
use std::borrow::Cow;

/// What stands in place of a rule where a call is not what the person approved.
const CALL_CHANGED_RULE: &str = "approval";

impl Engine {
    /// What is kept of `question`, to be answered later; nothing where the call holds a secret, which nothing keeps.
    pub(super) fn pending_approval(
        &self,
        call_id: &str,
        call: CallView<'_>,
        question: &Question,
    ) -> Option<ApprovalRequest> {
        let arguments = call.args.to_string();
        let is_plain = matches!(self.emitter.redactor().text(&arguments), Cow::Borrowed(_));
        is_plain.then(|| ApprovalRequest {
            id: self.source.short_id(),
            call_id: call_id.to_owned(),
            tool: question.tool.clone(),
            summary: question.summary.clone(),
            reason: question.reason.clone(),
            notes: question.notes.clone(),
            preview: question.preview.as_deref().map(terminal::preview),
            asked_ms: u64::try_from(self.source.unix_time().as_millis()).unwrap_or(u64::MAX),
            subject: self.subject(call),
        })
    }

    /// The refusal of a call that the person has denied.
    pub(super) fn recorded_denial(&self, call_id: &str) -> Option<Decision> {
        let (_, RecordedAnswer { answer: ApprovalAnswer::Deny { reason }, .. }) =
            self.approvals.answered(call_id)?
        else {
            return None;
        };
        let reason = messages::declined(reason.as_deref(), self.policy.language());
        Some(Decision::Deny { reason, rule: DECLINED_RULE.to_owned() })
    }

    /// The decision about a call, with what the person has answered about it: it runs if it is what was approved.
    pub(super) fn apply_answer(&self, call_id: &str, call: CallView<'_>, decision: Decision) -> Decision {
        let (Decision::Allow | Decision::Ask { .. }, Some((asked, answered))) =
            (&decision, self.approvals.answered(call_id))
        else {
            return decision;
        };
        match self.changed_since_asked(call, asked, answered) {
            None => Decision::Allow,
            Some(what) => Decision::Deny {
                reason: messages::approved_call_changed(&what, self.policy.language()),
                rule: CALL_CHANGED_RULE.to_owned(),
            },
        }
    }

    /// What is no longer as it was when the person was asked.
    fn changed_since_asked(
        &self,
        call: CallView<'_>,
        asked: &ApprovalRequest,
        answered: &RecordedAnswer,
    ) -> Option<String> {
        let (then, now) = (&asked.subject, self.subject(call));
        let language = self.policy.language();
        if !answered.is_genuine {
            return Some(messages::answer_mismatch(language).to_owned());
        }
        if asked.tool != call.tool {
            return Some(messages::tool_changed(language).to_owned());
        }
        if then.arguments != now.arguments {
            return Some(messages::approved_arguments_changed(language).to_owned());
        }
        if then.links != now.links {
            return Some(messages::paths_changed(language).to_owned());
        }
        let file = now.files.iter().find(|file| !then.files.contains(file))?;
        Some(messages::file_changed(&file.path, language))
    }

    /// What an answer about this call is for.
    fn subject(&self, call: CallView<'_>) -> ApprovalSubject {
        let written = call.plan.touched_files.iter().filter(|touch| touch.write);
        ApprovalSubject {
            arguments: file::hash(call.args.to_string().as_bytes()),
            links: links::digest(&self.links(call.plan)),
            files: written
                .map(|touch| FileVersion { path: touch.path.clone(), hash: self.file_hash(&touch.path) })
                .collect(),
        }
    }

    /// The hash of a file's content, where there is a file that can be read.
    fn file_hash(&self, path: &str) -> Option<String> {
        let opened = self.workspace.open_file(&self.workspace.path(path).ok()?).ok()?;
        file::hash_reader(opened.file).ok()
    }
}
