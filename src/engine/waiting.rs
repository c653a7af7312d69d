//! Calls that wait for an answer which comes between runs: what is asked, and whether the answer is still for the call.

use crate::approval::{Answer, Approval, FileVersion, Subject};
use crate::decision::Decision;
use crate::engine::approve::Question;
use crate::engine::fire::Told;
use crate::engine::policy::SAID_NO_RULE;
use crate::engine::{Engine, links};
use crate::journal::approvals::Answered;
use crate::messages;
use crate::terminal;
use crate::workspace::file;
use std::borrow::Cow;

/// What stands in place of a rule where a call is not what the person approved.
const OTHER_CALL_RULE: &str = "approval";

impl Engine {
    /// What is kept of `question`, to be answered later; nothing where the call holds a secret, which nothing keeps.
    pub(super) fn to_be_answered(
        &self,
        call_id: &str,
        told: Told<'_>,
        question: &Question,
    ) -> Option<Approval> {
        let arguments = told.args.to_string();
        let is_plain = matches!(self.emitter.redactor().text(&arguments), Cow::Borrowed(_));
        is_plain.then(|| Approval {
            id: self.source.short_id(),
            call_id: call_id.to_owned(),
            tool: question.tool.clone(),
            summary: question.summary.clone(),
            reason: question.reason.clone(),
            notes: question.notes.clone(),
            preview: question.preview.as_deref().map(terminal::preview),
            asked_ms: u64::try_from(self.source.wall().as_millis()).unwrap_or(u64::MAX),
            subject: self.subject(told),
        })
    }

    /// The refusal of a call that the person has denied.
    pub(super) fn denied(&self, call_id: &str) -> Option<Decision> {
        let (_, Answered { answer: Answer::Deny { reason }, .. }) = self.approvals.answered(call_id)? else {
            return None;
        };
        let reason = messages::said_no(reason.as_deref(), self.policy.language());
        Some(Decision::Deny { reason, rule: SAID_NO_RULE.to_owned() })
    }

    /// The decision about a call, with what the person has answered about it: it runs if it is what was approved.
    pub(super) fn with_answer(&self, call_id: &str, told: Told<'_>, decision: Decision) -> Decision {
        let (Decision::Allow | Decision::Ask { .. }, Some((asked, answered))) =
            (&decision, self.approvals.answered(call_id))
        else {
            return decision;
        };
        match self.difference(told, asked, answered) {
            None => Decision::Allow,
            Some(what) => Decision::Deny {
                reason: messages::not_what_was_approved(&what, self.policy.language()),
                rule: OTHER_CALL_RULE.to_owned(),
            },
        }
    }

    /// What is no longer as it was when the person was asked.
    fn difference(&self, told: Told<'_>, asked: &Approval, answered: &Answered) -> Option<String> {
        let (then, now) = (&asked.subject, self.subject(told));
        let language = self.policy.language();
        if !answered.is_genuine {
            return Some(messages::other_question(language).to_owned());
        }
        if asked.tool != told.tool {
            return Some(messages::other_tool(language).to_owned());
        }
        if then.arguments != now.arguments {
            return Some(messages::other_arguments(language).to_owned());
        }
        if then.links != now.links {
            return Some(messages::other_places(language).to_owned());
        }
        let file = now.files.iter().find(|file| !then.files.contains(file))?;
        Some(messages::other_file(&file.path, language))
    }

    /// What an answer about this call is for.
    fn subject(&self, told: Told<'_>) -> Subject {
        let written = told.plan.touches.iter().filter(|touch| touch.write);
        Subject {
            arguments: file::hash(told.args.to_string().as_bytes()),
            links: links::digest(&self.links(told.plan)),
            files: written
                .map(|touch| FileVersion { path: touch.path.clone(), hash: self.hash_of(&touch.path) })
                .collect(),
        }
    }

    /// The hash of a file's content, where there is a file that can be read.
    fn hash_of(&self, path: &str) -> Option<String> {
        let opened = self.workspace.open_file(&self.workspace.path(path).ok()?).ok()?;
        file::hash_reader(opened.file).ok()
    }
}
