//! Creates approval requests that are answered between runs, and checks that an answer still matches its call.

use crate::approver::Question;
use crate::hook_dispatch::CallView;
use crate::policy::DECLINED_RULE;
use crate::{Engine, links};
use agent_core::approval::{ApprovalAnswer, ApprovalRequest, ApprovalSubject, FileVersion};
use agent_core::decision::Decision;
use agent_journal::approvals::RecordedAnswer;
use agent_messages as messages;
use agent_terminal as terminal;
use agent_workspace::file;
use std::borrow::Cow;

/// Rule name of the refusal of a call that differs from the approved one.
const CALL_CHANGED_RULE: &str = "approval";

impl Engine {
    /// Creates the stored approval request for `question`; returns `None` when the call contains a secret, because secrets
    /// are never stored.
    pub(super) fn pending_approval(
        &self,
        call: CallView<'_>,
        question: &Question,
    ) -> Option<ApprovalRequest> {
        let arguments = call.args.to_string();
        let is_plain = matches!(self.emitter.redactor().text(&arguments), Cow::Borrowed(_));
        is_plain.then(|| ApprovalRequest {
            id: self.source.short_id(),
            call_id: call.call_id.to_owned(),
            tool: question.tool.clone(),
            summary: question.summary.clone(),
            reason: question.reason.clone(),
            notes: question.notes.clone(),
            preview: question.preview.as_deref().map(|text| terminal::sanitize(text).into_owned()),
            asked_ms: u64::try_from(self.source.unix_time().as_millis()).unwrap_or(u64::MAX),
            subject: self.subject(call),
        })
    }

    /// Returns the refusal of a call that the user has denied.
    pub(super) fn recorded_denial(&self, call_id: &str) -> Option<Decision> {
        let (_, RecordedAnswer { answer: ApprovalAnswer::Deny { reason }, .. }) =
            self.approvals.answered(call_id)?
        else {
            return None;
        };
        let reason = messages::declined(reason.as_deref(), self.policy.language());
        Some(Decision::Deny { reason, rule: DECLINED_RULE.to_owned() })
    }

    /// Applies the user's answer to the decision on a call: it is allowed if it is still the approved call.
    pub(super) fn apply_answer(&self, call: CallView<'_>, decision: Decision) -> Decision {
        let (Decision::Allow | Decision::Ask { .. }, Some((request, recorded))) =
            (&decision, self.approvals.answered(call.call_id))
        else {
            return decision;
        };
        match self.changed_since_asked(call, request, recorded) {
            None => Decision::Allow,
            Some(what) => Decision::Deny {
                reason: messages::approved_call_changed(&what, self.policy.language()),
                rule: CALL_CHANGED_RULE.to_owned(),
            },
        }
    }

    /// Describes the first difference between the call now and when approval was requested.
    fn changed_since_asked(
        &self,
        call: CallView<'_>,
        request: &ApprovalRequest,
        recorded: &RecordedAnswer,
    ) -> Option<String> {
        let (then, now) = (&request.subject, self.subject(call));
        let language = self.policy.language();
        if !recorded.is_genuine {
            return Some(messages::answer_mismatch(language).to_owned());
        }
        if request.tool != call.tool {
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

    /// Returns the subject of an approval: hashes of the arguments, the link targets and the files to be written.
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

    /// Returns the hash of a file's content, if the file can be read.
    fn file_hash(&self, path: &str) -> Option<String> {
        let opened = self.workspace.open_file(&self.workspace.path(path).ok()?).ok()?;
        file::hash_reader(opened.file).ok()
    }
}
