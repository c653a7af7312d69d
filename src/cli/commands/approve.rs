//! `agent approve` and `agent deny`: the person's answer to a call that waits, written into its session's journal.

use crate::cli::commands::approvals::pending_calls;
use crate::cli::commands::common_args::CommonArgs;
use crate::cli::compose::app::App;
use crate::cli::compose::output::print;
use crate::cli::compose::session::answer_seal;
use crate::cli::compose::session_history::{SessionHistory, journal_write_error};
use crate::cli::error::{CliError, CliResult};
use crate::core::approval::ApprovalAnswer;
use crate::core::event::Event;
use crate::core::failure::FailureKind;
use crate::messages;
use crate::terminal::one_line;

/// Characters of a reason that the model reads.
const REASON_CHARS: usize = 1000;
/// Characters shown of an id that a person gave, and of a call.
const SHOWN_CHARS: usize = 300;

/// `agent deny`: the model reads the reason.
///
/// # Errors
/// As [`answer`].
pub fn deny(app: &App, id: &str, reason: Option<String>, common: &CommonArgs) -> CliResult<()> {
    let reason = reason.map(|reason| one_line(reason.trim(), REASON_CHARS));
    let reason = reason.filter(|reason| !reason.is_empty());
    answer(app, id, &ApprovalAnswer::Deny { reason }, common)
}

/// Answers the question `id`; until the call runs, the last answer counts.
///
/// # Errors
/// When the configuration is wrong, nothing waits under this id, another process works on its session, or its journal
/// cannot be written.
pub fn answer(app: &App, id: &str, answer: &ApprovalAnswer, common: &CommonArgs) -> CliResult<()> {
    let none = || CliError::new(FailureKind::Session, messages::no_pending_call(&one_line(id, SHOWN_CHARS)));
    let settings = app.load_settings(common)?.settings;
    let found = pending_calls(&settings)?.into_iter().find(|call| call.approval.id == id);
    let session = found.ok_or_else(none)?.session_id;
    // What waits is looked at again once nobody else can write to the session.
    let mut loaded_session = SessionHistory::open_locked(app, common, Some(&session))?;
    let asked =
        loaded_session.approvals.all().iter().find(|waiting| waiting.approval.id == id).ok_or_else(none)?;
    let asked = asked.approval.clone();
    let seal = answer_seal(&settings, &session)?.sign(&asked, answer);
    let event = Event::ApprovalAnswered { id: id.to_owned(), answer: answer.clone(), seal };
    loaded_session.approvals.apply(&event);
    loaded_session
        .emitter
        .emit(event)
        .and_then(|_| loaded_session.emitter.sync())
        .map_err(journal_write_error)?;
    let call = one_line(&format!("{} {}", asked.tool, asked.summary), SHOWN_CHARS);
    let then = messages::resume_hint(&session, loaded_session.approvals.unanswered().count());
    let said = format!("{}: {call}\n{then}\n", messages::answer_label(answer));
    print(&app.terminal, &loaded_session.redact(&said))
}
